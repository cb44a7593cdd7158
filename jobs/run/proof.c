/* The cache before, after and during training: is it warm, is it complete, what
 * was compiled late. The judging is done by jobs/cache; this records it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/base/text.h"
#include "jobs/cache/own_locks.h"
#include "jobs/cache/verdict.h"
#include "jobs/run/driver_inside.h"

#define REFRESH_TRIES 8 /* rounds against other runs that compile in the same cache */

static int record_removed(struct driver *driver, json_t *removed, const char *reason,
			  struct err **err)
{
	struct event ev = { .kind = EV_CACHE_REPAIRED };

	if (json_array_size(removed) == 0)
		return 0;
	EVENT_SET(&ev, removed, removed);
	EVENT_SET_STR(&ev, graph_key,
		      js_str(json_object_get(driver->plan, "compile"), "graph_key"));
	EVENT_SET_STR(&ev, reason, reason);
	return driver_record(driver, &ev, err);
}

int driver_make_cache(struct driver *driver, struct err **err)
{
	const char *cache = js_str(json_object_get(driver->plan, "compile"), "cache");
	AUTO(auto_free) char *path = cache ? mem_copy(cache) : NULL;

	if (!path || path[0] != '/')
		return 0;
	/* With the rights that the compiler itself would give: others may read it. */
	for (char *end = path; *end;) {
		char kept;
		int failed;

		end += 1 + strcspn(end + 1, "/");
		kept = *end;
		*end = '\0';
		failed = mkdir(path, 0777) < 0 ? errno : 0;
		if (failed && !fs_is_dir(path)) {
			fs_error(err, failed == EEXIST ? ENOTDIR : failed,
				 "cannot make the folder '%s' of the compile cache", path);
			return err_hint(err, "correct compile.cache_url, or make that folder");
		}
		*end = kept;
	}
	return 0;
}

int driver_probe_cache(const struct driver *driver, struct err **err)
{
	AUTO(auto_free) char *locks = fs_join(store_url(driver->cache), LOCK_FOLDER);
	const char *const folders[] = { store_url(driver->cache), locks };

	for (size_t i = 0; i < STK_LENGTH(folders); i++) {
		if (folders[i][0] != '/' || !fs_is_dir(folders[i]) ||
		    faccessat(AT_FDCWD, folders[i], W_OK | X_OK, AT_EACCESS) == 0)
			continue;
		fs_error(err, errno, "cannot write to the folder '%s' of the compile cache",
			 folders[i]);
		return err_hint(err, "make it writable for whom the job runs as, or name another "
				     "compile.cache_url");
	}
	return 0;
}

/* What the cache says, after our lock has taken over what runs of other graph
 * keys had to compile again: warm is only what the lock says, to the byte. */
static int view_cache(struct driver *driver, struct cache_view *ret, int64_t *ret_taken,
		      struct err **err)
{
	*ret_taken = 0;
	for (int i = 0; i < REFRESH_TRIES; i++) {
		int64_t taken = 0;

		cache_view_clear(ret);
		if (cache_view_make(driver->plan, ret, err) < 0)
			return -1;
		if (!ret->lock || ret->report.behind == 0)
			return 0;
		if (lock_refresh(driver->cache, ret->lock->graph_key, &taken, err) < 0)
			return -1;
		*ret_taken += taken;
	}
	err_set(err, EXIT_UNREACHABLE, "the compile cache '%s' keeps changing",
		store_url(driver->cache));
	return err_hint(err, "wait until other runs have compiled, then resume this one");
}

/* A compiler does not replace what is there: a bad entry of our lock would stay bad
 * through phase 1. */
static int repair_lock(struct driver *driver, const struct cache_view *view, struct err **err)
{
	json_auto_t *removed = NULL;

	if (view->verdict != CACHE_COLD || !view->lock || view->report.count == 0)
		return 0;
	if (lock_repair(driver->cache, view->lock, &view->report, &removed, err) < 0)
		return -1;
	return record_removed(driver, removed, "entries of its lock had been damaged", err);
}

static int record_check(struct driver *driver, const struct cache_view *view, int64_t taken,
			struct err **err)
{
	struct event ev = { .kind = EV_CACHE_CHECKED };
	AUTO(auto_free) char *reason = NULL;

	reason = taken == 0 ? mem_copy(view->reason)
			    : mem_format("%s; entries compiled anew that it took over from other "
					 "locks: %lld",
					 view->reason, (long long)taken);
	EVENT_SET(&ev, verdict, view->verdict);
	EVENT_SET_STR(&ev, graph_key,
		      js_str(json_object_get(driver->plan, "compile"), "graph_key"));
	if (view->lock)
		EVENT_SET(&ev, graphs, view->graphs);
	if (json_array_size(view->changed))
		EVENT_SET(&ev, changed, view->changed);
	EVENT_SET_STR(&ev, reason, reason);
	return driver_record(driver, &ev, err);
}

int driver_check_cache(struct driver *driver, struct err **err)
{
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	int64_t taken;

	if (view_cache(driver, &view, &taken, err) < 0)
		return -1;
	/* Before phase 1 this waits for the claim on the graph key: what looks damaged
	 * may be another run's, fresh from its compiler. */
	if (!driver->flow.policy.compiles && repair_lock(driver, &view, err) < 0)
		return -1;
	return record_check(driver, &view, taken, err);
}

int driver_recheck_cache(struct driver *driver, bool mine, bool *ret_warm, struct err **err)
{
	const char *key = js_str(json_object_get(driver->plan, "compile"), "graph_key");
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	char tag[STORE_TAG];
	int64_t taken;
	int found = lock_tag(driver->cache, key, tag, err);

	*ret_warm = false;
	if (found <= 0)
		return found;
	/* Nothing is learned from the same lock again, but that it is ours to repair. */
	if (!mine && strcmp(tag, driver->lock_seen) == 0)
		return 0;
	memcpy(driver->lock_seen, tag, sizeof tag);
	if (view_cache(driver, &view, &taken, err) < 0)
		return -1;
	*ret_warm = view.verdict == CACHE_WARM;
	if (*ret_warm)
		return record_check(driver, &view, taken, err);
	return mine ? repair_lock(driver, &view, err) : 0;
}

/* A cache in a bucket may take longer to look at than a lease lasts. */
static int stay(void *arg, struct err **err)
{
	return driver_keep(arg, err);
}

static struct lock_facts facts_of(struct driver *driver)
{
	const json_t *compile = json_object_get(driver->plan, "compile");

	return (struct lock_facts){
		.kind = driver->kind,
		.store = driver->cache,
		.name = js_str(driver->plan, "name"),
		.run = driver->run,
		.now = utc_now(),
		.compiler = json_object_get(compile, "compiler"),
		.ingredients = json_object_get(compile, "ingredients"),
		.pause = { stay, driver },
	};
}

const char *driver_lock_key(const struct driver *driver)
{
	return driver->flow.lock_key[0]
		       ? driver->flow.lock_key
		       : js_str(json_object_get(driver->plan, "compile"), "graph_key");
}

/* The fingerprint of what filled the cache. Where phase 1 ran the compiler may be another
 * one than where it was planned. */
static int phase_1_compiler(struct driver *driver, json_t **ret, struct err **err)
{
	AUTO(auto_free)
	char *prefix = attempt_prefix(driver->run, PHASE_PRECOMPILE,
				      driver->flow.attempts[PHASE_PRECOMPILE]);
	const json_t *found = json_object_get(json_object_get(driver->plan, "compile"), "compiler");
	json_auto_t *report = NULL;

	if (report_read(driver, prefix, 0, &report, err) < 0)
		return -1;
	if (js_str(js_path(report, "compiler.found"), "python"))
		found = js_path(report, "compiler.found");
	*ret = json_deep_copy(found);
	return 0;
}

/* The other locks that were brought up to date go on record beside the verdict. */
static int write_lock(struct driver *driver, const json_t *compiler, struct cache_verdict *verdict,
		      char ret_key[SHA256_HEX], struct err **err)
{
	const char *planned = js_str(json_object_get(driver->plan, "compile"), "graph_key");
	AUTO(compile_lock_freep) struct compile_lock *lock = NULL;
	struct lock_facts facts = facts_of(driver);
	json_auto_t *ingredients = lock_ingredients(facts.ingredients, compiler);
	json_auto_t *refreshed = NULL;

	facts.compiler = compiler;
	facts.ingredients = ingredients;
	if (lock_write(&facts, watch_book(driver), &lock, &refreshed, err) < 0)
		return -1;
	memcpy(ret_key, lock->graph_key, SHA256_HEX);
	/* What this run proved under the planned key before it knew of the other compiler
	 * may have been compiled by either. */
	if (strcmp(ret_key, planned) != 0 &&
	    lock_withdraw(driver->cache, planned, driver->run, err) < 0)
		return -1;
	if (json_array_size(refreshed))
		js_put(verdict->evidence, "refreshed", TAKE(refreshed));
	return 0;
}

/* What was proved is worth a lock only where one compiler made all of it. */
static int settle_lock(struct driver *driver, struct cache_verdict *verdict,
		       char ret_key[SHA256_HEX], struct err **err)
{
	json_auto_t *compiler = NULL;

	if (phase_1_compiler(driver, &compiler, err) < 0)
		return -1;
	if (lock_settle_writer(driver->kind, watch_book(driver), compiler) != WRITER_MIXED)
		return write_lock(driver, compiler, verdict, ret_key, err);
	verdict->complete = false;
	free(verdict->reason);
	verdict->reason = mem_copy("graphs of this run lie in the folders of several versions of "
				   "the compiler: it was replaced while phase 1 ran");
	free(verdict->hint);
	verdict->hint = mem_copy("leave the compiler as it is while phase 1 runs");
	return 0;
}

/* One line; names the first graph that is not as it should be. */
static char *verdict_summary(const struct cache_verdict *verdict, const struct book_counts *counts)
{
	const json_t *first = json_array_get(verdict->problems, 0);
	size_t refreshed = json_array_size(json_object_get(verdict->evidence, "refreshed"));

	if (verdict->complete && refreshed)
		return mem_format("%lld compiled now, %lld were there before; locks of other graph "
				  "keys refreshed: %zu",
				  (long long)verdict->made, (long long)counts->hits, refreshed);
	if (verdict->complete)
		return mem_format("%lld compiled now, %lld were there before",
				  (long long)verdict->made, (long long)counts->hits);
	if (!first)
		return mem_copy(verdict->reason);
	return mem_format("%s: %s: %s", verdict->reason, js_str(first, "graph"),
			  js_str(first, "what"));
}

/* What to do; a lock may be left of the run that had the claim before. Whoever takes that
 * run up knows its locks from others. Its name is somebody else's text. */
static char *verdict_cure(const struct driver *driver, const struct cache_verdict *verdict)
{
	const char *before = driver->key.holder;

	if (verdict->complete || verdict->locked == 0 || !before || !run_id_valid(before) ||
	    strcmp(before, driver->run) == 0)
		return verdict->hint ? mem_copy(verdict->hint) : NULL;
	return mem_format(
		"run %s had the claim on these graphs before: if it is dead, 'stoker stop "
		"%s' clears the locks that it left%s%s",
		before, before, verdict->hint ? "; else " : "", verdict->hint ? verdict->hint : "");
}

static int record_verdict(struct driver *driver, const struct cache_verdict *verdict,
			  const char *graph_key, struct err **err)
{
	struct event ev = { .kind = EV_CACHE_VERIFIED };
	struct book_counts counts;
	AUTO(auto_free) char *summary = NULL;
	AUTO(auto_free) char *cure = verdict_cure(driver, verdict);

	book_counts(watch_book(driver), &counts);
	EVENT_SET(&ev, attempt, driver->flow.attempts[PHASE_PRECOMPILE]);
	EVENT_SET(&ev, complete, verdict->complete);
	EVENT_SET_STR(&ev, graph_key, graph_key);
	EVENT_SET(&ev, graphs, verdict->graphs);
	EVENT_SET(&ev, done, verdict->done);
	EVENT_SET(&ev, failed, verdict->failed);
	EVENT_SET(&ev, locked, verdict->locked);
	EVENT_SET(&ev, missing, verdict->missing);
	EVENT_SET(&ev, hits, counts.hits);
	EVENT_SET(&ev, compiled, verdict->made);
	json_object_set(verdict->evidence, "problems", verdict->problems);
	EVENT_SET(&ev, sources, verdict->evidence);
	if (verdict->waits_in_vain)
		EVENT_SET(&ev, action, ACTION_STOP);
	summary = verdict_summary(verdict, &counts);
	EVENT_SET_STR(&ev, reason, summary);
	EVENT_SET_STR(&ev, hint, cure);
	return driver_record(driver, &ev, err);
}

int driver_verify(struct driver *driver, int64_t *ret_wait_ms, struct err **err)
{
	const json_t *compile = json_object_get(driver->plan, "compile");
	int64_t attempt = driver->flow.attempts[PHASE_PRECOMPILE];
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };
	json_auto_t *removed = NULL;
	char key[SHA256_HEX];
	AUTO(auto_free)
	char *words = mem_format("exit %lld", (long long)driver->flow.compile_exit);
	struct verify_request request = {
		.kind = driver->kind,
		.store = driver->cache,
		.job_ok = !driver->flow.compile_failed,
		.exit_status = (int)driver->flow.compile_exit,
		.job_words = words,
		.pause = { stay, driver },
		.quiet_ms = js_int(compile, "quiet_ms", 0),
		.seen_before = driver->looked ? driver->seen : NULL,
		.seen_ago_ms = driver->looked ? mono_now().ms - driver->seen_at.ms : 0,
	};

	if (!watch_is(driver, PHASE_PRECOMPILE, attempt) &&
	    (watch_open(driver, PHASE_PRECOMPILE, attempt, driver->flow.job, err) < 0 ||
	     watch_read_log(driver, err) < 0))
		return -1;
	request.book = watch_book(driver);
	if (cache_verify(&request, &verdict, err) < 0)
		return err_wrap(err, "cannot verify the compile cache");
	*ret_wait_ms = verdict.settle_ms;
	if (verdict.settle_ms > 0) {
		if (!driver->looked || strcmp(driver->seen, verdict.seen) != 0)
			driver->seen_at = mono_now();
		memcpy(driver->seen, verdict.seen, sizeof driver->seen);
		driver->looked = true;
		return 0;
	}
	driver->looked = false;
	snprintf(key, sizeof key, "%s", js_str(compile, "graph_key"));
	if (verdict.complete && settle_lock(driver, &verdict, key, err) < 0)
		return err_wrap(err, "cannot write the compile lock");
	if (!verdict.complete &&
	    (cache_repair(&request, &removed, err) < 0 ||
	     record_removed(driver, removed, "entries of this run were damaged", err) < 0))
		return -1;
	return record_verdict(driver, &verdict, key, err);
}

/* Where it cannot be done they stay, as those of anybody else do: that is no reason not to
 * record how the attempt ended. */
int driver_clear_own_locks(struct driver *driver, int64_t began_ms, int64_t ended_ms,
			   struct err **err)
{
	const struct own_locks request = {
		.kind = driver->kind,
		.store = driver->cache,
		.book = watch_book(driver),
		.began_ms = began_ms,
		.ended_ms = ended_ms,
	};
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *reason = NULL;
	json_auto_t *removed = NULL;

	if (!driver->cache || own_locks_clear(&request, &removed, &ignored) < 0)
		return 0;
	reason = mem_format("locks of graphs that %s %lld was compiling when the last of its "
			    "processes ended: %zu",
			    phase_names[driver->flow.phase], (long long)driver->flow.attempt,
			    json_array_size(removed));
	return record_removed(driver, removed, reason, err);
}

int driver_join_late(struct driver *driver, struct err **err)
{
	const json_t *compile = json_object_get(driver->plan, "compile");
	struct lock_facts facts;
	int64_t joined;

	if (!compile)
		return 0;
	facts = facts_of(driver);
	return lock_join_late(&facts, driver_lock_key(driver), watch_book(driver), &joined, err);
}
