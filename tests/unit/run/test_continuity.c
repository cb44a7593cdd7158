/* Did a training go on from its checkpoint? By the first step of its log, and where the service
 * has begun the job anew also by what the agent of node 0 says it then went on from. */
#include "jobs/run/attempt/watch_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

#define RESUMED 10 /* of which the attempt was to go on */
#define NOTHING (-1)

static int64_t restarted_from; /* as the report has it; NOTHING: there is none */

static int tell_report(struct engine *engine, const char *name, const char *prefix, int node,
		       struct node_report *ret, struct err **err)
{
	(void)engine;
	(void)name;
	(void)prefix;
	(void)err;
	assert_int_equal(node, 0);
	MESSAGE_SET_TEXT(ret, state, "running");
	MESSAGE_SET(ret, restart, 1);
	if (restarted_from != NOTHING) {
		MESSAGE_MARK(ret, resumed);
		MESSAGE_SET(&ret->resumed, step, restarted_from);
	}
	return 1;
}

struct judged {
	int count;
	enum continuity continuity;
	int64_t step, first_step;
	char *reason; /* owned; NULL: none */
};

static void note(void *arg, const struct event *ev, json_t *row)
{
	struct judged *judged = arg;
	const char *reason = js_str(row, "reason");

	judged->count++;
	assert_int_equal(ev->kind, EV_TRAIN_CONTINUITY);
	judged->continuity = ev->continuity;
	judged->step = ev->step;
	judged->first_step = ev->first_step;
	judged->reason = reason ? mem_copy(reason) : NULL;
}

/* Returns what is recorded of a training whose log begins at `first`. Its reason is yours to
 * free. */
static struct judged judge(int64_t first, int64_t restarted)
{
	static const struct engine_ops ops = { .name = "local", .report = tell_report };
	char dir[] = "/tmp/stoker-continuity-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	struct judged judged = { 0 };
	struct driver_options options = { .on_event = note, .arg = &judged };
	struct engine engine = { &ops };
	struct driver driver = {
		.run = "r1", .options = &options, .engine = &engine, .facts.resume_step = RESUMED
	};
	struct attempt_watch watch = { .driver = &driver,
				       .phase = PHASE_TRAIN,
				       .attempt = 2,
				       .nodes = 1,
				       .first_step = first };

	assert_int_equal(metrics_new(NULL, &watch.metrics, &err), 0);
	restarted_from = restarted;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(continuity_record(&watch, false, &err), 0);
	/* The verdict is said once. */
	assert_int_equal(continuity_record(&watch, true, &err), 0);
	assert_int_equal(judged.count, 1);
	metrics_freep(&watch.metrics);
	journal_freep(&driver.journal);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
	return judged;
}

static void a_training_is_held_against_the_checkpoint_that_it_had(void **state)
{
	static const struct {
		int64_t first, restarted; /* NOTHING: the service has begun nothing anew */
		enum continuity continuity;
		int64_t step; /* against which it was held */
		const char *reason;
	} rows[] = {
		{ 11, NOTHING, CONTINUITY_VERIFIED, 10, NULL },
		{ 1010, NOTHING, CONTINUITY_VERIFIED, 10, NULL },
		{ 1011, NOTHING, CONTINUITY_FAILED, 10, "far ahead" },
		{ 1, NOTHING, CONTINUITY_FAILED, 10, "before" },
		/* The command went on from a later one that the attempt itself had saved. */
		{ 5001, 5000, CONTINUITY_VERIFIED, 5000, NULL },
		/* A later checkpoint is no excuse for a command that went on from neither. */
		{ 1, 5000, CONTINUITY_FAILED, 10, "before" },
		{ 5001, 6000, CONTINUITY_FAILED, 10, "far ahead" },
		{ 9001, 5000, CONTINUITY_VERIFIED, 5000, NULL },
		{ 10001, 5000, CONTINUITY_FAILED, 10, "far ahead" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct judged judged = judge(rows[i].first, rows[i].restarted);
		AUTO(auto_free) char *reason = judged.reason;

		assert_int_equal(judged.continuity, rows[i].continuity);
		assert_int_equal(judged.step, rows[i].step);
		assert_int_equal(judged.first_step, rows[i].first);
		assert_int_equal(!reason, !rows[i].reason);
		if (reason && rows[i].reason && !strstr(reason, rows[i].reason))
			fail_msg("row %zu: %s", i, reason);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_training_is_held_against_the_checkpoint_that_it_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
