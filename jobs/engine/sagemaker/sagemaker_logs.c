/* Logs of containers in which no agent came up: the streams "<job>/algo-<n>-<when>" of CloudWatch
 * Logs. Also the functions of engine.h on logs and reports. */
#include "jobs/engine/sagemaker/sagemaker_internal.h"
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"

static struct cloud_log *log_of(struct training *job, int node)
{
	return cloud_log_of(&job->logs, &job->log_count, node);
}

static int read_streams(struct sagemaker *sagemaker, struct training *job, int node,
			struct err **err)
{
	AUTO(auto_free) char *prefix = mem_format("%s/algo-%d-", job->name, node + 1);

	return cloud_log_read(log_of(job, node), &sagemaker->logs, SAGEMAKER_LOGS, prefix, err);
}

int sagemaker_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node,
			 uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	if (read_streams(sagemaker, job, node, err) < 0)
		return -1;
	cloud_log_copy(log_of(job, node), offset, max, ret);
	return 0;
}

bool sagemaker_has_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node)
{
	AUTO(err_freep) struct err *ignored = NULL;

	return read_streams(sagemaker, job, node, &ignored) < 0 || log_of(job, node)->text.len > 0;
}

/* ---- functions of engine.h ---- */

static struct sagemaker *of(struct engine *engine)
{
	return (struct sagemaker *)engine;
}

/* The size of logs in CloudWatch is not known. */
int sagemaker_log_size(struct engine *engine, const char *name, const char *prefix, int node,
		       uint64_t *ret, struct err **err)
{
	struct sagemaker *sagemaker = of(engine);

	if (sagemaker->toolkit || sagemaker_job_of(sagemaker, name)->logs)
		return 0;
	return workspace_cache_log_size(sagemaker->cache, prefix, node, ret, err);
}

struct utc sagemaker_log_time(struct engine *engine, const char *name, const char *prefix, int node,
			      uint64_t offset)
{
	struct sagemaker *sagemaker = of(engine);

	(void)prefix;
	if (!sagemaker->toolkit)
		return (struct utc){ 0 };
	return sagemaker_toolkit_time(sagemaker_job_of(sagemaker, name), node, offset);
}

json_t *sagemaker_log_place(struct engine *engine, const char *name, const char *prefix, int node)
{
	struct sagemaker *sagemaker = of(engine);

	(void)prefix;
	return sagemaker->toolkit ? sagemaker_toolkit_place(sagemaker_job_of(sagemaker, name), node)
				  : NULL;
}

void sagemaker_log_go_on(struct engine *engine, const char *name, const char *prefix, int node,
			 uint64_t offset, const json_t *place)
{
	struct sagemaker *sagemaker = of(engine);

	(void)prefix;
	if (sagemaker->toolkit)
		sagemaker_toolkit_go_on(sagemaker_job_of(sagemaker, name), node, offset, place);
}

int sagemaker_report(struct engine *engine, const char *name, const char *prefix, int node,
		     struct node_report *ret, struct err **err)
{
	if (of(engine)->toolkit)
		return sagemaker_toolkit_report(sagemaker_job_of(of(engine), name), node, ret);
	return reports_get(of(engine)->cache, prefix, node, ret, err);
}

int sagemaker_beside(struct engine *engine, const char *name, const char *prefix, int node,
		     const char *file, json_t **ret, struct err **err)
{
	(void)name;
	*ret = NULL;
	if (of(engine)->toolkit)
		return 0;
	return reports_beside(of(engine)->cache, prefix, node, file, ret, err);
}
