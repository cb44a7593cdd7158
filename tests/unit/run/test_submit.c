/* Submissions: what the engine may answer and what comes of it, and what an agent is given. An
 * outcome is journalled later where the journal refused it, and the engine is not asked to start
 * the job once more. */
#include "jobs/run/attempt/watch_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../quoted.h"
#include "aws/credentials/secret.h"
#include "jobs/base/fs/fs.h"
#include "jobs/store/order.h"

static void note(void *arg, const struct event *ev, json_t *row)
{
	(void)row;
	*(struct event *)arg = *ev;
}

/* Records what the engine said of a job before. It has no function `submit`. */
static void record_again(bool unsure, enum event_kind kind)
{
	static const struct engine_ops ops = { .name = "local" };
	char dir[] = "/tmp/stoker-submit-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	struct event recorded = { 0 };
	struct driver_options options = { .on_event = note, .arg = &recorded };
	struct engine engine = { &ops };
	struct driver driver = { .run = "r1",
				 .options = &options,
				 .engine = &engine,
				 .submitted = true,
				 .submit_unsure = unsure };
	const struct effect effect = {
		.kind = EFFECT_SUBMIT, .phase = PHASE_TRAIN, .attempt = 2, .job = "stk-r1-train-2"
	};
	int64_t wait_ms = 0;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(submit_job(&driver, &effect, &wait_ms, &err), 0);
	assert_int_equal(recorded.kind, kind);
	assert_int_equal(recorded.attempt, 2);
	assert_int_equal(wait_ms, 0);
	journal_freep(&driver.journal);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

static void a_job_that_was_submitted_is_not_submitted_again(void **state)
{
	(void)state;
	record_again(false, EV_ATTEMPT_SUBMITTED);
	record_again(true, EV_ATTEMPT_UNCERTAIN);
}

/* ---- answers of the engine ---- */

#define PLAN                                                                                       \
	"{'engine':'sagemaker','nodes':1,'workspace':'/w','source':{'bundle':'s/x.tar.gz',"        \
	"'links':[]},'secrets':{},'metrics':[],'stall':{'mode':'auto'},'checkpoint':{'kind':"      \
	"'auto','sync':'none','grace_ms':1,'on_mismatch':'stop'},'phases':[{'phase':'train',"      \
	"'command':['train'],'env':{}}],'spec':{'sagemaker':{'launcher':'toolkit'}}}"

static char dir[64];
static struct event recorded;
static enum exit_code answer;
static bool passes; /* the refusal may pass by itself */
static int outcome; /* if it is not refused; with words where that is not 0 */
static struct driver_options options = { .on_event = note, .arg = &recorded };
static struct driver driver;

static int refuse(struct engine *engine, const struct engine_job *job, struct err **err)
{
	(void)engine;
	assert_string_equal(job->name, "stk-r1-train-1");
	assert_non_null(job->order);
	if (answer == EXIT_DONE && outcome != 0)
		(void)!err_set(err, EXIT_UNREACHABLE, "the answer was cut short");
	if (answer == EXIT_DONE)
		return outcome;
	err_set(err, answer, "no such queue");
	err_hint(err, "name another queue");
	(*err)->os_errno = passes ? EAGAIN : 0;
	return -1;
}

static int submit(int64_t *ret_wait_ms, struct err **err)
{
	static const struct effect effect = {
		.kind = EFFECT_SUBMIT, .phase = PHASE_TRAIN, .attempt = 1, .job = "stk-r1-train-1"
	};

	return submit_job(&driver, &effect, ret_wait_ms, err);
}

static int begin(void **state)
{
	static const struct engine_ops ops = { .name = "sagemaker", .submit = refuse };
	static struct engine engine = { &ops };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-submit-XXXXXX");
	assert_non_null(mkdtemp(dir));
	recorded = (struct event){ 0 };
	passes = false;
	outcome = 0;
	driver = (struct driver){ .run = "r1", .options = &options, .engine = &engine };
	driver.plan = quoted_json(PLAN);
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
	return store_open(dir, &driver.workspace, &err);
}

static int end(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	lease_freep(&driver.lease);
	journal_freep(&driver.journal);
	store_freep(&driver.workspace);
	secret_strv_freep(&driver.job_env);
	json_decref(driver.plan);
	return fs_remove_tree(dir, &err);
}

static void a_service_that_is_asked_too_fast_is_asked_again_ever_later(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	answer = EXIT_BUSY;
	for (int64_t wanted = 1000; wanted <= 8000; wanted *= 2) {
		assert_int_equal(submit(&wait_ms, &err), 0);
		assert_int_equal(wait_ms, wanted);
		assert_false(driver.submitted);
	}
	assert_int_equal(submit(&wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_string_equal(err->message, "no such queue");
	err_freep(&err);
	answer = EXIT_DONE;
	assert_int_equal(submit(&wait_ms, &err), 0);
	assert_int_equal(recorded.kind, EV_ATTEMPT_SUBMITTED);
	assert_true(driver.submitted);
	assert_int_equal(driver.crowded, 0);
}

static void ends_with(enum exit_code code, enum failure_class class)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	answer = code;
	assert_int_equal(submit(&wait_ms, &err), 0);
	assert_int_equal(recorded.kind, EV_ATTEMPT_ENDED);
	assert_int_equal(recorded.class, class);
	assert_false(driver.submitted);
}

static void a_definite_refusal_ends_the_attempt(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	ends_with(EXIT_REFUSED, CLASS_QUOTA_PERMISSION);
	ends_with(EXIT_SPEC, CLASS_USER_CONFIG);
	/* A refusal that may pass by itself is definite only when it was said several times. */
	passes = true;
	recorded.kind = EV_DRIVER_LEFT;
	answer = EXIT_REFUSED;
	assert_int_equal(submit(&wait_ms, &err), -1);
	assert_int_equal(recorded.kind, EV_DRIVER_LEFT);
	assert_string_equal(err->message, "no such queue");
	driver.away_times = 3;
	ends_with(EXIT_REFUSED, CLASS_QUOTA_PERMISSION);
}

/* Nothing is known of the attempt then, so nothing is journalled of it. */
static void a_service_that_does_not_answer_ends_no_attempt(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	answer = EXIT_UNREACHABLE;
	recorded.kind = EV_DRIVER_LEFT;
	driver.away_times = 100;
	assert_int_equal(submit(&wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_int_equal(recorded.kind, EV_DRIVER_LEFT);
	assert_false(driver.submitted);
}

static void a_submission_of_unknown_outcome_is_journalled_as_that(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	answer = EXIT_DONE;
	outcome = 1;
	assert_int_equal(submit(&wait_ms, &err), 0);
	assert_int_equal(recorded.kind, EV_ATTEMPT_UNCERTAIN);
	assert_true(driver.submitted);
	assert_true(driver.submit_unsure);
	assert_string_equal(driver.submit_words, "the answer was cut short");
	free(driver.submit_words);
}

static void without_a_lease_nothing_is_submitted(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	answer = EXIT_DONE;
	assert_int_equal(lease_remove(driver.lease, &err), 0);
	assert_int_equal(submit(&wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_true(driver.stood_down);
	assert_false(driver.submitted);
}

static void an_agent_that_is_not_installed_is_named(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	json_decref(driver.plan);
	driver.plan = quoted_json("{'engine':'batch','spec':{'batch':{'agent':'/opt/"
				  "stoker'}},'compile':{},'phases':[]}");
	driver.agent_prefix = mem_copy("agents/0/"); /* published before */
	setenv("STOKER_AGENT", "/nowhere", 1);
	assert_int_equal(submit(&wait_ms, &err), -1);
	unsetenv("STOKER_AGENT");
	assert_non_null(strstr(err->message, "cannot write the order of stk-r1-train-1"));
	assert_non_null(strstr(err->message, "/nowhere"));
	err_freep(&err);
	free(TAKE(driver.agent_prefix));
	setenv("STOKER_AGENT", "/nowhere", 1);
	assert_int_equal(submit(&wait_ms, &err), -1);
	unsetenv("STOKER_AGENT");
	assert_non_null(strstr(err->message, "/nowhere"));
}

/* An agent that is baked into the image says by its digest whether it is this stoker's. */
static void the_order_of_an_agent_in_the_image_names_the_agent(void **state)
{
	AUTO(auto_free) char *agent = mem_format("%s/stoker-node", dir);
	AUTO(auto_free) char *path = mem_format("%s/runs/r1/train-1/order.json", dir);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *order = NULL;
	int64_t wait_ms = 0;

	(void)state;
	json_object_set_new(driver.plan, "engine", json_string("batch"));
	json_object_set_new(driver.plan, "spec", quoted_json("{'batch':{'agent':'/opt/stoker'}}"));
	driver.agent_prefix = mem_copy("agents/0/"); /* published before */
	assert_int_equal(fs_write_atomic(agent, "agent", 5, 0755, &err), 0);
	setenv("STOKER_AGENT", dir, 1);
	answer = EXIT_DONE;
	assert_int_equal(submit(&wait_ms, &err), 0);
	unsetenv("STOKER_AGENT");
	assert_int_equal(js_load(path, 65536, &order, &err), 0);
	/* sha256sum of "agent" */
	assert_string_equal(js_str(order, "agent"),
			    "d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824");
	free(driver.agent_prefix);
}

static void a_secret_that_is_missing_keeps_a_job_from_being_submitted(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	(void)state;
	json_decref(driver.plan);
	driver.plan = quoted_json("{'engine':'local','secrets':{'TOKEN':'env:NOBODYS'}}");
	assert_int_equal(submit(&wait_ms, &err), -1);
	assert_non_null(strstr(err->message, "TOKEN"));
	assert_false(driver.submitted);
}

static int cannot_say(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	(void)engine, (void)name, (void)prefix;
	return err_set(err, EXIT_UNREACHABLE, "no answer");
}

static int finds_nothing(struct engine *engine, const char *name, const char *prefix,
			 struct err **err)
{
	(void)engine, (void)name, (void)prefix, (void)err;
	return 0;
}

static int finds_it(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	(void)engine, (void)err;
	assert_string_equal(name, "stk-r1-train-1");
	assert_string_equal(prefix, "runs/r1/train-1/");
	return 1;
}

/* Looks for the job with an engine that has this function. */
static int look_for_job(int (*find)(struct engine *, const char *, const char *, struct err **),
			struct err **err)
{
	const struct engine_ops ops = { .name = "batch", .find = find };
	struct engine engine = { &ops };
	const struct effect effect = {
		.kind = EFFECT_FIND, .phase = PHASE_TRAIN, .attempt = 1, .job = "stk-r1-train-1"
	};

	driver.engine = &engine;
	return submit_find(&driver, &effect, err);
}

static void a_job_that_is_not_found_for_want_of_an_answer_is_not_missing(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	recorded.kind = EV_DRIVER_LEFT;
	assert_int_equal(look_for_job(cannot_say, &err), -1);
	assert_string_equal(err->message, "no answer");
	assert_int_equal(recorded.kind, EV_DRIVER_LEFT);
}

/* limits.unreachable counts anew from then on. */
static void an_engine_that_lists_a_job_has_spoken_of_it(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	answer = EXIT_UNREACHABLE;
	assert_int_equal(submit(&wait_ms, &err), -1);
	err_freep(&err);
	assert_int_equal(look_for_job(cannot_say, &err), -1);
	err_freep(&err);
	assert_int_equal(look_for_job(finds_nothing, &err), 0);
	assert_int_equal(driver.job_seen_at.ms, 0);
	assert_int_equal(look_for_job(finds_it, &err), 0);
	assert_true(driver.job_seen_at.ms > 0);
}

static void an_engine_that_takes_a_job_has_spoken_of_it(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	answer = EXIT_DONE;
	assert_int_equal(submit(&wait_ms, &err), 0);
	assert_true(driver.job_seen_at.ms > 0);
}

static void a_job_that_is_found_counts_as_submitted(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.submit_unsure = true;
	assert_int_equal(look_for_job(finds_it, &err), 0);
	assert_int_equal(recorded.kind, EV_ATTEMPT_SUBMITTED);
	assert_int_equal(recorded.attempt, 1);
	assert_true(driver.submitted);
	driver.submit_unsure = false;
	assert_int_equal(look_for_job(finds_nothing, &err), 0);
	assert_int_equal(recorded.kind, EV_ATTEMPT_MISSING);
	assert_false(driver.submitted);
}

/* A service that takes no jobs is one that does not answer: the next try has to wait. Who takes the
 * run over knows nothing of that, and submits at once. */
static void a_job_without_an_answer_that_is_missing_is_not_submitted_again_at_once(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.submit_unsure = true;
	driver.submit_words = mem_copy("no answer to the submission");
	assert_int_equal(look_for_job(finds_nothing, &err), -1);
	assert_int_equal(recorded.kind, EV_ATTEMPT_MISSING);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_string_equal(err->message, "no answer to the submission");
	err_freep(&err);
	assert_int_equal(look_for_job(finds_nothing, &err), 0);
	free(driver.submit_words);
}

/* ---- the environment of agents ---- */

static const char *value_in(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

static void an_agent_gets_its_secrets_and_little_else(void **state)
{
	AUTO(secret_strv_freep) char **env = NULL;
	AUTO(secret_strv_freep) char **none = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *plan = quoted_json("{'engine':'local','secrets':{'TOKEN':'env:OURS',"
					"'AWS_PROFILE':'env:OURS'}}");
	json_auto_t *far = quoted_json("{'engine':'batch','spec':{'batch':{'agent':'/a'}},"
				       "'secrets':{'TOKEN':'env:OURS'}}");
	json_auto_t *wrong = quoted_json("{'engine':'local','secrets':{'TOKEN':'env:NOBODYS'}}");
	json_auto_t *in_bucket = quoted_json("{'engine':'local','workspace':'s3://bucket/w'}");
	AUTO(secret_strv_freep) char **lent = NULL;

	(void)state;
	setenv("OURS", "s3cr3t", 1);
	setenv("STRAY", "x", 1);
	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	assert_int_equal(submit_job_env(plan, &env, &err), 0);
	assert_string_equal(value_in(env, "TOKEN"), "s3cr3t");
	/* The agent's own profile may be another than the command's. */
	assert_string_equal(value_in(env, ORDER_SECRET "AWS_PROFILE"), "s3cr3t");
	assert_null(value_in(env, "AWS_PROFILE"));
	assert_null(value_in(env, "STRAY"));
	assert_string_equal(value_in(env, "PATH"), getenv("PATH"));
	assert_null(value_in(env, "AWS_ACCESS_KEY_ID")); /* nothing of it is on AWS */
	assert_int_equal(submit_job_env(in_bucket, &lent, &err), 0);
	assert_string_equal(value_in(lent, "AWS_ACCESS_KEY_ID"), "AKID");
	assert_string_equal(value_in(lent, "PATH"), getenv("PATH"));
	assert_null(value_in(env, "OURS"));
	/* The job's role gives access in a container. */
	assert_int_equal(submit_job_env(far, &none, &err), 0);
	assert_null(none[0]);
	driver.job_env = NULL;
	assert_int_equal(submit_job_env(wrong, &driver.job_env, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, "TOKEN"));
	assert_null(driver.job_env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_was_submitted_is_not_submitted_again),
		cmocka_unit_test_setup_teardown(
			a_service_that_is_asked_too_fast_is_asked_again_ever_later, begin, end),
		cmocka_unit_test_setup_teardown(a_definite_refusal_ends_the_attempt, begin, end),
		cmocka_unit_test_setup_teardown(a_service_that_does_not_answer_ends_no_attempt,
						begin, end),
		cmocka_unit_test_setup_teardown(
			a_submission_of_unknown_outcome_is_journalled_as_that, begin, end),
		cmocka_unit_test_setup_teardown(without_a_lease_nothing_is_submitted, begin, end),
		cmocka_unit_test_setup_teardown(an_agent_that_is_not_installed_is_named, begin,
						end),
		cmocka_unit_test_setup_teardown(the_order_of_an_agent_in_the_image_names_the_agent,
						begin, end),
		cmocka_unit_test_setup_teardown(
			a_secret_that_is_missing_keeps_a_job_from_being_submitted, begin, end),
		cmocka_unit_test_setup_teardown(
			a_job_that_is_not_found_for_want_of_an_answer_is_not_missing, begin, end),
		cmocka_unit_test_setup_teardown(an_engine_that_lists_a_job_has_spoken_of_it, begin,
						end),
		cmocka_unit_test_setup_teardown(an_engine_that_takes_a_job_has_spoken_of_it, begin,
						end),
		cmocka_unit_test_setup_teardown(a_job_that_is_found_counts_as_submitted, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_job_without_an_answer_that_is_missing_is_not_submitted_again_at_once,
			begin, end),
		cmocka_unit_test(an_agent_gets_its_secrets_and_little_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
