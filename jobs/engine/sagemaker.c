/* The SageMaker engine's calls: see sagemaker.h. */
#include "jobs/engine/sagemaker.h"

#include <stdlib.h>
#include <string.h>

#include "aws/settings.h"
#include "jobs/base/text.h"
#include "jobs/engine/sagemaker_inside.h"

#define CALL_SILENT_MS 20000 /* an answer takes a second */

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
	sagemaker->far = far_new(store);
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
		toolkit_logs_release(job);
		json_decref(job->said);
		free(job->name);
		free(job);
	}
	free(sagemaker->jobs);
	logs_freep(&sagemaker->logs);
	aws_freep(&sagemaker->aws);
	far_freep(&sagemaker->far);
	store_freep(&sagemaker->store);
	json_decref(sagemaker->plan);
	free(sagemaker);
}

/* ---- calls ---- */

/* One request with this body; what aws_perform() says. */
int sagemaker_call(struct sagemaker *sagemaker, enum aws_operation operation, const json_t *body,
		   struct aws_reply *ret, struct err **err)
{
	struct aws_call what = { .operation = operation, .body_fd = -1, .json = body };

	memset(ret, 0, sizeof *ret);
	if (!sagemaker->aws && aws_open(&sagemaker->aws, err) < 0)
		return -1;
	what.silent_ms = CALL_SILENT_MS;
	return aws_perform(sagemaker->aws, &what, ret, err);
}

static int call_by_name(struct sagemaker *sagemaker, enum aws_operation operation, const char *name,
			struct aws_reply *ret, struct err **err)
{
	json_auto_t *body = json_pack("{s:s}", "TrainingJobName", name);

	return sagemaker_call(sagemaker, operation, body, ret, err);
}

/* Which the service says of a job that it does not know with the same code as of many other
 * things (botocore's waiters-2 go by the code alone). */
static bool is_not_found(const struct aws_reply *reply, const struct err *err)
{
	return strcmp(reply->code, "ResourceNotFound") == 0 ||
	       (strcmp(reply->code, "ValidationException") == 0 && err && err->message &&
		strstr(err->message, "not found"));
}

struct training *sagemaker_job_of(struct sagemaker *sagemaker, const char *name)
{
	struct training *job;

	for (size_t n = 0; n < sagemaker->job_count; n++) {
		size_t i = (sagemaker->last + 1 + n) % sagemaker->job_count;

		if (strcmp(sagemaker->jobs[i]->name, name) != 0)
			continue;
		sagemaker->last = i;
		return sagemaker->jobs[i];
	}
	sagemaker->jobs =
		mem_grow(sagemaker->jobs, sagemaker->job_count + 1, sizeof(struct training *));
	job = mem_zero(1, sizeof *job);
	job->name = mem_copy(name);
	sagemaker->jobs[sagemaker->job_count++] = job;
	return job;
}

static bool same_state(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "SecondaryStatus"),
			  json_object_get(b, "SecondaryStatus")) &&
	       json_equal(json_object_get(a, "TrainingJobStatus"),
			  json_object_get(b, "TrainingJobStatus"));
}

void sagemaker_note(struct training *job, json_t *said)
{
	if (!job->said || !same_state(job->said, said))
		job->changed = mono_now();
	if (sagemaker_is_over(said) && job->ended.ms == 0)
		job->ended = mono_now();
	json_decref(job->said);
	job->said = json_incref(said);
	job->missing.ms = 0;
	job->why[0] = '\0';
}

/* Ask for a job now: 1 it is there, 0 certainly not, -1. */
static int ask(struct sagemaker *sagemaker, struct training *job, struct err **err)
{
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	int outcome = call_by_name(sagemaker, AWS_DESCRIBE_TRAINING_JOB, job->name, &reply, err);

	job->asked = mono_now();
	if (outcome < 0 && is_not_found(&reply, *err)) {
		err_freep(err);
		return 0;
	}
	if (outcome < 0)
		return -1;
	if (!json_is_object(reply.json))
		return err_set(err, EXIT_UNREACHABLE,
			       "sagemaker DescribeTrainingJob: the reply is no description");
	sagemaker_note(job, reply.json);
	return 1;
}

void sagemaker_take_reply(struct training *job, struct aws_reply *reply)
{
	job->asked = mono_now();
	if (!reply->err && json_is_object(reply->json))
		sagemaker_note(job, reply->json);
	else if (reply->err && is_not_found(reply, reply->err) && job->missing.ms == 0)
		job->missing = mono_now();
}

bool sagemaker_is_due(const struct training *job)
{
	struct mono now = mono_now();
	int64_t pace = (now.ms - job->changed.ms) / 3;

	if (job->said && sagemaker_is_over(job->said)) {
		if (!sagemaker_may_be_kept(job->said))
			return false;
		/* Who asks wants to know for how long they were kept. */
		pace = SAGEMAKER_QUICK_MS;
	}
	if (pace < SAGEMAKER_QUICK_MS)
		pace = SAGEMAKER_QUICK_MS;
	if (pace > SAGEMAKER_SLOW_MS)
		pace = SAGEMAKER_SLOW_MS;
	return job->asked.ms == 0 || now.ms - job->asked.ms >= pace;
}

/* See that what is known of a job is fresh. -1: the service is out of reach. What is refused
 * is kept as the reason why the job cannot be seen. */
static int look(struct sagemaker *sagemaker, struct training *job, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int there;

	if (!sagemaker_is_due(job))
		return 0;
	there = ask(sagemaker, job, &why);
	if (job->said && sagemaker_is_over(job->said))
		return 0; /* only what is billed could be new */
	if (there < 0 && why->code == EXIT_UNREACHABLE) {
		*err = TAKE(why);
		return -1;
	}
	if (there < 0)
		snprintf(job->why, sizeof job->why, "%s", why->message);
	if (there == 0 && job->missing.ms == 0)
		job->missing = mono_now();
	return 0;
}

/* ---- submit ---- */

static int check_engine(struct engine *engine, struct err **err)
{
	const struct sagemaker *sagemaker = of(engine);
	/* Any attempt's name and prefix are about as long. */
	const struct engine_job job = {
		.name = "stk-check-train-1",
		.run = "check",
		.phase = "train",
		.attempt = 1,
		.nodes = (int)js_int(sagemaker->plan, "nodes", 1),
		.prefix = "runs/check/train-1/",
		.agent_key = "agents/check/",
	};
	json_auto_t *request = NULL;

	if (!aws_region(err))
		return -1;
	return sagemaker_request(sagemaker, &job, &request, err);
}

static int tell_requests(struct engine *engine, const struct engine_job *job, json_t **ret,
			 struct err **err)
{
	json_t *body = NULL;

	if (sagemaker_request(of(engine), job, &body, err) < 0)
		return -1;
	*ret = json_pack("[{s:s, s:o}]", "operation", "CreateTrainingJob", "body", body);
	return 0;
}

/* The name is taken: by our own earlier try, or by a job that is not ours. */
static int adopt(struct sagemaker *sagemaker, const char *name, const json_t *request,
		 struct err **err)
{
	struct training *job = sagemaker_job_of(sagemaker, name);
	int there = ask(sagemaker, job, err);

	if (there < 0)
		return 1;
	if (there == 0) {
		err_set(err, EXIT_UNREACHABLE,
			"sagemaker says that '%s' is there, and that it is not", name);
		return 1;
	}
	if (sagemaker_is_same(request, job->said))
		return 0;
	err_set(err, EXIT_SPEC, "there is a training job '%s' already, of another workspace", name);
	return err_hint(err, "choose another --id: SageMaker takes a name once");
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
	if (reply.maybe_repeated)
		return 1;
	if (strcmp(reply.code, "ValidationException") == 0)
		err_code(err, EXIT_SPEC);
	return -1;
}

static int submit(struct engine *engine, const struct engine_job *job, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	AUTO(err_freep) struct err *first = NULL;
	json_auto_t *request = NULL;
	int outcome;

	if (sagemaker_request(sagemaker, job, &request, err) < 0)
		return -1;
	outcome = create(sagemaker, job->name, request, err);
	if (outcome >= 0 || (*err)->code != EXIT_SPEC ||
	    !json_object_get(request, "InfraCheckConfig"))
		return outcome;
	/* Which instance types it may be asked for on is written nowhere. */
	json_object_del(request, "InfraCheckConfig");
	first = TAKE(*err);
	outcome = create(sagemaker, job->name, request, err);
	if (outcome == 0)
		err_set(err, EXIT_REFUSED, "without SageMaker's own check of the machines: %s",
			first->message);
	return outcome;
}

static int find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	AUTO(auto_free)
	char *path = mem_format("%s/%ssagemaker", store_url(sagemaker->store), prefix);
	json_auto_t *wanted = json_pack("{s:{s:s}}", "OutputDataConfig", "S3OutputPath", path);
	int there = ask(sagemaker, job, err);

	if (there <= 0 || sagemaker_is_same(wanted, job->said))
		return there;
	err_set(err, EXIT_SPEC, "the training job '%s' is of another workspace", name);
	return err_hint(err, "choose another --id: SageMaker takes a name once");
}

/* ---- watching ---- */

static int nodes_of(const struct sagemaker *sagemaker)
{
	return (int)js_int(sagemaker->plan, "nodes", 1);
}

static void say(struct engine_status *ret, enum engine_state state, const char *reason)
{
	*ret = (struct engine_status){ .state = state };
	snprintf(ret->reason, sizeof ret->reason, "%s", reason);
}

/* A container in which no agent came up said why in its own log, which is shown late. */
static bool waits_for_log(struct sagemaker *sagemaker, struct training *job,
			  const struct reports *reports)
{
	return reports->there == 0 && json_object_get(job->said, "TrainingStartTime") &&
	       mono_now().ms - job->ended.ms < SAGEMAKER_LOG_MS &&
	       !sagemaker_has_cloud_logs(sagemaker, job, 0);
}

static int describe(struct engine *engine, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	bool was_over = job->ended.ms > 0;
	struct reports reports;

	say(ret, ENGINE_UNSEEN, "");
	if (look(sagemaker, job, err) < 0)
		return -1;
	if (job->missing.ms > 0) {
		bool gone = mono_now().ms - job->missing.ms >= SAGEMAKER_GONE_MS;

		say(ret, gone ? ENGINE_ENDED : ENGINE_UNSEEN,
		    "SageMaker does not know the job: was it deleted?");
		return 0;
	}
	if (job->why[0] || !job->said) {
		say(ret, ENGINE_UNSEEN, job->why);
		return 0;
	}
	if (sagemaker->toolkit) {
		toolkit_status(sagemaker, job, ret);
		return 0;
	}
	/* What the agents said last is there now. */
	if (job->ended.ms > 0 && !was_over)
		far_forget(sagemaker->far, prefix);
	if (reports_look(sagemaker->far, prefix, nodes_of(sagemaker), &reports, err) < 0)
		return -1;
	sagemaker_status(job->said, &reports, ret);
	if (ret->state == ENGINE_ENDED && waits_for_log(sagemaker, job, &reports))
		say(ret, ENGINE_STOPPING, "its log is waited for");
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
	if (job->stopped.ms > 0 && mono_now().ms - job->stopped.ms < SAGEMAKER_STOP_MS)
		return 0;
	if (call_by_name(sagemaker, AWS_STOP_TRAINING_JOB, name, &reply, err) < 0) {
		/* It has ended, or never was. */
		if (strcmp(reply.code, "ValidationException") != 0 && !is_not_found(&reply, *err))
			return -1;
		err_freep(err);
	}
	job->stopped = mono_now();
	job->changed = job->stopped; /* look often */
	return 0;
}

static int logs(struct engine *engine, const char *name, const char *prefix, int node,
		uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	struct training *job = sagemaker_job_of(sagemaker, name);
	uint64_t before = *offset;

	if (sagemaker->toolkit)
		return toolkit_logs(sagemaker, job, node, offset, max, ret, err);
	/* Bytes of one place do not continue those of another. */
	if (!job->logs || node >= job->log_count) {
		if (far_logs(sagemaker->far, prefix, node, offset, max, ret, err) < 0)
			return -1;
		if (before > 0 || *offset > 0 || look(sagemaker, job, err) < 0)
			return *err ? -1 : 0;
		if (job->ended.ms == 0)
			return 0;
	}
	return sagemaker_cloud_logs(sagemaker, job, node, offset, max, ret, err);
}

static int report(struct engine *engine, const char *name, const char *prefix, int node,
		  json_t **ret, struct err **err)
{
	if (of(engine)->toolkit)
		return toolkit_report(sagemaker_job_of(of(engine), name), node, ret);
	return reports_get(of(engine)->far, prefix, node, ret, err);
}

/* ---- the end ---- */

/* For how long its machines were kept after its end, in seconds. */
static int64_t kept_seconds(const json_t *said)
{
	int64_t ended_ms = (int64_t)(js_real(said, "TrainingEndTime", 0) * 1000);
	int64_t seconds = sagemaker_kept_ms(said) / 1000;

	/* Of what is kept still, the service does not say it yet. */
	if (seconds == 0 && sagemaker_is_kept(said) && ended_ms > 0)
		seconds = (utc_now().ms - ended_ms) / 1000;
	return seconds > 0 ? seconds : 0;
}

static int let_go(struct sagemaker *sagemaker, const char *name, struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:{s:i}}", "TrainingJobName", name, "ResourceConfig",
				      "KeepAlivePeriodInSeconds", 0);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };

	if (sagemaker_call(sagemaker, AWS_UPDATE_TRAINING_JOB, body, &reply, err) == 0)
		return 0;
	err_wrap(err, "cannot give back the machines that are kept after '%s'", name);
	return err_hint(err, "they are paid for until sagemaker.warm_pool is over: allow "
			     "sagemaker:UpdateTrainingJob");
}

static int release(struct engine *engine, const char *name, const char *prefix,
		   int64_t *ret_seconds, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);
	const char *text = json_string_value(js_path(sagemaker->plan, "spec.sagemaker.warm_pool"));
	struct training *job = sagemaker_job_of(sagemaker, name);
	int64_t keep_ms = 0;
	int there;

	(void)prefix;
	*ret_seconds = 0;
	if (!text || !text_duration(text, &keep_ms) || keep_ms == 0)
		return 0;
	there = ask(sagemaker, job, err);
	if (there <= 0)
		return there;
	*ret_seconds = kept_seconds(job->said);
	if (sagemaker_is_kept(job->said))
		return let_go(sagemaker, name, err) < 0 ? -1 : 1;
	return *ret_seconds > 0;
}

const struct engine_ops sagemaker_ops = {
	.name = "sagemaker",
	.machines_apart = true,
	.stop_ms = 120000, /* from SIGTERM to SIGKILL, says the developer guide on stopping */
	.open = open_engine,
	.close = close_engine,
	.check = check_engine,
	.requests = tell_requests,
	.submit = submit,
	.find = find,
	.describe = describe,
	.survey = sagemaker_survey,
	.stop = stop,
	.logs = logs,
	.report = report,
	.release = release,
};
