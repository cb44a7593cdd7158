/* State of a job of AWS Batch: see batch.h. */
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

/* Time after which the service has surely forgotten an ended job: "about 7 days", says its user
 * guide. */
#define KEPT_MS (INT64_C(8) * 24 * 3600 * 1000)

/* ---- asking ----------------------------------------------------------------------------- */

/* Takes the job from a reply of DescribeJobs, and its nodes if there are several. */
static void keep_description(struct batch_job *job, const json_t *list, int nodes)
{
	json_t *found = batch_pick(list, job->id);

	if (!found)
		return;
	if (!job->job || !js_is(found, "status", job->summary.status))
		job->changed = clock_mono_now();
	job->seen = clock_mono_now();
	batch_set_description(job, json_incref(found));
	if (nodes < 2)
		return;
	json_decref(job->nodes);
	job->nodes = json_array();
	for (int i = 0; i < nodes; i++) {
		AUTO(auto_free) char *id = mem_format("%s#%d", job->id, i);
		json_t *node = batch_pick(list, id);

		json_array_append_new(job->nodes, node ? json_incref(node) : json_null());
	}
}

/* Describes the job: 1 if the service knows it, 0 if not, -1. */
static int describe_job(struct batch *batch, struct batch_job *job, struct err **err)
{
	int nodes = batch_nodes(batch), last = nodes < 2 ? 0 : nodes;
	json_auto_t *list = json_array();

	for (int from = -1; from < last; from += BATCH_IDS_MAX) {
		int to = from + BATCH_IDS_MAX < last ? from + BATCH_IDS_MAX : last;

		if (batch_describe_nodes(batch, job, from, to, list, err) < 0)
			return -1;
	}
	keep_description(job, list, nodes);
	return batch_pick(list, job->id) != NULL;
}

/* Time between two requests. A job that has just changed is likely to change again soon. */
static int64_t poll_interval_ms(const struct batch_job *job)
{
	int64_t since = clock_mono_now().ms - job->changed.ms, interval_ms = since / 3;

	if (!job->job)
		return BUSY_MS;
	if (since >= QUIET_AFTER_MS)
		return QUIET_MS;
	return interval_ms < QUICK_MS ? QUICK_MS : interval_ms < BUSY_MS ? interval_ms : BUSY_MS;
}

/* ---- telling ------------------------------------------------------------------------------ */

static void set_unknown(struct engine_status *ret, const char *fmt, ...) STK_PRINTF(2, 3);

static void set_unknown(struct engine_status *ret, const char *fmt, ...)
{
	va_list args;

	*ret = (struct engine_status){ .state = ENGINE_UNKNOWN };
	va_start(args, fmt);
	vsnprintf(ret->reason, sizeof ret->reason, fmt, args);
	va_end(args);
}

static void set_wait_reason(const struct batch_job *job, struct engine_status *ret)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(sizeof ret->reason - 1);

	batch_wait_words(job->summary.status, job->summary.reason,
			 clock_utc_now().ms - js_int(job->job, "createdAt", clock_utc_now().ms),
			 &words);
	snprintf(ret->reason, sizeof ret->reason, "%s", words.text);
}

static int set_running(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		       struct err **err)
{
	struct reports reports;

	if (reports_read(batch->cache, job->prefix, batch_nodes(batch), &reports, err) < 0)
		return -1;
	ret->state = reports.running ? ENGINE_RUNNING : ENGINE_STARTING;
	ret->started = reports.started;
	return 0;
}

/* Time for which the containers ran. AWS Batch reports no billed time: instances belong to EC2, and
 * may have run before. */
static void set_held_time(const json_t *summary, struct engine_status *ret)
{
	ret->held.ms = js_int(summary, "startedAt", 0);
	ret->released.ms = ret->held.ms > 0 ? js_int(summary, "stoppedAt", 0) : 0;
}

static int set_status(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		      struct err **err)
{
	*ret = (struct engine_status){ .state = ENGINE_UNKNOWN };
	if (job->summary.state == ENGINE_ENDED) {
		if (batch_end_status(batch, job, ret, err) < 0)
			return -1;
		if (ret->state == ENGINE_ENDED)
			set_held_time(job->job, ret);
		return 0;
	}
	set_held_time(job->job, ret);
	if (batch_stop_lost(batch, job, err) < 0)
		return -1;
	ret->state = job->summary.state;
	if (ret->state == ENGINE_QUEUED)
		set_wait_reason(job, ret);
	if (ret->state == ENGINE_RUNNING && set_running(batch, job, ret, err) < 0)
		return -1;
	if (batch_is_stopping(job))
		ret->state = ENGINE_STOPPING;
	return 0;
}

/* ---- jobs that the service does not know ---------------------------------------------- */

/* AWS Batch knows a job as long as it lives, and KEPT_MS beyond: 1 it has ended, as both the
 * service and the workspace have been silent that long; 0 not known, -1. */
static int has_passed(struct batch *batch, struct batch_job *job, struct err **err)
{
	if (workspace_cache_sign(batch->cache, job->prefix, &job->sign, err) < 0)
		return -1;
	return job->sign.last.ms > 0 && clock_utc_now().ms - job->sign.last.ms >= KEPT_MS;
}

/* Handles a job that the service has forgotten, or never had; all of its agents may have
 * reported. */
static int set_forgotten(struct batch *batch, struct batch_job *job, const char *name,
			 struct engine_status *ret, struct err **err)
{
	struct reports reports;
	int passed;

	*ret = (struct engine_status){ .state = ENGINE_UNKNOWN };
	if (reports_read(batch->cache, job->prefix, batch_nodes(batch), &reports, err) < 0)
		return -1;
	if (reports.final == batch_nodes(batch))
		return batch_end_status(batch, job, ret, err);
	passed = has_passed(batch, job, err);
	if (passed < 0)
		return -1;
	if (passed > 0 && batch_end_status(batch, job, ret, err) == 0)
		ret->last_seen = job->sign.last;
	else if (passed > 0)
		return -1;
	else if (job->id[0])
		set_unknown(ret, "AWS Batch does not know job %s", job->id);
	else
		set_unknown(ret, "AWS Batch lists no job '%s' in queue '%s'", name,
			    batch_spec_text(batch->plan, "batch.job_queue"));
	return 0;
}

/* If the service cannot be reached, the last status holds for STALE_MS; then the job is unknown. */
static int set_unreachable(struct batch_job *job, struct engine_status *ret, struct err **err)
{
	if ((*err)->code != EXIT_UNREACHABLE)
		return -1;
	if (!job->job || job->last_status_at.ms == 0 ||
	    clock_mono_now().ms - job->seen.ms >= STALE_MS)
		set_unknown(ret, "%s", (*err)->message);
	else
		*ret = job->last_status;
	err_freep(err);
	return 0;
}

/* Refreshes `job->job`: 1 done, 0 the service does not know the job, -1. An end does not count if
 * another job of the attempt holds the claim. */
static int refresh_job(struct batch *batch, struct batch_job *job, const char *name,
		       struct err **err)
{
	int description = 1, other;

	if (job->summary.state != ENGINE_ENDED) {
		job->asked = clock_mono_now();
		description = batch_identify(batch, job, name, err);
		if (description > 0)
			description = describe_job(batch, job, err);
	}
	other = description > 0 ? batch_follow(batch, job, name, err) : 0;
	if (other < 0)
		return -1;
	return other > 0 ? describe_job(batch, job, err) : description;
}

/* Describes the job, unless that was done lately or it has ended. */
static int describe_if_due(struct batch *batch, struct batch_job *job, const char *name,
			   struct engine_status *ret, struct err **err)
{
	int description;

	if (job->summary.state != ENGINE_ENDED && job->asked.ms > 0 &&
	    clock_mono_now().ms - job->asked.ms < poll_interval_ms(job)) {
		if (!job->job || job->last_status.state == ENGINE_UNKNOWN) {
			*ret = job->last_status;
			return 0;
		}
		return set_status(batch, job, ret, err);
	}
	description = refresh_job(batch, job, name, err);
	if (description < 0)
		return -1;
	return description > 0 ? set_status(batch, job, ret, err)
			       : set_forgotten(batch, job, name, ret, err);
}

int batch_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);

	if (job->last_status_at.ms > 0 &&
	    clock_mono_now().ms - job->last_status_at.ms < STATUS_MS) {
		*ret = job->last_status;
		return 0;
	}
	if (describe_if_due(batch, job, name, ret, err) < 0 && set_unreachable(job, ret, err) < 0)
		return -1;
	job->last_status = *ret;
	job->last_status_at = clock_mono_now();
	return 0;
}

int batch_report(struct engine *engine, const char *name, const char *prefix, int node,
		 struct node_report *ret, struct err **err)
{
	(void)name;
	return reports_get(((struct batch *)engine)->cache, prefix, node, ret, err);
}

int batch_beside(struct engine *engine, const char *name, const char *prefix, int node,
		 const char *file, json_t **ret, struct err **err)
{
	(void)name;
	return reports_beside(((struct batch *)engine)->cache, prefix, node, file, ret, err);
}
