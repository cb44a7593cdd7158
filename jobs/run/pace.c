/* Step times in classes: see pace.h. */
#include "jobs/run/pace.h"

#include <math.h>
#include <stdlib.h>

/* Classes from 1 microsecond to more than 11 days a step. */
#define LEAST_MS 1e-3
#define GROWTH   1.02
#define CLASSES  1400

struct pace {
	int64_t first;       /* step of the attempt, -1: none seen */
	int64_t last;        /* step that was looked at, -1: none whose moment is known */
	struct mono last_at; /* when */
	int64_t steps;       /* counted */
	int64_t total_ms;    /* of these */
	int64_t in_class[CLASSES];
};

struct pace *pace_new(void)
{
	struct pace *pace = mem_zero(1, sizeof *pace);

	pace_begin(pace, -1);
	return pace;
}

void pace_freep(struct pace **pace)
{
	free(*pace);
	*pace = NULL;
}

void pace_begin(struct pace *pace, int64_t first)
{
	pace->first = first;
	pace->last = -1;
}

static int class_of(double step_ms)
{
	double at = log(step_ms / LEAST_MS) / log(GROWTH);

	if (!(at > 0))
		return 0;
	return at < CLASSES - 1 ? (int)at : CLASSES - 1;
}

void pace_look(struct pace *pace, int64_t step, struct mono now)
{
	int64_t steps = step - pace->last, ms = now.ms - pace->last_at.ms;

	if (step <= pace->last)
		return;
	if (pace->first < 0)
		pace->first = step;
	if (pace->last >= 0 && pace->last - pace->first >= PACE_WARM_STEPS) {
		pace->steps += steps;
		pace->total_ms += ms;
		pace->in_class[class_of((double)ms / (double)steps)] += steps;
	}
	pace->last = step;
	pace->last_at = now;
}

/* A share of the steps took no longer than this, milliseconds. */
static double step_ms(const struct pace *pace, double share)
{
	double wanted = share * (double)pace->steps;
	int64_t seen = 0;
	int class = 0;

	for (; class < CLASSES - 1; class ++) {
		seen += pace->in_class[class];
		if ((double)seen >= wanted)
			break;
	}
	return LEAST_MS * pow(GROWTH, class + 0.5);
}

json_t *pace_json(const struct pace *pace)
{
	json_t *json;

	if (pace->steps == 0 || pace->total_ms <= 0)
		return NULL;
	json = json_object();
	js_put(json, "mean", json_real((double)pace->steps * 1000 / (double)pace->total_ms));
	js_put(json, "p50", json_real(1000 / step_ms(pace, 0.50)));
	js_put(json, "p95", json_real(1000 / step_ms(pace, 0.95)));
	js_put(json, "n", json_integer(pace->steps));
	return json;
}
