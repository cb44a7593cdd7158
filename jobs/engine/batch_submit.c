/* A job of AWS Batch is submitted, at most once, and found again: see batch.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/secret.h"
#include "aws/settings.h"
#include "jobs/base/hash.h"
#include "jobs/base/text.h"
#include "jobs/engine/arrival.h"
#include "jobs/engine/batch_inside.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define TOKEN_BYTES 16
#define NOTE_MAX    ((size_t)16 << 10)

/* ---- what was submitted ---------------------------------------------------------------- */

static void keep_id(struct batch_job *job, const char *id)
{
	snprintf(job->id, sizeof job->id, "%s", id);
}

/* Not having it costs a listing, nothing else. */
static void write_note(struct batch *batch, const struct batch_job *job, const char *name)
{
	AUTO(auto_free) char *key = batch_key(job->prefix, ENGINE_FILE);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *note = json_object();
	AUTO(auto_free) char *text = NULL;

	js_put(note, "v", json_integer(1));
	js_put_str(note, "job", name);
	js_put_str(note, "id", job->id);
	js_put_str(note, "queue", batch_says(batch->plan, "batch.job_queue"));
	text = js_line(note);
	(void)!store_put(batch->store, key, text, strlen(text), &ignored);
}

/* 1 the note has an id, 0 there is none, -1. */
static int read_note(struct batch *batch, struct batch_job *job, struct err **err)
{
	AUTO(auto_free) char *key = batch_key(job->prefix, ENGINE_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(NOTE_MAX);
	json_auto_t *note = NULL;
	int there = far_get(batch->far, key, NOTE_MAX, &text, err);

	if (there <= 0)
		return there;
	if (js_parse(text.text, text.len, key, &note, err) < 0)
		return -1;
	if (!js_str(note, "id"))
		return err_set(err, EXIT_REFUSED, "'%s' does not name the job it is of", key);
	keep_id(job, js_str(note, "id"));
	return 1;
}

/* ListJobs finds names whatever their case, by default only what runs. */
static int list_page(struct batch *batch, const char *name, char **token, struct batch_job *job,
		     struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:[{s:s, s:[s]}]}", "jobQueue",
				      batch_says(batch->plan, "batch.job_queue"), "filters", "name",
				      "JOB_NAME", "values", name);
	json_auto_t *reply = NULL;
	json_t *row;
	size_t i;

	js_put_str(body, "nextToken", *token);
	if (batch_ask(batch, AWS_LIST_JOBS, body, &reply, err) < 0)
		return -1;
	json_array_foreach (json_object_get(reply, "jobSummaryList"), i, row) {
		const char *is = js_str(row, "jobName"), *id = js_str(row, "jobId");

		/* Of several, which none of ours makes, the first that was submitted holds the
		 * claim: it stands last. */
		if (is && id && strcmp(is, name) == 0)
			keep_id(job, id);
	}
	free(*token);
	*token = js_str(reply, "nextToken") ? mem_copy(js_str(reply, "nextToken")) : NULL;
	return 0;
}

/* 1 found, 0 the queue has none, -1. */
static int list_jobs(struct batch *batch, struct batch_job *job, const char *name, struct err **err)
{
	AUTO(auto_free) char *token = NULL;

	do {
		AUTO(auto_free) char *before = token ? mem_copy(token) : NULL;

		if (list_page(batch, name, &token, job, err) < 0)
			return -1;
		if (before && token && strcmp(before, token) == 0)
			return err_set(err, EXIT_UNREACHABLE,
				       "AWS Batch lists the same jobs again and again");
	} while (token);
	return job->id[0] != '\0';
}

int batch_identify(struct batch *batch, struct batch_job *job, const char *name, bool list,
		   struct err **err)
{
	int there;

	if (job->id[0])
		return 1;
	there = read_note(batch, job, err);
	if (there != 0 || !list)
		return there;
	there = list_jobs(batch, job, name, err);
	if (there > 0)
		write_note(batch, job, name);
	return there;
}

/* Did agents of it ever report? The service forgets, the workspace does not. */
static int has_reports(struct batch *batch, const char *prefix, struct err **err)
{
	struct reports reports;

	far_forget(batch->far, prefix);
	if (reports_look(batch->far, prefix, (int)js_int(batch->plan, "nodes", 1), &reports, err) <
	    0)
		return -1;
	return reports.there > 0;
}

int batch_find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);
	struct mono now = mono_now();
	int there;

	far_forget(batch->far, prefix);
	there = batch_identify(batch, job, name, true, err);
	if (there != 0)
		return there;
	there = has_reports(batch, prefix, err);
	if (there == 0 && job->uncertain.ms > 0 && now.ms - job->uncertain.ms < LISTED_MS)
		return err_set(err, EXIT_UNREACHABLE,
			       "AWS Batch may not list '%s' yet, if it has taken it", name);
	return there;
}

/* ---- the definition ---------------------------------------------------------------------- */

static int is_registered(struct batch *batch, const json_t *definition, struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:s}", "jobDefinitionName",
				      js_str(definition, "jobDefinitionName"), "status", "ACTIVE");
	json_auto_t *reply = NULL;

	if (batch_ask(batch, AWS_DESCRIBE_JOB_DEFINITIONS, body, &reply, err) < 0)
		return -1;
	return json_array_size(json_object_get(reply, "jobDefinitions")) > 0;
}

/* Its reply may be lost too: then what was asked is there, or not. */
static int register_once(struct batch *batch, const json_t *definition, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int there = is_registered(batch, definition, err);

	if (there != 0)
		return there < 0 ? -1 : 0;
	if (batch_ask(batch, AWS_REGISTER_JOB_DEFINITION, definition, NULL, &why) == 0)
		return 0;
	if (why->code == EXIT_UNREACHABLE && is_registered(batch, definition, err) > 0)
		return 0;
	err_freep(err);
	*err = TAKE(why);
	return -1;
}

/* Once a minute for a handle: a thousand jobs of one spec have one definition. */
static int see_registered(struct batch *batch, const json_t *definition, struct err **err)
{
	const char *name = js_str(definition, "jobDefinitionName");

	if (batch->registered && strcmp(batch->registered, name) == 0 &&
	    mono_now().ms - batch->registered_at.ms < REGISTERED_MS)
		return 0;
	if (register_once(batch, definition, err) < 0)
		return -1;
	free(batch->registered);
	batch->registered = mem_copy(name);
	batch->registered_at = mono_now();
	return 0;
}

/* ---- the submission ---------------------------------------------------------------------- */

/* What the container has beside the command's own environment, which is in the order. */
static int add_env(const char *token, json_t *env, struct err **err)
{
	const char *region = aws_region(err);

	if (!region)
		return -1;
	js_put_str(env, ORDER_TOKEN, token);
	js_put_str(env, "AWS_REGION", region);
	return 0;
}

int batch_requests(struct engine *engine, const struct engine_job *job, json_t **ret,
		   struct err **err)
{
	const struct batch *batch = (const struct batch *)engine;
	json_auto_t *definition = NULL, *env = NULL;

	env = arrival_env_planned(batch->plan, store_url(batch->store), job);
	if (batch_definition(batch->plan, job->nodes, &definition, err) < 0 ||
	    add_env("<token>", env, err) < 0)
		return -1;
	*ret = json_pack("[{s:s, s:O}, {s:s, s:o}]", "operation", "RegisterJobDefinition", "body",
			 definition, "operation", "SubmitJob", "body",
			 batch_submission(batch->plan, job, definition, env));
	return 0;
}

/* What is wrong with the spec, where the service's words tell. */
static void explain(struct err **err)
{
	static const struct {
		const char *words, *field, *hint;
	} rows[] = {
		{ "ob queue", "batch.job_queue", "correct 'batch.job_queue', or enable the queue" },
		{ "hare identifier", "batch.share_identifier",
		  "fair-share queues need 'batch.share_identifier', others take none" },
		{ "shareIdentifier", "batch.share_identifier",
		  "fair-share queues need 'batch.share_identifier', others take none" },
	};

	if ((*err)->code != EXIT_REFUSED || strstr((*err)->message, "AccessDenied"))
		return;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (strstr((*err)->message, rows[i].words)) {
			err_hint(err, "%s", rows[i].hint);
			err_field(err, rows[i].field);
			return;
		}
}

/* As engine.h says of submit. A reply that says no may be to a second try of ours, the
 * first of which had its effect. */
static int send_job(struct batch *batch, const struct engine_job *what, struct batch_job *job,
		    const json_t *body, struct err **err)
{
	struct aws_call call = { .operation = AWS_SUBMIT_JOB, .body_fd = -1, .json = body };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };

	if (aws_perform(batch->aws, &call, &reply, err) == 0 && js_str(reply.json, "jobId")) {
		keep_id(job, js_str(reply.json, "jobId"));
		write_note(batch, job, what->name);
		return 0;
	}
	if (*err && (*err)->code == EXIT_REFUSED && !reply.maybe_repeated) {
		explain(err);
		return -1;
	}
	job->uncertain = mono_now();
	if (!*err)
		err_set(err, EXIT_UNREACHABLE, "AWS Batch took '%s' without a job id", what->name);
	return 1;
}

static int not_submitted(const struct err *why)
{
	return why->code == EXIT_UNREACHABLE ? 1 : -1;
}

int batch_submit(struct engine *engine, const struct engine_job *what, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, what->prefix);
	AUTO(secret_json_freep) json_t *env = NULL, *body = NULL;
	json_auto_t *definition = NULL;
	uint8_t random[TOKEN_BYTES];
	char token[2 * TOKEN_BYTES + 1];
	int there = batch_find(engine, what->name, what->prefix, err);

	if (there != 0)
		return there > 0 ? 0 : 1;
	random_bytes(random, sizeof random);
	hex_lower(random, sizeof random, token);
	if (batch_definition(batch->plan, what->nodes, &definition, err) < 0 ||
	    see_registered(batch, definition, err) < 0 ||
	    arrival_env(batch->plan, store_url(batch->store), what, &env, NULL, err) < 0 ||
	    add_env(token, env, err) < 0)
		return not_submitted(*err);
	body = batch_submission(batch->plan, what, definition, env);
	return send_job(batch, what, job, body, err);
}
