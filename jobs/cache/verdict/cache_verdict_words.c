/* Wording and evidence of a verdict: see cache_verdict.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/verdict/cache_verdict_internal.h"

/* ": text", or nothing. */
static char *behind_colon(const char *text)
{
	return text ? mem_format(": %s", text) : mem_copy("");
}

/* The reason why the compiler did not produce a graph, as far as known: from the log stored with
 * the graph, else from the job's logs, which may be about another graph. */
static char *failure_of(const struct graph_tally *tally, const struct tally_graph *graph,
			const struct cache_verdict_entry *entry)
{
	const char *first;
	struct graph_tally_front_end said;

	graph_tally_front_end(tally, &said);
	if (entry->error || graph->failed)
		return behind_colon(entry->error ? entry->error : graph->failed);
	first = said.first_error ? said.first_error : said.worker_why;
	return first ? mem_format("; the first error in the logs: %s", first) : mem_copy("");
}

static char *failed_words(const struct graph_tally *tally, const struct tally_graph *graph,
			  const struct cache_verdict_entry *entry)
{
	AUTO(auto_free) char *why = failure_of(tally, graph, entry);

	if (graph->cached_failure && !graph->missed)
		return mem_format("the compiler failed on it in an earlier run, and the failure is "
				  "stored%s",
				  why);
	return mem_format("the compiler failed on it, and the failure is stored%s", why);
}

static char *locked_words(const struct cache_verdict_entry *entry)
{
	AUTO(auto_free) char *age = NULL;

	if (!entry->lock.key)
		return mem_copy("locked: another process compiles it, or died while compiling");
	age = text_format_duration(entry->lock_age_ms);
	return mem_format(
		"locked for %s by '%s': another process compiles it, or died while compiling", age,
		entry->lock.key);
}

static char *missing_words(const struct tally_graph *graph)
{
	if (graph->not_stored)
		return mem_format("compiled, but not stored: %s", graph->not_stored);
	if (graph->failed)
		return mem_format("not in the cache: %s", graph->failed);
	if (graph->stored)
		return mem_copy("reported as written, but not in the cache");
	if (graph->hit)
		return mem_copy("reported as found, but not in the cache");
	if (graph->reported_good)
		return mem_copy("reported as compiled, but not in the cache");
	if (graph->extracted)
		return mem_copy("reported as extracted, but not in the cache");
	return mem_copy("not in the cache");
}

char *cache_verdict_what(const struct graph_tally *tally, const struct tally_graph *graph,
			 const struct cache_verdict_entry *entry)
{
	AUTO(auto_free) char *why = NULL;

	switch (entry->state) {
	case ENTRY_EMPTY:
	case ENTRY_PARTIAL:
		why = failure_of(tally, graph, entry);
		return mem_format("the entry is %s (%s) and stays so until it is removed%s",
				  entry->state == ENTRY_EMPTY ? "empty" : "damaged",
				  entry->why                    ? entry->why
				  : entry->state == ENTRY_EMPTY ? "zero bytes"
								: "cut off, or not marked as whole",
				  why);
	case ENTRY_FAILED:
		return failed_words(tally, graph, entry);
	case ENTRY_LOCKED:
		return locked_words(entry);
	case ENTRY_TODO:
		why = failure_of(tally, graph, entry);
		return mem_format("known to the cache, but not compiled%s", why);
	default:
		return missing_words(graph);
	}
}

/* A cache's URL in a form for comparison; the caller frees it. */
static char *plain_url(const char *url)
{
	char *plain;
	size_t len;

	if (text_starts(url, "file://"))
		url += strlen("file://");
	plain = url[0] == '/' ? fs_absolute(url) : mem_copy(url);
	len = strlen(plain);
	while (len > 1 && plain[len - 1] == '/')
		plain[--len] = '\0';
	return plain;
}

static bool same_cache(const char *used, const char *meant)
{
	AUTO(auto_free) char *plain = plain_url(used);
	AUTO(auto_free) char *intended = plain_url(meant);
	struct stat a, b;

	if (strcmp(plain, intended) == 0)
		return true;
	/* Two paths may name the same folder. */
	return plain[0] == '/' && intended[0] == '/' && stat(plain, &a) == 0 &&
	       stat(intended, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Another cache counts only if at least one in OTHERS_SHARE lines names it: fewer may be lines of
 * several ranks that were torn and merged. */
#define OTHERS_SHARE 8

const char *cache_verdict_other_cache(const struct verify_request *request)
{
	const char *meant = request->cache_url ? request->cache_url : store_url(request->store);
	int64_t meant_times = 0, others = 0;
	struct graph_tally_cache cache, other = { 0 };

	for (size_t n = 0; graph_tally_cache_at(request->tally, n, &cache); n++) {
		if (same_cache(cache.url, meant)) {
			meant_times += cache.times;
			continue;
		}
		others++;
		if (cache.times > other.times)
			other = cache;
	}
	if (meant_times == 0 && others == 1)
		return other.url;
	return other.times > 1 && other.times * OTHERS_SHARE >= meant_times ? other.url : NULL;
}

static const char *lock_at(const struct cache_verdict_totals *totals, size_t n)
{
	return json_string_value(json_array_get(totals->locks, n));
}

/* Length of the common prefix of all locks' keys, up to and including a slash. */
static size_t common_folder(const struct cache_verdict_totals *totals)
{
	size_t len = strlen(lock_at(totals, 0));

	for (size_t i = 0; i < json_array_size(totals->locks); i++) {
		size_t same = 0;

		while (same < len && lock_at(totals, 0)[same] == lock_at(totals, i)[same])
			same++;
		len = same;
	}
	while (len > 0 && lock_at(totals, 0)[len - 1] != '/')
		len--;
	return len;
}

/* The command for a POSIX shell that removes as many of the locks as there is room for; NULL: one
 * of the names cannot be quoted. */
static char *unlock_command(const char *folder, const struct cache_verdict_totals *totals,
			    size_t room)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	size_t common = common_folder(totals), count = json_array_size(totals->locks), i;

	if (strchr(folder, '\''))
		return NULL;
	if (count == 1)
		return strchr(lock_at(totals, 0), '\'')
			       ? NULL
			       : mem_format("rm '%s/%s'", folder, lock_at(totals, 0));
	sb_addf(&text, "cd '%s/%.*s' && rm", folder, (int)common, lock_at(totals, 0));
	for (i = 0; i < count; i++) {
		if (strchr(lock_at(totals, i), '\''))
			return NULL;
		if (text.len + strlen(lock_at(totals, i)) - common + 3 > room)
			break;
		sb_addf(&text, " '%s'", lock_at(totals, i) + common);
	}
	if (i < count)
		sb_addf(&text, "; then the other %zu, which the run names next", count - i);
	return mem_copy_n(text.text, text.len);
}

char *cache_verdict_unlock_hint(const struct verify_request *request,
				const struct cache_verdict_totals *totals)
{
	AUTO(auto_free) char *age = text_format_duration(totals->lock_age_ms);
	const char *folder = store_directory(request->store), *all = request->kind->unlock_command;
	size_t count = json_array_size(totals->locks);
	AUTO(auto_free)
	char *fresh = totals->old_locks > 0 ? mem_copy("")
					    : mem_format("another job may be compiling %s now; run "
							 "again when it has ended; ",
							 count > 1 ? "them" : "it");
	AUTO(auto_free)
	char *command = folder ? unlock_command(folder, totals, UNLOCK_HINT_MAX - 512) : NULL;

	if (command && count > 1)
		return mem_format("%sif no job compiles these graphs any more (the oldest of their "
				  "%zu locks is %s old), remove the locks: %s",
				  fresh, count, age, command);
	if (command)
		return mem_format("%sif no job compiles it any more (its lock is %s old), remove "
				  "the lock: %s",
				  fresh, age, command);
	return mem_format("%sif no job compiles it any more (its lock is %s old), remove the lock "
			  "'%s'%s%s",
			  fresh, age, totals->lock,
			  all ? ", or all of a cache that no job uses: " : "", all ? all : "");
}

static void put_if(json_t *row, const char *name, bool value)
{
	if (value)
		js_put(row, name, json_true());
}

static void put_text(json_t *row, const char *name, const char *text)
{
	if (text)
		js_put(row, name, js_text(text, strlen(text)));
}

static json_t *front_end_json(const struct verify_request *request,
			      const struct cache_verdict_totals *totals)
{
	json_t *row = json_object(), *caches = json_array();
	struct graph_tally_front_end said;
	struct graph_tally_cache cache;

	graph_tally_front_end(request->tally, &said);
	js_put_str(row, "program", request->kind->front_end);
	js_put(row, "nodes", json_integer(said.nodes));
	js_put(row, "blocks", json_integer(said.blocks));
	js_put(row, "nothing_to_do", json_integer(said.nothing));
	js_put(row, "graphs", json_integer(said.graphs));
	js_put(row, "good", json_integer(said.good));
	js_put(row, "bad", json_integer(said.bad));
	if (totals->failed_but_done > 0)
		js_put(row, "failed_but_done", json_integer(totals->failed_but_done));
	if (said.workers_died > 0)
		js_put(row, "workers_died", json_integer(said.workers_died));
	put_text(row, "worker_why", said.worker_why);
	put_text(row, "first_error", said.first_error);
	put_if(row, "killed", said.killed);
	put_if(row, "script_failed", said.script_failed);
	for (size_t n = 0; graph_tally_cache_at(request->tally, n, &cache); n++)
		json_array_append_new(caches, js_text(cache.url, strlen(cache.url)));
	js_put(row, "caches", caches);
	return row;
}

json_t *cache_verdict_evidence(const struct verify_request *request,
			       const struct cache_verdict *verdict,
			       const struct cache_verdict_totals *totals)
{
	json_t *ret = json_object(), *job = json_object(), *listing = json_object();
	json_t *log = graph_tally_json(request->tally, 0);

	js_put(job, "ended_well", json_boolean(request->job_ok));
	put_text(job, "words", request->job_words);
	js_put_str(listing, "url", store_url(request->store));
	js_put(listing, "done", json_integer(verdict->done));
	js_put(listing, "failed", json_integer(verdict->failed));
	js_put(listing, "locked", json_integer(verdict->locked));
	js_put(listing, "missing", json_integer(verdict->missing));
	js_put(listing, "size_bytes", json_integer((json_int_t)totals->bytes));
	json_object_del(log, "graphs");
	js_put(ret, "job", job);
	js_put(ret, "listing", listing);
	js_put(ret, "log", log);
	if (request->kind->front_end)
		js_put(ret, "front_end", front_end_json(request, totals));
	return ret;
}
