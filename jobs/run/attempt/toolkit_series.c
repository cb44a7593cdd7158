/* Readings of an attempt without agents: see toolkit_series.h. */
#include "jobs/run/attempt/toolkit_series.h"

#include <stdlib.h>

#include "jobs/run/plan/plan.h"
#include "jobs/series/series_stream.h"

/* Between two writes; writing takes at most 1/SHARE of the time. */
#define WRITE_MS 10000
#define SHARE    20

struct toolkit_series {
	struct series_stream **streams; /* one per node */
	int nodes;
	struct mono written_at; /* when it was last tried; ms 0: never */
	int64_t writing_ms;
};

int toolkit_series_new(struct attempt_watch *watch, struct toolkit_series **ret, struct err **err)
{
	const struct driver *driver = watch->driver;
	const json_t *specs = json_object_get(driver->plan, "metrics");
	AUTO(toolkit_series_freep) struct toolkit_series *series = NULL;

	*ret = NULL;
	if (toolkit_limits_has_agent(driver->plan) || !driver->engine->ops->log_id ||
	    !driver->live || !flow_phases[watch->phase].reads_steps || json_array_size(specs) == 0)
		return 0;
	series = mem_zero(1, sizeof *series);
	series->nodes = watch->nodes;
	series->streams = mem_zero((size_t)watch->nodes, sizeof(struct series_stream *));
	for (int node = 0; node < watch->nodes; node++) {
		struct series_place place = { .store = driver->workspace,
					      .prefix = watch->prefix,
					      .node = node,
					      .specs = specs };

		if (series_stream_open(&place, driver->flow.epoch, &series->streams[node], err) ==
		    0)
			continue;
		if (err_passes(*err))
			return -1;
		/* Nothing rests on it: the log itself has all. */
		err_freep(err);
		return 0;
	}
	*ret = TAKE(series);
	return 0;
}

void toolkit_series_freep(struct toolkit_series **series)
{
	struct toolkit_series *s = *series;

	if (!s)
		return;
	for (int node = 0; node < s->nodes; node++)
		series_stream_freep(&s->streams[node]);
	free(s->streams);
	free(s);
	*series = NULL;
}

void toolkit_series_line(struct attempt_watch *watch, const struct node_log *log,
			 const struct metric_reading *readings, size_t count)
{
	struct engine *engine = watch->driver->engine;
	struct series_stream_line line = { .readings = readings, .count = count };

	if (!watch->series)
		return;
	line.id = engine->ops->log_id(engine, watch->job, watch->prefix, log->node,
				      log->tail.line_at);
	line.at = engine->ops->log_time(engine, watch->job, watch->prefix, log->node,
					log->tail.line_at);
	series_stream_add(watch->series->streams[log->node], &line);
}

static bool is_due(const struct toolkit_series *series)
{
	int64_t age = clock_mono_now().ms - series->written_at.ms;

	return series->written_at.ms == 0 || (age >= WRITE_MS && age >= series->writing_ms * SHARE);
}

bool toolkit_series_write(struct attempt_watch *watch, bool all)
{
	struct toolkit_series *series = watch->series;
	struct mono began = clock_mono_now();
	bool is_kept = true;

	if (!series || (!all && !is_due(series)))
		return !series;
	for (int node = 0; node < series->nodes; node++) {
		AUTO(err_freep) struct err *ignored = NULL; /* it is tried again */
		struct series_stream *stream = series->streams[node];

		is_kept = series_stream_write(stream, &ignored) == 0 &&
			  series_stream_is_on(stream) && is_kept;
	}
	series->written_at = clock_mono_now();
	series->writing_ms = series->written_at.ms - began.ms;
	return is_kept;
}

int toolkit_series_end(struct attempt_watch *watch, struct err **err)
{
	struct engine *engine = watch->driver->engine;
	struct toolkit_series *series = watch->series;

	for (int node = 0; series && node < series->nodes; node++)
		if (!watch->logs[node].unread &&
		    series_stream_end(series->streams[node],
				      engine->ops->log_lacks_end(engine, watch->job, node),
				      err) < 0)
			return -1;
	return 0;
}

int64_t toolkit_series_place(const struct attempt_watch *watch, int node)
{
	return watch->series ? (int64_t)series_stream_place(watch->series->streams[node]) : -1;
}

void toolkit_series_go_on(struct attempt_watch *watch, int node)
{
	if (watch->series)
		series_stream_go_on(watch->series->streams[node]);
}
