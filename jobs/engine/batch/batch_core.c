/* Requests, and the state of attempts, for all parts of the AWS Batch engine. It calls no other
 * part of the engine but the reader of replies. */
#include <stdlib.h>
#include <string.h>

#include "jobs/engine/batch/batch_internal.h"

char *batch_key(const char *prefix, const char *name)
{
	return mem_format("%s%s", prefix, name);
}

int batch_nodes(const struct batch *batch)
{
	return (int)js_int(batch->plan, "nodes", 1);
}

const char *batch_spec_text(const json_t *plan, const char *path)
{
	return json_string_value(js_path(json_object_get(plan, "spec"), path));
}

/* ---- requests ---------------------------------------------------------------------------- */

int batch_call(struct batch *batch, enum aws_operation operation, const json_t *body, json_t **ret,
	       struct err **err)
{
	struct aws_call call = { .operation = operation, .body_fd = -1, .json = body };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };

	if (!batch->aws && aws_open(&batch->aws, err) < 0)
		return -1;
	if (aws_perform(batch->aws, &call, &reply, err) < 0) {
		batch->throttled = reply.throttled;
		return -1;
	}
	if (ret)
		*ret = TAKE(reply.json);
	return 0;
}

int batch_describe_nodes(struct batch *batch, const struct batch_job *job, int from, int to,
			 json_t *ret, struct err **err)
{
	json_auto_t *ids = json_array(), *body = NULL, *reply = NULL;

	for (int i = from; i < to; i++) {
		AUTO(auto_free)
		char *id = i < 0 ? mem_copy(job->id) : mem_format("%s#%d", job->id, i);

		json_array_append_new(ids, json_string(id));
	}
	body = json_pack("{s:O}", "jobs", ids);
	if (batch_call(batch, AWS_DESCRIBE_JOBS, body, &reply, err) < 0)
		return -1;
	json_array_extend(ret, json_object_get(reply, "jobs"));
	return 0;
}

/* ---- attempts ---------------------------------------------------------------------------- */

void batch_set_description(struct batch_job *job, json_t *description)
{
	json_decref(job->job);
	job->job = description;
	job->summary = batch_summary_of(description);
}

struct batch_job *batch_job_of(struct batch *batch, const char *prefix)
{
	struct batch_job *job;

	for (size_t n = 0; n < batch->count; n++) {
		size_t i = (batch->last + 1 + n) % batch->count;

		if (strcmp(batch->jobs[i]->prefix, prefix) != 0)
			continue;
		batch->last = i;
		return batch->jobs[i];
	}
	job = mem_zero(1, sizeof *job);
	job->prefix = mem_copy(prefix);
	batch_set_description(job, NULL);
	job->last_status.state = ENGINE_UNKNOWN;
	batch->jobs = mem_grow(batch->jobs, batch->count + 1, sizeof(struct batch_job *));
	batch->jobs[batch->count++] = job;
	return job;
}

void batch_streams_release(struct batch_job *job)
{
	for (size_t i = 0; i < job->stream_count; i++) {
		logs_cursor_freep(&job->streams[i].cursor);
		sb_release(&job->streams[i].text);
	}
	free(TAKE(job->streams));
	job->stream_count = 0;
}
