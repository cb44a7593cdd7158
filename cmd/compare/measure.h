/* Measurements of a run, from its journal and its series. */
#ifndef STK_CMD_COMPARE_MEASURE_H
#define STK_CMD_COMPARE_MEASURE_H

#include "jobs/base/text/js.h"
#include "jobs/report/measure/comparison.h"
#include "jobs/report/measure/step_times.h"
#include "jobs/run/attempt/run_series.h"

/* A value that a metric is to reach: "accuracy>=0.95". */
struct measure_target {
	char metric[128]; /* "": none */
	enum { TARGET_AT_LEAST, TARGET_AT_MOST, TARGET_MORE, TARGET_LESS } sense;
	double value;
};

/* Sees all that a run is measured by, in one pass; members may be NULL. */
struct measure_watch {
	void *arg;
	void (*event)(void *arg, const struct event *ev, const json_t *row);
	void (*series)(void *arg, const struct run_series *series); /* before its readings */
	void (*reading)(void *arg, const struct run_reading *reading);
	/* Steps whose time is known, as told by this reading. */
	void (*span)(void *arg, const struct step_span *span, const struct run_reading *reading);
};

struct measure_question {
	const char *metric; /* the metric of the curves; NULL: loss, if there is one */
	/* metrics in which the log itself tells samples a second, and seconds of a step; NULL: the
	 * clock does. A rate is the harmonic mean: their times are added up. */
	const char *throughput, *step_time;
	struct measure_target target;
	bool lenient; /* a run without metrics is measured by its journal alone */
	bool alone;   /* the run is compared with no other: its curve is not kept */
	const struct measure_watch *watch; /* NULL: nobody */
};

struct measure {
	char run[JOURNAL_RUN_MAX];
	json_t *plan, *status; /* owned; NULL: the run never began */
	size_t row;            /* of the sheet */
	/* of a run of a sweep, owned; NULL: of none */
	char *cell;     /* by which its repeats are known */
	json_t *sets;   /* the overrides of the cell */
	char *why;      /* why it does not count: it failed, or never began; NULL: it does */
	size_t waiting; /* repeats of its cell that have not begun; told by one of its runs */
	struct measured_run measured;
	bool is_benchmark, is_debug;
	bool has_metric; /* the one whose curves are compared */
	bool by_epoch;   /* epochs stand for steps */
	/* Places where a service has lost lines of a log; the first of them. */
	size_t loss_count;
	struct run_series_loss loss;
};
void measure_release(struct measure *measure);

/* Reads "accuracy>=0.95"; EXIT_USAGE. */
int measure_target_parse(const char *text, struct measure_target *ret, struct err **err);

/* Measures the run named in `ret->run`. EXIT_REFUSED if its spec has no metrics (unless lenient),
 * or not the one that is asked for, and (unless lenient) for a debug run, which has no figures in
 * any case. Of a sweep a run that failed, or never began, has no figures but a reason. */
int measure_take(struct journal *journal, const struct measure_question *question,
		 struct measure *ret, struct err **err);

#endif
