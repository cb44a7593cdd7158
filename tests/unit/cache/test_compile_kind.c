/* The rows of compiler kinds, and what each of them must answer. */
#include "tests/unit/cache/support.h"

#include "jobs/cache/kinds/debug.h"

static void every_row_is_found_by_its_name_and_has_its_functions(void **state)
{
	const struct compile_kind *kind;
	size_t n = 0;

	(void)state;
	for (; (kind = compile_kind_at(n)); n++) {
		assert_ptr_equal(compile_kind_find(kind->name), kind);
		assert_int_equal(kind->environment != NULL, kind->caches);
		assert_int_equal(kind->steering != NULL, kind->caches);
		assert_non_null(kind->scan);
		assert_non_null(kind->object);
		assert_non_null(kind->state);
		assert_non_null(kind->fingerprint);
	}
	assert_true(n > 0);
	assert_null(compile_kind_find("torchneuron"));
	assert_null(compile_kind_find(""));
}

static void every_state_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < ENTRY_STATES; i++)
		assert_non_null(compile_kind_entry_state_name((enum entry_state)i));
}

static void note_variable(void *arg, const char *name, const char *value)
{
	js_put_str(arg, name, value);
}

static void jax_is_told_to_store_everything_and_to_speak(void **state)
{
	json_auto_t *set = json_object();

	(void)state;
	compile_kind_environment(jax(), "/cache here", note_variable, set);
	assert_string_equal(js_str(set, "JAX_COMPILATION_CACHE_DIR"), "/cache here");
	assert_string_equal(js_str(set, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"), "0");
	assert_string_equal(js_str(set, "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"), "-1");
	assert_string_equal(js_str(set, "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"), "none");
	assert_string_equal(js_str(set, "JAX_LOG_COMPILES"), "true");
	assert_string_equal(js_str(set, "JAX_EXPLAIN_CACHE_MISSES"), "true");
}

static void each_kind_has_debug_variables_that_its_cache_does_not_need(void **state)
{
	const struct compile_kind *kind;

	(void)state;
	for (size_t n = 0; (kind = compile_kind_at(n)); n++) {
		json_auto_t *debug = json_object(), *needed = json_object();
		const char *name;
		json_t *value;

		debug_variables(kind, note_variable, debug);
		compile_kind_environment(kind, "/cache", note_variable, needed);
		assert_true(json_object_size(debug) >= 5);
		json_object_foreach (debug, name, value)
			assert_null(json_object_get(needed, name));
		assert_int_equal(js_str(debug, "JAX_DISABLE_JIT") != NULL, kind == jax());
		assert_int_equal(js_str(debug, "NEURON_USE_EAGER_DEBUG_MODE") != NULL,
				 strcmp(kind->name, "neuron") == 0);
		assert_int_equal(js_str(debug, "TORCHDYNAMO_DISABLE") != NULL, !kind->caches);
	}
}

static void the_kind_none_sets_reads_and_finds_nothing(void **state)
{
	const struct compile_kind *none = compile_kind_find("none");
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	json_auto_t *set = json_object();
	json_auto_t *fingerprint = NULL;
	struct program_place place = { .program = "x" };
	struct graph_tally_counts counts;
	struct err *err = NULL;

	(void)state;
	compile_kind_environment(none, "/cache", note_variable, set);
	assert_int_equal(json_object_size(set), 0);
	assert_false(none->caches);
	assert_false(
		graph_tally_scan(tally, none, 0, HIT("jit_f", KEY_F), strlen(HIT("jit_f", KEY_F))));
	graph_tally_counts(tally, &counts);
	assert_int_equal(counts.named, 0);
	assert_int_equal(none->fingerprint(&place, &fingerprint, &err), 0);
	assert_int_equal(json_object_size(fingerprint), 0);
}

static void variables_of_the_compiler_steer_and_what_stoker_sets_does_not(void **state)
{
	static const char *const others[] = { "JAX_LOG_COMPILES", "JAX_COMPILATION_CACHE_DIR",
					      "PATH", "OMP_NUM_THREADS" };
	static const char *const steering[] = { "XLA_FLAGS", "JAX_ENABLE_X64", "JAX_PLATFORMS",
						"NEURON_CC_FLAGS", "JAX_DEFAULT_MATMUL_PRECISION" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(others); i++)
		if (compile_kind_steers(jax(), others[i]))
			fail_msg("'%s' should decide nothing", others[i]);
	for (size_t i = 0; i < STK_LENGTH(steering); i++)
		if (!compile_kind_steers(jax(), steering[i]))
			fail_msg("'%s' decides about graphs", steering[i]);
	assert_false(compile_kind_steers(compile_kind_find("none"), "XLA_FLAGS"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_found_by_its_name_and_has_its_functions),
		cmocka_unit_test(every_state_has_a_name),
		cmocka_unit_test(jax_is_told_to_store_everything_and_to_speak),
		cmocka_unit_test(each_kind_has_debug_variables_that_its_cache_does_not_need),
		cmocka_unit_test(the_kind_none_sets_reads_and_finds_nothing),
		cmocka_unit_test(variables_of_the_compiler_steer_and_what_stoker_sets_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
