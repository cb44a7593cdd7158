/* What can be seen of an attempt at this moment, and what is done to its
 * processes: see local_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs.h"
#include "jobs/engine/local_inside.h"
#include "jobs/store/order.h"

/* More processes of one attempt are found by the next look. */
#define FOUND_MAX 4096
/* A process that is started during a scan, by one that ends during it, can be
 * missed. Only several scans without a find say that nothing is left. */
#define EMPTY_SCANS 3

void view_release(struct view *view)
{
	for (int i = 0; view->nodes && i < view->record.nodes; i++)
		json_decref(view->nodes[i].report);
	free(view->nodes);
	free(view->order);
	record_release(&view->record);
	*view = (struct view){ 0 };
}

/* Does an agent hold its lock, on whatever machine or in whatever container? */
static bool lock_held(const struct local *local, const char *prefix, int node)
{
	AUTO(auto_free) char *path = local_node_path(local, prefix, node, LOCK_FILE);
	AUTO(auto_close) int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* File systems that several machines may see at once, by statfs(2): a lock that
 * seems free there may be held elsewhere. */
static bool is_shared(const char *path)
{
	static const unsigned long magics[] = {
		0x6969,     /* NFS */
		0x517B,     /* SMB */
		0xFE534D42, /* SMB2 */
		0xFF534D42, /* CIFS */
		0x0BD00BD0, /* Lustre */
		0x47504653, /* GPFS */
		0x00C36400, /* Ceph */
		0x19830326, /* BeeGFS */
		0x65735546, /* FUSE */
		0x01021997, /* 9p */
	};
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return true;
	for (size_t i = 0; i < STK_LENGTH(magics); i++)
		if ((unsigned long)fs.f_type == magics[i])
			return true;
	return false;
}

/* Can the record's processes be seen from here? */
static enum sight look(const struct local *local, const char *prefix, const struct record *record)
{
	bool same_boot = strcmp(record->boot, local->boot) == 0;
	bool same_host = strcmp(record->host, local->host) == 0;
	const char *root = local_near_root(local, prefix);

	if (same_boot && strcmp(record->pidns, local->pidns) == 0)
		return SIGHT_PIDS;
	if (!root)
		return SIGHT_NONE;
	for (int i = 0; i < record->nodes; i++)
		if (lock_held(local, prefix, i))
			return SIGHT_HELD;
	if (!same_boot && !same_host && is_shared(root))
		return SIGHT_NONE;
	return SIGHT_GONE;
}

/* Agents by the record, or where it was not finished, by a look at /proc. */
static void find_agents(struct view *view)
{
	struct found *found;
	size_t count;

	for (int i = 0; i < view->record.nodes; i++)
		view->nodes[i].id = view->record.agents[i];
	if (view->record.started)
		return;
	found = mem_zero(FOUND_MAX, sizeof *found);
	count = scan_processes(view->record.token, view->order, found, FOUND_MAX);
	for (size_t i = 0; i < count; i++) {
		struct proc_id *agent;

		if (found[i].rank < 0 || found[i].rank >= view->record.nodes)
			continue;
		/* An agent's own child looks like it, but was started later. */
		agent = &view->nodes[found[i].rank].id;
		if (agent->pid == 0 || found[i].id.start_ticks < agent->start_ticks)
			*agent = found[i].id;
	}
	free(found);
}

static int load_node(const struct local *local, const char *prefix, struct view *view, int rank,
		     struct err **err)
{
	struct node_view *node = &view->nodes[rank];
	const char *token = view->record.token;

	if (node->id.pid == 0) {
		/* Neither in the record nor found. Its report may name it. */
		json_auto_t *report = NULL;

		if (report_load(local, prefix, rank, token, &report, err) < 0)
			return -1;
		report_process_of(report, "agent", &node->id);
	}
	/* First whether it lives: if it does not, the report read after that is its
	 * last. */
	node->alive = view->sight == SIGHT_PIDS && proc_alive(&node->id);
	view->alive += node->alive;
	return report_load(local, prefix, rank, token, &node->report, err) < 0 ? -1 : 0;
}

int view_load(const struct local *local, const char *prefix, struct view *ret, struct err **err)
{
	AUTO(view_release) struct view view = { 0 };
	int there = record_load(local, prefix, &view.record, err);

	if (there <= 0)
		return there;
	view.order = local_order(local, prefix);
	view.nodes = mem_zero((size_t)view.record.nodes, sizeof *view.nodes);
	view.sight = look(local, prefix, &view.record);
	find_agents(&view);
	for (int i = 0; i < view.record.nodes; i++)
		if (load_node(local, prefix, &view, i, err) < 0)
			return -1;
	*ret = view;
	view = (struct view){ 0 };
	return 1;
}

bool view_is_over(const struct view *view)
{
	for (int i = 0; i < view->record.nodes && view->sight == SIGHT_NONE; i++)
		if (!report_is_final(view->nodes[i].report))
			return false;
	return view->alive == 0 && view->sight != SIGHT_HELD;
}

/* Signal all living agents. */
static void view_signal(const struct view *view, int signo)
{
	for (int i = 0; i < view->record.nodes; i++)
		if (view->nodes[i].alive)
			signal_process(&view->nodes[i].id, signo);
}

/* The group of a node's command, as its report names it. */
static bool kill_command(const struct node_view *node)
{
	struct proc_id id;

	return report_process_of(node->report, "command", &id) && proc_alive(&id) &&
	       proc_signal_group(&id, SIGKILL);
}

static bool has_ended(const struct node_view *node)
{
	return js_is(node->report, "state", REPORT_ENDED);
}

size_t view_kill_orphans(const struct view *view)
{
	AUTO(auto_free) struct found *found = NULL;
	size_t killed = 0, count;
	int scans = 1;

	if (view->sight != SIGHT_PIDS)
		return 0;
	for (int i = 0; i < view->record.nodes; i++) {
		if (!view->nodes[i].alive)
			killed += kill_command(&view->nodes[i]);
		/* That its command has ended an agent reports when nothing of it runs any more. */
		if (!has_ended(&view->nodes[i]))
			scans = EMPTY_SCANS;
	}
	/* With an agent alive, what carries the token may well be its own. */
	if (view->alive > 0)
		return killed;
	found = mem_zero(FOUND_MAX, sizeof *found);
	for (int i = 0; i < scans && killed == 0; i++) {
		count = scan_processes(view->record.token, view->order, found, FOUND_MAX);
		for (size_t k = 0; k < count; k++)
			killed += signal_process(&found[k].id, SIGKILL);
	}
	return killed;
}

int view_stop(const struct local *local, const char *prefix, struct view *view, enum stop_why why,
	      int64_t grace_ms, struct err **err)
{
	struct record *record = &view->record;
	int64_t now = mono_now().ms;

	if (record->stop == STOP_NONE) {
		view_signal(view, SIGTERM);
		record->stop = why;
		record->stop_at_ms = now;
		return record_save(local, prefix, record, err);
	}
	if (now - record->stop_at_ms < grace_ms + STOP_MARGIN_MS)
		return 0;
	/* The agent first: it would report the end of its command as an end. */
	view_signal(view, SIGKILL);
	for (int i = 0; i < record->nodes; i++)
		kill_command(&view->nodes[i]);
	return 0;
}
