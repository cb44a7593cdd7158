/* The SageMaker engine's calls: see sagemaker.h. */
#include "jobs/engine/sagemaker/sagemaker.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/sagemaker/sagemaker_internal.h"
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"

static struct sagemaker *of(struct engine *engine)
{
	return (struct sagemaker *)engine;
}

static int open_engine(const struct engine_where *where, struct engine **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	struct sagemaker *sagemaker;
	const char *launcher;

	if (store_open(where->workspace, &store, err) < 0)
		return -1;
	sagemaker = mem_zero(1, sizeof *sagemaker);
	sagemaker->engine.ops = &sagemaker_ops;
	sagemaker->plan = json_incref((json_t *)(uintptr_t)where->plan);
	launcher = json_string_value(js_path(where->plan, "spec.sagemaker.launcher"));
	sagemaker->toolkit = launcher && strcmp(launcher, "toolkit") == 0;
	sagemaker->cache = workspace_cache_new(store);
	sagemaker->store = TAKE(store);
	*ret = &sagemaker->engine;
	return 0;
}

static void close_engine(struct engine *engine)
{
	struct sagemaker *sagemaker = of(engine);

	if (!sagemaker)
		return;
	for (size_t i = 0; i < sagemaker->job_count; i++) {
		struct training *job = sagemaker->jobs[i];

		sagemaker_logs_release(job);
		sagemaker_toolkit_logs_release(job);
		json_decref(job->description);
		free(job->name);
		free(job);
	}
	free(sagemaker->jobs);
	logs_freep(&sagemaker->logs);
	aws_freep(&sagemaker->aws);
	workspace_cache_freep(&sagemaker->cache);
	store_freep(&sagemaker->store);
	json_decref(sagemaker->plan);
	free(sagemaker);
}

/* ---- calls ---- */

/* True if the service does not know the job. Its code for that is the code of many other errors
 * (botocore's waiters-2 go by the code alone), so the message decides. */
static bool is_not_found(const struct aws_reply *reply, const struct err *err)
{
	return strcmp(reply->code, "ResourceNotFound") == 0 ||
	       (strcmp(reply->code, "ValidationException") == 0 && err && err->message &&
		strstr(err->message, "not found"));
}

static bool same_state(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "SecondaryStatus"),
			  json_object_get(b, "SecondaryStatus")) &&
	       json_equal(json_object_get(a, "TrainingJobStatus"),
			  json_object_get(b, "TrainingJobStatus"));
}

static void keep_description(struct training *job, json_t *description)
{
	if (!job->description || !same_state(job->description, description))
		job->changed = clock_mono_now();
	if (sagemaker_is_over(description) && job->ended.ms == 0)
		job->ended = clock_mono_now();
	json_decref(job->description);
	job->description = json_incref(description);
	job->heard = clock_mono_now();
	job->missing.ms = job->sign.at.ms = job->sign.since.ms = 0;
	job->stop_missed = false;
	job->why[0] = '\0';
}

static void mark_missing(struct training *job)
{
	job->missed = clock_mono_now();
	if (job->missing.ms == 0)
		job->missing = job->missed;
}

/* Describes a job now: 1 it exists, 0 certainly not, -1. */
static int describe_job(struct sagemaker *sagemaker, struct training *job, struct err **err)
{
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	int outcome = sagemaker_call_by_name(sagemaker, AWS_DESCRIBE_TRAINING_JOB, job->name,
					     &reply, err);

	job->asked = clock_mono_now();
	if (outcome < 0 && is_not_found(&reply, *err)) {
		err_freep(err);
		return 0;
	}
	if (outcome < 0)
		return -1;
	if (!json_is_object(reply.json))
		return err_set(err, EXIT_UNREACHABLE,
			       "sagemaker DescribeTrainingJob: the reply has no description");
	keep_description(job, reply.json);
	return 1;
}

/* True if the last description of the job is too old. */
static bool is_due(const struct training *job)
{
	struct mono now = clock_mono_now();
	int64_t interval_ms = (now.ms - job->changed.ms) / 3;

	if (job->description && sagemaker_is_over(job->description))
		return false;
	if (interval_ms < SAGEMAKER_QUICK_MS)
		interval_ms = SAGEMAKER_QUICK_MS;
	if (interval_ms > SAGEMAKER_SLOW_MS)
		interval_ms = SAGEMAKER_SLOW_MS;
	return job->asked.ms == 0 || now.ms - job->asked.ms >= interval_ms;
}

/* Refreshes the description of a job. -1: the service cannot be reached, and its last answer is too
 * old. A refusal is kept as the reason why the job cannot be seen. */
static int refresh(struct sagemaker *sagemaker, struct training *job, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int there;

	if (!is_due(job))
		return 0;
	there = describe_job(sagemaker, job, &why);
	if (there < 0 && why->code == EXIT_UNREACHABLE) {
		if (job->description && clock_mono_now().ms - job->heard.ms < SAGEMAKER_STALE_MS)
			return 0;
		*err = TAKE(why);
		return -1;
	}
	if (there < 0) {
		snprintf(job->why, sizeof job->why, "%s", why->message);
		snprintf(job->hint, sizeof job->hint, "%s", why->hint ? why->hint : "");
	}
	if (there == 0)
		mark_missing(job);
	return 0;
}

/* ---- submit ---- */

static int check_engine(struct engine *engine, struct err **err)
{
	const struct sagemaker *sagemaker = of(engine);
	/* All attempts have names and prefixes of about this length. */
	const struct engine_job job = {
		.name = "stk-check-train-1",
		.run = "check",
		.phase = "train",
		.attempt = 1,
		.nodes = sagemaker_nodes(sagemaker),
		.prefix = "runs/check/train-1/",
		.agent_key = "agents/check/",
	};
	json_auto_t *request = NULL;
	const char *region = aws_region(err);

	return region ? sagemaker_request(sagemaker, &job, region, &request, err) : -1;
}

static int build_requests(struct engine *engine, const struct engine_job *job, json_t **ret,
			  struct err **err)
{
	AUTO(err_freep) struct err *unset = NULL;
	const char *region = aws_region(&unset);
	json_t *body = NULL;

	if (sagemaker_request(of(engine), job, region ? region : ENGINE_NO_REGION, &body, err) < 0)
		return -1;
	*ret = json_pack("[{s:s, s:o}]", "operation", "CreateTrainingJob", "body", body);
	return 0;
}

static json_t *build_command(const json_t *plan, const char *phase)
{
	const char *launcher = json_string_value(js_path(plan, "spec.sagemaker.launcher"));

	return launcher && strcmp(launcher, "toolkit") == 0 ? sagemaker_toolkit_command(plan, phase)
							    : NULL;
}

/* Handles a name that is taken: by an earlier try of this submit, or by a foreign job. */
static int adopt(struct sagemaker *sagemaker, const char *name, const json_t *request,
		 struct err **err)
{
	struct training *job = sagemaker_job_of(sagemaker, name);
	int there = describe_job(sagemaker, job, err);

	if (there < 0)
		return 1;
	if (there == 0) {
		err_set(err, EXIT_UNREACHABLE,
			"sagemaker reports '%s' both as existing and as missing", name);
		return 1;
	}
	if (sagemaker_is_same(request, job->description))
		return 0;
	err_set(err, EXIT_SPEC, "the training job '%s' already exists, for another workspace",
		name);
	return err_hint(err, "choose another --id; SageMaker accepts a name only once");
}

/* Looks the job up after a refusal. An earlier try with a lost reply may have succeeded all the
 * same, and have used up the quota. */
static int find_after_refusal(struct sagemaker *sagemaker, const char *name, const json_t *request,
			      struct err **err)
{
	struct training *job = sagemaker_job_of(sagemaker, name);
	AUTO(err_freep) struct err *unknown = NULL;
	int there = describe_job(sagemaker, job, &unknown);

	if (there < 0)
		return unknown->code == EXIT_UNREACHABLE ? 1 : -1;
	if (there == 0 || !sagemaker_is_same(request, job->description))
		return -1;
	err_freep(err);
	return 0;
}

static int create(struct sagemaker *sagemaker, const char *name, const json_t *request,
		  struct err **err)
{
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };

	if (sagemaker_call(sagemaker, AWS_CREATE_TRAINING_JOB, request, &reply, err) == 0)
		return 0;
	if (strcmp(reply.code, "ResourceInUse") == 0) {
		err_freep(err);
		return adopt(sagemaker, name, request, err);
	}
	if ((*err)->code == EXIT_UNREACHABLE) {
		if (reply.throttled && !reply.maybe_done)
			err_code(err, EXIT_BUSY);
		return reply.maybe_done ? 1 : -1;
	}
	if (strcmp(reply.code, "ValidationException") == 0)
		err_code(err, EXIT_SPEC);
	if (strcmp(reply.code, "ResourceLimitExceeded") == 0 && strstr((*err)->message, "run time"))
		err_hint(err, "lower sagemaker.max_runtime (or limits.deadline, which it follows), "
			      "or ask for a higher quota of that name");
	return find_after_refusal(sagemaker, name, request, err);
}

static int send_order(struct sagemaker *sagemaker, const struct engine_job *job, struct err **err)
{
	AUTO(err_freep) struct err *first = NULL;
	json_auto_t *request = NULL;
	const char *region = aws_region(err);
	int outcome;

	if (!region || sagemaker_request(sagemaker, job, region, &request, err) < 0)
		return -1;
	outcome = create(sagemaker, job->name, request, err);
	if (outcome >= 0 || (*err)->code != EXIT_SPEC ||
	    !json_object_get(request, "InfraCheckConfig"))
		return outcome;
	/* The instance types that support it are not documented. */
	json_object_del(request, "InfraCheckConfig");
	first = TAKE(*err);
	outcome = create(sagemaker, job->name, request, err);
	if (outcome == 0)
		err_set(err, EXIT_REFUSED, "without SageMaker's own check of the machines: %s",
			first->message);
	return outcome;
}

static int submit(struct engine *engine, const struct engine_job *job, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	int outcome = send_order(sagemaker, job, err);

	if (outcome > 0)
		sagemaker_job_of(sagemaker, job->name)->uncertain = clock_mono_now();
	return outcome;
}

static int find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	AUTO(auto_free)
	char *path = mem_format("%s/%ssagemaker", store_url(sagemaker->store), prefix);
	json_auto_t *expected = json_pack("{s:{s:s}}", "OutputDataConfig", "S3OutputPath", path);
	int there = describe_job(sagemaker, job, err);

	if (there < 0)
		return -1;
	/* Another process, dead now, may have sent it a moment ago. */
	if (there == 0 && job->uncertain.ms == 0)
		job->uncertain = clock_mono_now();
	if (there == 0 && clock_mono_now().ms - job->uncertain.ms < SAGEMAKER_SHOWN_MS)
		return err_set(err, EXIT_UNREACHABLE, "SageMaker may not show '%s' yet", name);
	if (there == 0 || sagemaker_is_same(expected, job->description))
		return there;
	err_set(err, EXIT_SPEC, "the training job '%s' is of another workspace", name);
	return err_hint(err, "choose another --id; SageMaker accepts a name only once");
}

/* ---- watching ---- */

static void set_status(struct engine_status *ret, enum engine_state state, const char *reason)
{
	*ret = (struct engine_status){ .state = state };
	snprintf(ret->reason, sizeof ret->reason, "%s", reason);
}

/* True if the log is still expected: a container in which no agent came up gave the reason in its
 * own log, which is shown late. */
static bool waits_for_log(struct sagemaker *sagemaker, struct training *job,
			  const struct reports *reports)
{
	return reports->there == 0 && json_object_get(job->description, "TrainingStartTime") &&
	       clock_mono_now().ms - job->ended.ms < SAGEMAKER_LOG_MS &&
	       !sagemaker_has_cloud_logs(sagemaker, job, 0);
}

static int describe(struct engine *engine, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	int nodes = sagemaker_nodes(sagemaker);
	struct reports reports;

	set_status(ret, ENGINE_UNKNOWN, "");
	if (refresh(sagemaker, job, err) < 0)
		return -1;
	if (job->missing.ms > 0)
		return sagemaker_missing_status(sagemaker, job, prefix, ret, err);
	if (job->why[0] || !job->description) {
		set_status(ret, ENGINE_UNKNOWN, job->why);
		if (job->why[0])
			memcpy(ret->hint, job->hint, sizeof ret->hint);
		return 0;
	}
	if (sagemaker->toolkit) {
		sagemaker_toolkit_status(sagemaker, job, ret);
		return 0;
	}
	/* The agents' last reports are in the store now. */
	if (job->ended.ms > 0 && !job->reports_read)
		workspace_cache_forget(sagemaker->cache, prefix);
	if (reports_read(sagemaker->cache, prefix, nodes, &reports, err) < 0)
		return -1;
	job->reports_read = job->ended.ms > 0;
	sagemaker_status(job->description, &reports, nodes, ret);
	if (ret->state == ENGINE_ENDED && waits_for_log(sagemaker, job, &reports))
		set_status(ret, ENGINE_STOPPING, "waiting for the log");
	return 0;
}

static int stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };

	(void)prefix;
	(void)grace_ms;
	if (job->stopped.ms > 0 && clock_mono_now().ms - job->stopped.ms < SAGEMAKER_STOP_MS)
		return 0;
	if (sagemaker_call_by_name(sagemaker, AWS_STOP_TRAINING_JOB, name, &reply, err) < 0) {
		/* The job has ended, or never existed. */
		job->stop_missed = is_not_found(&reply, *err);
		if (strcmp(reply.code, "ValidationException") != 0 && !job->stop_missed)
			return -1;
		err_freep(err);
	}
	job->stopped = clock_mono_now();
	job->changed = job->stopped; /* poll often again */
	return 0;
}

static int logs(struct engine *engine, const char *name, const char *prefix, int node,
		uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	uint64_t before = *offset;

	if (sagemaker->toolkit)
		return sagemaker_toolkit_logs(sagemaker, job, node, offset, max, ret, err);
	/* Bytes of one source do not continue those of the other. */
	if (!job->logs || node >= job->log_count) {
		if (workspace_cache_logs(sagemaker->cache, prefix, node, offset, max, ret, err) < 0)
			return -1;
		if (before > 0 || *offset > 0 || refresh(sagemaker, job, err) < 0)
			return *err ? -1 : 0;
		if (job->ended.ms == 0)
			return 0;
	}
	return sagemaker_cloud_logs(sagemaker, job, node, offset, max, ret, err);
}

/* ---- the end ---- */

static bool has_had_machines(const json_t *description)
{
	return sagemaker_is_over(description) && json_object_get(description, "TrainingStartTime");
}

/* Gives the kept machines back: 1 done, 0 there are none and none were `seen`, -1. */
static int let_go(struct sagemaker *sagemaker, const char *name, bool seen, struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:{s:i}}", "TrainingJobName", name, "ResourceConfig",
				      "KeepAlivePeriodInSeconds", 0);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(auto_free) char *cure = NULL;

	if (sagemaker_call(sagemaker, AWS_UPDATE_TRAINING_JOB, body, &reply, err) == 0)
		return 1;
	if (!seen && strcmp(reply.code, "ValidationException") == 0) {
		err_freep(err);
		return 0;
	}
	err_wrap(err, "cannot give back the machines that are kept after '%s'", name);
	cure = mem_copy((*err)->hint ? (*err)->hint : "");
	return err_hint(err,
			"allow sagemaker:UpdateTrainingJob; %s paid for until sagemaker.warm_pool "
			"is over%s%s",
			seen ? "they are" : "any kept machines are", *cure ? "; " : "", cure);
}

static int release(struct engine *engine, const char *name, const char *prefix,
		   int64_t *ret_seconds, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	const char *text = json_string_value(js_path(sagemaker->plan, "spec.sagemaker.warm_pool"));
	struct training *job = sagemaker_job_of(sagemaker, name);
	int64_t keep_ms = 0;
	bool seen;
	int given;

	(void)prefix;
	*ret_seconds = 0;
	if (!text || !text_duration(text, &keep_ms) || keep_ms == 0)
		return 0;
	given = describe_job(sagemaker, job, err);
	if (given <= 0 || !has_had_machines(job->description))
		return given < 0 ? -1 : 0;
	*ret_seconds = sagemaker_kept_ms(job->description) / 1000;
	if (!sagemaker_may_be_kept(job->description))
		return *ret_seconds > 0;
	seen = sagemaker_is_kept(job->description);
	if (!seen && clock_mono_now().ms - job->ended.ms < SAGEMAKER_POOL_MS)
		return err_set(err, EXIT_BUSY,
			       "SageMaker has not reported the state of the machines of '%s' yet",
			       name);
	given = let_go(sagemaker, name, seen, err);
	/* For machines given back just now the service does not report how long they were kept. */
	if (given > 0)
		*ret_seconds = (clock_utc_now().ms -
				sagemaker_time_ms(job->description, "TrainingEndTime")) /
			       1000;
	else if (given < 0 && seen)
		*ret_seconds = keep_ms / 1000;
	return given;
}

const struct engine_ops sagemaker_ops = {
	.name = "sagemaker",
	.machines_apart = true,
	.by_shell = "with 'sagemaker: {remote_debug: true}' in the spec, 'aws ssm start-session "
		    "--target sagemaker-training-job:JOB_algo-1' opens a shell on the first node",
	.by_hand = "aws sagemaker stop-training-job --training-job-name",
	.in_image = true,
	.stop_ms = 120000, /* from SIGTERM to SIGKILL, says the developer guide on stopping */
	.open = open_engine,
	.close = close_engine,
	.check = check_engine,
	.requests = build_requests,
	.command = build_command,
	.submit = submit,
	.find = find,
	.describe = describe,
	.stop = stop,
	.logs = logs,
	.log_size = sagemaker_log_size,
	.log_written = sagemaker_log_written,
	.log_time = sagemaker_log_time,
	.log_id = sagemaker_log_id,
	.log_lacks_end = sagemaker_log_lacks_end,
	.log_place = sagemaker_log_place,
	.log_go_on = sagemaker_log_go_on,
	.report = sagemaker_report,
	.beside = sagemaker_beside,
	.release = release,
};
