/*
 * Records the numbers of a training: train.progress now and then, and shows them more often to an
 * observer. The times of steps, and so their rate, come from the agents (jobs/base/step_rate.h),
 * or, without agents, from the service's log if it keeps times. Steps that only this driver has
 * seen, now and then, give a mean and no more.
 */
#include <string.h>

#include "jobs/base/step_rate.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

#define STEP_RATE_MS        500   /* how often an agent's pace is looked for */
#define STEP_RATE_REMOTE_MS 15000 /* the same if it lies in a bucket */

/* ---- times of steps ------------------------------------------------------------------- */

static bool is_due(const struct attempt_watch *watch)
{
	bool is_remote = !store_directory(watch->driver->workspace);

	return watch->rate_read_at.ms == 0 ||
	       clock_mono_now().ms - watch->rate_read_at.ms >=
		       (is_remote ? STEP_RATE_REMOTE_MS : STEP_RATE_MS);
}

/* Asks the agent for its pace: a file beside its report, or at the end the report. */
static json_t *read_agent_rate(struct attempt_watch *watch, bool at_end)
{
	struct engine *engine = watch->driver->engine;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	json_t *found = NULL;

	if (at_end && attempt_report(watch, watch->step_node, &report, &ignored) > 0 && report.pace)
		return json_incref(report.pace);
	err_freep(&ignored);
	if (engine->ops->beside &&
	    engine->ops->beside(engine, watch->job, watch->prefix, watch->step_node, PACE_FILE,
				&found, &ignored) > 0)
		return found;
	return NULL;
}

static json_t *read_own_rate(const struct attempt_watch *watch)
{
	json_t *own = step_rate_meter_json(watch->own_meter);

	if (!own || watch->own_exact)
		return own;
	json_object_del(json_object_get(own, "throughput"), "step_seconds");
	json_object_del(own, "stretches");
	return own;
}

/* Returns the newest known pace; NULL if none. Borrowed. */
static const json_t *find_step_rate(struct attempt_watch *watch, bool at_end)
{
	json_t *found;

	if (watch->step_rate && !at_end && !is_due(watch))
		return watch->step_rate;
	watch->rate_read_at = clock_mono_now();
	found = read_agent_rate(watch, at_end);
	if (!found && !watch->rate_by_agent)
		found = read_own_rate(watch);
	else if (found)
		watch->rate_by_agent = true;
	if (found) {
		json_decref(watch->step_rate);
		watch->step_rate = found;
	}
	return watch->step_rate;
}

/* ---- telling --------------------------------------------------------------------------- */

/* Returns the number of epochs by a hyperparameter of a known name; 0 if there is none. */
static int64_t last_epoch(const json_t *hyperparameters)
{
	static const char *const names[] = { "num_train_epochs", "num_epochs", "max_epochs",
					     "epochs" };
	double of = 0;

	for (size_t i = 0; !(of > 0) && i < STK_LENGTH(names); i++)
		of = js_real(hyperparameters, names[i], 0);
	return of > 0 && of < 1e9 ? (int64_t)of + (of > (double)(int64_t)of) : 0;
}

/* Returns the samples of a step: by the spec, or as the log counts them; 0 if not known. */
static double samples_per_step(const struct attempt_watch *watch)
{
	double told = js_real(watch->driver->plan, "samples_per_step", 0);

	return told > 0 ? told : metrics_samples_per_step(watch->metrics);
}

/* Returns the number of the last step: by the spec, by a hyperparameter of a known name, or by the
 * log; 0 if it is not known. */
static int64_t last_step(const struct attempt_watch *watch)
{
	const json_t *plan = watch->driver->plan;
	int64_t of = js_int(js_path(plan, "spec.progress"), "of", 0);

	if (of == 0 && metrics_unit(watch->metrics))
		of = last_epoch(js_path(plan, "spec.hyperparameters"));
	else if (of == 0)
		of = js_int(js_path(plan, "steps"), "train", 0);
	return of > 0 ? of : metrics_progress(watch->metrics).of;
}

/* Fills in a train.progress of this step (-1: none) as of now. `numbers` and `step_rate` are
 * borrowed. */
static void fill_progress(const struct attempt_watch *watch, int64_t step, json_t *numbers,
			  const json_t *step_rate, struct event *ret)
{
	struct step_progress newest = metrics_progress(watch->metrics);
	int64_t of = last_step(watch);
	struct step_rate rate = step_rate_reported(js_real(step_rate, "rate", 0));
	int64_t arrived_ms = step_rate_arrived_ms(step_rate, step);

	attempt_event(watch, EV_TRAIN_PROGRESS, ret);
	if (step >= 0) {
		EVENT_SET(ret, step, step);
		EVENT_SET(ret, since, arrived_ms > 0 ? arrived_ms : watch->stepped_at.ms);
	}
	if (metrics_unit(watch->metrics))
		EVENT_SET_STR(ret, unit, metrics_unit(watch->metrics));
	if (of > 0)
		EVENT_SET(ret, of, of);
	if (step_rate_is_known(rate)) {
		EVENT_SET(ret, rate, step_rate_per_second(rate));
		if (samples_per_step(watch) > 0)
			EVENT_SET(ret, samples_per_second,
				  step_rate_per_second(rate) * samples_per_step(watch));
		if (newest.known && of >= newest.step)
			EVENT_SET(ret, eta, step_rate_ms(rate, (double)(of - newest.step)) / 1000);
	}
	EVENT_SET(ret, metrics, numbers);
}

static json_t *step_alone(const struct attempt_watch *watch, int64_t step)
{
	const char *unit = metrics_unit(watch->metrics);
	json_t *numbers = json_object();

	js_put(numbers, unit ? unit : METRIC_STEP, json_integer(step));
	return numbers;
}

static int record_progress(struct attempt_watch *watch, int64_t step, json_t *numbers,
			   const json_t *step_rate, struct err **err)
{
	json_auto_t *throughput = json_copy(json_object_get(step_rate, "throughput"));
	struct event ev;

	if (throughput && samples_per_step(watch) > 0)
		js_put(throughput, "samples_per_second",
		       json_real(js_real(throughput, "mean", 0) * samples_per_step(watch)));
	fill_progress(watch, step, numbers, step_rate, &ev);
	if (throughput)
		EVENT_SET(&ev, throughput, throughput);
	if (step > watch->recorded_step)
		watch->recorded_step = step;
	return driver_record(watch->driver, &ev, err);
}

static bool was_unobserved(const struct ledger *ledger, int64_t from, int64_t to)
{
	for (int i = 0; i < ledger->hole_count; i++)
		if (from < ledger->holes[i].to.ms && to > ledger->holes[i].from.ms)
			return true;
	return false;
}

/* For a time without a driver, the agent's word is the only record of steps. */
static int record_stretches(struct attempt_watch *watch, const json_t *step_rate, struct err **err)
{
	const json_t *stretch;
	size_t i;

	json_array_foreach (json_object_get(step_rate, "stretches"), i, stretch) {
		int64_t from = json_integer_value(json_array_get(stretch, 0));
		int64_t to = json_integer_value(json_array_get(stretch, 1));
		struct event ev;

		if (!was_unobserved(&watch->driver->flow.ledger, from, to))
			continue;
		attempt_event(watch, EV_TRAIN_STRETCH, &ev);
		EVENT_SET(&ev, since, from);
		EVENT_SET(&ev, until, to);
		EVENT_SET(&ev, first_step, json_integer_value(json_array_get(stretch, 2)));
		EVENT_SET(&ev, step, json_integer_value(json_array_get(stretch, 3)));
		if (driver_record(watch->driver, &ev, err) < 0)
			return -1;
	}
	return 0;
}

/* Returns the newest row as a new reference; NULL if it is already told. */
static json_t *new_row(struct attempt_watch *watch, int64_t *ret_step)
{
	json_auto_t *row = metrics_row(watch->metrics, ret_step);

	if (!row || json_equal(row, watch->recorded_row) ||
	    (*ret_step >= 0 && *ret_step < watch->recorded_step))
		return NULL;
	json_decref(watch->recorded_row);
	watch->recorded_row = json_incref(row);
	return TAKE(row);
}

int numbers_record(struct attempt_watch *watch, bool at_end, struct err **err)
{
	struct step_progress newest = metrics_progress(watch->metrics);
	json_auto_t *numbers = NULL;
	const json_t *step_rate = find_step_rate(watch, at_end);
	int64_t step;

	watch->numbers_changed = false;
	if (record_stretches(watch, step_rate, err) < 0)
		return -1;
	numbers = new_row(watch, &step);
	if (numbers) {
		if (record_progress(watch, step, numbers, step_rate, err) < 0)
			return -1;
		/* Steps after this row are told the next time. */
		watch->numbers_changed = newest.known && newest.step > watch->recorded_step;
		if (!at_end)
			return 0;
		json_decref(TAKE(numbers));
	}
	if (!newest.known || newest.step <= watch->recorded_step)
		return 0;
	watch->numbers_changed = false;
	numbers = step_alone(watch, newest.step);
	return record_progress(watch, newest.step, numbers, step_rate, err);
}

void numbers_show(struct attempt_watch *watch)
{
	const struct driver_options *options = watch->driver->options;
	struct step_progress newest = metrics_progress(watch->metrics);
	json_auto_t *numbers = NULL;
	struct event ev;
	int64_t step;

	watch->numbers_fresh = false;
	numbers = metrics_row(watch->metrics, &step);
	if (numbers && newest.known && step != newest.step)
		json_decref(TAKE(numbers));
	if (!numbers)
		numbers = newest.known ? step_alone(watch, newest.step) : json_object();
	fill_progress(watch, newest.known ? newest.step : -1, numbers, find_step_rate(watch, false),
		      &ev);
	ev.at = driver_now(watch->driver);
	options->on_progress_update(options->arg, &ev);
}
