/* The watch on an attempt: opened, its logs read on (reading.c) without asking the engine, closed.
 */
#include <stdlib.h>

#include "jobs/base/step_rate.h"
#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/attempt/toolkit_series.h"
#include "jobs/run/attempt/watch_internal.h"

bool watch_is(const struct driver *driver, enum phase phase, int64_t attempt)
{
	return driver->watch && driver->watch->phase == phase && driver->watch->attempt == attempt;
}

const struct graph_tally *watch_tally(const struct driver *driver)
{
	return driver->watch->tally;
}

void watch_close(struct driver *driver)
{
	struct attempt_watch *watch = driver->watch;

	if (!watch)
		return;
	loop_remove(driver->loop, watch->wake);
	if (driver->left && !watch->whole) {
		toolkit_series_write(watch, true);
		bookmark_put(watch, true);
	}
	for (int node = 0; node < watch->nodes; node++) {
		tail_release(&watch->logs[node].tail);
		for (int i = 0; i < LAST_LINES; i++)
			free(watch->logs[node].last[i]);
	}
	free(watch->logs);
	graph_tally_freep(&watch->tally);
	json_decref(watch->late);
	json_decref(watch->worker);
	metrics_freep(&watch->metrics);
	first_cause_freep(&watch->cause);
	own_rows_freep(&watch->own);
	step_rate_meter_freep(&watch->own_meter);
	json_decref(watch->step_rate);
	json_decref(watch->recorded_row);
	toolkit_monitor_freep(&watch->monitor);
	toolkit_series_freep(&watch->series);
	err_free(watch->unread);
	free(watch->job);
	free(watch->prefix);
	free(watch);
	driver->watch = NULL;
}

int64_t watch_pause_ms(const struct driver *driver)
{
	const struct attempt_watch *watch = driver->watch;
	int64_t news_ms = driver->seq_at.ms, pause_ms;

	if (watch->heard_at.ms > news_ms)
		news_ms = watch->heard_at.ms;
	if (watch->woken_at.ms > news_ms)
		news_ms = watch->woken_at.ms;
	pause_ms = (clock_mono_now().ms - news_ms) / 100;
	if (pause_ms > TICK_QUIET_MS)
		return TICK_QUIET_MS;
	return pause_ms < TICK_MS ? TICK_MS : pause_ms;
}

/* Python buffers what it prints into a pipe, unless it is told not to, as most kinds do. */
static bool is_buffered(struct driver *driver, enum phase phase)
{
	const json_t *plan = job_engine_plan(driver, phase);
	const json_t *env = json_object_get(plan_phase(plan, flow_phase_names[phase]), "env");
	const char *unbuffered = js_str(env, "PYTHONUNBUFFERED");

	return !unbuffered || !*unbuffered;
}

int watch_open(struct driver *driver, enum phase phase, int64_t attempt, const char *job,
	       struct err **err)
{
	struct attempt_watch *watch;

	watch_close(driver);
	if (job_engine_enter(driver, phase, err) < 0)
		return -1;
	watch = mem_zero(1, sizeof *watch);
	driver->watch = watch;
	watch->driver = driver;
	watch->phase = phase;
	watch->attempt = attempt;
	watch->job = mem_copy(job);
	watch->prefix = order_attempt_prefix(driver->run, phase, attempt);
	watch->nodes = plan_nodes(job_engine_plan(driver, phase), phase);
	watch->logs = mem_zero((size_t)watch->nodes, sizeof *watch->logs);
	for (int node = 0; node < watch->nodes; node++) {
		watch->logs[node].watch = watch;
		watch->logs[node].node = node;
		watch->logs[node].step = -1;
		tail_init(&watch->logs[node].tail);
	}
	watch->first_step = watch->last_step = watch->recorded_step = -1;
	watch->own_meter = step_rate_meter_new();
	watch->tally = graph_tally_new();
	watch->late = json_object();
	watch->own = own_rows_new(json_object_get(driver->plan, "failures"));
	watch->cause = first_cause_new((size_t)watch->nodes, is_buffered(driver, phase),
				       own_rows_get(watch->own));
	if (toolkit_monitor_new(watch, &watch->monitor, err) == 0 &&
	    toolkit_series_new(watch, &watch->series, err) == 0 &&
	    metrics_new(json_object_get(driver->plan, "metrics"), &watch->metrics, err) == 0) {
		bookmark_restore(watch);
		return 0;
	}
	watch->whole = true; /* a half-open watch leaves no bookmark */
	watch_close(driver);
	return -1;
}

int watch_read_log(struct driver *driver, bool *ret_more, struct err **err)
{
	*ret_more = false;
	if (driver->watch->whole)
		return 0;
	if (reading_turn(driver->watch, false, true, ret_more, err) < 0)
		return -1;
	bookmark_put(driver->watch, false);
	if (!*ret_more)
		reading_end(driver->watch);
	return 0;
}
