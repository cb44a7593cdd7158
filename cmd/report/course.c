/* The course of a run: see course.h. */
#include "cmd/report/course.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/view/event_text.h"
#include "jobs/flow/flow.h"

void course_release(struct course *course)
{
	json_decref(course->lanes);
	json_decref(course->events);
	json_decref(course->newest);
}

/* ---- lanes ---- */

static void end_part(struct course *course, int64_t at_ms)
{
	if (course->lane && course->kind && at_ms >= course->since_ms)
		json_array_append_new(json_object_get(course->lane, "parts"),
				      json_pack("{s:s, s:I, s:I}", "kind", course->kind, "from",
						(json_int_t)course->since_ms, "to",
						(json_int_t)at_ms));
	course->kind = NULL;
}

/* The stretch so far ends, and another one begins; NULL: none. */
static void begin_part(struct course *course, const char *kind, int64_t at_ms)
{
	end_part(course, at_ms);
	course->kind = kind;
	course->since_ms = at_ms;
}

static void begin_lane(struct course *course, char *name)
{
	course->lane = json_object();
	js_put_str(course->lane, "name", name);
	js_put(course->lane, "parts", json_array());
	json_array_append_new(course->lanes, course->lane);
	free(name);
}

/* Returns a time that the event tells, if it lies in the open stretch; else its own. */
static int64_t moment_of(const struct course *course, const struct event *ev, int64_t told_ms)
{
	return told_ms >= course->since_ms && told_ms > 0 && told_ms <= ev->at.ms ? told_ms
										  : ev->at.ms;
}

static void add_to_lanes(struct course *course, const struct event *ev)
{
	switch (ev->kind) {
	case EV_CACHE_WAITING:
		begin_lane(course, mem_copy("waits for another run's cache"));
		begin_part(course, "queue", ev->at.ms);
		break;
	case EV_ATTEMPT_INTENDED:
		end_part(course, ev->at.ms);
		begin_lane(course,
			   mem_format("%s %lld%s%s", flow_phase_names[ev->phase],
				      (long long)ev->attempt, EVENT_HAS(ev, stage) ? " for " : "",
				      EVENT_HAS(ev, stage) ? flow_phase_names[ev->stage] : ""));
		begin_part(course, "queue", ev->at.ms);
		break;
	case EV_ATTEMPT_CLAIMED:
		begin_part(course, "setup", moment_of(course, ev, ev->since));
		break;
	case EV_ATTEMPT_STARTED:
		begin_part(course, flow_phase_names[ev->phase], moment_of(course, ev, ev->started));
		break;
	case EV_ATTEMPT_LOST:
		begin_part(course, "unknown", ev->at.ms);
		break;
	case EV_ATTEMPT_FOUND:
		begin_part(course, flow_phase_names[ev->phase], ev->at.ms);
		break;
	case EV_ATTEMPT_STALLED:
		begin_part(course, "hang", moment_of(course, ev, ev->since));
		break;
	case EV_ATTEMPT_WENT_ON:
		begin_part(course, flow_phase_names[ev->phase], ev->at.ms);
		break;
	case EV_ATTEMPT_ENDED:
		begin_part(course, ev->phase == PHASE_PRECOMPILE ? "verify" : NULL, ev->at.ms);
		break;
	case EV_RETRY_SCHEDULED:
		begin_part(course, "backoff", ev->at.ms);
		break;
	case EV_CACHE_CLAIMED:
	case EV_CACHE_VERIFIED:
	case EV_RUN_ENDED:
		end_part(course, ev->at.ms);
		break;
	default:
		break;
	}
}

/* ---- events ---- */

static bool is_progress(const struct event *ev)
{
	return ev->kind == EV_TRAIN_PROGRESS || ev->kind == EV_TRAIN_STRETCH ||
	       ev->kind == EV_COMPILE_PROGRESS || ev->kind == EV_LOG_READ;
}

static void add_words(struct course *course, const struct event *ev, const json_t *row)
{
	AUTO(auto_free) char *words = event_sentence(ev, row);
	json_t *told;

	if (!words || is_progress(ev))
		return;
	told = json_object();
	js_put_str(told, "at", js_str(row, "at"));
	js_put_str(told, "event", js_str(row, "event"));
	js_put_str(told, "words", words);
	course->seen++;
	if (json_array_size(course->events) < COURSE_FIRST) {
		json_array_append_new(course->events, told);
		return;
	}
	json_array_append_new(course->newest, told);
	if (json_array_size(course->newest) > 2 * COURSE_LAST)
		for (int i = 0; i < COURSE_LAST; i++)
			json_array_remove(course->newest, 0);
}

void course_add(struct course *course, const struct event *ev, const json_t *row)
{
	if (!course->lanes) {
		course->lanes = json_array();
		course->events = json_array();
		course->newest = json_array();
	}
	course->newest_ms = ev->at.ms;
	add_to_lanes(course, ev);
	add_words(course, ev, row);
}

void course_put(struct course *course, struct utc now, bool ended, json_t *run)
{
	size_t newest = json_array_size(course->newest);
	size_t from = newest > COURSE_LAST ? newest - COURSE_LAST : 0;
	int64_t left =
		course->seen - (int64_t)json_array_size(course->events) - (int64_t)(newest - from);

	end_part(course, ended ? course->newest_ms : now.ms);
	for (size_t i = from; i < newest; i++)
		json_array_append(course->events, json_array_get(course->newest, i));
	js_put(run, "lanes", json_incref(course->lanes));
	js_put(run, "events", json_incref(course->events));
	if (left > 0)
		js_put(run, "events_left", json_integer(left));
}
