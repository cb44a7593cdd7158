/* Status of an attempt from its visible state: see local.h. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/local/local_internal.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define LAST_LINE_MAX 160  /* most bytes shown of the last line */
#define LAST_BYTES    8192 /* bytes at the end of the log that are searched for it */

static void set_reason(struct engine_status *ret, const char *fmt, ...) STK_PRINTF(2, 3);

static void set_reason(struct engine_status *ret, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(ret->reason, sizeof ret->reason, fmt, args);
	va_end(args);
}

/* Reads an object beneath the attempt's prefix; false if it cannot be read. */
static bool load(const struct local *local, const char *prefix, const char *name, size_t max,
		 json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(max);
	AUTO(auto_free) char *key = local_key(prefix, name);

	return local_get(local, key, max, &text, err) > 0 &&
	       js_parse(text.text, text.len, name, ret, err) == 0;
}

/* Returns the time that the agents give a command between SIGTERM and SIGKILL. */
static int64_t grace_of(const struct local *local, const char *prefix)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(order_release) struct order order = { 0 };
	json_auto_t *json = NULL;

	if (!load(local, prefix, ORDER_FILE, ORDER_MAX, &json, &ignored) ||
	    message_decode(order_message, json, &order, &ignored) < 0)
		return ORDER_GRACE_MS;
	return order.grace_ms;
}

static bool in_state(const struct node_view *node, const char *state)
{
	return node_report_is(&node->report, state);
}

/* True if the agent died or its command failed. The other nodes may still be saving. */
static bool failed(const struct node_view *node)
{
	return !node->alive &&
	       (!node_report_is_final(&node->report) || reports_failed(&node->report));
}

static bool is_root(const struct node_view *node)
{
	return !node->alive && reports_is_root(&node->report);
}

static void describe_alive(const struct local *local, const char *prefix, struct local_view *view,
			   struct engine_status *ret)
{
	AUTO(err_freep) struct err *ignored = NULL;
	bool running = false, any_failed = false;

	for (int i = 0; i < view->record.nodes; i++) {
		running |= in_state(&view->nodes[i], REPORT_RUNNING);
		any_failed |= failed(&view->nodes[i]);
	}
	if (any_failed) {
		/* The attempt is lost as a whole: the rest of it holds devices for nothing. If the
		 * note cannot be written now, it is written next time. */
		(void)!local_view_kill_orphans(view, &ignored);
		err_freep(&ignored);
		(void)!local_view_stop(local, prefix, view, STOP_PEER, grace_of(local, prefix),
				       &ignored);
	}
	ret->state = view->record.stop != STOP_NONE ? ENGINE_STOPPING
		     : running                      ? ENGINE_RUNNING
						    : ENGINE_STARTING;
}

/* Appends the last line of a node's log, which may hold the reason if the agent could not
 * report. */
static void add_last_line(const struct local *local, const char *prefix, int node, struct sb *out)
{
	AUTO(auto_free) char *path = local_node_path(local, prefix, node, LOG_FILE);
	FILE *file = path ? fopen(path, "re") : NULL;
	char text[LAST_BYTES];
	size_t len, from;

	if (!file)
		return;
	if (fseek(file, -LAST_BYTES, SEEK_END) != 0)
		rewind(file);
	len = fread(text, 1, sizeof text, file);
	fclose(file);
	while (len > 0 && text[len - 1] == '\n')
		len--;
	for (from = len; from > 0 && text[from - 1] != '\n'; from--)
		;
	/* The agent's own lines repeat its report. */
	if (is_agent_line(text + from, len - from))
		return;
	if (len - from > LAST_LINE_MAX)
		from = len - LAST_LINE_MAX;
	if (len > from) {
		sb_adds(out, "; last line: ");
		text_escape(out, text + from, len - from, false);
	}
}

/* Returns the time of the last write to the node's log. */
static struct utc last_sign(const struct local *local, const char *prefix, int node)
{
	AUTO(auto_free) char *path = local_node_path(local, prefix, node, LOG_FILE);
	struct utc at = { 0 };
	struct stat st;

	if (path && stat(path, &st) == 0)
		at.ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return at;
}

/* Describes a node that lost its agent without a final report. */
static void describe_death(const struct local *local, const char *prefix,
			   const struct local_view *view, int node, struct engine_status *ret)
{
	const struct node_view *dead = &view->nodes[node];
	const struct agent_end *end = &view->record.ends[node];
	AUTO(sb_release) struct sb how = SB_INIT;

	ret->node = node;
	ret->exit_known = false;
	ret->last_seen = last_sign(local, prefix, node);
	if (view->sight == SIGHT_GONE && strcmp(view->record.boot, local->boot) != 0) {
		set_reason(ret, "the machine '%s' was restarted", view->record.host);
		return;
	}
	if (!dead->reported && dead->id.pid == 0) {
		set_reason(ret, "the agent of node %d was never started", node);
		return;
	}
	if (end->known && WIFSIGNALED(end->status))
		sb_addf(&how, " (signal %d)", WTERMSIG(end->status));
	else if (end->known)
		sb_addf(&how, " (exit %d)", WEXITSTATUS(end->status));
	add_last_line(local, prefix, node, &how);
	set_reason(ret, "the agent of node %d died without a report%s", node, how.text);
	ret->silent = true;
}

/* Describes the end by the final report of the deciding node. */
static void describe_end(const struct local_view *view, int node, struct engine_status *ret)
{
	const struct node_report *report = &view->nodes[node].report;
	const char *message = report->error.message;

	ret->node = node;
	ret->exit_known = true;
	ret->exit = (int)report->exit;
	if (in_state(&view->nodes[node], REPORT_NOT_MINE))
		set_reason(ret, "another attempt holds the claim");
	else if (message)
		set_reason(ret, "%s", message);
}

/* Returns the node that the agents agreed on as the first to fail; -1: none. */
static int first_to_fail(const struct local *local, const char *prefix,
			 const struct local_view *view)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *body = NULL;
	int64_t node = -1;

	if (view->record.nodes > 1 && load(local, prefix, FAILED_FILE, REPORT_MAX, &body, &ignored))
		node = js_int(body, "node", -1);
	return node >= 0 && node < view->record.nodes &&
			       node_report_is_final(&view->nodes[node].report)
		       ? (int)node
		       : -1;
}

/* Returns the node that decides the attempt's end: an agent that died although the attempt was not
 * stopped, the first command to fail by itself, else any that failed. */
static int deciding_node(const struct local *local, const char *prefix,
			 const struct local_view *view)
{
	int first = first_to_fail(local, prefix, view), any = -1;

	for (int i = 0; i < view->record.nodes; i++)
		if (!node_report_is_final(&view->nodes[i].report) &&
		    view->record.stop != STOP_REQUEST && first < 0)
			return i;
	if (first >= 0)
		return first;
	for (int i = 0; i < view->record.nodes; i++) {
		const struct node_view *node = &view->nodes[i];

		if (is_root(node) &&
		    (first < 0 || node->report.ended < view->nodes[first].report.ended))
			first = i;
		if (any < 0 && failed(node))
			any = i;
	}
	return first >= 0 ? first : any >= 0 ? any : 0;
}

static void describe_over(const struct local *local, const char *prefix,
			  const struct local_view *view, struct engine_status *ret)
{
	AUTO(err_freep) struct err *why = NULL;
	int node, orphans = local_view_kill_orphans(view, &why);

	if (orphans < 0) {
		set_reason(ret, "%s", why->message);
		return;
	}
	if (orphans > 0) {
		ret->state = ENGINE_STOPPING;
		set_reason(ret, "processes that outlived their agent are being killed");
		return;
	}
	local_ended(local, prefix);
	ret->state = ENGINE_ENDED;
	node = deciding_node(local, prefix, view);
	if (node_report_is_final(&view->nodes[node].report))
		describe_end(view, node, ret);
	else
		describe_death(local, prefix, view, node, ret);
}

/* Collects agents that are children of this process, and records how they ended: no later process
 * can find out. */
static void reap(const struct local *local, const char *prefix, struct local_view *view)
{
	AUTO(err_freep) struct err *ignored = NULL;
	bool news = false;

	for (int i = 0; i < view->record.nodes && view->sight == SIGHT_PIDS; i++) {
		struct agent_end *end = &view->record.ends[i];
		const struct node_view *node = &view->nodes[i];

		if (node->alive || !local_scan_reap(&node->id, &end->status))
			continue;
		end->known = true;
		news |= !node_report_is_final(&node->report);
	}
	if (news)
		(void)!local_record_save(local, prefix, &view->record, &ignored);
}

int local_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err)
{
	const struct local *local = (const struct local *)engine;
	AUTO(local_view_release) struct local_view view = { 0 };
	AUTO(err_freep) struct err *why = NULL;
	int there = local_view_load(local, prefix, &view, &why);

	(void)err;
	*ret = (struct engine_status){ .state = ENGINE_UNKNOWN };
	if (there < 0) {
		set_reason(ret, "%s", why->message);
		return 0;
	}
	if (there == 0) {
		set_reason(ret, "the engine's record of '%s' is missing", name);
		return 0;
	}
	for (int i = view.record.nodes - 1; i >= 0; i--) {
		int64_t started = view.nodes[i].report.started;

		if (started > 0)
			ret->started.ms = started;
	}
	reap(local, prefix, &view);
	if (local_view_is_over(&view))
		describe_over(local, prefix, &view, ret);
	else if (view.sight == SIGHT_NONE || view.sight == SIGHT_HELD)
		set_reason(
			ret,
			"started on '%s'; the processes of that machine cannot be seen from here",
			view.record.host);
	else
		describe_alive(local, prefix, &view, ret);
	return 0;
}
