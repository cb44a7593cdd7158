/* Services of the agent for all of its files: see agent.h. */
#include "jobs/node/agent.h"

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/node/node_flag.h"

void agent_finish(struct agent *agent, const char *state, int exit_status)
{
	agent->state = state;
	agent->exit = exit_status;
	loop_quit(agent->loop);
}

void agent_fail(struct agent *agent, struct err **why, const char *class)
{
	report_error(&agent->report, *why, class);
	err_freep(why);
	agent_finish(agent, REPORT_FAILED, AGENT_EXIT_FAILED);
}

int agent_report(struct agent *agent, const char *state, struct err **err)
{
	if (report_write(&agent->report, state, err) < 0)
		return -1;
	uploader_report(&agent->uploader);
	return 0;
}

void agent_tell_peers(struct agent *agent, int exit_status)
{
	json_t *body;

	if (agent->config.nodes == 1 || exit_status == 0)
		return;
	body = json_object();
	js_put(body, "node", json_integer(agent->config.node));
	js_put(body, "exit", json_integer(exit_status));
	js_put(body, "at", json_integer(clock_utc_now().ms));
	node_flag_set(&agent->config, agent->store, FAILED_FILE, body);
}
<<<<<<< HEAD
=======

/* Adds to the report what the machine says about a failed command: OOM kills, full disks. */
static void add_evidence(struct agent *agent)
{
	const char *places[] = { agent->config.checkpoint,
				 js_str(json_object_get(agent->config.order, "checkpoint"), "root"),
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
 * it, so a dead uploader is started once more. After a signal the grace bounds the wait. */
static void bring_rest(struct agent *agent)
{
	AUTO(err_freep) struct err *why = NULL;
	struct mono now = clock_mono_now(), told = agent->told_at;
	struct mono end = { now.ms + LAST_MS };
	enum uploader_end went;

	if (told.ms) {
		end.ms = told.ms + agent_config_bring_ms(&agent->config);
		end.ms = end.ms < now.ms + LAST_LEAST_MS ? now.ms + LAST_LEAST_MS : end.ms;
	}
	went = uploader_finish(&agent->uploader, &end, agent_config_bring_ms(&agent->config));
	if (went == UPLOADER_DEAD && agent_start_uploader(agent, &why) == 0)
		went = uploader_finish(&agent->uploader, &end,
				       agent_config_bring_ms(&agent->config));
	if (went != UPLOADER_BROUGHT)
		fprintf(stderr,
			"stoker-node: cannot upload the end of the log, or the report, to the "
			"workspace; both are in '%s'\n",
			agent->config.dir);
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
	outlet_settle(outlet, agent->told_at.ms ? SETTLE_TOLD_MS : SETTLE_MS);
	if (outlet->dropped > 0)
		MESSAGE_SET(said, output_dropped_bytes, (int64_t)outlet->dropped);
	/* If the report cannot be written, the exit status is all that is left; it stays
	 * unchanged. */
	if (agent_report(agent, agent->state, &why) < 0)
		fprintf(stderr, "stoker-node: %s\n", why->message);
	if (outlet->dropped == 0)
		outlet_settle(outlet, agent->told_at.ms ? SETTLE_TOLD_MS : SETTLE_MS);
	if (agent->config.far)
		bring_rest(agent);
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

static int set_up(struct agent *agent, struct err **err)
{
	const struct agent_config *config = &agent->config;

	/* Our parent may have left SIGCHLD ignored, and then waitpid() would find no child; a
	 * reader of our log that is gone must not kill us. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit is to fail, not kill */
	limit_core_dumps(js_bool(config->order, "core_dumps", false));
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot become a subreaper");
	if (loop_new(&agent->loop, err) < 0)
		return -1;
	loop_on_signal(agent->loop, SIGTERM, on_stop, agent);
	loop_on_signal(agent->loop, SIGINT, on_stop, agent);
	loop_on_signal(agent->loop, SIGHUP, on_stop, agent);
	store_interrupt(is_called, agent);
	if (store_open(config->workspace, &agent->store, err) < 0)
		return -1;
	if (open_log(agent, err) < 0)
		return -1;
	(void)outlet_unblock(STDOUT_FILENO);
	(void)outlet_unblock(STDERR_FILENO);
	output_relay_init(&agent->relay, STDOUT_FILENO, agent->log_fd, agent->loop);
	report_init(&agent->report, config, agent->store, &agent->relay);
	MESSAGE_SET_TEXT(&agent->report.said, src, config->src);
	MESSAGE_SET_TEXT(&agent->report.said, checkpoint_dir, config->checkpoint);
	MESSAGE_SET_TEXT(&agent->report.said, output_dir, config->output);
	claim_init(&agent->claim, config);
	agent->begun = clock_utc_now();
	agent->claim_deadline_ms = clock_mono_now().ms + config->claim_wait_ms;
	agent->claim_pause_ms = CLAIM_POLL_MS;
	if (uploader_needed(config) && agent_start_uploader(agent, err) < 0)
		return -1;
	return agent_report(agent, REPORT_STARTING, err);
}

static void release(struct agent *agent)
{
	auto_close(&agent->pipe_fd);
	health_stop(agent);
	prefetch_release(&agent->prefetch);
	checkpointer_kill(&agent->checkpointer);
	checkpointer_release(&agent->checkpointer);
	outputs_release(&agent->outputs);
	workers_release(&agent->workers);
	helper_kill(&agent->uploader.helper);
	uploader_release(&agent->uploader);
	claim_renewal_release(&agent->renewal);
	watchdog_release(&agent->watchdog);
	err_freep(&agent->trouble);
	err_freep(&agent->lost);
	free(agent->lost_class);
	command_env_release(&agent->env);
	claim_release(&agent->claim);
	report_release(&agent->report);
	output_relay_release(&agent->relay);
	loop_freep(&agent->loop);
	store_freep(&agent->store);
	agent_config_release(&agent->config);
	auto_close(&agent->lock_fd);
	auto_close(&agent->log_fd);
}

/* Prints the error to stderr: no report exists yet. */
static int complain(const struct err *why)
{
	AUTO(auto_free) char *text = err_format(why);

	fprintf(stderr, "stoker-node: %s\n", text);
	return AGENT_EXIT_FAILED;
}

int agent_main(const char *program, const char *order, const char *rank)
{
	AUTO(release)
	struct agent agent = { .lock_fd = -1,
			       .log_fd = -1,
			       .pipe_fd = -1,
			       .relay.out = SB_INIT,
			       .uploader.helper = { .news_fd = -1, .orders_fd = -1 } };
	AUTO(err_freep) struct err *why = NULL;
	int locked;

	if (agent_config_load(order, rank, &agent.config, &why) < 0)
		return complain(why);
	locked = take_lock(&agent, &why);
	if (locked < 0)
		return complain(why);
	if (locked > 0) /* the report belongs to the other agent */
		return AGENT_EXIT_NOT_MINE;
	if (set_up(&agent, &why) < 0)
		return complain(why);
	report_build(&agent.report, program);
	loop_after(agent.loop, 0, step_claim, &agent);
	if (loop_run(agent.loop, &why) < 0)
		agent_fail(&agent, &why, NULL);
	health_stop(&agent);
	conclude(&agent);
	return agent.exit;
}
>>>>>>> e46e807 (messages and hints of jobs/node: subject first, uploads and retries by name)
