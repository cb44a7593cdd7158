/* Runs that a driver of this version cannot take up, and what it says of them. See
 * jobs/run/driver.h. */
#include "jobs/run/driver.h"

#include "../quoted.h"
#include "aws/credentials/settings.h"
#include "jobs/run/beside.h"
#include "jobs/run/request.h"
#include "tests/unit/run/journal_fixture.h"

static void append(const char *run, struct event *ev)
{
	AUTO(err_freep) struct err *err = NULL;

	ev->seq = 1;
	ev->at.ms = 1795000000000;
	assert_int_equal(journal_append(journal, run, ev, &err), 1);
}

static void create(const char *run, const char *text)
{
	json_auto_t *plan = quoted_json(text);
	struct event ev = { .kind = EV_RUN_CREATED };

	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	append(run, &ev);
}

static void is_refused(const char *run, const struct plan *plan, enum exit_code code,
		       const char *words, const char *hint)
{
	const struct driver_options options = { .run = run, .plan = plan };
	AUTO(err_freep) struct err *err = NULL;
	enum exit_code ignored;

	assert_int_equal(driver_run(journal, &options, &ignored, &err), -1);
	assert_int_equal(err->code, code);
	assert_string_equal(err->message, words);
	if (hint)
		assert_string_equal(err->hint, hint);
}

static void a_run_that_is_not_there_is_named(void **state)
{
	(void)state;
	is_refused("r1", NULL, EXIT_NOT_FOUND, "no run 'r1'", NULL);
}

static void a_stop_of_a_run_that_is_not_there_is_refused(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	enum request_result result;

	(void)state;
	assert_int_equal(request_stop(journal, "r1", "enough", &result, &err), -1);
	assert_int_equal(err->code, EXIT_NOT_FOUND);
	assert_string_equal(err->message, "no run 'r1'");
}

static void a_stop_beside_a_journal_without_the_run_is_refused(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct stop_beside stop;

	(void)state;
	assert_int_equal(beside_stop(journal, "r1", "enough", NULL, NULL, &stop, &err), -1);
	assert_int_equal(err->code, EXIT_NOT_FOUND);
	assert_string_equal(err->message, "no run 'r1'");
}

static void a_stop_of_a_run_that_has_ended_comes_too_late(void **state)
{
	struct event ev = { .kind = EV_RUN_ENDED, .seq = 2, .at = { INT64_C(1795000000001) } };
	AUTO(err_freep) struct err *err = NULL;
	enum request_result result = REQUEST_APPENDED;

	(void)state;
	create("r1", "{'engine':'local','workspace':'/w'}");
	EVENT_SET(&ev, state, OUTCOME_SUCCEEDED);
	EVENT_SET(&ev, exit_code, 0);
	assert_int_equal(journal_append(journal, "r1", &ev, &err), 1);
	assert_int_equal(request_stop(journal, "r1", "enough", &result, &err), 0);
	assert_int_equal(result, REQUEST_TOO_LATE);
	ev = (struct event){ .kind = EV_CHORE_FAILED, .seq = 3, .at = { INT64_C(1795000000002) } };
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET_STR(&ev, reason, "x");
	assert_int_equal(journal_append(journal, "r1", &ev, &err), 1);
	assert_int_equal(request_stop(journal, "r1", "enough", &result, &err), 0);
	assert_int_equal(result, REQUEST_TOO_LATE);
}

/* The stop would be appended to events that are not known. */
static void a_stop_of_a_damaged_run_is_an_error(void **state)
{
	AUTO(journal_freep) struct journal *other = NULL;
	AUTO(auto_free) char *url = mem_format("dir:%s/objects", dir);
	AUTO(auto_free) char *event = mem_format("%s/objects/runs/r1/events/%012d.json", dir, 1);
	AUTO(err_freep) struct err *err = NULL;
	struct event ev = { .kind = EV_DRIVER_LEFT, .seq = 1, .at = { INT64_C(1795000000000) } };
	enum request_result result;

	(void)state;
	EVENT_SET(&ev, epoch, 1);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &other, &err), 0);
	assert_int_equal(journal_append(other, "r1", &ev, &err), 1);
	journal_freep(&other);
	assert_int_equal(fs_write_atomic(event, "{", 1, 0600, &err), 0);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &other, &err), 0);
	assert_int_equal(request_stop(other, "r1", "enough", &result, &err), -1);
	assert_true(err->damage);
	assert_non_null(strstr(err->message, "event 1 of run r1"));
}

/* A clock that is behind that of the machine which wrote the newest event dates no event before
 * it. */
static void a_stop_is_dated_no_earlier_than_the_newest_event(void **state)
{
	struct event ev = { .kind = EV_DRIVER_LEFT, .seq = 1, .at = { INT64_C(9000000000000) } };
	AUTO(err_freep) struct err *err = NULL;
	enum request_result result;

	(void)state;
	EVENT_SET(&ev, epoch, 1);
	assert_int_equal(journal_append(journal, "r1", &ev, &err), 1);
	assert_int_equal(request_stop(journal, "r1", "enough", &result, &err), 0);
	assert_int_equal(result, REQUEST_APPENDED);
	assert_true(js_is(journal_appended(journal), "at", "2255-03-14T16:00:00.000Z"));
	assert_int_equal(request_stop(journal, "r1", "enough", &result, &err), 0);
	assert_int_equal(result, REQUEST_REPEATED);
}

static void what_a_newer_version_has_begun_is_refused_by_name(void **state)
{
	(void)state;
	create("r1", "{'engine':'kubernetes','workspace':'/w'}");
	is_refused("r1", NULL, EXIT_REFUSED, "engine 'kubernetes' is not part of this version",
		   NULL);
	create("r2", "{'engine':'local','workspace':'/w','compile':{'kind':'tpu'}}");
	is_refused("r2", NULL, EXIT_REFUSED, "compiler kind 'tpu' is not part of this version",
		   NULL);
}

static void a_cache_that_cannot_be_opened_is_named(void **state)
{
	(void)state;
	create("r1", "{'engine':'local','workspace':'/w','compile':{'kind':'neuron',"
		     "'cache':'s3://b'}}");
	is_refused("r1", NULL, EXIT_REFUSED, "'s3://b' names no bucket", NULL);
}

/* A driver in another region would not find the jobs of the run. */
static void a_run_is_not_driven_in_another_region(void **state)
{
	(void)state;
	create("r1", "{'engine':'local','workspace':'/w','aws':{'region':'eu-west-1'}}");
	aws_settings_option(NULL, "us-east-1");
	is_refused("r1", NULL, EXIT_REFUSED,
		   "the jobs of this run are in region eu-west-1, not in us-east-1 as --region "
		   "says",
		   "omit --region; a run stays in its region");
	aws_settings_option(NULL, NULL);
}

static void another_plan_is_refused(void **state)
{
	json_auto_t *json = quoted_json("{'engine':'local'}");
	const struct plan plan = { .json = json, .digest = "another" };

	(void)state;
	create("r1", "{'engine':'local','workspace':'/w'}");
	is_refused(
		"r1", &plan, EXIT_SPEC,
		"run r1 belongs to another plan; what has changed since: workspace: \"/w\" -> "
		"null",
		"choose another --id, or undo the change; 'stoker diff r1 SPEC' shows all of it");
}

static void a_run_that_does_not_begin_with_a_plan_is_damaged(void **state)
{
	struct event ev = { .kind = EV_DRIVER_LEFT };
	AUTO(auto_free) char *words = NULL;

	(void)state;
	EVENT_SET(&ev, epoch, 1);
	append("r1", &ev);
	words = mem_format("event 1 of run r1 in '%s' is damaged: not 'run.created'",
			   journal_url(journal));
	is_refused("r1", NULL, EXIT_REFUSED, words, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_that_is_not_there_is_named),
		TEST(a_stop_of_a_run_that_is_not_there_is_refused),
		TEST(a_stop_beside_a_journal_without_the_run_is_refused),
		TEST(a_stop_of_a_run_that_has_ended_comes_too_late),
		TEST(a_stop_of_a_damaged_run_is_an_error),
		TEST(a_stop_is_dated_no_earlier_than_the_newest_event),
		TEST(what_a_newer_version_has_begun_is_refused_by_name),
		TEST(a_cache_that_cannot_be_opened_is_named),
		TEST(a_run_is_not_driven_in_another_region),
		TEST(another_plan_is_refused),
		TEST(a_run_that_does_not_begin_with_a_plan_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
