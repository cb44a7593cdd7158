/* Runs the command and sees that no process of it is left: see agent.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/turn.h"
#include "jobs/node/agent.h"
#include "jobs/node/checkpoints/fetch.h"
#include "jobs/node/host_evidence.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/setup/compiler.h"
#include "jobs/node/setup/container_env.h"
#include "jobs/node/setup/prepare.h"
#include "jobs/node/setup/secrets.h"
#include "jobs/node/subreaper.h"

#define READ_SIZE ((size_t)64 << 10)
/* Limits per turn of the loop, so that a flood does not keep signals waiting. */
#define TURN_BYTES   ((size_t)1 << 20)
#define TURN_CPU_MS  100
#define TURN_WALL_MS 1000
/* Time for the command's own children to finish when it ended by itself, and then after a
 * SIGTERM. */
#define LINGER_MS     1000
#define KILL_EVERY_MS 50
#define KILL_ROUNDS   100 /* at that pace, then slower */
/* Limits for a pipe that no process of ours holds any more: as many bytes as a pipe may hold. */
#define DRAIN_BYTES ((size_t)4 << 20)
#define DRAIN_MS    10000

static void check_done(struct agent *agent);

/* Signals all descendants of the command that have become our children. Returns how many. */
static size_t signal_children(const struct agent *agent, int signo)
{
	const pid_t helpers[] = { agent->checkpointer.helper.pid, agent->uploader.helper.pid,
				  agent->outputs.helper.pid };

	return subreaper_signal(signo, helpers, STK_LENGTH(helpers));
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
			return errno == EAGAIN;
		}
	}
	return true;
}

static void close_pipe(struct agent *agent)
{
	loop_remove(agent->loop, agent->pipe_watch);
	agent->pipe_watch = NULL;
	auto_close(&agent->pipe_fd);
	agent->pipe_fd = -1;
	output_relay_flush(&agent->relay);
}

static void on_output(void *arg)
{
	struct agent *agent = arg;
	bool more = read_pipe(agent, turn_begin(TURN_BYTES, TURN_CPU_MS, TURN_WALL_MS));

	/* A reader that is gone is no reason to lose a training; a full disk is: the training would
	 * go on blindly and could not save anything either. */
	if (agent->relay.failed && agent->relay.failed != EPIPE && !agent->trouble) {
		fs_error(&agent->trouble, agent->relay.failed, "cannot keep the command's output");
		supervise_stop(agent, STOPPED_LOG);
	}
	if (!more) {
		close_pipe(agent);
		check_done(agent);
	}
}

/* Kills again and again until nothing is left: the children of a killed process come to us. A
 * process that the kernel does not let go of is waited for; it has not ended. */
static void on_kill(void *arg)
{
	struct agent *agent = arg;
	bool often = agent->kill_rounds++ < KILL_ROUNDS;

	if (!agent->over)
		kill(-agent->command, SIGKILL);
	signal_children(agent, SIGKILL);
	agent->kill_timer =
		loop_after(agent->loop, often ? KILL_EVERY_MS : LINGER_MS, on_kill, agent);
}

static void kill_after(struct agent *agent, int64_t delay_ms, watch_fn fn)
{
	loop_remove(agent->loop, agent->kill_timer);
	agent->kill_timer = loop_after(agent->loop, delay_ms, fn, agent);
}

/* The command ended by itself and left processes behind. */
static void on_linger(void *arg)
{
	struct agent *agent = arg;

	agent->kill_timer = NULL;
	agent->leftovers = signal_children(agent, SIGTERM);
	signal_children(agent, SIGCONT);
	kill_after(agent, LINGER_MS, on_kill);
}

/* A signal came while the command was being stopped: it may leave less time than the grace. */
static void hurry(struct agent *agent)
{
	int64_t now = clock_mono_now().ms, left = agent->stop_at.ms + agent->config.grace_ms - now;
	int64_t kill = agent->told_at.ms + agent_config_kill_ms(&agent->config) - now;

	if (agent->told_at.ms && agent->kill_timer && left > 0 && kill < left)
		kill_after(agent, kill > 0 ? kill : 0, on_kill);
}

void supervise_stop(struct agent *agent, const char *why)
{
	bool first = !agent->stopped;

	if (agent->state)
		return;
	if (first || strcmp(why, STOPPED_SUPERSEDED) == 0)
		agent->stopped = why;
	if (strcmp(why, STOPPED_SUPERSEDED) == 0) {
		checkpointer_kill(&agent->checkpointer);
		outputs_kill(agent);
	}
	if (!first) {
		hurry(agent);
		return;
	}
	agent->stop_at = clock_mono_now();
	if (!agent->command) {
		if (strcmp(why, STOPPED_SUPERSEDED) == 0)
			agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		else
			agent_finish(agent, REPORT_ENDED, 128 + SIGTERM);
		return;
	}
	/* SIGCONT: a stopped process could not hear the SIGTERM. */
	if (!agent->over) {
		kill(-agent->command, SIGTERM);
		kill(-agent->command, SIGCONT);
	} else {
		signal_children(agent, SIGTERM);
		signal_children(agent, SIGCONT);
	}
	kill_after(agent,
		   agent->told_at.ms ? agent_config_kill_ms(&agent->config)
				     : agent->config.grace_ms,
		   on_kill);
	workers_checkpointer_lives(agent);
}

static int exit_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* True if neither a drain nor a stop ended the command, other than a log that could not be kept:
 * the end is then this node's own. */
static bool ended_by_itself(const struct agent *agent)
{
	return !agent->drain.at_ms && (!agent->stopped || strcmp(agent->stopped, STOPPED_LOG) == 0);
}

/* True if nothing hurries the command: it ends by itself, or was asked to save first. Then what
 * it saved counts. */
static bool at_leisure(const struct agent *agent)
{
	return !agent->stopped || strcmp(agent->stopped, STOPPED_DRAIN) == 0 ||
	       strcmp(agent->stopped, STOPPED_WORKER) == 0;
}

/* Fails a precompile that went well, because its graphs are not where they would be looked for. */
static void not_pushed(struct agent *agent)
{
	const json_t *compile = json_object_get(agent->config.order, "compile");
	const char *why = agent->report.said.cache.why;

	/* The cache's error names the place already, and evidence is cut at a length. */
	if (why)
		err_set(&agent->trouble, EXIT_UNREACHABLE, "%s", why);
	else
		err_set(&agent->trouble, EXIT_UNREACHABLE,
			"cannot upload the compiled graphs to '%s'", js_str(compile, "cache"));
	agent_fail(agent, &agent->trouble, "transient-infra");
}

static bool lacks_push(const struct agent *agent)
{
	AUTO(auto_free) char *cache = fetch_cache(&agent->config);

	return cache && !agent->pushed;
}

static bool lacks_keeping(const struct agent *agent)
{
	return checkpointer_has_checkpoints(&agent->config) && !agent->kept && !agent->lost;
}

/* Fails a command that went well, because the next one would not find what it saved. */
static void not_kept(struct agent *agent)
{
	const char *trouble = agent->report.said.checkpoint.trouble;
	AUTO(auto_free) char *class = TAKE(agent->lost_class);

	if (!agent->lost) {
		err_set(&agent->lost, EXIT_UNREACHABLE,
			"the process for the checkpoints in '%s' did not end well%s%s",
			agent->config.checkpoint, trouble ? ": " : "", trouble ? trouble : "");
		class = mem_copy("transient-infra");
	}
	agent_fail(agent, &agent->lost, class);
}

static void finish_command(struct agent *agent)
{
	if (agent->drain.at_ms && !agent->stopped)
		agent->stopped = drain_word(agent);
	if (WIFSIGNALED(agent->status))
		MESSAGE_SET(&agent->report.said, signal, WTERMSIG(agent->status));
	if (agent->leftovers > 0)
		MESSAGE_SET(&agent->report.said, leftovers, (int64_t)agent->leftovers);
	outputs_report(agent);
	workers_tell_lost(agent);
	if (agent->stopped && strcmp(agent->stopped, STOPPED_SUPERSEDED) == 0) {
		agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		return;
	}
	if (agent->trouble) {
		agent_fail(agent, &agent->trouble, NULL);
		return;
	}
	if (agent->config.scratch && !agent->stopped && agent->status == 0 && lacks_push(agent)) {
		not_pushed(agent);
		return;
	}
	if (at_leisure(agent) && agent->status == 0 && (agent->lost || lacks_keeping(agent))) {
		not_kept(agent);
		return;
	}
	if (at_leisure(agent) && agent->status == 0 && agent->outputs.lost) {
		agent_fail(agent, &agent->outputs.lost, agent->outputs.lost_class);
		return;
	}
	agent_finish(agent, REPORT_ENDED, exit_of(agent->status));
}

/* True if a signal killed the command. A shell dies of the SIGTERM on which its children leave by
 * themselves; that does not count. */
static bool was_killed(const struct agent *agent)
{
	return WIFSIGNALED(agent->status) &&
	       !(WTERMSIG(agent->status) == SIGTERM && agent->heirs_left);
}

/* True if the command failed, or was killed, in the middle of its work. A command that leaves when
 * told to has had its chance to save, whatever the exit status: launchers have one of their own for
 * that. And processes that outlive a command that ended well are no part of its work. */
static bool was_cut_off(const struct agent *agent)
{
	if (!agent->stopped)
		return agent->status != 0;
	return agent->kill_rounds > 0 || was_killed(agent);
}

static void check_done(struct agent *agent)
{
	if (agent->state || !agent->over || !agent->childless)
		return;
	if (agent->pipe_fd >= 0) {
		/* No descendant of the command lives: all that it wrote is in the pipe. */
		read_pipe(agent, turn_begin(DRAIN_BYTES, DRAIN_MS, DRAIN_MS));
		close_pipe(agent);
	}
	loop_remove(agent->loop, agent->kill_timer);
	agent->kill_timer = NULL;
	/* A checkpointer that died, or did not get through to the service, is started once more. */
	if (((lacks_push(agent) && !agent->stopped) ||
	     (lacks_keeping(agent) && at_leisure(agent))) &&
	    !agent->checkpointer_stuck)
		workers_keep(agent);
	if (agent->checkpointer.helper.pid > 0) {
		bool first = !agent->checkpointer.last_pass;

		checkpointer_finish(&agent->checkpointer, was_cut_off(agent));
		if (first)
			workers_checkpointer_lives(agent);
		return;
	}
	if (!outputs_bring(agent))
		finish_command(agent);
}

void supervise_tell_ended(struct agent *agent)
{
	if (agent->ended_due && ended_by_itself(agent))
		agent->ended_due =
			!node_flag_set(&agent->config, agent->store, ENDED_FILE, json_object());
}

static void command_over(struct agent *agent, int status)
{
	agent->over = true;
	agent->status = status;
	MESSAGE_SET(&agent->report.said, ended, clock_utc_now().ms);
	/* Other nodes may have heard of a drain before us, and left. A far workspace keeps us
	 * waiting for its answer, which is worth it only if there are other nodes. */
	if (!agent->config.far || agent->config.nodes > 1)
		drain_look(agent);
	if (ended_by_itself(agent)) {
		agent_tell_peers(agent, exit_of(status));
		agent->ended_due =
			status == 0 && agent->config.node == 0 && agent->config.nodes > 1;
	}
	supervise_tell_ended(agent);
	if (!agent->stopped) {
		kill_after(agent, LINGER_MS, on_linger);
		return;
	}
	/* The command's group was told already; processes that left the group are told now, and
	 * have what remains of the grace. */
	signal_children(agent, SIGTERM);
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
		else if (pid == agent->command && !agent->over)
			command_over(agent, status);
		else
			agent->heirs_left |= agent->over && WIFEXITED(status);
	}
	*ret_any_left = pid == 0;
	return any;
}

/* True if we have no children but our helpers. A look at /proc must tell; a process that forks and
 * dies during the look could hide from it, but not die without being reaped: then we look again. */
static bool is_childless(struct agent *agent)
{
	bool any_left;

	reap(agent, &any_left);
	while (any_left) {
		if (!agent->over || signal_children(agent, 0) > 0)
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

/* True if that flag is set for all nodes of this start. */
static bool is_noted(const struct agent *agent, const char *name)
{
	const struct agent_config *config = &agent->config;

	return config->nodes > 1 && node_flag_is_set(config, agent->store, name, config->restart);
}

static void on_heartbeat(void *arg)
{
	struct agent *agent = arg;

	if (agent->config.far)
		; /* the uploader looks */
	else if (!claim_holds(&agent->claim, &agent->config, agent->store))
		supervise_stop(agent, STOPPED_SUPERSEDED);
	else if (!drain_look(agent) && is_noted(agent, FAILED_FILE))
		supervise_stop(agent, STOPPED_PEER);
	else if (agent->config.node > 0 && !agent->watchdog.alone && is_noted(agent, ENDED_FILE))
		watchdog_alone(agent);
	supervise_tell_ended(agent);
	workers_tell_lost(agent);
	if (!agent->over)
		workers_keep(agent);
	workers_keep_uploader(agent);
	if (!uploader_needed(&agent->config))
		claim_renewal_look(&agent->renewal, &agent->config);
	if (!agent->state)
		loop_after(agent->loop, agent->config.heartbeat_ms, on_heartbeat, agent);
}

void supervise_hear(void *arg, enum uploader_news news)
{
	struct agent *agent = arg;

	switch (news) {
	case UPLOADER_SUPERSEDED:
		supervise_stop(agent, STOPPED_SUPERSEDED);
		break;
	case UPLOADER_DRAIN:
		drain_begin(agent);
		break;
	case UPLOADER_DRAINED:
		if (agent->config.node > 0 && agent->drain.at_ms)
			supervise_stop(agent, drain_word(agent));
		break;
	case UPLOADER_PEER_FAILED:
		if (!agent->drain.at_ms)
			supervise_stop(agent, STOPPED_PEER);
		break;
	case UPLOADER_HEAD_ENDED:
		watchdog_alone(agent);
		break;
	}
}

/* Makes a pipe; the command will hold its other end as stdout and stderr. */
static int open_pipe(struct agent *agent, int *ret_write_fd, struct err **err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	/* Only our end is non-blocking: the command must not meet EAGAIN on its stdout. */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	agent->pipe_fd = fds[0];
	*ret_write_fd = fds[1];
	agent->pipe_watch = loop_on_readable(agent->loop, fds[0], on_output, agent);
	return 0;
}

/* The command could not be executed: reports its end as a shell would. */
static void no_command(struct agent *agent, int exit_status, struct err **why)
{
	report_error(&agent->report, *why, "user-config");
	err_freep(why);
	MESSAGE_SET(&agent->report.said, ended, clock_utc_now().ms);
	agent_finish(agent, REPORT_ENDED, exit_status);
}

static int spawn(struct agent *agent, const char *program, char **argv, struct err **err)
{
	AUTO(auto_close) int write_fd = -1;
	struct proc_start start = {
		.program = program,
		.argv = argv,
		.envp = agent->env.list,
		.cwd = agent->config.src,
		.in = -1,
	};
	struct proc_id id;

	if (open_pipe(agent, &write_fd, err) < 0)
		return -1;
	start.out = start.err = write_fd;
	if (proc_spawn(&start, &agent->command, err) < 0) {
		agent->command = 0;
		close_pipe(agent);
		return -1;
	}
	agent->start_at = clock_mono_now();
	MESSAGE_SET(&agent->report.said, started, clock_utc_now().ms);
	if (proc_identify(agent->command, &id) == 0) {
		MESSAGE_MARK(&agent->report.said, command);
		report_process(&agent->report.said.command, &id);
	}
	return 0;
}

static bool is_about_the_program(int os_errno)
{
	return os_errno == ENOENT || os_errno == EACCES || os_errno == ENOEXEC ||
	       os_errno == ENOTDIR || os_errno == ELOOP || os_errno == ETXTBSY;
}

void supervise_start(struct agent *agent)
{
	AUTO(auto_strv) char **argv = NULL;
	AUTO(auto_free) char *program = NULL;
	AUTO(err_freep) struct err *why = NULL;
	int no = 0;

	agent->oom_before = host_evidence_oom_kills();
	if (secrets_fetch(&agent->config, &why) < 0) {
		agent_fail(agent, &why,
			   why->code == EXIT_UNREACHABLE ? "transient-infra" : "quota-permission");
		return;
	}
	if (watchdog_init(agent, &why) < 0 ||
	    command_env_build(&agent->config, &agent->claim, &agent->env, &why) < 0 ||
	    command_env_command(&agent->config, &agent->env, &argv, &why) < 0) {
		agent_fail(agent, &why, "user-config");
		return;
	}
	if (prepare_program(&agent->config, argv[0], command_env_get(&agent->env, "PATH"), &program,
			    &no, &why) < 0) {
		no_command(agent, no, &why);
		return;
	}
	if (compiler_look(&agent->config, &agent->env, &agent->report.said, &why) < 0) {
		agent_fail(agent, &why, "compile");
		return;
	}
	container_env_report(&agent->config, &agent->report.said);
	if (spawn(agent, program, argv, &why) < 0) {
		if (is_about_the_program(why->os_errno))
			no_command(agent,
				   why->os_errno == ENOENT ? AGENT_EXIT_NO_FILE
							   : AGENT_EXIT_NO_EXEC,
				   &why);
		else
			agent_fail(agent, &why, NULL);
		return;
	}
	loop_on_signal(agent->loop, SIGCHLD, on_child, agent);
	watchdog_start(agent);
	workers_keep(agent);
	loop_after(agent->loop, agent->config.heartbeat_ms, on_heartbeat, agent);
	/* Without a report nobody could see how the command fares: as with a log
	 * that cannot be kept. */
	if (agent_report(agent, REPORT_RUNNING, &agent->trouble) < 0)
		supervise_stop(agent, STOPPED_LOG);
	on_child(agent); /* the command may have ended before we asked for the signal */
}
