/*
 * Reads the logs of an attempt line by line: numbers, graphs, last words. A turn takes a bounded
 * part, however much there is, so that the driver handles signals, requests, limits and leases
 * before the next turn.
 *
 * If reading lies far behind the end of a training's log, the part in between is skipped, and that
 * is recorded: the steps it is at now, and how it ended, are worth more. In phase 1 nothing is
 * skipped, because the graphs that its log names decide the verdict; but a run that is to end needs
 * no verdict.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/process/turn.h"
#include "jobs/base/step_rate.h"
#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/attempt/toolkit_series.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

/* A slice of the most expensive lines takes about as long as a turn has. */
#define SLICE        ((size_t)16 << 10)
#define CHUNK        ((size_t)64 << 10) /* bytes asked for at once */
#define TURN_BYTES   ((size_t)1 << 20)
#define TURN_CPU_MS  100
#define TURN_WALL_MS 1000 /* if the log is a service's */

#define SIZE_EVERY_MS 1000 /* pause between two looks at the size of a log that is behind */
/* If more than BEHIND_MAX lies between what is read and the end of a training's log, all but the
 * last TAIL_MAX is skipped; of a run that is to end, all but the last WORDS_MAX. */
#define BEHIND_MAX ((uint64_t)256 << 20)
#define TAIL_MAX   ((uint64_t)16 << 20)
#define WORDS_MAX  ((uint64_t)1 << 20)

/* A log that is behind is recorded after a while, then ever more rarely while its attempt goes on.
 * After the attempt's end nothing else is left to happen, and the pause is the usual one. */
#define RECORD_AFTER_MS     10000
#define RECORD_PAUSE_MAX_MS ((int64_t)10 * 60 * 1000)

#define KEPT_MAX ((size_t)4 << 10) /* bytes kept of a line as evidence */
#define LATE_MAX 100               /* graphs with a record of when they came */

void reading_keep_line(struct node_log *log, const char *line, size_t len)
{
	size_t slot = log->lines++ % LAST_LINES;

	first_cause_line(log->watch->cause, (size_t)log->node, line, len, log->lines - 1,
			 log->watch->read_at);
	/* The search for a cause matches each line against each row of its table. */
	len = len < KEPT_MAX ? len : KEPT_MAX;
	free(log->last[slot]);
	log->last[slot] = mem_copy_n(line, len);
	log->last_len[slot] = len;
}

/* ---- graphs --------------------------------------------------------------------------- */

/* Notes graphs that phase 1 did not reach, and after which step they came. */
static void add_late_graphs(struct attempt_watch *watch)
{
	const struct tally_graph *graph;

	for (size_t i = 0;
	     json_object_size(watch->late) < LATE_MAX && (graph = graph_tally_at(watch->tally, i));
	     i++)
		if (graph->missed && !json_object_get(watch->late, graph->key))
			json_object_set_new_nocheck(watch->late, graph->key,
						    watch->last_step < 0
							    ? json_null()
							    : json_integer(watch->last_step));
}

/* In training only compiled graphs are news; hits are as expected. The book is counted once for all
 * lines between two steps, because counting takes time in proportion to the graphs. */
static void count_graphs(struct attempt_watch *watch)
{
	struct graph_tally_counts counts;

	if (!watch->graph_tally_changed)
		return;
	watch->graph_tally_changed = false;
	graph_tally_counts(watch->tally, &counts);
	if (counts.misses != watch->misses || counts.seconds > watch->seconds ||
	    (flow_phases[watch->phase].is_trial && counts.hits != watch->hits))
		watch->graphs_changed = true;
	watch->output_invalid |= flow_phases[watch->phase].reads_steps && counts.extracted > 0;
	if (flow_phases[watch->phase].counts_late && counts.misses > watch->misses)
		add_late_graphs(watch);
	watch->hits = counts.hits;
	watch->misses = counts.misses;
	watch->seconds = counts.seconds;
}

/* ---- lines ---------------------------------------------------------------------------- */

/* Dates the step on the current line: by the service's time of the line if known, else by the time
 * of reading, which counts for the pace only once the backlog is read. */
static void date_step(struct attempt_watch *watch, const struct node_log *log, int64_t step)
{
	struct engine *engine = watch->driver->engine;
	struct utc at = { 0 };

	if (engine->ops->log_time)
		at = engine->ops->log_time(engine, watch->job, watch->prefix, log->node,
					   log->tail.line_at);
	watch->stepped_at = at.ms > 0 ? at : driver_now(watch->driver);
	watch->own_exact |= at.ms > 0;
	if (at.ms > 0)
		step_rate_meter_step(watch->own_meter, step, at.ms, at);
	else if (watch->caught_up)
		step_rate_meter_step(watch->own_meter, step, watch->read_at.ms, watch->stepped_at);
}

static void update_step(struct node_log *log)
{
	struct attempt_watch *watch = log->watch;
	struct step_progress progress = metrics_progress(watch->metrics);

	if (!progress.known)
		return;
	if (watch->first_step < 0)
		watch->first_step = progress.step;
	if (progress.step <= watch->last_step)
		return;
	count_graphs(watch); /* graphs that came before this step */
	watch->last_step = progress.step;
	first_cause_step(watch->cause, (size_t)log->node, watch->read_at);
	watch->step_node = log->node;
	date_step(watch, log, progress.step);
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct node_log *log = arg;
	struct attempt_watch *watch = log->watch;

	if (len == 0 || is_agent_line(line, len))
		return;
	if (watch->driver->kind->caches &&
	    graph_tally_scan(watch->tally, watch->driver->kind, log->node, line, len))
		watch->graph_tally_changed = true;
	/* In phase 1 nothing is computed: numbers that it prints are no metrics. */
	if (flow_phases[watch->phase].reads_steps) {
		size_t count = metrics_line(watch->metrics, &log->step, line, len);

		toolkit_series_line(watch, log, metrics_readings(watch->metrics), count);
		if (count > 0) {
			watch->numbers_changed = watch->numbers_fresh = true;
			update_step(log);
		}
	}
	reading_keep_line(log, line, len);
}

/* ---- pieces --------------------------------------------------------------------------- */

/* Returns 1 if there is more, 0 if all that is there now is read, -1 with an error. */
static int read_chunk(struct attempt_watch *watch, struct node_log *log, struct turn *turn,
		      struct err **err)
{
	struct engine *engine = watch->driver->engine;
	AUTO(sb_release) struct sb chunk = SB_INIT_MAX(CHUNK);
	uint64_t offset = log->tail.offset;
	size_t at = 0;

	watch->read_at = clock_mono_now();
	if (engine->ops->logs(engine, watch->job, watch->prefix, log->node, &offset, CHUNK, &chunk,
			      err) < 0)
		return -1;
	if (chunk.len > 0)
		watch->heard_at = clock_mono_now();
	while (at < chunk.len && !turn->over) {
		size_t len = chunk.len - at < SLICE ? chunk.len - at : SLICE;

		tail_feed(&log->tail, chunk.text + at, len, on_line, log);
		toolkit_monitor_scan(watch->monitor, log->node, chunk.text + at, len);
		log->tail.offset += len; /* the places of lines count from there */
		at += len;
		turn_spend(turn, len);
	}
	/* Bytes that the turn has no room for are read again by the next turn. */
	return at < chunk.len || chunk.len == CHUNK;
}

/* Asks for the size of a log that could not be read to its end. Returns 1 if it is known, 0 if it
 * is not or was asked for recently, -1 with an error. */
static int read_size(struct attempt_watch *watch, struct node_log *log, struct err **err)
{
	struct engine *engine = watch->driver->engine;
	uint64_t size;
	int known;

	if (log->sized_at.ms > 0 && clock_mono_now().ms - log->sized_at.ms < SIZE_EVERY_MS)
		return 0;
	log->sized_at = clock_mono_now();
	known = engine->ops->log_size(engine, watch->job, watch->prefix, log->node, &size, err);
	if (known > 0)
		log->size = size;
	return known;
}

static int record_read(struct attempt_watch *watch, const struct node_log *skipped,
		       uint64_t skipped_bytes, struct err **err)
{
	uint64_t read = 0, size = 0;
	struct event ev;

	for (int node = 0; node < watch->nodes; node++) {
		const struct node_log *log = &watch->logs[node];

		read += log->tail.offset;
		size += log->size > log->tail.offset ? log->size : log->tail.offset;
	}
	attempt_event(watch, EV_LOG_READ, &ev);
	EVENT_SET(&ev, read_bytes, (int64_t)read);
	EVENT_SET(&ev, size_bytes, (int64_t)size);
	if (skipped) {
		EVENT_SET(&ev, node, skipped->node);
		EVENT_SET(&ev, skipped_bytes, (int64_t)skipped_bytes);
	}
	return driver_record(watch->driver, &ev, err);
}

/* Returns how many bytes of the end of a log are worth reading; UINT64_MAX: all. */
static uint64_t worth_bytes(const struct attempt_watch *watch, const struct node_log *log,
			    bool ended)
{
	uint64_t behind = log->size > log->tail.offset ? log->size - log->tail.offset : 0;

	if (ended && watch->driver->flow.stop_requested)
		return WORDS_MAX;
	if (flow_phases[watch->phase].reads_steps && behind > BEHIND_MAX)
		return TAIL_MAX;
	return UINT64_MAX;
}

/* Skips the part that is not worth reading any more. */
static int skip_backlog(struct attempt_watch *watch, struct node_log *log, bool ended,
			struct err **err)
{
	uint64_t tail_bytes, left_out;
	int known = read_size(watch, log, err);

	if (known <= 0)
		return known;
	tail_bytes = worth_bytes(watch, log, ended);
	if (log->size <= log->tail.offset || log->size - log->tail.offset <= tail_bytes)
		return 0;
	left_out = log->size - tail_bytes - log->tail.offset;
	tail_skip(&log->tail, log->size - tail_bytes);
	return record_read(watch, log, left_out, err);
}

/* ---- turns ---------------------------------------------------------------------------- */

/* A log that cannot be read does not keep an attempt from ending; the failure becomes part of how
 * it ended. */
static int pass_unreadable(struct attempt_watch *watch, struct node_log *log, bool ends,
			   struct err **why, struct err **err)
{
	if (!ends || (*why)->code == EXIT_UNREACHABLE ||
	    (err_passes(*why) && ++watch->log_tries < END_TRIES)) {
		*err = TAKE(*why);
		return -1;
	}
	log->unread = true;
	if (!watch->unread)
		watch->unread = TAKE(*why);
	return 0;
}

static int read_one(struct attempt_watch *watch, struct node_log *log, bool ends, bool ended,
		    struct turn *turn, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	int more = 0;

	if (!log->unread && (!log->behind || skip_backlog(watch, log, ended, &why) == 0))
		more = read_chunk(watch, log, turn, &why);
	if (why && pass_unreadable(watch, log, ends, &why, err) < 0)
		return -1;
	log->behind = more > 0;
	return 0;
}

static void mark_caught_up(struct attempt_watch *watch)
{
	if (!watch->caught_up)
		toolkit_monitor_caught_up(watch->monitor);
	watch->caught_up = watch->news = true;
	watch->behind_since.ms = 0;
	watch->behind_pause_ms = 0;
}

/* Records now and then that much is left to read. */
static int record_behind(struct attempt_watch *watch, bool ended, struct err **err)
{
	int64_t now = clock_mono_now().ms;
	int64_t pause;

	if (!watch->driver->live)
		return 0;
	pause = journal_is_remote(watch->driver->journal) ? PROGRESS_REMOTE_MS : PROGRESS_MS;
	if (watch->behind_since.ms == 0) {
		watch->behind_since = watch->behind_recorded_at = clock_mono_now();
		watch->behind_pause_ms = RECORD_AFTER_MS;
	}
	if (!ended && watch->behind_pause_ms > pause)
		pause = watch->behind_pause_ms;
	if (now - watch->behind_recorded_at.ms < pause)
		return 0;
	watch->behind_recorded_at.ms = now;
	watch->behind_pause_ms = watch->behind_pause_ms < RECORD_PAUSE_MAX_MS / 2
					 ? 2 * watch->behind_pause_ms
					 : RECORD_PAUSE_MAX_MS;
	return record_read(watch, NULL, 0, err);
}

int reading_turn(struct attempt_watch *watch, bool ends, bool ended, bool *ret_more,
		 struct err **err)
{
	struct turn turn = turn_begin(TURN_BYTES, TURN_CPU_MS, TURN_WALL_MS);
	int at_end = 0; /* consecutive logs read to their end */

	while (at_end < watch->nodes && !turn.over) {
		struct node_log *log = &watch->logs[watch->next_log];

		/* Round robin, so that no log waits behind another that floods. */
		watch->next_log = (watch->next_log + 1) % watch->nodes;
		if (read_one(watch, log, ends, ended, &turn, err) < 0)
			return -1;
		at_end = log->behind ? 0 : at_end + 1;
	}
	count_graphs(watch);
	/* Lines up to the journal's newest step are read a second time and are no news. */
	watch->news |= watch->last_step > watch->driver->flow.ledger.step;
	*ret_more = at_end < watch->nodes;
	if (!*ret_more)
		mark_caught_up(watch);
	else if (record_behind(watch, ended, err) < 0)
		return -1;
	return 0;
}

void reading_end(struct attempt_watch *watch)
{
	for (int node = 0; node < watch->nodes; node++)
		tail_end(&watch->logs[node].tail, on_line, &watch->logs[node]);
	count_graphs(watch);
	watch->whole = true;
}
