/* What may go from a cache whose graphs have several objects: all of one or none. */
#include "tests/unit/cache/neuron.h"

#include "tests/unit/cache/gc_support.h"

#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/store/store_backend.h"

#define OTHER "neuronxcc-2.19.8089.0+8ab9f450"

/* The row of a graph of PLACE; NULL: nothing was told of it. */
static const json_t *row_of(const json_t *rows, const char *module)
{
	AUTO(auto_free) char *key = mem_format(PLACE "/%s", module);

	for (size_t i = 0; i < json_array_size(rows); i++)
		if (strcmp(js_str(json_array_get(rows, i), "graph"), key) == 0)
			return json_array_get(rows, i);
	return NULL;
}

static int make_old(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	if (strncmp(object->key, LOCK_PREFIX, strlen(LOCK_PREFIX)) != 0)
		set_age(arg, object->key, 30 * DAY);
	return 0;
}

/* All that is in the cache now was written long ago. */
static struct store *old_cache(char *dir)
{
	struct store *store = open_cache(dir);
	struct err *err = NULL;

	store_list(store, "", make_old, dir, &err);
	assert_no_error(err);
	return store;
}

static bool has_folder(const char *dir, const char *module)
{
	AUTO(auto_free) char *path = mem_format("%s/" PLACE "/%s", dir, module);

	return fs_exists(path);
}

static void stays(const json_t *rows, const char *module, const char *why)
{
	const json_t *row = row_of(rows, module);

	assert_non_null(row);
	assert_string_equal(js_str(row, "action"), "keep");
	assert_contains(js_str(row, "why"), why);
}

static void a_graph_goes_with_all_its_objects_and_its_folder(void **state)
{
	AUTO(store_freep) struct store *store = NULL;
	struct gc_sum sum;
	json_auto_t *told = NULL, *rows = NULL;

	put_done(*state, MOD_A);
	put_todo(*state, MOD_B);
	put_failed(*state, MOD_C, "error\n");
	store = old_cache(*state);
	told = gc(store, false, &sum);
	assert_true(has_part(*state, MOD_A, "model.neff"));
	rows = gc(store, true, &sum);
	assert_int_equal(json_array_size(told), 3);
	assert_int_equal(sum.graphs[GC_GOES], 3);
	assert_string_equal(js_str(row_of(told, MOD_A), "action"), "remove");
	assert_string_equal(js_str(row_of(rows, MOD_A), "action"), "removed");
	assert_int_equal(js_int(row_of(rows, MOD_A), "size_bytes", 0), 300 + 17 + 5000);
	assert_string_equal(js_str(row_of(rows, MOD_B), "state"), "todo");
	assert_string_equal(js_str(row_of(rows, MOD_C), "state"), "failed");
	assert_false(has_folder(*state, MOD_A) || has_folder(*state, MOD_B) ||
		     has_folder(*state, MOD_C));
	assert_false(sum.folders_left);
}

static void the_newest_object_decides_the_age(void **state)
{
	static const char *const files[] = { "compile_flags.json", "model.done", "model.neff",
					     "model.hlo_module.pb" };
	AUTO(store_freep) struct store *store = NULL;

	put_done(*state, MOD_A);
	store = old_cache(*state);
	for (size_t i = 0; i < STK_LENGTH(files); i++) {
		AUTO(auto_free) char *name = mem_format(PLACE "/" MOD_A "/%s", files[i]);
		json_auto_t *rows = NULL;
		struct gc_sum sum;

		set_age(*state, name, DAY - HOUR);
		rows = gc(store, true, &sum);
		assert_int_equal(sum.graphs[GC_YOUNG], 1);
		assert_int_equal(json_array_size(rows), 0);
		assert_true(has_part(*state, MOD_A, "model.neff"));
		set_age(*state, name, 30 * DAY);
	}
}

static void what_its_compiler_has_locked_stays_whole(void **state)
{
	AUTO(store_freep) struct store *store = NULL;
	json_auto_t *rows = NULL;
	struct gc_sum sum;

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	put_done(*state, MOD_B);
	put_part(*state, MOD_B, "model.hlo_module.pb.lock", 0);
	store = old_cache(*state);
	rows = gc(store, true, &sum);
	assert_int_equal(sum.graphs[GC_COMPILING], 2);
	stays(rows, MOD_A, "lock file");
	stays(rows, MOD_B, "lock file");
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb"));
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb.lock"));
	assert_true(has_part(*state, MOD_B, "model.done"));
}

static void what_holds_something_unknown_stays_whole(void **state)
{
	AUTO(store_freep) struct store *store = NULL;
	json_auto_t *rows = NULL;
	struct gc_sum sum;

	put_done(*state, MOD_A);
	put_part(*state, MOD_A, "notes.txt", 10);
	put_done(*state, MOD_B);
	put_part(*state, MOD_B, "deeper/model.neff", 5000);
	put_done(*state, MOD_D);
	write_text(*state, PLACE "/" MOD_D "x/model.neff", "beside it, not in it");
	store = old_cache(*state);
	rows = gc(store, true, &sum);
	assert_int_equal(sum.graphs[GC_UNKNOWN], 2);
	stays(rows, MOD_A, "no known form");
	stays(rows, MOD_B, "no known form");
	assert_true(has_part(*state, MOD_A, "model.neff") &&
		    has_part(*state, MOD_B, "compile_flags.json"));
	assert_false(has_folder(*state, MOD_D));
	assert_true(has_part(*state, MOD_D "x", "model.neff"));
}

static void the_same_graph_of_another_compiler_is_another_one(void **state)
{
	json_auto_t *compiler = json_object(), *ingredients = json_pack("{si}", "batch_size", 1);
	struct manifest_graph graph = { .key = mem_copy(PLACE "/" MOD_A),
					.path = mem_copy(PLACE "/" MOD_A "/model.neff"),
					.size = 5000,
					.digest = HEX_A };
	struct compile_manifest lock = { .name = mem_copy("vit"),
					 .kind = neuron(),
					 .run = mem_copy("run1"),
					 .compiler = compiler,
					 .ingredients = ingredients,
					 .graphs = &graph,
					 .count = 1 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *rows = NULL;
	struct gc_sum sum;

	graph_key_of(ingredients, lock.graph_key);
	put_done(*state, MOD_A);
	write_text(*state, OTHER "/" MOD_A "/model.hlo_module.pb", "todo");
	store = old_cache(*state);
	assert_int_equal(compile_manifest_file_replace(store, &lock, NULL, &err), 1);
	rows = gc(store, true, &sum);
	assert_int_equal(sum.graphs[GC_NAMED], 1);
	assert_int_equal(sum.graphs[GC_GOES], 1);
	assert_true(has_part(*state, MOD_A, "model.neff"));
	assert_null(row_of(rows, MOD_A));
	assert_string_equal(js_str(json_array_get(rows, 0), "graph"), OTHER "/" MOD_A);
	free(graph.key);
	free(graph.path);
	free(lock.name);
	free(lock.run);
}

/* A store whose deletions fail from some point on, as if the process had died. */
static const struct store_backend *whole;
static int deletions_left;

static int delete_some(struct store *store, const char *key, struct err **err)
{
	if (deletions_left-- <= 0)
		return err_set(err, EXIT_REFUSED, "no deletion of '%s'", key);
	return whole->remove(store, key, err);
}

static void what_an_interruption_leaves_does_not_look_compiled(void **state)
{
	struct gc_options options = { .now = clock_utc_now(), .older_ms = DAY, .remove = true };

	for (int n = 1; n < 4; n++) {
		AUTO(store_freep) struct store *store = NULL;
		AUTO(sb_release) struct sb hold = SB_INIT;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *rows = json_array();
		struct store_backend some;
		struct listing_graph graph;
		struct gc_sum sum;

		put_done(*state, MOD_A);
		store = old_cache(*state);
		whole = store->backend;
		some = *whole;
		some.remove = delete_some;
		store->backend = &some;
		deletions_left = n;
		assert_int_equal(cache_gc(store, &options, keep_row, rows, &sum, &err), -1);
		assert_contains(err->message, MOD_A);
		assert_int_equal(sum.graphs[GC_GOES], 0);
		err_freep(&err);
		store->backend = whole;
		assert_int_equal(
			listing_find(store, neuron(), PLACE "/" MOD_A, &graph, &hold, &err), 1);
		assert_int_not_equal(graph.state, ENTRY_DONE);
		/* The rest of the graph goes the next time. */
		cache_gc(store, &options, keep_row, rows, &sum, &err);
		assert_no_error(err);
		assert_int_equal(sum.graphs[GC_GOES], 1);
		assert_false(has_folder(*state, MOD_A));
	}
}

/* Something that is no object, and so not seen, but not nothing either. */
static void a_folder_that_is_not_empty_stays_and_is_told(void **state)
{
	AUTO(auto_free) char *below = mem_format("%s/" PLACE "/" MOD_A "/x", (char *)*state);
	AUTO(store_freep) struct store *store = NULL;
	json_auto_t *rows = NULL;
	struct gc_sum sum;

	put_done(*state, MOD_A);
	assert_int_equal(mkdir(below, 0700), 0);
	store = old_cache(*state);
	rows = gc(store, true, &sum);
	assert_int_equal(sum.graphs[GC_GOES], 1);
	assert_true(sum.folders_left);
	assert_true(fs_is_dir(below));
	assert_false(has_part(*state, MOD_A, "model.neff"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_graph_goes_with_all_its_objects_and_its_folder),
		test_in_scratch(the_newest_object_decides_the_age),
		test_in_scratch(what_its_compiler_has_locked_stays_whole),
		test_in_scratch(what_holds_something_unknown_stays_whole),
		test_in_scratch(the_same_graph_of_another_compiler_is_another_one),
		test_in_scratch(what_an_interruption_leaves_does_not_look_compiled),
		test_in_scratch(a_folder_that_is_not_empty_stays_and_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
