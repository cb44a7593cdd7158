/* Which compiler a lock is of: by what phase 1 found, by the folders of its entries, and by
 * its key. */
#include "jobs/cache/manifest/compile_manifest.h"

#include "tests/unit/cache/neuron.h"

#define N_HIT_OF(version, module)                                                                  \
	"Using a cached neff at /cache/neuronxcc-" version "/" module "/model.neff\n"

static json_t *compiler_of(const char *version)
{
	return json_pack("{s:s, s:s, s:s}", "python", "3.11", "neuronx-cc", version, "torch",
			 "2.9.0");
}

static enum lock_writer settle(const char *log, json_t *compiler)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = neuron_book_of(log);

	return compile_manifest_name_writer(neuron(), tally, compiler);
}

static void entries_in_the_folder_of_the_compiler_that_was_found_are_its_own(void **state)
{
	json_auto_t *compiler = compiler_of("2.25.1.0+aa");

	(void)state;
	assert_int_equal(
		settle(N_HIT_OF("2.25.1.0+aa", MOD_A) N_HIT_OF("2.25.1.0+aa", MOD_B), compiler),
		WRITER_SAME);
	/* the build is not compared: not everybody prints it alike */
	assert_int_equal(settle(N_HIT_OF("2.25.1.0+bb", MOD_A), compiler), WRITER_SAME);
	assert_string_equal(js_str(compiler, "neuronx-cc"), "2.25.1.0+aa");
}

static void entries_in_the_folder_of_another_are_of_that(void **state)
{
	json_auto_t *compiler = compiler_of("2.25.1.0+aa");

	(void)state;
	assert_int_equal(
		settle(N_HIT_OF("2.26.1.0+bb", MOD_A) N_HIT_OF("2.26.1.0+bb", MOD_B), compiler),
		WRITER_OTHER);
	assert_string_equal(js_str(compiler, "neuronx-cc"), "2.26.1.0+bb");
	assert_string_equal(js_str(compiler, "torch"), "2.9.0");
}

static void entries_in_several_folders_are_of_nobody(void **state)
{
	json_auto_t *compiler = compiler_of("2.25.1.0+aa");

	(void)state;
	assert_int_equal(
		settle(N_HIT_OF("2.25.1.0+aa", MOD_A) N_HIT_OF("2.26.1.0+bb", MOD_B), compiler),
		WRITER_MIXED);
	assert_string_equal(js_str(compiler, "neuronx-cc"), "2.25.1.0+aa");
}

static void what_places_or_fingerprints_do_not_tell_is_no_difference(void **state)
{
	json_auto_t *compiler = compiler_of("2.25.1.0+aa");
	json_auto_t *bare = json_pack("{s:s}", "python", "3.11");

	(void)state;
	assert_int_equal(settle(N_HIT_OF("0.0.0.0+0", MOD_A), compiler), WRITER_SAME);
	assert_int_equal(settle("nothing\n", compiler), WRITER_SAME);
	assert_int_equal(settle(N_HIT_OF("2.26.1.0+bb", MOD_A), bare), WRITER_SAME);
	assert_int_equal(json_object_size(bare), 1);
}

static void the_key_gets_the_compiler_that_is_known_to_be_another(void **state)
{
	json_auto_t *planned = json_pack("{s:o, s:s}", "compiler", compiler_of("2.25.1.0+aa"),
					 "compile.kind", "neuron");
	json_auto_t *blind =
		json_pack("{s:{s:s}, s:s}", "compiler", "python", "3.11", "compile.kind", "neuron");
	json_auto_t *newer = compiler_of("2.26.1.0+bb");
	json_auto_t *same = compiler_of("2.25.1.0+aa");
	json_auto_t *of_newer = compile_manifest_ingredients(planned, newer);
	json_auto_t *of_same = compile_manifest_ingredients(planned, same);
	json_auto_t *of_blind = compile_manifest_ingredients(blind, newer);

	(void)state;
	assert_true(json_equal(json_object_get(of_newer, "compiler"), newer));
	assert_string_equal(js_str(of_newer, "compile.kind"), "neuron");
	assert_true(json_equal(of_same, planned));
	/* where it was planned no compiler is installed: its key stays as it is */
	assert_true(json_equal(of_blind, blind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_in_the_folder_of_the_compiler_that_was_found_are_its_own),
		cmocka_unit_test(entries_in_the_folder_of_another_are_of_that),
		cmocka_unit_test(entries_in_several_folders_are_of_nobody),
		cmocka_unit_test(what_places_or_fingerprints_do_not_tell_is_no_difference),
		cmocka_unit_test(the_key_gets_the_compiler_that_is_known_to_be_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
