/* Which Python, which versions: virtual environments, scripts, interpreters,
 * shims, and programs that are none of these or not there. */
#include "tests/unit/cache/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "jobs/base/process/proc.h"
#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/kinds/machine.h"

/* A program that never runs: only its name and place matter. */
static void make_program(const char *dir, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(dir, name);

	write_text(dir, name, text);
	assert_int_equal(chmod(path, 0755), 0);
}

static void make_folder(const char *dir, const char *name)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	struct err *err = NULL;

	fs_mkdirs(path, &err);
	assert_no_error(err);
}

static void make_venv(const char *dir, const char *config)
{
	make_program(dir, "venv/bin/python",
		     "\x7f"
		     "ELF");
	write_text(dir, "venv/pyvenv.cfg", config);
	make_folder(dir, "venv/lib/python3.12/site-packages/jax-0.7.2.dist-info");
	make_folder(dir, "venv/lib/python3.12/site-packages/jaxlib-0.7.1.dist-info");
	make_folder(dir, "venv/lib/python3.12/site-packages/jax_cuda12_plugin-0.7.2.dist-info");
	make_folder(dir, "venv/lib/python3.12/site-packages/ml_dtypes-0.5.0.dist-info");
	make_folder(dir, "venv/lib/python3.12/site-packages/~jax-0.1.dist-info");
	make_folder(dir, "venv/lib/python3.12/site-packages/requests-2.0.dist-info");
	make_folder(dir, "venv/lib/python3.12/site-packages/jax");
	write_text(dir, "venv/lib/python3.12/site-packages/Flax-0.9-py3.12.egg-info", "");
}

static json_t *fingerprint(const struct program_place *place)
{
	json_t *ret = NULL;
	struct err *err = NULL;

	jax()->fingerprint(place, &ret, &err);
	assert_no_error(err);
	assert_non_null(ret);
	return ret;
}

static json_t *fingerprint_of(const char *dir, const char *program)
{
	struct program_place place = { .program = program, .cwd = dir, .path = "/nowhere" };

	return fingerprint(&place);
}

static void assert_venv(const json_t *found)
{
	assert_string_equal(js_str(found, "python"), "3.12");
	assert_string_equal(js_str(found, "jax"), "0.7.2");
	assert_string_equal(js_str(found, "jaxlib"), "0.7.1");
	assert_string_equal(js_str(found, "jax-cuda12-plugin"), "0.7.2");
	assert_string_equal(js_str(found, "ml-dtypes"), "0.5.0");
	assert_string_equal(js_str(found, "flax"), "0.9");
	assert_null(json_object_get(found, "requests"));
	assert_null(json_object_get(found, "program"));
	assert_non_null(js_str(found, "cpu"));
}

#define CONFIG "home = /usr/bin\nversion = 3.12.4\ninclude-system-site-packages = false\n"

static void a_virtual_environment_tells_its_versions(void **state)
{
	json_auto_t *found = NULL;

	make_venv(*state, CONFIG);
	found = fingerprint_of(*state, "venv/bin/python");
	assert_venv(found);
}

static void a_configuration_without_a_version_is_made_up_for_by_the_folders(void **state)
{
	json_auto_t *found = NULL;
	json_auto_t *uv = NULL;

	make_venv(*state, "home=/usr/bin\r\n");
	found = fingerprint_of(*state, "venv/bin/python");
	assert_venv(found);
	write_text(*state, "venv/pyvenv.cfg", "home = /x\nversion_info = 3.12.4.final.0\n");
	uv = fingerprint_of(*state, "venv/bin/python");
	assert_venv(uv);
}

static void where_the_environment_lies_does_not_matter(void **state)
{
	AUTO(auto_free) char *other = fs_join(*state, "elsewhere");
	json_auto_t *here = NULL;
	json_auto_t *there = NULL;

	make_venv(*state, CONFIG);
	make_folder(*state, "elsewhere");
	make_venv(other, CONFIG);
	here = fingerprint_of(*state, "venv/bin/python");
	there = fingerprint_of(other, "venv/bin/python");
	assert_true(json_equal(here, there));
}

static void an_upgraded_package_changes_the_fingerprint(void **state)
{
	AUTO(auto_free)
	char *old = fs_join(*state, "venv/lib/python3.12/site-packages/jax-0.7.2.dist-info");
	json_auto_t *before = NULL;
	json_auto_t *after = NULL;

	make_venv(*state, CONFIG);
	before = fingerprint_of(*state, "venv/bin/python");
	assert_int_equal(rmdir(old), 0);
	make_folder(*state, "venv/lib/python3.12/site-packages/jax-0.8.0.dist-info");
	after = fingerprint_of(*state, "venv/bin/python");
	assert_false(json_equal(before, after));
	assert_string_equal(js_str(after, "jax"), "0.8.0");
}

static void scripts_are_followed_to_their_python(void **state)
{
	AUTO(auto_free) char *direct = mem_format("#!%s/venv/bin/python -u\nx\n", (char *)*state);
	AUTO(auto_free)
	char *pip = mem_format("#!/bin/sh\n'''exec' \"%s/venv/bin/python\" \"$0\" \"$@\"\n' '''\n",
			       (char *)*state);
	AUTO(auto_free) char *path = mem_format("%s/venv/bin", (char *)*state);
	struct program_place by_path = { .program = "torchrun", .cwd = *state, .path = path };
	json_auto_t *a = NULL;
	json_auto_t *b = NULL;
	json_auto_t *c = NULL;

	make_venv(*state, CONFIG);
	make_program(*state, "direct.py", direct);
	make_program(*state, "pip", pip);
	make_program(*state, "venv/bin/torchrun", "#!/usr/bin/env -S LANG=C python\nimport x\n");
	a = fingerprint_of(*state, "./direct.py");
	assert_venv(a);
	b = fingerprint_of(*state, "./pip");
	assert_venv(b);
	c = fingerprint(&by_path);
	assert_venv(c);
}

static void system_packages_count_where_the_environment_lets_them_in(void **state)
{
	AUTO(auto_free)
	char *closed = mem_format("home = %s/base/bin\nversion = 3.12.4\n", (char *)*state);
	AUTO(auto_free) char *open = mem_format("%sinclude-system-site-packages = true\n", closed);
	json_auto_t *without = NULL;
	json_auto_t *with = NULL;

	make_venv(*state, closed);
	make_folder(*state, "base/lib/python3.12/site-packages/optax-0.2.dist-info");
	make_folder(*state, "base/lib/python3.12/site-packages/jax-0.1.dist-info");
	without = fingerprint_of(*state, "venv/bin/python");
	assert_null(json_object_get(without, "optax"));
	write_text(*state, "venv/pyvenv.cfg", open);
	with = fingerprint_of(*state, "venv/bin/python");
	assert_string_equal(js_str(with, "optax"), "0.2");
	assert_string_equal(js_str(with, "jax"), "0.7.2"); /* its own comes first */
}

static void an_interpreter_uses_its_own_prefix_user_folder_and_python_path(void **state)
{
	AUTO(auto_free) char *link = fs_join(*state, "python3");
	struct program_place place = { .program = "./python3",
				       .cwd = *state,
				       .home = *state,
				       .python_path = "vendor::/nowhere" };
	json_auto_t *found = NULL;

	make_program(*state, "base/bin/python3.11",
		     "\x7f"
		     "ELF");
	assert_int_equal(symlink("base/bin/python3.11", link), 0);
	make_folder(*state, "base/lib/python3.11/site-packages/jax-0.5.0.dist-info");
	make_folder(*state, "base/lib/python3.11/site-packages/jaxlib-0.5.0.dist-info");
	make_folder(*state, "base/lib/python3/dist-packages/numpy-1.26.dist-info");
	make_folder(*state, ".local/lib/python3.11/site-packages/jaxlib-0.5.1.dist-info");
	make_folder(*state, "vendor/jax-0.6.0.dist-info");
	found = fingerprint(&place);
	assert_string_equal(js_str(found, "python"), "3.11");
	assert_string_equal(js_str(found, "jax"), "0.6.0");
	assert_string_equal(js_str(found, "jaxlib"), "0.5.1");
	assert_string_equal(js_str(found, "numpy"), "1.26");
}

static void a_shim_is_asked_and_one_that_fails_is_no_error(void **state)
{
	AUTO(auto_free)
	char *answer = mem_format("#!/bin/sh\n[ \"$1\" = -c ] || exit 1\necho 3.12\n"
				  "echo %s/venv/lib/python3.12/site-packages\necho /nowhere\n",
				  (char *)*state);
	AUTO(auto_free) char *mark = fs_join(*state, "mark");
	AUTO(auto_free) char *script = mem_format("#!/bin/sh\ntouch %s\n", mark);
	json_auto_t *found = NULL;
	json_auto_t *beside = NULL;
	json_auto_t *broken = NULL;
	json_auto_t *other = NULL;

	make_venv(*state, CONFIG);
	make_program(*state, "shims/python", answer);
	make_program(*state, "shims/torchrun", "#!/bin/sh\nexit 1\n");
	make_program(*state, "broken/python3", "#!/bin/sh\necho hello\nexit 3\n");
	make_program(*state, "train.sh", script);
	found = fingerprint_of(*state, "shims/python");
	assert_venv(found);
	beside = fingerprint_of(*state, "shims/torchrun");
	assert_venv(beside);
	broken = fingerprint_of(*state, "broken/python3");
	assert_null(json_object_get(broken, "python"));
	assert_non_null(json_object_get(broken, "sha256"));
	other = fingerprint_of(*state, "./train.sh");
	assert_non_null(json_object_get(other, "sha256"));
	assert_false(fs_exists(mark)); /* a user's script is never started */
}

static void any_other_program_is_its_own_version(void **state)
{
	json_auto_t *before = NULL;
	json_auto_t *touched = NULL;
	json_auto_t *after = NULL;
	AUTO(auto_free) char *path = fs_join(*state, "train");
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	make_program(*state, "train",
		     "\x7f"
		     "ELF one");
	before = fingerprint_of(*state, "./train");
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	touched = fingerprint_of(*state, "./train");
	make_program(*state, "train",
		     "\x7f"
		     "ELF two");
	after = fingerprint_of(*state, "./train");
	assert_int_equal(js_int(before, "size", 0), 8);
	assert_true(json_equal(before, touched));
	assert_false(json_equal(before, after));
}

static void a_missing_program_is_told_without_an_error(void **state)
{
	json_auto_t *found = fingerprint_of(*state, "no-such-python");
	json_auto_t *dangling = NULL;
	AUTO(auto_free) char *link = fs_join(*state, "python");

	assert_string_equal(js_str(found, "program"), "no-such-python");
	assert_true(json_is_false(json_object_get(found, "found")));
	assert_int_equal(symlink("gone/python3", link), 0);
	dangling = fingerprint_of(*state, "./python");
	assert_true(json_is_false(json_object_get(dangling, "found")));
}

static void a_script_whose_interpreter_is_missing_or_circular_is_only_a_program(void **state)
{
	AUTO(auto_free) char *self = mem_format("#!%s/loop\n", (char *)*state);
	json_auto_t *gone = NULL;
	json_auto_t *loop = NULL;
	json_auto_t *empty = NULL;

	make_program(*state, "gone", "#!/nowhere/ruby\n");
	make_program(*state, "loop", self);
	make_program(*state, "empty", "#!");
	gone = fingerprint_of(*state, "./gone");
	loop = fingerprint_of(*state, "./loop");
	empty = fingerprint_of(*state, "./empty");
	assert_non_null(json_object_get(gone, "sha256"));
	assert_non_null(json_object_get(loop, "sha256"));
	assert_non_null(json_object_get(empty, "sha256"));
}

static void the_real_environment_is_read_without_starting_python(void **state)
{
	struct program_place place = { .program =
					       SOURCE_ROOT "/configs/quickstart/.venv/bin/python",
				       .cwd = SOURCE_ROOT };
	json_auto_t *found = NULL;

	(void)state;
	if (!fs_exists(place.program))
		skip();
	found = fingerprint(&place);
	assert_non_null(js_str(found, "jax"));
	assert_non_null(js_str(found, "jaxlib"));
	assert_non_null(js_str(found, "numpy"));
	assert_non_null(js_str(found, "python"));
	assert_null(json_object_get(found, "program"));
}

static void the_processor_is_its_model_and_instruction_sets(void **state)
{
	static const char *const same[] = {
		"processor : 0\nmodel name\t: Xeon X\nflags\t\t: fpu sse2 avx2 ibrs\n\nprocessor : "
		"1\n",
		"model name : Xeon X\nmicrocode : 7\nflags : avx2 retpoline sse2 fpu\n",
	};
	AUTO(auto_free) char *a = machine_cpu_from(same[0]);
	AUTO(auto_free) char *b = machine_cpu_from(same[1]);
	AUTO(auto_free) char *c = machine_cpu_from("model name : Xeon X\nflags : fpu sse2\n");
	AUTO(auto_free)
	char *arm = machine_cpu_from("processor : 0\nFeatures : fp asimd aes\nCPU implementer : "
				     "0x41\nCPU part : 0xd40\n");
	AUTO(auto_free) char *none = machine_cpu_from("");
	AUTO(auto_free) char *this = machine_cpu();

	(void)state;
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
	assert_int_equal(strncmp(a, "Xeon X ", 7), 0);
	assert_int_equal(strncmp(arm, "0x41 0xd40 ", 11), 0);
	assert_true(strlen(none) > 0);
	assert_true(strlen(this) > 8);
}

/* ---- a lock's against what a job finds ---- */

static json_t *versions(const char *text)
{
	struct err *err = NULL;
	json_t *ret = NULL;

	js_parse(text, strlen(text), "versions", &ret, &err);
	assert_no_error(err);
	return ret;
}

#define LOCKED "{\"python\":\"3.11\",\"neuronx-cc\":\"2.25\",\"torch\":\"2.9\"}"

static void another_version_is_told_with_both(void **state)
{
	json_auto_t *locked = versions(LOCKED);
	json_auto_t *found = versions("{\"python\":\"3.11\",\"neuronx-cc\":\"2.26\","
				      "\"torch\":\"2.9\",\"accelerate\":\"1.0\"}");
	AUTO(auto_free) char *unknown = NULL;
	AUTO(auto_free) char *words = NULL;
	AUTO(auto_free) char *pair = NULL;
	AUTO(auto_free) char *other = NULL;
	json_auto_t *changed = fingerprint_compare(locked, found, &unknown);
	json_auto_t *fewer = NULL;

	(void)state;
	assert_null(unknown);
	assert_int_equal(json_array_size(changed), 2);
	words = fingerprint_words(changed);
	assert_string_equal(words, "neuronx-cc 2.26 in place of 2.25 (and 1 more)");
	pair = fingerprint_pair(changed);
	fewer = json_deep_copy(changed);
	json_array_remove(fewer, 0);
	other = fingerprint_pair(fewer);
	assert_string_not_equal(pair, other);
}

static void the_same_versions_are_no_difference(void **state)
{
	json_auto_t *locked = versions(LOCKED), *found = versions(LOCKED);
	AUTO(auto_free) char *unknown = NULL;
	json_auto_t *changed = fingerprint_compare(locked, found, &unknown);

	(void)state;
	assert_null(unknown);
	assert_int_equal(json_array_size(changed), 0);
}

static void what_is_not_there_cannot_be_told_and_is_no_difference(void **state)
{
	static const struct {
		const char *locked, *found, *words;
	} cases[] = {
		{ LOCKED, "{\"python\":\"3.11\",\"torch\":\"2.9\"}",
		  "neuronx-cc is not installed" },
		{ LOCKED, "{\"python\":\"3.11\"}", "neuronx-cc, torch are not installed" },
		{ LOCKED, "{\"program\":\"torchrun\",\"found\":false}", "no Python found" },
		{ LOCKED, "{\"program\":\"a\",\"size\":1,\"sha256\":\"0\"}", "no Python found" },
		{ "{\"program\":\"a\"}", LOCKED, "the compile manifest names" },
		{ "{\"python\":\"3.11\"}", "{\"python\":\"3.11\"}", "no package of the compiler" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		json_auto_t *locked = versions(cases[i].locked), *found = versions(cases[i].found);
		AUTO(auto_free) char *unknown = NULL;
		json_auto_t *changed = fingerprint_compare(locked, found, &unknown);

		assert_int_equal(json_array_size(changed), 0);
		assert_non_null(unknown);
		assert_non_null(strstr(unknown, cases[i].words));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_virtual_environment_tells_its_versions),
		test_in_scratch(a_configuration_without_a_version_is_made_up_for_by_the_folders),
		test_in_scratch(where_the_environment_lies_does_not_matter),
		test_in_scratch(an_upgraded_package_changes_the_fingerprint),
		test_in_scratch(scripts_are_followed_to_their_python),
		test_in_scratch(system_packages_count_where_the_environment_lets_them_in),
		test_in_scratch(an_interpreter_uses_its_own_prefix_user_folder_and_python_path),
		test_in_scratch(a_shim_is_asked_and_one_that_fails_is_no_error),
		test_in_scratch(any_other_program_is_its_own_version),
		test_in_scratch(a_missing_program_is_told_without_an_error),
		test_in_scratch(
			a_script_whose_interpreter_is_missing_or_circular_is_only_a_program),
		cmocka_unit_test(another_version_is_told_with_both),
		cmocka_unit_test(the_same_versions_are_no_difference),
		cmocka_unit_test(what_is_not_there_cannot_be_told_and_is_no_difference),
		cmocka_unit_test(the_real_environment_is_read_without_starting_python),
		cmocka_unit_test(the_processor_is_its_model_and_instruction_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
