/* The table of `list`: see list_text.h. */
#include "cmd/list/list_text.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"

enum list_column {
	LIST_RUN,
	LIST_NAME,
	LIST_STATE,
	LIST_PHASE,
	LIST_ENGINE,
	LIST_AGE,
	LIST_DURATION,
	LIST_COST,
	LIST_DRIVER,
	LIST_FIXED
};

/* The least useful column has the greatest rank and is left out first. */
static const struct {
	const char *title, *piped;
	int rank;
	size_t cut;
} columns[LIST_FIXED] = {
	[LIST_RUN] = { "RUN", "RUN", 0, 0 },
	[LIST_NAME] = { "NAME", "NAME", 2, 12 },
	[LIST_STATE] = { "STATE", "STATE", 0, 9 },
	[LIST_PHASE] = { "PHASE", "PHASE", 6, 0 },
	[LIST_ENGINE] = { "ENGINE", "ENGINE", 5, 0 },
	[LIST_AGE] = { "AGE", "CREATED", 1, 0 },
	[LIST_DURATION] = { "DURATION", "DURATION", 3, 0 },
	[LIST_COST] = { "COST", "COST", 4, 0 },
	[LIST_DRIVER] = { "DRIVER", "DRIVER", 7, 0 },
};
#define RANK_SIZE    2 /* asked for: stays long */
#define RANK_LIVE    1
#define RANK_SETTING 2

static char *copy_of(const char *text)
{
	return text ? mem_copy(text) : NULL;
}

/* Returns "no driver, unseen since 2026-11-25T16:52:04Z"; on a terminal "no driver, unseen 3h". */
static char *state_text(const struct listed *row, const struct list_text_options *options)
{
	const char *since = js_str(row->status, "unseen_since");
	char text[WHEN_TEXT];
	struct utc at;

	if (!row->word || !since || !clock_utc_parse(since, &at))
		return copy_of(row->word);
	if (options->terminal)
		return mem_format("%s, unseen %s", row->word, when_age(at, options->now, text));
	return mem_format("%s, unseen since %s", row->word,
			  when_instant(at, options->now, false, text));
}

static char *age_text(const struct listed *row, const struct list_text_options *options)
{
	char text[WHEN_TEXT];

	if (row->created.ms == 0)
		return NULL;
	if (options->terminal)
		return mem_copy(when_age(row->created, options->now, text));
	return mem_copy(when_instant(row->created, options->now, false, text));
}

static char *driver_text(const struct listed *row)
{
	const json_t *driver = json_object_get(row->status, "driver");

	if (!json_is_object(driver))
		return NULL;
	return mem_format("%s:%lld", js_str(driver, "host"), (long long)js_int(driver, "pid", 0));
}

/* Returns what the engine says, or why it says nothing. */
static char *live_text(const struct listed *row)
{
	const json_t *live = json_object_get(row->status, "live");
	const char *reason = js_str(live, "reason");

	if (js_str(live, "error"))
		return mem_format("not known: %s", js_str(live, "error"));
	if (!js_str(live, "state"))
		return NULL;
	return mem_format("%s%s%s", js_str(live, "state"), reason ? ": " : "",
			  reason ? reason : "");
}

static char *value_text(const json_t *value)
{
	if (json_is_null(value))
		return NULL;
	return json_is_string(value) ? mem_copy(json_string_value(value)) : js_line(value);
}

static void add_fixed(struct table *table, const struct listed *row,
		      const struct list_text_options *options)
{
	int64_t duration = run_list_duration(row, options->now);

	table_set(table, LIST_RUN, mem_copy(row->run));
	table_set(table, LIST_NAME, copy_of(row->head.name));
	table_set(table, LIST_STATE, state_text(row, options));
	table_set(table, LIST_PHASE, copy_of(row->head.phase));
	table_set(table, LIST_ENGINE, copy_of(row->head.engine));
	table_set(table, LIST_AGE, age_text(row, options));
	table_set(table, LIST_DURATION, duration < 0 ? NULL : text_format_duration(duration));
	table_set(table, LIST_COST, row->cost < 0 ? NULL : mem_format("%.2f", row->cost));
	table_set(table, LIST_DRIVER, driver_text(row));
}

static enum status_icon mark_of(const struct listed *row)
{
	if (run_list_is_alone(row))
		return MARK_WARN;
	return text_style_icon_of_state(row->head.state, NULL);
}

/* The last word of a setting's path on a terminal, unless two settings have it. */
static const char *title_of(const char *path, const struct list_text_options *options)
{
	const char *dot = strrchr(path, '.'), *other;
	json_t *values;
	int count = 0;

	if (!dot || !options->terminal)
		return path;
	json_object_foreach ((json_t *)options->diff, other, values) {
		const char *last = strrchr(other, '.');

		count += strcmp(last ? last + 1 : other, dot + 1) == 0;
	}
	return count == 1 ? dot + 1 : path;
}

static void add_columns(struct table *table, const struct list_text_options *options)
{
	const char *path;
	json_t *values;

	for (size_t i = 0; i < LIST_FIXED; i++)
		table_add_column(table, options->terminal ? columns[i].title : columns[i].piped,
				 columns[i].rank, columns[i].cut);
	table->columns[LIST_STATE].marked = true;
	if (options->sizes)
		table_add_column(table, "SIZE", RANK_SIZE, 0);
	if (options->live)
		table_add_column(table, "ENGINE SAYS", RANK_LIVE, 8);
	json_object_foreach ((json_t *)options->diff, path, values)
		table_add_column(table, title_of(path, options), RANK_SETTING, 6);
}

void list_text_make(const struct listed *rows, size_t count,
		    const struct list_text_options *options, struct table *ret)
{
	const char *path;
	json_t *values;

	add_columns(ret, options);
	for (size_t i = 0; i < count; i++) {
		size_t column = LIST_FIXED;

		table_add_row(ret, mark_of(&rows[i]));
		add_fixed(ret, &rows[i], options);
		if (options->sizes)
			table_set(ret, column++,
				  rows[i].size < 0 ? NULL
						   : text_format_bytes((uint64_t)rows[i].size));
		if (options->live)
			table_set(ret, column++, live_text(&rows[i]));
		json_object_foreach ((json_t *)options->diff, path, values)
			table_set(ret, column++, value_text(json_array_get(values, i)));
	}
}
