/* Visible state of an attempt, and signals to its processes: see local_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/engine/local/local_internal.h"
#include "jobs/store/order.h"

/* Further processes of one attempt are found by the next call. */
#define FOUND_MAX 4096
/* A scan can miss a process that is started during it by one that ends during it. Only several
 * scans without a match prove that nothing is left. */
#define EMPTY_SCANS 3

void local_view_release(struct local_view *view)
{
	for (int i = 0; view->nodes && i < view->record.nodes; i++)
		node_report_release(&view->nodes[i].report);
	free(view->nodes);
	free(view->order);
	local_record_release(&view->record);
	*view = (struct local_view){ 0 };
}

/* True if an agent holds its lock, on any machine or in any container. */
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

/* Decides how far the record's processes can be seen from here. */
static enum local_sight sight_of(const struct local *local, const char *prefix,
				 const struct local_record *record)
{
	bool same_boot = strcmp(record->boot, local->boot) == 0;
	bool same_host = strcmp(record->host, local->host) == 0;
	const char *root = local_object_workspace_root(local, prefix);

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

/* Takes the agents from the record, or if that is unfinished, from a scan of /proc. */
static int find_agents(struct local_view *view, struct err **err)
{
	AUTO(auto_free) struct local_found *found = NULL;
	int count;

	for (int i = 0; i < view->record.nodes; i++)
		view->nodes[i].id = view->record.agents[i];
	if (view->record.started)
		return 0;
	found = mem_zero(FOUND_MAX, sizeof *found);
	count = local_scan_processes(view->record.token, view->order, found, FOUND_MAX, err);
	for (int i = 0; i < count; i++) {
		struct proc_id *agent;

		if (found[i].rank < 0 || found[i].rank >= view->record.nodes)
			continue;
		/* A child of an agent looks like the agent, but was started later. */
		agent = &view->nodes[found[i].rank].id;
		if (agent->pid == 0 || found[i].id.start_ticks < agent->start_ticks)
			*agent = found[i].id;
	}
	return count < 0 ? -1 : 0;
}

static int load_node(const struct local *local, const char *prefix, struct local_view *view,
		     int rank, struct err **err)
{
	struct node_view *node = &view->nodes[rank];
	const char *token = view->record.token;
	int there;

	if (node->id.pid == 0) {
		/* The agent is neither in the record nor found by the scan; its report may name
		 * it. */
		AUTO(node_report_release) struct node_report report = { 0 };

		if (local_record_load_report(local, prefix, rank, token, &report, err) < 0)
			return -1;
		local_record_process_of_report(&report.agent, &node->id);
	}
	/* Liveness is read before the report: if the agent is dead, that report is its last. */
	node->alive = view->sight == SIGHT_PIDS && proc_alive(&node->id);
	view->alive += node->alive;
	there = local_record_load_report(local, prefix, rank, token, &node->report, err);
	node->reported = there > 0;
	return there < 0 ? -1 : 0;
}

int local_view_load(const struct local *local, const char *prefix, struct local_view *ret,
		    struct err **err)
{
	AUTO(local_view_release) struct local_view view = { 0 };
	int there = local_record_load(local, prefix, &view.record, err);

	if (there <= 0)
		return there;
	view.order = local_order(local, prefix);
	view.nodes = mem_zero((size_t)view.record.nodes, sizeof *view.nodes);
	view.sight = sight_of(local, prefix, &view.record);
	if (find_agents(&view, err) < 0)
		return -1;
	for (int i = 0; i < view.record.nodes; i++)
		if (load_node(local, prefix, &view, i, err) < 0)
			return -1;
	*ret = view;
	view = (struct local_view){ 0 };
	return 1;
}

bool local_view_is_over(const struct local_view *view)
{
	for (int i = 0; i < view->record.nodes && view->sight == SIGHT_NONE; i++)
		if (!node_report_is_final(&view->nodes[i].report))
			return false;
	return view->alive == 0 && view->sight != SIGHT_HELD;
}

/* Signals all living agents. */
static void view_signal(const struct local_view *view, int signo)
{
	for (int i = 0; i < view->record.nodes; i++)
		if (view->nodes[i].alive)
			local_scan_signal(&view->nodes[i].id, signo);
}

/* Kills the process group of a node's command, as its report names it. */
static bool kill_command(const struct node_view *node)
{
	struct proc_id id;

	return local_record_process_of_report(&node->report.command, &id) && proc_alive(&id) &&
	       proc_signal_group(&id, SIGKILL);
}

static bool has_ended(const struct node_view *node)
{
	return node_report_is(&node->report, REPORT_ENDED);
}

int local_view_kill_orphans(const struct local_view *view, struct err **err)
{
	AUTO(auto_free) struct local_found *found = NULL;
	int killed = 0, count = 0, scans = 1;

	if (view->sight != SIGHT_PIDS)
		return 0;
	for (int i = 0; i < view->record.nodes; i++) {
		if (!view->nodes[i].alive)
			killed += kill_command(&view->nodes[i]);
		/* An agent reports the end of its command only when no process of it runs any
		 * more. */
		if (!has_ended(&view->nodes[i]))
			scans = EMPTY_SCANS;
	}
	/* If an agent is alive, a process with the token may be one of its own. */
	if (view->alive > 0)
		return killed;
	found = mem_zero(FOUND_MAX, sizeof *found);
	for (int i = 0; i < scans && killed == 0 && count >= 0; i++) {
		count = local_scan_processes(view->record.token, view->order, found, FOUND_MAX,
					     err);
		/* A process that could not be signalled counts too: it lives. */
		for (int k = 0; k < count; k++, killed++)
			(void)!local_scan_signal(&found[k].id, SIGKILL);
	}
	return count < 0 ? -1 : killed;
}

int local_view_stop(const struct local *local, const char *prefix, struct local_view *view,
		    enum stop_why why, int64_t grace_ms, struct err **err)
{
	struct local_record *record = &view->record;
	int64_t now = clock_mono_now().ms;

	if (record->stop == STOP_NONE) {
		view_signal(view, SIGTERM);
		record->stop = why;
		record->stop_at_ms = now;
		return local_record_save(local, prefix, record, err);
	}
	if (now - record->stop_at_ms < grace_ms + STOP_MARGIN_MS)
		return 0;
	/* The agent first: it would report the killed command as an ordinary end. */
	view_signal(view, SIGKILL);
	for (int i = 0; i < record->nodes; i++)
		kill_command(&view->nodes[i]);
	return 0;
}
