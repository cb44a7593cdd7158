/* Runs the command and sees that nothing of it is left: see agent.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs.h"
#include "jobs/node/agent.h"
#include "jobs/node/children.h"
#include "jobs/node/compiler.h"
#include "jobs/node/evidence.h"
#include "jobs/node/fetch.h"
#include "jobs/node/note.h"
#include "jobs/node/prepare.h"
#include "jobs/node/secrets.h"

#define READ_SIZE ((size_t)64 << 10)
/* Per turn of the loop, so that a flood does not keep signals waiting. */
#define READS_PER_TURN 16
/* What the command's own children have to finish when it ended by itself, and
 * then after a SIGTERM. */
#define LINGER_MS     1000
#define KILL_EVERY_MS 50
#define KILL_ROUNDS   100 /* at that pace, then slower */
#define DRAIN_READS   64  /* of a pipe that no process of ours holds any more */
/* The keeper's last pass: how long it may go without a word, and what it has at
 * least when we were told to stop and the grace is over. */
#define KEEPER_SILENT_MS ((int64_t)5 * 60 * 1000)
#define KEEPER_LEAST_MS  2000
#define KEEPER_STARTS    5
#define COURIER_STARTS   5

static void check_done(struct agent *agent);

/* All that descends from the command and has come to us. */
static size_t signal_children(const struct agent *agent, int signo)
{
	const pid_t helpers[] = { agent->keeper.helper.pid, agent->courier.helper.pid };

	return children_signal(signo, helpers, STK_LENGTH(helpers));
}

/* Read what is there; false once the pipe has ended. */
static bool read_pipe(struct agent *agent, int reads)
{
	char buffer[READ_SIZE];

	while (reads-- > 0) {
		ssize_t len = read(agent->pipe_fd, buffer, sizeof buffer);

		if (len > 0) {
			relay_pass(&agent->relay, buffer, (size_t)len);
			watchdog_pass(agent, buffer, (size_t)len);
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
	relay_flush(&agent->relay);
}

static void on_output(void *arg)
{
	struct agent *agent = arg;
	bool more = read_pipe(agent, READS_PER_TURN);

	/* A reader that is gone is no reason to lose a training; a full disk is: the
	 * training would go on blindly and could not save anything either. */
	if (agent->relay.failed && agent->relay.failed != EPIPE && !agent->trouble) {
		fs_error(&agent->trouble, agent->relay.failed, "cannot keep the command's output");
		supervise_stop(agent, STOPPED_LOG);
	}
	if (!more) {
		close_pipe(agent);
		check_done(agent);
	}
}

/* Again and again until nothing is left: the children of what dies come to us.
 * What the kernel does not let go of is waited for; it has not ended. */
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

/* The command ended by itself and left something behind. */
static void on_linger(void *arg)
{
	struct agent *agent = arg;

	agent->kill_timer = NULL;
	agent->leftovers = signal_children(agent, SIGTERM);
	signal_children(agent, SIGCONT);
	kill_after(agent, LINGER_MS, on_kill);
}

/* It was being stopped when a signal came: that may leave less time than the grace. */
static void hurry(struct agent *agent)
{
	int64_t now = mono_now().ms, left = agent->stop_at.ms + agent->task.grace_ms - now;
	int64_t kill = agent->told_at.ms + task_kill_ms(&agent->task) - now;

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
	if (strcmp(why, STOPPED_SUPERSEDED) == 0)
		keeper_kill(&agent->keeper);
	if (!first) {
		hurry(agent);
		return;
	}
	agent->stop_at = mono_now();
	if (!agent->command) {
		if (strcmp(why, STOPPED_SUPERSEDED) == 0)
			agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		else
			agent_finish(agent, REPORT_ENDED, 128 + SIGTERM);
		return;
	}
	/* SIGCONT: what is stopped could not hear the SIGTERM. */
	if (!agent->over) {
		kill(-agent->command, SIGTERM);
		kill(-agent->command, SIGCONT);
	} else {
		signal_children(agent, SIGTERM);
		signal_children(agent, SIGCONT);
	}
	kill_after(agent, agent->told_at.ms ? task_kill_ms(&agent->task) : agent->task.grace_ms,
		   on_kill);
	supervise_keeper_lives(agent);
}

static int exit_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Of our own accord, or another node's: what counts as its end. */
static bool ended_by_itself(const struct agent *agent)
{
	return !agent->drain.at_ms && (!agent->stopped || strcmp(agent->stopped, STOPPED_LOG) == 0);
}

/* Nobody hurries it: it ends by itself, or was asked to save what it has first. Then what
 * it saved counts. */
static bool at_leisure(const struct agent *agent)
{
	return !agent->stopped || strcmp(agent->stopped, STOPPED_DRAIN) == 0;
}

/* A precompile that went well, but what it made is not where anybody would look for it. */
static void not_pushed(struct agent *agent)
{
	const json_t *compile = json_object_get(agent->task.order, "compile");
	const char *why = js_str(json_object_get(agent->report.body, "cache"), "why");

	/* It names the place already, and evidence has an end. */
	if (why)
		err_set(&agent->trouble, EXIT_UNREACHABLE, "%s", why);
	else
		err_set(&agent->trouble, EXIT_UNREACHABLE,
			"the compiled graphs could not be brought to '%s'",
			js_str(compile, "cache"));
	agent_fail(agent, &agent->trouble, "transient-infra");
}

static bool lacks_push(const struct agent *agent)
{
	AUTO(auto_free) char *cache = fetch_cache(&agent->task);

	return cache && !agent->pushed;
}

static bool lacks_keeping(const struct agent *agent)
{
	return keeper_has_checkpoints(&agent->task) && !agent->kept && !agent->lost;
}

/* A command that went well, but the next one would not find what it saved. */
static void not_kept(struct agent *agent)
{
	const char *trouble = js_str(json_object_get(agent->report.body, "checkpoint"), "trouble");
	AUTO(auto_free) char *class = TAKE(agent->lost_class);

	if (!agent->lost) {
		err_set(&agent->lost, EXIT_UNREACHABLE,
			"looking after the checkpoints in '%s' did not come to its end%s%s",
			agent->task.checkpoint, trouble ? ": " : "", trouble ? trouble : "");
		class = mem_copy("transient-infra");
	}
	agent_fail(agent, &agent->lost, class);
}

static void finish_command(struct agent *agent)
{
	if (agent->drain.at_ms && !agent->stopped)
		agent->stopped = STOPPED_DRAIN;
	if (WIFSIGNALED(agent->status))
		js_put(agent->report.body, "signal", json_integer(WTERMSIG(agent->status)));
	if (agent->leftovers > 0)
		js_put(agent->report.body, "leftovers", json_integer((json_int_t)agent->leftovers));
	if (agent->stopped && strcmp(agent->stopped, STOPPED_SUPERSEDED) == 0) {
		agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		return;
	}
	if (agent->trouble) {
		agent_fail(agent, &agent->trouble, NULL);
		return;
	}
	if (agent->task.scratch && !agent->stopped && agent->status == 0 && lacks_push(agent)) {
		not_pushed(agent);
		return;
	}
	if (at_leisure(agent) && agent->status == 0 && (agent->lost || lacks_keeping(agent))) {
		not_kept(agent);
		return;
	}
	agent_finish(agent, REPORT_ENDED, exit_of(agent->status));
}

static void on_keeper_stuck(void *arg)
{
	struct agent *agent = arg;

	agent->keeper_timer = NULL;
	agent->keeper_stuck = true;
	keeper_kill(&agent->keeper);
}

/* Only its last pass is timed; until then it may wait on a slow disk as long as the
 * command does. After a signal no news gives it more time: the grace bounds it all. */
void supervise_keeper_lives(struct agent *agent)
{
	int64_t wait = KEEPER_SILENT_MS, least = mono_now().ms + KEEPER_LEAST_MS;

	if (!agent->keeper.last_pass || agent->keeper.helper.pid == 0)
		return;
	if (agent->told_at.ms) {
		if (agent->keeper_end.ms == 0) {
			agent->keeper_end.ms = agent->told_at.ms + task_keep_ms(&agent->task);
			if (agent->keeper_end.ms < least)
				agent->keeper_end.ms = least;
		}
		wait = agent->keeper_end.ms - mono_now().ms;
		wait = wait > 0 ? wait : 0;
	}
	loop_remove(agent->loop, agent->keeper_timer);
	agent->keeper_timer = loop_after(agent->loop, wait, on_keeper_stuck, agent);
}

static void keep(struct agent *agent)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (!keeper_needed(&agent->task) || agent->keeper.helper.pid > 0 ||
	    agent->keeper_starts >= KEEPER_STARTS)
		return;
	agent->keeper_starts++;
	keeper_release(&agent->keeper);
	(void)!keeper_start(&agent->keeper, &agent->task, &agent->claim, agent->loop, drain_news,
			    agent, &ignored);
}

/* A shell dies of the SIGTERM that what it has started hears and leaves upon. */
static bool was_killed(const struct agent *agent)
{
	return WIFSIGNALED(agent->status) &&
	       !(WTERMSIG(agent->status) == SIGTERM && agent->heirs_left);
}

/* It failed, or was killed, in the middle of what it did. Who leaves when told to has had its
 * chance to save, whatever the exit: launchers have one of their own for that. And what outlives
 * a command that ended well is no part of its work. */
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
		/* Nothing that descends from the command lives: all it wrote is there. */
		read_pipe(agent, DRAIN_READS);
		close_pipe(agent);
	}
	loop_remove(agent->loop, agent->kill_timer);
	agent->kill_timer = NULL;
	/* One that died, or did not get through to the service, is sent once more. */
	if (((lacks_push(agent) && !agent->stopped) ||
	     (lacks_keeping(agent) && at_leisure(agent))) &&
	    !agent->keeper_stuck)
		keep(agent);
	if (agent->keeper.helper.pid > 0) {
		bool first = !agent->keeper.last_pass;

		keeper_finish(&agent->keeper, was_cut_off(agent));
		if (first)
			supervise_keeper_lives(agent);
		return;
	}
	finish_command(agent);
}

void supervise_tell_ended(struct agent *agent)
{
	if (agent->ended_due && ended_by_itself(agent))
		agent->ended_due =
			!note_leave(&agent->task, agent->store, ENDED_FILE, json_object());
}

static void command_over(struct agent *agent, int status)
{
	agent->over = true;
	agent->status = status;
	js_put(agent->report.body, "ended", json_integer(utc_now().ms));
	/* Others may have heard of it before us, and left. A workspace that is far keeps us
	 * waiting for its answer, which is worth it only where there are others. */
	if (!agent->task.far || agent->task.nodes > 1)
		drain_look(agent);
	if (ended_by_itself(agent)) {
		agent_tell_peers(agent, exit_of(status));
		agent->ended_due = status == 0 && agent->task.node == 0 && agent->task.nodes > 1;
	}
	supervise_tell_ended(agent);
	if (!agent->stopped) {
		kill_after(agent, LINGER_MS, on_linger);
		return;
	}
	/* Its group was told already; what left the group is told now, and has what
	 * remains of the grace. */
	signal_children(agent, SIGTERM);
}

/* Collect all that have ended; true if there were any. */
static bool reap(struct agent *agent, bool *ret_any_left)
{
	bool any = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		any = true;
		if (pid == agent->keeper.helper.pid)
			keeper_gone(&agent->keeper);
		else if (pid == agent->courier.helper.pid)
			courier_gone(&agent->courier);
		else if (pid == agent->command && !agent->over)
			command_over(agent, status);
		else
			agent->heirs_left |= agent->over && WIFEXITED(status);
	}
	*ret_any_left = pid == 0;
	return any;
}

/* Are our helpers, or nothing at all, our only children? A look at /proc must tell; what
 * forks and dies during the look could hide from it, but not die without being
 * collected: then we look again. */
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

/* Is there such a note to all nodes of this start? */
static bool is_noted(const struct agent *agent, const char *name)
{
	const struct task *task = &agent->task;

	return task->nodes > 1 && note_stands(task, agent->store, name, task->restart);
}

/* Who looks at a workspace that is far, and renews claims there, does so again. */
static void keep_courier(struct agent *agent)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (agent->courier.helper.pid > 0 || agent->courier_starts >= COURIER_STARTS ||
	    !courier_needed(&agent->task))
		return;
	agent->courier_starts++;
	(void)!agent_start_courier(agent, &ignored);
	courier_claimed(&agent->courier);
}

static void on_heartbeat(void *arg)
{
	struct agent *agent = arg;

	if (agent->task.far)
		; /* the courier looks */
	else if (!claim_holds(&agent->claim, &agent->task, agent->store))
		supervise_stop(agent, STOPPED_SUPERSEDED);
	else if (!drain_look(agent) && is_noted(agent, FAILED_FILE))
		supervise_stop(agent, STOPPED_PEER);
	else if (agent->task.node > 0 && !agent->watchdog.alone && is_noted(agent, ENDED_FILE))
		watchdog_alone(agent);
	supervise_tell_ended(agent);
	if (!agent->over)
		keep(agent);
	keep_courier(agent);
	if (!courier_needed(&agent->task))
		renewal_look(&agent->renewal, &agent->task);
	if (!agent->state)
		loop_after(agent->loop, agent->task.heartbeat_ms, on_heartbeat, agent);
}

void supervise_hear(void *arg, enum courier_news news)
{
	struct agent *agent = arg;

	switch (news) {
	case COURIER_SUPERSEDED:
		supervise_stop(agent, STOPPED_SUPERSEDED);
		break;
	case COURIER_DRAIN:
		drain_begin(agent);
		break;
	case COURIER_DRAINED:
		if (agent->task.node > 0 && agent->drain.at_ms)
			supervise_stop(agent, STOPPED_DRAIN);
		break;
	case COURIER_PEER_FAILED:
		if (!agent->drain.at_ms)
			supervise_stop(agent, STOPPED_PEER);
		break;
	case COURIER_HEAD_ENDED:
		watchdog_alone(agent);
		break;
	}
}

/* A pipe whose other end the command will hold as stdout and stderr. */
static int open_pipe(struct agent *agent, int *ret_write_fd, struct err **err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	/* Only our end: the command must not meet EAGAIN on its stdout. */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	agent->pipe_fd = fds[0];
	*ret_write_fd = fds[1];
	agent->pipe_watch = loop_on_readable(agent->loop, fds[0], on_output, agent);
	return 0;
}

/* The command could not be executed: its end, told as a shell would. */
static void no_command(struct agent *agent, int exit_status, struct err **why)
{
	report_error(&agent->report, *why, "user-config");
	err_freep(why);
	js_put(agent->report.body, "ended", json_integer(utc_now().ms));
	agent_finish(agent, REPORT_ENDED, exit_status);
}

static int spawn(struct agent *agent, const char *program, char **argv, struct err **err)
{
	AUTO(auto_close) int write_fd = -1;
	struct proc_start start = {
		.program = program,
		.argv = argv,
		.envp = agent->env.list,
		.cwd = agent->task.src,
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
	agent->start_at = mono_now();
	js_put(agent->report.body, "started", json_integer(utc_now().ms));
	if (proc_identify(agent->command, &id) == 0)
		report_process(&agent->report, "command", &id);
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

	agent->oom_before = oom_kills();
	if (secrets_fetch(&agent->task, &why) < 0) {
		agent_fail(agent, &why,
			   why->code == EXIT_UNREACHABLE ? "transient-infra" : "quota-permission");
		return;
	}
	if (watchdog_init(agent, &why) < 0 ||
	    envlist_build(&agent->task, &agent->claim, &agent->env, &why) < 0 ||
	    envlist_command(&agent->task, &agent->env, &argv, &why) < 0) {
		agent_fail(agent, &why, "user-config");
		return;
	}
	if (prepare_program(&agent->task, argv[0], envlist_get(&agent->env, "PATH"), &program, &no,
			    &why) < 0) {
		no_command(agent, no, &why);
		return;
	}
	if (compiler_look(&agent->task, &agent->env, agent->report.body, &why) < 0) {
		agent_fail(agent, &why, "compile");
		return;
	}
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
	keep(agent);
	loop_after(agent->loop, agent->task.heartbeat_ms, on_heartbeat, agent);
	/* Nobody could see how it goes: as with a log that cannot be kept. */
	if (agent_report(agent, REPORT_RUNNING, &agent->trouble) < 0)
		supervise_stop(agent, STOPPED_LOG);
	on_child(agent); /* it may have ended before we asked for the signal */
}
