/* A look at the end of an attempt that fails: what is tried again, what is passed over, and what
 * the end waits for. See jobs/run/attempt/watch_turn.c. */
#include "attempt_fixture.h"

#define TRAINS "{'nodes':1,'metrics':[{'name':'step','regex':'step ([0-9]+)'}]}"
#define COMPILES                                                                                   \
	"{'nodes':1,'compile':{'kind':'neuron'},'metrics':[{'name':'step','regex':'step "          \
	"([0-9]+)'}]}"

static int describe_end(struct engine *of, const char *name, const char *prefix,
			struct engine_status *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)err;
	*ret = (struct engine_status){ .state = ENGINE_ENDED, .exit_known = true };
	return 0;
}

static int refuse_log(struct engine *of, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)offset, (void)max, (void)ret;
	return err_set(err, EXIT_REFUSED, "the log is not yours");
}

static int refuse_report(struct engine *of, const char *name, const char *prefix, int node,
			 struct node_report *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)ret;
	return err_set(err, EXIT_REFUSED, "the report is not yours");
}

static void turn_fails(const char *words)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(watch_turn(&driver, &err), -1);
	if (!strstr(err->message, words))
		fail_msg("%s", err->message);
}

static void turn_works(void)
{
	AUTO(err_freep) struct err *err = NULL;

	if (watch_turn(&driver, &err) < 0)
		fail_msg("%s", err->message);
}

/* The verdict of phase 1 rests on that log. */
static void a_phase_1_whose_log_cannot_be_read_has_not_ended_at_once(void **state)
{
	(void)state;
	(void)begin(PHASE_PRECOMPILE, COMPILES);
	ops.describe = describe_end;
	ops.logs = refuse_log;
	turn_fails("the log is not yours");
	assert_recorded(0);
	end();
	/* The log of a training is no more than evidence, and none is needed of a run that
	 * stops. */
	for (int stops = 0; stops < 2; stops++) {
		(void)begin(stops ? PHASE_PRECOMPILE : PHASE_TRAIN, stops ? COMPILES : TRAINS);
		ops.describe = describe_end;
		ops.logs = refuse_log;
		driver.flow.stop_requested = stops;
		turn_works();
		(void)newest("attempt.ended", "job");
		end();
	}
}

/* Things that were passed over are told before the end that lacks them, and once. */
static void an_end_waits_until_what_it_lacks_is_journalled(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *place = NULL;

	(void)state;
	(void)begin(PHASE_TRAIN, TRAINS);
	/* behind what the other looks tell */
	place = mem_format("%s/state/runs/r1/events/%012d.json", dir, 3);
	ops.describe = describe_end;
	ops.report = refuse_report;
	turn_fails("the report is not yours");
	turn_fails("the report is not yours");
	assert_recorded(0);
	assert_true(watch_is_ending(&driver));
	assert_int_equal(fs_mkdirs(place, &err), 0);
	turn_fails("event 3 of run r1");
	assert_recorded(2);
	assert_int_equal(fs_remove_tree(place, &err), 0);
	assert_int_equal(driver_absorb(&driver, &err), 0); /* the journal can be read */
	for (int i = 0; i < 2; i++)
		turn_fails("the report is not yours"); /* the end itself needs it */
	assert_string_equal(newest("chore.failed", "reason"),
			    "time of the last step: not known: the report is not yours");
	ops.report = say_report;
	turn_works();
	assert_int_equal(count_of("attempt.ended"), 1);
	assert_int_equal(count_of("chore.failed"), 1);
	end();
}

static void a_reason_of_a_stop_that_cannot_be_read_keeps_the_end_open(void **state)
{
	static const char key[] = "runs/r1/train-1/stopped.json";
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	(void)begin(PHASE_TRAIN, "{'engine':'sagemaker','spec':{'sagemaker':{'launcher':'toolkit'}"
				 "},'metrics':[]}");
	ops.describe = describe_end;
	assert_int_equal(store_put(driver.workspace, key, "{", 1, &err), 0);
	turn_fails("stopped.json");
	assert_recorded(0);
	assert_int_equal(store_delete(driver.workspace, key, &err), 0);
	turn_works();
	(void)newest("attempt.ended", "job");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_phase_1_whose_log_cannot_be_read_has_not_ended_at_once),
		cmocka_unit_test(an_end_waits_until_what_it_lacks_is_journalled),
		cmocka_unit_test(a_reason_of_a_stop_that_cannot_be_read_keeps_the_end_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
