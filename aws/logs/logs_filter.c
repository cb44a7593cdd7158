/*
 * All log streams with a common name prefix: see logs.h.
 *
 * Each round begins a minute before the newest event, because streams arrive at different speeds;
 * events handed out already are known by their ids. Ids are kept as digests of 64 bits.
 */
#include <stdlib.h>
#include <string.h>

#include "aws/logs/logs.h"
#include "aws/logs/logs_internal.h"
#include "jobs/base/text/text.h"

#define LATE_MS     ((int64_t)60 * 1000)
#define STREAMS_MAX ((size_t)10000)
#define SEEN_MAX    ((size_t)1 << 18) /* limit of ids; beyond it the minute is shortened */

struct logs_filter_seen {
	uint64_t id;
	int64_t at_ms;
};

struct logs_filter {
	char *group, *prefix;
	struct logs_position position;
	int64_t floor_ms; /* start of the current round; nothing before it is asked for */
	int64_t skip;     /* events at floor_ms that were handed out before this filter began */
	char *token;      /* token of the next page in this round; NULL: a new round */
	struct logs_filter_seen *seen; /* an open hash table, or NULL; id 0: free */
	size_t count, size;
};

struct logs_filter *logs_filter_new(const char *group, const char *prefix,
				    const struct logs_position *from)
{
	struct logs_filter *filter = mem_zero(1, sizeof *filter);

	filter->group = mem_copy(group);
	filter->prefix = mem_copy(prefix);
	if (from)
		filter->position = *from;
	filter->floor_ms = filter->position.at_ms;
	filter->skip = filter->position.count;
	return filter;
}

void logs_filter_freep(struct logs_filter **filter)
{
	if (*filter) {
		free((*filter)->group);
		free((*filter)->prefix);
		free((*filter)->token);
		free((*filter)->seen);
	}
	free(*filter);
	*filter = NULL;
}

struct logs_position logs_filter_position(const struct logs_filter *filter)
{
	return filter->position;
}

/* ---- ids ------------------------------------------------------------------------- */

static struct logs_filter_seen *place_of(struct logs_filter_seen *table, size_t size, uint64_t id)
{
	size_t i = (size_t)(id % size);

	while (table[i].id && table[i].id != id)
		i = (i + 1) % size;
	return &table[i];
}

/* Returns the time before which all events have been handed out, late ones too. */
static int64_t horizon(const struct logs_filter *filter)
{
	int64_t at = filter->position.at_ms - (filter->count > SEEN_MAX ? 0 : LATE_MS);

	return at > filter->floor_ms ? at : filter->floor_ms;
}

/* Builds a new table from the ids of `keep_ms` and later. */
static void rebuild(struct logs_filter *filter, int64_t keep_ms)
{
	size_t kept = 0, size;
	struct logs_filter_seen *table;

	for (size_t i = 0; i < filter->size; i++)
		kept += filter->seen[i].id && filter->seen[i].at_ms >= keep_ms;
	size = 64 + kept * 4;
	table = mem_zero(size, sizeof *table);
	for (size_t i = 0; i < filter->size; i++)
		if (filter->seen[i].id && filter->seen[i].at_ms >= keep_ms)
			*place_of(table, size, filter->seen[i].id) = filter->seen[i];
	free(filter->seen);
	filter->seen = table;
	filter->size = size;
	filter->count = kept;
}

/* Returns false if the id was known. */
static bool remember(struct logs_filter *filter, const char *text, int64_t at_ms)
{
	uint64_t id = logs_digest(text);
	struct logs_filter_seen *place;

	if (filter->count * 2 >= filter->size)
		rebuild(filter, horizon(filter));
	place = place_of(filter->seen, filter->size, id);
	if (place->id)
		return false;
	*place = (struct logs_filter_seen){ id, at_ms };
	filter->count++;
	return true;
}

/* Begins the next round, at the horizon. */
static void begin_round(struct logs_filter *filter)
{
	int64_t floor = horizon(filter);

	free(TAKE(filter->token));
	if (floor == filter->floor_ms)
		return;
	filter->floor_ms = floor;
	filter->skip = 0;
	rebuild(filter, floor);
}

/* ---- pages ----------------------------------------------------------------------- */

static json_t *page_request(const struct logs *logs, const struct logs_filter *filter)
{
	/* AWS interleaves the streams by time in any case; imitations of it need the parameter. */
	json_t *body = json_pack("{s:s, s:b}", "logGroupName", filter->group, "interleaved", 1);

	if (*filter->prefix)
		js_put_str(body, "logStreamNamePrefix", filter->prefix);
	if (logs->page > 0)
		js_put(body, "limit", json_integer(logs->page));
	if (filter->floor_ms > 0)
		js_put(body, "startTime", json_integer(filter->floor_ms));
	if (filter->token)
		js_put_str(body, "nextToken", filter->token);
	return body;
}

static void hand_out_page(struct logs_filter *filter, const json_t *events, logs_fn fn, void *arg)
{
	const json_t *event;
	size_t i;

	json_array_foreach (events, i, event) {
		const char *id = js_str(event, "eventId"), *stream = js_str(event, "logStreamName");
		int64_t at = js_int(event, "timestamp", 0);

		if (!stream || !text_starts(stream, filter->prefix) || at < filter->floor_ms ||
		    (id && !remember(filter, id, at)))
			continue;
		if (filter->skip > 0 && at == filter->floor_ms) {
			filter->skip--;
			continue;
		}
		logs_hand_out(&filter->position, event, stream, fn, arg);
	}
}

int logs_filter_read(struct logs *logs, struct logs_filter *filter, logs_fn fn, void *arg,
		     enum logs_state *ret, struct err **err)
{
	json_auto_t *body = page_request(logs, filter), *reply = NULL;
	char code[96];
	int outcome = logs_call(logs, AWS_FILTER_LOG_EVENTS, body, &reply, code, err);
	const char *token;

	*ret = LOGS_NOT_YET;
	if (outcome < 0 && filter->token && strcmp(code, "InvalidParameterException") == 0) {
		/* The token is too old: the next round reads the rest. */
		err_freep(err);
		begin_round(filter);
		*ret = LOGS_MORE;
		return 0;
	}
	if (outcome <= 0)
		return outcome;
	hand_out_page(filter, json_object_get(reply, "events"), fn, arg);
	token = js_str(reply, "nextToken");
	if (token && filter->token && strcmp(token, filter->token) == 0)
		token = NULL; /* a repeated token would never end */
	*ret = token ? LOGS_MORE : LOGS_NO_MORE;
	if (token) {
		free(filter->token);
		filter->token = mem_copy(token);
	} else {
		begin_round(filter);
	}
	return 0;
}

/* ---- names ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads one page of names; `token` becomes the next token, or NULL. */
static int add_names(struct logs *logs, const char *group, const char *prefix, char **token,
		     char ***names, size_t *count, struct err **err)
{
	json_auto_t *body = json_pack("{s:s}", "logGroupName", group), *reply = NULL;
	AUTO(auto_free) char *before = TAKE(*token);
	const json_t *row;
	const char *next;
	size_t i;

	if (*prefix)
		js_put_str(body, "logStreamNamePrefix", prefix);
	js_put_str(body, "nextToken", before);
	if (logs_call(logs, AWS_DESCRIBE_LOG_STREAMS, body, &reply, NULL, err) < 0)
		return -1;
	json_array_foreach (json_object_get(reply, "logStreams"), i, row) {
		if (!js_str(row, "logStreamName"))
			continue;
		*names = mem_grow(*names, *count + 2, sizeof **names);
		(*names)[(*count)++] = mem_copy(js_str(row, "logStreamName"));
		(*names)[*count] = NULL;
	}
	next = js_str(reply, "nextToken");
	if (next && (!before || strcmp(before, next) != 0) && *count < STREAMS_MAX)
		*token = mem_copy(next);
	return 0;
}

int logs_streams(struct logs *logs, const char *group, const char *prefix, char ***ret,
		 struct err **err)
{
	AUTO(auto_strv) char **names = mem_zero(1, sizeof *names);
	AUTO(auto_free) char *token = NULL;
	size_t count = 0;

	do {
		if (add_names(logs, group, prefix, &token, &names, &count, err) < 0)
			return -1;
	} while (token);
	qsort(names, count, sizeof *names, by_name);
	*ret = TAKE(names);
	return 0;
}
