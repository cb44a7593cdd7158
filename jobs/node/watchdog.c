/* Signs of life of an attempt, and what follows when there are none: see watchdog.h. */
#include "jobs/node/watchdog.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/regex.h"
#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"

#define BEAT_MS  1000
#define STUCK_MS 5000  /* a directory that took no order for so long hangs */
#define SUM_MS   20000 /* longest wait for a sum of the cache */

struct watchdog_peer {
	bool stepped;
	int64_t step, bytes, compiles;
};

int watchdog_init(struct agent *agent, struct err **err)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct order *order = agent->config.order;
	enum stall_mode how = STALL_OFF;
	int64_t limit = order->stall.limit_ms;
	const char *mode = order->stall.mode ? order->stall.mode : "off";

	if (strcmp(mode, "auto") == 0)
		how = STALL_AUTO;
	if (strcmp(mode, "fixed") == 0)
		how = STALL_FIXED;
	if (how == STALL_FIXED && limit < 1)
		return err_set(err, EXIT_DEFECT, "the order's 'stall.limit_ms' is not positive");
	if (output_scan_init(&watchdog->listen, order->metrics, order->compile.kind, err) < 0)
		return -1;
	/* A trial run computes few steps and then compiles on, or the other way round:
	 * output counts all along, and is waited for as before a first step. */
	if (agent->config.scratch)
		regex_freep(&watchdog->listen.step);
	/* Progress of other nodes comes late by so much. */
	if (agent->config.nodes > 1)
		limit += 2 * agent_config_exchange_ms(&agent->config);
	watchdog->listen.stall = &watchdog->stall;
	watchdog->listen.meter = watchdog->meter = step_rate_meter_new();
	watchdog->paced = -1;
	watchdog->peers = mem_zero((size_t)agent->config.nodes, sizeof *watchdog->peers);
	stall_init(&watchdog->stall, how, limit, watchdog->listen.step || agent->config.scratch,
		   clock_mono_now());
	return 0;
}

void watchdog_release(struct watchdog *watchdog)
{
	output_scan_release(&watchdog->listen);
	step_rate_meter_freep(&watchdog->meter);
	free(watchdog->peers);
	*watchdog = (struct watchdog){ 0 };
}

void watchdog_pass(struct agent *agent, const char *bytes, size_t len)
{
	output_scan_pass(&agent->watchdog.listen, clock_mono_now(), bytes, len);
}

void watchdog_report(struct agent *agent)
{
	const struct output_scan *listen = &agent->watchdog.listen;
	struct node_report *said = &agent->report.said;

	if (!listen->stepped)
		return;
	MESSAGE_SET(said, first_step, listen->first_step);
	MESSAGE_SET(said, last_step, listen->last_step);
	MESSAGE_SET_JSON(said, pace, step_rate_meter_json(agent->watchdog.meter));
}

/* True if the workspace is a directory that hangs. */
static bool is_stuck(const struct agent *agent)
{
	return !agent->config.object_workspace &&
	       orders_wait_ms(&agent->uploader.orders) > STUCK_MS;
}

/* Publishes when the steps came, for observers of the run. */
static void publish_step_rate(struct agent *agent)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct output_scan *listen = &watchdog->listen;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *json = NULL;

	/* The pace is old by the time a workspace that hangs takes it. */
	if (!listen->stepped || listen->last_step == watchdog->paced || is_stuck(agent))
		return;
	json = step_rate_meter_json(watchdog->meter);
	text = js_line(json);
	path = fs_join(agent->config.dir, PACE_FILE);
	if (!agent->config.object_workspace)
		uploader_pace(&agent->uploader, text);
	else if (fs_write_passing(path, text, strlen(text), 0600, &ignored) < 0)
		return;
	watchdog->paced = listen->last_step;
}

/* ---- several nodes ---- */

static void tell_progress(struct agent *agent, struct mono now)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct output_scan *listen = &watchdog->listen;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *body = NULL;

	if (agent->config.node == 0 || listen->bytes == watchdog->told || is_stuck(agent) ||
	    now.ms - watchdog->told_at.ms < agent_config_exchange_ms(&agent->config))
		return;
	watchdog->told_at = now;
	body = json_object();
	js_put(body, "v", json_integer(1));
	if (listen->stepped)
		js_put(body, "step", json_integer(listen->last_step));
	js_put(body, "bytes", json_integer((json_int_t)listen->bytes));
	js_put(body, "compile", json_integer((json_int_t)listen->compiles));
	text = js_line(body);
	uploader_progress(&agent->uploader, text);
	watchdog->told = listen->bytes;
}

void watchdog_hear(struct agent *agent, int node, const char *text)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct stall *stall = &agent->watchdog.stall;
	struct mono now = clock_mono_now();
	struct watchdog_peer *peer;
	json_auto_t *body = NULL;
	int64_t step, bytes, compiles;

	if (!agent->watchdog.peers || node < 1 || node >= agent->config.nodes || !text ||
	    js_parse(text, strlen(text), PROGRESS_FILE, &body, &ignored) < 0)
		return;
	peer = &agent->watchdog.peers[node];
	step = js_int(body, "step", -1);
	bytes = js_int(body, "bytes", 0);
	compiles = js_int(body, "compile", 0);
	if (bytes != peer->bytes)
		stall_output(stall, now, false);
	if (compiles != peer->compiles)
		stall_compile(stall, now, false);
	if (step >= 0 && (!peer->stepped || step > peer->step))
		stall_step(stall, now, step);
	*peer = (struct watchdog_peer){ step >= 0, step, bytes, compiles };
}

/* ---- the compile cache ---- */

/* Has the cache added up: at the first call for this silence as it is half way, at the second as it
 * is at the end. Returns false if there is none on this machine. */
static bool ask_sum(struct agent *agent)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct order_compile *compile = &agent->config.order->compile;
	AUTO(auto_free) char *folder = agent_config_cache(&agent->config);
	const char *cache = folder ? folder : compile->cache;

	if (!cache || cache[0] != '/')
		return false;
	uploader_sum(&agent->uploader, cache, 2 * watchdog->cache_for.ms + watchdog->asked);
	watchdog->asked++;
	watchdog->asked_at = clock_mono_now();
	return true;
}

void watchdog_sum(struct agent *agent, int64_t what, int64_t sum)
{
	struct watchdog *watchdog = &agent->watchdog;

	if (what / 2 != watchdog->cache_for.ms)
		return;
	watchdog->sums[what % 2] = sum;
	watchdog->heard[what % 2] = true;
}

/* Looks at the cache half way through a silence, to compare at its end; it decides only then. */
static void note_cache(struct agent *agent, struct mono now)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct stall *stall = &watchdog->stall;

	if (stall->mode == STALL_OFF || watchdog->cache_for.ms == stall->last.ms ||
	    now.ms - stall->last.ms < stall_limit(stall) / 2)
		return;
	watchdog->cache_for = stall->last;
	watchdog->asked = 0;
	watchdog->heard[0] = watchdog->heard[1] = false;
	(void)!ask_sum(agent);
}

/* Growth of the cache since then. */
enum growth { GROWTH_UNKNOWN, GROWTH_NONE, GROWTH_SEEN };

static enum growth look_for_growth(struct agent *agent, struct mono now)
{
	struct watchdog *watchdog = &agent->watchdog;

	if (watchdog->cache_for.ms != watchdog->stall.last.ms || watchdog->asked == 0)
		return GROWTH_NONE;
	if (watchdog->asked == 1)
		(void)!ask_sum(agent);
	if (!watchdog->heard[1] && now.ms - watchdog->asked_at.ms < SUM_MS)
		return GROWTH_UNKNOWN;
	return watchdog->heard[0] && watchdog->heard[1] && watchdog->sums[0] != 0 &&
			       watchdog->sums[0] != watchdog->sums[1]
		       ? GROWTH_SEEN
		       : GROWTH_NONE;
}

/* ---- judging ---- */

static void stop_stalled(struct agent *agent, const struct stall_silence *verdict)
{
	struct node_report_stall *stall = &agent->report.said.stall;

	MESSAGE_MARK(&agent->report.said, stall);
	MESSAGE_SET_TEXT(stall, doing, stall_doing_names[verdict->doing]);
	MESSAGE_SET(stall, silent_ms, verdict->silent_ms);
	MESSAGE_SET(stall, limit_ms, verdict->limit_ms);
	MESSAGE_SET(stall, since, clock_utc_now().ms - verdict->silent_ms);
	/* The other nodes hang as well: they need not wait until ours has gone. */
	agent_tell_peers(agent, 128 + SIGTERM);
	command_stop(agent, STOPPED_STALL);
}

/* Reports a silence that is half way to its limit, and takes it back when it ends. A failed write
 * is ignored: the attempt rests on the next report. */
static void tell_silence(struct agent *agent, struct mono now)
{
	struct watchdog *watchdog = &agent->watchdog;
	AUTO(err_freep) struct err *ignored = NULL;
	struct stall_silence verdict = { 0 };
	bool silent = !agent->drain.at_ms && stall_is_half(&watchdog->stall, now, &verdict);
	struct mono since = silent ? watchdog->stall.last : (struct mono){ 0 };
	int64_t begun = clock_utc_now().ms - verdict.silent_ms;
	struct node_report_silence *silence = &agent->report.said.silence;

	if (since.ms == watchdog->told_for.ms &&
	    (!silent || verdict.limit_ms == watchdog->told_limit))
		return;
	watchdog->told_for = since;
	watchdog->told_limit = verdict.limit_ms;
	message_remove(node_report_message, &agent->report.said, "silence");
	if (silent) {
		MESSAGE_MARK(&agent->report.said, silence);
		MESSAGE_SET_TEXT(silence, doing, stall_doing_names[verdict.doing]);
		MESSAGE_SET(silence, since, begun);
		MESSAGE_SET(silence, until, begun + verdict.limit_ms);
	}
	(void)!agent_report(agent, REPORT_RUNNING, &ignored);
}

/* True if the time is over by our own clock, whether or not there is a driver. */
static bool is_over_time(const struct agent *agent, struct mono now)
{
	return agent->config.timeout_ms > 0 &&
	       now.ms - agent->watchdog.begun.ms >= agent->config.timeout_ms;
}

/* Does not count the time in which the machine slept, or the agent was stopped, against the
 * command: as in stall_check(). */
static void forgive_sleep(struct watchdog *watchdog, struct mono now)
{
	int64_t blind_ms = now.ms - watchdog->checked.ms;

	if (blind_ms >= STALL_BLIND_MS)
		watchdog->begun.ms += blind_ms;
	watchdog->checked = now;
}

static void stop_over_time(struct agent *agent)
{
	agent_tell_peers(agent, 128 + SIGTERM);
	command_stop(agent, STOPPED_TIMEOUT);
}

static void judge(struct agent *agent, struct mono now)
{
	struct watchdog *watchdog = &agent->watchdog;
	struct stall_silence verdict;
	enum growth growth;

	note_cache(agent, now);
	if (stall_check(&watchdog->stall, now, &verdict) && !agent->drain.at_ms) {
		growth = look_for_growth(agent, now);
		if (growth == GROWTH_SEEN)
			stall_cache(&watchdog->stall, now);
		if (growth == GROWTH_NONE)
			stop_stalled(agent, &verdict);
	}
	if (!agent->stopped)
		tell_silence(agent, now);
}

static void on_beat(void *arg)
{
	struct agent *agent = arg;
	struct watchdog *watchdog = &agent->watchdog;
	struct mono now = clock_mono_now();
	int64_t beat = agent->config.heartbeat_ms;
	bool judges = agent->config.node == 0 || watchdog->alone;

	if (agent->state || agent->over || agent->stopped)
		return;
	publish_step_rate(agent);
	tell_progress(agent, now);
	forgive_sleep(watchdog, now);
	if (judges && is_over_time(agent, now)) {
		stop_over_time(agent);
		return;
	}
	/* While the workspace hangs, no sign of life can be seen: time in which nobody looks. */
	if (judges && !is_stuck(agent))
		judge(agent, now);
	loop_after(agent->loop, beat < BEAT_MS ? beat : BEAT_MS, on_beat, agent);
}

void watchdog_start(struct agent *agent)
{
	struct stall *stall = &agent->watchdog.stall;

	agent->watchdog.begun = agent->watchdog.checked = clock_mono_now();
	stall_init(stall, stall->mode, stall->fixed_ms, stall->reports_steps, clock_mono_now());
	if (agent->head_ended)
		watchdog_alone(agent);
	loop_after(agent->loop, 0, on_beat, agent);
}

/* The command may have no more steps to make, and an earlier silence was not its own: the other
 * nodes were heard meanwhile. */
void watchdog_alone(struct agent *agent)
{
	struct watchdog *watchdog = &agent->watchdog;

	if (watchdog->alone)
		return;
	watchdog->alone = true;
	stall_forget_steps(&watchdog->stall);
	stall_output(&watchdog->stall, clock_mono_now(), false);
}
