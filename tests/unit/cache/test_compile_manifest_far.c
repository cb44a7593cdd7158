/* A lock of a cache that is no directory: every request is a way to a service and back, so
 * there must not be some for each graph. The store is a folder here, and counts. */
#include "tests/unit/cache/neuron.h"

#include "jobs/cache/verdict/cache_verdict.h"
#include "jobs/store/store_backend.h"

#define GRAPHS 12

struct counting {
	struct store base; /* first: a store is one of these */
	struct store *real;
	bool untagged; /* its listings tell no tags */
	int lists, folders, stats, gets;
	store_list_fn fn;
	void *arg;
};

static struct counting *counting(struct store *store)
{
	return (struct counting *)(void *)store;
}

static int pass_object(void *arg, const struct store_object *object, struct err **err)
{
	const struct counting *store = arg;
	struct store_object told = *object;

	if (store->untagged)
		told.tag[0] = '\0';
	return store->fn(store->arg, &told, err);
}

static int counting_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
			 struct err **err)
{
	counting(store)->lists++;
	counting(store)->fn = fn;
	counting(store)->arg = arg;
	return store_list(counting(store)->real, prefix, pass_object, store, err);
}

static int counting_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
			    struct err **err)
{
	counting(store)->folders++;
	return store_folders(counting(store)->real, prefix, fn, arg, err);
}

static int counting_stat(struct store *store, const char *key, struct store_object *ret,
			 struct err **err)
{
	counting(store)->stats++;
	return store_stat(counting(store)->real, key, ret, err);
}

static int counting_get(struct store *store, const char *key, size_t max, struct sb *ret,
			char ret_tag[STORE_TAG], struct err **err)
{
	counting(store)->gets++;
	return store_get(counting(store)->real, key, max, ret, ret_tag, err);
}

static int counting_put_if_absent(struct store *store, const char *key, const void *bytes,
				  size_t len, struct err **err)
{
	return store_put_if_absent(counting(store)->real, key, bytes, len, err);
}

static int counting_replace(struct store *store, const char *key, const char *tag,
			    const void *bytes, size_t len, struct err **err)
{
	return store_replace_if_same(counting(store)->real, key, tag, bytes, len, err);
}

static const struct store_backend counting_backend = {
	.list = counting_list,
	.folders = counting_folders,
	.stat = counting_stat,
	.get = counting_get,
	.put_if_absent = counting_put_if_absent,
	.replace_if_same = counting_replace,
};

static int requests(struct counting *store)
{
	int sum = store->lists + store->folders + store->stats + store->gets;

	store->lists = store->folders = store->stats = store->gets = 0;
	return sum;
}

struct world {
	struct counting store;
	char modules[GRAPHS][64];
	struct graph_tally *tally;
	json_t *ingredients, *compiler;
	struct compile_manifest *lock;
};

/* Graphs that are all done, and their lock. */
static void world_make(struct world *world, char *dir)
{
	struct lock_facts facts = { .kind = neuron(), .name = "m5", .run = "run1" };
	struct err *err = NULL;

	*world = (struct world){ .tally = graph_tally_new(),
				 .ingredients = json_pack("{s:s}", "batch", "32"),
				 .compiler = json_object() };
	world->store.base = (struct store){ .backend = &counting_backend, .url = dir };
	world->store.real = open_cache(dir);
	for (int i = 0; i < GRAPHS; i++) {
		AUTO(auto_free) char *line = NULL;

		/* The modules are not in the order of their keys. */
		snprintf(world->modules[i], sizeof world->modules[i], "MODULE_%02d+3cc9a3cb",
			 i * 7 % GRAPHS);
		line = mem_format("Using a cached neff at /cache/" PLACE "/%s/model.neff\n",
				  world->modules[i]);
		neuron_scan_text(world->tally, 0, line);
		put_done(dir, world->modules[i]);
	}
	facts.store = &world->store.base;
	facts.compiler = world->compiler;
	facts.ingredients = world->ingredients;
	compile_manifest_write(&facts, world->tally, &world->lock, NULL, &err);
	assert_no_error(err);
}

static void world_release(struct world *world)
{
	store_freep(&world->store.real);
	graph_tally_freep(&world->tally);
	json_decref(world->ingredients);
	json_decref(world->compiler);
	compile_manifest_freep(&world->lock);
}

static struct lock_report checked(struct world *world)
{
	struct lock_report report = { 0 };
	struct err *err = NULL;

	compile_manifest_check(&world->store.base, world->lock, &report, &err);
	assert_no_error(err);
	return report;
}

static void a_lock_is_written_from_one_listing(void **state)
{
	AUTO(world_release) struct world world;

	world_make(&world, *state);
	assert_int_equal(world.lock->count, GRAPHS);
	for (int i = 0; i < GRAPHS; i++) {
		AUTO(auto_free) char *key = mem_format(PLACE "/%s", world.modules[i]);
		AUTO(auto_free) char *path = mem_format("%s/model.neff", key);
		struct store_object object;
		struct err *err = NULL;

		assert_string_equal(world.lock->graphs[i].key, key);
		assert_string_equal(world.lock->graphs[i].path, path);
		assert_int_equal(store_stat(world.store.real, path, &object, &err), 1);
		assert_true(world.lock->graphs[i].tagged);
		assert_int_equal(world.lock->graphs[i].size, object.size);
		assert_string_equal(world.lock->graphs[i].digest, object.tag);
	}
	assert_true(requests(&world.store) < GRAPHS);
}

static void a_warm_cache_is_known_by_one_listing(void **state)
{
	AUTO(world_release) struct world world;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };

	world_make(&world, *state);
	requests(&world.store);
	report = checked(&world);
	assert_true(report.warm);
	assert_int_equal(world.store.lists, 1);
	assert_int_equal(requests(&world.store), 1);
}

static int paused(void *arg, struct err **err)
{
	int *left = arg;

	return (*left)-- > 0 ? 0 : err_set(err, EXIT_BUSY, "somebody else has it");
}

/* The verdict's caller is asked before each graph, and may end it. */
static void a_verdict_is_found_by_one_listing(void **state)
{
	AUTO(world_release) struct world world;
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	int left = GRAPHS;
	struct verify_request request = {
		.kind = neuron(), .job_ok = true, .job_words = "exit 0", .pause = { paused, &left }
	};

	world_make(&world, *state);
	request.store = &world.store.base;
	request.tally = world.tally;
	requests(&world.store);
	assert_int_equal(cache_verify(&request, &verdict, &err), 0);
	assert_true(verdict.complete);
	assert_int_equal(verdict.done, GRAPHS);
	assert_int_equal(requests(&world.store), 1);
	assert_int_equal(left, 0);
	left = 3;
	assert_int_equal(cache_verify(&request, &verdict, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
}

static void what_lies_beside_a_graph_spoils_it_there_too(void **state)
{
	AUTO(world_release) struct world world;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	AUTO(auto_free) char *marker = NULL;

	world_make(&world, *state);
	requests(&world.store);
	marker = mem_format("%s/" PLACE "/%s/model.done", (const char *)*state, world.modules[3]);
	assert_int_equal(unlink(marker), 0);
	/* A graph that somebody looks at again, with its marker, is well. */
	put_part(*state, world.modules[5], "model.hlo_module.pb.lock", 0);
	report = checked(&world);
	assert_false(report.warm);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.problems[0].graph, 3);
	assert_int_equal(report.problems[0].fault, LOCK_SPOILT);
	assert_int_equal(requests(&world.store), 1);
}

static void what_is_gone_or_changed_is_told_as_that_and_not_as_spoilt(void **state)
{
	AUTO(world_release) struct world world;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	AUTO(auto_free) char *folder = NULL;
	struct err *err = NULL;

	world_make(&world, *state);
	folder = mem_format("%s/" PLACE "/%s", (const char *)*state, world.modules[2]);
	assert_int_equal(fs_remove_tree(folder, &err), 0);
	put_part(*state, world.modules[4], "model.neff", 4000);
	report = checked(&world);
	assert_int_equal(report.count, 2);
	assert_int_equal(report.problems[0].graph, 2);
	assert_int_equal(report.problems[0].fault, LOCK_MISSING);
	assert_int_equal(report.problems[1].graph, 4);
	assert_int_equal(report.problems[1].fault, LOCK_TRUNCATED);
}

static void a_listing_without_tags_proves_nothing_of_an_empty_pin(void **state)
{
	AUTO(world_release) struct world world;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };

	world_make(&world, *state);
	world.store.untagged = true;
	for (int i = 0; i < GRAPHS; i++)
		world.lock->graphs[i].digest[0] = '\0';
	report = checked(&world);
	assert_false(report.warm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_lock_is_written_from_one_listing),
		test_in_scratch(a_warm_cache_is_known_by_one_listing),
		test_in_scratch(a_verdict_is_found_by_one_listing),
		test_in_scratch(what_lies_beside_a_graph_spoils_it_there_too),
		test_in_scratch(what_is_gone_or_changed_is_told_as_that_and_not_as_spoilt),
		test_in_scratch(a_listing_without_tags_proves_nothing_of_an_empty_pin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
