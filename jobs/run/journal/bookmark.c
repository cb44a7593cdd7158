/*
 * The position of the driver in an attempt's logs, and what is known from them: kept beside the
 * journal (runs/<run>/reading.json), so that a driver that takes over goes on there instead of
 * reading gigabytes once more. One file a run, written from time to time where much has been read
 * since. It may be lost, late or of another attempt: then the logs are read again from the start,
 * with the same result.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/maker.h"
#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/attempt/toolkit_series.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/store.h"

#define FORM        2
#define BYTES_MAX   ((size_t)32 << 20)
#define LEAST_BYTES ((uint64_t)256 << 10) /* a smaller amount is read again as quickly */
/* Bytes that are saved sooner, for a local journal and for a remote one. */
#define MUCH_BYTES        ((uint64_t)64 << 20)
#define SOON_MS           1000
#define MUCH_REMOTE_BYTES ((uint64_t)4 << 20)
#define SOON_REMOTE_MS    10000
#define LINE_BYTES        ((uint64_t)1 << 20) /* a longer line is not read again from its beginning */
#define SHARE             100                 /* saving takes at most 1/SHARE of the time */

static char *object_key(const struct driver *driver)
{
	return mem_format("runs/%s/reading.json", driver->run);
}

/* The build id in hex; false if not known. */
static bool name_maker(char ret[2 * MAKER_MAX + 1])
{
	unsigned char maker[MAKER_MAX];

	if (!maker_find(maker))
		return false;
	hash_hex_lower(maker, MAKER_MAX, ret);
	return true;
}

/* ---- saving ------------------------------------------------------------------------ */

/* The lines in which the job first went wrong, as far as they are not among the last lines. */
static json_t *keep_cause(const struct node_log *log, size_t below)
{
	struct failure_line *lines = mem_zero(CAUSE_LINES, sizeof *lines);
	size_t count = first_cause_get(log->watch->cause, (size_t)log->node, below, lines);
	json_t *kept = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(kept, js_text(lines[i].text, lines[i].len));
	free(lines);
	return kept;
}

static json_t *keep_log(const struct node_log *log)
{
	struct engine *engine = log->watch->driver->engine;
	const struct tail *tail = &log->tail;
	uint64_t open = tail->line.len + tail->lost;
	size_t count = log->lines < LAST_LINES ? log->lines : LAST_LINES;
	bool again = open <= LINE_BYTES;
	json_t *lines = json_array(), *kept;

	for (size_t i = 0; i < count; i++) {
		size_t slot = (log->lines - count + i) % LAST_LINES;

		json_array_append_new(lines, js_text(log->last[slot], log->last_len[slot]));
	}
	kept = json_pack("{s:I, s:b, s:b, s:I, s:o}", "offset",
			 (json_int_t)(tail->offset - (again ? open : 0)), "dropping", !again,
			 "returned", tail->returned, "step", (json_int_t)log->step, "last", lines);
	js_put(kept, "cause", keep_cause(log, log->lines - count));
	js_put(kept, "readings", json_integer(toolkit_series_place(log->watch, log->node)));
	if (engine->ops->log_place)
		js_put(kept, "place",
		       engine->ops->log_place(engine, log->watch->job, log->watch->prefix,
					      log->node));
	return kept;
}

static json_t *keep_watch(const struct attempt_watch *watch)
{
	json_t *logs = json_array(), *tally = graph_tally_keep(watch->tally), *kept;
	char maker[2 * MAKER_MAX + 1] = "";

	name_maker(maker);
	for (int node = 0; node < watch->nodes; node++)
		json_array_append_new(logs, keep_log(&watch->logs[node]));
	kept = json_pack("{s:i, s:s, s:s, s:s, s:I, s:s, s:s, s:o}", "form", FORM, "maker", maker,
			 "run", watch->driver->run, "phase", flow_phase_names[watch->phase],
			 "attempt", (json_int_t)watch->attempt, "job", watch->job, "kind",
			 watch->driver->kind->name, "logs", logs);
	js_put(kept, "first_step", json_integer(watch->first_step));
	js_put(kept, "last_step", json_integer(watch->last_step));
	js_put(kept, "stepped_at", json_integer(watch->stepped_at.ms));
	js_put(kept, "step_node", json_integer(watch->step_node));
	js_put(kept, "hits_told", json_integer(watch->hits_recorded));
	js_put(kept, "graphs_told", json_boolean(watch->graphs_at.ms > 0));
	js_put(kept, "late", json_deep_copy(watch->late));
	js_put(kept, "metrics", metrics_keep(watch->metrics));
	js_put(kept, "book", tally);
	return kept;
}

static int write_bookmark(struct driver *driver, const char *text, struct err **err)
{
	AUTO(auto_free) char *key = object_key(driver);
	struct store *store = journal_store(driver->journal);
	AUTO(auto_free) char *path = NULL;

	if (store)
		return store_put(store, key, text, strlen(text), err);
	path = fs_join(journal_dir(driver->journal), key);
	return fs_write_atomic(path, text, strlen(text), 0600, err);
}

static uint64_t bytes_read(const struct attempt_watch *watch)
{
	uint64_t bytes = 0;

	for (int node = 0; node < watch->nodes; node++)
		bytes += watch->logs[node].tail.offset;
	return bytes;
}

static bool is_due(const struct attempt_watch *watch, bool leaving)
{
	uint64_t news = bytes_read(watch) - watch->marked_bytes;
	int64_t age = clock_mono_now().ms - watch->marked_at.ms;
	bool is_remote = journal_is_remote(watch->driver->journal);

	if (leaving || (watch->marked_at.ms == 0 && watch->behind_since.ms == 0))
		return news >= LEAST_BYTES;
	if (age < watch->marking_ms * SHARE)
		return false;
	return (news >= LEAST_BYTES && age >= (is_remote ? PROGRESS_REMOTE_MS : PROGRESS_MS)) ||
	       (news >= (is_remote ? MUCH_REMOTE_BYTES : MUCH_BYTES) &&
		age >= (is_remote ? SOON_REMOTE_MS : SOON_MS));
}

void bookmark_put(struct attempt_watch *watch, bool leaving)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *kept = NULL;
	struct mono began = clock_mono_now();

	if (!watch->driver->live || !is_due(watch, leaving))
		return;
	/* The next driver must meet the lines whose readings are not kept. */
	if (!toolkit_series_write(watch, true)) {
		watch->marked_at = clock_mono_now();
		watch->marking_ms = watch->marked_at.ms - began.ms;
		return;
	}
	kept = keep_watch(watch);
	text = json_object_get(kept, "book") ? js_line(kept) : NULL;
	if (text && strlen(text) <= BYTES_MAX)
		(void)!write_bookmark(watch->driver, text, &ignored);
	watch->marked_bytes = bytes_read(watch);
	watch->marked_at = clock_mono_now();
	watch->marking_ms = watch->marked_at.ms - began.ms;
}

/* ---- restoring --------------------------------------------------------------------- */

static int read_bookmark(struct driver *driver, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(BYTES_MAX);
	AUTO(auto_free) char *key = object_key(driver);
	struct store *store = journal_store(driver->journal);
	AUTO(auto_free) char *path = NULL;

	if (store) {
		if (store_get(store, key, BYTES_MAX, &text, NULL, err) <= 0)
			return -1;
		return js_parse(text.text, text.len, key, ret, err);
	}
	path = fs_join(journal_dir(driver->journal), key);
	return js_load(path, BYTES_MAX, ret, err);
}

static bool is_of_watch(const struct attempt_watch *watch, const json_t *kept)
{
	char maker[2 * MAKER_MAX + 1];

	return name_maker(maker) && js_is(kept, "maker", maker) &&
	       js_int(kept, "form", 0) == FORM && js_is(kept, "run", watch->driver->run) &&
	       js_is(kept, "phase", flow_phase_names[watch->phase]) &&
	       js_int(kept, "attempt", 0) == watch->attempt && js_is(kept, "job", watch->job) &&
	       js_is(kept, "kind", watch->driver->kind->name) &&
	       json_array_size(json_object_get(kept, "logs")) == (size_t)watch->nodes &&
	       json_is_object(json_object_get(kept, "late"));
}

/* True if a log is at least as long as the part that was read; a log that was started again is
 * not. */
static bool has_log(struct attempt_watch *watch, int node, const json_t *log)
{
	struct engine *engine = watch->driver->engine;
	int64_t offset = js_int(log, "offset", -1);
	int64_t place = toolkit_series_place(watch, node), was = js_int(log, "readings", -1);
	AUTO(err_freep) struct err *ignored = NULL;
	uint64_t size = 0;

	/* Readings that were never kept, or are not there any more, are read again. */
	if (place < was || (place >= 0 && was < 0))
		return false;
	if (offset <= 0 || json_object_get(log, "place"))
		return offset >= 0;
	return engine->ops->log_size(engine, watch->job, watch->prefix, node, &size, &ignored) >
		       0 &&
	       size >= (uint64_t)offset;
}

static bool has_logs(struct attempt_watch *watch, const json_t *logs)
{
	for (int node = 0; node < watch->nodes; node++)
		if (!has_log(watch, node, json_array_get(logs, (size_t)node)))
			return false;
	return true;
}

static void restore_log(struct node_log *log, const json_t *kept)
{
	struct engine *engine = log->watch->driver->engine;
	const json_t *place = json_object_get(kept, "place"), *line;
	size_t i;

	log->tail.offset = (uint64_t)js_int(kept, "offset", 0);
	log->tail.dropping = js_bool(kept, "dropping", false);
	log->tail.returned = js_bool(kept, "returned", false);
	log->step = js_int(kept, "step", -1);
	if (place && engine->ops->log_go_on)
		engine->ops->log_go_on(engine, log->watch->job, log->watch->prefix, log->node,
				       log->tail.offset, place);
	toolkit_series_go_on(log->watch, log->node);
	if (json_array_size(json_object_get(kept, "last")) == LAST_LINES)
		json_array_foreach (json_object_get(kept, "cause"), i, line)
			if (json_is_string(line))
				first_cause_line(log->watch->cause, (size_t)log->node,
						 json_string_value(line), json_string_length(line),
						 log->lines++, clock_mono_now());
	json_array_foreach (json_object_get(kept, "last"), i, line)
		if (json_is_string(line))
			reading_keep_line(log, json_string_value(line), json_string_length(line));
}

void bookmark_restore(struct attempt_watch *watch)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(graph_tally_freep) struct graph_tally *tally = NULL;
	struct graph_tally_counts counts;
	json_auto_t *kept = NULL;

	if (!watch->driver->live || read_bookmark(watch->driver, &kept, &ignored) < 0 ||
	    !is_of_watch(watch, kept) || !has_logs(watch, json_object_get(kept, "logs")))
		return;
	tally = graph_tally_restore(json_object_get(kept, "book"), watch->driver->kind);
	if (!tally)
		return;
	graph_tally_freep(&watch->tally);
	watch->tally = TAKE(tally);
	for (int node = 0; node < watch->nodes; node++)
		restore_log(&watch->logs[node],
			    json_array_get(json_object_get(kept, "logs"), (size_t)node));
	watch->first_step = js_int(kept, "first_step", -1);
	watch->last_step = js_int(kept, "last_step", -1);
	watch->stepped_at.ms = js_int(kept, "stepped_at", 0);
	watch->step_node = (int)js_int(kept, "step_node", 0);
	watch->hits_recorded = js_int(kept, "hits_told", 0);
	watch->graphs_at.ms = js_bool(kept, "graphs_told", false);
	json_object_update(watch->late, json_object_get(kept, "late"));
	metrics_restore(watch->metrics, json_object_get(kept, "metrics"));
	graph_tally_counts(watch->tally, &counts);
	watch->hits = counts.hits;
	watch->misses = counts.misses;
	watch->seconds = counts.seconds;
	watch->news = true;
	toolkit_monitor_go_on(watch->monitor, watch->last_step);
	watch->marked_bytes = bytes_read(watch);
	watch->marked_at = clock_mono_now();
}
