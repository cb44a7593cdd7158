/* Summaries of runs beside their events: jobs/run/journal/summary.h, and the proof of events by
 * their bytes. */
#include "jobs/run/journal/summary.h"

#include "sqlite_fixture.h"

static void fill(struct run_summary *summary, int64_t seq, const char *head)
{
	*summary = SUMMARY_INIT;
	summary->seq = seq;
	sb_adds(&summary->head, head);
	sb_adds(&summary->line, "the line");
	sb_add(&summary->rest, "the\0rest", 8);
}

static int keep(const char *run, int64_t seq, const char *head)
{
	AUTO(summary_release) struct run_summary summary;
	AUTO(err_freep) struct err *err = NULL;
	int kept;

	fill(&summary, seq, head);
	kept = journal_summarise(journal, run, &summary, &err);
	assert_no_error(err);
	return kept;
}

static int find(const char *run, struct run_summary *ret)
{
	AUTO(err_freep) struct err *err = NULL;
	int found = journal_summary(journal, run, ret, &err);

	assert_no_error(err);
	return found;
}

static int is_found(const char *run)
{
	AUTO(summary_release) struct run_summary summary = SUMMARY_INIT;

	return find(run, &summary);
}

static int join(void *arg, const char *run, const char *head, struct err **err)
{
	(void)err;
	sb_addf(arg, "%s=%s ", run, head ? head : "-");
	return 0;
}

static void assert_listed(const char *wanted)
{
	AUTO(sb_release) struct sb runs = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(journal_each(journal, join, &runs, &err), 0);
	assert_string_equal(runs.text, wanted);
}

static void it_is_there_again_whole_with_its_event(void **state)
{
	AUTO(summary_release) struct run_summary summary = SUMMARY_INIT;

	(void)state;
	append("r", 1, "local");
	append("r", 2, "why");
	assert_int_equal(is_found("r"), 0);
	assert_int_equal(keep("r", 2, "head"), 1);
	assert_int_equal(find("r", &summary), 1);
	assert_int_equal(summary.seq, 2);
	assert_string_equal(summary.head.text, "head");
	assert_string_equal(summary.line.text, "the line");
	assert_int_equal(summary.rest.len, 8);
	assert_memory_equal(summary.rest.text, "the\0rest", 8);
	assert_string_equal(summary.begun, "2026-11-18T11:06:40.001Z");
	assert_int_equal(is_found("other"), 0);
}

static void the_newest_takes_the_place_of_the_one_before(void **state)
{
	AUTO(summary_release) struct run_summary summary = SUMMARY_INIT;

	(void)state;
	append("r", 1, "local");
	keep("r", 1, "first");
	append("r", 2, "why");
	keep("r", 2, "second");
	assert_int_equal(find("r", &summary), 1);
	assert_string_equal(summary.head.text, "second");
}

static void a_list_has_the_head_until_another_event_follows(void **state)
{
	(void)state;
	append("b", 1, "local");
	append("a", 1, "local");
	append("a", 2, "why");
	append("c", 1, "local");
	keep("b", 1, "of b");
	keep("a", 2, "of a");
	keep("c", 1, ""); /* it goes on */
	assert_listed("a=of a b=of b c=- ");
	append("b", 2, "why");
	assert_listed("a=of a b=- c=- ");
}

static void nothing_counts_that_was_changed(void **state)
{
	static const char *const changes[] = {
		"UPDATE summary SET seq=1",
		"UPDATE summary SET link=replace(link, substr(link, 1, 1), 'x')",
		"UPDATE summary SET begun=''",
		"UPDATE summary SET head='heae'",
		"UPDATE summary SET line_sum=sum",
		"UPDATE summary SET rest_sum=sum",
		"UPDATE summary SET sum=link",
		"UPDATE summary_rest SET line='a line'",
		"UPDATE summary_rest SET rest=x'00'",
		"DELETE FROM summary_rest",
		"DELETE FROM summary",
		"UPDATE event SET body=replace(body, substr(body, -8), '0000000\"}') WHERE seq=2",
		"DELETE FROM event WHERE seq=2",
	};

	(void)state;
	append("r", 1, "local");
	append("r", 2, "why");
	for (size_t i = 0; i < STK_LENGTH(changes); i++) {
		keep("r", 2, "head");
		assert_int_equal(is_found("r"), 1);
		execute(connection(), "SAVEPOINT s");
		execute(connection(), changes[i]);
		if (is_found("r") != 0)
			fail_msg("%s", changes[i]);
		execute(connection(), "ROLLBACK TO s; RELEASE s");
	}
}

static void it_goes_with_its_run(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	char left[8];

	(void)state;
	append("r", 1, "local");
	keep("r", 1, "head");
	assert_int_equal(journal_forget(journal, "r", &err), 0);
	journal_sqlite_query(connection(),
			     "SELECT (SELECT count(*) FROM summary) + "
			     "(SELECT count(*) FROM summary_rest)",
			     left, sizeof left);
	assert_string_equal(left, "0");
}

static int prove(int64_t seq)
{
	AUTO(err_freep) struct err *err = NULL;
	int proved = journal_prove(journal, "r", seq, &err);

	assert_no_error(err);
	return proved;
}

static void events_are_proved_by_their_bytes(void **state)
{
	static const char *const changes[] = {
		"UPDATE event SET body=replace(body, 'stop', 'step') WHERE seq=2",
		"UPDATE event SET body='' WHERE seq=3",
		"DELETE FROM event WHERE seq=1",
		"DELETE FROM event WHERE seq=2",
		"UPDATE event SET seq=seq+4 WHERE seq=3",
		"UPDATE event SET body=(SELECT body FROM event WHERE seq=3) WHERE seq=2",
	};

	(void)state;
	append("r", 1, "local");
	for (int64_t seq = 2; seq <= 4; seq++)
		append("r", seq, "why");
	for (int64_t seq = 1; seq <= 4; seq++)
		assert_int_equal(prove(seq), 1);
	assert_int_equal(prove(5), 0);
	for (size_t i = 0; i < STK_LENGTH(changes); i++) {
		execute(connection(), "SAVEPOINT s");
		execute(connection(), changes[i]);
		if (prove(4) != 0)
			fail_msg("%s", changes[i]);
		execute(connection(), "ROLLBACK TO s; RELEASE s");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_there_again_whole_with_its_event),
		TEST(the_newest_takes_the_place_of_the_one_before),
		TEST(a_list_has_the_head_until_another_event_follows),
		TEST(nothing_counts_that_was_changed),
		TEST(it_goes_with_its_run),
		TEST(events_are_proved_by_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
