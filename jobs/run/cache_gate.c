/* The cache before, after and during training: whether it is warm, whether it is complete, what was
 * compiled late. jobs/cache decides; this file records the verdict. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/manifest/orphaned_own_locks.h"
#include "jobs/cache/verdict/cache_verdict.h"
#include "jobs/run/driver_internal.h"

#define REFRESH_TRIES 8 /* rounds against other runs that compile in the same cache */

/* Says whose graphs an event is about, if not those of the training. */
static void put_stage(const struct driver *driver, struct event *ev)
{
	if (driver->flow.stage != PHASE_TRAIN)
		EVENT_SET(ev, stage, driver->flow.stage);
}

static int record_removed(struct driver *driver, json_t *removed, const char *reason,
			  struct err **err)
{
	struct event ev = { .kind = EV_CACHE_REPAIRED };

	if (json_array_size(removed) == 0)
		return 0;
	EVENT_SET(&ev, removed, removed);
	EVENT_SET_STR(&ev, graph_key, plan_graph_key(job_engine_cache_plan(driver)));
	EVENT_SET_STR(&ev, reason, reason);
	return driver_record(driver, &ev, err);
}

int cache_gate_make(struct driver *driver, struct err **err)
{
	const char *cache = js_str(json_object_get(driver->plan, "compile"), "cache");

	if (!cache || cache[0] != '/')
		return 0;
	/* The rights are those that the compiler itself would give: other users may read it. */
	if (fs_mkdirs_open(cache, 0777, err) == 0)
		return 0;
	err_wrap(err, "cannot make the folder of the compile cache");
	return err_hint(err, "correct compile.cache_url, or make that folder");
}

int cache_gate_probe(const struct driver *driver, struct err **err)
{
	AUTO(auto_free) char *locks = fs_join(store_url(driver->cache), LOCK_FOLDER);
	const char *const folders[] = { store_url(driver->cache), locks };

	for (size_t i = 0; i < STK_LENGTH(folders); i++) {
		if (folders[i][0] != '/' || !fs_is_dir(folders[i]) ||
		    faccessat(AT_FDCWD, folders[i], W_OK | X_OK, AT_EACCESS) == 0)
			continue;
		fs_error(err, errno, "cannot write to the folder '%s' of the compile cache",
			 folders[i]);
		return err_hint(err, "make the folder writable for the user of the job, or name "
				     "another compile.cache_url");
	}
	return 0;
}

/* Views the cache, after our manifest has taken over entries that runs of other graph keys had to
 * compile again: warm means that every graph is as the manifest says, to the byte. */
static int view_cache(struct driver *driver, struct cache_view *ret, int64_t *ret_taken,
		      struct err **err)
{
	*ret_taken = 0;
	for (int i = 0; i < REFRESH_TRIES; i++) {
		int64_t taken = 0;

		cache_view_clear(ret);
		if (cache_view_make(job_engine_cache_plan(driver), ret, err) < 0)
			return -1;
		if (!ret->lock || ret->report.behind == 0)
			return 0;
		if (compile_manifest_refresh(driver->cache, ret->lock->graph_key, &taken, err) < 0)
			return -1;
		*ret_taken += taken;
	}
	err_set(err, EXIT_UNREACHABLE, "the compile cache '%s' keeps changing",
		store_url(driver->cache));
	return err_hint(err, "wait until other runs have compiled, then resume this one");
}

/* A compiler does not replace existing entries: a bad entry of our manifest would stay bad through
 * phase 1. */
static int repair_lock(struct driver *driver, const struct cache_view *view, struct err **err)
{
	json_auto_t *removed = NULL;

	if (view->verdict != CACHE_COLD || !view->lock || view->report.count == 0)
		return 0;
	if (compile_manifest_repair(driver->cache, view->lock, &view->report, &removed, err) < 0)
		return -1;
	return record_removed(driver, removed, "entries of the compile manifest were damaged", err);
}

static int record_check(struct driver *driver, const struct cache_view *view, int64_t taken,
			struct err **err)
{
	struct event ev = { .kind = EV_CACHE_CHECKED };
	AUTO(auto_free) char *reason = NULL;

	reason = taken == 0 ? mem_copy(view->reason)
			    : mem_format("%s; entries compiled anew, taken over from other compile "
					 "manifests: %lld",
					 view->reason, (long long)taken);
	put_stage(driver, &ev);
	EVENT_SET(&ev, verdict, view->verdict);
	EVENT_SET_STR(&ev, graph_key, plan_graph_key(job_engine_cache_plan(driver)));
	if (view->lock)
		EVENT_SET(&ev, graphs, view->graphs);
	if (json_array_size(view->changed))
		EVENT_SET(&ev, changed, view->changed);
	EVENT_SET_STR(&ev, reason, reason);
	return driver_record(driver, &ev, err);
}

/* Finds out why the manifest that the training rests on no longer holds; NULL if it does. */
static int find_lost(struct driver *driver, char **ret_why, struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	const struct lock_problem *first;
	AUTO(auto_free) char *words = NULL;
	int found = compile_manifest_load(driver->cache, cache_gate_lock_key(driver), &lock,
					  ret_why, err);

	if (found < 0)
		return -1;
	if (found == 0) {
		if (!*ret_why)
			*ret_why = mem_copy("the compile manifest is gone");
		return 0;
	}
	if (compile_manifest_check_sizes(driver->cache, lock, &report, err) < 0)
		return -1;
	if (report.count == 0)
		return 0;
	first = &report.problems[0];
	words = compile_manifest_fault_words(&lock->graphs[first->graph], first->fault,
					     first->size);
	*ret_why = mem_format("verified graphs are lost: %zu of %zu: %s: %s", report.count,
			      lock->count, lock->graphs[first->graph].key, words);
	return 0;
}

static int record_look(struct driver *driver, const char *lost, struct err **err)
{
	struct event ev = { .kind = EV_CACHE_CHECKED };

	put_stage(driver, &ev);
	EVENT_SET(&ev, verdict, lost ? CACHE_COLD : CACHE_WARM);
	EVENT_SET_STR(&ev, graph_key, cache_gate_lock_key(driver));
	EVENT_SET_STR(&ev, reason, lost ? lost : "no verified graph is lost");
	return driver_record(driver, &ev, err);
}

int cache_gate_find_lost(struct driver *driver, bool *ret_lost, struct err **err)
{
	AUTO(auto_free) char *why = NULL;

	*ret_lost = false;
	if (!driver->flow.policy.compiles || !driver->flow.cache_proved)
		return 0;
	if (find_lost(driver, &why, err) < 0)
		return -1;
	if (!why)
		return 0;
	*ret_lost = true;
	return record_look(driver, why, err);
}

/* Looks at the cache before another attempt of a stage that rests on a proved one. */
static int look_again(struct driver *driver, struct err **err)
{
	AUTO(auto_free) char *why = NULL;

	return find_lost(driver, &why, err) < 0 ? -1 : record_look(driver, why, err);
}

int cache_gate_check(struct driver *driver, struct err **err)
{
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	int64_t taken;

	if (flow_has_attempts(&driver->flow))
		return look_again(driver, err);
	if (view_cache(driver, &view, &taken, err) < 0)
		return -1;
	/* Before phase 1 the repair waits for the claim on the graph key: what looks damaged may be
	 * another run's, fresh from its compiler. */
	if (!flow_needs_cache(&driver->flow.policy, driver->flow.stage) &&
	    repair_lock(driver, &view, err) < 0)
		return -1;
	return record_check(driver, &view, taken, err);
}

int cache_gate_recheck(struct driver *driver, bool mine, bool *ret_warm, struct err **err)
{
	const char *key = plan_graph_key(job_engine_cache_plan(driver));
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	char tag[STORE_TAG];
	int64_t taken;
	int found = compile_manifest_tag(driver->cache, key, tag, err);

	*ret_warm = false;
	if (found <= 0)
		return found;
	/* The same manifest again gives nothing new, except that it is ours to repair now. */
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

/* Keeps the lease: a check of a cache in a bucket may take longer than the lease lasts. */
static int keep_lease(void *arg, struct err **err)
{
	return driver_keep(arg, err);
}

/* Returns what a manifest tells of the jobs of this plan. */
static struct lock_facts facts_of(struct driver *driver, const json_t *plan)
{
	const json_t *compile = json_object_get(plan, "compile");

	return (struct lock_facts){
		.kind = driver->kind,
		.store = driver->cache,
		.name = js_str(driver->plan, "name"),
		.run = driver->run,
		.image = js_str(json_object_get(plan, "image"), "reference"),
		.now = clock_utc_now(),
		.compiler = json_object_get(compile, "compiler"),
		.ingredients = json_object_get(compile, "ingredients"),
		.pause = { keep_lease, driver },
	};
}

const char *cache_gate_lock_key(struct driver *driver)
{
	return driver->flow.lock_key[0] ? driver->flow.lock_key
					: plan_graph_key(job_engine_cache_plan(driver));
}

/* Returns the fingerprint of the compiler that filled the cache: as phase 1's agent found it, else
 * as planned; {} if neither is known. */
static int phase_1_compiler(struct driver *driver, json_t **ret, struct err **err)
{
	AUTO(auto_free)
	char *prefix = order_attempt_prefix(driver->run, PHASE_PRECOMPILE,
					    driver->flow.attempts[PHASE_PRECOMPILE]);
	const json_t *found = js_path(job_engine_cache_plan(driver), "compile.compiler");
	AUTO(node_report_release) struct node_report report = { 0 };

	if (attempt_read_report(driver, prefix, 0, &report, err) < 0)
		return -1;
	if (fingerprint_tells(report.compiler.found))
		found = report.compiler.found;
	*ret = found ? json_deep_copy(found) : json_object();
	return 0;
}

/* Other manifests that were brought up to date go on record beside the verdict. */
static int write_lock(struct driver *driver, const json_t *compiler, struct cache_verdict *verdict,
		      char ret_key[SHA256_HEX], struct err **err)
{
	const char *planned = plan_graph_key(job_engine_cache_plan(driver));
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	struct lock_facts facts = facts_of(driver, job_engine_cache_plan(driver));
	json_auto_t *ingredients = compile_manifest_ingredients(facts.ingredients, compiler);
	json_auto_t *refreshed = NULL;

	facts.compiler = compiler;
	facts.ingredients = ingredients;
	if (compile_manifest_write(&facts, watch_tally(driver), &lock, &refreshed, err) < 0)
		return -1;
	memcpy(ret_key, lock->graph_key, SHA256_HEX);
	/* Graphs that this run proved under the planned key before it knew of the other compiler
	 * may have been compiled by either. */
	if (strcmp(ret_key, planned) != 0 &&
	    compile_manifest_withdraw(driver->cache, planned, driver->run, err) < 0)
		return -1;
	if (json_array_size(refreshed))
		js_put(verdict->evidence, "refreshed", TAKE(refreshed));
	return 0;
}

/* Writes a manifest only if one compiler made all graphs that were proved. */
static int finalize_lock(struct driver *driver, struct cache_verdict *verdict,
			 char ret_key[SHA256_HEX], struct err **err)
{
	json_auto_t *compiler = NULL;

	if (phase_1_compiler(driver, &compiler, err) < 0)
		return -1;
	if (compile_manifest_name_writer(driver->kind, watch_tally(driver), compiler) !=
	    WRITER_MIXED)
		return write_lock(driver, compiler, verdict, ret_key, err);
	verdict->complete = false;
	free(verdict->reason);
	verdict->reason = mem_copy("the compiler was replaced while phase 1 ran: graphs of this "
				   "run lie in the folders of several compiler versions");
	free(verdict->hint);
	verdict->hint = mem_copy("do not replace the compiler while phase 1 runs");
	return 0;
}

/* Returns one line that names the first graph with a problem. */
static char *verdict_summary(const struct cache_verdict *verdict,
			     const struct graph_tally_counts *counts)
{
	const json_t *first = json_array_get(verdict->problems, 0);
	size_t refreshed = json_array_size(json_object_get(verdict->evidence, "refreshed"));

	if (verdict->complete && refreshed)
		return mem_format("%lld compiled now, %lld found in the cache; compile manifests "
				  "of other graph keys refreshed: %zu",
				  (long long)verdict->made, (long long)counts->hits, refreshed);
	if (verdict->complete)
		return mem_format("%lld compiled now, %lld found in the cache",
				  (long long)verdict->made, (long long)counts->hits);
	if (!first)
		return mem_copy(verdict->reason);
	return mem_format("%s: %s: %s", verdict->reason, js_str(first, "graph"),
			  js_str(first, "what"));
}

/* Returns a remedy. A graph lock may be left of the run that had the claim before; a driver that
 * resumes that run can tell its locks from others. The name of that run comes from an object in the
 * cache, so it is validated. */
static char *verdict_hint(const struct driver *driver, const struct cache_verdict *verdict)
{
	const char *before = driver->key.holder;

	if (verdict->complete || verdict->locked == 0 || !before || !text_run_id_valid(before) ||
	    strcmp(before, driver->run) == 0)
		return verdict->hint ? mem_copy(verdict->hint) : NULL;
	return mem_format("run %s had the claim on these graphs before; if that run is dead, "
			  "'stoker stop %s' removes its compiler locks%s%s",
			  before, before, verdict->hint ? "; else " : "",
			  verdict->hint ? verdict->hint : "");
}

static int record_verdict(struct driver *driver, const struct cache_verdict *verdict,
			  const char *graph_key, struct err **err)
{
	struct event ev = { .kind = EV_CACHE_VERIFIED };
	struct graph_tally_counts counts;
	AUTO(auto_free) char *summary = NULL;
	AUTO(auto_free) char *hint = verdict_hint(driver, verdict);

	graph_tally_counts(watch_tally(driver), &counts);
	EVENT_SET(&ev, attempt, driver->flow.attempts[PHASE_PRECOMPILE]);
	put_stage(driver, &ev);
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
	EVENT_SET_STR(&ev, hint, hint);
	return driver_record(driver, &ev, err);
}

int cache_gate_verify(struct driver *driver, int64_t *ret_wait_ms, struct err **err)
{
	const json_t *compile = json_object_get(job_engine_cache_plan(driver), "compile");
	int64_t attempt = driver->flow.attempts[PHASE_PRECOMPILE];
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 };
	json_auto_t *removed = NULL;
	char key[SHA256_HEX];
	bool more;
	AUTO(auto_free)
	char *words = mem_format("exit %lld", (long long)driver->flow.compile_exit);
	struct verify_request request = {
		.kind = driver->kind,
		.store = driver->cache,
		.job_ok = !driver->flow.compile_failed,
		.exit_status = (int)driver->flow.compile_exit,
		.job_words = words,
		.pause = { keep_lease, driver },
		.quiet_ms = js_int(compile, "quiet_ms", 0),
		.seen_before = driver->verify_pending ? driver->seen : NULL,
		.seen_ago_ms =
			driver->verify_pending ? clock_mono_now().ms - driver->seen_at.ms : 0,
	};

	if (!watch_is(driver, PHASE_PRECOMPILE, attempt) &&
	    watch_open(driver, PHASE_PRECOMPILE, attempt, driver->flow.job, err) < 0)
		return -1;
	if (watch_read_log(driver, &more, err) < 0)
		return -1;
	if (more) {
		*ret_wait_ms = 1;
		return 0;
	}
	request.tally = watch_tally(driver);
	if (cache_verify(&request, &verdict, err) < 0)
		return err_wrap(err, "cannot verify the compile cache");
	*ret_wait_ms = verdict.again_ms;
	if (verdict.again_ms > 0) {
		if (!driver->verify_pending || strcmp(driver->seen, verdict.seen) != 0)
			driver->seen_at = clock_mono_now();
		memcpy(driver->seen, verdict.seen, sizeof driver->seen);
		driver->verify_pending = true;
		return 0;
	}
	driver->verify_pending = false;
	snprintf(key, sizeof key, "%s", js_str(compile, "graph_key"));
	if (verdict.complete && finalize_lock(driver, &verdict, key, err) < 0)
		return err_wrap(err, "cannot write the compile manifest");
	if (!verdict.complete &&
	    (cache_repair(&request, &removed, err) < 0 ||
	     record_removed(driver, removed, "entries of this run were damaged", err) < 0))
		return -1;
	return record_verdict(driver, &verdict, key, err);
}

int cache_gate_clear_own_locks(struct driver *driver, int64_t began_ms, int64_t ended_ms,
			       struct err **err)
{
	const struct orphaned_own_locks request = {
		.kind = driver->kind,
		.store = driver->cache,
		.tally = watch_tally(driver),
		.began_ms = began_ms,
		.ended_ms = ended_ms,
	};
	AUTO(auto_free) char *reason = NULL;
	json_auto_t *removed = NULL;

	if (!driver->cache)
		return 0;
	if (orphaned_own_locks_clear(&request, &removed, err) < 0)
		return -1;
	reason = mem_format("locks of graphs that %s %lld was compiling when the last of its "
			    "processes ended: %zu",
			    flow_phase_names[driver->flow.phase], (long long)driver->flow.attempt,
			    json_array_size(removed));
	return record_removed(driver, removed, reason, err);
}

int cache_gate_join_late(struct driver *driver, enum phase phase, const char *key, struct err **err)
{
	const json_t *plan = job_engine_plan(driver, phase);
	struct lock_facts facts;
	int64_t joined;

	if (!json_object_get(plan, "compile"))
		return 0;
	facts = facts_of(driver, plan);
	return compile_manifest_join_late(&facts, *key ? key : plan_graph_key(plan),
					  watch_tally(driver), &joined, err);
}
