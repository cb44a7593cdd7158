/* Starting and awaiting the runs of a sweep: see sweep_work.h. */
#include "cmd/sweep/sweep_work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_best.h"
#include "cmd/sweep/sweep_cell.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/text.h"
#include "jobs/run/background.h"
#include "jobs/run/driver.h"
#include "jobs/run/request.h"
#include "jobs/run/sweep/sweep_order.h"
#include "jobs/run/sweep/sweep_record.h"

#define LOOK_MS        200 /* between two looks at the journals; then a tenth of the time so far */
#define LOOK_MOST_MS   2000
#define LOOK_REMOTE_MS 5000 /* the same if each look is a request to a service */
#define DRIVER_TRIES   5    /* to start a driver for a run that has lost its own */
#define DRIVER_MS      1000 /* before the second of them; then twice as long */

enum sweep_state {
	SWEEP_WAITS,
	SWEEP_GOES,
	SWEEP_ENDED,
	SWEEP_LEFT_OUT, /* the cell cannot be started, or failed before */
};

struct sweep_run {
	size_t cell;
	const char *id; /* of the record */
	enum sweep_state state;
	bool succeeded, failed; /* neither: the run goes on, or was stopped */
	double cost;            /* USD so far */
	int tries;              /* to start a driver, in vain */
	struct mono try_at;
};

struct sweep_work {
	const struct sweep_options *options;
	struct loop *loop;
	struct sweep_run *runs; /* in the order in which they begin */
	size_t count;
	struct mono since;
	bool leaving;         /* a signal: no run is started any more */
	bool stopping, gated; /* runs are stopped, because of a signal or a limit */
	bool detached;        /* this process ends before its runs */
	bool refused;         /* a run that could be planned could not begin */
	struct err *trouble;  /* of a run that cannot go on */
	int result;
	struct err **err;
};

static void work_release(struct sweep_work *work)
{
	loop_freep(&work->loop);
	err_freep(&work->trouble);
	free(work->runs);
}

static json_t *cell_of(const struct sweep_work *work, size_t at)
{
	return json_array_get(json_object_get(work->options->record, "cells"), at);
}

/* ---- states of the runs ---- */

/* Lists the runs in the order in which they begin: shuffled, but cell by cell if a cell depends on
 * those before it. */
static void list_runs(struct sweep_work *work)
{
	const json_t *record = work->options->record;
	size_t cells = json_array_size(json_object_get(record, "cells"));
	size_t repeat = (size_t)js_int(record, "repeat", 1);
	AUTO(auto_free) size_t *order = NULL;

	work->count = cells * repeat;
	work->runs = mem_zero(work->count, sizeof *work->runs);
	order = mem_zero(work->count, sizeof *order);
	sweep_order(js_str(record, "sweep"), work->count, order);
	for (size_t i = 0; i < work->count; i++) {
		size_t at = js_bool(record, "on_best", false) ? i : order[i];
		const json_t *ids = json_object_get(cell_of(work, at / repeat), "runs");

		work->runs[i].cell = at / repeat;
		work->runs[i].id = json_string_value(json_array_get(ids, at % repeat));
	}
}

static size_t count_in(const struct sweep_work *work, enum sweep_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < work->count; i++)
		count += work->runs[i].state == state;
	return count;
}

/* Tells what became of a run. */
static void tell_end(const struct sweep_work *work, const struct sweep_run *run,
		     const json_t *status)
{
	const char *reason = js_str(status, "reason"), *state = js_str(status, "state");

	out_note("run %s %s%s%s; %zu of %zu have ended", run->id, state ? state : "has ended",
		 !run->succeeded && reason ? ": " : "", !run->succeeded && reason ? reason : "",
		 count_in(work, SWEEP_ENDED) + count_in(work, SWEEP_LEFT_OUT), work->count);
}

/* Looks at the journal of a run. `ret_undriven`: it goes on, and has no driver. */
static int look(struct sweep_work *work, struct sweep_run *run, bool *ret_undriven,
		struct err **err)
{
	json_auto_t *status = NULL;
	bool went = run->state == SWEEP_GOES;

	*ret_undriven = false;
	if (cmd_run_view(work->options->journal, run->id, false, &status, err) < 0)
		return -1;
	if (!js_str(status, "created"))
		return 0;
	run->cost = js_real(json_object_get(status, "cost"), "accrued", 0);
	run->state = json_object_get(status, "exit_code") ? SWEEP_ENDED : SWEEP_GOES;
	run->succeeded = js_is(status, "state", "succeeded");
	run->failed =
		run->state == SWEEP_ENDED && !run->succeeded && !js_is(status, "state", "stopped");
	*ret_undriven = run->state == SWEEP_GOES && json_is_null(json_object_get(status, "driver"));
	if (run->state == SWEEP_ENDED && went)
		tell_end(work, run, status);
	return 0;
}

/* Finds out which runs there are already. */
static int look_at_all(struct sweep_work *work, struct err **err)
{
	json_auto_t *ids = json_array(), *known = json_object();
	json_t *id;
	size_t i;

	if (journal_runs(work->options->journal, ids, err) < 0)
		return -1;
	json_array_foreach (ids, i, id)
		json_object_set_new(known, json_string_value(id), json_true());
	for (i = 0; i < work->count; i++) {
		bool undriven;

		if (json_object_get(known, work->runs[i].id) &&
		    look(work, &work->runs[i], &undriven, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- drivers ---- */

/* Starts a driver for a run that has begun; one that has a driver already is fine. */
static int start_driver(struct journal *journal, const char *run, struct err **err)
{
	AUTO(background_freep) struct background *background = NULL;
	AUTO(err_freep) struct err *why = NULL;
	pid_t pid;

	if (background_start(journal, run, NULL, &background, &why) < 0 ||
	    background_wait(background, &pid, &why) < 0) {
		if (why->code == EXIT_BUSY)
			return 0;
		*err = TAKE(why);
		return -1;
	}
	return 0;
}

/* Gives a run that has lost its driver a new one. After some tries in vain the run is left to a
 * person, and the others go on. */
static void drive_again(struct sweep_work *work, struct sweep_run *run)
{
	AUTO(err_freep) struct err *why = NULL;

	if (clock_mono_now().ms < run->try_at.ms)
		return;
	if (start_driver(work->options->journal, run->id, &why) == 0) {
		run->tries = 0;
		return;
	}
	run->try_at.ms = clock_mono_now().ms + ((int64_t)DRIVER_MS << run->tries);
	if (++run->tries < DRIVER_TRIES)
		return;
	run->state = SWEEP_LEFT_OUT;
	out_error_later(&work->trouble, &why);
}

/* ---- beginning ---- */

/* Leaves out what else of this cell would begin. */
static void leave_out(struct sweep_work *work, size_t cell)
{
	for (size_t i = 0; i < work->count; i++)
		if (work->runs[i].cell == cell && work->runs[i].state == SWEEP_WAITS)
			work->runs[i].state = SWEEP_LEFT_OUT;
}

/* True if a run of the cell failed, and none succeeded: the others would fail, too. */
static bool has_failed(const struct sweep_work *work, size_t cell)
{
	bool failed = false;

	for (size_t i = 0; i < work->count; i++) {
		if (work->runs[i].cell != cell)
			continue;
		if (work->runs[i].succeeded)
			return false;
		failed |= work->runs[i].failed;
	}
	return failed;
}

/* Decides what a step on top of the best is on top of, and keeps that. */
static int decide(struct sweep_work *work, size_t at, struct err **err)
{
	json_t *cell = cell_of(work, at);
	json_t *sets;
	size_t best = 0;

	if (json_object_get(cell, "sets"))
		return 0;
	if (sweep_best_find(work->options->journal, work->options->record, work->options->question,
			    &best, err) < 0)
		return -1;
	sets = json_array();
	spec_sweep_put_on_top(sets, json_object_get(cell_of(work, best), "sets"));
	json_array_extend(sets, json_object_get(cell, "own"));
	js_put(cell, "sets", sets);
	out_note("cell %zu (%s) is on top of cell %zu (%s)", at + 1, js_str(cell, "name"), best + 1,
		 js_str(cell_of(work, best), "name"));
	return sweep_record_write(work->options->journal, work->options->record, err);
}

/* True for an error that is not the cell's: the sweep ends, and is repeated. */
static bool is_ours(const struct err *why)
{
	return why->code == EXIT_UNREACHABLE || why->code == EXIT_DEFECT || err_passes(why);
}

/* Warns of a run of another source than that with which the sweep began: cells are compared then
 * that differ by more than their settings. Files that appear beside the source are part of it, such
 * as the log of this command, so nothing is refused. */
static void check_source(const struct sweep_work *work, const struct sweep_run *run,
			 const struct plan *plan)
{
	const char *first = js_str(work->options->record, "source");
	const char *now = js_str(js_path(plan->json, "source"), "digest");
	const json_t *sets = json_object_get(cell_of(work, run->cell), "sets"), *set;
	size_t i;

	if (!first || !now || strcmp(first, now) == 0)
		return;
	json_array_foreach (sets, i, set)
		if (text_starts(json_string_value(set), "source."))
			return;
	out_warning("run %s: the source has changed since sweep %s began", run->id,
		    js_str(work->options->record, "sweep"));
}

/* Notes in the record that the cell is not supported. The cause that refuses a good plan lies
 * outside, and may be mended: the exit code tells that. */
static int refuse(struct sweep_work *work, const struct sweep_run *run, bool has_plan,
		  const struct err *why, struct err **err)
{
	json_t *cell = cell_of(work, run->cell);

	work->refused |= has_plan;
	js_put_str(cell, "why", why->message);
	out_note("cell %zu (%s) is not supported: %s", run->cell + 1, js_str(cell, "name"),
		 why->message);
	leave_out(work, run->cell);
	return sweep_record_write(work->options->journal, work->options->record, err);
}

static int begin(struct sweep_work *work, struct sweep_run *run, struct err **err)
{
	struct journal *journal = work->options->journal;
	struct driver_options options = { .run = run->id };
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(err_freep) struct err *why = NULL;
	const json_t *cell = cell_of(work, run->cell);

	if (decide(work, run->cell, err) < 0)
		return -1;
	if (sweep_cell_plan(work->options->spec, json_object_get(cell, "sets"), journal, &plan,
			    &why) == 0) {
		check_source(work, run, plan);
		options.plan = plan;
		if (driver_begin(journal, &options, &why) == 0) {
			run->state = SWEEP_GOES;
			out_note("run %s begins: cell %zu (%s)", run->id, run->cell + 1,
				 js_str(cell, "name"));
			drive_again(work, run);
			return 0;
		}
	}
	if (why->code == EXIT_BUSY) { /* another process of this sweep has just begun it */
		run->state = SWEEP_GOES;
		return 0;
	}
	if (!is_ours(why))
		return refuse(work, run, plan != NULL, why, err);
	*err = TAKE(why);
	return -1;
}

/* True if the cells before have ended, where a cell depends on them. */
static bool is_due(const struct sweep_work *work, const struct sweep_run *run)
{
	if (!js_bool(work->options->record, "on_best", false))
		return true;
	for (size_t i = 0; i < work->count; i++)
		if (work->runs[i].cell < run->cell &&
		    (work->runs[i].state == SWEEP_WAITS || work->runs[i].state == SWEEP_GOES))
			return false;
	return true;
}

static int begin_more(struct sweep_work *work, struct err **err)
{
	size_t parallel = (size_t)js_int(work->options->record, "parallel", 1);

	for (size_t i = 0; i < work->count && !work->stopping && !work->leaving; i++) {
		struct sweep_run *run = &work->runs[i];

		if (count_in(work, SWEEP_GOES) >= parallel || loop_stop_pending())
			break;
		if (run->state != SWEEP_WAITS || !is_due(work, run))
			continue;
		if (has_failed(work, run->cell))
			leave_out(work, run->cell);
		else if (begin(work, run, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- limits and signals ---- */

/* Stops what is under way; nothing begins any more. */
static void stop_all(struct sweep_work *work, const char *reason)
{
	work->stopping = true;
	for (size_t i = 0; i < work->count; i++) {
		AUTO(err_freep) struct err *why = NULL;
		enum request_result result;

		if (work->runs[i].state == SWEEP_GOES &&
		    request_stop(work->options->journal, work->runs[i].id, reason, &result, &why) <
			    0)
			out_error_later(&work->trouble, &why);
	}
}

static void keep_limits(struct sweep_work *work)
{
	const char *limit = NULL;
	AUTO(auto_free) char *reason = NULL;
	double cost = 0;

	for (size_t i = 0; i < work->count; i++)
		cost += work->runs[i].cost;
	if (!work->stopping)
		limit = sweep_record_limit(work->options->record, cost);
	if (!limit || count_in(work, SWEEP_WAITS) + count_in(work, SWEEP_GOES) == 0)
		return;
	work->gated = true;
	reason = mem_format("%s of sweep %s is reached", limit,
			    js_str(work->options->record, "sweep"));
	out_warning("%s: its runs are stopped", reason);
	stop_all(work, reason);
}

static void leave(struct sweep_work *work)
{
	work->detached = true;
	loop_quit(work->loop);
}

static void on_signal(void *arg)
{
	struct sweep_work *work = arg;

	if (!work->options->stop_on_interrupt || work->leaving) {
		leave(work);
		return;
	}
	work->leaving = true;
	out_note("stopping the runs that are under way");
	stop_all(work, "the sweep was stopped");
}

static void on_hangup(void *arg)
{
	leave(arg);
}

/* ---- the loop ---- */

static int64_t pause_ms(const struct sweep_work *work)
{
	int64_t gone = clock_mono_now().ms - work->since.ms, pause = gone / 10;

	if (journal_is_remote(work->options->journal))
		return LOOK_REMOTE_MS;
	return pause < LOOK_MS ? LOOK_MS : pause > LOOK_MOST_MS ? LOOK_MOST_MS : pause;
}

/* Another process may have stopped the sweep. */
static int heed_stop(struct sweep_work *work, struct err **err)
{
	const char *id = js_str(work->options->record, "sweep");
	AUTO(auto_free) char *reason = NULL;
	int stopped = 0;

	if (!work->leaving)
		stopped = sweep_record_is_stopped(work->options->journal, id, &reason, err);
	if (stopped <= 0)
		return stopped;
	work->leaving = true;
	out_note("sweep %s is stopped: nothing of it begins any more", id);
	stop_all(work, reason);
	return 0;
}

static int turn(struct sweep_work *work, struct err **err)
{
	for (size_t i = 0; i < work->count; i++) {
		struct sweep_run *run = &work->runs[i];
		bool undriven;

		if (run->state != SWEEP_GOES)
			continue;
		if (look(work, run, &undriven, err) < 0)
			return -1;
		if (undriven)
			drive_again(work, run);
	}
	if (heed_stop(work, err) < 0)
		return -1;
	keep_limits(work);
	return begin_more(work, err);
}

static void on_turn(void *arg)
{
	struct sweep_work *work = arg;
	bool waits;

	work->result = turn(work, work->err);
	waits = count_in(work, SWEEP_WAITS) > 0 && !work->stopping && !work->leaving;
	if (work->result < 0 || (count_in(work, SWEEP_GOES) == 0 && !waits))
		loop_quit(work->loop);
	else
		loop_after(work->loop, pause_ms(work), on_turn, work);
}

/* SIGHUP is left alone where it is ignored, as under nohup. */
static void watch_signals(struct sweep_work *work)
{
	struct sigaction now;

	loop_on_signal(work->loop, SIGINT, on_signal, work);
	loop_on_signal(work->loop, SIGTERM, on_signal, work);
	if (sigaction(SIGHUP, NULL, &now) < 0 || now.sa_handler != SIG_IGN)
		loop_on_signal(work->loop, SIGHUP, on_hangup, work);
}

static int outcome(struct sweep_work *work, struct err **err)
{
	const char *id = js_str(work->options->record, "sweep");
	bool any = false;

	if (work->detached) {
		out_note("sweep %s is left; runs that are under way go on; 'stoker sweep SPEC "
			 "--id %s' goes on with it",
			 id, id);
		return EXIT_DETACHED;
	}
	if (work->leaving)
		return EXIT_STOPPED;
	if (work->trouble) {
		*err = TAKE(work->trouble);
		return -1;
	}
	for (size_t i = 0; i < work->count; i++)
		any |= work->runs[i].succeeded;
	if (work->gated)
		return EXIT_GATE;
	if (work->refused)
		return EXIT_REFUSED;
	return any ? EXIT_DONE : EXIT_RUN_FAILED;
}

int sweep_work_run(const struct sweep_options *options, struct err **err)
{
	AUTO(work_release)
	struct sweep_work work = { .options = options, .since = clock_mono_now(), .err = err };

	list_runs(&work);
	if (loop_new(&work.loop, err) < 0)
		return -1;
	watch_signals(&work);
	if (look_at_all(&work, err) < 0)
		return -1;
	loop_after(work.loop, 0, on_turn, &work);
	if (loop_run(work.loop, err) < 0 || work.result < 0)
		return -1;
	return outcome(&work, err);
}
