/* The verdict from three sources: see verdict.h. */
#include "jobs/cache/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/cache/content.h"
#include "jobs/cache/listing.h"

/* One named graph against the cache. */
struct look {
	enum entry_state state;
	uint64_t bytes;
	const char *why; /* static words on the state; may be NULL */
	bool hopeless;   /* the compiler will never store it */
	char path[256];  /* of the compiled graph; "" if there is none */
	char tag[STORE_TAG];
};

void cache_verdict_clear(struct cache_verdict *verdict)
{
	auto_free(&verdict->reason);
	auto_free(&verdict->hint);
	json_decref(verdict->evidence);
	json_decref(verdict->problems);
	*verdict = (struct cache_verdict){ 0 };
}

static int look_at(const struct verify_request *request, const struct book_graph *graph,
		   struct look *ret, struct err **err)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = { 0 };
	int found = listing_find(request->store, request->kind, graph->key, &listed, &hold, err);

	*ret = (struct look){ .state = ENTRY_MISSING };
	if (found < 0)
		return -1;
	if (found == 0) {
		ret->hopeless = graph->never_stored;
		return 0;
	}
	ret->state = listed.state;
	ret->bytes = listed.size;
	if (strlen(listed.path) < sizeof ret->path)
		memcpy(ret->path, listed.path, strlen(listed.path) + 1);
	memcpy(ret->tag, listed.tag, strlen(listed.tag) + 1);
	if (ret->state == ENTRY_DONE && content_inspect(request->store, request->kind, listed.path,
							&ret->state, &ret->why, err) < 0)
		return -1;
	if (ret->state == ENTRY_DONE && graph->unreadable) {
		ret->state = ENTRY_PARTIAL;
		ret->why = "the framework could not use it";
	}
	return 0;
}

/* What is wrong with one graph, in one line; yours to free. */
static char *what_of(const struct book_graph *graph, const struct look *look)
{
	switch (look->state) {
	case ENTRY_EMPTY:
	case ENTRY_PARTIAL:
		return mem_format("its entry is %s (%s) and stays so until it is removed%s%s",
				  look->state == ENTRY_EMPTY ? "empty" : "damaged",
				  look->why ? look->why : "zero bytes", graph->failed ? ": " : "",
				  graph->failed ? graph->failed : "");
	case ENTRY_FAILED:
		return mem_copy("the compiler failed on it, and the failure is stored");
	case ENTRY_LOCKED:
		return mem_copy("it is locked: somebody compiles it, or died while doing so");
	case ENTRY_TODO:
		return mem_copy("it is known to the cache, but not compiled");
	default:
		break;
	}
	if (graph->not_stored)
		return mem_format("it was compiled, but not stored: %s", graph->not_stored);
	if (graph->failed)
		return mem_format("it is not in the cache: %s", graph->failed);
	if (graph->stored)
		return mem_copy("the log says that it was written, but it is not in the cache");
	if (graph->hit)
		return mem_copy("the log says that it was found, but it is not in the cache");
	return mem_copy("it is not in the cache");
}

static void add_problem(struct cache_verdict *ret, const struct book_graph *graph,
			const struct look *look)
{
	AUTO(auto_free) char *what = what_of(graph, look);
	json_t *row = json_object();

	js_put(row, "graph", js_text(graph->key, strlen(graph->key)));
	js_put(row, "name", js_text(graph->name, strlen(graph->name)));
	js_put_str(row, "state", entry_state_name(look->state));
	js_put(row, "what", js_text(what, strlen(what)));
	json_array_append_new(ret->problems, row);
	if (!look->hopeless)
		ret->retry_helps = true;
}

static void count(struct cache_verdict *ret, enum entry_state state)
{
	switch (state) {
	case ENTRY_DONE:
		ret->done++;
		break;
	case ENTRY_EMPTY:
	case ENTRY_PARTIAL:
	case ENTRY_FAILED:
		ret->failed++;
		break;
	case ENTRY_LOCKED:
		ret->locked++;
		break;
	case ENTRY_TODO:
	case ENTRY_MISSING:
	case ENTRY_STATES:
		ret->missing++;
		break;
	}
}

/* Look at every named graph; digest what was seen. */
static int look_at_all(const struct verify_request *request, struct cache_verdict *ret,
		       uint64_t *ret_bytes, struct err **err)
{
	AUTO(sha256_freep) struct sha256 *sha = sha256_new();
	const struct book_graph *graph;

	for (size_t i = 0; (graph = book_at(request->book, i)); i++) {
		struct look look;

		if (look_at(request, graph, &look, err) < 0)
			return err_wrap(err, "cannot verify the cache");
		ret->graphs++;
		count(ret, look.state);
		if (look.state != ENTRY_DONE)
			add_problem(ret, graph, &look);
		*ret_bytes += look.bytes;
		sha256_add(sha, graph->key, strlen(graph->key) + 1);
		sha256_add(sha, &look.state, sizeof look.state);
		sha256_add(sha, &look.bytes, sizeof look.bytes);
		sha256_add(sha, look.tag, strlen(look.tag) + 1);
	}
	sha256_end(TAKE(sha), ret->seen);
	return 0;
}

static json_t *evidence(const struct verify_request *request, const struct cache_verdict *verdict,
			uint64_t bytes)
{
	json_t *ret = json_object(), *job = json_object(), *listing = json_object();
	json_t *log = book_json(request->book, 0);

	js_put(job, "ended_well", json_boolean(request->job_ok));
	if (request->job_words)
		js_put(job, "words", js_text(request->job_words, strlen(request->job_words)));
	js_put_str(listing, "url", store_url(request->store));
	js_put(listing, "done", json_integer(verdict->done));
	js_put(listing, "failed", json_integer(verdict->failed));
	js_put(listing, "locked", json_integer(verdict->locked));
	js_put(listing, "missing", json_integer(verdict->missing));
	js_put(listing, "bytes", json_integer((json_int_t)bytes));
	json_object_del(log, "graphs");
	js_put(ret, "job", job);
	js_put(ret, "listing", listing);
	js_put(ret, "log", log);
	return ret;
}

static void judge_unnamed(const struct verify_request *request, struct cache_verdict *ret)
{
	struct book_counts counts;

	book_counts(request->book, &counts);
	ret->retry_helps = false;
	if (counts.bypassed > 0) {
		ret->reason = mem_format("the logs name no graph of the cache, but %lld that were "
					 "compiled past it",
					 (long long)counts.bypassed);
		ret->hint = mem_copy("remove what switches the compile cache off in the script "
				     "or its variables");
		return;
	}
	ret->reason = mem_copy("the logs name no graph");
	ret->hint = mem_copy("check that the command compiles something in its first steps, that "
			     "its stderr reaches the log, and that it does not silence warnings");
}

static void judge(const struct verify_request *request, struct cache_verdict *ret)
{
	long long bad = (long long)(ret->graphs - ret->done), all = (long long)ret->graphs;

	if (!request->job_ok) {
		ret->retry_helps = true;
		ret->reason =
			mem_format("the job did not end well%s%s", request->job_words ? ": " : "",
				   request->job_words ? request->job_words : "");
		return;
	}
	if (ret->graphs == 0) {
		judge_unnamed(request, ret);
		return;
	}
	if (bad > 0) {
		ret->reason = mem_format("%lld of %lld graphs are not in the cache as they should "
					 "be",
					 bad, all);
		if (!ret->retry_helps && request->kind->lasting_hint)
			ret->hint = mem_format("%s, or set compile.on_incomplete: train",
					       request->kind->lasting_hint);
		return;
	}
	if (request->quiet_ms > 0) {
		bool same = request->seen_before && strcmp(request->seen_before, ret->seen) == 0;
		int64_t ago = same ? request->seen_ago_ms : 0;

		if (ago < request->quiet_ms) {
			ret->settle_ms = request->quiet_ms - (ago > 0 ? ago : 0);
			ret->reason = mem_copy("its entries have not been unchanged for the quiet "
					       "period yet");
			return;
		}
	}
	ret->complete = true;
}

int cache_verify(const struct verify_request *request, struct cache_verdict *ret, struct err **err)
{
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { .problems = json_array() };
	uint64_t bytes = 0;

	if (look_at_all(request, &verdict, &bytes, err) < 0)
		return -1;
	verdict.evidence = evidence(request, &verdict, bytes);
	judge(request, &verdict);
	*ret = verdict;
	verdict = (struct cache_verdict){ 0 };
	return 0;
}

int cache_repair(const struct verify_request *request, json_t **ret_removed, struct err **err)
{
	json_auto_t *removed = json_array();
	const struct book_graph *graph;

	for (size_t i = 0; (graph = book_at(request->book, i)); i++) {
		struct look look;
		json_t *row;

		if (look_at(request, graph, &look, err) < 0)
			return err_wrap(err, "cannot repair the cache");
		if ((look.state != ENTRY_EMPTY && look.state != ENTRY_PARTIAL) || !look.path[0])
			continue;
		if (store_delete(request->store, look.path, err) < 0)
			return err_wrap(err, "cannot remove a damaged entry");
		row = json_object();
		js_put(row, "graph", js_text(graph->key, strlen(graph->key)));
		js_put_str(row, "path", look.path);
		js_put_str(row, "state", entry_state_name(look.state));
		json_array_append_new(removed, row);
	}
	*ret_removed = TAKE(removed);
	return 0;
}
