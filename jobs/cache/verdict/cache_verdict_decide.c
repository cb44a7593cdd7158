/*
 * Conclusions from the three sources: see cache_verdict.h. Each rule checks one way in which they
 * may contradict each other; the first rule that applies decides.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/verdict/cache_verdict_internal.h"

/* Input of the rules, gathered once. */
struct case_of {
	const struct verify_request *request;
	const struct cache_verdict_totals *totals;
	struct graph_tally_counts counts;
	struct graph_tally_front_end said;
	int64_t bad; /* graphs named but not done */
};

/* True if the job's end is bad only because the exit status is the number of graphs that failed in
 * the front-end: then the graphs decide, not the exit status. */
static bool end_is_explained(const struct case_of *on)
{
	int status = on->request->exit_status;

	return on->request->kind->front_end && status != 0 && on->counts.named > 0 &&
	       graph_tally_explains_exit(on->request->tally, status);
}

static bool ended_badly(const struct case_of *on, struct cache_verdict *ret)
{
	const char *words = on->request->job_words;

	if (on->request->job_ok || end_is_explained(on))
		return false;
	ret->retry_helps = true;
	ret->reason =
		mem_format("the job did not end well%s%s", words ? ": " : "", words ? words : "");
	return true;
}

/* Nothing else can be concluded about a cache that was not used. */
static bool used_another_cache(const struct case_of *on, struct cache_verdict *ret)
{
	const char *other = cache_verdict_other_cache(on->request);

	if (!other)
		return false;
	ret->retry_helps = false;
	ret->reason = mem_format("the job used another cache, '%s'", other);
	if (on->request->kind->other_cache_hint)
		ret->hint = mem_copy(on->request->kind->other_cache_hint);
	return true;
}

/* The exit status does not show this failure if the user has it ignored. */
static bool broke_off(const struct case_of *on, struct cache_verdict *ret)
{
	if (!on->said.script_failed)
		return false;
	ret->retry_helps = false;
	ret->reason = mem_copy(
		"the script broke off while graphs were collected: later graphs were never seen");
	ret->hint = mem_copy("make the script pass its first steps with outputs that are all "
			     "zeros, or set compile.on_incomplete: train");
	return true;
}

static bool named_nothing(const struct case_of *on, struct cache_verdict *ret)
{
	if (ret->graphs > 0)
		return false;
	ret->retry_helps = false;
	if (on->counts.bypassed > 0) {
		ret->reason = mem_format("the logs name no graph of the cache, but %lld graphs "
					 "that were compiled without it",
					 (long long)on->counts.bypassed);
		ret->hint = mem_copy("remove the setting that switches the compile cache off, in "
				     "the script or its variables");
		return true;
	}
	if (on->said.nothing > 0)
		ret->reason = mem_format("the logs name no graph, and %s found nothing to do",
					 on->request->kind->front_end);
	else
		ret->reason = mem_copy("the logs name no graph");
	ret->hint = mem_copy("check that the command compiles something in its first steps, that "
			     "its stderr reaches the log, and that it does not silence warnings");
	return true;
}

static char *problem_hint(const struct case_of *on, const struct cache_verdict *verdict)
{
	const struct compile_kind *kind = on->request->kind;

	if (on->totals->lock)
		return cache_verdict_unlock_hint(on->request, on->totals);
	if (on->said.killed && kind->workers_option)
		return mem_format("compile fewer graphs at a time (%s): the system killed the "
				  "compiler for lack of memory",
				  kind->workers_option);
	if (!verdict->retry_helps && kind->lasting_hint)
		return mem_format("%s, or set compile.on_incomplete: train", kind->lasting_hint);
	return NULL;
}

static bool has_problems(const struct case_of *on, struct cache_verdict *ret)
{
	if (on->bad == 0)
		return false;
	ret->fewer_workers |= on->said.killed && on->request->kind->workers_option;
	/* Another attempt would wait for the lock as this one did. */
	ret->retry_helps &= on->totals->old_locks == 0;
	ret->waits_in_vain = on->totals->old_locks > 0;
	ret->reason = mem_format("missing or damaged graphs in the cache: %lld of %lld",
				 (long long)on->bad, (long long)ret->graphs);
	ret->hint = problem_hint(on, ret);
	return true;
}

/* The log of a node must name all graphs that the node compiled. */
static bool counted_more(const struct case_of *on, struct cache_verdict *ret)
{
	if (on->said.largest <= on->counts.named)
		return false;
	ret->retry_helps = false;
	ret->reason = mem_format("%s counted %lld graph%s on one node, but the logs name only %lld",
				 on->request->kind->front_end, (long long)on->said.largest,
				 on->said.largest == 1 ? "" : "s", (long long)on->counts.named);
	ret->hint = mem_copy("let the output of all workers reach the log: no redirection, and no "
			     "--log_level but INFO in the compiler's flags");
	return true;
}

static bool changes_still(const struct case_of *on, struct cache_verdict *ret)
{
	const struct verify_request *request = on->request;
	bool same = request->seen_before && strcmp(request->seen_before, ret->seen) == 0;
	int64_t ago = same ? request->seen_ago_ms : 0;

	if (request->quiet_ms <= 0 || ago >= request->quiet_ms)
		return false;
	ret->again_ms = request->quiet_ms - (ago > 0 ? ago : 0);
	ret->reason = mem_copy("the entries have not been unchanged for the quiet period yet");
	return true;
}

static char *remark(const struct case_of *on)
{
	const char *front_end = on->request->kind->front_end;

	if (!front_end || on->totals->failed_but_done == 0)
		return NULL;
	return mem_format("graphs that were reported as failed, but are done in the cache: %lld%s",
			  (long long)on->totals->failed_but_done,
			  end_is_explained(on) ? "; the exit status is only their number" : "");
}

void cache_verdict_decide(const struct verify_request *request,
			  const struct cache_verdict_totals *totals, struct cache_verdict *ret)
{
	static bool (*const rules[])(const struct case_of *on, struct cache_verdict *ret) = {
		ended_badly,  used_another_cache, broke_off,     named_nothing,
		has_problems, counted_more,       changes_still,
	};
	struct case_of on = { .request = request,
			      .totals = totals,
			      .bad = ret->graphs - ret->done };

	graph_tally_counts(request->tally, &on.counts);
	graph_tally_front_end(request->tally, &on.said);
	ret->remark = remark(&on);
	for (size_t i = 0; i < STK_LENGTH(rules); i++)
		if (rules[i](&on, ret))
			return;
	ret->retry_helps = false;
	ret->complete = true;
}
