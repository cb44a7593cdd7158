/* Measuring a run: see measure.h. */
#include "cmd/compare/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/follow/run_view.h"
#include "jobs/base/text/text.h"
#include "jobs/flow/flow.h"
#include "jobs/report/measure/sample_count.h"
#include "jobs/store/order.h"

void measure_release(struct measure *measure)
{
	json_decref(measure->plan);
	json_decref(measure->status);
	json_decref(measure->sets);
	free(measure->cell);
	free(measure->why);
	curve_release(&measure->measured.curve);
}

int measure_target_parse(const char *text, struct measure_target *ret, struct err **err)
{
	size_t name = strcspn(text, "<>="), sign = strspn(text + name, "<>="), len;
	const char *op = text + name;

	*ret = (struct measure_target){ 0 };
	len = text_float(op + sign, strlen(op + sign), &ret->value);
	while (name > 0 && text[name - 1] == ' ')
		name--;
	if (strncmp(op, ">=", 2) == 0 && sign == 2)
		ret->sense = TARGET_AT_LEAST;
	else if (strncmp(op, "<=", 2) == 0 && sign == 2)
		ret->sense = TARGET_AT_MOST;
	else if (*op == '>' && sign == 1)
		ret->sense = TARGET_MORE;
	else if (*op == '<' && sign == 1)
		ret->sense = TARGET_LESS;
	else
		len = 0;
	if (len == 0 || op[sign + len] != '\0' || name == 0 || name >= sizeof ret->metric) {
		err_set(err, EXIT_USAGE, "--to cannot be read: '%s'", text);
		return err_hint(err, "write a metric, one of >= <= > <, and a number: "
				     "--to 'accuracy>=0.95'");
	}
	memcpy(ret->metric, text, name);
	return 0;
}

static bool is_reached(const struct measure_target *target, double value)
{
	switch (target->sense) {
	case TARGET_AT_LEAST:
		return value >= target->value;
	case TARGET_AT_MOST:
		return value <= target->value;
	case TARGET_MORE:
		return value > target->value;
	case TARGET_LESS:
		break;
	}
	return value < target->value;
}

/* ---- the journal ---- */

/* The events of a run, while it is measured. */
struct measure_events {
	struct measure *measure;
	struct step_times *times;
	const struct measure_watch *watch;
	int64_t begun_ms, ended_ms; /* UTC; 0: not known */
};

static void add_saves(struct step_times *times, const struct event *ev)
{
	const json_t *save;
	size_t i;

	json_array_foreach (ev->saves, i, save) {
		const char *from = js_str(save, "from"), *to = js_str(save, "to");
		struct utc begin, end;

		if (from && to && clock_utc_parse(from, &begin) && clock_utc_parse(to, &end))
			step_times_add_save(times, ev->attempt, begin.ms, end.ms);
	}
}

static int on_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct measure_events *events = arg;
	const struct measure_watch *watch = events->watch;
	const json_t *late;
	size_t i;

	(void)err;
	if (!ev)
		return 0;
	if (watch && watch->event)
		watch->event(watch->arg, ev, row);
	if (ev->kind == EV_RUN_CREATED) {
		events->measure->plan = json_incref(ev->plan);
		events->measure->is_debug = json_object_get(ev->plan, "debug") != NULL;
		events->measure->is_benchmark =
			json_is_true(json_object_get(ev->plan, "benchmark"));
		events->begun_ms = ev->at.ms;
	}
	if (ev->kind == EV_RUN_ENDED)
		events->ended_ms = ev->at.ms;
	if (ev->kind == EV_ATTEMPT_ENDED && ev->phase == PHASE_TRAIN && EVENT_HAS(ev, saves))
		add_saves(events->times, ev);
	if (ev->kind == EV_JIT_COMPILED && (!EVENT_HAS(ev, phase) || ev->phase == PHASE_TRAIN))
		json_array_foreach (ev->late, i, late)
			if (json_object_get(late, "after_step"))
				step_times_add_late(events->times, ev->attempt,
						    js_int(late, "after_step", 0));
	return 0;
}

/* Adds up the seconds of a phase's attempts; `member` is what of an attempt. NAN: not known. */
static double sum_of(const json_t *status, const char *phase, const char *member)
{
	const json_t *attempts = json_object_get(status, "attempts"), *attempt;
	double sum = NAN;
	size_t i;

	json_array_foreach (attempts, i, attempt)
		if ((!phase || js_is(attempt, "phase", phase)) && json_object_get(attempt, member))
			sum = (isnan(sum) ? 0 : sum) + js_real(attempt, member, 0);
	return sum;
}

/* Returns when the training was started first, UTC in ms; 0: not known. */
static int64_t train_begin(const json_t *status)
{
	const json_t *attempts = json_object_get(status, "attempts"), *attempt;
	struct utc at = { 0 };
	size_t i;

	json_array_foreach (attempts, i, attempt) {
		const char *started = js_str(attempt, "started");

		if (js_is(attempt, "phase", flow_phase_names[PHASE_TRAIN]) && started &&
		    clock_utc_parse(started, &at))
			return at.ms;
	}
	return 0;
}

/* Phase 1, and what was compiled late. */
static double compile_seconds(const json_t *status)
{
	double ahead = sum_of(status, flow_phase_names[PHASE_PRECOMPILE], "seconds");
	double late = js_real(json_object_get(status, "jit"), "seconds", 0);

	return (isnan(ahead) ? 0 : ahead) + late;
}

/* ---- the series ---- */

struct measure_readings {
	struct measure *measure;
	const struct run_series *series;
	const struct measure_question *question;
	struct step_times *times, *told; /* by the clock; by the log's own word */
	struct sample_count counted;
	int64_t train_ms;
	size_t step, curve, target, samples, throughput, step_time; /* metrics; SIZE_MAX: none */
	int curve_node, told_node;                                  /* -1: not known yet */
	double rates, inverse;                                      /* number, and sum of 1/rate */
};

/* Takes the speed from where the log tells it. */
static void take_told(struct measure_readings *readings, const struct run_reading *reading)
{
	bool is_rate = reading->metric == readings->throughput;

	if ((!is_rate && reading->metric != readings->step_time) || !isfinite(reading->value) ||
	    !(reading->value > 0))
		return;
	if (readings->step != SIZE_MAX &&
	    !step_times_counts(readings->times, reading->attempt, reading->step))
		return;
	if (readings->told_node < 0)
		readings->told_node = reading->node;
	if (reading->node != readings->told_node)
		return;
	if (!is_rate) {
		step_times_add_told(readings->told, reading->attempt, reading->step,
				    reading->value);
		return;
	}
	readings->rates++;
	readings->inverse += 1 / reading->value;
	readings->measure->measured.rate = readings->rates / readings->inverse;
}

static int on_reading(void *arg, const struct run_reading *reading, struct err **err)
{
	struct measure_readings *readings = arg;
	struct measured_run *ret = &readings->measure->measured;
	const struct measure_watch *watch = readings->question->watch;
	struct step_times *times = readings->times;
	uint64_t added = times->added;

	(void)err;
	if (watch && watch->reading)
		watch->reading(watch->arg, reading);
	if (reading->metric == readings->step) {
		step_times_start(times, reading->attempt, reading->start, reading->node);
		step_times_add(times, reading->attempt, reading->node, reading->step,
			       reading->at.ms, reading->late || reading->at.ms == 0);
	}
	if (reading->metric == readings->samples)
		sample_count_add(&readings->counted, reading->attempt, reading->node, reading->step,
				 reading->value);
	if (watch && watch->span && times->added > added)
		watch->span(watch->arg, &times->newest, reading);
	if (!reading->counts)
		return 0;
	take_told(readings, reading);
	if (reading->metric == readings->curve && reading->step >= 0) {
		if (readings->curve_node < 0)
			readings->curve_node = reading->node;
		if (reading->node == readings->curve_node)
			curve_add(&ret->curve, reading->step, reading->value);
	}
	if (reading->metric == readings->target && isinf(ret->reached) && reading->at.ms > 0 &&
	    readings->train_ms > 0 && is_reached(&readings->question->target, reading->value))
		ret->reached = (double)(reading->at.ms - readings->train_ms) / 1000;
	return 0;
}

/* Finds a metric that was asked for by name; SIZE_MAX if none was (NULL). */
static int find_asked(const struct measure_readings *readings, const char *name, size_t *ret,
		      struct err **err)
{
	*ret = name ? run_series_find(readings->series, name) : SIZE_MAX;
	if (*ret == SIZE_MAX && name)
		return run_series_absent(readings->series, readings->measure->run, name,
					 EXIT_REFUSED, err);
	return 0;
}

/* The steps of `events` are read from the log; `told`: those whose seconds it tells itself. */
static int read_series(struct journal *journal, const struct measure_question *question,
		       const struct measure_events *events, struct step_times *told,
		       struct measure *ret, struct err **err)
{
	AUTO(run_series_freep) struct run_series *series = NULL;
	struct measure_readings readings = { .measure = ret,
					     .question = question,
					     .times = events->times,
					     .told = told,
					     .train_ms = train_begin(ret->status),
					     .curve_node = -1,
					     .told_node = -1 };
	const char *target = *question->target.metric ? question->target.metric : NULL;
	const struct run_series_loss *losses;

	if (question->lenient && json_array_size(json_object_get(ret->plan, "metrics")) == 0)
		return 0;
	if (run_series_open(journal, ret->run, &series, err) < 0)
		return -1;
	if (question->watch && question->watch->series)
		question->watch->series(question->watch->arg, series);
	readings.series = series;
	readings.step = order_progress_metric(json_object_get(ret->plan, "metrics"));
	readings.samples = run_series_find(series, METRIC_SAMPLES);
	ret->by_epoch = events->times->epochs =
		readings.step != SIZE_MAX &&
		strcmp(run_series_name(series, readings.step), METRIC_EPOCH) == 0;
	readings.curve = run_series_find(series, question->metric ? question->metric : "loss");
	if (question->metric && readings.curve == SIZE_MAX)
		return run_series_absent(series, ret->run, question->metric, EXIT_REFUSED, err);
	if (find_asked(&readings, target, &readings.target, err) < 0 ||
	    find_asked(&readings, question->throughput, &readings.throughput, err) < 0 ||
	    find_asked(&readings, question->step_time, &readings.step_time, err) < 0)
		return -1;
	if (readings.target != SIZE_MAX)
		ret->measured.reached = INFINITY;
	ret->has_metric = readings.curve != SIZE_MAX;
	ret->measured.curve.is_alone = question->alone;
	if (run_series_each(series, on_reading, &readings, err) < 0)
		return -1;
	ret->measured.samples = sample_count_per_step(&readings.counted);
	ret->loss_count = run_series_losses(series, &losses);
	if (ret->loss_count > 0)
		ret->loss = losses[0];
	curve_sort(&ret->measured.curve);
	return 0;
}

/* ---- figures of a run ---- */

/* A run without figures. */
static struct measured_run unmeasured(const char *run)
{
	return (struct measured_run){ .run = run,
				      .mean = NAN,
				      .p50 = NAN,
				      .p95 = NAN,
				      .samples = NAN,
				      .rate = NAN,
				      .workers = NAN,
				      .wall = NAN,
				      .billable = NAN,
				      .compile = NAN,
				      .cost = NAN,
				      .price = NAN,
				      .reached = NAN };
}

/* Returns why a run of a sweep does not count, in the words of what refused it if there are any;
 * NULL: it does. The caller frees it. */
static char *why_not(const json_t *status)
{
	const json_t *attempts = json_object_get(status, "attempts");
	const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
	const char *words[] = { js_str(last, "evidence"), js_str(status, "evidence"),
				js_str(status, "reason"), js_str(status, "state") };

	if (!json_object_get(status, "exit_code") || js_is(status, "state", "succeeded"))
		return NULL;
	/* A run that was stopped on request refused nothing. */
	for (size_t i = js_is(status, "state", "stopped") ? 2 : 0; i < STK_LENGTH(words); i++)
		if (words[i])
			return mem_copy(words[i]);
	return mem_copy("it failed");
}

static int refuse_debug(const char *run, struct err **err)
{
	err_set(err, EXIT_REFUSED, "run %s has 'debug: true': a debug run is in no comparison",
		run);
	return err_hint(err, "run it again without 'debug', or see 'stoker report %s'", run);
}

int measure_take(struct journal *journal, const struct measure_question *question,
		 struct measure *ret, struct err **err)
{
	AUTO(step_times_release) struct step_times times = { 0 }, told = { 0 };
	struct step_times *steps = question->step_time ? &told : &times;
	struct measure_events events = { .measure = ret,
					 .times = &times,
					 .watch = question->watch };
	struct measured_run *measured = &ret->measured;
	const json_t *cost;

	*measured = unmeasured(ret->run);
	if (ret->why)
		return 0;
	if (cmd_run_view(journal, ret->run, true, &ret->status, err) < 0 ||
	    cmd_run_check_begun(journal, ret->run, ret->status, err) < 0 ||
	    journal_read(journal, ret->run, 1, on_event, &events, err) < 0)
		return -1;
	ret->why = ret->cell ? why_not(ret->status) : NULL;
	if (ret->why)
		return 0;
	if (ret->is_debug && !question->lenient)
		return refuse_debug(ret->run, err);
	/* A cell may be compared by its time and cost alone. */
	if ((!ret->cell || json_array_size(json_object_get(ret->plan, "metrics")) > 0) &&
	    read_series(journal, question, &events, &told, ret, err) < 0)
		return -1;
	if (ret->is_debug) {
		curve_release(&measured->curve);
		*measured = unmeasured(ret->run);
		return 0;
	}
	cost = json_object_get(ret->status, "cost");
	measured->steps = steps->steps;
	measured->mean = step_times_mean(steps);
	measured->p50 = step_times_quantile(steps, 0.5);
	measured->p95 = step_times_quantile(steps, 0.95);
	measured->samples = js_real(ret->plan, "samples_per_step", measured->samples);
	measured->workers = (double)js_int(ret->plan, "nodes", 1);
	measured->wall =
		events.ended_ms > 0 ? (double)(events.ended_ms - events.begun_ms) / 1000 : NAN;
	measured->billable = sum_of(ret->status, NULL, "billable");
	measured->compile = compile_seconds(ret->status);
	measured->cost = js_real(cost, "accrued", NAN);
	measured->price = js_real(cost, "per_hour", NAN);
	return 0;
}
