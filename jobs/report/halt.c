/* Why a training makes no progress: see halt.h. */
#include "jobs/report/halt.h"

#include <math.h>
#include <stdlib.h>

#include "jobs/flow/rules.h"

/* An agent polls for a drain request; a plan's policy adds the same time. */
#define POLL_MS 4000
/* Steps are journalled no more often than this, and a step that is a few steps late is not
 * missing. */
#define SILENT_LEAST_MS 45000
#define SILENT_STEPS    10

void halt_release(struct halt *halt)
{
	free(halt->reason);
	free(halt->silence);
	halt->reason = halt->silence = NULL;
}

static void end_silence(struct halt *halt)
{
	free(halt->silence);
	halt->silence = NULL;
	halt->silent = halt->restart = (struct utc){ 0 };
}

static void begin_attempt(struct halt *halt, const struct event *ev)
{
	end_silence(halt);
	halt->under_way = true;
	halt->trains = flow_phases[ev->phase].drains;
	halt->claimed = halt->lost = halt->saved = false;
	halt->stopping = halt->save_until = halt->step_at = (struct utc){ 0 };
	halt->rate = (struct step_rate){ 0 };
}

/* The rule is the flow's: a training is told to save, unless it was asked to end before or its
 * state is not worth saving. */
static void begin_end(struct halt *halt, const struct event *ev, bool may_save)
{
	bool saves = may_save && halt->trains && halt->claimed && halt->drain_ms > 0;

	if (!halt->under_way)
		return;
	halt->save_until = ev->at;
	if (saves && halt->stopping.ms == 0)
		halt->save_until.ms += halt->drain_ms + POLL_MS + FLOW_DRAIN_MARGIN_MS;
	if (halt->stopping.ms > 0)
		return;
	halt->stopping = ev->at;
	free(halt->reason);
	halt->reason = EVENT_HAS(ev, reason) && ev->reason[0] ? mem_copy(ev->reason) : NULL;
}

static void on_created(struct halt *halt, const struct event *ev)
{
	const json_t *checkpoint = json_object_get(ev->plan, "checkpoint");

	/* The toolkit runs no agent that could be told to drain. */
	if (!js_is(js_path(ev->plan, "spec.sagemaker"), "launcher", "toolkit"))
		halt->drain_ms = js_int(checkpoint, "grace_ms", 0);
	halt->stops_on_mismatch = js_is(checkpoint, "on_mismatch", "stop");
}

static void on_stalled(struct halt *halt, const struct event *ev)
{
	end_silence(halt);
	halt->silent.ms = ev->since;
	halt->restart.ms = ev->until;
	halt->silence = mem_copy(ev->reason);
}

void halt_step(struct halt *halt, struct utc at, int64_t step)
{
	if (halt->step_at.ms > 0 && step == halt->step)
		return;
	halt->step_at = at;
	halt->step = step;
	if (at.ms > halt->silent.ms)
		end_silence(halt);
}

static void on_progress(struct halt *halt, const struct event *ev)
{
	struct utc at = { EVENT_HAS(ev, since) && ev->since > 0 ? ev->since : ev->at.ms };

	if (EVENT_HAS(ev, rate))
		halt->rate = step_rate_reported(ev->rate);
	if (EVENT_HAS(ev, step))
		halt_step(halt, at, ev->step);
}

void halt_add(struct halt *halt, const struct event *ev)
{
	switch (ev->kind) {
	case EV_RUN_CREATED:
		on_created(halt, ev);
		break;
	case EV_ATTEMPT_INTENDED:
		begin_attempt(halt, ev);
		break;
	case EV_ATTEMPT_CLAIMED:
		halt->claimed = true;
		halt->lost = false;
		break;
	case EV_ATTEMPT_LOST:
	case EV_ATTEMPT_FOUND:
		halt->lost = ev->kind == EV_ATTEMPT_LOST;
		break;
	case EV_ATTEMPT_ENDED:
		halt->under_way = false;
		break;
	case EV_REQUEST_STOP:
	case EV_REQUEST_DRAIN:
	case EV_WORKER_LOST:
		begin_end(halt, ev, true);
		break;
	case EV_LIMIT_REACHED:
		if (ev->limit != LIMIT_UNREACHABLE)
			begin_end(halt, ev, true);
		break;
	case EV_JIT_EXCEEDED:
		if (ev->on_exceed != JIT_WARN)
			begin_end(halt, ev, true);
		break;
	case EV_TRAIN_CONTINUITY:
		if (ev->continuity == CONTINUITY_FAILED && halt->stops_on_mismatch)
			begin_end(halt, ev, false);
		break;
	case EV_TRAIN_SPOILED:
		begin_end(halt, ev, false);
		break;
	case EV_CHECKPOINT_COMPLETE:
		halt->saved = halt->stopping.ms > 0;
		break;
	case EV_ATTEMPT_STALLED:
		on_stalled(halt, ev);
		break;
	case EV_ATTEMPT_WENT_ON:
		end_silence(halt);
		halt->step_at = ev->at;
		break;
	case EV_TRAIN_PROGRESS:
		on_progress(halt, ev);
		break;
	default:
		break;
	}
}

static json_t *put_since(json_t *status, const char *key, struct utc since, struct utc now)
{
	json_t *object = json_object();
	char text[UTC_TEXT];

	js_put(object, "since", json_string(clock_utc_format(since, text)));
	js_put(object, "seconds",
	       json_real(now.ms > since.ms ? (double)(now.ms - since.ms) / 1000 : 0));
	js_put(status, key, object);
	return object;
}

static void put_until(json_t *object, struct utc until)
{
	char text[UTC_TEXT];

	if (until.ms > 0)
		js_put(object, "until", json_string(clock_utc_format(until, text)));
}

static void put_stopping(const struct halt *halt, struct utc now, json_t *status)
{
	json_t *object = put_since(status, "stopping", halt->stopping, now);
	bool saves = !halt->saved && now.ms < halt->save_until.ms;

	js_put_str(object, "reason", halt->reason);
	js_put_str(object, "waits_for",
		   !halt->claimed || halt->lost ? "the engine to end the job"
		   : saves                      ? "a checkpoint"
						: "the command to end");
	if (halt->claimed && !halt->lost && saves)
		put_until(object, halt->save_until);
}

/* True if steps alone show a stall, before the agent reports one. */
static bool misses_steps(const struct halt *halt, struct utc now)
{
	double usual = step_rate_ms(halt->rate, SILENT_STEPS);

	return halt->trains && halt->claimed && !halt->lost && halt->step_at.ms > 0 &&
	       (double)(now.ms - halt->step_at.ms) > fmax(SILENT_LEAST_MS, usual);
}

void halt_put(const struct halt *halt, struct utc now, json_t *status)
{
	json_t *object;

	if (!halt->under_way)
		return;
	if (halt->stopping.ms > 0) {
		put_stopping(halt, now, status);
	} else if (halt->silent.ms > 0) {
		object = put_since(status, "stalled", halt->silent, now);
		js_put_str(object, "reason", halt->silence);
		put_until(object, halt->restart);
	} else if (misses_steps(halt, now)) {
		object = put_since(status, "stalled", halt->step_at, now);
		js_put_str(object, "reason", "no step");
	}
}
