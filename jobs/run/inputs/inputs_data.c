/* Data, hold-out and input of the inference: listed, and stored as manifests.
 * See inputs.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/run/inputs/inputs_internal.h"

static const char *data_str(const json_t *plan, const char *name)
{
	return js_str(json_object_get(plan, "data"), name);
}

static struct data_source source_of_data(const json_t *plan)
{
	const json_t *data = json_object_get(plan, "data");

	return (struct data_source){
		.url = js_str(data, "url"),
		.include = json_object_get(data, "include"),
		.done_marker = js_str(data, "done_marker"),
		.settle_ms = js_int(data, "settle_ms", 0),
	};
}

json_t *inputs_data_counts(const struct data_counts *counts)
{
	const struct {
		const char *name;
		int64_t count;
	} rows[] = {
		{ "deleted", counts->deleted },   { "waiting", counts->waiting },
		{ "unmarked", counts->unmarked }, { "aside", counts->aside },
		{ "held_out", counts->held_out }, { "excluded", counts->excluded },
		{ "unsafe", counts->unsafe },
	};
	json_t *json = json_pack("{s:I, s:I, s:I, s:I}", "objects", (json_int_t)counts->objects,
				 "new", (json_int_t)counts->fresh, "replaced",
				 (json_int_t)counts->replaced, "bytes", (json_int_t)counts->bytes);

	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (rows[i].count > 0)
			js_put(json, rows[i].name, json_integer(rows[i].count));
	return json;
}

static int store_turn(const struct inputs *inputs, struct data_turn *turn, bool with_seen,
		      const char *name, struct err **err)
{
	AUTO(data_list_release) struct data_list manifest = { 0 };
	AUTO(data_list_release) struct data_list seen = { 0 };
	json_t *json;

	if (data_turn_store(turn, inputs->workspace, &manifest, with_seen ? &seen : NULL, err) < 0)
		return -1;
	json = inputs_data_counts(data_turn_counts(turn));
	js_put_str(json, "manifest", manifest.url);
	js_put_str(json, "digest", manifest.digest);
	if (with_seen) {
		js_put_str(json, "seen", seen.url);
		js_put_str(json, "seen_digest", seen.digest);
	}
	js_put(inputs->json, name, json);
	return 0;
}

static const char hold_out_words[] = "cannot use the hold-out of evaluate.data";
static const char infer_words[] = "cannot use the input of the inference";

/* All objects of a source: the hold-out, or the input of the inference. */
static int list_all(const struct inputs *inputs, const struct data_source *source,
		    const char *words, struct data_turn **ret, struct err **err)
{
	const struct data_query query = { .source = *source, .at = inputs->ask->at };

	if (data_turn_open(&query, ret, err) < 0)
		return err_wrap(err, "%s", words);
	return 0;
}

static int store_all(const struct inputs *inputs, struct data_turn *turn, const char *name,
		     const char *words, struct err **err)
{
	if (data_turn_probe(turn, err) < 0 || store_turn(inputs, turn, false, name, err) < 0)
		return err_wrap(err, "%s", words);
	return 0;
}

static int add_infer(const struct inputs *inputs, struct err **err)
{
	const json_t *plan = inputs->ask->plan, *infer = json_object_get(plan, "infer");
	const char *input = js_str(infer, "input");
	AUTO(data_turn_freep) struct data_turn *turn = NULL;
	const struct data_source other = { .url = input };
	const struct data_source data = source_of_data(plan);
	bool is_data = !input || strcmp(input, "data.url") == 0;

	if (!infer || (is_data && !data.url))
		return 0;
	if (list_all(inputs, is_data ? &data : &other, infer_words, &turn, err) < 0)
		return -1;
	return store_all(inputs, turn, "infer", infer_words, err);
}

static bool is_enough(const struct inputs *inputs, const struct data_counts *counts)
{
	int64_t least = js_int(json_object_get(inputs->ask->plan, "data"), "min_new", 1);

	return !inputs->ask->retrain || (counts->fresh > 0 && counts->fresh >= least);
}

static int refuse_empty(const struct inputs *inputs, const struct data_counts *counts,
			struct err **err)
{
	AUTO(auto_free) char *words = inputs_data_words(inputs->ask->plan, counts, true);

	err_set(err, EXIT_REFUSED, "no object of '%s' would be given to the run: %s",
		data_str(inputs->ask->plan, "url"), words);
	return err_hint(err, "set data.incremental to false, or wait for new data");
}

/* Lists the hold-out, unless that is done. */
static int list_hold_out(struct inputs *inputs, struct err **err)
{
	const json_t *evaluate = json_object_get(inputs->ask->plan, "evaluate");
	const struct data_source held = { .url = js_str(evaluate, "data") };

	return held.url && !inputs->hold_out
		       ? list_all(inputs, &held, hold_out_words, &inputs->hold_out, err)
		       : 0;
}

int inputs_data_list(struct inputs *inputs, struct data_counts *ret, struct err **err)
{
	const json_t *plan = inputs->ask->plan, *data = json_object_get(plan, "data");
	const char *held = js_str(json_object_get(plan, "evaluate"), "data");
	bool is_list = held && data_url_is_list(held);
	struct data_query query = {
		.source = source_of_data(plan),
		.at = inputs->ask->at,
		.incremental = js_bool(data, "incremental", true),
		.seen = &inputs->given,
		.held_below = is_list ? NULL : held,
	};

	if (!data)
		return 1;
	if (is_list && list_hold_out(inputs, err) < 0)
		return -1;
	query.held = inputs->hold_out;
	if (data_turn_open(&query, &inputs->turn, err) < 0)
		return -1;
	*ret = *data_turn_counts(inputs->turn);
	return is_enough(inputs, ret);
}

int inputs_data_leave_out(struct inputs *inputs, struct data_counts *ret, struct err **err)
{
	if (!inputs->turn || inputs->aside_count == 0)
		return 1;
	if (data_turn_leave_out(inputs->turn, inputs->aside, inputs->aside_count, err) < 0)
		return -1;
	*ret = *data_turn_counts(inputs->turn);
	return is_enough(inputs, ret);
}

int inputs_data_store(struct inputs *inputs, struct data_counts *ret, struct err **err)
{
	if (list_hold_out(inputs, err) < 0)
		return -1;
	if (inputs->turn) {
		if (ret->objects == 0)
			return refuse_empty(inputs, ret, err);
		if (store_turn(inputs, inputs->turn, true, "data", err) < 0)
			return -1;
		/* Files that were written to meanwhile have left the manifest. */
		*ret = *data_turn_counts(inputs->turn);
		if (!is_enough(inputs, ret))
			return 0;
	}
	if (inputs->hold_out &&
	    store_all(inputs, inputs->hold_out, "hold_out", hold_out_words, err) < 0)
		return -1;
	return add_infer(inputs, err) < 0 ? -1 : 1;
}

char *inputs_data_words(const json_t *plan, const struct data_counts *counts, bool is_enough)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	const char *url = data_str(plan, "url");
	const struct {
		int64_t count;
		const char *what;
	} rows[] = {
		{ counts ? counts->replaced : 0, "of them replaced" },
		{ counts ? counts->deleted : 0, "deleted since" },
		{ counts ? counts->waiting : 0, "too young" },
		{ counts ? counts->unmarked : 0, "in folders that are not marked as done" },
		{ counts ? counts->aside : 0, "set aside" },
		{ counts ? counts->held_out : 0, "in the hold-out" },
	};

	if (!counts || !url)
		return NULL;
	sb_addf(&words, "%" PRId64 " of %" PRId64 " objects in %s %s new", counts->fresh,
		counts->listed, url, counts->fresh == 1 ? "is" : "are");
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (rows[i].count > 0)
			sb_addf(&words, ", %" PRId64 " %s", rows[i].count, rows[i].what);
	if (!is_enough && counts->fresh > 0)
		sb_addf(&words, "; a turn needs %" PRId64 " (data.min_new)",
			js_int(json_object_get(plan, "data"), "min_new", 1));
	return sb_take(&words);
}
