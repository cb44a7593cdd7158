/* What is asked after a salvage, of the engine and the workspace, before a run goes on; and where
 * no answer comes, nothing is taken for known. See jobs/run/settle.c. */
#include "faulty_store.h"

#include "attempt_fixture.h"

#include "jobs/run/journal/journal_dir_internal.h"
#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/lease.h"

#define PLAN "{'nodes':1,'grace_ms':5}"

static struct {
	const char *runs;  /* name of the job that runs */
	const char *hides; /* of the one of which the engine does not say whether it does */
	bool mute;         /* it knows its jobs, and says no more of them */
} knows;

static bool is(const char *job, const char *name)
{
	return job && strcmp(job, name) == 0;
}

static int find(struct engine *of, const char *name, const char *prefix, struct err **err)
{
	(void)of, (void)prefix;
	if (said.away)
		return no_answer(err);
	return is(knows.runs, name) || is(knows.hides, name);
}

static int describe(struct engine *of, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	(void)of, (void)prefix;
	if (knows.mute)
		return no_answer(err);
	*ret = (struct engine_status){ .state = ENGINE_UNKNOWN, .reason = "its node is silent" };
	if (is(knows.runs, name))
		ret->state = ENGINE_RUNNING;
	return 0;
}

static struct faulty_store *below; /* the journal */

static void put_faults(void)
{
	struct dir_journal *objects = driver.journal->store;
	AUTO(auto_free) char *folder = fs_join(dir, "state");

	below = faulty_new(folder);
	store_freep(&objects->store);
	objects->store = &below->base;
}

/* The order of an attempt that the journal lacks. */
static void put_order(const char *folder, const char *text)
{
	AUTO(auto_free) char *key = mem_format("runs/r1/%s/order.json", folder);
	AUTO(auto_free) char *order = quoted(text);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(store_put(driver.workspace, key, order, strlen(order), &err), 0);
}

/* After damage behind attempt 1 of the training, which has ended. */
static void begin_settled(void)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)begin(PHASE_TRAIN, PLAN);
	ops.find = find;
	ops.describe = describe;
	memset(&knows, 0, sizeof knows);
	put_faults();
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
	driver.flow.attempt_state = ATTEMPT_NONE;
}

static void end_settled(void)
{
	lease_freep(&driver.lease);
	end();
}

/* Nothing is recorded: it is asked again later. */
static void is_not_known(const char *words, enum exit_code code)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(settle_run(&driver, &err), -1);
	assert_int_equal(err->code, code);
	assert_memory_equal(err->message, "cannot find out yet what is under way: ", 39);
	assert_string_equal(err->message + 39, words);
	assert_recorded(0);
}

static void settles(const char *words)
{
	AUTO(err_freep) struct err *err = NULL;

	if (settle_run(&driver, &err) < 0)
		fail_msg("%s", err->message);
	assert_string_equal(newest("journal.settled", "reason"), words);
}

static void without_an_answer_of_the_engine_nothing_is_known(void **state)
{
	(void)state;
	begin_settled();
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	said.away = true;
	is_not_known("the engine does not answer", EXIT_UNREACHABLE);
	said.away = false;
	knows.runs = "stk-r1-train-2";
	knows.mute = true;
	is_not_known("the engine does not answer", EXIT_UNREACHABLE);
	knows.mute = false;
	knows.runs = NULL;
	knows.hides = "stk-r1-train-2";
	is_not_known("the engine does not say whether job stk-r1-train-2 runs: its node is silent",
		     EXIT_UNREACHABLE);
	knows.runs = knows.hides;
	settles("the workspace has an order of train 2, which the journal lacked; on the engine it "
		"is under way");
	assert_int_equal(newest_int("attempt.intended", "attempt"), 2);
	end_settled();
}

/* Two attempts at once would write over each other's checkpoints. */
static void an_attempt_that_a_later_one_has_replaced_is_ended_first(void **state)
{
	(void)state;
	begin_settled();
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	put_order("train-3", "{'v':1,'nonce':'n3'}");
	knows.runs = "stk-r1-train-2";
	is_not_known("job stk-r1-train-2 runs although a later attempt was begun; it was told to "
		     "end",
		     EXIT_UNREACHABLE);
	assert_int_equal(said.stops, 1);
	is_not_known("job stk-r1-train-2 runs although a later attempt was begun; it was told to "
		     "end",
		     EXIT_UNREACHABLE);
	assert_int_equal(said.stops, 2);
	knows.runs = NULL;
	settles("the workspace has an order of train 3, which the journal lacked; on the engine it "
		"has ended or never was");
	assert_int_equal(newest_int("attempt.intended", "attempt"), 3);
	end_settled();
}

static int refuse_stop(struct engine *of, const char *name, const char *prefix, int64_t grace_ms,
		       struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)grace_ms;
	return err_set(err, EXIT_REFUSED, "not yours");
}

static void one_that_cannot_be_told_to_end_is_not_said_to_be(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_settled();
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	put_order("train-3", "{'v':1,'nonce':'n3'}");
	knows.runs = "stk-r1-train-2";
	ops.stop = refuse_stop;
	is_not_known("not yours", EXIT_REFUSED);
	/* Nor may a driver without a lease tell it. */
	ops.stop = take_stop;
	assert_int_equal(lease_remove(driver.lease, &err), 0);
	assert_int_equal(settle_run(&driver, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_int_equal(said.stops, 0);
	end_settled();
}

/* Without what was found nothing counts as found out. */
static void what_cannot_be_journalled_is_not_settled(void **state)
{
	(void)state;
	begin_settled();
	put_order("precompile-1", "{'v':1,'nonce':'p1'}");
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	for (int found = 0; found < 2; found++) {
		AUTO(err_freep) struct err *err = NULL;

		for (int i = 0; i < 3; i++)
			below->faults[i] = FAULT_REQUEST_LOST;
		below->next = 0; /* the next append is lost, and those that follow are not */
		assert_int_equal(settle_run(&driver, &err), -1);
		assert_string_equal(err->message, "cannot append to the journal of run r1: the "
						  "network is gone");
		driver.flow.attempts[PHASE_PRECOMPILE] = 1; /* the last one alone is lacking */
	}
	assert_recorded(0);
	settles("the workspace has an order of train 2, which the journal lacked; on the engine it "
		"has ended or never was");
	assert_string_equal(newest("attempt.intended", "nonce"), "n2");
	end_settled();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_answer_of_the_engine_nothing_is_known),
		cmocka_unit_test(an_attempt_that_a_later_one_has_replaced_is_ended_first),
		cmocka_unit_test(one_that_cannot_be_told_to_end_is_not_said_to_be),
		cmocka_unit_test(what_cannot_be_journalled_is_not_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
