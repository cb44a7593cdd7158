/*
 * Does with data what it is told on stdin, a JSON object a line, and says on stdout what came of
 * it, also a line: so tests in Python can ask of jobs/data/data.h what no command asks, and hold a
 * directory against a bucket.
 *
 * Members of a line: do ("turn", "fetch" or "read"), url, include, done_marker, settle_ms,
 * at (UTC in ms), incremental, hold_out (a url), seen and aside (lists as they were answered),
 * workspace; manifest; base and folder of a fetch. Replies: n (what the function returned), error,
 * hint, code and damage; counts; manifest and seen; count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/data/data.h"

static struct data_list list_of(const json_t *value)
{
	struct data_list list = { 0 };

	if (js_str(value, "url"))
		list.url = mem_copy(js_str(value, "url"));
	if (js_str(value, "digest"))
		snprintf(list.digest, sizeof list.digest, "%s", js_str(value, "digest"));
	return list;
}

static json_t *list_json(const struct data_list *list)
{
	return json_pack("{s:s, s:s}", "url", list->url, "digest", list->digest);
}

static json_t *counts_json(const struct data_counts *counts)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "listed",
			 counts->listed, "objects", counts->objects, "new", counts->fresh,
			 "replaced", counts->replaced, "deleted", counts->deleted, "waiting",
			 counts->waiting, "unmarked", counts->unmarked, "aside", counts->aside,
			 "held_out", counts->held_out, "excluded", counts->excluded, "unsafe",
			 counts->unsafe, "bytes", (json_int_t)counts->bytes);
}

static struct data_source source_of(const json_t *line)
{
	return (struct data_source){
		.url = js_str(line, "url"),
		.include = json_object_get(line, "include"),
		.done_marker = js_str(line, "done_marker"),
		.settle_ms = js_int(line, "settle_ms", 0),
	};
}

static int store_turn(struct data_turn *turn, const json_t *line, json_t *reply, struct err **err)
{
	AUTO(data_list_release) struct data_list manifest = { 0 }, seen = { 0 };
	AUTO(store_freep) struct store *workspace = NULL;

	if (store_open(js_str(line, "workspace"), &workspace, err) < 0 ||
	    data_turn_store(turn, workspace, &manifest, &seen, err) < 0)
		return -1;
	js_put(reply, "manifest", list_json(&manifest));
	js_put(reply, "seen", list_json(&seen));
	return 0;
}

/* Sets aside what the manifests of the line were given. */
static int leave_out(const json_t *line, struct data_turn *turn, struct err **err)
{
	const json_t *aside = json_object_get(line, "aside");
	struct data_list lists[8] = { 0 };
	size_t count = json_array_size(aside);
	int result;

	for (size_t i = 0; i < count && i < STK_LENGTH(lists); i++)
		lists[i] = list_of(json_array_get(aside, i));
	result = count > 0 ? data_turn_leave_out(turn, lists, count, err) : 0;
	for (size_t i = 0; i < STK_LENGTH(lists); i++)
		data_list_release(&lists[i]);
	return result;
}

static int look(const json_t *line, const struct data_query *query, json_t *reply, struct err **err)
{
	AUTO(data_turn_freep) struct data_turn *turn = NULL;

	if (data_turn_open(query, &turn, err) < 0 || leave_out(line, turn, err) < 0 ||
	    (js_bool(line, "probe", false) && data_turn_probe(turn, err) < 0) ||
	    (js_str(line, "workspace") && store_turn(turn, line, reply, err) < 0))
		return -1;
	js_put(reply, "counts", counts_json(data_turn_counts(turn)));
	return 0;
}

static int do_turn(const json_t *line, json_t *reply, struct err **err)
{
	AUTO(data_list_release) struct data_list seen = list_of(json_object_get(line, "seen"));
	AUTO(data_turn_freep) struct data_turn *hold_out = NULL;
	struct data_query query = {
		.source = source_of(line),
		.at.ms = js_int(line, "at", clock_utc_now().ms),
		.incremental = js_bool(line, "incremental", true),
		.seen = &seen,
	};
	const struct data_query held = { .source.url = js_str(line, "hold_out") };

	if (held.source.url && data_url_is_list(held.source.url)) {
		if (data_turn_open(&held, &hold_out, err) < 0)
			return -1;
		query.held = hold_out;
	} else {
		query.held_below = held.source.url;
	}
	return look(line, &query, reply, err);
}

static int do_read(const json_t *line, json_t *reply, struct err **err)
{
	AUTO(data_list_release)
	struct data_list manifest = list_of(json_object_get(line, "manifest"));
	AUTO(data_reader_freep) struct data_reader *reader = NULL;
	struct data_row row;
	int64_t count = 0;
	int found = data_reader_open(&manifest, &reader, err);

	while (found >= 0 && (found = data_reader_next(reader, &row, err)) > 0)
		count++;
	js_put(reply, "count", json_integer(count));
	return found;
}

static int do_fetch(const json_t *line, json_t *reply, struct err **err)
{
	const char *folder = js_str(line, "folder");
	AUTO(auto_free) char *path = mem_format("%s.list", folder);
	AUTO(auto_free) char *where = NULL;

	if (data_fetch_manifest(js_str(json_object_get(line, "manifest"), "url"), path, &where,
				err) < 0)
		return -1;
	js_put_str(reply, "path", where);
	return data_fetch_objects(where, js_str(line, "base"), folder, err);
}

static void answer(const json_t *line)
{
	json_auto_t *reply = json_object();
	AUTO(err_freep) struct err *err = NULL;
	const char *verb = js_str(line, "do");
	AUTO(auto_free) char *text = NULL;
	int n = strcmp(verb, "turn") == 0    ? do_turn(line, reply, &err)
		: strcmp(verb, "fetch") == 0 ? do_fetch(line, reply, &err)
					     : do_read(line, reply, &err);

	js_put(reply, "n", json_integer(n));
	if (err) {
		js_put_str(reply, "error", err->message);
		js_put_str(reply, "hint", err->hint);
		js_put(reply, "code", json_integer(err->code));
		js_put(reply, "damage", json_boolean(err->damage));
	}
	text = json_dumps(reply, JSON_COMPACT);
	puts(text);
	fflush(stdout);
}

int main(void)
{
	AUTO(auto_free) char *text = NULL;
	size_t size = 0;

	while (getline(&text, &size, stdin) > 0) {
		json_auto_t *line = json_loads(text, JSON_ALLOW_NUL, NULL);

		if (!line)
			return 2;
		answer(line);
	}
	return 0;
}
