/* The record of a sweep: see sweep_record.h. */
#include "jobs/run/sweep/sweep_record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/store/store.h"

#define RECORD_MAX ((size_t)64 << 20)

/* ---- making ---- */

/* Returns the ids of a cell's runs: ID-CELL-REPEAT, from 1. */
static json_t *ids_of(const char *id, size_t cell, int64_t repeat)
{
	json_t *ids = json_array();

	for (int64_t i = 1; i <= repeat; i++) {
		AUTO(auto_free) char *run = mem_format("%s-%zu-%lld", id, cell + 1, (long long)i);

		json_array_append_new(ids, json_string(run));
	}
	return ids;
}

/* Sets the ids of all runs. */
static int set_ids(json_t *record, struct err **err)
{
	const char *id = js_str(record, "sweep");
	json_t *cell;
	size_t i;

	json_array_foreach (json_object_get(record, "cells"), i, cell) {
		json_t *runs = ids_of(id, i, js_int(record, "repeat", 1));
		const char *last =
			json_string_value(json_array_get(runs, json_array_size(runs) - 1));
		bool fits = text_run_id_valid(last);

		js_put(cell, "runs", runs);
		if (fits)
			continue;
		err_set(err, EXIT_USAGE, "the id '%s' is too long for a sweep", id);
		return err_hint(err,
				"its runs are called '%s-CELL-REPEAT', of at most %d "
				"characters: choose a shorter --id",
				id, JOURNAL_RUN_MAX - 1);
	}
	return 0;
}

/* Takes over what may change while a sweep goes on. */
static void take_limits(json_t *record, const json_t *sweep)
{
	static const char *const keys[] = { "repeat", "parallel", "cost", "deadline_ms" };

	for (size_t i = 0; i < STK_LENGTH(keys); i++) {
		json_object_del(record, keys[i]);
		js_put(record, keys[i], json_incref(json_object_get(sweep, keys[i])));
	}
}

int sweep_record_make(const char *id, const json_t *sweep, const json_t *plan, const char *digest,
		      json_t **ret, struct err **err)
{
	json_auto_t *record = json_object();
	bool on_best = js_bool(sweep, "on_best", false);
	json_t *cells = json_array(), *cell;
	char now[UTC_TEXT];
	size_t i;

	json_array_foreach (json_object_get(sweep, "cells"), i, cell) {
		json_t *kept = json_object(), *sets = json_object_get(cell, "sets");

		js_put_str(kept, "name", js_str(cell, "name"));
		js_put(kept, "own", json_incref(sets));
		if (!on_best || i == 0)
			js_put(kept, "sets", json_deep_copy(sets));
		json_array_append_new(cells, kept);
	}
	js_put(record, "v", json_integer(1));
	js_put_str(record, "sweep", id);
	js_put_str(record, "created", clock_utc_format(clock_utc_now(), now));
	js_put_str(record, "name", js_str(plan, "name"));
	js_put_str(record, "spec_file", js_str(plan, "spec_file"));
	js_put_str(record, "base", digest);
	js_put_str(record, "source", js_str(js_path(plan, "source"), "digest"));
	js_put_str(record, "kind", js_str(sweep, "kind"));
	js_put(record, "on_best", json_boolean(on_best));
	js_put(record, "cells", cells);
	take_limits(record, sweep);
	if (set_ids(record, err) < 0)
		return -1;
	*ret = TAKE(record);
	return 0;
}

static bool has_same_cells(const json_t *record, const json_t *sweep)
{
	const json_t *mine = json_object_get(record, "cells");
	const json_t *cells = json_object_get(sweep, "cells"), *cell;
	size_t i;

	if (json_array_size(mine) != json_array_size(cells) ||
	    js_bool(record, "on_best", false) != js_bool(sweep, "on_best", false))
		return false;
	json_array_foreach (cells, i, cell)
		if (!json_equal(json_object_get(json_array_get(mine, i), "own"),
				json_object_get(cell, "sets")))
			return false;
	return true;
}

int sweep_record_go_on(json_t *record, const json_t *sweep, const char *digest, struct err **err)
{
	const char *id = js_str(record, "sweep"), *base = js_str(record, "base");
	int64_t before = js_int(record, "repeat", 1);

	if (!has_same_cells(record, sweep)) {
		err_set(err, EXIT_SPEC, "sweep %s has other cells than the spec now", id);
		return err_hint(err, "choose another --id, or undo the change");
	}
	if (!base || strcmp(base, digest) != 0) {
		err_set(err, EXIT_SPEC, "sweep %s belongs to another plan", id);
		return err_hint(err, "choose another --id, or undo the change of spec or source; "
				     "--set changes sweep.repeat, sweep.parallel and "
				     "sweep.stop_when of a sweep that goes on");
	}
	if (js_int(sweep, "repeat", 1) < before) {
		err_set(err, EXIT_SPEC, "sweep %s has %lld runs of each cell already", id,
			(long long)before);
		return err_hint(err, "set sweep.repeat to %lld or more", (long long)before);
	}
	take_limits(record, sweep);
	return set_ids(record, err);
}

/* ---- keeping ---- */

#define KEY      "sweeps/%s.json"
#define STOP_KEY "sweeps/%s.stop.json"

static int damaged(const struct journal *journal, const char *id, struct err **err)
{
	err_set(err, EXIT_REFUSED, "the record of sweep %s is damaged", id);
	err_damage(err);
	return err_hint(err,
			"remove '" KEY "' below '%s': 'stoker sweep SPEC --id %s' makes it "
			"again, and its runs stay",
			id, journal_url(journal), id);
}

/* True for a list of texts that `is_good`; NULL: that any text is. */
static bool is_list_of(const json_t *list, bool (*is_good)(const char *text))
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (!json_is_string(item) || (is_good && !is_good(json_string_value(item))))
			return false;
	return json_is_array(list);
}

static bool is_set(const char *text)
{
	return strchr(text, '=') != NULL;
}

/* True for a record whose members can be relied on. */
static bool is_sound(const json_t *record, const char *id)
{
	const json_t *cells = json_object_get(record, "cells"), *cell;
	size_t i;

	if (!js_is(record, "sweep", id) || json_array_size(cells) == 0)
		return false;
	json_array_foreach (cells, i, cell)
		if (!js_str(cell, "name") ||
		    !is_list_of(json_object_get(cell, "runs"), text_run_id_valid) ||
		    json_array_size(json_object_get(cell, "runs")) == 0 ||
		    !is_list_of(json_object_get(cell, "own"), is_set) ||
		    (json_object_get(cell, "sets") &&
		     !is_list_of(json_object_get(cell, "sets"), is_set)))
			return false;
	return true;
}

/* Reads an object of the sweep. Returns 1, 0 if there is none, -1. */
static int read_object(struct journal *journal, const char *key, struct sb *ret, struct err **err)
{
	struct store *store = journal_store(journal);
	AUTO(auto_free) char *path = NULL;

	if (store)
		return store_get(store, key, RECORD_MAX, ret, NULL, err);
	path = fs_join(journal_dir(journal), key);
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	return fs_read(path, RECORD_MAX, ret, err) < 0 ? -1 : 1;
}

static int write_object(struct journal *journal, const char *key, const json_t *object,
			struct err **err)
{
	struct store *store = journal_store(journal);
	AUTO(auto_free) char *line = js_line(object);
	AUTO(auto_free) char *path = NULL, *folder = NULL;

	if (store)
		return store_put(store, key, line, strlen(line), err);
	folder = fs_join(journal_dir(journal), "sweeps");
	path = fs_join(journal_dir(journal), key);
	if (fs_mkdirs(folder, err) < 0)
		return -1;
	return fs_write_atomic(path, line, strlen(line), 0600, err);
}

static int remove_object(struct journal *journal, const char *key, struct err **err)
{
	struct store *store = journal_store(journal);
	AUTO(auto_free) char *path = NULL;

	if (store)
		return store_delete(store, key, err);
	path = fs_join(journal_dir(journal), key);
	if (unlink(path) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", path);
	return 0;
}

int sweep_record_read(struct journal *journal, const char *id, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(RECORD_MAX);
	AUTO(auto_free) char *key = NULL;
	AUTO(err_freep) struct err *wrong = NULL;
	json_auto_t *record = NULL;
	int found;

	if (!text_run_id_valid(id))
		return 0;
	key = mem_format(KEY, id);
	found = read_object(journal, key, &text, err);
	if (found <= 0)
		return found;
	if (js_parse(text.text, text.len, "the record", &record, &wrong) < 0 ||
	    !is_sound(record, id))
		return damaged(journal, id, err);
	*ret = TAKE(record);
	return 1;
}

int sweep_record_write(struct journal *journal, const json_t *record, struct err **err)
{
	AUTO(auto_free) char *key = mem_format(KEY, js_str(record, "sweep"));

	return write_object(journal, key, record, err);
}

int sweep_record_stop(struct journal *journal, const char *id, const char *reason, struct err **err)
{
	AUTO(auto_free) char *key = mem_format(STOP_KEY, id);
	json_auto_t *stop = json_object();
	char now[UTC_TEXT];

	js_put(stop, "v", json_integer(1));
	js_put_str(stop, "sweep", id);
	js_put_str(stop, "at", clock_utc_format(clock_utc_now(), now));
	js_put_str(stop, "reason", reason);
	return write_object(journal, key, stop, err);
}

int sweep_record_is_stopped(struct journal *journal, const char *id, char **ret_reason,
			    struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *key = mem_format(STOP_KEY, id);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(RECORD_MAX);
	json_auto_t *stop = NULL;
	int found = read_object(journal, key, &text, err);
	const char *reason;

	if (found <= 0 || !ret_reason)
		return found;
	/* A torn file stops the sweep all the same. */
	(void)!js_parse(text.text, text.len, key, &stop, &ignored);
	reason = js_str(stop, "reason");
	*ret_reason = mem_copy(reason && *reason ? reason : "the sweep was stopped");
	return found;
}

int sweep_record_clear(struct journal *journal, const char *id, struct err **err)
{
	AUTO(auto_free) char *key = mem_format(STOP_KEY, id);

	return remove_object(journal, key, err);
}

const char *sweep_record_limit(const json_t *record, double cost)
{
	int64_t deadline = js_int(record, "deadline_ms", 0);
	struct utc created;

	if (json_object_get(record, "cost") && cost >= js_real(record, "cost", 0))
		return "sweep.stop_when.cost";
	if (deadline > 0 && clock_utc_parse(js_str(record, "created"), &created) &&
	    clock_utc_now().ms - created.ms >= deadline)
		return "sweep.stop_when.deadline";
	return NULL;
}

int sweep_record_remove(struct journal *journal, const char *id, struct err **err)
{
	AUTO(auto_free) char *key = mem_format(KEY, id);

	/* The stop holds until nothing is left that could go on. */
	if (remove_object(journal, key, err) < 0)
		return -1;
	return sweep_record_clear(journal, id, err);
}
