/* The promises of jobs/run/attempt/run_series.h: all readings of a run, of which some are made
 * again.
 */
#include "journal_fixture.h"

#include "../quoted.h"
#include "jobs/run/attempt/run_series.h"
#include "jobs/series/series_writer.h"
#include "jobs/store/order.h"

#define METRICS "[{'name':'step','regex':'step ([0-9]+)'},{'name':'loss','regex':'loss ([^ ]+)'}]"
#define TIME    INT64_C(1764400000000)

static int64_t seq;
static char workspace[96];
static struct sb heard; /* the readings, a word each */

static void append(struct event *ev)
{
	AUTO(err_freep) struct err *err = NULL;

	ev->seq = ++seq;
	ev->at.ms = TIME + seq;
	assert_int_equal(journal_append(journal, "r", ev, &err), 1);
}

static void begin_run(int nodes, const char *metrics)
{
	AUTO(auto_free)
	char *text = mem_format("{'workspace':'%s','engine':'local','nodes':%d,'metrics':%s}",
				workspace, nodes, metrics);
	json_auto_t *plan = quoted_json(text);
	struct event ev = { .kind = EV_RUN_CREATED };

	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	append(&ev);
}

static void begin_attempt(int64_t number)
{
	struct event ev = { .kind = EV_ATTEMPT_INTENDED };

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, number);
	EVENT_SET_STR(&ev, job, "job");
	EVENT_SET_STR(&ev, nonce, "nonce");
	append(&ev);
}

static void end_attempt(int64_t number)
{
	struct event ev = { .kind = EV_ATTEMPT_ENDED };

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, number);
	EVENT_SET(&ev, class, CLASS_NONE);
	append(&ev);
}

static char *node_path(int64_t attempt, int node, const char *name)
{
	return mem_format("%s/runs/r/train-%lld/node-%d/%s", workspace, (long long)attempt, node,
			  name);
}

static void write_log(int64_t attempt, int node, const char *text)
{
	AUTO(auto_free) char *folder = node_path(attempt, node, "");
	AUTO(auto_free) char *path = node_path(attempt, node, LOG_FILE);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(folder, &err), 0);
	assert_int_equal(fs_write_passing(path, text, strlen(text), 0600, &err), 0);
}

/* Keeps the readings of the log up to that byte, as of a start of the command. */
static void keep(int64_t attempt, int node, int64_t start, const char *text, size_t len)
{
	AUTO(auto_free) char *path = node_path(attempt, node, SERIES_FILE);
	AUTO(auto_free) char *prefix = mem_format("runs/r/train-%lld/", (long long)attempt);
	json_auto_t *specs = quoted_json(METRICS);
	const struct series_log log = { specs, prefix, node, start, len };
	AUTO(series_writer_freep) struct series_writer *writer = NULL;
	AUTO(err_freep) struct err *err = NULL;
	uint64_t from;

	assert_int_equal(series_writer_open(path, &log, &writer, &err), 0);
	from = series_writer_offset(writer);
	series_writer_feed(writer, text + from, len - from, (struct utc){ TIME }, false);
}

/* "1.0:30=0.5" is a loss of 0.5 at step 30 on node 0 of attempt 1; "+": made again, "-": does not
 * count, "'" each time that the job was started again before it. */
static int hear(void *arg, const struct run_reading *reading, struct err **err)
{
	(void)arg, (void)err;
	if (strcmp(reading->name, "loss") != 0)
		return 0;
	sb_addf(&heard, "%lld.%d", (long long)reading->attempt, reading->node);
	for (size_t i = 0; i < reading->start; i++)
		sb_addc(&heard, '\'');
	sb_addf(&heard, ":%lld=%g%s%s ", (long long)reading->step, reading->value,
		reading->replayed ? "+" : "", reading->counts ? "" : "-");
	return 0;
}

static void tells(const char *wanted)
{
	AUTO(run_series_freep) struct run_series *series = NULL;
	AUTO(err_freep) struct err *err = NULL;

	heard = SB_INIT_MAX(100000);
	if (run_series_open(journal, "r", &series, &err) < 0)
		fail_msg("%s", err->message);
	/* The second time it knows what the first has measured. */
	for (int i = 0; i < 2; i++) {
		sb_clear(&heard);
		assert_int_equal(run_series_each(series, hear, NULL, &err), 0);
		assert_string_equal(heard.text ? heard.text : "", wanted);
	}
	sb_release(&heard);
}

static int begin(void **state)
{
	seq = 0;
	if (set_up(state) < 0)
		return -1;
	snprintf(workspace, sizeof workspace, "%s/work", dir);
	return 0;
}

#define LOG_1 "loss 9\nstep 10 loss 5\nstep 20 loss 4\nstep 30 loss 3\n"
#define LOG_2 "step 20 loss 4.5\nstep 30 loss 3.5\nstep 40 loss 2\n"
#define LOG_3 "step 30 loss 3.25\nstep 40 loss 2.25\nstep 50 loss 1\n"

static void steps_are_made_again(void **state)
{
	(void)state;
	begin_run(1, METRICS);
	begin_attempt(1);
	write_log(1, 0, LOG_1);
	tells("1.0:-1=9 1.0:10=5 1.0:20=4 1.0:30=3 ");
	end_attempt(1);
	begin_attempt(2);
	tells("1.0:-1=9 1.0:10=5 1.0:20=4 1.0:30=3 ");
	write_log(2, 0, LOG_2);
	tells("1.0:-1=9 1.0:10=5 1.0:20=4- 1.0:30=3- 2.0:20=4.5+ 2.0:30=3.5+ 2.0:40=2 ");
	end_attempt(2);
	begin_attempt(3);
	end_attempt(3); /* without a step */
	begin_attempt(4);
	write_log(4, 0, LOG_3);
	tells("1.0:-1=9 1.0:10=5 1.0:20=4- 1.0:30=3- 2.0:20=4.5+ 2.0:30=3.5+- 2.0:40=2- "
	      "4.0:30=3.25+ 4.0:40=2.25+ 4.0:50=1 ");
	/* The kept readings say the same. */
	keep(1, 0, 0, LOG_1, strlen(LOG_1));
	keep(2, 0, 0, LOG_2, strlen("step 20 loss 4.5\n"));
	tells("1.0:-1=9 1.0:10=5 1.0:20=4- 1.0:30=3- 2.0:20=4.5+ 2.0:30=3.5+- 2.0:40=2- "
	      "4.0:30=3.25+ 4.0:40=2.25+ 4.0:50=1 ");
}

#define AGAIN "::stoker:n:: {\"v\":1,\"restart\":1,\"state\":\"running\"}\n"

static void a_job_starts_again(void **state)
{
	static const char wanted[] =
		"1.0:-1=9 1.0:10=5 1.0:20=4- 1.0:30=3- 1.0':20=4.5+ 1.0':30=3.5+ "
		"1.0':40=2 ";
	static const char log[] = LOG_1 AGAIN LOG_2;
	AUTO(auto_free) char *path = NULL;

	(void)state;
	begin_run(1, METRICS);
	begin_attempt(1);
	write_log(1, 0, log);
	tells(wanted);
	keep(1, 0, 0, log, strlen(LOG_1));
	tells(wanted);
	keep(1, 0, 1, log, strlen(log) - 20);
	tells(wanted);
	/* A line of the command's own is none of the agent's. */
	path = node_path(1, 0, SERIES_FILE);
	assert_int_equal(unlink(path), 0);
	write_log(1, 0, LOG_1 "\\" AGAIN LOG_2);
	tells("1.0:-1=9 1.0:10=5 1.0:20=4 1.0:30=3 1.0:20=4.5 1.0:30=3.5 1.0:40=2 ");
}

/* Lines that the first start's writer had no time for are read by the next one's. */
static void whoever_keeps_a_line_it_is_of_its_own_start(void **state)
{
	static const char wanted[] =
		"1.0:-1=9 1.0:10=5 1.0:20=4- 1.0:30=3- 1.0':-1=8 1.0':20=4.5+ 1.0':30=3.5+ "
		"1.0':40=2 ";
	static const char log[] = LOG_1 AGAIN "loss 8\n" LOG_2;
	static const size_t cuts[] = { 0, 8, 22, 38, 54 };
	AUTO(auto_free) char *path = node_path(1, 0, SERIES_FILE);

	(void)state;
	begin_run(1, METRICS);
	begin_attempt(1);
	write_log(1, 0, log);
	tells(wanted);
	for (size_t i = 0; i < STK_LENGTH(cuts); i++) {
		keep(1, 0, 0, log, cuts[i]);
		tells(wanted);
		keep(1, 0, 1, log, strlen(log));
		tells(wanted);
		assert_int_equal(unlink(path), 0);
	}
}

static void all_nodes_of_an_attempt_count_together(void **state)
{
	(void)state;
	begin_run(2, METRICS);
	begin_attempt(1);
	write_log(1, 0, "step 10 loss 1\nstep 20 loss 2\n");
	write_log(1, 1, "step 10 loss 3\n");
	end_attempt(1);
	begin_attempt(2);
	write_log(2, 1, "step 20 loss 4\nstep 30 loss 5");
	keep(1, 1, 0, "step 10 loss 3\n", 15);
	tells("1.0:10=1 1.0:20=2- 1.1:10=3 2.1:20=4+ ");
	/* A last line without its end may still grow, until the attempt has ended. */
	end_attempt(2);
	tells("1.0:10=1 1.0:20=2- 1.1:10=3 2.1:20=4+ 2.1:30=5 ");
}

static int stop_at_once(void *arg, const struct run_reading *reading, struct err **err)
{
	(void)reading, (void)err;
	++*(int *)arg;
	return 1;
}

static int fail_at_once(void *arg, const struct run_reading *reading, struct err **err)
{
	(void)arg, (void)reading;
	return err_set(err, EXIT_REFUSED, "enough");
}

static void a_caller_can_stop(void **state)
{
	AUTO(run_series_freep) struct run_series *series = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int calls = 0;

	(void)state;
	begin_run(1, METRICS);
	begin_attempt(1);
	write_log(1, 0, LOG_1);
	begin_attempt(2);
	write_log(2, 0, LOG_2);
	for (int kept = 0; kept < 2; kept++) {
		calls = 0;
		assert_int_equal(run_series_open(journal, "r", &series, &err), 0);
		assert_int_equal(run_series_each(series, stop_at_once, &calls, &err), 0);
		assert_int_equal(calls, 1);
		assert_int_equal(run_series_each(series, fail_at_once, NULL, &err), -1);
		assert_string_equal(err->message, "enough");
		err_freep(&err);
		run_series_freep(&series);
		keep(1, 0, 0, LOG_1, strlen(LOG_1));
	}
}

static void without_metrics_there_is_nothing(void **state)
{
	AUTO(run_series_freep) struct run_series *series = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_run(1, "[]");
	assert_int_equal(run_series_open(journal, "r", &series, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_string_equal(err->message, "the spec of run r has no metrics");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(steps_are_made_again, begin, tear_down),
		cmocka_unit_test_setup_teardown(a_job_starts_again, begin, tear_down),
		cmocka_unit_test_setup_teardown(whoever_keeps_a_line_it_is_of_its_own_start, begin,
						tear_down),
		cmocka_unit_test_setup_teardown(all_nodes_of_an_attempt_count_together, begin,
						tear_down),
		cmocka_unit_test_setup_teardown(a_caller_can_stop, begin, tear_down),
		cmocka_unit_test_setup_teardown(without_metrics_there_is_nothing, begin, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
