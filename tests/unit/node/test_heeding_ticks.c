/* What the agent makes of what its helpers say, and of their deaths. */
#include "tests/unit/node/ticks.h"
#include "tests/unit/quoted.h"

#include <errno.h>

#include "jobs/node/worker_news.h"

#define HOUR_MS ((int64_t)3600 * 1000)

static json_t *order_saving(const struct place *place)
{
	AUTO(auto_free) char *root = place_path(place, "far");
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(3));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root", root, "sync",
			 "agent", "keep", "all", "signal", "none", "grace_ms", 7000));
	return order;
}

static void begin(struct agent *agent, const struct place *place, const char *rank)
{
	AUTO(err_freep) struct err *err = NULL;

	memset(timers, 0, sizeof timers);
	scene_open(agent, place, order_saving(place), rank, false);
	scene_command(agent);
	must(watchdog_init(agent, &err), &err);
}

/* ---- the checkpointer ---- */

static void hear(struct agent *agent, enum checkpointer_news kind, const char *text)
{
	json_auto_t *news = quoted_json(text);

	worker_news_of_checkpointer(agent, kind, news);
}

static void a_save_is_a_sign_of_life_until_it_is_done(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	ticks_ms += 5000;
	hear(&agent, CHECKPOINTER_SAVING, "{}");
	assert_int_equal(agent.watchdog.stall.last.ms, ticks_ms);
	assert_int_equal(agent.watchdog.stall.doing, DOING_SAVE);
	hear(&agent, CHECKPOINTER_COPYING, "{}");
	assert_int_equal(agent.watchdog.stall.doing, DOING_SAVE);
	hear(&agent, CHECKPOINTER_SAVED, "{}");
	assert_int_not_equal(agent.watchdog.stall.doing, DOING_SAVE);
	scene_close(&agent);
}

/* Older checkpoints may come later in the last pass. */
static void the_newest_mark_is_reported(void **state)
{
	const struct node_report_checkpoint *said;
	struct agent agent;

	begin(&agent, *state, "0");
	said = &agent.report.said.checkpoint;
	hear(&agent, CHECKPOINTER_MARKED, "{'step':0,'url':'/far/step-0'}");
	assert_true(agent.report.said.has_checkpoint);
	assert_string_equal(said->url, "/far/step-0");
	hear(&agent, CHECKPOINTER_MARKED, "{'step':20,'url':'/far/step-20'}");
	hear(&agent, CHECKPOINTER_MARKED, "{'step':10,'url':'/far/step-10'}");
	assert_int_equal(said->step, 20);
	assert_string_equal(said->url, "/far/step-20");
	hear(&agent, CHECKPOINTER_MARKED, "{'step':20,'url':'/far/again/step-20'}");
	assert_string_equal(said->url, "/far/again/step-20");
	assert_null(agent.stopped);
	scene_close(&agent);
}

static void a_drain_is_over_with_a_mark_of_what_was_asked_for(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	agent.watchdog.listen.stepped = true;
	agent.watchdog.listen.last_step = 8;
	drain_begin(&agent);
	hear(&agent, CHECKPOINTER_MARKED, "{'step':7,'url':'/far/step-7'}");
	assert_null(agent.stopped);
	assert_false(agent.drain.marked);
	hear(&agent, CHECKPOINTER_MARKED, "{'step':8,'url':'/far/step-8'}");
	assert_true(agent.drain.marked);
	assert_string_equal(agent.stopped, STOPPED_DRAIN);
	scene_close(&agent);
}

static void what_is_passed_over_is_reported_at_once_while_it_can_be_mended(void **state)
{
	static const char news[] = "{'name':'step-7','path':'/a/step-7','why':'torn','hint':'mend',"
				   "'step':7,'at':5}";
	const struct node_report_checkpoint *said;
	AUTO(auto_free) char *early = NULL;
	AUTO(auto_free) char *late = NULL;
	struct agent agent;

	begin(&agent, *state, "0");
	said = &agent.report.said.checkpoint;
	hear(&agent, CHECKPOINTER_PASSED, news);
	early = ordered(&agent);
	assert_int_equal(count_of(early, "\"report\""), 1);
	assert_string_equal(said->passed.items[0].name, "step-7");
	assert_string_equal(said->passed.items[0].path, "/a/step-7");
	assert_string_equal(said->passed.items[0].why, "torn");
	assert_string_equal(said->passed.items[0].hint, "mend");
	assert_int_equal(said->passed.items[0].step, 7);
	assert_int_equal(said->passed.items[0].at, 5);
	agent.state = REPORT_ENDED;
	hear(&agent, CHECKPOINTER_PASSED, "{'name':'final','why':'torn','at':6}");
	late = ordered(&agent);
	assert_int_equal(count_of(late, "\"report\""), 0);
	assert_int_equal(said->passed.count, 2);
	assert_false(said->passed.items[1].has_step);
	scene_close(&agent);
}

static void what_is_not_whole_and_what_went_wrong_is_reported(void **state)
{
	const struct node_report_checkpoint *said;
	struct agent agent;

	begin(&agent, *state, "0");
	said = &agent.report.said.checkpoint;
	hear(&agent, CHECKPOINTER_PARTIAL, "{'name':'step-7','why':'torn'}");
	assert_string_equal(said->partial.items[0].name, "step-7");
	assert_string_equal(said->partial.items[0].why, "torn");
	assert_true(said->has_partial);
	hear(&agent, CHECKPOINTER_TROUBLE, "{'why':'denied'}");
	assert_string_equal(said->trouble, "denied");
	scene_close(&agent);
}

static void graphs_are_reported_with_how_many_were_brought(void **state)
{
	const struct node_report_cache *said;
	struct agent agent;

	begin(&agent, *state, "0");
	said = &agent.report.said.cache;
	hear(&agent, CHECKPOINTER_UNPUSHED, "{'why':'denied'}");
	assert_false(agent.pushed);
	assert_string_equal(said->why, "denied");
	assert_false(said->has_brought || said->has_cut);
	hear(&agent, CHECKPOINTER_PUSHED, "{'brought':3,'cut':1}");
	assert_true(agent.pushed);
	assert_int_equal(said->brought, 3);
	assert_int_equal(said->cut, 1);
	assert_null(said->why); /* it went well after all */
	scene_close(&agent);
}

static void what_is_lost_is_told_with_the_services_own_words_first(void **state)
{
	json_auto_t *far = json_pack("{s:s, s:s}", "name", "step-8", "why",
				     "cannot copy a to b: cannot write 'x': s3 says no");
	struct agent agent;

	begin(&agent, *state, "0");
	hear(&agent, CHECKPOINTER_LOST,
	     "{'name':'step-7','why':'no room','errno':28,'class':'user-config'}");
	assert_string_equal(agent.lost->message, "'step-7' was saved, but not uploaded: no room");
	assert_int_equal(agent.lost->os_errno, 28);
	assert_string_equal(agent.lost_class, "user-config");
	assert_has(agent.lost->hint, agent.config.checkpoint);
	worker_news_of_checkpointer(&agent, CHECKPOINTER_LOST, far);
	assert_has(agent.lost->message, "'step-8' exists in '");
	assert_has(agent.lost->message, "only: s3 says no");
	assert_int_equal(agent.lost->os_errno, 0);
	assert_null(agent.lost_class);
	scene_close(&agent);
}

static void what_was_kept_is_not_lost_any_more(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	hear(&agent, CHECKPOINTER_LOST, "{'name':'step-7','why':'no room','class':'x'}");
	hear(&agent, CHECKPOINTER_KEPT, "{}");
	assert_true(agent.kept);
	assert_null(agent.lost);
	assert_null(agent.lost_class);
	hear(&agent, CHECKPOINTER_LOST, "{'name':'step-7','why':'no room'}");
	assert_null(agent.lost);
	scene_close(&agent);
}

static void any_news_gives_the_last_pass_more_time(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	agent.checkpointer.last_pass = true;
	agent.checkpointer.helper.pid = 1;
	hear(&agent, CHECKPOINTER_COPYING, "{}");
	assert_int_equal(next_ms(), 300000);
	agent.checkpointer.helper.pid = 0;
	scene_close(&agent);
}

/* ---- the uploader ---- */

static int heard;

static void on_heard(struct agent *agent)
{
	(void)agent;
	heard++;
}

static void heed(struct agent *agent, enum uploader_news news, const char *text)
{
	json_auto_t *line = quoted_json(text);

	uploader_news_heed(agent, news, line);
}

static void what_others_did_stops_the_command_unless_a_drain_does(void **state)
{
	static const struct {
		enum uploader_news news;
		const char *rank;
		bool draining;
		const char *stopped; /* "": not */
	} rows[] = {
		{ UPLOADER_SUPERSEDED, "0", false, STOPPED_SUPERSEDED },
		{ UPLOADER_PEER_FAILED, "1", false, STOPPED_PEER },
		{ UPLOADER_PEER_FAILED, "1", true, "" },
		{ UPLOADER_DRAINED, "1", true, STOPPED_DRAIN },
		{ UPLOADER_DRAINED, "1", false, "" },
		{ UPLOADER_DRAINED, "0", true, "" }, /* it sees the mark itself */
		{ UPLOADER_DRAIN, "1", false, "" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;

		begin(&agent, *state, rows[i].rank);
		agent.heard = on_heard;
		heard = 0;
		if (rows[i].draining)
			drain_begin(&agent);
		heed(&agent, rows[i].news, "{}");
		if (strcmp(agent.stopped ? agent.stopped : "", rows[i].stopped) != 0)
			fail_msg("row %zu: %s", i, agent.stopped ? agent.stopped : "not stopped");
		assert_int_equal(heard, 1);
		if (rows[i].news == UPLOADER_DRAIN)
			assert_int_equal(agent.drain.at_ms, ticks_ms + UTC_AHEAD);
		scene_close(&agent);
	}
}

static void news_of_reports_and_flags_is_noted(void **state)
{
	struct agent agent;

	begin(&agent, *state, "1");
	heed(&agent, UPLOADER_REPORTED, "{'state':'starting'}");
	assert_false(agent.shown);
	heed(&agent, UPLOADER_REPORTED, "{'state':'running'}");
	assert_true(agent.shown);
	heed(&agent, UPLOADER_REPORTED, "{'state':'ended'}");
	assert_true(agent.shown);
	agent.ended_due = agent.ended_asked = true;
	heed(&agent, UPLOADER_FLAGGED, "{'name':'failed.json','set':true}");
	assert_true(agent.ended_due && agent.ended_asked);
	heed(&agent, UPLOADER_FLAGGED, "{'name':'" ENDED_FILE "','set':false}");
	assert_true(agent.ended_due);
	assert_false(agent.ended_asked);
	heed(&agent, UPLOADER_FLAGGED, "{'name':'" ENDED_FILE "','set':true}");
	assert_false(agent.ended_due);
	heed(&agent, UPLOADER_HEAD_ENDED, "{}");
	assert_true(agent.head_ended);
	assert_true(agent.watchdog.alone);
	heed(&agent, UPLOADER_LOG_LOST, "{'errno':28}");
	assert_int_equal(agent.relay.failed, 28);
	heed(&agent, UPLOADER_LOG_LOST, "{}");
	assert_int_equal(agent.relay.failed, EIO);
	scene_close(&agent);
}

static void the_answer_to_a_look_is_waited_for_at_the_end(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	agent.heard = on_heard;
	heard = 0;
	agent.looking = true;
	heed(&agent, UPLOADER_LOOKED, "{}");
	assert_false(agent.looking);
	assert_int_equal(heard, 2); /* the look, and the news */
	scene_close(&agent);
}

/* ---- helpers that die ---- */

static void die(struct agent *agent, enum worker_kind kind, int times, int status)
{
	for (int i = 0; i < times; i++)
		workers_died(agent, kind, status);
}

static void one_that_dies_again_and_again_drains_all_nodes(void **state)
{
	static const struct {
		int status;
		const char *words;
	} rows[] = { { SIGKILL, "with signal 9" }, { 3 << 8, "with exit 3" } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *path = place_path(*state, PREFIX DRAIN_FILE);
		AUTO(err_freep) struct err *err = NULL;
		AUTO(auto_free) char *orders = NULL;
		AUTO(auto_free) char *times = mem_format("%d times within", WORKER_RESTARTS + 1);
		json_auto_t *drain = NULL;
		struct agent agent;

		unlink(path);
		begin(&agent, *state, "2");
		die(&agent, WORKER_UPLOADER, WORKER_RESTARTS + 1, rows[i].status);
		workers_keep_uploader(&agent);
		assert_int_equal(agent.uploader.helper.pid, 0);
		assert_has(agent.workers.lost->message, "uploads the log, and renews the claim");
		assert_has(agent.workers.lost->message, "(stoker-upload) died ");
		assert_has(agent.workers.lost->message, times);
		assert_has(agent.workers.lost->message, rows[i].words);
		assert_string_equal(agent.report.said.worker.name, "uploader");
		assert_int_equal(agent.report.said.worker.at, ticks_ms + UTC_AHEAD);
		assert_has(agent.report.said.worker.hint, "another machine is tried");
		assert_string_equal(drain_word(&agent), STOPPED_WORKER);
		orders = ordered(&agent);
		assert_int_equal(count_of(orders, "\"report\""), 1);
		must(js_load(path, REPORT_MAX, &drain, &err), &err);
		assert_int_equal(js_int(drain, "v", 0), 1);
		assert_int_equal(js_int(drain, "node", 0), 2);
		assert_int_equal(js_int(drain, "at", 0), ticks_ms + UTC_AHEAD);
		assert_string_equal(js_str(drain, "reason"), agent.workers.lost->message);
		assert_string_equal(js_str(json_object_get(drain, "worker"), "name"), "uploader");
		scene_close(&agent);
	}
}

/* An order that nobody can be told now is told later. */
static void a_drain_that_cannot_be_written_is_written_later(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, PREFIX DRAIN_FILE);
	AUTO(auto_free) char *folder = place_path(*state, "runs/r1/train-1");
	AUTO(auto_free) char *aside = place_path(*state, "aside");
	struct agent agent;

	begin(&agent, *state, "2");
	assert_int_equal(rename(folder, aside), 0);
	write_file(folder, "in the way", 0600);
	die(&agent, WORKER_UPLOADER, WORKER_RESTARTS + 1, SIGKILL);
	workers_keep_uploader(&agent);
	assert_true(agent.workers.drain_due);
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(rename(aside, folder), 0);
	workers_tell_lost(&agent);
	assert_false(agent.workers.drain_due);
	assert_true(fs_exists(path));
	unlink(path);
	workers_tell_lost(&agent); /* once is enough */
	assert_false(fs_exists(path));
	scene_close(&agent);
}

static void on_the_way_out_it_is_started_three_times_more(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct agent agent;

		begin(&agent, *state, "0");
		die(&agent, WORKER_CHECKPOINTER, WORKER_RESTARTS + 1, SIGKILL);
		agent.over = i == 0;
		agent.stopped = i == 1 ? STOPPED_SIGNAL : NULL;
		agent.drain.at_ms = i == 2;
		if (i == 3)
			err_set(&agent.workers.lost, EXIT_REFUSED, "lost");
		for (int starts = 0; starts < 3; starts++)
			assert_true(workers_again(&agent, WORKER_CHECKPOINTER));
		assert_false(workers_again(&agent, WORKER_CHECKPOINTER));
		scene_close(&agent);
	}
}

static void an_hour_later_it_may_start_again(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	for (int i = 0; i < WORKER_RESTARTS; i++)
		assert_true(workers_again(&agent, WORKER_PREFETCH));
	assert_false(workers_again(&agent, WORKER_PREFETCH));
	ticks_ms += HOUR_MS;
	assert_true(workers_again(&agent, WORKER_PREFETCH));
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_save_is_a_sign_of_life_until_it_is_done),
		TEST(the_newest_mark_is_reported),
		TEST(a_drain_is_over_with_a_mark_of_what_was_asked_for),
		TEST(what_is_passed_over_is_reported_at_once_while_it_can_be_mended),
		TEST(what_is_not_whole_and_what_went_wrong_is_reported),
		TEST(graphs_are_reported_with_how_many_were_brought),
		TEST(what_is_lost_is_told_with_the_services_own_words_first),
		TEST(what_was_kept_is_not_lost_any_more),
		TEST(any_news_gives_the_last_pass_more_time),
		TEST(what_others_did_stops_the_command_unless_a_drain_does),
		TEST(news_of_reports_and_flags_is_noted),
		TEST(the_answer_to_a_look_is_waited_for_at_the_end),
		TEST(one_that_dies_again_and_again_drains_all_nodes),
		TEST(a_drain_that_cannot_be_written_is_written_later),
		TEST(on_the_way_out_it_is_started_three_times_more),
		TEST(an_hour_later_it_may_start_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
