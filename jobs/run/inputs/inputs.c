/* What a run is given, from plan, data and promoted models: see inputs.h. */
#include "jobs/run/inputs/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/run/inputs/inputs_internal.h"

static void inputs_release(struct inputs *inputs)
{
	json_decref(inputs->json);
	store_freep(&inputs->workspace);
	model_entry_release(&inputs->head);
	model_seen_release(&inputs->seen);
	model_freep(&inputs->model);
	store_freep(&inputs->beside);
	for (size_t i = 0; i < inputs->aside_count; i++)
		data_list_release(&inputs->aside[i]);
	free(inputs->aside);
	json_decref(inputs->aside_keys);
	data_turn_freep(&inputs->turn);
	data_turn_freep(&inputs->hold_out);
}

static int open_places(struct inputs *inputs, struct err **err)
{
	const json_t *plan = inputs->ask->plan;
	const char *url = js_str(json_object_get(plan, "promote"), "url");

	if (store_open(js_str(plan, "workspace"), &inputs->workspace, err) < 0)
		return -1;
	if (!url)
		return 0;
	if (store_open(url, &inputs->beside, err) < 0 ||
	    model_open(url, js_str(plan, "name"), &inputs->model, err) < 0)
		return -1;
	return model_head_seen(inputs->model, &inputs->head, &inputs->seen, err) < 0 ? -1 : 0;
}

/* True if the driver will find the parent in the promoted version (jobs/run/plan/parent.h): its
 * list is then what was given before. */
static bool is_from_promoted(const struct inputs *inputs)
{
	const char *from = js_str(json_object_get(inputs->ask->plan, "parent"), "from");

	if (inputs->head.generation == 0)
		return false;
	return !from || strcmp(from, "auto") == 0 ? inputs->ask->retrain
						  : strcmp(from, "promoted") == 0;
}

/* Adds the pointer as it was: a promotion moves it from there alone. */
static void add_pointer(struct inputs *inputs)
{
	const json_t *turn = inputs->ask->turn;
	json_t *pointer;

	if (inputs->model) {
		pointer = json_object();
		js_put(pointer, "generation", json_integer(inputs->head.generation));
		if (inputs->head.generation > 0)
			js_put_str(pointer, "digest", inputs->head.digest);
		js_put(inputs->json, "pointer", pointer);
		if (json_is_object(js_path(inputs->head.body, "version.took")))
			js_put(inputs->json, "took",
			       json_incref(json_object_get(
				       json_object_get(inputs->head.body, "version"), "took")));
	}
	if (inputs->ask->retrain &&
	    !js_is(json_object_get(inputs->ask->plan, "promote"), "when", "manual"))
		js_put(inputs->json, "promotes", json_true());
	if (turn)
		js_put(inputs->json, "turn", json_incref((json_t *)turn));
}

static int refuse_no_data(struct err **err)
{
	err_set(err, EXIT_SPEC, "a retraining needs data, and the spec has no section 'data'");
	return err_hint(err,
			"say where new data arrives, for example data: {url: s3://bucket/new}");
}

static bool asks_for_inputs(const json_t *plan)
{
	static const char *const sections[] = { "data", "parent", "evaluate", "infer", "promote" };

	for (size_t i = 0; i < STK_LENGTH(sections); i++)
		if (json_object_get(plan, sections[i]))
			return true;
	return false;
}

/* True if no other version was promoted, and no other data set aside, since that was asked. */
static int is_as_before(struct inputs *inputs, bool *ret, struct err **err)
{
	AUTO(model_entry_release) struct model_entry head = { 0 };
	AUTO(model_seen_release) struct model_seen seen = { 0 };

	if (inputs->model && model_head_seen(inputs->model, &head, &seen, err) < 0)
		return -1;
	*ret = head.generation == inputs->head.generation &&
	       strcmp(head.digest, inputs->head.digest) == 0;
	return *ret ? inputs_turn_same_aside(inputs, ret, err) : 0;
}

/* Fixes the inputs when there is something new. Returns as inputs_make() does. */
static int fix(struct inputs *inputs, struct data_counts *counts, struct err **err)
{
	const struct inputs_ask *ask = inputs->ask;
	bool same = true;
	int found;

	if ((ask->is_free && ask->is_free(ask->arg, err) < 0) ||
	    (inputs->model && model_entry_fill(inputs->model, &inputs->head, err) < 0) ||
	    inputs_turn_read_aside(inputs, err) < 0)
		return -1;
	add_pointer(inputs);
	found = inputs_data_leave_out(inputs, counts, err);
	if (found > 0)
		found = inputs_data_store(inputs, counts, err);
	if (found <= 0 || !ask->claim)
		return found;
	/* Most turns find nothing new, and need no claim: so another one may have come and gone
	 * since this one has asked. */
	if (ask->claim(ask->arg, err) < 0 || is_as_before(inputs, &same, err) < 0)
		return -1;
	return same ? 1 : INPUTS_OLD;
}

int inputs_make(struct journal *journal, const struct inputs_ask *ask, json_t **ret,
		char **ret_words, struct err **err)
{
	AUTO(inputs_release)
	struct inputs inputs = { .ask = ask, .journal = journal, .json = json_object() };
	struct data_counts counts = { 0 };
	bool has_data = json_object_get(ask->plan, "data") != NULL;
	int found;

	*ret = NULL;
	*ret_words = NULL;
	if (ask->retrain && !has_data)
		return refuse_no_data(err);
	if (!asks_for_inputs(ask->plan))
		return 1;
	if (open_places(&inputs, err) < 0 || inputs_turn_check(&inputs, err) < 0)
		return -1;
	inputs.from_promoted = is_from_promoted(&inputs);
	if (inputs.from_promoted) {
		inputs.given.url = inputs.seen.url;
		memcpy(inputs.given.digest, inputs.seen.sha256, sizeof inputs.given.digest);
	}
	if (inputs_turn_put_aside(&inputs, err) < 0)
		return -1;
	found = inputs_data_list(&inputs, &counts, err);
	/* Waiting data may be what another turn is driven with: that is told. */
	if (found == 0 && counts.fresh + counts.waiting > 0 && ask->is_free &&
	    ask->is_free(ask->arg, err) < 0)
		return -1;
	if (found > 0)
		found = fix(&inputs, &counts, err);
	if (found < 0 || found == INPUTS_OLD)
		return found;
	*ret_words = inputs_data_words(ask->plan, has_data ? &counts : NULL, found > 0);
	if (ask->retrain &&
	    inputs_turn_record(&inputs, found ? ask->run : NULL, *ret_words, &counts, err) < 0)
		return -1;
	if (found > 0)
		*ret = TAKE(inputs.json);
	return found;
}

int inputs_find_drift(const json_t *plan, const json_t *inputs, json_t **ret, struct err **err)
{
	const json_t *data = json_object_get(inputs, "data");
	const struct data_source source = { .url = js_str(json_object_get(plan, "data"), "url") };
	struct data_list manifest = { 0 };
	AUTO(data_drift_release) struct data_drift drift = { 0 };
	int result;

	*ret = NULL;
	if (!data || !source.url)
		return 0;
	manifest.url = mem_copy(js_str(data, "manifest"));
	snprintf(manifest.digest, sizeof manifest.digest, "%s", js_str(data, "digest"));
	result = data_drift_find(&source, &manifest, &drift, err);
	data_list_release(&manifest);
	if (result < 0)
		return err_wrap(err, "cannot compare the data with what the run was given");
	if (drift.changed + drift.gone > 0)
		*ret = json_pack("{s:I, s:I, s:s}", "changed", (json_int_t)drift.changed, "gone",
				 (json_int_t)drift.gone, "first", drift.first);
	return 0;
}
