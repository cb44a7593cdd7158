/*
 * A line as a person reads it: without the prefixes that launchers, containers and terminals put in
 * front. A prefix that is missed hides the cause behind it; one that is seen where there is none
 * cuts into the program's words, or makes a rank of each line. And the texts of the table: where a
 * pattern matches.
 */
#include "tests/unit/flow/story.h"

#include "jobs/flow/failure_internal.h"
#include "tests/unit/flow/guarded.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct prefixed {
	const char *line, *voice, *rest;
};

static const struct prefixed lines[] = {
	{ "x", "", "x" },
	{ "", "", "" },
	{ " ", "", "" },
	{ "\n", "", "" },
	{ "x \r\n", "", "x" },
	{ "x\n\r ", "", "x" },
	{ "    x", "", "    x" },
	/* what a progress bar has shown before is gone from the screen */
	{ " 10%|#  |\r 20%|## |\rx\r\n", "", "x" },
	{ "[rank0]: x\r[rank1]: y", "[rank1]:", "y" },
	/* ranks, by torchrun, srun and prterun */
	{ "[rank0]: x", "[rank0]:", "x" },
	{ "[rank0]:   x", "[rank0]:", "  x" },
	{ "[rank0]:x", "[rank0]:", "x" },
	{ "[rank0]:", "[rank0]:", "" },
	{ "[3]: x", "[3]:", "x" },
	{ "[default3]:x", "[default3]:", "x" },
	{ "[default3]:  x", "[default3]:", "  x" },
	{ "[defaulu3]: x", "[defaulu3]:", "x" },
	{ "3: x", "3:", "x" },
	{ "12: x", "12:", "x" },
	{ " 7: x", " 7:", "x" },
	{ "3:", "", "3:" },
	{ "3:x", "", "3:x" },
	{ "3 : x", "", "3 : x" },
	{ "3;  x", "", "3;  x" },
	{ "3", "", "3" },
	/* hosts */
	{ "[host1:0]x", "[host1:0]", "x" },
	{ "[h:12]x", "[h:12]", "x" },
	{ "[host1:0]", "[host1:0]", "" },
	{ "[train.py:12] x", "", "[train.py:12] x" },
	{ "[a b:1]x", "", "[a b:1]x" },
	{ "[:1]x", "", "[:1]x" },
	{ "[host:]x", "", "[host:]x" },
	{ "[host:1", "", "[host:1" },
	{ "[host:", "", "[host:" },
	{ "[host", "", "[host" },
	{ "[host:1x]y", "", "[host:1x]y" },
	{ "[host:xx]y", "", "[host:xx]y" },
	{ "[]x", "", "[]x" },
	{ "[", "", "[" },
	{ "worker-1: x", "worker-1:", "x" },
	{ "worker-0: x", "worker-0:", "x" },
	{ "w-9:   x", "w-9:", "  x" },
	{ "10.0.0.1: x", "10.0.0.1:", "x" },
	{ "10.0.0.1:", "", "10.0.0.1:" },
	{ "10.0.0: x", "", "10.0.0: x" },
	{ "1.2.3.4.5: x", "", "1.2.3.4.5: x" },
	{ "ip-10-0-0-9.internal-0: x", "ip-10-0-0-9.internal-0:", "x" },
	{ "worker1: x", "", "worker1: x" },
	{ "worker-a: x", "", "worker-a: x" },
	{ "worker-a1b: x", "", "worker-a1b: x" },
	{ "worker-1:x", "", "worker-1:x" },
	{ "worker-1;  x", "", "worker-1;  x" },
	{ "worker-1", "", "worker-1" },
	{ "Worker-1: x", "", "Worker-1: x" },
	{ "train-loss-1 = 2", "", "train-loss-1 = 2" },
	/* Docker Compose */
	{ "trainer-3  | x", "trainer-3  |", "x" },
	{ "trainer-3 |   x", "trainer-3 |", "  x" },
	{ "trainer-3 |x", "", "trainer-3 |x" },
	{ "trainer-3 |", "", "trainer-3 |" },
	{ "trainer-3 / x", "", "trainer-3 / x" },
	/* Ray */
	{ "(Worker pid=42417, ip=[fdbd::2207]) x", "(Worker pid=42417, ip=[fdbd::2207])", "x" },
	{ "  (W pid=3) x", "  (W pid=3)", "x" },
	{ "(W pid=3)   x", "(W pid=3)", "  x" },
	{ "\x1b[36m(W pid=3)\x1b[0m x", "(W pid=3)", "x" },
	{ "\x1b[36m(W pid=3)\x1b[0m   x", "(W pid=3)", "  x" },
	{ "(W pid=3)\x1b[0m", "(W pid=3)", "" },
	{ "(W pid=3)x", "", "(W pid=3)x" },
	{ "(W pid=3)", "", "(W pid=3)" },
	{ "(W 3) pid=3 x", "", "(W 3) pid=3 x" },
	{ "(W PID=3) x", "", "(W PID=3) x" },
	{ "(W pid-3) x", "", "(W pid-3) x" },
	{ "(W pid=3", "", "(W pid=3" },
	{ "W pid=3) x", "", "W pid=3) x" },
	{ "()", "", "()" },
	/* Open MPI, and Horovod's launcher with the time in front */
	{ "[1,3]<stdout>:x", "[1,3]<stdout>:", "x" },
	{ "[1,3]<stderr>:x", "[1,3]<stderr>:", "x" },
	{ "[1,3]<stddiag>:  x", "[1,3]<stddiag>:", "  x" },
	{ "]<stdout>:x", "]<stdout>:", "x" },
	{ "[1,3]<STDERR>:x", "", "[1,3]<STDERR>:x" },
	{ "Fri Sep 25 16:52:53 2020[3]<stderr>:x", "[3]<stderr>:", "x" },
	/* the time of container engines */
	{ "2026-11-25T03:14:07Z x", "", "x" },
	{ "2026-11-25T03:14:07.123456Z   x", "", "  x" },
	{ "2026-11-25T03:14:07.5Z [rank3]: x", "[rank3]:", "x" },
	{ "2026-11-25T03:14:07", "", "2026-11-25T03:14:07" },
	{ "2026-11-25T03:14:07.5", "", "2026-11-25T03:14:07.5" },
	{ "2026-11-25T03:14:07Z", "", "2026-11-25T03:14:07Z" },
	{ "2026-11-25T03:14:07Zx", "", "2026-11-25T03:14:07Zx" },
	{ "2026-11-25T03:14:07 x", "", "2026-11-25T03:14:07 x" },
	{ "x026-11-25T03:14:07Z x", "", "x026-11-25T03:14:07Z x" },
	{ "2026-11-25 03:14:07Z x", "", "2026-11-25 03:14:07Z x" },
	{ "2026-11-2xT03:14:07Z x", "", "2026-11-2xT03:14:07Z x" },
	/* colours; other sequences are the program's */
	{ "\x1b[36mx", "", "x" },
	{ "\x1b[1;31mx", "", "x" },
	{ "\x1b[mx", "", "x" },
	{ "\x1b[31m  x", "", "  x" },
	{ "\x1b[31m", "", "" },
	{ "\x1b[m", "", "" },
	{ "[rank0]: \x1b[31mx", "[rank0]:", "x" },
	{ "\x1b[2Kx", "", "\x1b[2Kx" },
	{ "\x1b[31", "", "\x1b[31" },
	{ "\x1b[", "", "\x1b[" },
	{ "\x1b]31mx", "", "\x1b]31mx" },
	/* launchers within launchers: the innermost names the rank */
	{ "worker-1: [rank3]: x", "[rank3]:", "x" },
	{ "7: [rank80]: x", "[rank80]:", "x" },
	{ "1: 2: 3: 4: 5: 6: 7: x", "6:", "7: x" },
};

static void is_line(struct failure_line line, const char *text, const char *of)
{
	if (line.len != strlen(text) || memcmp(line.text, text, line.len) != 0)
		fail_msg("'%s': '%.*s', not '%s'", of, (int)line.len, line.text, text);
}

static void the_prefixes_of_launchers_are_taken_off_and_nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		const struct prefixed *row = &lines[i];
		struct failure_line voice, rest;

		rest = failure_line_split(guarded_end(row->line, strlen(row->line)), &voice);
		is_line(rest, row->rest, row->line);
		is_line(voice, row->voice, row->line);
		rest = failure_line_split(guarded_begin(row->line, strlen(row->line)), &voice);
		is_line(rest, row->rest, row->line);
		is_line(voice, row->voice, row->line);
	}
}

/* A log is read by the piece: its last line may end anywhere. */
static void a_line_that_is_cut_anywhere_is_read_to_its_end_and_no_further(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		for (size_t len = 0; len <= strlen(lines[i].line); len++) {
			for (int end = 0; end < 2; end++) {
				struct failure_line line = end ? guarded_end(lines[i].line, len)
							       : guarded_begin(lines[i].line, len);
				struct failure_line voice, rest = failure_line_split(line, &voice);

				assert_true(rest.text >= line.text);
				assert_true(rest.text + rest.len <= line.text + len);
				assert_true(voice.text >= line.text);
				assert_true(voice.text + voice.len <= line.text + len);
				failure_witness(rest);
				failure_is_indented(rest);
				failure_ends_traceback(rest);
				failure_is_raised(rest);
				failure_is_chain(rest);
			}
		}
	}
}

static void keeps(const char *line, bool whole)
{
	struct failure_line voice;
	struct failure_line rest = failure_line_split(guarded_end(line, strlen(line)), &voice);

	if ((rest.len == strlen(line)) != whole)
		fail_msg("%s of '%s'", whole ? "a prefix is taken off" : "no prefix is taken off",
			 line);
}

/* Names of hosts and actors have a length; text of which each line is long is a program's. */
static void a_prefix_is_short(void **state)
{
	static const struct {
		const char *before, *after;
		size_t longest;
	} forms[] = {
		{ "host-", "1: x", 64 - 6 },
		{ "(W pid=", ") x", 120 - 7 },
		{ "[", "]<stderr>:x", 79 - 1 },
		{ "[r", "]: x", 32 - 2 },
	};
	char line[256];

	(void)state;
	for (size_t i = 0; i < COUNT(forms); i++)
		for (size_t n = 1; n < forms[i].longest + 3; n++) {
			snprintf(line, sizeof line, "%s%0*d%s", forms[i].before, (int)n, 0,
				 forms[i].after);
			keeps(line, n > forms[i].longest);
		}
}

static const struct {
	const char *pattern, *line;
	bool matches;
	const char *found; /* by the first wildcard */
} patterns[] = {
	{ "abc", "xabcx", true, NULL },
	{ "abc", "xaBCx", true, NULL },
	{ "abc", "abcabd", true, NULL },
	{ "abd", "abcabd", true, NULL },
	{ "abc", "ab", false, NULL },
	{ "abc", "xxab", false, NULL },
	{ "c", "ab", false, NULL },
	{ "^abc", "abcd", true, NULL },
	{ "^abc", "xabc", false, NULL },
	{ "^abc", "ab", false, NULL },
	{ "^a", "a", true, NULL },
	{ "a * b", "a  b", true, "" },
	{ "a * b", "a 12 b", true, "12" },
	{ "a * b * c", "a 1 b 2 c", true, "1" },
	{ "a*b", "axc", false, NULL },
	{ "a*b", "ba", false, NULL },
	{ "a *", "a rest of it", true, "rest of it" },
	{ "a *", "a ", true, "" },
	{ "^a *", "ba x", false, NULL },
	{ "^a *c", "a bc", true, "b" },
	{ "a #", "a 12", true, "12" },
	{ "a # b", "a 10 b", true, "10" },
	{ "a # b", "a 01 b", true, "01" },
	{ "a # b", "a 0 b", false, NULL },
	{ "a # b", "a 000 b", false, NULL },
	{ "a # b", "a x b", false, NULL },
	{ "a # b", "a 12x b", false, NULL },
	{ "a # b", "a 12", false, NULL },
	{ "a #", "a ", false, NULL },
	{ "a # b # c", "a 7 b 8 c", true, "7" },
	{ "a # b *", "a 7 b x", true, "7" },
	{ "a * b #", "a x b 7", true, "x" },
	{ "a # b # c", "a 7 b 0 c", false, NULL },
};

/* The text of a row of the table is found, and the words behind its wildcard go into the cure.
 */
static void a_pattern_matches_where_its_text_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(patterns); i++) {
		const char *text = patterns[i].line;
		struct failure_line line = guarded_end(text, strlen(text)), found = { 0 };

		if (failure_matches(patterns[i].pattern, false, line, &found) !=
		    patterns[i].matches)
			fail_msg("'%s' and '%s'", patterns[i].pattern, text);
		/* without a wildcard nothing is found */
		assert_true(patterns[i].found || !patterns[i].matches || !found.text);
		if (patterns[i].found)
			is_line(found, patterns[i].found, patterns[i].pattern);
		assert_int_equal(failure_matches(patterns[i].pattern, false, line, NULL),
				 patterns[i].matches);
	}
	/* An engine's words are a fixed form. */
	assert_false(failure_matches("Spot", true, guarded_end("spot", 4), NULL));
	assert_true(failure_matches("Spot", true, guarded_end("a Spot", 6), NULL));
	assert_false(failure_matches("^Spot", true, guarded_end("SpoT", 4), NULL));
	assert_int_equal(failure_find(guarded_begin("abcabd", 6), "ABD"), 3);
	assert_int_equal(failure_find(guarded_begin("abcabd", 6), "abe"), 6);
	assert_int_equal(failure_find(guarded_begin("abcabd", 6), "a"), 0);
}

/* A line without end costs no time without end: 16 KiB of it are looked at. */
static void of_a_long_line_the_beginning_is_looked_at(void **state)
{
	static char line[FAILURE_LINE_MAX + 2];

	(void)state;
	memset(line, 'x', sizeof line);
	for (size_t more = 0; more <= 2; more++)
		assert_int_equal(failure_line_trim(guarded_end(line, FAILURE_LINE_MAX + more)).len,
				 FAILURE_LINE_MAX);
	assert_int_equal(failure_line_trim(guarded_end(line, FAILURE_LINE_MAX - 1)).len,
			 FAILURE_LINE_MAX - 1);
}

static void two_ranks_are_told_apart(void **state)
{
	static const struct failure_line none = { "", 0 }, three = { "3:", 2 },
					 longer = { "3: x", 4 }, other = { "4:", 2 },
					 same = { "3:", 2 };

	(void)state;
	assert_true(failure_is_same(three, same));
	assert_false(failure_is_same(three, other));
	assert_false(failure_is_same(three, longer));
	assert_false(failure_is_same(longer, three));
	assert_false(failure_is_same(none, three));
	assert_true(failure_is_same(none, none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_prefixes_of_launchers_are_taken_off_and_nothing_else),
		cmocka_unit_test(a_line_that_is_cut_anywhere_is_read_to_its_end_and_no_further),
		cmocka_unit_test(a_prefix_is_short),
		cmocka_unit_test(of_a_long_line_the_beginning_is_looked_at),
		cmocka_unit_test(two_ranks_are_told_apart),
		cmocka_unit_test(a_pattern_matches_where_its_text_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
