/*
 * An attempt under watch: its logs line by line (numbers, graphs, last words),
 * what the engine says of it, and the events that follow.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/run/health.h"
#include "jobs/run/outside.h"
#include "jobs/run/watch_inside.h"
#include "jobs/store/order.h"

#define LOG_PIECE ((size_t)1 << 20) /* bytes read at once */

bool watch_is(const struct driver *driver, enum phase phase, int64_t attempt)
{
	return driver->watch && driver->watch->phase == phase && driver->watch->attempt == attempt;
}

const struct graph_book *watch_book(const struct driver *driver)
{
	return driver->watch->book;
}

void watch_close(struct driver *driver)
{
	struct attempt_watch *watch = driver->watch;

	if (!watch)
		return;
	loop_remove(driver->loop, watch->wake);
	for (int node = 0; node < watch->nodes; node++) {
		tail_release(&watch->logs[node].tail);
		for (int i = 0; i < LAST_LINES; i++)
			free(watch->logs[node].last[i]);
	}
	free(watch->logs);
	book_freep(&watch->book);
	json_decref(watch->late);
	metrics_freep(&watch->metrics);
	outside_freep(&watch->outside);
	err_free(watch->unread);
	free(watch->job);
	free(watch->prefix);
	free(watch);
	driver->watch = NULL;
}

int watch_open(struct driver *driver, enum phase phase, int64_t attempt, const char *job,
	       struct err **err)
{
	struct attempt_watch *watch;

	watch_close(driver);
	watch = mem_zero(1, sizeof *watch);
	driver->watch = watch;
	watch->driver = driver;
	watch->phase = phase;
	watch->attempt = attempt;
	watch->job = mem_copy(job);
	watch->prefix = attempt_prefix(driver->run, phase, attempt);
	watch->nodes = (int)js_int(driver->plan, "nodes", 1);
	watch->logs = mem_zero((size_t)watch->nodes, sizeof *watch->logs);
	for (int node = 0; node < watch->nodes; node++) {
		watch->logs[node].watch = watch;
		watch->logs[node].node = node;
		tail_init(&watch->logs[node].tail);
	}
	watch->first_step = watch->last_step = -1;
	watch->book = book_new();
	watch->late = json_object();
	if (outside_new(watch, &watch->outside, err) < 0)
		return -1;
	return metrics_new(json_object_get(driver->plan, "metrics"), &watch->metrics, err);
}

static void keep_line(struct node_log *log, const char *line, size_t len)
{
	size_t slot = log->lines++ % LAST_LINES;

	free(log->last[slot]);
	log->last[slot] = mem_copy_n(line, len);
	log->last_len[slot] = len;
}

#define LATE_MAX      100 /* graphs of which it is said when */
#define GROWTH_PLACES 4

/* Phase 1 did not reach these: which, and when. */
static void note_late(struct attempt_watch *watch)
{
	const struct book_graph *graph;

	for (size_t i = 0; (graph = book_at(watch->book, i)); i++)
		if (graph->missed && json_object_size(watch->late) < LATE_MAX &&
		    !json_object_get(watch->late, graph->key))
			json_object_set_new_nocheck(watch->late, graph->key,
						    watch->last_step < 0
							    ? json_null()
							    : json_integer(watch->last_step));
}

/* Something new after so many different steps: it will not end. */
static bool grows_with_steps(const struct attempt_watch *watch)
{
	json_int_t last = -1;
	const char *key;
	json_t *step;
	int places = 0;

	json_object_foreach (watch->late, key, step) {
		if (!json_is_integer(step) || json_integer_value(step) <= last)
			continue;
		last = json_integer_value(step);
		places++;
	}
	return places >= GROWTH_PLACES;
}

/* How long a graph took is known a while after it is known to be late. */
static json_t *late_json(const struct attempt_watch *watch)
{
	json_t *late = json_array(), *step;
	const char *key;

	json_object_foreach (watch->late, key, step) {
		const struct book_graph *graph = book_find(watch->book, key);
		json_t *row = json_object();

		js_put(row, "graph", js_text(key, strlen(key)));
		if (graph && graph->seconds > 0)
			js_put(row, "seconds", json_real(graph->seconds));
		if (!json_is_null(step))
			js_put(row, "after_step", json_incref(step));
		json_array_append_new(late, row);
	}
	return late;
}

/* In training only what was compiled is news; what was found is as it should be. */
static void note_graphs(struct attempt_watch *watch)
{
	struct book_counts counts;

	book_counts(watch->book, &counts);
	if (counts.misses != watch->misses || counts.seconds > watch->seconds ||
	    (watch->phase == PHASE_PRECOMPILE && counts.hits != watch->hits))
		watch->graphs_changed = true;
	watch->spoiled |= watch->phase == PHASE_TRAIN && counts.extracted > 0;
	if (watch->phase == PHASE_TRAIN && counts.misses > watch->misses)
		note_late(watch);
	watch->hits = counts.hits;
	watch->misses = counts.misses;
	watch->seconds = counts.seconds;
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct node_log *log = arg;
	struct attempt_watch *watch = log->watch;

	if (len == 0 || is_agent_line(line, len))
		return;
	if (watch->driver->kind->caches &&
	    book_scan(watch->book, watch->driver->kind, log->node, line, len))
		note_graphs(watch);
	/* What phase 1 prints is computed from nothing: it is no metric. */
	if (watch->phase == PHASE_TRAIN &&
	    metrics_line(watch->metrics, line, len, watch->read_at)) {
		struct step_progress progress = metrics_progress(watch->metrics);

		watch->numbers_changed = watch->numbers_fresh = true;
		if (watch->first_step < 0 && progress.known)
			watch->first_step = progress.step;
		if (progress.known && progress.step > watch->last_step) {
			watch->last_step = progress.step;
			watch->stepped_at = driver_now(watch->driver);
		}
	}
	keep_line(log, line, len);
}

static int read_log(struct attempt_watch *watch, int node, struct err **err)
{
	struct engine *engine = watch->driver->engine;
	struct tail *tail = &watch->logs[node].tail;
	AUTO(sb_release) struct sb piece = SB_INIT_MAX(LOG_PIECE);

	do {
		sb_clear(&piece);
		watch->read_at = mono_now();
		if (engine->ops->logs(engine, watch->job, watch->prefix, node, &tail->offset,
				      LOG_PIECE, &piece, err) < 0)
			return -1;
		tail_feed(tail, piece.text, piece.len, on_line, &watch->logs[node]);
		outside_hear(watch->outside, node, piece.text, piece.len);
	} while (piece.len == LOG_PIECE);
	return 0;
}

/* `ends`: nothing more comes, or nothing more is wanted. A log that may not be read keeps no
 * attempt from its end; that it could not be is part of how it ended. */
static int read_logs(struct attempt_watch *watch, bool ends, struct err **err)
{
	for (int node = 0; node < watch->nodes; node++) {
		AUTO(err_freep) struct err *why = NULL;

		if (watch->logs[node].unread || read_log(watch, node, &why) == 0)
			continue;
		if (!ends || why->code == EXIT_UNREACHABLE) {
			*err = TAKE(why);
			return -1;
		}
		watch->logs[node].unread = true;
		if (!watch->unread)
			watch->unread = TAKE(why);
	}
	if (!watch->caught_up) {
		outside_caught_up(watch->outside);
		metrics_begin_rate(watch->metrics, mono_now());
	} else
		metrics_looked(watch->metrics, mono_now());
	watch->caught_up = true;
	return 0;
}

static void end_logs(struct attempt_watch *watch)
{
	for (int node = 0; node < watch->nodes; node++)
		tail_end(&watch->logs[node].tail, on_line, &watch->logs[node]);
}

int watch_read_log(struct driver *driver, struct err **err)
{
	if (read_logs(driver->watch, false, err) < 0)
		return -1;
	end_logs(driver->watch);
	return 0;
}

void watch_event(const struct attempt_watch *watch, enum event_kind kind, struct event *ret)
{
	*ret = (struct event){ .kind = kind };
	if (event_rows[kind].allowed & UINT64_C(1) << EVF_phase)
		EVENT_SET(ret, phase, watch->phase);
	EVENT_SET(ret, attempt, watch->attempt);
}

/* compile.progress in phase 1, jit.compiled in training. */
static int record_graphs(struct attempt_watch *watch, struct err **err)
{
	double price = json_number_value(js_path(watch->driver->plan, "limits.price"));
	struct book_counts counts;
	json_auto_t *names = NULL;
	json_auto_t *late = NULL;
	struct event ev;

	watch->graphs_changed = false;
	watch->graphs_at = mono_now();
	book_counts(watch->book, &counts);
	watch->hits_told = counts.hits;
	if (watch->phase == PHASE_PRECOMPILE) {
		watch_event(watch, EV_COMPILE_PROGRESS, &ev);
		EVENT_SET(&ev, graphs, counts.named);
		EVENT_SET(&ev, hits, counts.hits);
		EVENT_SET(&ev, compiled, counts.made);
		if (counts.compile_failed > 0)
			EVENT_SET(&ev, failed, counts.compile_failed);
		EVENT_SET(&ev, seconds, counts.seconds);
		return driver_record(watch->driver, &ev, err);
	}
	watch_event(watch, EV_JIT_COMPILED, &ev);
	EVENT_SET(&ev, graphs, counts.misses);
	EVENT_SET(&ev, hits, counts.hits);
	EVENT_SET(&ev, seconds, counts.seconds);
	if (price > 0)
		EVENT_SET(&ev, cost, price * watch->nodes * counts.seconds / 3600);
	names = json_array();
	for (size_t i = 0; json_array_size(names) < 20; i++) {
		const struct book_graph *graph = book_at(watch->book, i);

		if (!graph)
			break;
		if (graph->missed)
			json_array_append_new(names, js_text(graph->key, strlen(graph->key)));
	}
	EVENT_SET(&ev, names, names);
	late = late_json(watch);
	if (json_array_size(late) > 0)
		EVENT_SET(&ev, late, late);
	if (grows_with_steps(watch))
		EVENT_SET_STR(&ev, hint,
			      "it goes on as the steps go on: shapes change from step to step; pad "
			      "them, or sort them into a few sizes");
	return driver_record(watch->driver, &ev, err);
}

/* train.progress as of now; `numbers` is the event's. */
static void tell_numbers(const struct attempt_watch *watch, json_t *numbers, struct event *ret)
{
	struct step_progress progress = metrics_progress(watch->metrics);
	int64_t of = js_int(js_path(watch->driver->plan, "steps"), "train", 0);

	watch_event(watch, EV_TRAIN_PROGRESS, ret);
	if (progress.known) {
		EVENT_SET(ret, step, progress.step);
		EVENT_SET(ret, since, watch->stepped_at.ms);
	}
	if (of > 0)
		EVENT_SET(ret, of, of);
	if (progress.rate > 0) {
		EVENT_SET(ret, rate, progress.rate);
		if (of >= progress.step)
			EVENT_SET(ret, eta, (double)(of - progress.step) / progress.rate);
	}
	EVENT_SET(ret, metrics, numbers);
}

static int record_numbers(struct attempt_watch *watch, struct err **err)
{
	json_auto_t *numbers = metrics_json(watch->metrics);
	json_auto_t *throughput = metrics_throughput(watch->metrics);
	struct event ev;

	watch->numbers_changed = false;
	tell_numbers(watch, numbers, &ev);
	if (throughput)
		EVENT_SET(&ev, throughput, throughput);
	return driver_record(watch->driver, &ev, err);
}

/* Phase 1 has leaked into it: every output is zeros. */
static int record_spoiled(struct attempt_watch *watch, struct err **err)
{
	struct event ev;

	watch->spoiled_told = true;
	watch_event(watch, EV_TRAIN_SPOILED, &ev);
	EVENT_SET_STR(&ev, reason,
		      "its log shows graphs that are extracted and not executed, as in "
		      "phase 1");
	return driver_record(watch->driver, &ev, err);
}

static bool due(struct mono last, int64_t every_ms)
{
	return last.ms == 0 || mono_now().ms - last.ms >= every_ms;
}

/* For who watches: a journal of every step would be slow to read. */
static void show_numbers(struct attempt_watch *watch)
{
	const struct driver_options *options = watch->driver->options;
	json_auto_t *numbers = NULL;
	struct event ev;

	if (!options->on_glimpse || !watch->numbers_fresh || !due(watch->shown_at, GLIMPSE_MS))
		return;
	watch->numbers_fresh = false;
	watch->shown_at = mono_now();
	numbers = metrics_json(watch->metrics);
	tell_numbers(watch, numbers, &ev);
	ev.at = driver_now(watch->driver);
	options->on_glimpse(options->arg, &ev);
}

/* Of mode jit it decides whether the cache was cold. */
static bool is_more_found(const struct attempt_watch *watch)
{
	return watch->phase == PHASE_TRAIN && !watch->driver->flow.policy.compiles &&
	       watch->hits != watch->hits_told;
}

/* New graphs and numbers, each at its own pace; all of them at the end. */
static int record_progress(struct attempt_watch *watch, bool at_end, struct err **err)
{
	bool far = journal_is_far(watch->driver->journal);
	bool graphs = watch->graphs_changed &&
		      due(watch->graphs_at, far ? COMPILE_PROGRESS_FAR_MS : COMPILE_PROGRESS_MS);
	bool numbers = watch->numbers_changed &&
		       due(watch->driver->progress_at, far ? PROGRESS_FAR_MS : PROGRESS_MS);

	if (at_end) {
		/* "No graph was compiled in training" is a fact worth recording too. */
		graphs =
			watch->driver->kind->caches &&
			(watch->graphs_changed || watch->graphs_at.ms == 0 || is_more_found(watch));
		numbers = watch->numbers_changed;
	}
	/* A step may be in the log before the engine says that the command has begun. */
	if ((graphs || numbers) && health_record(watch, err) < 0)
		return -1;
	show_numbers(watch);
	if (watch->spoiled && !watch->spoiled_told && record_spoiled(watch, err) < 0)
		return -1;
	if (graphs && record_graphs(watch, err) < 0)
		return -1;
	if (numbers && record_numbers(watch, err) < 0)
		return -1;
	return 0;
}

static void on_wake(void *arg)
{
	struct attempt_watch *watch = arg;

	watch->wake = NULL; /* the loop has dropped it */
	driver_wake(watch->driver);
}

/* One process is enough: the next tick asks for another one. */
static void arm_wake(struct attempt_watch *watch)
{
	struct driver *driver = watch->driver;
	pid_t pid;

	if (!watch->wake && driver->engine->ops->wake &&
	    driver->engine->ops->wake(driver->engine, watch->job, watch->prefix, &pid, 1) > 0)
		watch->wake = loop_on_exit(driver->loop, pid, on_wake, watch);
}

static int record_seen(struct attempt_watch *watch, bool seen, const char *reason, struct err **err)
{
	struct event ev;

	watch_event(watch, seen ? EV_ATTEMPT_FOUND : EV_ATTEMPT_LOST, &ev);
	if (!seen && reason[0])
		EVENT_SET_STR(&ev, reason, reason);
	return driver_record(watch->driver, &ev, err);
}

static int record_checkpoints(struct attempt_watch *watch, bool at_end, struct err **err)
{
	if (watch->phase != PHASE_TRAIN || watch->outside || /* nobody marks any */
	    (!at_end && watch->marks_at.ms > 0 &&
	     mono_now().ms - watch->marks_at.ms < checkpoints_pace_ms(watch->driver)))
		return 0;
	watch->marks_at = mono_now();
	return checkpoints_look(watch->driver, watch->attempt, err);
}

/* Steps of a job that ended while nobody looked were not seen later than its end. */
static int date_steps(struct attempt_watch *watch, struct utc last_seen, struct err **err)
{
	json_auto_t *report = NULL;
	int64_t ended;

	if (watch_report(watch, 0, &report, err) < 0)
		return -1;
	ended = js_int(report, "ended", last_seen.ms);
	if (ended > 0 && ended < watch->stepped_at.ms)
		watch->stepped_at.ms = ended;
	return 0;
}

/* Locks of single graphs that it held to its end. Whether anything of it still runs, its
 * agents know, each of its own node; else the engine must have seen that nothing does. */
static int clear_locks(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err)
{
	int64_t began_ms = status->started.ms, ended_ms = 0;

	for (int node = 0; node < watch->nodes && !status->silent; node++) {
		json_auto_t *report = NULL;

		if (watch_report(watch, node, &report, err) < 0)
			return -1;
		if (!js_is(report, "state", REPORT_ENDED))
			return 0;
		if (js_int(report, "ended", 0) > ended_ms)
			ended_ms = js_int(report, "ended", 0);
	}
	/* The log of what was killed has its word on each graph that it held, so it held them
	 * before its last sign of life; what is newer may be another run's. */
	if (status->silent)
		ended_ms = status->last_seen.ms;
	return driver_clear_own_locks(watch->driver, began_ms, ended_ms, err);
}

/* Which graphs a phase 1 that went well has made, its log alone says: until that may be read
 * there is no verdict, and who wants none stops the run. */
static int miss_log(struct attempt_watch *watch, const struct engine_status *status,
		    struct err **err)
{
	const struct driver *driver = watch->driver;

	if (watch->phase != PHASE_PRECOMPILE || !driver->kind->caches || !watch->unread ||
	    !status->exit_known || status->exit != 0 || driver->flow.stop_requested)
		return 0;
	*err = TAKE(watch->unread);
	return -1;
}

static int finish(struct attempt_watch *watch, const struct engine_status *status, struct err **err)
{
	struct driver *driver = watch->driver;

	if (miss_log(watch, status, err) < 0)
		return -1;
	end_logs(watch);
	if (watch->phase == PHASE_TRAIN && status->silent)
		driver->left_by = watch->attempt;
	if (driver->flow.attempt_state == ATTEMPT_SUBMITTED &&
	    record_claimed(watch, status, err) < 0)
		return -1;
	if (health_record(watch, err) < 0 || record_started(watch, status->started, err) < 0 ||
	    date_steps(watch, status->last_seen, err) < 0 ||
	    record_checkpoints(watch, true, err) < 0 || record_continuity(watch, true, err) < 0 ||
	    record_progress(watch, true, err) < 0 || clear_locks(watch, status, err) < 0)
		return -1;
	if (watch->phase == PHASE_TRAIN && status->exit_known && status->exit == 0 &&
	    driver_join_late(driver, err) < 0)
		return -1;
	return record_end(watch, status, err);
}

static bool is_ending(const struct driver *driver, const struct engine_status *status)
{
	return status->state == ENGINE_ENDED || status->state == ENGINE_STOPPING ||
	       driver->flow.stop_requested;
}

int watch_tick(struct driver *driver, struct err **err)
{
	struct attempt_watch *watch = driver->watch;
	struct engine_status status = { .state = ENGINE_UNSEEN };
	enum attempt_state known = driver->flow.attempt_state;

	/* Ask first, read the log then: what an ended job wrote is all there. */
	if (driver->engine->ops->describe(driver->engine, watch->job, watch->prefix, &status, err) <
		    0 ||
	    read_logs(watch, is_ending(driver, &status), err) < 0)
		return -1;
	if (outside_judge(watch, &status, err) < 0)
		return -1;
	if (status.state == ENGINE_ENDED)
		return finish(watch, &status, err);
	arm_wake(watch);
	if (status.state == ENGINE_UNSEEN)
		return known == ATTEMPT_LOST ? 0 : record_seen(watch, false, status.reason, err);
	if (known == ATTEMPT_LOST && record_seen(watch, true, "", err) < 0)
		return -1;
	if ((status.state == ENGINE_STARTING || status.state == ENGINE_RUNNING) &&
	    driver->flow.attempt_state == ATTEMPT_SUBMITTED &&
	    record_claimed(watch, &status, err) < 0)
		return -1;
	if (record_waiting(watch, &status, err) < 0 ||
	    record_started(watch, status.started, err) < 0)
		return -1;
	if (record_checkpoints(watch, false, err) < 0 || record_continuity(watch, false, err) < 0)
		return -1;
	return record_progress(watch, false, err);
}
