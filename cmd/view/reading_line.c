/* A reading as a line of JSON: see reading_line.h. */
#include "cmd/view/reading_line.h"

json_t *reading_line_json(const char *run, const struct run_reading *reading)
{
	json_t *object = json_object();
	char at[UTC_TEXT];

	js_put_str(object, "run", run);
	js_put(object, "attempt", json_integer(reading->attempt));
	js_put(object, "node", json_integer(reading->node));
	if (reading->step >= 0)
		js_put(object, "step", json_integer(reading->step));
	if (reading->at.ms > 0)
		js_put_str(object, "at", clock_utc_format(reading->at, at));
	js_put_str(object, "name", reading->name);
	js_put(object, "value", js_number(reading->value));
	js_put(object, "counts", json_boolean(reading->counts));
	if (reading->replayed)
		js_put(object, "replayed", json_true());
	if (reading->late)
		js_put(object, "late", json_true());
	return object;
}

json_t *reading_line_loss_json(const char *run, const struct run_series_loss *loss)
{
	json_t *object = json_object();

	js_put_str(object, "run", run);
	js_put(object, "attempt", json_integer(loss->attempt));
	js_put(object, "node", json_integer(loss->node));
	if (loss->after_step >= 0)
		js_put(object, "after_step", json_integer(loss->after_step));
	js_put(object, "lost", json_true());
	return object;
}

void reading_line_add_loss(struct sb *out, const struct run_series_loss *loss)
{
	sb_addf(out, "attempt %lld, node %d, ", (long long)loss->attempt, loss->node);
	if (loss->after_step >= 0)
		sb_addf(out, "behind step %lld", (long long)loss->after_step);
	else
		sb_adds(out, "before the first step");
}
