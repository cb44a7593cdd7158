/* How a job of AWS Batch goes: see batch.h. */
#include <string.h>

#include "jobs/engine/batch_inside.h"
#include "jobs/engine/reports.h"

#define IDS_MAX 100 /* of DescribeJobs */

static bool is(const json_t *object, const char *key, const char *word)
{
	const char *text = js_str(object, key);

	return text && strcmp(text, word) == 0;
}

bool batch_is_over(const json_t *job)
{
	return is(job, "status", "SUCCEEDED") || is(job, "status", "FAILED");
}

/* A job of several containers has them in tasks. */
const json_t *batch_container(const json_t *job)
{
	const json_t *tasks = js_path(job, "ecsProperties.taskProperties");
	json_t *container;
	size_t i;

	json_array_foreach (json_object_get(json_array_get(tasks, 0), "containers"), i, container)
		if (is(container, "name", BATCH_MAIN))
			return container;
	return json_object_get(job, "container");
}

/* ---- asking ----------------------------------------------------------------------------- */

static int ask_page(struct batch *batch, struct batch_job *job, int from, int to, json_t *ret,
		    struct err **err)
{
	json_auto_t *ids = json_array(), *body = NULL, *reply = NULL;

	for (int i = from; i < to; i++) {
		AUTO(auto_free)
		char *id = i < 0 ? mem_copy(job->id) : mem_format("%s#%d", job->id, i);

		json_array_append_new(ids, json_string(id));
	}
	body = json_pack("{s:O}", "jobs", ids);
	if (batch_ask(batch, AWS_DESCRIBE_JOBS, body, &reply, err) < 0)
		return -1;
	json_array_extend(ret, json_object_get(reply, "jobs"));
	return 0;
}

/* Of these the one with that id; NULL: unknown to the service. */
static json_t *pick(const json_t *list, const char *id)
{
	json_t *row;
	size_t i;

	json_array_foreach ((json_t *)list, i, row)
		if (is(row, "jobId", id) && js_str(row, "status"))
			return row;
	return NULL;
}

void batch_take_in(struct batch_job *job, const json_t *list, int nodes)
{
	json_t *found = pick(list, job->id);

	if (!found)
		return;
	if (!job->job || !is(found, "status", js_str(job->job, "status")))
		job->changed = mono_now();
	job->seen = mono_now();
	json_decref(job->job);
	job->job = json_incref(found);
	if (nodes < 2)
		return;
	json_decref(job->nodes);
	job->nodes = json_array();
	for (int i = 0; i < nodes; i++) {
		AUTO(auto_free) char *id = mem_format("%s#%d", job->id, i);
		json_t *node = pick(list, id);

		json_array_append_new(job->nodes, node ? json_incref(node) : json_null());
	}
}

/* 1 the service knows it, 0 it does not, -1. */
static int ask(struct batch *batch, struct batch_job *job, struct err **err)
{
	int nodes = (int)js_int(batch->plan, "nodes", 1), last = nodes < 2 ? 0 : nodes;
	json_auto_t *list = json_array();

	for (int from = -1; from < last; from += IDS_MAX) {
		int to = from + IDS_MAX < last ? from + IDS_MAX : last;

		if (ask_page(batch, job, from, to, list, err) < 0)
			return -1;
	}
	batch_take_in(job, list, nodes);
	return pick(list, job->id) != NULL;
}

static int64_t pace_ms(const struct batch_job *job)
{
	return job->job && mono_now().ms - job->changed.ms >= QUIET_AFTER_MS ? QUIET_MS : BUSY_MS;
}

bool batch_is_due(const struct batch_job *job)
{
	return !batch_is_over(job->job) &&
	       (job->asked.ms == 0 || mono_now().ms - job->asked.ms >= pace_ms(job));
}

/* ---- telling ------------------------------------------------------------------------------ */

static void unseen(struct engine_status *ret, const char *fmt, ...) STK_PRINTF(2, 3);

static void unseen(struct engine_status *ret, const char *fmt, ...)
{
	va_list args;

	*ret = (struct engine_status){ .state = ENGINE_UNSEEN };
	va_start(args, fmt);
	vsnprintf(ret->reason, sizeof ret->reason, fmt, args);
	va_end(args);
}

static void tell_waiting(const struct batch_job *job, struct engine_status *ret)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(sizeof ret->reason - 1);

	ret->state = ENGINE_QUEUED;
	batch_wait_words(js_str(job->job, "status"), js_str(job->job, "statusReason"),
			 utc_now().ms - js_int(job->job, "createdAt", utc_now().ms), &words);
	snprintf(ret->reason, sizeof ret->reason, "%s", words.text);
}

static int tell_running(struct batch *batch, struct batch_job *job, struct engine_status *ret,
			struct err **err)
{
	struct reports reports;

	if (reports_look(batch->far, job->prefix, (int)js_int(batch->plan, "nodes", 1), &reports,
			 err) < 0)
		return -1;
	ret->state = reports.running ? ENGINE_RUNNING : ENGINE_STARTING;
	ret->started = reports.started;
	return 0;
}

/* Instances are EC2's to bill; Batch itself tells when the job had them. */
static void bill(const json_t *said, struct engine_status *ret)
{
	ret->held.ms = js_int(said, "startedAt", 0);
	ret->released.ms = ret->held.ms > 0 ? js_int(said, "stoppedAt", 0) : 0;
	if (ret->released.ms > ret->held.ms)
		ret->billable_ms = ret->released.ms - ret->held.ms;
}

static int tell(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		struct err **err)
{
	*ret = (struct engine_status){ .state = ENGINE_UNSEEN };
	if (batch_is_over(job->job)) {
		if (batch_tell_end(batch, job, ret, err) < 0)
			return -1;
		if (ret->state == ENGINE_ENDED)
			bill(job->job, ret);
		return 0;
	}
	bill(job->job, ret);
	if (batch_stop_lost(batch, job, err) < 0)
		return -1;
	if (is(job->job, "status", "RUNNING")) {
		if (tell_running(batch, job, ret, err) < 0)
			return -1;
	} else if (is(job->job, "status", "STARTING")) {
		ret->state = ENGINE_STARTING;
	} else {
		tell_waiting(job, ret);
	}
	if (job->stopped.ms > 0)
		ret->state = ENGINE_STOPPING;
	return 0;
}

/* The service has forgotten it, or never had it; all of its agents may have reported. */
static int tell_forgotten(struct batch *batch, struct batch_job *job, const char *name,
			  struct engine_status *ret, struct err **err)
{
	int nodes = (int)js_int(batch->plan, "nodes", 1);
	struct reports reports;

	if (reports_look(batch->far, job->prefix, nodes, &reports, err) < 0)
		return -1;
	if (reports.final == nodes)
		return batch_tell_end(batch, job, ret, err);
	if (job->id[0])
		unseen(ret, "AWS Batch does not know job %s", job->id);
	else
		unseen(ret, "AWS Batch lists no job '%s' in queue '%s'", name,
		       batch_says(batch->plan, "batch.job_queue"));
	return 0;
}

/* What cannot be asked for now is as it was seen last, for a while; then it is unseen. */
static int tell_away(struct batch_job *job, struct engine_status *ret, struct err **err)
{
	if ((*err)->code != EXIT_UNREACHABLE)
		return -1;
	if (!job->job || mono_now().ms - job->seen.ms >= STALE_MS)
		unseen(ret, "%s", (*err)->message);
	else
		*ret = job->told;
	err_freep(err);
	return 0;
}

/* What was asked for lately is not asked for again. An end is one. */
static int look(struct batch *batch, struct batch_job *job, const char *name,
		struct engine_status *ret, struct err **err)
{
	int known;

	if (batch_is_over(job->job))
		return tell(batch, job, ret, err);
	if (job->asked.ms > 0 && mono_now().ms - job->asked.ms < pace_ms(job)) {
		if (!job->job || job->told.state == ENGINE_UNSEEN) {
			*ret = job->told;
			return 0;
		}
		return tell(batch, job, ret, err);
	}
	job->asked = mono_now();
	known = batch_identify(batch, job, name, true, err);
	if (known > 0)
		known = ask(batch, job, err);
	if (known < 0)
		return -1;
	return known > 0 ? tell(batch, job, ret, err) : tell_forgotten(batch, job, name, ret, err);
}

int batch_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);

	if (job->told_at.ms > 0 && mono_now().ms - job->told_at.ms < TOLD_MS) {
		*ret = job->told;
		return 0;
	}
	if (look(batch, job, name, ret, err) < 0 && tell_away(job, ret, err) < 0)
		return -1;
	job->told = *ret;
	job->told_at = mono_now();
	return 0;
}

void batch_state(const struct batch_job *job, struct engine_status *ret)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(sizeof ret->reason - 1);
	const json_t *container = batch_container(job->job);

	*ret = (struct engine_status){ .state = ENGINE_UNSEEN };
	if (!job->job)
		return;
	if (batch_is_over(job->job)) {
		ret->state = ENGINE_ENDED;
		ret->exit_known = json_is_integer(json_object_get(container, "exitCode"));
		ret->exit = (int)js_int(container, "exitCode", 0);
		batch_end_words(job->job, &words);
		snprintf(ret->reason, sizeof ret->reason, "%s", words.text);
	} else if (job->stopped.ms > 0) {
		ret->state = ENGINE_STOPPING;
	} else if (is(job->job, "status", "RUNNING")) {
		ret->state = ENGINE_RUNNING;
	} else if (is(job->job, "status", "STARTING")) {
		ret->state = ENGINE_STARTING;
	} else {
		tell_waiting(job, ret);
	}
}

int batch_report(struct engine *engine, const char *name, const char *prefix, int node,
		 json_t **ret, struct err **err)
{
	(void)name;
	return reports_get(((struct batch *)engine)->far, prefix, node, ret, err);
}
