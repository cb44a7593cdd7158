/* What decides how an attempt ends, with helpers that do what a test says: the news of
 * checkpointers, and uploaders that die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/node/agent.h"
#include "jobs/node/worker_news.h"

#define HOUR_MS  ((int64_t)60 * 60 * 1000)
#define GRACE_MS 700

/* ---- the checkpointer ---- */

static int agent_make(void **state)
{
	struct agent *agent = mem_zero(1, sizeof *agent);

	*state = agent;
	return 0;
}

static int agent_remove(void **state)
{
	struct agent *agent = *state;

	node_report_release(&agent->report.said);
	err_freep(&agent->lost);
	free(agent->lost_class);
	free(agent);
	return 0;
}

static void hear(struct agent *agent, enum checkpointer_news kind)
{
	json_auto_t *news = json_pack("{s:s, s:s, s:s}", "name", "checkpoint-5", "why", "no answer",
				      "class", "transient-infra");

	worker_news_of_checkpointer(agent, kind, news);
}

static void what_a_later_pass_brought_is_not_lost(void **state)
{
	struct agent *agent = *state;

	hear(agent, CHECKPOINTER_UNPUSHED);
	hear(agent, CHECKPOINTER_LOST);
	assert_non_null(agent->lost);
	assert_string_equal(agent->lost_class, "transient-infra");
	hear(agent, CHECKPOINTER_PUSHED);
	hear(agent, CHECKPOINTER_KEPT);
	assert_null(agent->lost);
	assert_null(agent->lost_class);
	assert_true(agent->kept);
}

static void what_was_in_place_is_not_lost_because_a_later_pass_saw_nothing(void **state)
{
	struct agent *agent = *state;

	hear(agent, CHECKPOINTER_UNPUSHED);
	hear(agent, CHECKPOINTER_KEPT);
	hear(agent, CHECKPOINTER_LOST);
	assert_null(agent->lost);
	assert_true(agent->kept);
}

/* ---- the uploader ---- */

/* The helper hangs for a while, and dies. */
static int die(const void *arg, int news_fd, int orders_fd)
{
	(void)news_fd;
	(void)orders_fd;
	poll(NULL, 0, *(const int *)arg);
	return 1;
}

static void hear_nothing(void *arg, enum uploader_news news, const json_t *line)
{
	(void)arg, (void)news, (void)line;
}

static void ignore(void *arg, const char *kind, const json_t *line)
{
	(void)arg, (void)kind, (void)line;
}

static void start_one_that_dies(struct uploader *uploader, struct loop **ret_loop,
				const int *hangs_ms)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(loop_new(ret_loop, &err), 0);
	uploader_init(uploader, *ret_loop, hear_nothing, NULL);
	assert_int_equal(
		helper_start(&uploader->helper, "test", die, hangs_ms, sizeof *hangs_ms, &err), 0);
	news_listen(&uploader->news, &uploader->helper, *ret_loop, ignore, NULL);
}

static void stops_are_blocked(int how)
{
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigprocmask(how, &stops, NULL);
}

static void a_signal_heard_by_one_uploader_counts_for_the_next_one(void **state)
{
	const int hangs_ms = 500;
	AUTO(loop_freep) struct loop *loop = NULL;
	struct uploader uploader;
	struct mono begun = clock_mono_now(), end = { begun.ms + HOUR_MS };

	(void)state;
	stops_are_blocked(SIG_BLOCK);
	signal(SIGPIPE, SIG_IGN);
	start_one_that_dies(&uploader, &loop, &hangs_ms);
	raise(SIGTERM);
	assert_int_equal(uploader_finish(&uploader, &end, GRACE_MS), UPLOADER_DEAD);
	uploader_release(&uploader);
	assert_true(end.ms >= begun.ms + GRACE_MS);
	assert_true(end.ms <= clock_mono_now().ms + GRACE_MS);
	stops_are_blocked(SIG_UNBLOCK);
}

static void a_uploader_that_hears_no_signal_leaves_the_end_as_it_is(void **state)
{
	const int hangs_ms = 0;
	AUTO(loop_freep) struct loop *loop = NULL;
	struct uploader uploader;
	struct mono end = { clock_mono_now().ms + HOUR_MS }, before = end;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	start_one_that_dies(&uploader, &loop, &hangs_ms);
	assert_int_equal(uploader_finish(&uploader, &end, GRACE_MS), UPLOADER_DEAD);
	uploader_release(&uploader);
	assert_int_equal(end.ms, before.ms);
}

#define T(test) cmocka_unit_test_setup_teardown(test, agent_make, agent_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_a_later_pass_brought_is_not_lost),
		T(what_was_in_place_is_not_lost_because_a_later_pass_saw_nothing),
		cmocka_unit_test(a_signal_heard_by_one_uploader_counts_for_the_next_one),
		cmocka_unit_test(a_uploader_that_hears_no_signal_leaves_the_end_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
