/* A training job without the node agent, as seen in SageMaker and CloudWatch: the streams
 * "<job>/algo-<n>-<when>" of a host as one log, and a substitute for an agent's report. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/sagemaker/sagemaker_internal.h"
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"
#include "jobs/store/order.h"

/* Time between two reads; all clients together may send five requests per second. */
#define POLL_MS      2000
#define POLL_NODE_MS 300
#define OWN_EXIT     "ExitCode " /* in FailureReason (errors.py of the toolkit) */
#define WINDOW_MAX   ((size_t)16 << 20)
#define LATE_MS      60000 /* how far before the saved place another process starts to read */

/* The toolkit's last line on each host, whatever came before (trainer.py). */
static const char *const last_words[] = { "Reporting training SUCCESS",
					  "Reporting training FAILURE" };

/* Offset of an event in a log, its identity, and when it was written. */
struct line_time {
	uint64_t from, id;
	int64_t at_ms;
};

struct host_log {
	struct logs_filter *filter; /* NULL: not started */
	struct sb text;             /* bytes that were read and not yet returned */
	uint64_t from;              /* offset of `text` in the log */
	struct logs_position begun; /* position of the filter before it read `text` */
	struct line_time *times;    /* times of the lines in `text`, in order */
	size_t time_count, time_room;
	struct mono at; /* time of the last read; ms 0: none yet */
	bool more;      /* more was available at the last read */
	bool whole;     /* the toolkit's last line has come */
	bool closed;    /* read to its end after the end of the job */
};

static void host_release(struct host_log *host)
{
	logs_filter_freep(&host->filter);
	free(TAKE(host->times));
	sb_release(&host->text);
}

void sagemaker_toolkit_logs_release(struct training *job)
{
	for (int i = 0; i < job->host_count; i++)
		host_release(&job->hosts[i]);
	free(TAKE(job->hosts));
	job->host_count = 0;
}

static void host_init(struct host_log *ret)
{
	*ret = (struct host_log){ .text = SB_INIT_MAX(WINDOW_MAX) };
}

static struct host_log *host_of(struct training *job, int node)
{
	if (node >= job->host_count) {
		job->hosts = mem_grow(job->hosts, (size_t)node + 1, sizeof *job->hosts);
		while (job->host_count <= node)
			host_init(&job->hosts[job->host_count++]);
	}
	return &job->hosts[node];
}

static void add_line(void *arg, const struct logs_event *event)
{
	struct host_log *host = arg;

	for (size_t i = 0; i < STK_LENGTH(last_words); i++)
		if (memmem(event->message, event->len, last_words[i], strlen(last_words[i])))
			host->whole = true;
	if (host->time_count == host->time_room) {
		host->time_room = host->time_room ? 2 * host->time_room : 256;
		host->times = mem_grow(host->times, host->time_room, sizeof *host->times);
	}
	host->times[host->time_count++] =
		(struct line_time){ host->from + host->text.len, event->id, event->at_ms };
	sb_add(&host->text, event->message, event->len);
	sb_addc(&host->text, '\n');
}

static bool is_due(const struct training *job, const struct host_log *host)
{
	if (host->closed)
		return false;
	return host->at.ms == 0 || host->more || job->closing ||
	       clock_mono_now().ms - host->at.ms >=
		       POLL_MS + (int64_t)job->host_count * POLL_NODE_MS;
}

static struct logs_filter *filter_of(const struct training *job, int node,
				     const struct logs_position *from)
{
	AUTO(auto_free) char *prefix = mem_format("%s/algo-%d-", job->name, node + 1);

	return logs_filter_new(SAGEMAKER_LOG_GROUP, prefix, from);
}

/* Reads more of a host's log, as much as a reader takes at once. */
static int go_on(struct sagemaker *sagemaker, struct training *job, int node, size_t max,
		 struct err **err)
{
	struct host_log *host = host_of(job, node);
	enum logs_state state = LOGS_MORE;

	if (!is_due(job, host))
		return 0;
	if (!sagemaker->logs && logs_open(0, &sagemaker->logs, err) < 0)
		return -1;
	if (!host->filter)
		host->filter = filter_of(job, node, NULL);
	if (host->text.len == 0)
		host->begun = logs_filter_position(host->filter);
	while (state == LOGS_MORE && host->text.len < max)
		if (logs_filter_read(sagemaker->logs, host->filter, add_line, host, &state, err) <
		    0)
			return -1;
	host->at = clock_mono_now();
	host->more = state == LOGS_MORE;
	host->closed = job->closing && !host->more;
	return 0;
}

/* Drops the times of lines before the window; a line that crosses its start is kept. */
static void forget_times(struct host_log *host)
{
	size_t gone = 0;

	while (gone + 1 < host->time_count && host->times[gone + 1].from <= host->from)
		gone++;
	host->time_count -= gone;
	if (gone > 0)
		memmove(host->times, host->times + gone, host->time_count * sizeof *host->times);
}

/* Returns the event that the offset lies in; NULL: it is in none at hand. */
static const struct line_time *event_at(struct training *job, int node, uint64_t offset)
{
	const struct host_log *host = host_of(job, node);
	size_t low = 0, high = host->time_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (host->times[middle].from <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &host->times[low - 1] : NULL;
}

struct utc sagemaker_toolkit_time(struct training *job, int node, uint64_t offset)
{
	const struct line_time *event = event_at(job, node, offset);

	return (struct utc){ event ? event->at_ms : 0 };
}

/* An event may be of several lines. */
uint64_t sagemaker_toolkit_id(struct training *job, int node, uint64_t offset)
{
	const struct line_time *event = event_at(job, node, offset);
	uint64_t id = event && event->id
			      ? event->id + (offset - event->from) * UINT64_C(0x9e3779b97f4a7c15)
			      : 0;

	return event && event->id && id == 0 ? 1 : id;
}

/* Moves the start of the window to the offset, as far as that has been read. */
static void move_to(struct host_log *host, uint64_t offset)
{
	uint64_t skip;

	if (offset < host->from) { /* the log is read again */
		host_release(host);
		host_init(host);
	}
	skip = offset - host->from;
	if (skip > host->text.len)
		skip = host->text.len;
	sb_drop(&host->text, (size_t)skip);
	host->from += skip;
	forget_times(host);
}

int sagemaker_toolkit_logs(struct sagemaker *sagemaker, struct training *job, int node,
			   uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	struct host_log *host = host_of(job, node);
	size_t before = ret->len;

	do {
		move_to(host, *offset);
		if (host->text.len < max && go_on(sagemaker, job, node, max, err) < 0)
			return -1;
		if (host->text.len == 0)
			return 0;
	} while (host->from < *offset);
	sb_add(ret, host->text.text, host->text.len < max ? host->text.len : max);
	*offset += ret->len - before;
	return 0;
}

json_t *sagemaker_toolkit_place(struct training *job, int node)
{
	const struct host_log *host = host_of(job, node);
	struct logs_position at = host->begun;

	if (host->filter && host->text.len == 0)
		at = logs_filter_position(host->filter);
	return json_pack("{s:I}", "at", (json_int_t)at.at_ms);
}

void sagemaker_toolkit_go_on(struct training *job, int node, uint64_t offset, const json_t *place)
{
	struct host_log *host = host_of(job, node);
	struct logs_position from = { js_int(place, "at", 0) - LATE_MS, 0 };

	host_release(host);
	host_init(host);
	host->from = offset;
	host->begun = from.at_ms > 0 ? from : (struct logs_position){ 0 };
	host->filter = filter_of(job, node, &host->begun);
}

/* ---- state ------------------------------------------------------------------------------- */

/* True if the container ended by itself: only then there is a last line. */
static bool ended_itself(const json_t *description)
{
	const char *reason = js_str(description, "FailureReason");

	return js_is(description, "TrainingJobStatus", "Completed") ||
	       (reason && text_starts(reason, "AlgorithmError"));
}

bool sagemaker_toolkit_lacks_end(const struct training *job, int node)
{
	return ended_itself(job->description) &&
	       sagemaker_time_ms(job->description, "TrainingStartTime") > 0 &&
	       (node >= job->host_count || !job->hosts[node].whole);
}

/* True if log lines are still expected: CloudWatch shows them some seconds late, and graphs are
 * known only by their lines. */
static bool waits_for_lines(const struct sagemaker *sagemaker, const struct training *job)
{
	int nodes = sagemaker_nodes(sagemaker);
	int64_t most = ended_itself(job->description) ? SAGEMAKER_LOG_MS : SAGEMAKER_LOG_MS / 3;

	if (sagemaker_time_ms(job->description, "TrainingStartTime") == 0 ||
	    clock_mono_now().ms - job->ended.ms >= most)
		return false;
	for (int node = 0; node < nodes; node++)
		if (node >= job->host_count || !job->hosts[node].whole)
			return true;
	return false;
}

void sagemaker_toolkit_status(const struct sagemaker *sagemaker, struct training *job,
			      struct engine_status *ret)
{
	const struct reports none = { .node = -1 };
	const char *reason = js_str(job->description, "FailureReason");
	const char *own = reason ? strstr(reason, OWN_EXIT) : NULL;
	long code = 0;

	sagemaker_status(job->description, &none, 0, ret);
	ret->started.ms = sagemaker_time_ms(job->description, "TrainingStartTime");
	if (ret->state != ENGINE_ENDED)
		return;
	/* The container always exits with 1; this is the exit code of its command. */
	if (own && ret->exit_known)
		code = strtol(own + strlen(OWN_EXIT), NULL, 10);
	if (code > 0 && code <= 255)
		ret->exit = (int)code;
	ret->silent = false; /* no agent is there to mark its checkpoints */
	if (waits_for_lines(sagemaker, job)) {
		*ret = (struct engine_status){ .state = ENGINE_STOPPING, .started = ret->started };
		snprintf(ret->reason, sizeof ret->reason, "waiting for the log");
		return;
	}
	job->closing = true;
}

int sagemaker_toolkit_report(const struct training *job, int node, struct node_report *ret)
{
	int64_t started = sagemaker_time_ms(job->description, "TrainingStartTime");
	int64_t ended = sagemaker_time_ms(job->description, "TrainingEndTime");
	AUTO(auto_free) char *host = mem_format("algo-%d", node + 1);

	if (started == 0)
		return 0;
	MESSAGE_SET(ret, v, 1);
	MESSAGE_SET(ret, node, node);
	MESSAGE_SET_TEXT(ret, host, host);
	MESSAGE_SET_TEXT(ret, state, ended > 0 ? REPORT_ENDED : REPORT_RUNNING);
	MESSAGE_SET(ret, claimed, started);
	MESSAGE_SET(ret, started, started);
	if (ended > 0)
		MESSAGE_SET(ret, ended, ended);
	return 1;
}
