/* Logs of containers in which no agent came up: the streams "<job>/algo-<n>-<when>" of CloudWatch
 * Logs, each read to its end, in the order of their names. Also the functions of engine.h on logs
 * and reports. */
#include <stdlib.h>
#include <string.h>

#include "jobs/engine/sagemaker/sagemaker_internal.h"
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"

#define CLOUD_LOG_MAX ((size_t)4 << 20) /* most bytes read per node */
#define AGAIN_MS      5000              /* between two reads */

struct cloud_log {
	struct sb text;
	struct mono at; /* time of the last read; ms 0: none yet */
};

void sagemaker_logs_release(struct training *job)
{
	for (int i = 0; i < job->log_count; i++)
		sb_release(&job->logs[i].text);
	free(job->logs);
}

static struct cloud_log *log_of(struct training *job, int node)
{
	if (node >= job->log_count) {
		job->logs = mem_grow(job->logs, (size_t)node + 1, sizeof *job->logs);
		while (job->log_count <= node)
			job->logs[job->log_count++] =
				(struct cloud_log){ .text = SB_INIT_MAX(CLOUD_LOG_MAX) };
	}
	return &job->logs[node];
}

static void add_line(void *arg, const struct logs_event *event)
{
	struct sb *text = arg;

	sb_add(text, event->message, event->len);
	sb_addc(text, '\n');
}

static int read_stream(struct logs *logs, const char *stream, struct sb *ret, struct err **err)
{
	AUTO(logs_cursor_freep)
	struct logs_cursor *cursor = logs_cursor_new(SAGEMAKER_LOG_GROUP, stream);
	enum logs_state state;

	do {
		if (logs_read(logs, cursor, add_line, ret, &state, err) < 0)
			return -1;
	} while (state == LOGS_MORE && !ret->truncated);
	return 0;
}

/* Reads all of a node's streams, if it is time. Late lines are found by reading again: such a line
 * may then precede lines that were returned before. */
static int refresh_streams(struct sagemaker *sagemaker, struct training *job, int node,
			   struct err **err)
{
	struct cloud_log *log = log_of(job, node);
	AUTO(auto_free) char *prefix = mem_format("%s/algo-%d-", job->name, node + 1);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(CLOUD_LOG_MAX);
	AUTO(auto_strv) char **streams = NULL;

	if (log->at.ms > 0 && clock_mono_now().ms - log->at.ms < AGAIN_MS)
		return 0;
	if (!sagemaker->logs && logs_open(0, &sagemaker->logs, err) < 0)
		return -1;
	log->at = clock_mono_now();
	if (logs_streams(sagemaker->logs, SAGEMAKER_LOG_GROUP, prefix, &streams, err) < 0)
		return -1;
	for (char **stream = streams; stream && *stream; stream++)
		if (read_stream(sagemaker->logs, *stream, &text, err) < 0)
			return -1;
	if (text.len > log->text.len) {
		sb_clear(&log->text);
		sb_add(&log->text, text.text, text.len);
	}
	return 0;
}

int sagemaker_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node,
			 uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	struct cloud_log *log;
	size_t before = ret->len, left;

	if (refresh_streams(sagemaker, job, node, err) < 0)
		return -1;
	log = log_of(job, node);
	if (*offset >= log->text.len)
		return 0;
	left = log->text.len - (size_t)*offset;
	sb_add(ret, log->text.text + *offset, left < max ? left : max);
	*offset += ret->len - before;
	return 0;
}

bool sagemaker_has_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node)
{
	AUTO(err_freep) struct err *ignored = NULL;

	return refresh_streams(sagemaker, job, node, &ignored) < 0 ||
	       log_of(job, node)->text.len > 0;
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

struct utc sagemaker_log_written(struct engine *engine, const char *name, const char *prefix,
				 int node, uint64_t offset)
{
	struct sagemaker *sagemaker = of(engine);

	if (sagemaker->toolkit)
		return sagemaker_log_time(engine, name, prefix, node, offset);
	if (sagemaker_job_of(sagemaker, name)->logs)
		return (struct utc){ 0 };
	return workspace_cache_log_written(sagemaker->cache, prefix, node, offset);
}

uint64_t sagemaker_log_id(struct engine *engine, const char *name, const char *prefix, int node,
			  uint64_t offset)
{
	struct sagemaker *sagemaker = of(engine);

	(void)prefix;
	return sagemaker->toolkit
		       ? sagemaker_toolkit_id(sagemaker_job_of(sagemaker, name), node, offset)
		       : 0;
}

bool sagemaker_log_lacks_end(struct engine *engine, const char *name, int node)
{
	struct sagemaker *sagemaker = of(engine);

	return sagemaker->toolkit &&
	       sagemaker_toolkit_lacks_end(sagemaker_job_of(sagemaker, name), node);
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
