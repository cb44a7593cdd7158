/* The compile manifest: warm, cold, deleted, truncated, changed, late, forged. */
#include "tests/unit/cache/support.h"

#include <sys/stat.h>

#include "jobs/cache/manifest/compile_manifest.h"

struct world {
	const char *dir;
	struct store *store;
	json_t *compiler, *ingredients;
};

static struct world world_of(const char *dir)
{
	return (struct world){
		.dir = dir,
		.store = open_cache(dir),
		.compiler = json_pack("{ss}", "jax", "0.10.2"),
		.ingredients =
			json_pack("{s{si}ss}", "hyperparameters", "batch_size", 32, "kind", "jax"),
	};
}

static void world_clear(struct world *world)
{
	store_freep(&world->store);
	json_decref(world->compiler);
	json_decref(world->ingredients);
}

static struct compile_manifest *write_lock(const struct world *world, const char *name,
					   const char *log, int64_t at)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(log);
	struct lock_facts facts = { .kind = jax(),
				    .store = world->store,
				    .name = name,
				    .run = "run1",
				    .now = { at },
				    .compiler = world->compiler,
				    .ingredients = world->ingredients };
	struct compile_manifest *lock = NULL;
	struct err *err = NULL;

	compile_manifest_write(&facts, tally, &lock, NULL, &err);
	assert_no_error(err);
	return lock;
}

static struct compile_manifest *load(const struct world *world, const char *key)
{
	struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *damage = NULL;
	struct err *err = NULL;
	int found = compile_manifest_load(world->store, key, &lock, &damage, &err);

	assert_no_error(err);
	if (damage)
		fail_msg("the lock is damaged: %s", damage);
	assert_int_equal(found, 1);
	return lock;
}

static struct lock_report check(const struct world *world, const struct compile_manifest *lock)
{
	struct lock_report report = { 0 };
	struct err *err = NULL;

	compile_manifest_check(world->store, lock, &report, &err);
	assert_no_error(err);
	return report;
}

static void join_late(const struct world *world, const char *graph_key,
		      const struct graph_tally *tally, int64_t *ret_joined)
{
	struct lock_facts facts = {
		.kind = jax(), .store = world->store, .run = "late-run", .now = { 7000 }
	};
	struct err *err = NULL;

	compile_manifest_join_late(&facts, graph_key, tally, ret_joined, &err);
	assert_no_error(err);
}

static char *lock_path(const struct world *world, const struct compile_manifest *lock)
{
	return mem_format("%s/stoker/%s.json", world->dir, lock->graph_key);
}

static char *text_of(const char *path)
{
	struct sb text = SB_INIT;
	struct err *err = NULL;

	fs_read(path, (size_t)1 << 20, &text, &err);
	assert_no_error(err);
	return sb_take(&text);
}

#define LOG_FG MISS("jit_f", KEY_F) MISS("jit_g", KEY_G)

/* A cache with two entries and their lock. */
static struct compile_manifest *locked_pair(const struct world *world)
{
	write_entry(world->dir, KEY_F, "f");
	write_entry(world->dir, KEY_G, "gg");
	return write_lock(world, "vit", LOG_FG, 1000);
}

static void a_lock_comes_back_as_it_was_written(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *written = locked_pair(&world);
	AUTO(compile_manifest_freep)
	struct compile_manifest *lock = load(&world, written->graph_key);

	assert_string_equal(lock->graph_key, written->graph_key);
	assert_true(json_equal(lock->compiler, written->compiler));
	assert_true(json_equal(lock->ingredients, written->ingredients));
	assert_int_equal(lock->count, 2);
	assert_string_equal(lock->name, "vit");
	assert_string_equal(lock->run, "run1");
	assert_int_equal(lock->created.ms, 1000);
	assert_string_equal(lock->graphs[0].key, KEY_F);
	assert_string_equal(lock->graphs[0].path, KEY_F "-cache");
	assert_false(lock->graphs[0].tagged);
	assert_int_equal(strlen(lock->graphs[0].digest), 64);
	assert_string_not_equal(lock->graphs[0].digest, lock->graphs[1].digest);
}

static void lock_and_folder_are_for_their_owner_alone_and_entries_untouched(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = locked_pair(&world);
	AUTO(auto_free) char *path = lock_path(&world, lock);
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(auto_free) char *entry = entry_path(*state, KEY_F);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(entry, &st), 0);
	assert_int_equal(st.st_nlink, 1);
}

static void an_unchanged_cache_is_warm(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = locked_pair(&world);
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };

	write_entry(*state, KEY_H, "another program's");
	report = check(&world, lock);
	assert_true(report.warm);
	assert_int_equal(report.count, 0);
}

static void deleted_truncated_and_changed_entries_are_cold_and_named(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	json_auto_t *problems = NULL;
	static const char *const states[] = { "missing", "truncated", "changed" };

	write_entry(*state, KEY_F, "f");
	write_entry(*state, KEY_G, "g");
	write_entry(*state, KEY_H, "h");
	lock = write_lock(&world, "vit", LOG_FG MISS("jit_h", KEY_H), 1000);
	remove_entry(*state, KEY_F);
	cut_entry(*state, KEY_G, 100);
	write_entry(*state, KEY_H, "i");
	report = check(&world, lock);
	assert_false(report.warm);
	problems = compile_manifest_problems_json(lock, &report);
	assert_int_equal(json_array_size(problems), 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(js_str(json_array_get(problems, i), "state"), states[i]);
	assert_string_equal(js_str(json_array_get(problems, 1), "graph"), KEY_G);
	assert_string_equal(js_str(json_array_get(problems, 1), "path"), KEY_G "-cache");
	assert_contains(js_str(json_array_get(problems, 1), "what"), "100 bytes instead of");
}

static void repair_removes_what_the_lock_names_and_is_bad_and_nothing_else(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = locked_pair(&world);
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	cut_entry(*state, KEY_F, 0);
	remove_entry(*state, KEY_G);
	write_entry(*state, KEY_H, "");
	cut_entry(*state, KEY_H, 0); /* bad as well, but not ours */
	report = check(&world, lock);
	compile_manifest_repair(world.store, lock, &report, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 1);
	assert_string_equal(js_str(json_array_get(removed, 0), "graph"), KEY_F);
	assert_false(has_entry(*state, KEY_F));
	assert_true(has_entry(*state, KEY_H));
}

static void a_graph_that_is_not_whole_cannot_be_locked(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(LOG_FG);
	struct lock_facts facts = { .kind = jax(),
				    .store = world.store,
				    .name = "vit",
				    .run = "run1",
				    .compiler = world.compiler,
				    .ingredients = world.ingredients };
	AUTO(err_freep) struct err *err = NULL;

	write_entry(*state, KEY_F, "");
	write_entry(*state, KEY_G, "");
	cut_entry(*state, KEY_G, 50);
	assert_int_equal(compile_manifest_write(&facts, tally, NULL, NULL, &err), -1);
	assert_contains(err->message, KEY_G);
	assert_int_equal(err->code, EXIT_GATE);
}

static void late_graphs_join_marked_and_stay_when_the_lock_is_written_again(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = locked_pair(&world);
	AUTO(compile_manifest_freep) struct compile_manifest *joined = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *again = NULL;
	AUTO(graph_tally_freep)
	struct graph_tally *tally = graph_tally_of(HIT("jit_f", KEY_F) MISS("jit_h", KEY_H)
							   MISS("jit_gone", "jit_gone-" HEX_A));
	int64_t count = -1;

	write_entry(*state, KEY_H, "h");
	join_late(&world, lock->graph_key, tally, &count);
	assert_int_equal(count, 1);
	joined = load(&world, lock->graph_key);
	assert_int_equal(joined->count, 3);
	assert_string_equal(joined->graphs[2].key, KEY_H);
	assert_true(joined->graphs[2].late);
	assert_false(joined->graphs[0].late);
	join_late(&world, lock->graph_key, tally, &count);
	assert_int_equal(count, 0);
	again = write_lock(&world, "vit", LOG_FG, 2000);
	assert_int_equal(again->count, 3);
	assert_true(again->graphs[2].late);
	/* A graph that was not late and is named no more has no place in the manifest. */
	compile_manifest_freep(&again);
	again = write_lock(&world, "vit", MISS("jit_f", KEY_F), 3000);
	assert_int_equal(again->count, 2);
	assert_string_equal(again->graphs[1].key, KEY_H);
}

static void joining_without_a_lock_does_nothing(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(MISS("jit_f", KEY_F));
	int64_t count = -1;

	write_entry(*state, KEY_F, "");
	join_late(&world, HEX_A, tally, &count);
	assert_int_equal(count, 0);
}

static void an_absent_lock_is_absent_and_makes_no_folder(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(auto_free) char *folder = fs_join(*state, "stoker");
	struct compile_manifest *lock = NULL;
	char *damage = NULL;
	struct err *err = NULL;

	assert_int_equal(compile_manifest_load(world.store, HEX_A, &lock, &damage, &err), 0);
	assert_null(lock);
	assert_null(damage);
	assert_false(fs_exists(folder));
}

/* Write the lock's text with one piece replaced, and expect it to be absent. */
static void assert_damaged(const struct world *world, const struct compile_manifest *lock,
			   const char *piece, const char *instead, const char *reason)
{
	AUTO(auto_free) char *path = lock_path(world, lock);
	AUTO(auto_free) char *text = text_of(path);
	AUTO(auto_free) char *name = mem_format("stoker/%s.json", lock->graph_key);
	AUTO(auto_free) char *damage = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *loaded = NULL;
	AUTO(sb_release) struct sb changed = SB_INIT;
	const char *at = strstr(text, piece);
	struct err *err = NULL;

	assert_non_null(at);
	sb_add(&changed, text, (size_t)(at - text));
	sb_adds(&changed, instead);
	sb_adds(&changed, at + strlen(piece));
	write_text(world->dir, name, changed.text);
	assert_int_equal(
		compile_manifest_load(world->store, lock->graph_key, &loaded, &damage, &err), 0);
	assert_no_error(err);
	assert_null(loaded);
	if (!damage)
		fail_msg("'%s' instead of '%s' was not noticed", instead, piece);
	else
		assert_contains(damage, reason);
	write_text(world->dir, name, text);
}

static void a_lock_that_cannot_be_trusted_is_absent_but_named(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = locked_pair(&world);

	assert_damaged(&world, lock, "}]}", "}]", "not valid JSON");
	assert_damaged(&world, lock, "\"v\":1", "\"v\":2", "version");
	assert_damaged(&world, lock, lock->graph_key, HEX_B, "another graph key");
	assert_damaged(&world, lock, "\"kind\":\"jax\",\"created\"",
		       "\"kind\":\"cobol\",\"created\"", "kind");
	assert_damaged(&world, lock, "\"batch_size\":32", "\"batch_size\":64", "ingredients");
	assert_damaged(&world, lock, "\"path\":\"" KEY_F "-cache\"", "\"path\":\"../secret\"",
		       "path");
	assert_damaged(&world, lock, "\"path\":\"" KEY_F "-cache\"", "\"path\":\"" KEY_G "-cache\"",
		       "path");
	assert_damaged(&world, lock, "\"path\":\"" KEY_F "-cache\"",
		       "\"path\":\"" KEY_F "-cache\\u0000x\"", "lacks key, path");
	assert_damaged(&world, lock, "\"size\":", "\"size\":-", "size");
	assert_damaged(&world, lock, "\"sha256\":\"", "\"sha256\":\"zz", "digest");
}

static void a_cut_lock_file_is_absent_at_every_length(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = locked_pair(&world);
	AUTO(auto_free) char *path = lock_path(&world, lock);
	AUTO(auto_free) char *text = text_of(path);
	AUTO(auto_free) char *name = mem_format("stoker/%s.json", lock->graph_key);

	for (size_t len = 0; len < strlen(text); len += 13) {
		AUTO(compile_manifest_freep) struct compile_manifest *loaded = NULL;
		AUTO(auto_free) char *damage = NULL;
		struct err *err = NULL;

		write_file(*state, name, text, len);
		assert_int_equal(
			compile_manifest_load(world.store, lock->graph_key, &loaded, &damage, &err),
			0);
		assert_no_error(err);
		assert_non_null(damage);
	}
}

static void secrets_among_the_ingredients_never_reach_the_disk(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;
	struct err *err = NULL;
	char key[SHA256_HEX];

	json_object_set_new(world.ingredients, "env", json_pack("{ss}", "HF_TOKEN", "hunter2"));
	lock = locked_pair(&world);
	graph_key_of(world.ingredients, key);
	assert_string_equal(lock->graph_key, key);
	path = lock_path(&world, lock);
	fs_read(path, 1 << 20, &text, &err);
	assert_no_error(err);
	assert_null(strstr(text.text, "hunter2"));
	assert_contains(text.text, "sha256:");
}

static void set_batch_size(struct world *world, int size)
{
	json_object_set_new(json_object_get(world->ingredients, "hyperparameters"), "batch_size",
			    json_integer(size));
}

static void write_one(struct world *world, const char *name, int batch_size, const char *extra,
		      int64_t at)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;

	set_batch_size(world, batch_size);
	json_object_set_new(world->ingredients, "extra", json_string(extra));
	lock = write_lock(world, name, MISS("jit_f", KEY_F), at);
}

static void the_nearest_lock_is_of_the_same_name_with_fewest_changes_and_newest(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *nearest = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *unrecognised = NULL;
	json_auto_t *diff = NULL;
	struct err *err = NULL;

	write_entry(*state, KEY_F, "");
	assert_int_equal(compile_manifest_find_nearest(world.store, "vit", world.ingredients,
						       &nearest, &err),
			 0);
	write_one(&world, "other", 48, "x", 9000); /* nothing but the name speaks for vit */
	write_one(&world, "vit", 16, "x", 3000);
	write_one(&world, "vit", 32, "x", 2000);
	write_one(&world, "vit", 64, "y", 5000); /* two changes */
	write_text(*state, "stoker/" HEX_C ".json", "{damaged");
	write_text(*state, "stoker/readme", "hello");
	set_batch_size(&world, 48);
	json_object_set_new(world.ingredients, "extra", json_string("x"));
	assert_int_equal(compile_manifest_find_nearest(world.store, "vit", world.ingredients,
						       &nearest, &err),
			 1);
	assert_no_error(err);
	assert_int_equal(nearest->created.ms, 3000);
	diff = graph_key_ingredients_diff(nearest->ingredients, world.ingredients);
	assert_int_equal(json_array_size(diff), 1);
	assert_string_equal(js_str(json_array_get(diff, 0), "field"), "hyperparameters.batch_size");
	assert_int_equal(js_int(json_array_get(diff, 0), "old", 0), 16);
	assert_int_equal(js_int(json_array_get(diff, 0), "new", 0), 48);
	assert_int_equal(compile_manifest_find_nearest(world.store, "new", world.ingredients,
						       &unrecognised, &err),
			 1);
	assert_string_equal(unrecognised->name, "other");
}

static void a_set_loads_every_good_lock_and_names_the_bad_ones(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state);
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	struct err *err = NULL;

	write_entry(*state, KEY_F, "");
	write_one(&world, "vit", 1, "x", 1);
	write_one(&world, "vit", 2, "x", 1);
	write_text(*state, "stoker/" HEX_C ".json", "");
	write_text(*state, "stoker/notes.txt", "");
	compile_manifest_set_load(world.store, &set, &err);
	assert_no_error(err);
	assert_int_equal(set.count, 2);
	assert_int_equal(json_array_size(set.damaged), 2);
	assert_string_equal(js_str(json_array_get(set.damaged, 0), "lock"),
			    "stoker/" HEX_C ".json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_lock_comes_back_as_it_was_written),
		test_in_scratch(lock_and_folder_are_for_their_owner_alone_and_entries_untouched),
		test_in_scratch(an_unchanged_cache_is_warm),
		test_in_scratch(deleted_truncated_and_changed_entries_are_cold_and_named),
		test_in_scratch(repair_removes_what_the_lock_names_and_is_bad_and_nothing_else),
		test_in_scratch(a_graph_that_is_not_whole_cannot_be_locked),
		test_in_scratch(late_graphs_join_marked_and_stay_when_the_lock_is_written_again),
		test_in_scratch(joining_without_a_lock_does_nothing),
		test_in_scratch(an_absent_lock_is_absent_and_makes_no_folder),
		test_in_scratch(a_lock_that_cannot_be_trusted_is_absent_but_named),
		test_in_scratch(a_cut_lock_file_is_absent_at_every_length),
		test_in_scratch(secrets_among_the_ingredients_never_reach_the_disk),
		test_in_scratch(
			the_nearest_lock_is_of_the_same_name_with_fewest_changes_and_newest),
		test_in_scratch(a_set_loads_every_good_lock_and_names_the_bad_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
