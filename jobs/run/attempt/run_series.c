/* Readings of a run: see run_series.h. */
#include "jobs/run/attempt/run_series.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/tail.h"
#include "jobs/engine/engine.h"
#include "jobs/flow/flow.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/plan.h"
#include "jobs/series/series_mark.h"
#include "jobs/series/series_read.h"
#include "jobs/store/order.h"

#define CHUNK      ((size_t)256 << 10)
#define LOSSES_MAX 1000

/* A start of the command: the first of an attempt, or one by the service. */
struct run_series_start {
	int64_t first_step, last_step; /* the smallest and the largest; -1: none */
	int64_t made, again; /* the largest of earlier starts, the smallest of later ones */
};

struct run_series_attempt {
	int64_t number;
	char *job, *prefix;
	bool claimed, ended;
	struct run_series_start *starts;
	size_t count;
};

struct run_series {
	json_t *plan;
	const json_t *specs; /* of the metrics; borrowed from the plan */
	struct store *workspace;
	struct engine *engine;
	struct metric_reader *reader;
	struct metric_reading *readings; /* room for those of a line */
	struct run_series_attempt *attempts;
	size_t count;
	bool measured; /* the steps of each start are known */
	struct run_series_loss *losses;
	size_t loss_count;
};

/* ---- the run ---- */

static int on_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct run_series *series = arg;
	struct run_series_attempt *attempt;
	const char *run = js_str(row, "run");

	(void)err;
	if (!ev)
		return 0;
	if (ev->kind == EV_RUN_CREATED)
		series->plan = json_incref(ev->plan);
	if (ev->kind == EV_ATTEMPT_CLAIMED && ev->phase == PHASE_TRAIN && series->count > 0)
		series->attempts[series->count - 1].claimed = true;
	if (ev->kind == EV_ATTEMPT_ENDED && ev->phase == PHASE_TRAIN && series->count > 0)
		series->attempts[series->count - 1].ended = true;
	if (ev->kind != EV_ATTEMPT_INTENDED || ev->phase != PHASE_TRAIN)
		return 0;
	series->attempts = mem_room(series->attempts, series->count, sizeof *series->attempts);
	attempt = &series->attempts[series->count++];
	*attempt = (struct run_series_attempt){ .number = ev->attempt, .job = mem_copy(ev->job) };
	attempt->prefix = order_attempt_prefix(run, ev->phase, ev->attempt);
	return 0;
}

static int open_places(struct run_series *series, struct err **err)
{
	const char *name = js_str(series->plan, "engine");
	const struct engine_ops *ops = engine_find(name);
	struct engine_where where = { .workspace = js_str(series->plan, "workspace"),
				      .plan = series->plan };

	if (!ops)
		return err_set(err, EXIT_REFUSED, "engine '%s' is not part of this version",
			       name ? name : "");
	if (aws_account_enter_region(series->plan, err) < 0 ||
	    ops->open(&where, &series->engine, err) < 0)
		return -1;
	return store_open(where.workspace, &series->workspace, err);
}

int run_series_open_any(struct journal *journal, const char *run, struct run_series **ret,
			struct err **err)
{
	AUTO(run_series_freep) struct run_series *series = mem_zero(1, sizeof *series);

	if (journal_read(journal, run, 1, on_event, series, err) < 0)
		return -1;
	series->specs = json_object_get(series->plan, "metrics");
	if (metric_reader_new(series->specs, &series->reader, err) < 0 ||
	    open_places(series, err) < 0)
		return -1;
	series->readings = mem_zero(metric_reader_count(series->reader), sizeof *series->readings);
	*ret = TAKE(series);
	return 0;
}

int run_series_open(struct journal *journal, const char *run, struct run_series **ret,
		    struct err **err)
{
	AUTO(run_series_freep) struct run_series *series = NULL;

	if (run_series_open_any(journal, run, &series, err) < 0)
		return -1;
	if (json_array_size(series->specs) == 0) {
		err_set(err, EXIT_REFUSED, "the spec of run %s has no metrics", run);
		return err_hint(err, "name the numbers that its log prints: 'stoker help metrics'");
	}
	*ret = TAKE(series);
	return 0;
}

void run_series_freep(struct run_series **series)
{
	struct run_series *s = *series;

	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		free(s->attempts[i].job);
		free(s->attempts[i].prefix);
		free(s->attempts[i].starts);
	}
	free(s->attempts);
	free(s->losses);
	free(s->readings);
	metric_reader_freep(&s->reader);
	if (s->engine)
		s->engine->ops->close(s->engine);
	store_freep(&s->workspace);
	json_decref(s->plan);
	free(s);
	*series = NULL;
}

size_t run_series_metrics(const struct run_series *series)
{
	return metric_reader_count(series->reader);
}

const char *run_series_name(const struct run_series *series, size_t metric)
{
	return metric_reader_name(series->reader, metric);
}

size_t run_series_find(const struct run_series *series, const char *name)
{
	for (size_t i = 0; i < run_series_metrics(series); i++)
		if (strcmp(run_series_name(series, i), name) == 0)
			return i;
	return SIZE_MAX;
}

int run_series_absent(const struct run_series *series, const char *run, const char *name,
		      enum exit_code code, struct err **err)
{
	AUTO(sb_release) struct sb all = SB_INIT_MAX(400);

	for (size_t i = 0; i < run_series_metrics(series); i++)
		sb_addf(&all, "%s%s", i ? ", " : "", run_series_name(series, i));
	err_set(err, code, "run %s has no metric '%s'", run, name);
	return err_hint(err, "its spec has %s", all.text);
}

const json_t *run_series_plan(const struct run_series *series)
{
	return series->plan;
}

/* ---- one log ---- */

/* The log of a node, while its readings are told. */
struct run_series_log {
	struct run_series *series;
	struct run_series_attempt *attempt;
	int node;
	uint64_t told;  /* place in the log up to which all is told */
	int64_t step;   /* the newest there */
	uint32_t start; /* the newest there */
	struct tail tail;
	run_series_fn fn;
	void *arg;
	int answer;
	struct err **err;
	/* Members for a log that is a service's events: which lines of it are told (NULL: another
	 * log), how many readings behind them are, and whether the service still has the last
	 * one. */
	const struct series_mark *mark;
	uint64_t told_more;
	bool connected, has_lines, is_muted;
};

static void tell(struct run_series_log *log, const struct series_point *point, bool late)
{
	struct run_series *series = log->series;
	struct run_reading reading = {
		.attempt = log->attempt->number,
		.node = log->node,
		.name = metric_reader_name(series->reader, point->metric),
		.metric = point->metric,
		.step = point->step,
		.at = point->at,
		.value = point->value,
		.late = late,
		.counts = true,
	};
	/* A start that is newer than the measurement has none after it. */
	if (series->measured && log->start < log->attempt->count) {
		const struct run_series_start *start = &log->attempt->starts[log->start];
		/* A reading before the first step goes with that step; if there is none, it counts
		 * while no later start makes any. */
		int64_t place = point->step >= 0         ? point->step
				: start->first_step >= 0 ? start->first_step
							 : INT64_MAX - 1;

		reading.replayed = point->step >= 0 && point->step <= start->made;
		reading.counts = place < start->again;
	}
	reading.start = log->start;
	if (log->answer == 0 && !log->is_muted)
		log->answer = log->fn(log->arg, &reading, log->err);
}

static struct utc time_of_line(const struct run_series_log *log, bool *ret_exact)
{
	struct engine *engine = log->series->engine;
	struct utc at = { 0 };

	if (engine->ops->log_time)
		at = engine->ops->log_time(engine, log->attempt->job, log->attempt->prefix,
					   log->node, log->tail.line_at);
	*ret_exact = at.ms > 0;
	if (at.ms == 0 && engine->ops->log_written)
		at = engine->ops->log_written(engine, log->attempt->job, log->attempt->prefix,
					      log->node, log->tail.line_at);
	return at;
}

static void note_start(struct run_series_log *log, const char *line, size_t len)
{
	uint32_t start = metric_reader_start(line, len, log->start);

	if (start != log->start)
		log->step = -1;
	log->start = start;
}

/* Lines are lost at this place of the log. */
static void note_loss(struct run_series_log *log)
{
	struct run_series *series = log->series;

	if (log->is_muted || series->loss_count >= LOSSES_MAX)
		return;
	if (!series->losses)
		series->losses = mem_zero(LOSSES_MAX, sizeof *series->losses);
	series->losses[series->loss_count++] =
		(struct run_series_loss){ log->attempt->number, log->node, log->step };
}

/* True if the line of a service's log was told before. */
static bool is_told(struct run_series_log *log)
{
	struct engine *engine = log->series->engine;
	const struct run_series_attempt *attempt = log->attempt;
	struct utc at = engine->ops->log_time(engine, attempt->job, attempt->prefix, log->node,
					      log->tail.line_at);
	uint64_t id = engine->ops->log_id(engine, attempt->job, attempt->prefix, log->node,
					  log->tail.line_at);

	log->has_lines = true;
	log->connected |= id == log->mark->id;
	if (series_mark_has(log->mark, id, at))
		return true;
	if (!log->connected && at.ms > log->mark->at_ms) {
		note_loss(log);
		log->connected = true;
	}
	return false;
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct run_series_log *log = arg;
	struct metric_reading *readings = log->series->readings;
	struct utc at = { 0 };
	bool is_exact = false;
	size_t count;

	if (is_agent_line(line, len))
		note_start(log, line, len);
	if (len == 0 || is_agent_line(line, len) || (log->mark && is_told(log)))
		return;
	count = metric_reader_line(log->series->reader, &log->step, line, len, readings);
	if (count > 0)
		at = time_of_line(log, &is_exact);
	for (size_t i = 0; i < count; i++)
		if (log->told_more > 0)
			log->told_more--;
		else
			tell(log,
			     &(struct series_point){ readings[i].metric, readings[i].step, at,
						     readings[i].value },
			     !is_exact);
}

/* Tells what the log itself has from where it is told up to `end`; UINT64_MAX: all of it. */
static int tell_log(struct run_series_log *log, uint64_t end, struct err **err)
{
	struct engine *engine = log->series->engine;

	tail_release(&log->tail);
	tail_init(&log->tail);
	log->tail.offset = log->told;
	while (log->answer == 0 && log->tail.offset < end) {
		AUTO(sb_release) struct sb bytes = SB_INIT_MAX(CHUNK);
		uint64_t next = log->tail.offset;
		size_t most = end - next < CHUNK ? (size_t)(end - next) : CHUNK;

		if (engine->ops->logs(engine, log->attempt->job, log->attempt->prefix, log->node,
				      &next, most, &bytes, err) < 0)
			return -1;
		if (bytes.len == 0)
			break;
		tail_feed(&log->tail, bytes.text, bytes.len, on_line, log);
		log->tail.offset = next;
	}
	/* A line that may still grow is none yet. */
	if (log->answer == 0 && end == UINT64_MAX && log->attempt->ended)
		tail_end(&log->tail, on_line, log);
	return log->answer;
}

static int on_block(void *arg, struct series_block *block, struct err **err)
{
	struct run_series_log *log = arg;
	struct series_point point = { 0 };

	if (block->from > log->told && tell_log(log, block->from, err) != 0)
		return log->answer < 0 || *err ? -1 : 1;
	if (block->start > log->start && block->start < METRIC_STARTS_MAX)
		log->start = block->start;
	while (log->answer == 0 && series_block_next(block, &point))
		if (point.metric < metric_reader_count(log->series->reader))
			tell(log, &point, block->flags & SERIES_LATE);
	log->told = block->to;
	log->step = block->step_after;
	return log->answer;
}

/* ---- the log of a service ---- */

/* The part of it that is kept (series_stream.h), while that is told. */
struct run_series_kept {
	struct run_series_log *log;
	struct series_mark mark;
	uint64_t mark_to; /* its place */
	int64_t mark_step;
	bool ended, end_lost;
	bool has_hole; /* something is kept behind a part that is not */
	bool past;     /* and is told all the same */
};

static int on_kept(void *arg, struct series_block *block, struct err **err)
{
	struct run_series_kept *kept = arg;
	struct run_series_log *log = kept->log;
	struct series_point point = { 0 };

	(void)err;
	kept->has_hole |= block->from > log->told;
	if (block->from > log->told && (!kept->past || block->flags & SERIES_MARK))
		return 0;
	if (block->to >= log->told && series_mark_decode(block, &kept->mark)) {
		kept->mark_to = block->to;
		kept->mark_step = block->step_after;
		kept->ended = block->flags & SERIES_END;
		kept->end_lost = kept->ended && block->flags & SERIES_LOST;
		return 0;
	}
	if (block->from > log->told || (block->flags & SERIES_LOST && block->from == log->told))
		note_loss(log);
	for (uint64_t at = block->from;
	     log->answer == 0 && !(block->flags & SERIES_MARK) && series_block_next(block, &point);
	     at++)
		if (at >= log->told && point.metric < metric_reader_count(log->series->reader))
			tell(log, &point, false);
	if (block->to > log->told) {
		log->told = block->to;
		log->step = block->step_after;
	}
	return log->answer;
}

/* Tells what the service has behind the mark. */
static int tell_events(struct run_series_log *log, const struct run_series_kept *kept,
		       struct err **err)
{
	struct engine *engine = log->series->engine;
	const struct run_series_attempt *attempt = log->attempt;
	json_auto_t *place = json_pack("{s:I}", "at", (json_int_t)kept->mark.at_ms);
	int result;

	log->mark = &kept->mark;
	log->told_more = log->told - kept->mark_to;
	log->step = kept->mark_step;
	log->connected = kept->mark.at_ms == 0;
	log->told = 0;
	if (kept->mark.at_ms > 0)
		engine->ops->log_go_on(engine, attempt->job, attempt->prefix, log->node, 0, place);
	result = tell_log(log, UINT64_MAX, err);
	log->mark = NULL;
	return result;
}

/* True if the service has the log still, where the mark is: then it has what is not kept. */
static int has_log_still(const struct run_series_log *log, const struct run_series_kept *kept,
			 bool *ret, struct err **err)
{
	struct run_series_log muted = *log;
	int result;

	muted.is_muted = true;
	tail_init(&muted.tail);
	result = tell_events(&muted, kept, err);
	tail_release(&muted.tail);
	*ret = muted.connected && muted.has_lines;
	return result;
}

/* Tells what is kept of a service's log, and what the service has behind that. Readings behind a
 * part that is lost in the workspace are told only if the service has lost that part too. */
static int tell_kept(struct run_series_log *log, const struct series_place *place,
		     struct run_series_kept *kept, struct err **err)
{
	int result = series_read(place, on_kept, kept, err);
	bool has_log = true;

	if (result == 0 && log->answer == 0 && !kept->ended && kept->has_hole)
		result = has_log_still(log, kept, &has_log, err);
	if (result == 0 && log->answer == 0 && !has_log) {
		kept->past = true;
		result = series_read(place, on_kept, kept, err);
	}
	if (result == 0 && log->answer == 0 && !kept->ended) {
		result = tell_events(log, kept, err);
		kept->end_lost = log->attempt->ended &&
				 (kept->mark.at_ms > 0 ? !log->connected
						       : log->attempt->claimed && !log->has_lines);
	}
	if (result == 0 && kept->end_lost)
		note_loss(log);
	return result;
}

static int tell_service_log(struct run_series_log *log, const struct series_place *place,
			    struct err **err)
{
	struct run_series_kept kept = { .log = log, .mark_step = -1 };
	int result = tell_kept(log, place, &kept, err);

	series_mark_release(&kept.mark);
	return result;
}

/* ---- all logs ---- */

static int tell_node(struct run_series *series, struct run_series_attempt *attempt, int node,
		     run_series_fn fn, void *arg, struct err **err)
{
	struct run_series_log log = { .series = series,
				      .attempt = attempt,
				      .node = node,
				      .step = -1,
				      .fn = fn,
				      .arg = arg,
				      .err = err };
	bool is_stream = !toolkit_limits_has_agent(series->plan) && series->engine->ops->log_id;
	struct series_place place = { series->workspace, attempt->prefix, node,     series->specs,
				      SERIES_FILE,       UINT64_MAX,      is_stream };
	const struct engine_ops *ops = series->engine->ops;
	int result;

	tail_init(&log.tail);
	if (ops->log_size(series->engine, attempt->job, attempt->prefix, node, &place.log_size,
			  err) < 0)
		return -1;
	result = is_stream ? tell_service_log(&log, &place, err)
			   : series_read(&place, on_block, &log, err);
	if (result == 0 && log.answer == 0 && !is_stream)
		result = tell_log(&log, UINT64_MAX, err);
	tail_release(&log.tail);
	return *err ? -1 : log.answer != 0 ? log.answer : result;
}

/* ---- all ---- */

static int measure(void *arg, const struct run_reading *reading, struct err **err)
{
	struct run_series_attempt *attempt = arg;
	struct run_series_start *start;

	(void)err;
	while (attempt->count <= reading->start) {
		attempt->starts =
			mem_room(attempt->starts, attempt->count, sizeof *attempt->starts);
		attempt->starts[attempt->count++] =
			(struct run_series_start){ -1, -1, -1, INT64_MAX };
	}
	start = &attempt->starts[reading->start];
	if (reading->step < 0)
		return 0;
	if (start->first_step < 0 || reading->step < start->first_step)
		start->first_step = reading->step;
	if (reading->step > start->last_step)
		start->last_step = reading->step;
	return 0;
}

/* Tells each start what the others before and behind it have made. */
static void compare(struct run_series *series)
{
	int64_t made = -1, again = INT64_MAX;

	for (size_t i = 0; i < series->count; i++)
		for (size_t k = 0; k < series->attempts[i].count; k++) {
			struct run_series_start *start = &series->attempts[i].starts[k];

			start->made = made;
			made = start->last_step > made ? start->last_step : made;
		}
	for (size_t i = series->count; i-- > 0;)
		for (size_t k = series->attempts[i].count; k-- > 0;) {
			struct run_series_start *start = &series->attempts[i].starts[k];

			start->again = again;
			if (start->first_step >= 0 && start->first_step < again)
				again = start->first_step;
		}
}

static int tell_all(struct run_series *series, run_series_fn fn, void *arg, struct err **err)
{
	int nodes = (int)js_int(series->plan, "nodes", 1);

	series->loss_count = 0;
	for (size_t i = 0; i < series->count; i++)
		for (int node = 0; node < nodes; node++) {
			struct run_series_attempt *attempt = &series->attempts[i];
			int answer = tell_node(series, attempt, node, fn, arg ? arg : attempt, err);

			if (answer != 0)
				return answer < 0 ? -1 : 0;
		}
	return 0;
}

int run_series_each(struct run_series *series, run_series_fn fn, void *arg, struct err **err)
{
	/* Later readings decide whether an earlier one counts. */
	if (!series->measured && tell_all(series, measure, NULL, err) < 0)
		return -1;
	if (!series->measured)
		compare(series);
	series->measured = true;
	return tell_all(series, fn, arg, err);
}

size_t run_series_losses(const struct run_series *series, const struct run_series_loss **ret)
{
	*ret = series->losses;
	return series->loss_count;
}

/* ---- functions for run_usage.c ---- */

const char *run_series_attempt(const struct run_series *series, size_t at, int64_t *ret_number)
{
	if (at >= series->count)
		return NULL;
	*ret_number = series->attempts[at].number;
	return series->attempts[at].prefix;
}

struct store *run_series_workspace(const struct run_series *series)
{
	return series->workspace;
}
