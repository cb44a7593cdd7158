/*
 * The starter specs: valid without a warning, and each comment beside a field
 * is the help of that field, so the table and the templates cannot drift apart.
 */
#include "tests/unit/spec/spec_fixture.h"

#include <dirent.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/field.h"

#define TEMPLATES SOURCE_ROOT "/templates"

typedef void template_fn(const char *name, const char *text);

static size_t each_template(template_fn *fn)
{
	struct dirent **names;
	int count = scandir(TEMPLATES, &names, NULL, alphasort);
	size_t seen = 0;

	assert_true(count > 0);
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *path = fs_join(TEMPLATES, names[i]->d_name);
		AUTO(sb_release) struct sb text = SB_INIT;
		AUTO(err_freep) struct err *err = NULL;

		if (strstr(names[i]->d_name, ".yaml")) {
			assert_int_equal(fs_read(path, SPEC_BYTES_MAX, &text, &err), 0);
			fn(names[i]->d_name, text.text);
			seen++;
		}
		free(names[i]);
	}
	free(names);
	return seen;
}

static void assert_valid(const char *name, const char *text)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(problems_release) struct problems not_yet = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;
	int result = spec_parse(name, text, strlen(text), NULL, no_variables, &spec, &problems);

	if (problems.count > 0)
		fail_msg("%s:%d: %s", name, problems.list[0].line, problems.list[0].message);
	assert_int_equal(result, 0);
	assert_int_equal(text_starts(text, "# "), 1); /* its summary */
	if (spec_not_yet(spec, &not_yet) > 0)
		assert_false(spec_says(spec, SPEC_ENGINE, "local"));
}

static bool is_help_of(const char *help, const char *leaf)
{
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++)
		if (strcmp(field_table[id].help, help) == 0 &&
		    (strcmp(field_leaf(id), leaf) == 0 || strcmp(field_leaf(id), "*") == 0))
			return true;
	return false;
}

/* "  # name: value   # help": a field, in effect or as a proposal. */
static void assert_line(const char *name, const char *line)
{
	const char *key = line + strspn(line, " #-"), *help = NULL;
	size_t len = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	AUTO(auto_free) char *leaf = mem_copy_n(key, len);

	if (len == 0 || key[len] != ':')
		return;
	for (const char *at = strstr(key, " # "); at; at = strstr(at + 1, " # "))
		help = at + 3;
	if (help && !is_help_of(help, leaf))
		fail_msg("%s: '%s' is not the help of '%s'", name, help, leaf);
}

static void assert_comments(const char *name, const char *text)
{
	AUTO(auto_free) char *copy = mem_copy(text);
	char *rest = NULL;

	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		assert_line(name, line);
}

/* A proposal must work when its '# ' goes: uncomment each alone. */
static void assert_proposals(const char *name, const char *text)
{
	for (const char *at = strstr(text, "\n  # "); at; at = strstr(at + 1, "\n  # ")) {
		AUTO(auto_free) char *copy = mem_copy(text);
		AUTO(problems_release) struct problems problems = { 0 };
		AUTO(spec_freep) struct spec *spec = NULL;
		const char *key = at + 5;
		size_t len = strspn(key, "abcdefghijklmnopqrstuvwxyz_");

		if (len == 0 || key[len] != ':')
			continue;
		memmove(copy + (at - text) + 3, copy + (key - text), strlen(key) + 1);
		if (spec_parse(name, copy, strlen(copy), NULL, no_variables, &spec, &problems) < 0)
			fail_msg("%s: '%.40s': %s", name, key, problems.list[0].message);
	}
}

static void every_template_is_valid_without_a_warning(void **state)
{
	(void)state;
	assert_true(each_template(assert_valid) >= 4);
}

static void comments_beside_fields_are_their_help(void **state)
{
	(void)state;
	each_template(assert_comments);
}

static void what_a_template_proposes_is_valid_too(void **state)
{
	(void)state;
	each_template(assert_proposals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_template_is_valid_without_a_warning),
		cmocka_unit_test(comments_beside_fields_are_their_help),
		cmocka_unit_test(what_a_template_proposes_is_valid_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
