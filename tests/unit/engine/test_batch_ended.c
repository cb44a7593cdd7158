/*
 * A job of AWS Batch that somebody ends at the console: no node of it is blamed, nothing is
 * ended by us, and the end is told as somebody's wish.
 */
#include "tests/unit/engine/batch_watched.h"

/* Job "a" and its two nodes are as DescribeJobs lists them. */
static void know(struct batch_job *job, const json_t *list)
{
	batch_set_description(job, json_incref(batch_pick(list, "a")));
	json_decref(job->nodes);
	job->nodes = json_pack("[O, O]", batch_pick(list, "a#0"), batch_pick(list, "a#1"));
}

/* Nodes end one after the other, and the service may give the reason already or not. */
static void what_somebody_has_ended_is_ended_once(void **state)
{
	static const char *const jobs[] = {
		OURS "," RUNS ",'isTerminated':true",
		OURS "," RUNS ",'isTerminated':true,'statusReason':'too dear'",
		OURS "," RUNS ",'isCancelled':true",
		OURS "," RUNS ",'isTerminated':true,'statusReason':'stoker: node 1 failed: x'",
	};
	struct watched *w = *state;

	begin(w, 2, (const char *const[]){ "{}", NULL });
	for (size_t i = 0; i < STK_LENGTH(jobs); i++) {
		AUTO(auto_free) char *text = mem_format("%s", jobs[i]);
		AUTO(auto_free)
		char *quote = mem_format(
			JOBS(JOB("a", "%s") "," NODE(0, RUNS) "," NODE(1, "'status':'FAILED'")),
			text);
		AUTO(auto_free) char *json = quoted(quote);
		struct batch_job *job = job_of(w);
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *reply = NULL;

		must(js_parse(json, strlen(json), "jobs", &reply, &err), &err);
		batch_keep_id(job, "a");
		know(job, json_object_get(reply, "jobs"));
		must(batch_stop_lost((struct batch *)w->engine, job, &err), &err);
		assert_int_equal(w->peer->request_count, 0);
		/* Nothing is cancelled that has a machine. */
		assert_int_equal(batch_is_stopping(job), !strstr(jobs[i], "isCancelled"));
	}
}

/* The job was described before somebody ended it, its nodes after that. */
static void before_a_node_is_blamed_the_job_is_looked_at_again(void **state)
{
	struct watched *w = *state;

	begin(w, 2,
	      (const char *const[]){ JOBS(GANG "," NODE(0, RUNS) "," NODE(1, "'status':'FAILED'")),
				     JOBS(JOB("a", OURS "," RUNS ",'isTerminated':true")), NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	assert_int_equal(look(w).state, ENGINE_STARTING);
	assert_int_equal(asked(w, "/v1/terminatejob"), 0);
	assert_int_equal(w->peer->request_count, 2);
}

/* One node alone has ended: its job follows, or is ended with the same words. */
static void a_node_that_somebody_has_ended_is_not_blamed(void **state)
{
	struct watched *w = *state;
	struct engine_status status;

	begin(w, 2,
	      (const char *const[]){
		      JOBS(GANG "," NODE(0, RUNS) "," NODE(
			      1,
			      "'status':'FAILED','isTerminated':true,'statusReason':'too dear'")),
		      JOBS(GANG "," NODE(0, RUNS) "," NODE(
			      1,
			      "'status':'FAILED','isTerminated':true,'statusReason':'too dear'")),
		      JOBS(GANG), "{}",
		      JOBS(JOB("a",
			       OURS ",'status':'FAILED','startedAt':1000,'isTerminated':"
				    "true,"
				    "'statusReason':'stoker: it was terminated: too "
				    "dear'") "," NODE(0, "'status':'FAILED'") "," NODE(1, "'sta"
											  "tus'"
											  ":'"
											  "FAIL"
											  "ED"
											  "'")),
		      NULL });
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	assert_int_equal(look(w).state, ENGINE_STARTING);
	assert_int_equal(asked(w, "/v1/terminatejob"), 0);
	job_of(w)->node_down.ms -= 60000;
	assert_int_equal(look(w).state, ENGINE_STOPPING);
	assert_int_equal(asked(w, "\"reason\":\"stoker: it was terminated: too dear\""), 1);
	put_json(w, "node-1/report.json", "{'state':'ended','exit':143,'stopped':'signal'}");
	status = look(w);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_true(status.taken_down);
	assert_non_null(strstr(status.reason, "it was terminated: too dear"));
}

/* The job tells, whatever its nodes say, of themselves or by the service. */
static void whose_wish_an_end_was_the_job_tells(void **state)
{
	static const struct {
		const char *job;
		bool taken_down;
		const char *words;
	} rows[] = {
		{ "'status':'FAILED','isTerminated':true,'statusReason':'too dear'", true,
		  "it was terminated: too dear" },
		{ "'status':'FAILED','isCancelled':true,'statusReason':'too dear'", true,
		  "it was cancelled: too dear" },
		{ "'status':'FAILED','isTerminated':true", true, "it was terminated: " },
		{ "'status':'FAILED','isTerminated':true,'statusReason':'stoker: stop'", false,
		  NULL },
		{ "'status':'FAILED','isTerminated':true,'statusReason':'stoker: node 1 failed: x'",
		  false, "node 1 failed: x" },
		{ "'status':'FAILED','isCancelled':true,'statusReason':'Canceled by "
		  "JobStateTimeLimit action due to reason: CAPACITY:x'",
		  false, "Canceled by JobStateTimeLimit action due to reason: CAPACITY:x" },
		{ "'status':'FAILED','isTerminated':true,'statusReason':'Host EC2 (instance i-1) "
		  "terminated.'",
		  false, NULL },
		{ "'status':'SUCCEEDED','isTerminated':true,'statusReason':'too late'", false,
		  NULL },
		{ "'status':'FAILED','statusReason':'Essential container in task exited'", false,
		  NULL },
	};
	static const char *const reports[] = { NULL, "{'state':'running'}",
					       "{'state':'ended','exit':1}",
					       "{'state':'ended','exit':143,'stopped':'stall'}" };
	struct watched *w = *state;

	begin(w, 2, (const char *const[]){ "{}", NULL });
	for (size_t i = 0; i < STK_LENGTH(rows) * STK_LENGTH(reports); i++) {
		const char *report = reports[i / STK_LENGTH(rows)];
		size_t row = i % STK_LENGTH(rows);
		AUTO(auto_free)
		char *text = mem_format(
			"[" JOB("a", OURS ",'startedAt':1000,%s") "," NODE(
				0, "'status':'FAILED'") "," NODE(1,
								 "'status':'FAILED','statusReason':"
								 "'Essential "
								 "container in task exited',"
								 "'container':{'exitCode':1}") "]",
			rows[row].job);
		AUTO(auto_free) char *json = quoted(text);
		struct batch_job *job = job_of(w);
		struct engine_status status = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *list = NULL;

		if (report)
			put_json(w, "node-1/report.json", report);
		must(js_parse(json, strlen(json), "jobs", &list, &err), &err);
		batch_keep_id(job, "a");
		know(job, list);
		job->read = false;
		must(batch_end_status((struct batch *)w->engine, job, &status, &err), &err);
		if (status.taken_down != rows[row].taken_down)
			fail_msg("%s, %s", rows[row].job, report);
		/* The words of an agent that did report are its own. */
		if (rows[row].words && (rows[row].taken_down || !report) &&
		    !strstr(status.reason, rows[row].words))
			fail_msg("%s, %s: %s", rows[row].job, report, status.reason);
	}
}

/* The queue is deleted: nobody can list what was in it. */
static void an_end_stands_where_others_cannot_be_listed(void **state)
{
	struct watched *w = *state;
	struct engine_status status;

	begin(w, 1,
	      (const char *const[]){ JOBS(JOB("a", OURS ",'status':'FAILED','isTerminated':true,"
							"'statusReason':'Job queue deleted'")),
				     "{'message':'Job queue does not exist'}", NULL });
	w->replies[1].status = 400;
	w->replies[1].headers = "x-amzn-errortype: ClientException\r\n";
	put_json(w, ENGINE_FILE, "{'job':'" NAME "','id':'a'}");
	put_json(w, "node-0/report.json", "{'state':'running'}");
	status = look(w);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_true(status.taken_down);
	assert_int_equal(asked(w, "/v1/listjobs"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_somebody_has_ended_is_ended_once),
		TEST(before_a_node_is_blamed_the_job_is_looked_at_again),
		TEST(a_node_that_somebody_has_ended_is_not_blamed),
		TEST(whose_wish_an_end_was_the_job_tells),
		TEST(an_end_stands_where_others_cannot_be_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
