/* What is asked after a salvage, of the engine and the workspace, before a run goes on; and where
 * no answer comes, nothing is taken for known. See jobs/run/settle.c. */
#include "faulty_store.h"

#include "attempt_fixture.h"

#include "jobs/run/journal/journal_dir_internal.h"
#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/lease.h"

#include <time.h>
#include <utime.h>

#define PLAN "{'nodes':1,'grace_ms':5}"

static struct {
	const char *ended; /* name of the job that has ended */
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
	return is(knows.ended, name) || is(knows.runs, name) || is(knows.hides, name);
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
	if (is(knows.ended, name))
		ret->state = ENGINE_ENDED;
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

/* The next one, and not those that follow. */
static void lose_an_append(void)
{
	for (int i = 0; i < 3; i++)
		below->faults[i] = FAULT_REQUEST_LOST;
	below->next = 0;
}

/* The order of an attempt that the journal lacks. */
static void put_order(const char *folder, const char *text)
{
	AUTO(auto_free) char *key = mem_format("runs/r1/%s/order.json", folder);
	AUTO(auto_free) char *order = quoted(text);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(store_put(driver.workspace, key, order, strlen(order), &err), 0);
}

/* Begins after damage behind attempt 1 of the training, which has ended. */
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
	knows.hides = "stk-r1-train-2"; /* it may run yet */
	is_not_known("the engine does not say whether job stk-r1-train-2 runs: its node is silent",
		     EXIT_UNREACHABLE);
	knows.hides = NULL;
	knows.ended = "stk-r1-train-2";
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
	/* A driver without a lease may not tell the job. */
	ops.stop = take_stop;
	assert_int_equal(lease_remove(driver.lease, &err), 0);
	assert_int_equal(settle_run(&driver, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_int_equal(said.stops, 0);
	end_settled();
}

/* Nothing counts as found out unless it was journalled. */
static void what_cannot_be_journalled_is_not_settled(void **state)
{
	(void)state;
	begin_settled();
	put_order("precompile-1", "{'v':1,'nonce':'p1'}");
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	for (int found = 0; found < 2; found++) {
		AUTO(err_freep) struct err *err = NULL;

		lose_an_append();
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

/* ---- attempts that may be under way ---- */

#define IS_OVER(which)                                                                             \
	"the workspace has an order of " which                                                     \
	", which the journal lacked; on the engine it has ended or never was"
#define IS_UNDER_WAY(which)                                                                        \
	"the workspace has an order of " which                                                     \
	", which the journal lacked; on the engine it is under way"
#define NONE_LACKS "the workspace has no attempt that the journal lacks"

/* The attempts that were recorded as intended, in their order. */
static void assert_intended(const char *want)
{
	AUTO(sb_release) struct sb got = SB_INIT;
	size_t i;
	const json_t *row;

	json_array_foreach (recorded, i, row)
		if (js_is(row, "event", "attempt.intended"))
			sb_addf(&got, "%s-%lld ", js_str(row, "phase"),
				(long long)js_int(row, "attempt", 0));
	assert_string_equal(got.text ? got.text : "", want);
}

/* Sets the order's time to so many seconds ago. */
static void date_order(const char *folder, time_t ago)
{
	AUTO(auto_free) char *path = mem_format("%s/ws/runs/r1/%s/order.json", dir, folder);
	struct utimbuf times = { time(NULL) - ago, time(NULL) - ago };

	assert_int_equal(utime(path, &times), 0);
}

static void what_is_no_attempt_or_is_journalled_lacks_nothing(void **state)
{
	static const char *const folders[] = { "train-1",    "train-0",    "train2-7", "train",
					       "training-9", "claims/key", "train-x" };

	(void)state;
	begin_settled();
	for (size_t i = 0; i < STK_LENGTH(folders); i++)
		put_order(folders[i], "{'v':1,'nonce':'x'}");
	settles(NONE_LACKS);
	assert_intended("");
	end_settled();
}

static void the_newest_of_a_phase_is_taken_up(void **state)
{
	static const char *const folders[] = { "train-2", "train-12", "train-9", "train-010" };

	(void)state;
	begin_settled();
	for (size_t i = 0; i < STK_LENGTH(folders); i++)
		put_order(folders[i], "{'v':1,'nonce':'x'}");
	settles(IS_OVER("train 12"));
	assert_intended("train-12 ");
	end_settled();
}

/* The last of two phases is the one that runs, else the one that was ordered last, else the later
 * phase. */
static void of_two_phases_the_last_is_taken_up_last(void **state)
{
	static const struct {
		const char *runs;
		time_t precompile_ago, train_ago;
		const char *words, *intended;
	} rows[] = {
		{ NULL, 60, 10, IS_OVER("train 2"), "precompile-1 train-2 " },
		{ NULL, 10, 60, IS_OVER("precompile 1"), "train-2 precompile-1 " },
		{ NULL, 10, 10, IS_OVER("train 2"), "precompile-1 train-2 " },
		{ "stk-r1-precompile-1", 60, 10, IS_UNDER_WAY("precompile 1"),
		  "train-2 precompile-1 " },
		{ "stk-r1-train-2", 10, 60, IS_UNDER_WAY("train 2"), "precompile-1 train-2 " },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_settled();
		put_order("precompile-1", "{'v':1,'nonce':'p1'}");
		put_order("train-2", "{'v':1,'nonce':'n2'}");
		date_order("precompile-1", rows[i].precompile_ago);
		date_order("train-2", rows[i].train_ago);
		knows.runs = rows[i].runs;
		settles(rows[i].words);
		assert_intended(rows[i].intended);
		end_settled();
	}
}

/* The attempt that the journal shows open may have a job, too. */
static void an_attempt_that_the_journal_shows_open_is_ended_before_a_later_one_goes_on(void **state)
{
	(void)state;
	begin_settled();
	driver.flow.state = FLOW_TRAIN;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	knows.runs = "stk-r1-train-1";
	is_not_known("job stk-r1-train-1 runs although a later attempt was begun; it was told to "
		     "end",
		     EXIT_UNREACHABLE);
	assert_int_equal(said.stops, 1);
	end_settled();
	/* The same of another phase. */
	begin_settled();
	driver.flow.state = FLOW_PRECOMPILE;
	driver.flow.phase = PHASE_PRECOMPILE;
	driver.flow.attempts[PHASE_PRECOMPILE] = 1;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	knows.runs = "stk-r1-precompile-1";
	is_not_known("job stk-r1-precompile-1 runs although a later attempt was begun; it was told "
		     "to end",
		     EXIT_UNREACHABLE);
	end_settled();
	/* The open attempt goes on if nothing is newer. */
	begin_settled();
	driver.flow.state = FLOW_TRAIN;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	knows.runs = "stk-r1-train-1";
	settles(NONE_LACKS);
	assert_int_equal(said.stops, 0);
	end_settled();
}

/* ---- record of a settled attempt ---- */

static void an_intent_is_made_of_its_order(void **state)
{
	(void)state;
	begin_settled();
	put_order("train-2", "{'v':1,'job':'of-old','nonce':'n2','resume_from':'/c/7','resume_step'"
			     ":7,'compile':{'workers':3,'lock':'k1'}}");
	settles(IS_OVER("train 2"));
	assert_string_equal(newest("attempt.intended", "job"), "of-old");
	assert_string_equal(newest("attempt.intended", "nonce"), "n2");
	assert_string_equal(newest("attempt.intended", "resumed_from"), "/c/7");
	assert_int_equal(newest_int("attempt.intended", "step"), 7);
	assert_int_equal(newest_int("attempt.intended", "workers"), 3);
	assert_string_equal(newest("attempt.intended", "graph_key"), "k1");
	end_settled();
}

/* A member without the one that goes with it says nothing. */
static void half_of_an_order_is_not_half_an_intent(void **state)
{
	static const struct {
		const char *order, *absent;
	} rows[] = { { "{'v':1,'resume_from':'/c/7'}", "resumed_from" },
		     { "{'v':1,'resume_step':7}", "step" },
		     { "{'v':1,'compile':{'lock':'k1'}}", "workers" },
		     { "{'v':1}", "graph_key" } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_settled();
		put_order("train-2", rows[i].order);
		settles(IS_OVER("train 2"));
		assert_null(newest_value("attempt.intended", rows[i].absent));
		end_settled();
	}
}

/* The order may say more than the names, so it is waited for. */
static void an_order_that_does_not_come_is_waited_for(void **state)
{
	AUTO(auto_free) char *folder = NULL;
	struct faulty_store *store;

	(void)state;
	begin_settled();
	put_order("train-2", "{'v':1,'nonce':'n2'}");
	folder = fs_join(dir, "ws");
	store = faulty_new(folder);
	store_freep(&driver.workspace);
	driver.workspace = &store->base;
	for (int call = 0; call < 3; call++) { /* the folders, the look, the order */
		faulty_lose(store, call, 1);
		is_not_known("the network is gone", EXIT_REFUSED);
	}
	settles(IS_OVER("train 2"));
	assert_string_equal(newest("attempt.intended", "nonce"), "n2");
	end_settled();
}

/* The names of an attempt are known without one, and nothing else is made up. */
static void without_a_readable_order_the_names_are_enough(void **state)
{
	static const char *const orders[] = { "{", "{'v':1,'job':5}", "", NULL };
	static const char *const unknown[] = { "resumed_from", "step", "workers", "graph_key" };
	char nonce[FLOW_ID_MAX];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(orders); i++) {
		begin_settled();
		driver.flow.seed = 11;
		if (orders[i])
			put_order("train-2", orders[i]);
		else
			put_order("train-2/node-0", "{}"); /* without an order at all */
		flow_nonce(&driver.flow, PHASE_TRAIN, 2, nonce);
		settles(IS_OVER("train 2"));
		assert_string_equal(newest("attempt.intended", "job"), "stk-r1-train-2");
		assert_string_equal(newest("attempt.intended", "nonce"), nonce);
		for (size_t k = 0; k < STK_LENGTH(unknown); k++)
			assert_null(newest_value("attempt.intended", unknown[k]));
		end_settled();
	}
}

static void a_run_that_is_about_to_end_takes_up_nothing_that_is_over(void **state)
{
	(void)state;
	for (int runs = 0; runs < 2; runs++) {
		begin_settled();
		driver.flow.state = FLOW_ENDING;
		put_order("train-2", "{'v':1,'nonce':'n2'}");
		knows.runs = runs ? "stk-r1-train-2" : NULL;
		settles(runs ? IS_UNDER_WAY("train 2") : IS_OVER("train 2"));
		assert_intended(runs ? "train-2 " : "");
		end_settled();
	}
}

static void a_stop_that_was_lost_is_requested_again(void **state)
{
	static const struct {
		const char *reason;
		bool requested, ending;
		const char *want; /* NULL: none is */
	} rows[] = { { "enough", false, false, "enough" },
		     { "", false, false, "requested before the journal was damaged" },
		     { "enough", true, false, NULL },
		     { "enough", false, true, NULL } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;

		begin_settled();
		driver.facts.stop_lost = true;
		snprintf(driver.facts.lost_stop, sizeof driver.facts.lost_stop, "%s",
			 rows[i].reason);
		driver.flow.stop_requested = rows[i].requested;
		if (rows[i].ending)
			driver.flow.state = FLOW_ENDING;
		if (rows[i].want) { /* nor is it lost once more */
			lose_an_append();
			assert_int_equal(settle_run(&driver, &err), -1);
			assert_recorded(0);
		}
		settles(NONE_LACKS);
		assert_recorded(rows[i].want ? 2 : 1);
		if (rows[i].want)
			assert_string_equal(newest("request.stop", "reason"), rows[i].want);
		end_settled();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_answer_of_the_engine_nothing_is_known),
		cmocka_unit_test(an_attempt_that_a_later_one_has_replaced_is_ended_first),
		cmocka_unit_test(one_that_cannot_be_told_to_end_is_not_said_to_be),
		cmocka_unit_test(what_cannot_be_journalled_is_not_settled),
		cmocka_unit_test(what_is_no_attempt_or_is_journalled_lacks_nothing),
		cmocka_unit_test(the_newest_of_a_phase_is_taken_up),
		cmocka_unit_test(of_two_phases_the_last_is_taken_up_last),
		cmocka_unit_test(
			an_attempt_that_the_journal_shows_open_is_ended_before_a_later_one_goes_on),
		cmocka_unit_test(an_intent_is_made_of_its_order),
		cmocka_unit_test(half_of_an_order_is_not_half_an_intent),
		cmocka_unit_test(an_order_that_does_not_come_is_waited_for),
		cmocka_unit_test(without_a_readable_order_the_names_are_enough),
		cmocka_unit_test(a_run_that_is_about_to_end_takes_up_nothing_that_is_over),
		cmocka_unit_test(a_stop_that_was_lost_is_requested_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
