/* The steps of stoker-node from the order to the last report: see agent_main.h. */
#include "jobs/node/agent_main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/node/agent.h"
#include "jobs/node/agent_release.h"
#include "jobs/node/checkpoints/fetch.h"
#include "jobs/node/checkpoints/last_pass.h"
#include "jobs/node/checkpoints/resume.h"
#include "jobs/node/command/command_start.h"
#include "jobs/node/command/command_stop.h"
#include "jobs/node/host_evidence.h"
#include "jobs/node/main_node_exit.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/setup/network.h"
#include "jobs/node/setup/prepare.h"
#include "jobs/node/uploader_news.h"

/* Interval between two looks at the claim. In a far workspace each look costs a request, so the
 * interval grows up to the second value. */
#define CLAIM_POLL_MS        200
#define CLAIM_POLL_REMOTE_MS 5000

/* Longest wait for the uploader at the end; a service that is away that long may be away for good.
 * After a signal at least the second value, even if the grace is over. */
#define LAST_MS       ((int64_t)10 * 60 * 1000)
#define LAST_LEAST_MS 2000

/* Longest wait at the end for a slow reader of our output; the second value after a signal. */
#define FLUSH_MS           2000
#define FLUSH_SIGNALLED_MS 200

/* Pauses of twice the length each time: more than 6 s in all. */
#define BEGIN_AGAIN    6
#define BEGIN_AGAIN_MS 100

/* Does what the agent cannot begin without, again where it failed for a cause that may pass: its
 * end would cost an attempt. */
static int patiently(int (*fn)(struct agent *agent, struct err **err), struct agent *agent,
		     struct err **err)
{
	int result;

	for (int i = 0; (result = fn(agent, err)) < 0; i++) {
		if (i == BEGIN_AGAIN || !err_passes(*err) || loop_stop_pending() ||
		    !cancel_pause(BEGIN_AGAIN_MS << i))
			return -1;
		err_freep(err);
	}
	return result;
}

/* Allows one agent per folder: two would unpack over each other. The lock also tells observers that
 * cannot see our pid whether the agent lives. Returns 1 if another agent holds it. */
static int take_lock(struct agent *agent, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(agent->config.dir, LOCK_FILE);

	if (fs_mkdirs(agent->config.dir, err) < 0)
		return -1;
	auto_close(&agent->lock_fd);
	agent->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (agent->lock_fd < 0)
		return fs_error(err, errno, "cannot open '%s'", path);
	return flock(agent->lock_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static void on_stop(void *arg)
{
	struct agent *agent = arg;

	if (!agent->told_at.ms)
		agent->told_at = clock_mono_now();
	command_stop(agent, STOPPED_SIGNAL);
	last_pass_extend(agent);
	outputs_signalled(agent);
}

/* True if a step that waits for a far workspace must give up. The loop does not run meanwhile, so a
 * pending stop signal is looked for here; once it is handled, the grace bounds these waits too. */
static bool is_called(void *arg)
{
	const struct agent *agent = arg;

	if (agent->told_at.ms)
		return clock_mono_now().ms >=
		       agent->told_at.ms + agent_config_kill_ms(&agent->config);
	return loop_stop_pending();
}

/* A step that was interrupted by a signal has not failed: the loop handles the signal before it
 * repeats the step. */
static void step_failed(struct agent *agent, watch_fn step, struct err **why, const char *class)
{
	if ((*why)->code == EXIT_UNREACHABLE && is_called(agent))
		loop_after(agent->loop, 0, step, agent);
	else
		agent_fail(agent, why, class);
}

/* Each step is a turn of the loop, so that a signal that came during the previous step
 * is handled first. */
static void step_start(void *arg)
{
	struct agent *agent = arg;

	/* Unpacking takes time; the claim may have passed to another attempt. */
	if (agent->state)
		return;
	agent->step = step_start;
	if (claim_holds(&agent->claim, &agent->config, agent->store))
		command_start(agent);
	else
		command_stop(agent, STOPPED_SUPERSEDED);
}

/* Runs when everything that the command needs is here. */
static void step_link(void *arg)
{
	struct agent *agent = arg;
	AUTO(err_freep) struct err *why = NULL;

	if (agent->state)
		return;
	agent->step = step_link;
	if (resume_adopt(&agent->config, &why) == 0)
		report_resumed(&agent->report);
	if (why || prepare_checkpoint(&agent->config, &why) < 0)
		agent_fail(agent, &why, NULL);
	else
		health_start(agent, step_start);
}

static void step_prepare(void *arg);

static void on_fetched(void *arg, struct err *why)
{
	struct agent *agent = arg;

	if (why && agent->prefetch.died && workers_again(agent, WORKER_PREFETCH)) {
		err_freep(&why);
		loop_after(agent->loop, 0, step_prepare, agent);
		return;
	}
	/* A full disk would be full on the next machine too, and a model as damaged. */
	if (why)
		agent_fail(agent, &why,
			   why->damage               ? "quota-permission"
			   : why->os_errno == ENOSPC ? NULL
						     : "transient-infra");
	else
		loop_after(agent->loop, 0, step_link, agent);
}

static void step_prepare(void *arg)
{
	struct agent *agent = arg;
	AUTO(err_freep) struct err *why = NULL;

	if (agent->state)
		return;
	agent->step = step_prepare;
	/* An outside observer does not know which start this is, so the flags of earlier
	 * starts are removed. */
	if (agent->config.node == 0 && agent->config.restart > 0 &&
	    (node_flag_clear(&agent->config, agent->store, FAILED_FILE, &why) < 0 ||
	     node_flag_clear(&agent->config, agent->store, DRAINED_FILE, &why) < 0)) {
		step_failed(agent, step_prepare, &why, NULL);
		return;
	}
	if (prepare_folders(&agent->config, agent->store, &why) < 0 ||
	    (fetch_needed(&agent->config) &&
	     prefetch_start(&agent->prefetch, &agent->config, fetch_all, agent->loop, on_fetched,
			    agent, &why) < 0)) {
		step_failed(agent, step_prepare, &why, NULL);
		return;
	}
	if (!agent->prefetch.helper.pid)
		loop_after(agent->loop, 0, step_link, agent);
}

static void step_claim(void *arg);

/* Looks at the claim again after a pause. Returns false if the deadline for the claim has
 * passed. */
static bool claim_later(struct agent *agent)
{
	int64_t pause = agent->claim_pause_ms;

	if (clock_mono_now().ms >= agent->claim_deadline_ms)
		return false;
	loop_after(agent->loop, pause, step_claim, agent);
	if (agent->config.object_workspace)
		agent->claim_pause_ms =
			2 * pause < CLAIM_POLL_REMOTE_MS ? 2 * pause : CLAIM_POLL_REMOTE_MS;
	return true;
}

static void step_claim(void *arg)
{
	struct agent *agent = arg;
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *master = NULL;
	enum claim_state state;

	if (agent->state)
		return;
	agent->step = step_claim;
	if (claim_take(&agent->claim, &agent->config, agent->store, &state, &why) < 0) {
		bool away = why->code == EXIT_UNREACHABLE;

		/* A service that is away usually comes back. */
		if (!away || !claim_later(agent))
			step_failed(agent, step_claim, &why, away ? "transient-infra" : NULL);
		return;
	}
	switch (state) {
	case CLAIM_OTHERS:
		agent_finish(agent, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE);
		return;
	case CLAIM_NOT_YET:
		if (main_node_exit_missed(agent))
			agent->claim_pause_ms = CLAIM_POLL_MS;
		if (agent->state || claim_later(agent))
			return;
		err_set(&why, EXIT_REFUSED, "node 0 has not claimed the phase within %lld s",
			(long long)(agent->config.claim_wait_ms / 1000));
		agent_fail(agent, &why, "transient-infra");
		return;
	case CLAIM_OURS:
		break;
	}
	master = network_join(agent->claim.master_addr, agent->claim.master_port);
	agent->config.restart = agent->claim.restart;
	uploader_claimed(&agent->uploader, agent->config.restart);
	/* Readers of the log know by it where the lines of this start begin. */
	if (agent->config.restart > 0)
		MESSAGE_SET(&agent->report.said, restart, agent->config.restart);
	MESSAGE_SET(&agent->report.said, claimed, agent->claim.taken_ms);
	MESSAGE_SET_TEXT(&agent->report.said, master, master);
	/* Reported before the unpacking, which takes time: from here on the machines are held. */
	if (agent_report(agent, REPORT_STARTING, &why) < 0) {
		agent_fail(agent, &why, NULL);
		return;
	}
	loop_after(agent->loop, 0, step_prepare, agent);
}

/* Adds to the report what the machine says about a failed command: OOM kills, full disks. */
static void add_evidence(struct agent *agent)
{
	const char *places[] = { agent->config.checkpoint, agent->config.order->checkpoint.root,
				 agent->config.output, agent->config.dir };
	int64_t before = agent->oom_before, after;

	if (agent->exit == 0 || !agent->command)
		return;
	after = host_evidence_oom_kills();
	if (before >= 0 && after >= 0 ? after > before
				      : host_evidence_oom_in_kernel_log(agent->start_at.ms))
		MESSAGE_SET(&agent->report.said, oom, true);
	for (size_t i = 0; i < STK_LENGTH(places); i++) {
		AUTO(auto_free)
		char *mount = places[i] && places[i][0] == '/' ? host_evidence_full_mount(places[i])
							       : NULL;

		if (mount) {
			MESSAGE_SET_TEXT(&agent->report.said, mount, mount);
			break;
		}
	}
}

/* Waits until the uploader has uploaded the rest. Nobody elsewhere would learn the result without
 * it, so a dead uploader is started once more. After a signal the grace bounds the wait; there is
 * no bound for a directory, which takes what it is given, or hangs. */
static void bring_rest(struct agent *agent)
{
	bool far = agent->config.object_workspace;
	int64_t grace = far ? agent_config_bring_ms(&agent->config) : -1;
	AUTO(err_freep) struct err *why = NULL;
	struct mono now = clock_mono_now(), told = agent->told_at;
	struct mono end = { far ? now.ms + LAST_MS : INT64_MAX };
	enum uploader_end went;

	if (told.ms && far) {
		end.ms = told.ms + grace;
		end.ms = end.ms < now.ms + LAST_LEAST_MS ? now.ms + LAST_LEAST_MS : end.ms;
	}
	went = uploader_finish(&agent->uploader, &end, grace);
	if (went == UPLOADER_DEAD && workers_start_uploader(agent, &why) == 0)
		went = uploader_finish(&agent->uploader, &end, grace);
	if (went == UPLOADER_BROUGHT)
		return;
	if (far)
		fprintf(stderr,
			"stoker-node: cannot upload the end of the log, or the report, to the "
			"workspace; both are in '%s'\n",
			agent->config.dir);
	else
		uploader_replace(&agent->uploader, &agent->config, &agent->claim, agent->store);
}

/* Makes the log durable. The verdict on phase 1 rests on the graphs that it names: after a power
 * cut a report beside an empty log would say that nothing was compiled. A log that cannot be synced
 * is as a power cut leaves it; the report counts more. */
static void sync_log(struct agent *agent)
{
	if (agent->config.object_workspace)
		(void)!fsync(agent->log_fd >= 0 ? agent->log_fd : STDOUT_FILENO);
	else
		uploader_sync(&agent->uploader);
}

static void conclude(struct agent *agent)
{
	AUTO(err_freep) struct err *why = NULL;
	struct node_report *said = &agent->report.said;
	struct outlet *outlet = &agent->relay.outlet;

	add_evidence(agent);
	prepare_discard(&agent->config);
	if (fetch_needed(&agent->config))
		fetch_discard(&agent->config);
	/* The agent's own failure; the command's failure was reported when it ended. */
	if (strcmp(agent->state, REPORT_NOT_MINE) != 0 && !agent->drain.at_ms &&
	    (!agent->stopped || strcmp(agent->stopped, STOPPED_LOG) == 0))
		agent_tell_peers(agent, agent->exit);
	watchdog_report(agent);
	drain_report(agent);
	if (!said->has_ended)
		MESSAGE_SET(said, ended, clock_utc_now().ms);
	MESSAGE_SET(said, exit, agent->exit);
	MESSAGE_SET_TEXT(said, stopped, agent->stopped);
	if (agent->relay.failed)
		MESSAGE_SET(said, log_lost, true);
	outlet_flush(outlet, agent->told_at.ms ? FLUSH_SIGNALLED_MS : FLUSH_MS);
	if (outlet->dropped > 0)
		MESSAGE_SET(said, output_dropped_bytes, (int64_t)outlet->dropped);
	sync_log(agent);
	/* If the report cannot be written, the exit status is all that is left; it stays
	 * unchanged. */
	if (agent_report(agent, agent->state, &why) < 0)
		fprintf(stderr, "stoker-node: %s\n", why->message);
	if (outlet->dropped == 0)
		outlet_flush(outlet, agent->told_at.ms ? FLUSH_SIGNALLED_MS : FLUSH_MS);
	bring_rest(agent);
	if (agent->trouble)
		fprintf(stderr, "stoker-node: %s\n", agent->trouble->message);
	main_node_exit_wait(agent);
}

/* Opens a log file of our own if stdout is not the log itself. Stdout is then a log driver or a
 * pipe, which drops lines and is read late or never; the workspace gets this file instead. */
static int open_log(struct agent *agent, struct err **err)
{
	const struct agent_config *config = &agent->config;
	AUTO(auto_free) char *path = fs_join(config->dir, LOG_FILE);
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat log, out;

	if (fd < 0 || fstat(fd, &log) < 0)
		return fs_error(err, errno, "cannot open the log '%s'", path);
	if (fstat(STDOUT_FILENO, &out) == 0 && log.st_dev == out.st_dev && log.st_ino == out.st_ino)
		return 0;
	agent->log_fd = TAKE_FD(fd);
	return 0;
}

/* The command's output goes to stdout and to the log. In a directory the uploader writes the log,
 * as the directory may hang; elsewhere the log lies on this machine. */
static void relay_output(struct agent *agent)
{
	bool copies = agent->log_fd >= 0;

	if (agent->config.object_workspace) {
		output_relay_init(&agent->relay, STDOUT_FILENO, agent->log_fd, NULL, agent->loop);
		output_relay_note(&agent->relay, &agent->uploader.orders);
		return;
	}
	output_relay_init(&agent->relay, copies ? STDOUT_FILENO : -1, -1, &agent->uploader.orders,
			  agent->loop);
	auto_close(&agent->log_fd);
	agent->log_fd = -1;
}

/* Limits core dumps for the command, which inherits the limit. A machine with hundreds of GiB of
 * memory would write them to its disk for minutes. */
static void limit_core_dumps(bool wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return;
	limit.rlim_cur = wanted ? limit.rlim_max : 0;
	(void)setrlimit(RLIMIT_CORE, &limit);
}

static int make_loop(struct agent *agent, struct err **err)
{
	return loop_new(&agent->loop, err);
}

static int open_workspace(struct agent *agent, struct err **err)
{
	return store_open(agent->config.workspace, &agent->store, err);
}

static int report_first(struct agent *agent, struct err **err)
{
	return agent_report(agent, REPORT_STARTING, err);
}

static int set_up(struct agent *agent, struct err **err)
{
	const struct agent_config *config = &agent->config;

	/* Our parent may have left SIGCHLD ignored, and then waitpid() would find no child; a
	 * reader of our log that is gone must not kill us. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit is to fail, not kill */
	limit_core_dumps(config->order->core_dumps);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot become a subreaper");
	if (patiently(make_loop, agent, err) < 0)
		return -1;
	loop_on_signal(agent->loop, SIGTERM, on_stop, agent);
	loop_on_signal(agent->loop, SIGINT, on_stop, agent);
	loop_on_signal(agent->loop, SIGHUP, on_stop, agent);
	cancel_when(is_called, agent);
	if (patiently(open_workspace, agent, err) < 0 || patiently(open_log, agent, err) < 0)
		return -1;
	(void)outlet_unblock(STDOUT_FILENO);
	(void)outlet_unblock(STDERR_FILENO);
	uploader_init(&agent->uploader, agent->loop, uploader_news_heed, agent);
	relay_output(agent);
	report_init(&agent->report, config, &agent->relay);
	MESSAGE_SET_TEXT(&agent->report.said, src, config->src);
	MESSAGE_SET_TEXT(&agent->report.said, checkpoint_dir, config->checkpoint);
	MESSAGE_SET_TEXT(&agent->report.said, output_dir, config->output);
	claim_init(&agent->claim, config);
	agent->begun = clock_utc_now();
	agent->claim_deadline_ms = clock_mono_now().ms + config->claim_wait_ms;
	agent->claim_pause_ms = CLAIM_POLL_MS;
	if (patiently(workers_start_uploader, agent, err) < 0)
		return -1;
	return patiently(report_first, agent, err);
}

/* Prints the error to stderr: no report exists yet. */
static int complain(const struct err *why)
{
	AUTO(auto_free) char *text = err_format(why);

	fprintf(stderr, "stoker-node: %s\n", text);
	return AGENT_EXIT_FAILED;
}

static int load_config(struct agent *agent, struct err **err)
{
	return agent_config_load(agent->order, agent->rank, &agent->config, err);
}

int agent_main(const char *program, const char *order, const char *rank)
{
	AUTO(agent_release)
	struct agent agent = { .order = order,
			       .rank = rank,
			       .lock_fd = -1,
			       .log_fd = -1,
			       .pipe_fd = -1,
			       .relay.out = SB_INIT,
			       .uploader.helper = { .news_fd = -1, .orders_fd = -1 } };
	AUTO(err_freep) struct err *why = NULL;
	int locked;

	if (patiently(load_config, &agent, &why) < 0)
		return complain(why);
	locked = patiently(take_lock, &agent, &why);
	if (locked < 0)
		return complain(why);
	if (locked > 0) /* the report belongs to the other agent */
		return AGENT_EXIT_NOT_MINE;
	if (set_up(&agent, &why) < 0)
		return complain(why);
	report_build(&agent.report, program);
	loop_after(agent.loop, 0, step_claim, &agent);
	if (loop_run(agent.loop, &why) < 0) {
		agent.step = NULL; /* no loop would begin it again */
		agent_fail(&agent, &why, NULL);
	}
	health_stop(&agent);
	conclude(&agent);
	return agent.exit;
}
