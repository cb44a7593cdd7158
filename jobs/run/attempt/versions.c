/* Records the versions that agents have found: see versions.h. */
#include "jobs/run/attempt/versions.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

/* Rows of nodes that differ from the first one: hundreds of nodes may differ in the same way. */
#define ELSEWHERE_MAX 64
#define WORDS_MAX     ((size_t)400)

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the row if the two differ. */
static void add_row(json_t *rows, const char *name, const json_t *old, const json_t *new)
{
	if (old && new &&json_equal(old, new))
		return;
	json_array_append_new(
		rows, json_pack("{s:s, s:O?, s:O?}", "field", name, "old", old, "new", new));
}

json_t *versions_difference(const json_t *old_versions, const json_t *new_versions)
{
	size_t most = json_object_size(old_versions) + json_object_size(new_versions), count = 0;
	AUTO(auto_free) const char **names = mem_zero(most + 1, sizeof *names);
	json_t *rows = json_array(), *value;
	const char *name;

	json_object_foreach ((json_t *)old_versions, name, value)
		names[count++] = name;
	json_object_foreach ((json_t *)new_versions, name, value)
		if (!json_object_get(old_versions, name))
			names[count++] = name;
	if (count > 1)
		qsort(names, count, sizeof *names, by_name);
	for (size_t i = 0; i < count; i++)
		add_row(rows, names[i], json_object_get(old_versions, names[i]),
			json_object_get(new_versions, names[i]));
	return rows;
}

/* ---- the nodes of an attempt ---- */

struct versions_told {
	json_t *versions;  /* of the first node that tells any; NULL: none does */
	json_t *elsewhere; /* rows of other nodes that differ */
	int nodes;         /* that tell them */
	size_t differing;  /* nodes */
	struct sb words;
};

static void told_release(struct versions_told *told)
{
	json_decref(told->versions);
	json_decref(told->elsewhere);
	sb_release(&told->words);
}

static const char *word(const json_t *row, const char *side)
{
	const char *text = js_str(row, side);

	return text ? text : "none";
}

static void add_differing(struct versions_told *told, int node, const json_t *rows)
{
	const json_t *row;
	size_t i;

	told->differing += json_array_size(rows) > 0;
	json_array_foreach (rows, i, row) {
		json_t *copy;

		sb_addf(&told->words, "%snode %d has %s %s in place of %s",
			told->words.len > 0 ? "; " : "", node, js_str(row, "field"),
			word(row, "new"), word(row, "old"));
		if (json_array_size(told->elsewhere) >= ELSEWHERE_MAX)
			continue;
		copy = json_pack("{s:i}", "node", node);
		json_object_update(copy, (json_t *)row);
		json_array_append_new(told->elsewhere, copy);
	}
}

static int gather(struct attempt_watch *watch, struct versions_told *told, struct err **err)
{
	for (int node = 0; node < watch->nodes; node++) {
		AUTO(node_report_release) struct node_report report = { 0 };
		json_auto_t *rows = NULL;

		if (attempt_report(watch, node, &report, err) < 0)
			return -1;
		if (!json_is_object(report.versions))
			continue;
		told->nodes++;
		if (!told->versions) {
			told->versions = json_incref(report.versions);
			continue;
		}
		rows = versions_difference(told->versions, report.versions);
		add_differing(told, node, rows);
	}
	return 0;
}

int versions_record(struct attempt_watch *watch, struct err **err)
{
	struct driver *driver = watch->driver;
	AUTO(told_release)
	struct versions_told told = { .elsewhere = json_array(), .words = SB_INIT_MAX(WORDS_MAX) };
	const json_t *image = json_object_get(driver->plan, "image");
	struct event ev;

	if (watch->monitor || driver->facts.versions_nodes >= watch->nodes)
		return 0;
	if (gather(watch, &told, err) < 0)
		return -1;
	if (told.nodes <= driver->facts.versions_nodes)
		return 0;
	attempt_event(watch, EV_ATTEMPT_VERSIONS, &ev);
	EVENT_SET(&ev, nodes, told.nodes);
	EVENT_SET(&ev, versions, told.versions);
	EVENT_SET_STR(&ev, image, js_str(image, "pinned"));
	if (told.differing > 0) {
		EVENT_SET(&ev, elsewhere, told.elsewhere);
		EVENT_SET_STR(&ev, reason, told.words.text);
	}
	return driver_record(driver, &ev, err);
}
