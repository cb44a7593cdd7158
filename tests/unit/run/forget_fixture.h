/*
 * A run with a workspace of its own, on a journal of any kind, and what is said when it is
 * forgotten. For one file of tests each.
 */
#ifndef TEST_RUN_FORGET_FIXTURE_H
#define TEST_RUN_FORGET_FIXTURE_H

#include "jobs/run/journal/forget.h"
#include "jobs/run/journal/keepsakes.h"
#include "tests/unit/checkpoint/trees.h"

static const char *scheme;
static char dir[64], state[80], work[80], copies[80];
static struct journal *journal;

static inline int set_up(void **unused)
{
	AUTO(auto_free) char *url = NULL;
	struct err *err = NULL;

	(void)unused;
	snprintf(dir, sizeof dir, "/tmp/stoker-forget-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(state, sizeof state, "%s/state", dir);
	snprintf(work, sizeof work, "%s/work", dir);
	snprintf(copies, sizeof copies, "%s/copies", dir);
	url = mem_format("%s:%s", scheme, state);
	return journal_open(url, JOURNAL_WRITE, &journal, &err);
}

static inline int tear_down(void **unused)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)unused;
	journal_freep(&journal);
	return fs_remove_tree(dir, &err);
}

static inline void append(struct event *ev, int64_t seq)
{
	struct err *err = NULL;

	ev->seq = seq;
	ev->at.ms = 1795000000000 + seq;
	assert_int_equal(journal_append(journal, "r", ev, &err), 1);
	assert_no_error(err);
}

/* `url` and `workspace`: of the plan, may be NULL. */
static inline void begin_run(const char *workspace, const char *url)
{
	struct event ev = { .kind = EV_RUN_CREATED };
	json_auto_t *plan = json_pack("{s:s*, s:{s:s, s:s*}}", "workspace", workspace, "checkpoint",
				      "kind", "hf", "url", url);

	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	append(&ev, 1);
}

static inline void end_run(void)
{
	struct event ev = { .kind = EV_RUN_ENDED };

	EVENT_SET(&ev, state, OUTCOME_SUCCEEDED);
	EVENT_SET(&ev, exit_code, 0);
	append(&ev, 2);
}

static inline json_t *forget(const struct forget_options *options)
{
	struct err *err = NULL;
	json_t *ret = NULL;
	int result = run_forget(journal, "r", options, NULL, NULL, NULL, &ret, &err);

	assert_no_error(err);
	assert_int_equal(result, 0);
	return ret;
}

/* The message begins so, and the run is still there. */
static inline void assert_refused(const struct forget_options *options, enum exit_code code,
				  const char *words)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *ret = NULL;

	assert_int_equal(run_forget(journal, "r", options, NULL, NULL, NULL, &ret, &err), -1);
	assert_int_equal(err->code, code);
	if (!strstr(err->message, words))
		fail_msg("%s", err->message);
}

static inline int count_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev;
	(void)row;
	(void)err;
	++*(int *)arg;
	return 0;
}

static inline int events(void)
{
	struct err *err = NULL;
	int count = 0;

	journal_read(journal, "r", 1, count_event, &count, &err);
	assert_no_error(err);
	return count;
}

static inline bool there(const char *root, const char *path)
{
	AUTO(auto_free) char *whole = fs_join(root, path);

	return fs_exists(whole);
}

static const struct forget_options plain, dry = { .dry_run = true },
					  all = { .with_checkpoints = true };

static inline int find_kept(const char *run)
{
	AUTO(err_freep) struct err *err = NULL;
	int kept = run_find_kept(journal, run, &err);

	assert_null(err);
	return kept;
}

/* Kept are a complete checkpoint, the files of the agent's node, those that all nodes sent. */
static inline void make_only_copies(void)
{
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-1/checkpoints");
	AUTO(auto_free) char *of_node = fs_join(work, "runs/r/train-2/node-1/checkpoints");

	make_hf(saved, "checkpoint-10", 10);
	make_hf(of_node, "checkpoint-20", 20);
	put_text(saved, "checkpoint-15/trainer_state.json", "{"); /* cut short */
	put_text(work, "runs/r/train-1/output/model", "1234");
	put_text(work, "runs/r/outputs/train-2/node-0/table", "12");
	put_text(work, "runs/r/outputs/.part/x", "1");
	put_text(work, "runs/r/train-0/output/none", "1"); /* no attempt */
	put_text(work, "runs/r/train-1/log", "1");
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
