/* Finds the job of AWS Batch that belongs to an attempt: see batch.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define RECORD_MAX   ((size_t)16 << 10)
#define DESCRIBE_MAX (BATCH_IDS_MAX / 2) /* jobs in one DescribeJobs, each with its main node */

void batch_keep_id(struct batch_job *job, const char *id)
{
	snprintf(job->id, sizeof job->id, "%s", id);
}

/* ---- the note ----------------------------------------------------------------------------- */

/* Errors are ignored: without the note a listing is needed, nothing else. */
void batch_record_write(struct batch *batch, const struct batch_job *job, const char *name)
{
	AUTO(auto_free) char *key = batch_key(job->prefix, ENGINE_FILE);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *record = json_object();
	AUTO(auto_free) char *text = NULL;

	js_put(record, "v", json_integer(1));
	js_put_str(record, "job", name);
	js_put_str(record, "id", job->id);
	js_put_str(record, "queue", batch_spec_text(batch->plan, "batch.job_queue"));
	js_put_str(record, "region", aws_region(&ignored));
	text = js_line(record);
	err_freep(&ignored);
	(void)!store_put(batch->store, key, text, strlen(text), &ignored);
}

static int get(struct batch *batch, const struct batch_job *job, const char *file, size_t max,
	       json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = batch_key(job->prefix, file);

	return workspace_cache_json(batch->cache, key, max, key, ret, err);
}

/* Reads the note: 1 with an id, 0 absent, -1. */
static int record_read(struct batch *batch, struct batch_job *job, const char *name,
		       struct err **err)
{
	json_auto_t *record = NULL;
	int there = get(batch, job, ENGINE_FILE, RECORD_MAX, &record, err);

	if (there <= 0)
		return there;
	if (!js_is(record, "job", name) || !js_str(record, "id"))
		return err_set(err, EXIT_REFUSED, "'%s" ENGINE_FILE "' is no note of the job '%s'",
			       job->prefix, name);
	batch_keep_id(job, js_str(record, "id"));
	return 1;
}

/* ---- the list ----------------------------------------------------------------------------- */

/* ListJobs matches names regardless of case, and by default only lists running jobs. */
static int list_next(struct batch *batch, const char *name, char **token, json_t *ret,
		     struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:[{s:s, s:[s]}]}", "jobQueue",
				      batch_spec_text(batch->plan, "batch.job_queue"), "filters",
				      "name", "JOB_NAME", "values", name);
	json_auto_t *reply = NULL;
	json_t *row;
	size_t i;

	js_put_str(body, "nextToken", *token);
	if (batch_call(batch, AWS_LIST_JOBS, body, &reply, err) < 0)
		return -1;
	json_array_foreach (json_object_get(reply, "jobSummaryList"), i, row) {
		const char *is = js_str(row, "jobName"), *id = js_str(row, "jobId");

		if (is && id && strcmp(is, name) == 0)
			json_array_append_new(ret, json_string(id));
	}
	free(*token);
	*token = js_str(reply, "nextToken") ? mem_copy(js_str(reply, "nextToken")) : NULL;
	return 0;
}

/* Lists the ids of all jobs of this name, the newest first. */
static int list_ids(struct batch *batch, const char *name, json_t *ret, struct err **err)
{
	AUTO(auto_free) char *token = NULL;

	do {
		AUTO(auto_free) char *before = token ? mem_copy(token) : NULL;

		if (list_next(batch, name, &token, ret, err) < 0)
			return -1;
		if (before && token && strcmp(before, token) == 0)
			return err_set(err, EXIT_UNREACHABLE,
				       "AWS Batch lists the same jobs again and again");
	} while (token);
	return 0;
}

/* ---- owner -------------------------------------------------------------------------------- */

/* Result of a search among the jobs of a name. */
struct batch_which_found {
	const char *id, *lost; /* the attempt's job; a job of it that lost the claim; NULL: none */
	bool name_in_use,
		unknown; /* a job of another run is not over; a job is not described yet */
};

static char *main_node(const char *id)
{
	return mem_format("%s#0", id);
}

static int describe(struct batch *batch, const json_t *ids, size_t from, size_t to, json_t **ret,
		    struct err **err)
{
	json_auto_t *body = NULL, *reply = NULL;
	json_t *list = json_array();

	for (size_t i = from; i < to; i++) {
		AUTO(auto_free)
		char *node = main_node(json_string_value(json_array_get(ids, i)));

		json_array_append(list, json_array_get(ids, i));
		if (batch_nodes(batch) > 1)
			json_array_append_new(list, json_string(node));
	}
	body = json_pack("{s:o}", "jobs", list);
	if (batch_call(batch, AWS_DESCRIBE_JOBS, body, &reply, err) < 0)
		return -1;
	*ret = json_incref(json_object_get(reply, "jobs"));
	return 0;
}

/* True if its agent left because another job of the same attempt holds the claim. */
static bool has_lost(const json_t *job)
{
	return js_int(batch_container(job), "exitCode", 0) == AGENT_EXIT_NOT_MINE;
}

/* Classifies one row of the list by the `nonce` of the run. */
static void classify_row(const char *id, const json_t *rows, bool several, const char *nonce,
			 struct batch_which_found *ret)
{
	AUTO(auto_free) char *node = main_node(id);
	const json_t *job = batch_pick(rows, id);

	if (!job)
		ret->unknown = true;
	else if (!nonce || !js_is(json_object_get(job, "tags"), BATCH_NONCE_TAG, nonce))
		ret->name_in_use |= batch_summary_of(job).state != ENGINE_ENDED;
	/* The first job submitted, which is listed last, is the likeliest to have the claim, unless
	 * its exit code says otherwise. */
	else if (has_lost(several ? batch_pick(rows, node) : job))
		ret->lost = id;
	else
		ret->id = id;
}

/* Searches the list for a job of this attempt other than the known one. */
static int search_ids(struct batch *batch, struct batch_job *job, const json_t *ids,
		      struct batch_which_found *ret, struct err **err)
{
	json_auto_t *order = NULL;
	size_t count = json_array_size(ids);

	if (count > 0 && get(batch, job, ORDER_FILE, ORDER_MAX, &order, err) < 0)
		return -1;
	for (size_t from = 0; from < count; from += DESCRIBE_MAX) {
		size_t to = from + DESCRIBE_MAX < count ? from + DESCRIBE_MAX : count;
		json_auto_t *rows = NULL;

		if (describe(batch, ids, from, to, &rows, err) < 0)
			return -1;
		for (size_t i = from; i < to; i++) {
			const char *id = json_string_value(json_array_get(ids, i));

			if (strcmp(id, job->id) != 0)
				classify_row(id, rows, batch_nodes(batch) > 1,
					     js_str(order, "nonce"), ret);
		}
	}
	return 0;
}

/* Finds a job other than the known one: 1 found, now in job->id; 0 none, -1. */
static int find_listed(struct batch *batch, struct batch_job *job, const char *name,
		       struct err **err)
{
	json_auto_t *ids = json_array();
	struct batch_which_found found = { .id = NULL };

	if (list_ids(batch, name, ids, err) < 0 || search_ids(batch, job, ids, &found, err) < 0)
		return -1;
	job->name_in_use = found.name_in_use;
	if (!found.id && !job->id[0])
		found.id = found.lost;
	if (!found.id && found.unknown)
		return err_set(err, EXIT_UNREACHABLE,
			       "AWS Batch lists a job '%s' without a description yet", name);
	if (!found.id)
		return 0;
	batch_keep_id(job, found.id);
	batch_record_write(batch, job, name);
	return 1;
}

int batch_identify(struct batch *batch, struct batch_job *job, const char *name, struct err **err)
{
	int there = job->id[0] ? 1 : record_read(batch, job, name, err);

	return there != 0 ? there : find_listed(batch, job, name, err);
}

/* True if an agent has reported although the known job of its attempt never ran. */
static int is_reported_by_another(struct batch *batch, const struct batch_job *job,
				  struct err **err)
{
	AUTO(node_report_release) struct node_report report = { 0 };

	if (js_int(job->job, "startedAt", 0) > 0)
		return 0;
	return reports_get(batch->cache, job->prefix, 0, &report, err);
}

/* Searches for another job. The end of the known one stands if the service refuses the search:
 * without permission to list jobs, or once the queue is deleted. */
static int find_other(struct batch *batch, struct batch_job *job, const char *name,
		      struct err **err)
{
	int there = find_listed(batch, job, name, err);

	if (there >= 0 || (*err)->code != EXIT_REFUSED)
		return there;
	err_freep(err);
	return 0;
}

int batch_follow(struct batch *batch, struct batch_job *job, const char *name, struct err **err)
{
	const json_t *node = job->nodes ? json_array_get(job->nodes, 0) : job->job;
	int other = 1;

	if (job->followed || job->summary.state != ENGINE_ENDED)
		return 0;
	if (!has_lost(node))
		other = is_reported_by_another(batch, job, err);
	if (other > 0)
		other = find_other(batch, job, name, err);
	if (other < 0)
		return -1;
	job->followed = true;
	if (other == 0)
		return 0;
	batch_streams_release(job);
	batch_set_description(job, NULL);
	json_decref(TAKE(job->nodes));
	job->stopped.ms = 0;
	workspace_cache_forget(batch->cache, job->prefix);
	return 1;
}
