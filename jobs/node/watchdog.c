/* Signs of life of an attempt, and what follows when there are none: see watchdog.h. */
#include "jobs/node/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/regex.h"
#include "jobs/node/agent.h"
#include "jobs/node/command/command_stop.h"

#define BEAT_MS 1000
/* Number of nodes up to which progress is exchanged every two beats and a half; more nodes
 * do so more slowly. */
#define PEERS_FAST 16
/* Longest look at a cache; if it takes longer, the result is not known. */
#define CACHE_SCAN_MS 250
#define CACHE_DEPTH   6

struct watchdog_peer {
	bool stepped;
	int64_t step, bytes, compiles;
};

static int64_t exchange_ms(const struct agent *agent)
{
	int64_t ms = agent->config.heartbeat_ms * 5 / 2;
	int nodes = agent->config.nodes;

	if (agent->config.object_workspace && ms < UPLOADER_EXCHANGE_MS)
		ms = UPLOADER_EXCHANGE_MS;
	return nodes > PEERS_FAST ? ms * nodes / PEERS_FAST : ms;
}

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
		limit += 2 * exchange_ms(agent);
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

/* Publishes when the steps came, for observers of the run. If a power cut loses it, it is published
 * again, or in the report. */
static void publish_step_rate(struct agent *agent)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct output_scan *listen = &watchdog->listen;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *json = NULL;

	if (!listen->stepped || listen->last_step == watchdog->paced)
		return;
	json = step_rate_meter_json(watchdog->meter);
	text = js_line(json);
	path = fs_join(agent->config.dir, PACE_FILE);
	if (fs_write_passing(path, text, strlen(text), 0600, &ignored) == 0)
		watchdog->paced = listen->last_step;
}

/* ---- several nodes ---- */

static void tell_progress(struct agent *agent)
{
	struct watchdog *watchdog = &agent->watchdog;
	const struct output_scan *listen = &watchdog->listen;
	AUTO(auto_free) char *key = agent_config_node_key(&agent->config, PROGRESS_FILE);
	AUTO(auto_free) char *path = fs_join(agent->config.dir, PROGRESS_FILE);
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *body = NULL;

	if (listen->bytes == watchdog->told)
		return;
	body = json_object();
	js_put(body, "v", json_integer(1));
	if (listen->stepped)
		js_put(body, "step", json_integer(listen->last_step));
	js_put(body, "bytes", json_integer((json_int_t)listen->bytes));
	js_put(body, "compile", json_integer((json_int_t)listen->compiles));
	text = js_line(body);
	/* In a far workspace the uploader publishes it. */
	if (agent->config.object_workspace
		    ? fs_write_atomic(path, text, strlen(text), 0600, &ignored) == 0
		    : store_put(agent->store, key, text, strlen(text), &ignored) == 0)
		watchdog->told = listen->bytes;
}

/* Reads what a node has published last. Returns false if there is nothing yet, or it
 * cannot be read now. */
static bool read_peer(const struct agent *agent, int node, struct sb *text, struct err **err)
{
	AUTO(auto_free)
	char *key = mem_format("%snode-%d/" PROGRESS_FILE, agent->config.prefix, node);
	AUTO(auto_free) char *name = mem_format(UPLOADER_PEER_FILE, node);
	AUTO(auto_free) char *path = fs_join(agent->config.dir, name);

	if (agent->config.object_workspace)
		return fs_read(path, REPORT_MAX, text, err) == 0;
	return store_get(agent->store, key, REPORT_MAX, text, NULL, err) > 0;
}

static void hear_peer(struct agent *agent, int node, struct mono now)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	struct watchdog_peer *peer = &agent->watchdog.peers[node];
	struct stall *stall = &agent->watchdog.stall;
	json_auto_t *body = NULL;
	int64_t step, bytes, compiles;

	if (!read_peer(agent, node, &text, &ignored) ||
	    js_parse(text.text, text.len, PROGRESS_FILE, &body, &ignored) < 0)
		return;
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

static void exchange(struct agent *agent, struct mono now)
{
	struct watchdog *watchdog = &agent->watchdog;

	if (agent->config.nodes == 1 || now.ms - watchdog->peers_at.ms < exchange_ms(agent))
		return;
	watchdog->peers_at = now;
	if (agent->config.node > 0) {
		tell_progress(agent);
		return;
	}
	for (int i = 1; i < agent->config.nodes; i++)
		hear_peer(agent, i, now);
}

/* ---- the compile cache ---- */

/* Adds up names, sizes and times beneath a folder, without our own locks and claims. Returns false
 * if it took too long. */
static bool sum_folder(int fd, int depth, int64_t deadline_ms, uint64_t *sum)
{
	DIR *folder = fdopendir(fd);
	struct dirent *entry;
	bool whole = true;

	if (!folder) {
		close(fd);
		return true;
	}
	while (whole && (entry = readdir(folder))) {
		struct stat st;
		int inner;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    (depth == CACHE_DEPTH && strcmp(entry->d_name, LOCK_FOLDER) == 0) ||
		    fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*sum += (uint64_t)st.st_size * 31 + (uint64_t)st.st_mtim.tv_sec * 7 +
			(uint64_t)st.st_mtim.tv_nsec + 1;
		if (!S_ISDIR(st.st_mode) || depth == 0)
			continue;
		whole = clock_mono_now().ms < deadline_ms;
		inner = openat(dirfd(folder), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0)
			whole = sum_folder(inner, depth - 1, deadline_ms, sum) && whole;
	}
	closedir(folder);
	return whole;
}

/* Returns 0 if the sum is not known. */
static uint64_t checksum_cache(const struct agent *agent)
{
	const struct order_compile *compile = &agent->config.order->compile;
	AUTO(auto_free) char *folder = agent_config_cache(&agent->config);
	const char *cache = folder ? folder : compile->cache;
	int fd = cache && cache[0] == '/' ? open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	uint64_t sum = 1;

	if (fd < 0 || !sum_folder(fd, CACHE_DEPTH, clock_mono_now().ms + CACHE_SCAN_MS, &sum))
		return 0;
	return sum;
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
	watchdog->cache_sum = checksum_cache(agent);
}

static bool cache_has_grown(struct agent *agent)
{
	struct watchdog *watchdog = &agent->watchdog;
	uint64_t before =
		watchdog->cache_for.ms == watchdog->stall.last.ms ? watchdog->cache_sum : 0;

	return before != 0 && checksum_cache(agent) != before;
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

static void on_beat(void *arg)
{
	struct agent *agent = arg;
	struct watchdog *watchdog = &agent->watchdog;
	struct mono now = clock_mono_now();
	struct stall_silence verdict;
	int64_t beat = agent->config.heartbeat_ms;
	bool judges = agent->config.node == 0 || watchdog->alone;

	if (agent->state || agent->over || agent->stopped)
		return;
	publish_step_rate(agent);
	exchange(agent, now);
	forgive_sleep(watchdog, now);
	if (judges && is_over_time(agent, now)) {
		stop_over_time(agent);
		return;
	}
	if (judges) {
		note_cache(agent, now);
		if (stall_check(&watchdog->stall, now, &verdict) && !agent->drain.at_ms) {
			if (cache_has_grown(agent))
				stall_cache(&watchdog->stall, now);
			else
				stop_stalled(agent, &verdict);
		}
	}
	if (judges && !agent->stopped)
		tell_silence(agent, now);
	loop_after(agent->loop, beat < BEAT_MS ? beat : BEAT_MS, on_beat, agent);
}

void watchdog_start(struct agent *agent)
{
	struct stall *stall = &agent->watchdog.stall;

	agent->watchdog.begun = agent->watchdog.checked = clock_mono_now();
	stall_init(stall, stall->mode, stall->fixed_ms, stall->reports_steps, clock_mono_now());
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
