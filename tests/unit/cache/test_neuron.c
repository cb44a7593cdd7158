/* The cache of the kind neuron: its objects, states of every layout, variables. */
#include "tests/unit/cache/neuron.h"

#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/cache/verdict/entry.h"
#include "jobs/cache/verdict/listing.h"

static void objects_of_a_graph_are_known_by_their_names(void **state)
{
	static const struct {
		const char *key;
		unsigned role;
	} rows[] = {
		{ PLACE "/" MOD_A "/model.neff", ROLE_COMPILED },
		{ PLACE "/" MOD_C "/model.done", ROLE_MARKER },
		{ PLACE "/" MOD_A "/model.log", ROLE_LOG },
		{ PLACE "/" MOD_A "/model.hlo_module.pb", ROLE_INPUT },
		{ PLACE "/" MOD_A "/model.hlo.pb", ROLE_INPUT | ROLE_OLD },
		{ PLACE "/" MOD_A "/compile_flags.json", ROLE_FLAGS },
		{ PLACE "/" MOD_A "/compile_flags.txt", ROLE_FLAGS | ROLE_OLD },
		{ PLACE "/" MOD_A "/model.hlo_module.pb.lock", ROLE_LOCK },
		{ PLACE "/" MOD_A "/model.hlo.pb.lock", ROLE_LOCK },
		{ PLACE "/" MOD_A "/anything.lock", ROLE_LOCK },
	};
	struct entry_object object;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		if (!neuron()->object(rows[i].key, &object))
			fail_msg("'%s' is no object", rows[i].key);
		assert_int_equal(object.role, rows[i].role);
		assert_ptr_equal(object.graph.text, rows[i].key);
		assert_int_equal(object.graph.len, strrchr(rows[i].key, '/') - rows[i].key);
	}
}

static void other_names_in_a_cache_are_no_objects(void **state)
{
	static const char *const others[] = {
		"",
		"model.neff",
		MOD_A "/model.neff",
		PLACE "/model.neff",
		PLACE "/" MOD_A,
		PLACE "/" MOD_A "/",
		PLACE "/" MOD_A "/wrapped_neff.hlo",
		PLACE "/" MOD_A "/deep/model.neff",
		PLACE "/" MOD_A "/deep/x.lock",
		PLACE "/" MOD_A "/.lock",
		PLACE "/" MOD_A "x/model.neff",
		PLACE "/MODULE_12/model.neff",
		PLACE "/MODULE_12+3cc9a3c/model.neff",
		PLACE "/MODULE_12+3cc9a3cbb/model.neff",
		PLACE "/MODULE_+3cc9a3cb/model.neff",
		PLACE "/0_REGISTRY/model.neff",
		"neuronxcc-/" MOD_A "/model.neff",
		"other-1.0/" MOD_A "/model.neff",
		"x/" PLACE "/" MOD_A "/model.neff",
		"../" MOD_A "/model.neff",
		"stoker/abc.json",
	};
	struct entry_object object;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(others); i++)
		if (neuron()->object(others[i], &object))
			fail_msg("'%s' was taken for an object", others[i]);
	assert_false(jax()->object(PLACE "/" MOD_A "/model.neff", &object));
}

#define BIG   5000
#define IN    ROLE_INPUT | ROLE_FLAGS
#define OLDIN ROLE_INPUT | ROLE_FLAGS | ROLE_OLD

static void every_layout_has_its_state(void **state)
{
	static const struct {
		unsigned roles;
		uint64_t size;
		enum entry_state want;
		const char *what;
	} rows[] = {
		{ IN | ROLE_COMPILED | ROLE_MARKER, BIG, ENTRY_DONE, "done" },
		{ OLDIN | ROLE_COMPILED, BIG, ENTRY_DONE, "an old layout has no marker" },
		{ OLDIN | ROLE_COMPILED, 5, ENTRY_PARTIAL, "nor does a tiny one need it" },
		{ OLDIN | ROLE_COMPILED | ROLE_LOG, 5, ENTRY_FAILED, "5 bytes and a log" },
		{ IN | ROLE_COMPILED | ROLE_LOG, 5, ENTRY_FAILED, "5 bytes and a log" },
		{ IN | ROLE_COMPILED | ROLE_LOG | ROLE_MARKER, 5, ENTRY_FAILED,
		  "marked all the same" },
		{ IN | ROLE_LOG, 0, ENTRY_FAILED, "a log alone" },
		{ OLDIN | ROLE_COMPILED | ROLE_LOG, BIG, ENTRY_DONE, "an old try's log" },
		{ IN | ROLE_COMPILED | ROLE_LOG | ROLE_MARKER, BIG, ENTRY_DONE,
		  "an old try's log" },
		{ IN | ROLE_COMPILED | ROLE_LOG, BIG, ENTRY_FAILED, "a log, and no marker" },
		{ IN | ROLE_LOCK, 0, ENTRY_LOCKED, "being compiled" },
		{ IN | ROLE_LOCK | ROLE_COMPILED, BIG, ENTRY_LOCKED, "being written" },
		{ OLDIN | ROLE_LOCK | ROLE_COMPILED, BIG, ENTRY_LOCKED, "being written" },
		{ IN | ROLE_LOCK | ROLE_LOG, 0, ENTRY_LOCKED, "being tried again" },
		{ IN | ROLE_LOCK | ROLE_COMPILED | ROLE_MARKER, BIG, ENTRY_DONE,
		  "lock just going" },
		{ ROLE_LOCK, 0, ENTRY_LOCKED, "a lock alone" },
		{ IN, 0, ENTRY_TODO, "extracted" },
		{ OLDIN, 0, ENTRY_TODO, "extracted" },
		{ IN | ROLE_COMPILED, BIG, ENTRY_PARTIAL, "not marked" },
		{ IN | ROLE_COMPILED, 0, ENTRY_EMPTY, "no bytes" },
		{ IN | ROLE_COMPILED | ROLE_MARKER, 0, ENTRY_EMPTY, "no bytes, marked" },
		{ IN | ROLE_COMPILED | ROLE_MARKER, 1024, ENTRY_PARTIAL, "too small, marked" },
		{ IN | ROLE_MARKER, 0, ENTRY_PARTIAL, "a marker for nothing" },
		{ ROLE_FLAGS, 0, ENTRY_MISSING, "flags alone" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (neuron()->state(rows[i].roles, rows[i].size) != rows[i].want)
			fail_msg("row %zu (%s) is %s", i, rows[i].what,
				 compile_kind_entry_state_name(
					 neuron()->state(rows[i].roles, rows[i].size)));
}

static void note_variable(void *arg, const char *name, const char *value)
{
	js_put_str(arg, name, value);
}

static void neuron_is_told_where_its_cache_is(void **state)
{
	json_auto_t *set = json_object();

	(void)state;
	compile_kind_environment(neuron(), "/cache here", note_variable, set);
	assert_string_equal(js_str(set, "NEURON_COMPILE_CACHE_URL"), "/cache here");
	assert_null(js_str(set, "NEURON_CC_FLAGS"));
	assert_string_equal(neuron()->front_end, "neuron_parallel_compile");
	assert_string_equal(neuron()->workers_option, "--num_parallel");
}

static void variables_of_the_runtime_steer_nothing_and_those_of_the_graph_do(void **state)
{
	static const char *const neutral[] = {
		"NEURON_COMPILE_CACHE_URL",
		"NEURON_RT_EXEC_TIMEOUT",
		"NEURON_RT_LOG_LEVEL",
		"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS",
		"NEURON_NUM_RECENT_MODELS_TO_KEEP",
		"NEURON_PARALLEL_COMPILE_MAX_RETRIES",
		"MASTER_PORT",
	};
	static const char *const steering[] = {
		"NEURON_CC_FLAGS",
		"XLA_USE_BF16",
		"XLA_DOWNCAST_BF16",
		"BUCKET_CAP_MB",
		"NEURON_FUSE_SOFTMAX",
		"XLA_DISABLE_FUNCTIONALIZATION",
		"XLA_FLAGS",
		"NEURON_CUSTOM_SILU",
		"NEURON_EXTRACT_GRAPHS_ONLY",
		"NEURON_RT",
		"NEURON_RT_VIRTUAL_CORE_SIZE",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(neutral); i++)
		if (compile_kind_steers(neuron(), neutral[i]))
			fail_msg("'%s' should decide nothing", neutral[i]);
	for (size_t i = 0; i < STK_LENGTH(steering); i++)
		if (!compile_kind_steers(neuron(), steering[i]))
			fail_msg("'%s' decides about graphs", steering[i]);
}

static void the_fingerprint_names_compiler_and_framework(void **state)
{
	static const char *const packages[] = {
		"neuronx_cc-2.15.128.0+56dc5a86",
		"libneuronxla-2.0.4986.0",
		"torch_neuronx-2.1.2",
		"torch_xla-2.1.5",
		"torch-2.1.2",
		"optimum_neuron-0.0.25",
		"requests-2.31.0",
	};
	AUTO(auto_free) char *python = fs_join(*state, "venv/bin/python3");
	struct program_place place = { .program = python, .cwd = *state, .path = "/usr/bin" };
	json_auto_t *fingerprint = NULL;
	struct err *err = NULL;

	write_text(*state, "venv/bin/python3", "\177ELF");
	write_text(*state, "venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
	assert_int_equal(chmod(python, 0755), 0);
	for (size_t i = 0; i < STK_LENGTH(packages); i++) {
		AUTO(auto_free)
		char *name = mem_format("venv/lib/python3.11/site-packages/%s.dist-info/METADATA",
					packages[i]);

		write_text(*state, name, "Name: x\n");
	}
	neuron()->fingerprint(&place, &fingerprint, &err);
	assert_no_error(err);
	assert_string_equal(js_str(fingerprint, "neuronx-cc"), "2.15.128.0+56dc5a86");
	assert_string_equal(js_str(fingerprint, "libneuronxla"), "2.0.4986.0");
	assert_string_equal(js_str(fingerprint, "torch-neuronx"), "2.1.2");
	assert_string_equal(js_str(fingerprint, "torch-xla"), "2.1.5");
	assert_string_equal(js_str(fingerprint, "torch"), "2.1.2");
	assert_string_equal(js_str(fingerprint, "optimum-neuron"), "0.0.25");
	assert_string_equal(js_str(fingerprint, "python"), "3.11");
	assert_int_equal(json_object_size(fingerprint), 7);
}

static int collect_row(void *arg, json_t *row, struct err **err)
{
	(void)err;
	json_array_append_new(arg, row);
	return 0;
}

static void a_listing_shows_one_row_a_graph_whatever_it_consists_of(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	json_auto_t *rows = json_array();
	struct err *err = NULL;

	put_done(*state, MOD_A);
	put_todo(*state, MOD_B);
	put_failed(*state, MOD_C, "ERROR");
	write_text(*state, PLACE "/0_REGISTRY/index.json", "{}");
	write_entry(*state, KEY_F, ""); /* JAX in the same folder */
	cache_list(store, collect_row, rows, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(rows), 4);
	for (size_t i = 0; i < 4; i++) {
		const json_t *row = json_array_get(rows, i);
		const char *graph = js_str(row, "graph");
		const char *want = strcmp(graph, PLACE "/" MOD_A) == 0   ? "done"
				   : strcmp(graph, PLACE "/" MOD_B) == 0 ? "todo"
				   : strcmp(graph, PLACE "/" MOD_C) == 0 ? "failed"
									 : "done";

		assert_string_equal(js_str(row, "state"), want);
		if (strcmp(graph, PLACE "/" MOD_A) == 0) {
			assert_string_equal(js_str(row, "path"), PLACE "/" MOD_A "/model.neff");
			assert_int_equal(js_int(row, "size_bytes", 0), 5000 + 300 + 17);
		}
	}
}

static int find(const char *dir, const char *graph, struct listing_graph *ret, struct sb *hold)
{
	AUTO(store_freep) struct store *store = open_cache(dir);
	struct err *err = NULL;
	int found = listing_find(store, neuron(), graph, ret, hold, &err);

	assert_no_error(err);
	return found;
}

static void a_graph_is_found_with_its_place_and_without(void **state)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph graph;

	assert_int_equal(find(*state, MOD_A, &graph, &hold), 0);
	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	write_text(*state, "neuronxcc-2.16.0+aa/" MOD_D "/model.hlo_module.pb", "x");
	assert_int_equal(find(*state, PLACE "/" MOD_A, &graph, &hold), 1);
	assert_string_equal(graph.key, PLACE "/" MOD_A);
	assert_string_equal(graph.path, PLACE "/" MOD_A "/model.neff");
	assert_int_equal(graph.state, ENTRY_DONE);
	assert_int_equal(find(*state, MOD_D, &graph, &hold), 1);
	assert_string_equal(graph.key, "neuronxcc-2.16.0+aa/" MOD_D);
	assert_int_equal(graph.state, ENTRY_TODO);
	assert_int_equal(find(*state, PLACE "/" MOD_D, &graph, &hold), 0);
	assert_int_equal(find(*state, "../" MOD_A, &graph, &hold), 0);
	/* The graph is in two places: the one that is not done is not passed over. */
	write_text(*state, "neuronxcc-2.16.0+aa/" MOD_A "/model.hlo_module.pb", "x");
	assert_int_equal(find(*state, MOD_A, &graph, &hold), 1);
	assert_int_equal(graph.state, ENTRY_TODO);
}

static void discarding_leaves_input_and_flags_and_never_touches_a_lock(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	json_auto_t *keys = NULL;
	json_auto_t *none = NULL;
	struct err *err = NULL;

	put_failed(*state, MOD_A, "ERROR");
	put_part(*state, MOD_A, "model.done", 0);
	put_failed(*state, MOD_B, "ERROR");
	put_part(*state, MOD_B, "model.hlo_module.pb.lock", 0);
	entry_discard(store, neuron(), PLACE "/" MOD_A, &keys, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(keys), 3);
	assert_string_equal(json_string_value(json_array_get(keys, 0)),
			    PLACE "/" MOD_A "/model.done");
	assert_string_equal(json_string_value(json_array_get(keys, 2)),
			    PLACE "/" MOD_A "/model.log");
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb"));
	assert_true(has_part(*state, MOD_A, "compile_flags.json"));
	assert_false(has_part(*state, MOD_A, "model.neff"));
	entry_discard(store, neuron(), PLACE "/" MOD_B, &none, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(none), 0);
	assert_true(has_part(*state, MOD_B, "model.hlo_module.pb.lock"));
	assert_true(has_part(*state, MOD_B, "model.neff"));
}

static void remove_part(const char *dir, const char *module, const char *file)
{
	AUTO(auto_free) char *path = mem_format("%s/" PLACE "/%s/%s", dir, module, file);

	assert_int_equal(unlink(path), 0);
}

static struct compile_manifest *write_lock(struct store *store, const struct graph_tally *tally,
					   json_t *ingredients)
{
	json_auto_t *compiler = json_object();
	struct lock_facts facts = { .kind = neuron(),
				    .store = store,
				    .name = "m5",
				    .run = "run1",
				    .now = clock_utc_now(),
				    .compiler = compiler,
				    .ingredients = ingredients };
	struct compile_manifest *lock = NULL;
	struct err *err = NULL;

	compile_manifest_write(&facts, tally, &lock, NULL, &err);
	assert_no_error(err);
	return lock;
}

static void a_lock_pins_the_compiled_object_of_each_graph(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(graph_tally_freep)
	struct graph_tally *tally = neuron_book_of(N_HIT(MOD_A) N_MISS(MOD_B));
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *again = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	AUTO(auto_free) char *damage = NULL;
	json_auto_t *ingredients = json_pack("{s:s}", "batch", "32");
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	lock = write_lock(store, tally, ingredients);
	assert_int_equal(lock->count, 2);
	assert_string_equal(lock->graphs[0].key, PLACE "/" MOD_A);
	assert_string_equal(lock->graphs[0].path, PLACE "/" MOD_A "/model.neff");
	/* The place of graph b was never told: it is that of the others. */
	assert_string_equal(lock->graphs[1].key, PLACE "/" MOD_B);
	assert_int_equal(compile_manifest_load(store, lock->graph_key, &again, &damage, &err), 1);
	compile_manifest_check(store, again, &report, &err);
	assert_no_error(err);
	assert_true(report.warm);
	compile_manifest_report_clear(&report);
	/* A graph without its marker would be compiled again by the front-end. */
	remove_part(*state, MOD_B, "model.done");
	compile_manifest_check(store, again, &report, &err);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.problems[0].graph, 1);
	assert_int_equal(report.problems[0].fault, LOCK_SPOILT);
	assert_false(report.warm);
	compile_manifest_report_clear(&report);
	put_part(*state, MOD_B, "model.done", 0);
	put_part(*state, MOD_A, "model.neff", 4000);
	compile_manifest_check(store, again, &report, &err);
	assert_int_equal(report.count, 1);
	compile_manifest_repair(store, again, &report, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 1);
	/* Graph a would look compiled with its marker. */
	assert_false(has_part(*state, MOD_A, "model.done"));
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb"));
	assert_true(has_part(*state, MOD_B, "model.neff"));
}

static void a_spoilt_graph_is_told_by_verify_and_removed_by_repair(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(graph_tally_freep) struct graph_tally *tally = neuron_book_of(N_HIT(MOD_A));
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	struct cache_check_options options = { .all = false };
	struct cache_check sum;
	json_auto_t *ingredients = json_pack("{s:s}", "batch", "32");
	json_auto_t *rows = json_array();
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	put_done(*state, MOD_A);
	lock = write_lock(store, tally, ingredients);
	remove_part(*state, MOD_A, "model.done");
	cache_check(store, &options, collect_row, rows, &sum, &err);
	assert_no_error(err);
	assert_int_equal(sum.changed, 1);
	assert_int_equal(sum.ok, 0);
	assert_string_equal(js_str(json_array_get(rows, 0), "state"), "spoilt");
	compile_manifest_check(store, lock, &report, &err);
	compile_manifest_repair(store, lock, &report, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 1);
	assert_false(has_part(*state, MOD_A, "model.neff"));
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb"));
}

static void what_other_teams_have_half_done_is_no_damage(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	struct cache_check_options options = { .deep = true };
	struct cache_check sum;
	json_auto_t *rows = json_array();
	struct err *err = NULL;

	put_todo(*state, MOD_A);
	put_todo(*state, MOD_B);
	put_part(*state, MOD_B, "model.hlo_module.pb.lock", 0);
	put_failed(*state, MOD_C, "ERROR: no such operator\n");
	put_todo(*state, MOD_D);
	put_part(*state, MOD_D, "model.neff", 0);
	cache_check(store, &options, collect_row, rows, &sum, &err);
	assert_no_error(err);
	assert_int_equal(sum.others, 4);
	assert_int_equal(sum.others_bad, 1);
	assert_int_equal(json_array_size(rows), 2);
	assert_contains(js_str(json_array_get(rows, 0), "what"), "no such operator");
	assert_string_equal(js_str(json_array_get(rows, 1), "state"), "empty");
}

static void a_late_graph_joins_the_lock_although_its_place_was_never_told(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(graph_tally_freep) struct graph_tally *tally = neuron_book_of(N_HIT(MOD_A));
	AUTO(graph_tally_freep)
	struct graph_tally *late = neuron_book_of(N_MISS(MOD_A) N_MISS(MOD_B));
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	json_auto_t *ingredients = json_pack("{s:s}", "batch", "32");
	struct lock_facts facts = {
		.kind = neuron(), .store = store, .run = "run2", .now = clock_utc_now()
	};
	struct err *err = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *now = NULL;
	AUTO(auto_free) char *damage = NULL;
	int64_t joined = 0;

	put_done(*state, MOD_A);
	put_done(*state, MOD_B);
	lock = write_lock(store, tally, ingredients);
	compile_manifest_join_late(&facts, lock->graph_key, late, &joined, &err);
	assert_no_error(err);
	assert_int_equal(joined, 1);
	assert_int_equal(compile_manifest_load(store, lock->graph_key, &now, &damage, &err), 1);
	assert_int_equal(now->count, 2);
	assert_true(now->graphs[1].late);
	assert_string_equal(now->graphs[1].key, PLACE "/" MOD_B);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_of_a_graph_are_known_by_their_names),
		cmocka_unit_test(other_names_in_a_cache_are_no_objects),
		cmocka_unit_test(every_layout_has_its_state),
		cmocka_unit_test(neuron_is_told_where_its_cache_is),
		cmocka_unit_test(variables_of_the_runtime_steer_nothing_and_those_of_the_graph_do),
		test_in_scratch(the_fingerprint_names_compiler_and_framework),
		test_in_scratch(a_listing_shows_one_row_a_graph_whatever_it_consists_of),
		test_in_scratch(a_graph_is_found_with_its_place_and_without),
		test_in_scratch(discarding_leaves_input_and_flags_and_never_touches_a_lock),
		test_in_scratch(a_lock_pins_the_compiled_object_of_each_graph),
		test_in_scratch(a_spoilt_graph_is_told_by_verify_and_removed_by_repair),
		test_in_scratch(what_other_teams_have_half_done_is_no_damage),
		test_in_scratch(a_late_graph_joins_the_lock_although_its_place_was_never_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
