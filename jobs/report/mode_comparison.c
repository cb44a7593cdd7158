/* Cost of a start with and without precompiling: see mode_comparison.h. */
#include "jobs/report/mode_comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The names are those of compile.mode. */
static const char *const mode_names[MODE_COUNT] = { "jit", "aot" };

/* An attempt: its nodes, and when they were held. UTC in milliseconds; 0: not known. */
struct mode_comparison_span {
	int64_t attempts, nodes;
	int64_t from, first_step_at, to;
	int64_t first_step, last_step; /* -1: no step was shown */
};

struct mode_run {
	char *id, *name, *engine, *key, *host;
	enum mode mode;
	int64_t nodes; /* from the plan */
	double price;  /* per node and hour; 0: not known */
	bool compiles, succeeded, complete, taken_over;
	bool serves_stage; /* the newest attempt is of a stage's own phase 1 */
	struct mode_comparison_span spans[PHASE_COUNT];
	int64_t verified_at;
	/* mode aot: graphs compiled in training, before or after its first step */
	int64_t late_graphs;
	double late_seconds; /* time for graphs compiled after the first step of the training */
	/* distinct graphs, of phase 1 or, in mode jit, of the training */
	int64_t graphs, hits;
};

/* Time and node-seconds of a run up to some point. */
struct figure {
	int64_t step;
	double seconds, node_seconds;
};

struct mode_run *mode_run_new(const char *run)
{
	struct mode_run *ret = mem_zero(1, sizeof *ret);

	ret->id = mem_copy(run);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		ret->spans[phase].first_step = ret->spans[phase].last_step = -1;
	return ret;
}

void mode_run_freep(struct mode_run **run)
{
	struct mode_run *r = *run;

	if (!r)
		return;
	free(r->id);
	free(r->name);
	free(r->engine);
	free(r->key);
	free(r->host);
	free(r);
	*run = NULL;
}

static void set_text(char **ret, const char *text)
{
	free(*ret);
	*ret = text ? mem_copy(text) : NULL;
}

static void on_created(struct mode_run *run, const struct event *ev)
{
	const json_t *compile = json_object_get(ev->plan, "compile");
	const char *mode = js_str(compile, "mode");

	set_text(&run->name, ev->name);
	set_text(&run->engine, ev->engine);
	set_text(&run->key, js_str(compile, "graph_key"));
	run->compiles = run->key != NULL;
	run->mode = mode && strcmp(mode, mode_names[MODE_JIT]) == 0 ? MODE_JIT : MODE_AOT;
	run->nodes = js_int(ev->plan, "nodes", 1);
	run->price = json_number_value(js_path(ev->plan, "limits.price"));
}

static void on_claimed(struct mode_run *run, const struct event *ev)
{
	struct mode_comparison_span *span = &run->spans[ev->phase];

	if (span->from == 0)
		span->from = EVENT_HAS(ev, since) ? ev->since : ev->at.ms;
	if (EVENT_HAS(ev, host))
		set_text(&run->host, ev->host);
}

static void on_ended(struct mode_run *run, const struct event *ev)
{
	struct mode_comparison_span *span = &run->spans[ev->phase];

	span->to = EVENT_HAS(ev, finished) ? ev->finished : ev->at.ms;
}

static void on_progress(struct mode_run *run, const struct event *ev)
{
	struct mode_comparison_span *span = &run->spans[PHASE_TRAIN];

	if (!EVENT_HAS(ev, step))
		return;
	if (span->first_step < 0) {
		span->first_step = ev->step;
		span->first_step_at = EVENT_HAS(ev, since) ? ev->since : ev->at.ms;
	}
	if (ev->step > span->last_step)
		span->last_step = ev->step;
}

static void on_verified(struct mode_run *run, const struct event *ev)
{
	run->complete = ev->complete;
	run->verified_at = ev->at.ms;
	/* The defaults for absent fields make the run fail mode_run_measures(). */
	run->graphs = EVENT_HAS(ev, compiled) ? ev->compiled : 0;
	run->hits = EVENT_HAS(ev, hits) ? ev->hits : 1;
	if (EVENT_HAS(ev, graphs) && ev->graphs != run->graphs)
		run->hits = 1;
}

static void on_jit(struct mode_run *run, const struct event *ev)
{
	const json_t *row;
	size_t i;

	if (EVENT_HAS(ev, phase) && ev->phase != PHASE_TRAIN)
		return;
	/* Each event repeats the totals of its attempt. */
	run->late_seconds = 0;
	json_array_foreach (EVENT_HAS(ev, late) ? ev->late : NULL, i, row)
		if (json_object_get(row, "after_step"))
			run->late_seconds += js_real(row, "seconds", 0);
	if (run->mode != MODE_JIT) {
		run->late_graphs = ev->graphs;
		return;
	}
	run->graphs = ev->graphs;
	run->hits = EVENT_HAS(ev, hits) ? ev->hits : 1;
}

/* Phase 1 of a stage after the training is no part of the comparison. */
static bool is_of_stage(struct mode_run *run, const struct event *ev)
{
	if (ev->kind == EV_ATTEMPT_INTENDED || ev->kind == EV_CACHE_VERIFIED)
		run->serves_stage = EVENT_HAS(ev, stage);
	if (ev->kind == EV_CACHE_VERIFIED)
		return run->serves_stage;
	return run->serves_stage && ev->phase == PHASE_PRECOMPILE &&
	       (ev->kind == EV_ATTEMPT_INTENDED || ev->kind == EV_ATTEMPT_CLAIMED ||
		ev->kind == EV_ATTEMPT_ENDED);
}

void mode_run_add(struct mode_run *run, const struct event *ev)
{
	if (is_of_stage(run, ev))
		return;
	switch (ev->kind) {
	case EV_RUN_CREATED:
		on_created(run, ev);
		break;
	case EV_DRIVER_TOOK_OVER:
		run->taken_over |= ev->epoch > 1;
		break;
	case EV_ATTEMPT_INTENDED:
		run->spans[ev->phase].attempts++;
		run->spans[ev->phase].nodes = EVENT_HAS(ev, nodes) ? ev->nodes : run->nodes;
		break;
	case EV_ATTEMPT_CLAIMED:
		on_claimed(run, ev);
		break;
	case EV_ATTEMPT_ENDED:
		on_ended(run, ev);
		break;
	case EV_TRAIN_PROGRESS:
		on_progress(run, ev);
		break;
	case EV_CACHE_VERIFIED:
		on_verified(run, ev);
		break;
	case EV_JIT_COMPILED:
		on_jit(run, ev);
		break;
	case EV_RUN_ENDED:
		run->succeeded = ev->state == OUTCOME_SUCCEEDED;
		break;
	default:
		break;
	}
}

bool mode_run_may_be(const struct mode_run *run, const char *name, const char *graph_key)
{
	return run->compiles && run->name && strcmp(run->name, name) == 0 &&
	       strcmp(run->key, graph_key) == 0;
}

/* True if the phase took one attempt, with both ends known. */
static bool is_whole(const struct mode_comparison_span *span)
{
	return span->attempts == 1 && span->from > 0 && span->to >= span->from;
}

bool mode_run_measures(const struct mode_run *run, enum mode *ret)
{
	const struct mode_comparison_span *first = &run->spans[PHASE_PRECOMPILE];

	if (!run->compiles || !run->succeeded || run->taken_over ||
	    !is_whole(&run->spans[PHASE_TRAIN]) || run->graphs <= 0 || run->hits != 0)
		return false;
	if (run->mode == MODE_JIT ? first->attempts != 0 : !is_whole(first) || !run->complete)
		return false;
	*ret = run->mode;
	return true;
}

bool mode_runs_match(const struct mode_run *jit, const struct mode_run *aot)
{
	if (strcmp(jit->key, aot->key) != 0 || strcmp(jit->name, aot->name) != 0 ||
	    strcmp(jit->engine, aot->engine) != 0)
		return false;
	return strcmp(jit->engine, "local") != 0 ||
	       (jit->host && aot->host && strcmp(jit->host, aot->host) == 0);
}

/* ---- figures --------------------------------------------------------------------- */

static void add_span(struct figure *figure, const struct mode_comparison_span *span, int64_t to)
{
	double seconds = (double)(to - span->from) / 1000;

	figure->seconds += seconds;
	figure->node_seconds += seconds * (double)span->nodes;
}

/* 0 if the run had nothing to verify. */
static double verify_seconds(const struct mode_run *run)
{
	int64_t ms = run->verified_at - run->spans[PHASE_PRECOMPILE].to;

	return run->mode == MODE_AOT && ms > 0 ? (double)ms / 1000 : 0;
}

static struct figure precompile_of(const struct mode_run *run)
{
	const struct mode_comparison_span *span = &run->spans[PHASE_PRECOMPILE];
	struct figure ret = { .step = -1 };

	if (run->mode == MODE_AOT)
		add_span(&ret, span, span->to);
	return ret;
}

/* Figure of the run up to time `to` of the training. */
static struct figure whole_of(const struct mode_run *run, int64_t to, int64_t step)
{
	struct figure ret = precompile_of(run);

	ret.seconds += verify_seconds(run);
	add_span(&ret, &run->spans[PHASE_TRAIN], to);
	ret.step = step;
	return ret;
}

static struct figure start_of(const struct mode_run *run)
{
	const struct mode_comparison_span *span = &run->spans[PHASE_TRAIN];
	struct figure ret = whole_of(run, span->first_step_at, span->first_step);

	ret.seconds += run->late_seconds;
	ret.node_seconds += run->late_seconds * (double)span->nodes;
	return ret;
}

static struct figure end_of(const struct mode_run *run)
{
	const struct mode_comparison_span *span = &run->spans[PHASE_TRAIN];

	return whole_of(run, span->to, span->last_step);
}

static json_t *figure_json(const struct mode_run *run, struct figure figure)
{
	json_t *object = json_object();

	if (figure.step >= 0)
		js_put(object, "step", json_integer(figure.step));
	js_put(object, "seconds", json_real(figure.seconds));
	js_put(object, "node_seconds", json_real(figure.node_seconds));
	if (run->price > 0)
		js_put(object, "cost", json_real(figure.node_seconds * run->price / 3600));
	return object;
}

static json_t *run_json(const struct mode_run *run)
{
	json_t *object = json_object();

	js_put_str(object, "run", run->id);
	js_put(object, "graphs", json_integer(run->graphs));
	js_put(object, "nodes", json_integer(run->spans[PHASE_TRAIN].nodes));
	if (run->mode == MODE_AOT) {
		js_put(object, "precompile", figure_json(run, precompile_of(run)));
		js_put(object, "verify_seconds", json_real(verify_seconds(run)));
	}
	if (run->late_graphs > 0)
		js_put(object, "late_graphs", json_integer(run->late_graphs));
	if (run->spans[PHASE_TRAIN].first_step >= 0) {
		json_t *start = figure_json(run, start_of(run));

		js_put(start, "late_seconds", json_real(run->late_seconds));
		js_put(object, "start", start);
	}
	js_put(object, "end", figure_json(run, end_of(run)));
	return object;
}

/* NULL if the two steps differ, or there is nothing to divide by. */
static json_t *ratio_of(struct figure jit, struct figure aot)
{
	return jit.step == aot.step && aot.node_seconds > 0
		       ? json_real(jit.node_seconds / aot.node_seconds)
		       : NULL;
}

/* Judges by the start if possible, since that includes the fewest steps. */
static void add_conclusion(json_t *result, const json_t *ratio)
{
	const char *by = json_object_get(ratio, "start") ? "start" : "end";
	double value = js_real(ratio, by, 1);

	if (!json_object_get(ratio, by))
		return;
	js_put_str(result, "judged_by", by);
	if (fabs(value - 1) >= MODE_COMPARISON_TOLERANCE)
		js_put(result, "pays", json_boolean(value > 1));
}

json_t *mode_comparison_json(const struct mode_run *jit, const struct mode_run *aot)
{
	json_t *result = json_object(), *ratio;

	if (jit)
		js_put(result, mode_names[MODE_JIT], run_json(jit));
	if (aot)
		js_put(result, mode_names[MODE_AOT], run_json(aot));
	if (!jit || !aot)
		return result;
	ratio = json_object();
	if (jit->spans[PHASE_TRAIN].first_step >= 0)
		js_put(ratio, "start", ratio_of(start_of(jit), start_of(aot)));
	js_put(ratio, "end", ratio_of(end_of(jit), end_of(aot)));
	add_conclusion(result, ratio);
	js_put(result, "ratio", ratio);
	return result;
}
