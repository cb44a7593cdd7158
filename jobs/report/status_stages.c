/* What follows a training, from events: see status_internal.h. */
#include "jobs/report/status_internal.h"

#include <string.h>

static json_t *stage_section(struct status *status, enum phase phase)
{
	return status_section(status, flow_phase_names[phase]);
}

void status_on_tasks(struct status *status, const struct event *ev)
{
	json_t *section;

	if (!flow_phases[ev->phase].has_tasks)
		return;
	section = stage_section(status, ev->phase);
	status_put(section, ev, EVF_tasks, EVF_COUNT);
	if (!json_object_get(section, "done"))
		js_put(section, "done", json_integer(0));
}

static void on_task_done(struct status *status, const struct event *ev)
{
	json_t *section = stage_section(status, ev->phase);

	status_on_tasks(status, ev);
	js_put(section, "done", json_integer(js_int(section, "done", 0) + 1));
}

/* A driver that died in between may have recorded it twice: the first one counts. */
static void on_measured(struct status *status, const struct event *ev)
{
	json_t *section = stage_section(status, PHASE_EVALUATE), *row = json_object(), *other;
	json_t *values = json_object_get(section, "values");
	size_t i;

	if (!values) {
		values = json_array();
		json_object_set_new(section, "values", values);
	}
	status_put(row, ev, EVF_task, EVF_role, EVF_repeat, EVF_metrics, EVF_metrics_from,
		   EVF_COUNT);
	json_array_foreach (values, i, other)
		if (js_is(other, "task", ev->task)) {
			json_decref(row);
			return;
		}
	json_array_append_new(values, row);
}

static void on_candidate(struct status *status, const struct event *ev)
{
	json_t *candidate = json_object();

	status_put(candidate, ev, EVF_url, EVF_step, EVF_digest, EVF_reason, EVF_COUNT);
	js_put(status->root, "candidate", candidate);
}

static void on_judged(struct status *status, const struct event *ev)
{
	json_t *gate = json_object();

	status->phase = PHASE_GATE;
	status_put(gate, ev, EVF_passed, EVF_candidate, EVF_baseline, EVF_generation, EVF_reason,
		   EVF_hint, EVF_COUNT);
	status_put_as(gate, ev, EVF_gates, "entries");
	js_put(status->root, "gate", gate);
}

static void on_promoted(struct status *status, const struct event *ev)
{
	json_t *promoted = json_object();

	status->phase = PHASE_PROMOTE;
	status_put(promoted, ev, EVF_generation, EVF_digest, EVF_url, EVF_COUNT);
	js_put(status->root, "promoted", promoted);
}

static void on_paused(struct status *status, const struct event *ev)
{
	status->paused = true;
	status->phase = ev->phase;
	js_put(status->root, "driver", json_null());
}

void status_on_stage(struct status *status, const struct event *ev)
{
	static void (*const handlers[EV_COUNT])(struct status * status, const struct event *ev) = {
		[EV_TASK_DONE] = on_task_done,        [EV_EVALUATE_MEASURED] = on_measured,
		[EV_CANDIDATE_CHOSEN] = on_candidate, [EV_GATE_JUDGED] = on_judged,
		[EV_PROMOTE_DONE] = on_promoted,      [EV_RUN_PAUSED] = on_paused,
	};

	if (handlers[ev->kind])
		handlers[ev->kind](status, ev);
}
