/* What turns leave beside the promoted models: their records, and data that
 * stays out of later ones. See inputs.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/run/inputs/inputs_internal.h"
#include "jobs/run/schedule/turn_record.h"
#include "jobs/store/store_json.h"

#define ASIDE      "aside/"
#define RECORD_MAX ((size_t)1 << 20)

/* --- records of turns --- */

int inputs_turn_check(struct inputs *inputs, struct err **err)
{
	return inputs->beside && inputs->ask->at_is_given
		       ? turn_check_order(inputs->beside, inputs->ask->at, err)
		       : 0;
}

/* Returns what is known of the turn once its data was listed. */
static json_t *listed_members(const struct inputs *inputs, const char *run, const char *reason,
			      const struct data_counts *counts)
{
	json_t *members = json_object();
	char at[UTC_TEXT];

	js_put_str(members, "outcome", run ? "run" : "nothing_new");
	js_put(members, "run", run ? json_string(run) : json_null());
	js_put_str(members, "reason", reason);
	js_put_str(members, "listed", clock_utc_format(inputs->ask->at, at));
	js_put(members, "counts", inputs_data_counts(counts));
	return members;
}

int inputs_turn_record(struct inputs *inputs, const char *run, const char *reason,
		       const struct data_counts *counts, struct err **err)
{
	const char *due = js_str(inputs->ask->turn, "due");
	json_auto_t *members = listed_members(inputs, run, reason, counts);
	json_auto_t *record = NULL;
	struct utc at;

	if (!inputs->beside)
		return 0;
	/* A schedule's turn has a record since it was due. */
	if (due && clock_utc_parse(due, &at))
		return turn_update(inputs->beside, at, NULL, members, err) < 0 ? -1 : 0;
	record = turn_make(js_str(inputs->ask->plan, "name"), inputs->ask->at, "hand",
			   run ? "run" : "nothing_new", run, reason);
	js_put(record, "listed", json_incref(json_object_get(members, "listed")));
	js_put(record, "counts", json_incref(json_object_get(members, "counts")));
	/* Two turns of one moment are one: the first has the record. */
	return turn_claim(inputs->beside, record, err) < 0 ? -1 : 0;
}

/* --- objects that are set aside --- */

static int put_aside(struct store *store, const json_t *data, const char *run, const char *reason,
		     struct err **err)
{
	AUTO(auto_free) char *key = mem_format(ASIDE "%s.json", run);
	AUTO(auto_free) char *line = NULL;
	json_auto_t *record = NULL;
	char at[UTC_TEXT];

	record = json_pack("{s:i, s:s, s:O, s:O, s:s, s:s}", "v", 1, "run", run, "manifest",
			   json_object_get(data, "manifest"), "digest",
			   json_object_get(data, "digest"), "reason", reason, "at",
			   clock_utc_format(clock_utc_now(), at));
	line = js_line(record);
	if (store_put_if_absent(store, key, line, strlen(line), err) < 0)
		return err_wrap(err, "cannot set aside the data of run %s", run);
	return 0;
}

static int take_inputs(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	json_t **ret = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_RUN_CREATED && !*ret && EVENT_HAS(ev, inputs))
		*ret = json_incref(ev->inputs);
	return 1;
}

static int refuse_learnt(const char *run, const char *promoted, struct err **err)
{
	if (strcmp(run, promoted) == 0)
		err_set(err, EXIT_REFUSED,
			"the data of run %s cannot be left out: its model is the promoted one, "
			"from which this turn begins",
			run);
	else
		err_set(err, EXIT_REFUSED,
			"the data of run %s cannot be left out: the promoted model, of run %s, was "
			"trained from its model",
			run, promoted);
	return err_hint(err, "go back to a version before it with 'stoker rollback', then leave "
			     "its data out");
}

/* Data that the promoted model has learnt, itself or by way of its ancestors, cannot be left out by
 * a later turn. */
static int refuse_promoted(struct inputs *inputs, const char *run, struct err **err)
{
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	const json_t *body = inputs->from_promoted ? inputs->head.body : NULL;
	int64_t generation = inputs->head.generation;

	while (body) {
		int64_t parent = js_int(js_path(body, "version.parent"), "generation", 0);

		if (strcmp(js_str(body, "run"), run) == 0)
			return refuse_learnt(run, js_str(inputs->head.body, "run"), err);
		if (parent < 1 || parent >= generation)
			return 0;
		generation = parent;
		model_entry_release(&entry);
		if (model_entry_read(inputs->model, generation, &entry, err) < 0)
			return -1;
		body = entry.body;
	}
	return 0;
}

/* The run's inputs are in the journal. */
int inputs_turn_put_aside(struct inputs *inputs, struct err **err)
{
	char run[JOURNAL_RUN_MAX];
	json_auto_t *given = NULL;
	const json_t *data;

	if (!inputs->ask->without)
		return 0;
	if ((inputs->ask->is_free && inputs->ask->is_free(inputs->ask->arg, err) < 0) ||
	    (inputs->model && model_entry_fill(inputs->model, &inputs->head, err) < 0) ||
	    journal_resolve(inputs->journal, inputs->ask->without, run, err) < 0 ||
	    refuse_promoted(inputs, run, err) < 0 ||
	    journal_read(inputs->journal, run, 1, take_inputs, &given, err) < 0)
		return -1;
	data = json_object_get(given, "data");
	if (!js_str(data, "manifest") || !js_str(data, "digest")) {
		err_set(err, EXIT_REFUSED, "run %s was given no data that could be left out", run);
		return err_hint(err, "name the run whose data did harm; 'stoker list' shows all");
	}
	if (!inputs->beside) {
		err_set(err, EXIT_SPEC, "without a section 'promote' no data can be left out");
		return err_hint(err, "name the folder of the promoted models in promote.url");
	}
	return put_aside(inputs->beside, data, run, "by hand", err);
}

static int collect_key(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	json_array_append_new(arg, json_string(object->key));
	return 0;
}

static int read_aside(struct inputs *inputs, const char *key, struct err **err)
{
	struct store *store = inputs->beside;
	json_auto_t *record = NULL;
	const char *manifest, *digest;
	struct data_list *list;
	int found = store_json_get(store, key, RECORD_MAX, &record, NULL, err);

	if (found <= 0)
		return found;
	manifest = js_str(record, "manifest");
	digest = js_str(record, "digest");
	if (!manifest || !digest || strlen(digest) != SHA256_HEX - 1) {
		err_set(err, EXIT_REFUSED, "'%s/%s' is not a record of data that is set aside",
			store_url(store), key);
		err_damage(err);
		return err_hint(err, "restore it, or delete it to have its data offered again");
	}
	inputs->aside = mem_grow(inputs->aside, inputs->aside_count + 1, sizeof *inputs->aside);
	list = &inputs->aside[inputs->aside_count++];
	*list = (struct data_list){ .url = mem_copy(manifest) };
	memcpy(list->digest, digest, SHA256_HEX);
	return 0;
}

/* The keys of all records, a new reference. */
static int list_aside(const struct inputs *inputs, json_t **ret, struct err **err)
{
	json_auto_t *keys = json_array();

	if (inputs->beside && json_object_get(inputs->ask->plan, "data") &&
	    store_list(inputs->beside, ASIDE, collect_key, keys, err) < 0)
		return err_wrap(err, "cannot read what is set aside");
	*ret = TAKE(keys);
	return 0;
}

int inputs_turn_read_aside(struct inputs *inputs, struct err **err)
{
	const json_t *key;
	size_t i;

	if (list_aside(inputs, &inputs->aside_keys, err) < 0)
		return -1;
	json_array_foreach (inputs->aside_keys, i, key)
		if (read_aside(inputs, json_string_value(key), err) < 0)
			return err_wrap(err, "cannot read what is set aside");
	return 0;
}

int inputs_turn_same_aside(const struct inputs *inputs, bool *ret, struct err **err)
{
	json_auto_t *keys = NULL;

	if (list_aside(inputs, &keys, err) < 0)
		return -1;
	*ret = json_equal(keys, inputs->aside_keys);
	return 0;
}

int inputs_set_aside(const json_t *plan, const json_t *inputs, const char *run, const char *reason,
		     struct err **err)
{
	const json_t *data = json_object_get(inputs, "data");
	const char *url = js_str(json_object_get(plan, "promote"), "url");
	AUTO(store_freep) struct store *store = NULL;

	if (!data || !url || !js_is(json_object_get(plan, "data"), "after_refusal", "set_aside"))
		return 0;
	return store_open(url, &store, err) < 0 ? -1 : put_aside(store, data, run, reason, err);
}
