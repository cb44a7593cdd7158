/* Submits a job of AWS Batch, at most once, and finds it again: see batch.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define TOKEN_BYTES 16

/* ---- search ------------------------------------------------------------------------------ */

/* True if agents of the attempt have ever reported. The service forgets jobs, the workspace does
 * not. */
static int has_reports(struct batch *batch, const char *prefix, struct err **err)
{
	struct reports reports;

	workspace_cache_forget(batch->cache, prefix);
	if (reports_read(batch->cache, prefix, batch_nodes(batch), &reports, err) < 0)
		return -1;
	return reports.there > 0;
}

/* Searches for the job, as far as the service shows it by now. */
static int find_now(struct batch *batch, struct batch_job *job, const char *name, struct err **err)
{
	int there;

	workspace_cache_forget(batch->cache, job->prefix);
	there = batch_identify(batch, job, name, err);
	return there != 0 ? there : has_reports(batch, job->prefix, err);
}

int batch_find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);
	int there = find_now(batch, job, name, err);

	if (there != 0)
		return there;
	/* Another process, dead now, may have submitted it a moment ago. */
	if (job->uncertain.ms == 0)
		job->uncertain = clock_mono_now();
	if (clock_mono_now().ms - job->uncertain.ms < LISTED_MS)
		return err_set(err, EXIT_UNREACHABLE,
			       "AWS Batch may not list '%s' yet, if it has taken it", name);
	return 0;
}

/* ---- the definition ---------------------------------------------------------------------- */

static int is_registered(struct batch *batch, const json_t *definition, struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:s}", "jobDefinitionName",
				      js_str(definition, "jobDefinitionName"), "status", "ACTIVE");
	json_auto_t *reply = NULL;

	if (batch_call(batch, AWS_DESCRIBE_JOB_DEFINITIONS, body, &reply, err) < 0)
		return -1;
	return json_array_size(json_object_get(reply, "jobDefinitions")) > 0;
}

/* If the reply is lost, a second look shows whether the request took effect. */
static int register_once(struct batch *batch, const json_t *definition, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int there = is_registered(batch, definition, err);

	if (there != 0)
		return there < 0 ? -1 : 0;
	if (batch_call(batch, AWS_REGISTER_JOB_DEFINITION, definition, NULL, &why) == 0)
		return 0;
	if (why->code == EXIT_UNREACHABLE && is_registered(batch, definition, err) > 0)
		return 0;
	err_freep(err);
	*err = TAKE(why);
	return -1;
}

/* Checked at most once a minute: the attempts of one run share a definition. */
static int see_registered(struct batch *batch, const json_t *definition, struct err **err)
{
	const char *name = js_str(definition, "jobDefinitionName");

	if (batch->registered && strcmp(batch->registered, name) == 0 &&
	    clock_mono_now().ms - batch->registered_at.ms < REGISTERED_MS)
		return 0;
	if (register_once(batch, definition, err) < 0)
		return -1;
	free(batch->registered);
	batch->registered = mem_copy(name);
	batch->registered_at = clock_mono_now();
	return 0;
}

/* ---- the submission ---------------------------------------------------------------------- */

/* Adds the container's variables. The command's own environment is in the order. */
static void add_env(const char *token, const char *region, json_t *env)
{
	js_put_str(env, ORDER_TOKEN, token);
	js_put_str(env, "AWS_REGION", region);
}

int batch_requests(struct engine *engine, const struct engine_job *job, json_t **ret,
		   struct err **err)
{
	const struct batch *batch = (const struct batch *)engine;
	json_auto_t *definition = NULL, *env = NULL;
	AUTO(err_freep) struct err *unset = NULL;
	const char *region = aws_region(&unset);

	env = agent_delivery_env_planned(batch->plan, store_url(batch->store), job);
	if (batch_definition(batch->plan, job->nodes, &definition, err) < 0)
		return -1;
	add_env("<token>", region ? region : ENGINE_NO_REGION, env);
	*ret = json_pack("[{s:s, s:O}, {s:s, s:o}]", "operation", "RegisterJobDefinition", "body",
			 definition, "operation", "SubmitJob", "body",
			 batch_submission(batch->plan, job, definition, env));
	return 0;
}

/* Names the wrong field of the spec if the service's words tell. */
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

/* Returns as `submit` of engine.h. */
static int send_job(struct batch *batch, const struct engine_job *what, struct batch_job *job,
		    const json_t *body, struct err **err)
{
	struct aws_call call = { .operation = AWS_SUBMIT_JOB, .body_fd = -1, .json = body };
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };

	if (aws_perform(batch->aws, &call, &reply, err) == 0 && js_str(reply.json, "jobId")) {
		batch_keep_id(job, js_str(reply.json, "jobId"));
		batch_record_write(batch, job, what->name);
		return 0;
	}
	if (*err && !reply.maybe_done) {
		explain(err);
		if (reply.throttled)
			err_code(err, EXIT_BUSY);
		return -1;
	}
	job->uncertain = clock_mono_now();
	if (!*err)
		err_set(err, EXIT_UNREACHABLE, "AWS Batch took '%s' without a job id", what->name);
	return 1;
}

/* Refuses the name: the logs and costs of the two jobs would be confused, and a person might stop
 * the wrong one. */
static int refuse_name(struct batch *batch, const char *name, struct err **err)
{
	err_set(err, EXIT_SPEC, "a job '%s' of another run is still in the queue '%s'", name,
		batch_spec_text(batch->plan, "batch.job_queue"));
	return err_hint(err, "choose another --id");
}

/* Builds the body of SubmitJob after everything that must precede it. The body shares secrets with
 * `ret_env`, and is wiped with that. */
static int prepare(struct batch *batch, struct batch_job *job, const struct engine_job *what,
		   json_t **ret_env, json_t **ret_body, struct err **err)
{
	json_auto_t *definition = NULL;
	char token[2 * TOKEN_BYTES + 1];
	const char *region;

	if (job->name_in_use)
		return refuse_name(batch, what->name, err);
	hash_random_hex(TOKEN_BYTES, token);
	region = aws_region(err);
	if (!region || batch_definition(batch->plan, what->nodes, &definition, err) < 0 ||
	    see_registered(batch, definition, err) < 0 ||
	    agent_delivery_env(batch->plan, store_url(batch->store), what, ret_env, NULL, err) < 0)
		return -1;
	add_env(token, region, *ret_env);
	*ret_body = batch_submission(batch->plan, what, definition, *ret_env);
	return 0;
}

int batch_submit(struct engine *engine, const struct engine_job *what, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, what->prefix);
	AUTO(secret_json_freep) json_t *env = NULL, *body = NULL;
	int there;

	batch->throttled = false;
	there = find_now(batch, job, what->name, err);
	if (there > 0)
		return 0;
	/* Without permission to list jobs it is unknown whether one exists. */
	if (there < 0 && (*err)->code != EXIT_UNREACHABLE)
		return 1;
	if (there == 0 && prepare(batch, job, what, &env, &body, err) == 0)
		return send_job(batch, what, job, body, err);
	if ((*err)->code == EXIT_UNREACHABLE && batch->throttled)
		err_code(err, EXIT_BUSY);
	return -1;
}
