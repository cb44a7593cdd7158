/* Files of variables: what is read, line by line, and what is refused without a word of it. */
#include "jobs/base/text/dotenv.h"

#include "jobs/base/sb.h"
#include "tests/unit/base/unit.h"

static void add(void *arg, const char *name, const char *value, int line)
{
	sb_addf(arg, "%d %s=[%s]\n", line, name, value);
}

static void assert_reads(const char *text, const char *want)
{
	AUTO(sb_release) struct sb said = SB_INIT;
	struct dotenv_fault fault = { 0, "", "" };

	if (dotenv_read(text, add, &said, &fault) < 0)
		fail_msg("%s\nline %d: %s", text, fault.line, fault.why);
	assert_string_equal(said.text, want);
}

static void assert_refuses(const char *text, int line, const char *why)
{
	AUTO(sb_release) struct sb said = SB_INIT;
	struct dotenv_fault fault = { 0, "", "" };

	assert_int_equal(dotenv_read(text, add, &said, &fault), -1);
	assert_int_equal(fault.line, line);
	assert_non_null(strstr(fault.why, why));
	assert_true(strlen(fault.hint) > 10);
	assert_null(strstr(fault.why, "canary"));
	assert_null(strstr(fault.hint, "canary"));
}

static void lines_comments_and_blanks(void **state)
{
	(void)state;
	assert_reads("", "");
	assert_reads("\n \t\n# A=1\n   # B=2\n", "");
	assert_reads("A=1", "1 A=[1]\n");
	assert_reads("\xef\xbb\xbf"
		     "A=1\r\nB=2 \r\n",
		     "1 A=[1]\n2 B=[2]\n");
	assert_reads("  export  A = one two \t\nexport=3\nexported=4\n",
		     "1 A=[one two]\n2 export=[3]\n3 exported=[4]\n");
	assert_reads("A=\nB= \nC= # none\nD=#x\nE=a#b\nF=a #b\n",
		     "1 A=[]\n2 B=[]\n3 C=[]\n4 D=[#x]\n5 E=[a#b]\n6 F=[a]\n");
	assert_reads("A=1\nA=2\n", "1 A=[1]\n2 A=[2]\n");
}

static void a_bare_value_is_kept_as_it_is(void **state)
{
	(void)state;
	assert_reads("A=a\\nb\nB=it's \"so\"\nC=$HOME and $\nD={\"k\": 1}\n",
		     "1 A=[a\\nb]\n2 B=[it's \"so\"]\n3 C=[$HOME and $]\n4 D=[{\"k\": 1}]\n");
}

static void quotes_keep_blanks_lines_and_signs(void **state)
{
	(void)state;
	assert_reads("A=' a # ${b} $(c) \\n '  # yes\n", "1 A=[ a # ${b} $(c) \\n ]\n");
	assert_reads("A='it\\'s'\nB='a\\\\b'\n", "1 A=[it's]\n2 B=[a\\\\b]\n");
	assert_reads("A=\"a\\tb\\n\\\"c\\\" \\\\ \\$d \\'\"#yes\n", "1 A=[a\tb\n\"c\" \\ $d ']\n");
	assert_reads("A=\"\\q \\u00e9\"\nB=\"\"\n", "1 A=[\\q \\u00e9]\n2 B=[]\n");
}

static void a_quoted_value_may_have_lines(void **state)
{
	(void)state;
	assert_reads("A=\"-----BEGIN\nx=y\n-----END\"\nB='1\n2'\nC=3",
		     "1 A=[-----BEGIN\nx=y\n-----END]\n4 B=[1\n2]\n6 C=[3]\n");
}

static void what_is_wrong_is_refused_by_its_line_alone(void **state)
{
	AUTO(auto_free) char *name = mem_zero(1, 600);

	(void)state;
	assert_refuses("A=1\ncanary\n", 2, "without NAME=");
	assert_refuses("A: canary\n", 1, "without NAME=");
	assert_refuses("=canary\n", 1, "without NAME=");
	assert_refuses("a-b=canary\n", 1, "without NAME=");
	assert_refuses("1A=canary\n", 1, "a name that no variable can have");
	assert_refuses("\nA='canary\nB=2\n", 2, "not closed");
	assert_refuses("A=\"canary\\\"\n", 1, "not closed");
	assert_refuses("A='canary' canary\n", 1, "text behind");
	assert_refuses("A='canary\n' canary\n", 2, "text behind");
	assert_refuses("A=1\nB=canary${C}\n", 2, "do not expand");
	assert_refuses("A=\"canary\n$(C)\"\n", 2, "do not expand");
	assert_refuses("A=canary\xff\n", 1, "not UTF-8");
	memset(name, 'A', 520);
	memcpy(name + 520, "=canary", 8);
	assert_refuses(name, 1, "a name that no variable can have");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_comments_and_blanks),
		cmocka_unit_test(a_bare_value_is_kept_as_it_is),
		cmocka_unit_test(quotes_keep_blanks_lines_and_signs),
		cmocka_unit_test(a_quoted_value_may_have_lines),
		cmocka_unit_test(what_is_wrong_is_refused_by_its_line_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
