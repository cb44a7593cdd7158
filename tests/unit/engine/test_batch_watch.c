/*
 * A job of AWS Batch as it is watched: which of several is the attempt's, which dead node ends
 * the others, what an end says, and a job that the service has forgotten. The service is a
 * peer that answers as a test writes it, the workspace is a directory.
 */
#include "tests/unit/engine/batch_watched.h"

#define DAY_S INT64_C(86400)

/* Older than it is. */
static void age(const struct watched *w, const char *name, int64_t days)
{
	AUTO(auto_free) char *key = mem_format(PREFIX "%s", name);
	AUTO(auto_free) char *path = place_path(w->place, key);
	struct timespec times[2] = { { 0 }, { 0 } };

	times[0].tv_sec = times[1].tv_sec = (time_t)(clock_utc_now().ms / 1000 - days * DAY_S);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void stop(const struct watched *w)
{
	AUTO(err_freep) struct err *err = NULL;

	must(batch_ops.stop(w->engine, NAME, PREFIX, 1000, &err), &err);
}

/* ---- identity of a job ---- */

static void a_list_that_is_empty_is_not_believed_at_once(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;

	begin(w, 1, (const char *const[]){ LISTED(""), NULL });
	assert_int_equal(batch_ops.find(w->engine, NAME, PREFIX, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	err_freep(&err);
	job_of(w)->uncertain.ms -= LISTED_MS;
	assert_int_equal(batch_ops.find(w->engine, NAME, PREFIX, &err), 0);
	assert_null(err);
}

static void a_job_of_another_run_is_not_taken(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;
	const struct engine_job job = { .name = NAME, .prefix = PREFIX, .nodes = 1 };

	begin(w, 1,
	      (const char *const[]){
		      LISTED(ROW("a") "," ROW("b")),
		      JOBS(JOB("a", THEIRS ",'status':'SUCCEEDED'") "," JOB("b", RUNS)), NULL });
	assert_int_equal(batch_ops.submit(w->engine, &job, &err), -1);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_non_null(strstr(err->hint, "another --id"));
	assert_string_equal(job_of(w)->id, "");
	assert_int_equal(asked(w, "/v1/submitjob"), 0);
}

static void the_end_of_another_run_keeps_nobody_out(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;

	begin(w, 1,
	      (const char *const[]){ LISTED(ROW("a")), JOBS(JOB("a", THEIRS ",'status':'FAILED'")),
				     NULL });
	assert_int_equal(batch_identify((struct batch *)w->engine, job_of(w), NAME, &err), 0);
	assert_false(job_of(w)->name_in_use);
}

static void of_several_that_are_ours_the_one_with_the_claim_is_taken(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;

	begin(w, 1,
	      (const char *const[]){ LISTED(ROW("a") "," ROW("b") "," ROW("c")),
				     JOBS(JOB("a", OURS "," RUNS) "," JOB(
					     "b", OURS "," LOST) "," JOB("c", THEIRS "," RUNS)),
				     NULL });
	assert_int_equal(batch_ops.find(w->engine, NAME, PREFIX, &err), 1);
	assert_string_equal(job_of(w)->id, "a");
}

static void one_that_lost_the_claim_is_ours_where_there_is_no_other(void **state)
{
	struct watched *w = *state;
	AUTO(err_freep) struct err *err = NULL;

	begin(w, 1, (const char *const[]){ LISTED(ROW("a")), JOBS(JOB("a", OURS "," LOST)), NULL });
	assert_int_equal(batch_ops.find(w->engine, NAME, PREFIX, &err), 1);
	assert_string_equal(job_of(w)->id, "a");
}

static void a_note_of_another_job_is_refused(void **state)
{
	static const char *const notes[] = { "{'job':'stk-r2-train-1','id':'a'}", "{'id':'a'}",
					     "{'job':'" NAME "'}" };
	struct watched *w = *state;

	begin(w, 1, (const char *const[]){ JOBS(""), NULL });
	for (size_t i = 0; i < STK_LENGTH(notes); i++) {
		AUTO(err_freep) struct err *err = NULL;

		put_json(w, ENGINE_FILE, notes[i]);
		assert_int_equal(batch_ops.find(w->engine, NAME, PREFIX, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
	}
	assert_int_equal(w->peer->request_count, 0);
}

/* Two of one attempt, and the one that is known did not get the claim. */
static void the_job_with_the_claim_is_followed(void **state)
{
	struct watched *w = *state;
	AUTO(auto_free) char *path = place_path(w->place, PREFIX ENGINE_FILE);
	AUTO(auto_free) char *note = NULL;

	begin(w, 1,
	      (const char *const[]){ JOBS(JOB("b", OURS "," LOST)), LISTED(ROW("b") "," ROW("a")),
				     JOBS(JOB("b", OURS "," LOST) "," JOB("a", OURS "," RUNS)),
				     JOBS(JOB("a", OURS "," RUNS)), NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'b'}");
	put_json(w, "node-0/report.json", "{'state':'running','token':'of a','started':1000}");
	assert_int_equal(look(w).state, ENGINE_RUNNING);
	assert_string_equal(job_of(w)->id, "a");
	note = read_file(path, NULL);
	assert_non_null(strstr(note, "\"id\":\"a\""));
	assert_non_null(strstr(note, "\"region\":\"eu-west-1\""));
}

/* The one that is known was ended before it had a machine. */
static void one_that_never_ran_hides_none_that_does(void **state)
{
	struct watched *w = *state;

	begin(w, 1,
	      (const char *const[]){
		      JOBS(JOB("b", OURS ",'status':'FAILED','statusReason':'stoker: stop'")),
		      LISTED(ROW("b") "," ROW("a")),
		      JOBS(JOB("b", OURS ",'status':'FAILED'") "," JOB("a", OURS "," RUNS)),
		      JOBS(JOB("a", OURS "," RUNS)), "{}", NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'b'}");
	put_json(w, "node-0/report.json", "{'state':'running','token':'of a'}");
	job_of(w)->stopped = clock_mono_now();
	assert_int_equal(look(w).state, ENGINE_RUNNING);
	/* The stop is asked for again, and now of this job. */
	stop(w);
	assert_int_equal(asked(w, "{\"jobId\":\"a\""), 1);
}

/* The job has lost the claim to a later attempt: that is an end. */
static void who_lost_the_claim_to_nobody_of_its_attempt_has_ended(void **state)
{
	struct watched *w = *state;

	begin(w, 1, (const char *const[]){ JOBS(JOB("b", OURS "," LOST)), LISTED(ROW("b")), NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'b'}");
	put_json(w, "node-0/report.json", "{'state':'not_mine','exit':86}");
	assert_int_equal(look(w).state, ENGINE_ENDED);
	assert_int_equal(look(w).exit, 86);
	assert_int_equal(asked(w, "/v1/listjobs"), 1);
}

/* ---- jobs that are stopped ---- */

static void a_node_that_left_well_hides_none_that_is_dead(void **state)
{
	struct watched *w = *state;

	begin(w, 4,
	      (const char *const[]){
		      JOBS(GANG "," NODE(0, RUNS) "," NODE(1, "'status':'FAILED'") "," NODE(
			      2, "'status':'FAILED','statusReason':'Host EC2 (i-1) terminated.'")),
		      "{}", NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	put_json(w, "node-1/report.json", SAVED);
	assert_int_equal(look(w).state, ENGINE_STOPPING);
	assert_int_equal(asked(w, "/v1/terminatejob"), 1);
	assert_int_equal(asked(w, "node 2 failed: Host EC2"), 1);
}

static void nodes_that_left_well_end_nobody(void **state)
{
	struct watched *w = *state;

	begin(w, 2,
	      (const char *const[]){ JOBS(GANG "," NODE(0, RUNS) "," NODE(1, "'status':'FAILED'")),
				     NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	put_json(w, "node-1/report.json", SAVED);
	assert_int_equal(look(w).state, ENGINE_STARTING);
	assert_int_equal(asked(w, "/v1/terminatejob"), 0);
}

static void only_what_waits_is_stopped_for_a_queue_that_cannot_run_it(void **state)
{
	static const char *const never = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - x";
	static const struct {
		const char *status;
		bool stopped;
	} rows[] = { { "RUNNABLE", true },
		     { "PENDING", true },
		     { "UNHEARD_OF", false },
		     { "STARTING", false },
		     { "RUNNING", false } };
	struct watched *w = *state;

	begin(w, 1, (const char *const[]){ "{}", NULL });
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct batch_job *job = job_of(w);
		AUTO(err_freep) struct err *err = NULL;
		size_t before = asked(w, "/v1/terminatejob");

		job->stopped.ms = 0;
		batch_set_description(job, json_pack("{s:s, s:s}", "status", rows[i].status,
						     "statusReason", never));
		must(batch_stop_lost((struct batch *)w->engine, job, &err), &err);
		assert_int_equal(asked(w, "/v1/terminatejob") - before, rows[i].stopped);
	}
}

static void what_ec2_bills_nobody_says(void **state)
{
	struct watched *w = *state;
	struct engine_status status;

	begin(w, 1,
	      (const char *const[]){
		      JOBS(JOB("a", OURS ",'status':'SUCCEEDED','startedAt':1000,'stoppedAt':9000,"
					 "'container':{'exitCode':0}")),
		      NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	put_json(w, "node-0/report.json", "{'state':'ended','exit':0}");
	status = look(w);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_int_equal(status.held.ms, 1000);
	assert_int_equal(status.released.ms, 9000);
	assert_int_equal(status.billable_ms, 0);
}

/* Away for longer than the service remembers, after a node was lost without a word. */
static void what_is_forgotten_has_ended_once_it_is_silent_for_long(void **state)
{
	struct watched *w = *state;
	struct engine_status status;

	begin(w, 2, (const char *const[]){ JOBS(""), NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	put_json(w, "node-0/report.json", "{'state':'ended','exit':1,'stopped':'peer'}");
	put_json(w, "node-1/report.json", "{'state':'running'}");
	age(w, ORDER_FILE, 30);
	age(w, ENGINE_FILE, 30);
	age(w, "node-0/report.json", 20);
	age(w, "node-1/report.json", 6);
	assert_int_equal(look(w).state, ENGINE_UNKNOWN);
	/* A driver's wish is no sign of life. */
	put_json(w, DRAIN_FILE, "{}");
	age(w, "node-1/report.json", 9);
	job_of(w)->sign.at.ms = 0;
	status = look(w);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_true(status.silent);
	assert_false(status.exit_known);
	assert_int_equal(status.node, 1);
	assert_non_null(strstr(status.reason, "no longer lists the job; the agent of node 1 died"));
	assert_in_range(status.last_seen.ms, clock_utc_now().ms - 10 * DAY_S * 1000,
			clock_utc_now().ms - 8 * DAY_S * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_list_that_is_empty_is_not_believed_at_once),
		TEST(a_job_of_another_run_is_not_taken),
		TEST(the_end_of_another_run_keeps_nobody_out),
		TEST(of_several_that_are_ours_the_one_with_the_claim_is_taken),
		TEST(one_that_lost_the_claim_is_ours_where_there_is_no_other),
		TEST(a_note_of_another_job_is_refused),
		TEST(the_job_with_the_claim_is_followed),
		TEST(one_that_never_ran_hides_none_that_does),
		TEST(who_lost_the_claim_to_nobody_of_its_attempt_has_ended),
		TEST(a_node_that_left_well_hides_none_that_is_dead),
		TEST(nodes_that_left_well_end_nobody),
		TEST(only_what_waits_is_stopped_for_a_queue_that_cannot_run_it),
		TEST(what_ec2_bills_nobody_says),
		TEST(what_is_forgotten_has_ended_once_it_is_silent_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
