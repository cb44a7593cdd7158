/*
 * A training job that SageMaker does not know: may it show yet, can it be seen from here, was it
 * deleted? The service is a peer that answers as a test writes it, the workspace is a directory.
 */
#include "tests/unit/engine/watched.h"

#include "jobs/engine/sagemaker/sagemaker_internal.h"

#define LONG_MS (SAGEMAKER_STALE_MS + 1000)
#define IS_OF(account)                                                                             \
	{                                                                                          \
		.headers = "Content-Type: text/xml\r\n",                                           \
		.body = "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>" account    \
			"</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"         \
	}

static const struct peer_reply not_found = {
	.status = 400,
	.headers = "Content-Type: application/x-amz-json-1.1\r\n",
	.body = "{\"__type\":\"ValidationException\",\"message\":\"Requested resource not "
		"found.\"}",
};
static const struct peer_reply ours = IS_OF("123456789012");
static const struct peer_reply theirs = IS_OF("999999999999");
static const struct peer_reply runs = {
	.headers = "Content-Type: application/x-amz-json-1.1\r\n",
	.body = "{\"TrainingJobStatus\":\"InProgress\",\"SecondaryStatus\":\"Starting\"}",
};

/* Begins with the answers of the services in order, the last one again and again. */
static void begin(struct watched *w, const char *account, const char *launcher,
		  const struct peer_reply *const *replies)
{
	size_t count = 0;

	for (; replies[count]; count++)
		w->replies[count] = *replies[count];
	w->plan = json_pack("{s:i, s:{s:{s:s}}, s:{s:s, s:s*}}", "nodes", 2, "spec", "sagemaker",
			    "launcher", launcher, "aws", "region", "eu-west-1", "account", account);
	watched_open(w, &sagemaker_ops, count);
	put(w, ORDER_FILE, "{}");
}

static struct training *job_of(const struct watched *w)
{
	return sagemaker_job_of((struct sagemaker *)w->engine, NAME);
}

/* Makes the caches look as if nothing had been asked for lately. */
static struct engine_status look(const struct watched *w)
{
	AUTO(err_freep) struct err *err = NULL;
	struct engine_status status;

	job_of(w)->asked.ms = job_of(w)->sign.at.ms = 0;
	must(sagemaker_ops.describe(w->engine, NAME, PREFIX, &status, &err), &err);
	return status;
}

/* All that it knows of the job is older. */
static void pass(const struct watched *w, int64_t ms)
{
	struct training *job = job_of(w);

	job->missing.ms -= ms;
	job->missed.ms -= ms;
	job->sign.since.ms -= ms;
	job->uncertain.ms -= ms;
}

static void is_unseen(struct engine_status status)
{
	assert_int_equal(status.state, ENGINE_UNKNOWN);
	assert_string_equal(status.reason, "SageMaker in eu-west-1 does not know the job");
}

static void was_deleted(struct engine_status status)
{
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_false(status.exit_known);
	assert_string_equal(
		status.reason,
		"SageMaker in eu-west-1 does not know the job any more, because it was deleted");
}

static void what_does_not_show_may_yet(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;

	begin(w, NULL, "node", (const struct peer_reply *const[]){ &not_found, NULL });
	assert_int_equal(sagemaker_ops.find(w->engine, NAME, PREFIX, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	err_freep(&err);
	pass(w, SAGEMAKER_SHOWN_MS);
	assert_int_equal(sagemaker_ops.find(w->engine, NAME, PREFIX, &err), 0);
}

static void what_is_not_known_for_long_and_silent_was_deleted(void **state)
{
	struct watched *w = *state;
	struct engine_status status;

	begin(w, "123456789012", "node",
	      (const struct peer_reply *const[]){ &not_found, &not_found, &not_found, &ours,
						  NULL });
	is_unseen(look(w));
	pass(w, LONG_MS);
	/* An agent has written meanwhile. */
	put(w, "node-1/report.json", "{\"state\":\"running\"}");
	is_unseen(look(w));
	pass(w, LONG_MS);
	status = look(w);
	was_deleted(status);
	assert_true(status.silent && status.last_seen.ms > 0);
}

static void what_may_be_elsewhere_was_not(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;

	begin(w, "123456789012", "node",
	      (const struct peer_reply *const[]){ &not_found, &not_found, &theirs, &not_found,
						  &not_found, NULL });
	is_unseen(look(w));
	pass(w, LONG_MS);
	is_unseen(look(w));
	assert_int_equal(w->peer->request_count, 3);
	/* The service is not asked at each look. */
	is_unseen(look(w));
	assert_int_equal(w->peer->request_count, 4);
	/* The job's end is wished for. */
	must(sagemaker_ops.stop(w->engine, NAME, PREFIX, 1000, &err), &err);
	was_deleted(look(w));
}

static void what_was_seen_from_here_is_known_to_be_here(void **state)
{
	struct watched *w = *state;

	begin(w, NULL, "toolkit", (const struct peer_reply *const[]){ &runs, &not_found, NULL });
	assert_int_equal(look(w).state, ENGINE_QUEUED);
	is_unseen(look(w));
	pass(w, LONG_MS);
	was_deleted(look(w));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, watched_setup, watched_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_does_not_show_may_yet),
		TEST(what_is_not_known_for_long_and_silent_was_deleted),
		TEST(what_may_be_elsewhere_was_not),
		TEST(what_was_seen_from_here_is_known_to_be_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
