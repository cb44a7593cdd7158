/* Logs of nodes: from the workspace, or from CloudWatch Logs if no agent came up. */
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/reports.h"

#define GROUP "/aws/batch/job"

static const json_t *job_of_node(const struct batch_job *job, int node)
{
	return job->nodes ? json_array_get(job->nodes, (size_t)node) : node == 0 ? job->job : NULL;
}

/* Returns the log stream of a node that has ended; NULL: not known. */
static const char *stream_name(const struct batch_job *job, int node, const char **ret_group)
{
	const json_t *container = batch_container(job_of_node(job, node));
	const char *group =
		json_string_value(js_path(container, "logConfiguration.options.awslogs-group"));

	*ret_group = group ? group : GROUP;
	return js_str(container, "logStreamName");
}

/* Describes the job if a caller reads its logs before any describe. */
static void learn(struct engine *engine, const struct batch_job *job, const char *name)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct engine_status status;

	if (!job->job && job->asked.ms == 0)
		(void)!batch_describe(engine, name, job->prefix, &status, &ignored);
}

int batch_logs(struct engine *engine, const char *name, const char *prefix, int node,
	       uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);
	AUTO(node_report_release) struct node_report report = { 0 };
	struct cloud_log *log;
	const char *group, *stream;
	int there;

	learn(engine, job, name);
	if (job->summary.state != ENGINE_ENDED || !(stream = stream_name(job, node, &group)))
		return workspace_cache_logs(batch->cache, prefix, node, offset, max, ret, err);
	there = reports_get(batch->cache, prefix, node, &report, err);
	if (there < 0)
		return -1;
	if (there)
		return workspace_cache_logs(batch->cache, prefix, node, offset, max, ret, err);
	log = cloud_log_of(&job->logs, &job->log_count, node);
	if (cloud_log_read(log, &batch->logs, group, stream, err) < 0)
		return -1;
	cloud_log_copy(log, offset, max, ret);
	return 0;
}

int batch_log_size(struct engine *engine, const char *name, const char *prefix, int node,
		   uint64_t *ret, struct err **err)
{
	struct batch *batch = (struct batch *)engine;

	(void)name;
	if (batch_job_of(batch, prefix)->logs)
		return 0;
	return workspace_cache_log_size(batch->cache, prefix, node, ret, err);
}
