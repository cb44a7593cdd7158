/* Two trainings compared step by step: see parity.h. */
#include "jobs/run/parity.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/run/attempt/run_series.h"

struct point {
	int64_t step;
	size_t order; /* of reading: the later one of a step counts */
	double value;
};

struct points {
	struct point *list; /* owned */
	size_t count, metric;
	int node; /* -1: not known yet; one node tells the value of all */
	bool too_many;
};

static void points_release(struct points *points)
{
	free(points->list);
}

static int on_reading(void *arg, const struct run_reading *reading, struct err **err)
{
	struct points *points = arg;

	(void)err;
	if (reading->metric != points->metric || reading->step < 0 || !reading->counts)
		return 0;
	if (points->node < 0)
		points->node = reading->node;
	if (reading->node != points->node)
		return 0;
	if (points->count == PARITY_POINTS_MAX) {
		points->too_many = true;
		return 1;
	}
	points->list = mem_room(points->list, points->count, sizeof *points->list);
	points->list[points->count] =
		(struct point){ reading->step, points->count, reading->value };
	points->count++;
	return 0;
}

static int by_step(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->step != y->step)
		return (x->step > y->step) - (x->step < y->step);
	return (x->order > y->order) - (x->order < y->order);
}

/* True for an error that trying again does not mend: there is no such run, or it has no metrics. */
static bool is_final(const struct err *err)
{
	return err->code == EXIT_NOT_FOUND || err->code == EXIT_REFUSED;
}

/* Returns as parity_read(). */
static int read_points(struct journal *journal, const char *run, const char *metric,
		       struct points *ret, char **ret_why, struct err **err)
{
	AUTO(run_series_freep) struct run_series *series = NULL;

	ret->node = -1;
	if (run_series_open(journal, run, &series, err) < 0) {
		if (!is_final(*err))
			return -1;
		*ret_why = mem_copy((*err)->message);
		err_freep(err);
		return 0;
	}
	ret->metric = run_series_find(series, metric);
	if (ret->metric == SIZE_MAX) {
		*ret_why = mem_format("run %s has no metric '%s'", run, metric);
		return 0;
	}
	if (run_series_each(series, on_reading, ret, err) < 0)
		return -1;
	if (ret->too_many) {
		*ret_why = mem_format("run %s has more than %d points of '%s'", run,
				      PARITY_POINTS_MAX, metric);
		return 0;
	}
	if (ret->count > 1)
		qsort(ret->list, ret->count, sizeof *ret->list, by_step);
	return 1;
}

/* Gives the points of both runs to the gate, merged by step. */
static void compare(const struct points runs[GATE_ROLE_COUNT], const struct gate_entry *entry,
		    struct gate_parity *ret)
{
	struct gate_parity_reader reader;
	size_t at[GATE_ROLE_COUNT] = { 0 };

	gate_parity_begin(&reader, entry);
	for (;;) {
		const struct point *next = NULL;
		enum gate_role from = GATE_CANDIDATE;

		for (enum gate_role role = 0; role < GATE_ROLE_COUNT; role++) {
			const struct point *point =
				at[role] < runs[role].count ? runs[role].list + at[role] : NULL;

			if (!point || (next && point->step >= next->step))
				continue;
			next = point;
			from = role;
		}
		if (!next)
			break;
		gate_parity_add(&reader, PHASE_TRAIN, from, next->step, next->value);
		at[from]++;
	}
	gate_parity_end(&reader, ret);
}

int parity_read(struct journal *journal, const char *run, const struct gate_entry *entry,
		struct gate_parity *ret, char **ret_why, struct err **err)
{
	AUTO(points_release) struct points candidate = { 0 };
	AUTO(points_release) struct points other = { 0 };
	int found = read_points(journal, run, entry->metric, &candidate, ret_why, err);

	if (found > 0)
		found = read_points(journal, entry->run, entry->metric, &other, ret_why, err);
	if (found > 0)
		compare((const struct points[]){ candidate, other }, entry, ret);
	return found;
}
