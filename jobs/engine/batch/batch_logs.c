/* Logs of nodes: from the workspace, or from CloudWatch Logs if no agent came up. */
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/reports.h"

#define STREAM_MAX ((size_t)1 << 20) /* most bytes of the stream of a node without an agent */
#define AGAIN_MS   5000

static struct batch_stream *stream_of(struct batch_job *job, int node, const char *group,
				      const char *name)
{
	struct batch_stream *stream;

	for (size_t i = 0; i < job->stream_count; i++)
		if (job->streams[i].node == node)
			return &job->streams[i];
	job->streams = mem_grow(job->streams, job->stream_count + 1, sizeof *job->streams);
	stream = &job->streams[job->stream_count++];
	*stream = (struct batch_stream){ .node = node, .text = SB_INIT_MAX(STREAM_MAX) };
	stream->cursor = logs_cursor_new(group, name);
	return stream;
}

static void add_line(void *arg, const struct logs_event *event)
{
	struct sb *text = arg;

	sb_add(text, event->message, event->len);
	sb_addc(text, '\n');
}

/* Reads the whole stream, a page at a time; again after AGAIN_MS, for lines come late. */
static int read_stream(struct batch *batch, struct batch_stream *stream, struct err **err)
{
	enum logs_state state = LOGS_MORE;

	if (stream->at.ms > 0 && clock_mono_now().ms - stream->at.ms < AGAIN_MS)
		return 0;
	if (!batch->logs && logs_open(0, &batch->logs, err) < 0)
		return -1;
	while (state == LOGS_MORE && !stream->text.truncated)
		if (logs_read(batch->logs, stream->cursor, add_line, &stream->text, &state, err) <
		    0)
			return -1;
	stream->at = clock_mono_now();
	return 0;
}

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

	*ret_group = group ? group : BATCH_LOG_GROUP;
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
	struct batch_stream *stream;
	const char *group, *stream_is;
	size_t len;
	int there;

	learn(engine, job, name);
	if (job->summary.state != ENGINE_ENDED || !(stream_is = stream_name(job, node, &group)))
		return workspace_cache_logs(batch->cache, prefix, node, offset, max, ret, err);
	there = reports_get(batch->cache, prefix, node, &report, err);
	if (there < 0)
		return -1;
	if (there)
		return workspace_cache_logs(batch->cache, prefix, node, offset, max, ret, err);
	stream = stream_of(job, node, group, stream_is);
	if (read_stream(batch, stream, err) < 0)
		return -1;
	if (*offset >= stream->text.len)
		return 0;
	len = stream->text.len - (size_t)*offset;
	if (len > max)
		len = max;
	sb_add(ret, stream->text.text + *offset, len);
	*offset += len;
	return 0;
}

int batch_log_size(struct engine *engine, const char *name, const char *prefix, int node,
		   uint64_t *ret, struct err **err)
{
	struct batch *batch = (struct batch *)engine;

	(void)name;
	if (batch_job_of(batch, prefix)->streams)
		return 0;
	return workspace_cache_log_size(batch->cache, prefix, node, ret, err);
}

struct utc batch_log_written(struct engine *engine, const char *name, const char *prefix, int node,
			     uint64_t offset)
{
	struct batch *batch = (struct batch *)engine;

	(void)name;
	if (batch_job_of(batch, prefix)->streams)
		return (struct utc){ 0 };
	return workspace_cache_log_written(batch->cache, prefix, node, offset);
}
