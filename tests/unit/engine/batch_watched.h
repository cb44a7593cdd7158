/*
 * A job of AWS Batch as a test writes it: the service answers as told, the workspace is a
 * directory.
 */
#ifndef STK_TESTS_BATCH_WATCHED_H
#define STK_TESTS_BATCH_WATCHED_H

#include "tests/unit/engine/watched.h"
#include "tests/unit/quoted.h"

#include "jobs/engine/batch/batch_internal.h"

static inline void put_json(const struct watched *w, const char *name, const char *text)
{
	AUTO(auto_free) char *json = quoted(text);

	put(w, name, json);
}

/* Begins with the answers of the service in order, the last one again and again. */
static inline void begin(struct watched *w, int nodes, const char *const *replies)
{
	size_t count = 0;

	for (; replies[count]; count++) {
		w->bodies[count] = quoted(replies[count]);
		w->replies[count].body = w->bodies[count];
		w->replies[count].headers = "Content-Type: application/json\r\n";
	}
	w->plan = json_pack("{s:i, s:{s:{s:s}}}", "nodes", nodes, "spec", "batch", "job_queue",
			    "queue");
	watched_open(w, &batch_ops, count);
	put_json(w, ORDER_FILE, "{'nonce':'ours'}");
}

static inline struct batch_job *job_of(const struct watched *w)
{
	return batch_job_of((struct batch *)w->engine, PREFIX);
}

/* Makes the caches look as if nothing had been asked for lately. */
static inline struct engine_status look(const struct watched *w)
{
	struct batch_job *job = job_of(w);
	AUTO(err_freep) struct err *err = NULL;
	struct engine_status status;

	job->last_status_at.ms = job->asked.ms = 0;
	must(batch_ops.describe(w->engine, NAME, PREFIX, &status, &err), &err);
	return status;
}

/* Returns the number of requests to this path. */
static inline size_t asked(const struct watched *w, const char *path)
{
	size_t count = 0;

	for (size_t i = 0; i < w->peer->request_count; i++)
		count += strstr(w->peer->requests[i].text, path) != NULL;
	return count;
}

#define LISTED(rows)  "{'jobSummaryList':[" rows "]}"
#define ROW(id)       "{'jobName':'" NAME "','jobId':'" id "'}"
#define JOBS(rows)    "{'jobs':[" rows "]}"
#define JOB(id, more) "{'jobName':'" NAME "','jobId':'" id "'," more "}"
#define OURS          "'tags':{'stoker:nonce':'ours'}"
#define THEIRS        "'tags':{'stoker:nonce':'theirs'}"
#define RUNS          "'status':'RUNNING','startedAt':1000"
#define LOST          "'status':'FAILED','startedAt':1000,'stoppedAt':2000,'container':{'exitCode':86}"

#define NODE(n, more) JOB("a#" #n, more)
#define GANG          JOB("a", OURS "," RUNS)
#define SAVED         "{'state':'ended','exit':143,'stopped':'drain'}"

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, watched_setup, watched_teardown)

#endif
