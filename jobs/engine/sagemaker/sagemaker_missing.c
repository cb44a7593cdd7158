/* A training job that SageMaker does not know: see sagemaker.h. */
#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"
#include "jobs/engine/sagemaker/sagemaker_internal.h"

#define WHOSE_MS 60000 /* between two checks of the account */

/* True if the request goes to the job's account and region: anywhere else "not found" means
 * nothing. */
static bool is_at_home(struct sagemaker *sagemaker, const struct training *job)
{
	const char *account = js_str(json_object_get(sagemaker->plan, "aws"), "account");
	AUTO(err_freep) struct err *ignored = NULL;

	/* Known here before, or not found by a stop request either: a person has read the region by
	 * then. */
	if (job->heard.ms > 0 || job->stop_missed)
		return true;
	if (account && !sagemaker->ours &&
	    (sagemaker->whose.ms == 0 || clock_mono_now().ms - sagemaker->whose.ms >= WHOSE_MS)) {
		sagemaker->whose = clock_mono_now();
		sagemaker->ours = sts_require_account(account, &ignored) == 0;
	}
	return sagemaker->ours;
}

/* True if the job was deleted, which is possible only after its end: 1 it was, 0 not known, -1. */
static int was_deleted(struct sagemaker *sagemaker, struct training *job, const char *prefix,
		       struct err **err)
{
	if (!sagemaker->toolkit &&
	    workspace_cache_sign(sagemaker->cache, prefix, &job->sign, err) < 0)
		return -1;
	if (job->missed.ms - job->missing.ms < SAGEMAKER_STALE_MS)
		return 0;
	if (!sagemaker->toolkit && job->sign.at.ms - job->sign.since.ms < SAGEMAKER_STALE_MS)
		return 0;
	return is_at_home(sagemaker, job);
}

int sagemaker_missing_status(struct sagemaker *sagemaker, struct training *job, const char *prefix,
			     struct engine_status *ret, struct err **err)
{
	int nodes = sagemaker_nodes(sagemaker), over;
	struct reports reports = { .node = -1 };
	AUTO(err_freep) struct err *ignored = NULL;
	const char *region = aws_region(&ignored);

	if (!sagemaker->toolkit && reports_read(sagemaker->cache, prefix, nodes, &reports, err) < 0)
		return -1;
	over = reports.final == nodes ? 1 : was_deleted(sagemaker, job, prefix, err);
	if (over < 0)
		return -1;
	*ret = (struct engine_status){ .state = over > 0 ? ENGINE_ENDED : ENGINE_UNKNOWN };
	ret->started = reports.started;
	if (over > 0 && reports.node >= 0) {
		ret->exit_known = true;
		ret->exit = reports.exit;
		ret->node = reports.node;
		snprintf(ret->reason, sizeof ret->reason, "%s", reports.reason);
		return 0;
	}
	snprintf(ret->reason, sizeof ret->reason, "SageMaker in %s does not know the job%s", region,
		 over > 0 ? " any more, because it was deleted" : "");
	ret->silent = over > 0 && !sagemaker->toolkit;
	if (over > 0)
		ret->last_seen = job->sign.last;
	job->closing = over > 0;
	return 0;
}
