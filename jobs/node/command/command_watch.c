/* Output, end and heartbeat of the command while it runs: see command_watch.h. */
#include "jobs/node/command/command_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/turn.h"
#include "jobs/node/agent.h"
#include "jobs/node/checkpoints/last_pass.h"
#include "jobs/node/command/command_end.h"
#include "jobs/node/command/command_stop.h"
#include "jobs/node/subreaper.h"

#define READ_SIZE ((size_t)64 << 10)
/* Limits per turn of the loop, so that a flood does not keep signals waiting. */
#define TURN_BYTES   ((size_t)1 << 20)
#define TURN_CPU_MS  100
#define TURN_WALL_MS 1000
/* Limits for a pipe that no process of ours holds any more: as many bytes as a pipe may hold. */
#define DRAIN_BYTES ((size_t)4 << 20)
#define DRAIN_MS    10000

/* ---- output of the command ---- */

/* More than this waits in the pipe, and so holds the command back, and not in our memory. */
#define BEHIND_BYTES ((size_t)1 << 20)

static void check_done(struct agent *agent);

/* True if the process that writes the log is so far behind that more output waits in the pipe, as
 * it would if it were written here. */
static bool is_behind(const struct agent *agent)
{
	return agent->relay.orders && agent->relay.orders->queue.len >= BEHIND_BYTES;
}

/* Reads what is there, as much as a turn has room for. Returns false once the pipe has ended. */
static bool read_pipe(struct agent *agent, struct turn turn)
{
	char buffer[READ_SIZE];

	while (!turn.over) {
		ssize_t len = read(agent->pipe_fd, buffer, sizeof buffer);

		if (len > 0) {
			output_relay_pass(&agent->relay, buffer, (size_t)len);
			watchdog_pass(agent, buffer, (size_t)len);
			turn_spend(&turn, (size_t)len);
		} else if (len == 0) {
			return false;
		} else if (errno != EINTR) {
			return err_errno_passes(errno); /* EAGAIN, or no more than a bad moment */
		}
	}
	return true;
}

void command_watch_close(struct agent *agent)
{
	loop_remove(agent->loop, agent->pipe_watch);
	agent->pipe_watch = NULL;
	auto_close(&agent->pipe_fd);
	agent->pipe_fd = -1;
	output_relay_flush(&agent->relay);
}

static void on_output(void *arg);

/* Listens to the pipe, unless what it gives could only wait here. */
static void listen_on(struct agent *agent)
{
	if (agent->pipe_fd < 0)
		return;
	if (!is_behind(agent) && !agent->pipe_watch)
		agent->pipe_watch = loop_on_readable(agent->loop, agent->pipe_fd, on_output, agent);
	if (is_behind(agent) && agent->pipe_watch) {
		loop_remove(agent->loop, agent->pipe_watch);
		agent->pipe_watch = NULL;
	}
}

/* A reader that is gone is no reason to lose a training; a full disk is: the training would go on
 * blindly and could not save anything either. */
static void heed_log(struct agent *agent)
{
	if (!agent->relay.failed || agent->relay.failed == EPIPE || agent->trouble)
		return;
	fs_error(&agent->trouble, agent->relay.failed, "cannot keep the command's output");
	command_stop(agent, STOPPED_LOG);
}

static void on_output(void *arg)
{
	struct agent *agent = arg;
	bool more = read_pipe(agent, turn_begin(TURN_BYTES, TURN_CPU_MS, TURN_WALL_MS));

	heed_log(agent);
	listen_on(agent);
	if (!more) {
		command_watch_close(agent);
		check_done(agent);
	}
}

int command_watch_open(struct agent *agent, int *ret_write_fd, struct err **err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	/* Only our end is non-blocking: the command must not meet EAGAIN on its stdout. */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	agent->pipe_fd = fds[0];
	*ret_write_fd = fds[1];
	listen_on(agent);
	return 0;
}

/* ---- end of the command ---- */

/* True if the log waits for the process that writes it: only then is it known whether it is kept.
 */
static bool log_waits(struct agent *agent)
{
	if (!agent->relay.orders || agent->uploader.orders.queue.len == 0)
		return false;
	workers_keep_uploader(agent);
	return agent->uploader.helper.pid > 0;
}

static void check_done(struct agent *agent)
{
	if (agent->state || !agent->over || !agent->childless)
		return;
	if (agent->pipe_fd >= 0) {
		/* No descendant of the command lives: all that it wrote is in the pipe. */
		read_pipe(agent, turn_begin(DRAIN_BYTES, DRAIN_MS, DRAIN_MS));
		command_watch_close(agent);
	}
	loop_remove(agent->loop, agent->kill_timer);
	agent->kill_timer = NULL;
	/* A checkpointer that died, or did not get through to the service, is started once more. */
	if (command_end_lacks_pass(agent) && !agent->checkpointer_stuck)
		workers_keep(agent);
	if (agent->checkpointer.helper.pid > 0) {
		bool first = !agent->checkpointer.last_pass;

		checkpointer_finish(&agent->checkpointer, command_end_was_cut_off(agent));
		if (first)
			last_pass_extend(agent);
		return;
	}
	if (!outputs_bring(agent) && !agent->looking && !log_waits(agent))
		command_end_conclude(agent);
}

/* Reaps all children that have ended. Returns true if there were any. */
static bool reap(struct agent *agent, bool *ret_any_left)
{
	bool any = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		any = true;
		if (pid == agent->checkpointer.helper.pid)
			workers_died(agent, WORKER_CHECKPOINTER, status);
		else if (pid == agent->uploader.helper.pid)
			workers_died(agent, WORKER_UPLOADER, status);
		else if (pid == agent->outputs.helper.pid)
			outputs_gone(agent);
		else if (sampler_reaped(agent, pid))
			continue;
		else if (pid == agent->command && !agent->over) {
			tasks_gone(agent);
			command_end_begin(agent, status);
		} else
			agent->heirs_left |= agent->over && WIFEXITED(status);
	}
	*ret_any_left = pid == 0;
	return any;
}

#define LOOK_AGAIN_MS 250

static void on_child(void *arg);

static void on_look_again(void *arg)
{
	struct agent *agent = arg;

	agent->look_timer = NULL;
	on_child(agent);
}

/* True if we have no children but our helpers. A look at /proc must tell; a process that forks and
 * dies during the look could hide from it, but not die without being reaped: then we look again. A
 * child that cannot be seen may be there, and no signal may tell of it any more. */
static bool is_childless(struct agent *agent)
{
	bool any_left;

	reap(agent, &any_left);
	while (any_left) {
		size_t others = agent->over ? command_stop_signal(agent, 0) : 1;

		if (others == SUBREAPER_UNKNOWN && !agent->look_timer)
			agent->look_timer =
				loop_after(agent->loop, LOOK_AGAIN_MS, on_look_again, agent);
		if (others > 0)
			return false;
		if (!reap(agent, &any_left))
			return true;
	}
	return true;
}

static void on_child(void *arg)
{
	struct agent *agent = arg;

	agent->childless = is_childless(agent);
	check_done(agent);
}

/* ---- the heartbeat ---- */

static void on_heartbeat(void *arg)
{
	struct agent *agent = arg;

	command_end_tell(agent);
	workers_tell_lost(agent);
	if (!agent->over)
		workers_keep(agent);
	workers_keep_uploader(agent);
	orders_push(&agent->checkpointer.orders);
	orders_push(&agent->uploader.orders);
	if (!agent->state)
		loop_after(agent->loop, agent->config.heartbeat_ms, on_heartbeat, agent);
}

/* ---- the beginning ---- */

static void on_heard(struct agent *agent)
{
	if (agent->command) {
		heed_log(agent);
		listen_on(agent);
		check_done(agent);
	}
}

void command_watch_begin(struct agent *agent)
{
	agent->heard = on_heard;
	loop_on_signal(agent->loop, SIGCHLD, on_child, agent);
	watchdog_start(agent);
	sampler_start(agent);
	workers_keep(agent);
	loop_after(agent->loop, agent->config.heartbeat_ms, on_heartbeat, agent);
	/* Without a report nobody could see how the command fares: as with a log
	 * that cannot be kept. */
	if (agent_report(agent, REPORT_RUNNING, &agent->trouble) < 0)
		command_stop(agent, STOPPED_LOG);
	on_child(agent); /* the command may have ended before we asked for the signal */
}
