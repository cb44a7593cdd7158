/* Folds events into the data of the block: see screen.h. */
#include "jobs/report/screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/report/screen_internal.h"

struct screen *screen_new(const char *run)
{
	struct screen *screen = mem_zero(1, sizeof *screen);

	screen->status = status_new(run);
	screen->metrics = json_object();
	screen->step = screen->of = screen->value_step = -1;
	screen->served = PHASE_TRAIN;
	return screen;
}

void screen_freep(struct screen **screen)
{
	if (!*screen)
		return;
	status_freep(&(*screen)->status);
	json_decref((*screen)->metrics);
	free((*screen)->unit);
	free((*screen)->folder);
	free((*screen)->charted);
	free(*screen);
	*screen = NULL;
}

static void on_created(struct screen *screen, const struct event *ev)
{
	const char *run = js_str(screen->status->root, "run");
	const char *workspace = js_str(ev->plan, "workspace");
	json_t *phase;
	size_t i;

	screen->begun_ms = ev->at.ms;
	if (workspace)
		screen->folder = mem_format("%s/runs/%s", workspace, run);
	screen->stages[PHASE_GATE].is_shown =
		json_array_size(json_object_get(ev->plan, "gate")) > 0;
	json_array_foreach (json_object_get(ev->plan, "phases"), i, phase) {
		const char *name = js_str(phase, "phase");
		int at = name ? flow_name_find(flow_phase_names, PHASE_COUNT, name) : -1;

		if (at >= 0)
			screen->stages[at].is_shown = true;
	}
}

static void begin_stage(struct stage *stage, struct utc at)
{
	stage->is_shown = true;
	stage->state = SCREEN_STAGE_UNDER_WAY;
	stage->ended_ms = 0;
	if (stage->begun_ms == 0)
		stage->begun_ms = at.ms;
}

static void end_stage(struct stage *stage, struct utc at, bool well)
{
	stage->state = well ? SCREEN_STAGE_DONE : SCREEN_STAGE_FAILED;
	stage->ended_ms = at.ms;
}

/* The phase 1 of the next stage takes the rows of the one before. */
static void serve(struct screen *screen, enum phase stage)
{
	if (stage == screen->served)
		return;
	screen->served = stage;
	screen->ahead = false;
	for (int i = PHASE_PRECOMPILE; i <= PHASE_VERIFY; i++)
		screen->stages[i] = (struct stage){ .is_shown = true };
}

static void on_intended(struct screen *screen, const struct event *ev)
{
	if (flow_phases[ev->phase].is_trial)
		serve(screen, EVENT_HAS(ev, stage) ? ev->stage : PHASE_TRAIN);
	begin_stage(&screen->stages[ev->phase], ev->at);
	screen->stages[ev->phase].attempt = ev->attempt;
	if (!flow_phases[ev->phase].reads_steps)
		return;
	/* The previous attempt says nothing about the position of this one. */
	screen->steps = (struct step_rate_window){ 0 };
	screen->rate = (struct step_rate){ 0 };
	screen->step = EVENT_HAS(ev, step) ? ev->step : -1;
}

static void on_ended(struct screen *screen, const struct event *ev)
{
	bool well = ev->class == CLASS_NONE;

	end_stage(&screen->stages[ev->phase], ev->at, well);
	if (ev->phase == PHASE_EVALUATE && well && screen->stages[PHASE_GATE].is_shown)
		begin_stage(&screen->stages[PHASE_GATE], ev->at);
	/* No event marks the start of the verification. */
	if (ev->phase == PHASE_PRECOMPILE && well && screen->stages[PHASE_VERIFY].is_shown)
		begin_stage(&screen->stages[PHASE_VERIFY], ev->at);
}

/* A warm cache needs neither phase; a cache that turns out cold later needs both. */
static void on_checked(struct screen *screen, const struct event *ev)
{
	if (EVENT_HAS(ev, stage))
		return;
	for (int i = PHASE_PRECOMPILE; i <= PHASE_VERIFY; i++) {
		struct stage *stage = &screen->stages[i];

		if (ev->verdict == CACHE_WARM && stage->state == SCREEN_STAGE_TO_COME)
			stage->state = SCREEN_STAGE_SKIPPED;
		else if (ev->verdict != CACHE_WARM && stage->state == SCREEN_STAGE_SKIPPED)
			stage->state = SCREEN_STAGE_TO_COME;
	}
}

/* Two or more open graphs: the compiler works from a list, so the rest can be counted. */
static void on_compiling(struct screen *screen, const struct event *ev)
{
	int64_t open = EVENT_HAS(ev, graphs) ? ev->graphs : 0;

	open -= EVENT_HAS(ev, compiled) ? ev->compiled : 0;
	open -= EVENT_HAS(ev, hits) ? ev->hits : 0;
	if (open >= 2)
		screen->ahead = true;
}

static void on_run_ended(struct screen *screen, const struct event *ev)
{
	screen->ended_ms = ev->at.ms;
	for (int i = 0; i < PHASE_COUNT; i++)
		if (screen->stages[i].state == SCREEN_STAGE_UNDER_WAY)
			end_stage(&screen->stages[i], ev->at, ev->state == OUTCOME_SUCCEEDED);
}

/* A number, or one of the texts "nan", "inf" and "-inf". */
static double metric_value(const json_t *value)
{
	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The metric "loss" if there is one, else the first that is not the step. */
static void choose_charted(struct screen *screen)
{
	const char *name;
	json_t *value;

	if (screen->charted)
		return;
	if (json_object_get(screen->metrics, "loss")) {
		screen->charted = mem_copy("loss");
		return;
	}
	json_object_foreach (screen->metrics, name, value)
		if (strcmp(name, "step") != 0) {
			screen->charted = mem_copy(name);
			return;
		}
}

/* Metrics read at another step are not shown beside this one. */
static void put_metrics(struct screen *screen, const json_t *metrics)
{
	json_decref(screen->metrics);
	screen->metrics = json_copy((json_t *)metrics);
}

static void on_progress(struct screen *screen, const struct event *ev)
{
	struct utc seen = { EVENT_HAS(ev, since) && ev->since > 0 ? ev->since : ev->at.ms };
	const json_t *charted;

	if (EVENT_HAS(ev, metrics))
		put_metrics(screen, ev->metrics);
	if (EVENT_HAS(ev, of))
		screen->of = ev->of;
	if (EVENT_HAS(ev, rate))
		screen->rate = step_rate_reported(ev->rate);
	screen->samples_per_second = EVENT_HAS(ev, samples_per_second) ? ev->samples_per_second : 0;
	if (EVENT_HAS(ev, unit) && !screen->unit)
		screen->unit = mem_copy(ev->unit);
	if (EVENT_HAS(ev, step)) {
		screen->step = ev->step;
		screen->step_ms = seen.ms;
		step_rate_window_add(&screen->steps, ev->step, seen.ms);
	}
	choose_charted(screen);
	charted = screen->charted && EVENT_HAS(ev, metrics)
			  ? json_object_get(ev->metrics, screen->charted)
			  : NULL;
	/* A value shown by a progress update comes again when the update is journalled. */
	if (!charted || (EVENT_HAS(ev, step) && ev->step == screen->value_step))
		return;
	screen->value_step = EVENT_HAS(ev, step) ? ev->step : -1;
	sparkline_add(&screen->chart, metric_value(charted));
}

void screen_progress_update(struct screen *screen, const struct event *ev)
{
	on_progress(screen, ev);
	if (EVENT_HAS(ev, step))
		status_progress_update(screen->status, (struct utc){ screen->step_ms }, ev->step);
}

void screen_add(struct screen *screen, const struct event *ev)
{
	if (ev->seq > 0 && ev->seq <= screen->seq)
		return;
	screen->seq = ev->seq;
	status_add(screen->status, ev);
	if (ev->kind == EV_RUN_CREATED)
		on_created(screen, ev);
	else if (ev->kind == EV_CACHE_CHECKED)
		on_checked(screen, ev);
	else if (ev->kind == EV_ATTEMPT_INTENDED)
		on_intended(screen, ev);
	else if (ev->kind == EV_ATTEMPT_ENDED)
		on_ended(screen, ev);
	else if (ev->kind == EV_CACHE_VERIFIED)
		end_stage(&screen->stages[PHASE_VERIFY], ev->at, ev->complete);
	else if (ev->kind == EV_GATE_JUDGED)
		end_stage(&screen->stages[PHASE_GATE], ev->at, ev->passed);
	else if (ev->kind == EV_PROMOTE_INTENDED)
		begin_stage(&screen->stages[PHASE_PROMOTE], ev->at);
	else if (ev->kind == EV_PROMOTE_DONE || ev->kind == EV_PROMOTE_OVERTAKEN)
		end_stage(&screen->stages[PHASE_PROMOTE], ev->at, ev->kind == EV_PROMOTE_DONE);
	else if (ev->kind == EV_COMPILE_PROGRESS)
		on_compiling(screen, ev);
	else if (ev->kind == EV_TRAIN_PROGRESS)
		on_progress(screen, ev);
	else if (ev->kind == EV_RUN_ENDED)
		on_run_ended(screen, ev);
}

bool screen_scrolls(const struct event *ev, enum status_icon *ret_mark)
{
	*ret_mark = MARK_NONE;
	switch (ev->kind) {
	case EV_TRAIN_PROGRESS:
	case EV_COMPILE_PROGRESS:
	case EV_JIT_COMPILED:
	case EV_ATTEMPT_SUBMITTED:
	case EV_TASK_DONE:
		return false;
	case EV_ATTEMPT_CLAIMED:
		return EVENT_HAS(ev, reason);
	case EV_ATTEMPT_ENDED:
		*ret_mark = text_style_icon_of_state("ended", flow_class_names[ev->class]);
		return true;
	case EV_HEALTH_CHECKED:
		*ret_mark = ev->healthy ? MARK_GOOD : MARK_BAD;
		return true;
	case EV_CACHE_VERIFIED:
		*ret_mark = ev->complete ? MARK_GOOD : MARK_BAD;
		return true;
	case EV_GATE_JUDGED:
		*ret_mark = ev->passed ? MARK_GOOD : MARK_BAD;
		return true;
	case EV_CHECKPOINT_COMPLETE:
	case EV_PROMOTE_DONE:
	case EV_ATTEMPT_FOUND:
	case EV_ATTEMPT_WENT_ON:
	case EV_DRIVER_WENT_ON:
		*ret_mark = MARK_GOOD;
		return true;
	case EV_RUN_ENDED:
		*ret_mark = text_style_icon_of_state(flow_outcome_names[ev->state], NULL);
		return true;
	case EV_CACHE_WAITING:
	case EV_ATTEMPT_WAITING:
		*ret_mark = MARK_WAIT;
		return true;
	case EV_TRAIN_CONTINUITY:
		*ret_mark = ev->continuity == CONTINUITY_VERIFIED ? MARK_GOOD : MARK_WARN;
		return true;
	case EV_TRAIN_SPOILED:
		*ret_mark = MARK_BAD;
		return true;
	case EV_CACHE_PRELOADED:
		*ret_mark = strstr(ev->reason, "not preloaded") ? MARK_WARN : MARK_GOOD;
		return true;
	case EV_PROMOTE_OVERTAKEN:
	case EV_CACHE_REPAIRED:
	case EV_IMAGE_MOVED:
	case EV_ATTEMPT_UNCERTAIN:
	case EV_ATTEMPT_MISSING:
	case EV_ATTEMPT_LOST:
	case EV_COMPILER_CHECKED:
	case EV_ATTEMPT_VERSIONS:
	case EV_ENVIRONMENT_CHECKED:
	case EV_METRIC_GIVEN_UP:
	case EV_METRIC_DOUBTED:
	case EV_WORKER_LOST:
	case EV_OUTPUTS_LEFT:
	case EV_RUN_AT_RISK:
	case EV_ATTEMPT_STALLED:
	case EV_NOTIFY_FAILED:
	case EV_JIT_EXCEEDED:
	case EV_RETRY_SCHEDULED:
	case EV_REQUEST_STOP:
	case EV_REQUEST_DRAIN:
	case EV_LIMIT_REACHED:
	case EV_DRIVER_LEFT:
	case EV_DRIVER_WAITING:
	case EV_CHORE_FAILED:
		*ret_mark = MARK_WARN;
		return true;
	default:
		return true;
	}
}
