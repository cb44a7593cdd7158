/* Globs and .gitignore rules; git itself says what is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/pattern.h"
#include "jobs/source/ignore.h"

static void globs_match_whole_paths(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool match, match_above, reaches;
	} rows[] = {
		{ "a", "a", true, true, true },
		{ "a", "b", false, false, false },
		{ "a", "a/b", false, true, true },
		{ "*.py", "x.py", true, true, true },
		{ "*.py", "d/x.py", false, false, false },
		{ "**/*.py", "x.py", true, true, true },
		{ "**/*.py", "a/b/x.py", true, true, true },
		{ "train/**", "train/a/b", true, true, true },
		{ "train/**", "train", false, false, true },
		{ "train/**", "trainer/a", false, false, false },
		{ "a/**/z", "a/z", true, true, true },
		{ "a/**/z", "a/b/c/z", true, true, true },
		{ "a/**/z", "a/b/c/y", false, false, true },
		{ "a/**/b/**/c", "a/b/x/b/y/c", true, true, true },
		{ "a/*/c", "a/b/c", true, true, true },
		{ "a/*/c", "a/b/b/c", false, false, false },
		{ "**", "x/y", true, true, true },
		{ "a**b", "axxb", true, true, true },
		{ "a?c", "abc", true, true, true },
		{ "a?c", "a/c", false, false, false },
		{ "[a-c]x", "bx", true, true, true },
		{ "[!a-c]x", "bx", false, false, false },
		{ "[^a-c]x", "dx", true, true, true },
		{ "[]a]", "]", true, true, true },
		{ "[a-]", "-", true, true, true },
		{ "[[:digit:]]", "7", true, true, true },
		{ "[[:digit:]]", "x", false, false, false },
		{ "[[:nope:]]", "x", false, false, false },
		{ "[a", "a", false, false, false },
		{ "[", "[", false, false, false },
		{ "\\*", "*", true, true, true },
		{ "\\*", "x", false, false, false },
		{ "a\\", "a", false, false, false },
		{ "", "x", false, true, true },
		{ "*", ".hidden", true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		if (pattern_match(rows[i].pattern, rows[i].path, false) != rows[i].match ||
		    pattern_match(rows[i].pattern, rows[i].path, true) != rows[i].match_above ||
		    pattern_reaches(rows[i].pattern, rows[i].path) != rows[i].reaches)
			fail_msg("'%s' against '%s'", rows[i].pattern, rows[i].path);
	}
}

static void no_pattern_takes_for_ever(void **state)
{
	AUTO(sb_release) struct sb pattern = SB_INIT;
	AUTO(sb_release) struct sb path = SB_INIT;
	struct mono start = clock_mono_now();

	(void)state;
	for (int i = 0; i < 100; i++) {
		sb_adds(&pattern, "**/*a*a*a*a*b/");
		sb_adds(&path, "aaaaaaaaaaaaaaaaaaaa/");
	}
	sb_adds(&pattern, "x");
	assert_false(pattern_match(pattern.text, path.text, false));
	assert_true(clock_mono_now().ms - start.ms < 60000);
}

/* Small trees of .gitignore files with every path that might be judged; what
 * git lists as untracked must be what is left after ignore_check. */
static const char *const samples[][2] = {
	{ "*.log\nbuild/\n", "!keep.log\n" },
	{ "build\n", "!build\n" },
	{ "/build\nsub/x.log\n", "" },
	{ "**/build/\n!sub/build/\n", "/x.log\n" },
	{ "sub/*\n!sub/x.log\n", "" },
	{ "sub/**\n!sub/deep/\n", "" },
	{ "sub/\n!sub/x.log\n", "!*\n" },
	{ "*\n!*/\n!*.log\n", "" },
	{ "*\n!.gitignore\n", "*.log\n!a b\n" },
	{ "# comment\n\\#file\n\\!bang\n\n   \n", "" },
	{ "a b   \n", "x.log\\ \n" },
	{ "sub/**/x.log\r\n", "deep\r\n" },
	{ "\xef\xbb\xbf*.log\n", "[kx]*\n" },
	{ "x.*\n!x.log\n*.log\n", "!x.log\n" },
	{ "deep/build\n", "" },
	{ "**/deep/build\n/**/keep.log", "" },
	{ "foo**bar\n*[!g]\n", "" },
	{ "[[:alpha:]].log\n", "" },
	{ "!\n/\n//\n!/\nsub//x.log\n", "" },
	{ "su?/dee[p]/*\n", "!keep.log\n" },
	{ "build/\n", "build\n!/build/\n" },
	{ "*.log/\n", "" },
	{ "**\n!sub\n", "" },
	{ "sub\\/x.log\nx.lo\\g\n", "" },
};

static const char *const folders[] = { "",       "sub/",       "sub/deep/",
				       "build/", "sub/build/", "sub/deep/build/" };
static const char *const names[] = {
	"x.log", "keep.log", "a.py", "#file", "!bang", "a b", "build"
};

static void write_text(const char *folder, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(folder, name);
	AUTO(err_freep) struct err *err = NULL;

	if (fs_write_atomic(path, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err->message);
}

static void make_tree(const char *top)
{
	AUTO(err_freep) struct err *err = NULL;

	for (size_t d = 0; d < STK_LENGTH(folders); d++) {
		AUTO(auto_free) char *dir = fs_join(top, folders[d]);

		assert_int_equal(fs_mkdirs(dir, &err), 0);
	}
	for (size_t d = 0; d < STK_LENGTH(folders); d++)
		for (size_t n = 0; n < STK_LENGTH(names); n++) {
			AUTO(auto_free) char *dir = fs_join(top, folders[d]);
			AUTO(auto_free) char *path = fs_join(dir, names[n]);

			if (!fs_exists(path))
				write_text(dir, names[n], "x");
		}
}

/* The paths come as from the walk of a tree: folders first, from the top. */
static bool is_left(const struct ignore *top, const struct ignore *sub, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		AUTO(auto_free) char *folder = mem_copy_n(path, (size_t)(slash - path));

		if (ignore_check(strncmp(folder, "sub/", 4) == 0 ? sub : top, folder, true))
			return false;
	}
	return !ignore_check(strncmp(path, "sub/", 4) == 0 ? sub : top, path, false);
}

static void compare_with_git(const char *top, const char *rules, const char *sub_rules)
{
	AUTO(auto_free) char *sub_dir = fs_join(top, "sub");
	AUTO(auto_free)
	char *command = mem_format(
		"cd '%s' && git -c core.quotePath=false -c core.excludesFile=/dev/null ls-files -o "
		"--exclude-standard -z",
		top);
	AUTO(ignore_release) struct ignore outer = { 0 };
	AUTO(ignore_release) struct ignore inner = { 0 };
	AUTO(sb_release) struct sb listed = SB_INIT;
	char buffer[4096];
	size_t got;
	FILE *git;

	write_text(top, ".gitignore", rules);
	write_text(sub_dir, ".gitignore", sub_rules);
	git = popen(command, "r");
	assert_non_null(git);
	sb_addc(&listed, '\0');
	while ((got = fread(buffer, 1, sizeof buffer, git)) > 0)
		sb_add(&listed, buffer, got);
	assert_int_equal(pclose(git), 0);
	ignore_parse(&outer, NULL, 0, rules, strlen(rules));
	ignore_parse(&inner, &outer, 4, sub_rules, strlen(sub_rules));
	for (size_t d = 0; d < STK_LENGTH(folders); d++)
		for (size_t n = 0; n < STK_LENGTH(names); n++) {
			AUTO(auto_free) char *path = mem_format("%s%s", folders[d], names[n]);
			AUTO(auto_free) char *whole = fs_join(top, path);
			AUTO(auto_free) char *needle = mem_format("_%s_", path);
			bool kept_by_git;

			if (fs_is_dir(whole))
				continue;
			needle[0] = needle[strlen(needle) - 1] = '\0';
			kept_by_git = memmem(listed.text, listed.len, needle, strlen(path) + 2);
			if (kept_by_git != is_left(&outer, &inner, path))
				fail_msg("'%s' with '%s' and '%s': git %s it", path, rules,
					 sub_rules, kept_by_git ? "keeps" : "ignores");
		}
}

static void ignore_files_mean_what_git_means(void **state)
{
	char top[] = "/tmp/stoker-test-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *init = NULL;

	(void)state;
	assert_non_null(mkdtemp(top));
	make_tree(top);
	init = mem_format("git init -q '%s'", top);
	assert_int_equal(system(init), 0);
	for (size_t i = 0; i < STK_LENGTH(samples); i++)
		compare_with_git(top, samples[i][0], samples[i][1]);
	assert_int_equal(fs_remove_tree(top, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs_match_whole_paths),
		cmocka_unit_test(no_pattern_takes_for_ever),
		cmocka_unit_test(ignore_files_mean_what_git_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
