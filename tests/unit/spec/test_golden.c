/*
 * Every message of the spec box, held to the letter: each case below
 * tests/golden/spec/{good,bad}/ is a spec and what is said about it.
 *
 *   spec.yaml  the spec, or spec.gen: lines of a count and a text with escapes
 *              (\n \t \\ \xNN) that is repeated so often
 *   env.txt    variables, NAME=value a line; there are no others
 *   sets.txt   overrides, path=value a line
 *   want.txt   problems with field and hint ($SPEC is the spec's path); of a
 *              valid spec also what the job gets and what makes the graph key
 *
 * After a wanted change: test_golden --bless, and read the diff.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/spec.h"

#define GOLDEN SOURCE_ROOT "/tests/golden/spec"

static bool bless;
static char **variables; /* of the case at hand */

static const char *case_getenv(const char *name)
{
	size_t len = strlen(name);

	for (char **v = variables; v && *v; v++)
		if (strncmp(*v, name, len) == 0 && (*v)[len] == '=')
			return *v + len + 1;
	return NULL;
}

static char *read_file(const char *folder, const char *name)
{
	AUTO(auto_free) char *path = fs_join(folder, name);
	AUTO(err_freep) struct err *err = NULL;
	struct sb text = SB_INIT;

	if (!fs_exists(path))
		return NULL;
	assert_int_equal(fs_read(path, SB_MAX_DEFAULT, &text, &err), 0);
	return sb_take(&text);
}

/* Lines of a file, comments left out; NULL if there is none. */
static char **read_lines(const char *folder, const char *name)
{
	AUTO(auto_free) char *text = read_file(folder, name);
	char **lines, *rest = NULL;
	size_t count = 0;

	if (!text)
		return NULL;
	lines = mem_zero(strlen(text) + 1, sizeof *lines);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (*line != '#')
			lines[count++] = mem_copy(line);
	return lines;
}

static void add_unescaped(struct sb *out, const char *text)
{
	for (; *text; text++) {
		if (*text != '\\') {
			sb_addc(out, *text);
		} else if (*++text == 'x') {
			char digits[3] = { text[1], text[2], '\0' };

			sb_addc(out, (char)strtol(digits, NULL, 16));
			text += 2;
		} else {
			sb_addc(out, *text == 'n' ? '\n' : *text == 't' ? '\t' : *text);
		}
	}
}

/* The spec's bytes, made from spec.gen if there is no spec.yaml. */
static void load_case(const char *folder, struct sb *text)
{
	AUTO(auto_free) char *path = fs_join(folder, "spec.yaml");
	AUTO(auto_strv) char **lines = NULL;
	AUTO(err_freep) struct err *err = NULL;

	if (fs_exists(path)) {
		assert_int_equal(fs_read(path, SB_MAX_DEFAULT, text, &err), 0);
		return;
	}
	lines = read_lines(folder, "spec.gen");
	assert_non_null(lines);
	for (char **line = lines; *line; line++) {
		AUTO(sb_release) struct sb piece = SB_INIT;
		char *rest;
		long count = strtol(*line, &rest, 10);

		add_unescaped(&piece, rest + 1);
		while (count-- > 0)
			sb_add(text, piece.text, piece.len);
	}
}

static void add_json(struct sb *said, const char *name, json_t *value)
{
	AUTO(auto_free) char *line = js_line(value);

	sb_addf(said, "%s: %.2000s\n", name, line);
	json_decref(value);
}

static json_t *strings(char **list)
{
	json_t *array = json_array();

	for (char **s = list; *s; s++)
		json_array_append_new(array, json_string(*s));
	auto_strv(&list);
	return array;
}

/* Adds what a valid spec gives the job, and what of it makes the graph key. */
static void add_outcome(struct sb *said, const struct spec *spec)
{
	add_json(said, "train", strings(spec_arguments(spec, false)));
	if (!spec_says(spec, SPEC_COMPILE_KIND, "none"))
		add_json(said, "precompile", strings(spec_arguments(spec, true)));
	add_json(said, "env", spec_env(spec, true));
	add_json(said, "key", spec_key_ingredients(spec));
}

static char *answer(const char *folder)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_strv) char **sets = read_lines(folder, "sets.txt");
	const struct spec_changes changes = { NULL, sets };
	char path[] = "/tmp/stoker-golden-XXXXXX";
	int fd = mkstemp(path);
	struct sb said = SB_INIT;

	assert_true(fd >= 0);
	load_case(folder, &text);
	assert_true(write(fd, text.text, text.len) == (ssize_t)text.len);
	close(fd);
	variables = read_lines(folder, "env.txt");
	if (spec_load(path, &changes, case_getenv, &spec, &problems, &err) < 0)
		sb_adds(&said, "invalid\n");
	else
		sb_adds(&said, "valid\n");
	if (spec)
		spec_not_yet_warn(spec, &problems);
	assert_null(err);
	unlink(path);
	for (size_t i = 0; i < problems.count; i++) {
		struct problem *problem = &problems.list[i];
		AUTO(auto_free) char *line = NULL;

		if (strcmp(problem->file, path) == 0) {
			free(problem->file);
			problem->file = mem_copy("$SPEC");
		}
		line = problem_format(problem);
		text_escape(&said, line, strlen(line), false);
		sb_addf(&said,
			"\n    field: %s\n    hint: ", problem->field ? problem->field : "-");
		assert_non_null(problem->hint);
		text_escape(&said, problem->hint, strlen(problem->hint), false);
		sb_addc(&said, '\n');
	}
	if (problems.dropped > 0)
		sb_addf(&said, "and %zu more\n", problems.dropped);
	if (spec)
		add_outcome(&said, spec);
	auto_strv(&variables);
	return sb_take(&said);
}

static void check_case(const char *folder)
{
	AUTO(auto_free) char *said = answer(folder);
	AUTO(auto_free) char *want = read_file(folder, "want.txt");
	AUTO(auto_free) char *path = fs_join(folder, "want.txt");
	AUTO(err_freep) struct err *err = NULL;

	if (bless) {
		if (!want || strcmp(want, said) != 0)
			assert_int_equal(fs_write_atomic(path, said, strlen(said), 0644, &err), 0);
		return;
	}
	if (!want) {
		fail_msg("%s is missing: run with --bless and read what it says", path);
		return;
	}
	if (strcmp(want, said) != 0)
		fail_msg("%s\n--- said ---\n%s--- wanted ---\n%s", folder, said, want);
}

/* All cases of one kind, in order of name; how many there were. */
static size_t check_all(const char *kind)
{
	AUTO(auto_free) char *folder = fs_join(GOLDEN, kind);
	struct dirent **names;
	int count = scandir(folder, &names, NULL, alphasort);
	size_t cases = 0;

	assert_true(count >= 0);
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *one = fs_join(folder, names[i]->d_name);

		if (names[i]->d_name[0] != '.') {
			check_case(one);
			cases++;
		}
		free(names[i]);
	}
	free(names);
	return cases;
}

static void wrong_specs_are_answered_with_place_and_cure(void **state)
{
	(void)state;
	assert_true(check_all("bad") >= 60);
}

static void good_specs_load_and_lints_warn(void **state)
{
	(void)state;
	assert_true(check_all("good") >= 20);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_specs_are_answered_with_place_and_cure),
		cmocka_unit_test(good_specs_load_and_lints_warn),
	};

	bless = argc > 1 && strcmp(argv[1], "--bless") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
