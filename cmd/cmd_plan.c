/* plan: what would happen and why. Changes nothing anywhere. */
#include "cmd/plan_text.h"

#include <string.h>

#include "cmd/cost_view.h"
#include "cmd/modes_view.h"
#include "cmd/out.h"
#include "cmd/spec_args.h"
#include "jobs/engine/arrival.h"
#include "jobs/run/health.h"
#include "jobs/run/journal.h"
#include "jobs/run/order.h"

static json_t *cache_json(const json_t *plan, const struct cache_view *view)
{
	json_t *cache = json_object();

	js_put_str(cache, "verdict", cache_state_names[view->verdict]);
	js_put_str(cache, "graph_key", js_str(json_object_get(plan, "compile"), "graph_key"));
	if (view->lock)
		js_put(cache, "graphs", json_integer(view->graphs));
	js_put(cache, "changed", json_incref(view->changed));
	js_put_str(cache, "reason", view->reason);
	if (view->problems)
		js_put(cache, "problems", json_incref(view->problems));
	return cache;
}

/* Only the phases that would run: a warm cache needs no phase 1. */
static json_t *phases_json(const json_t *plan, enum cache_state verdict)
{
	json_t *phases = json_array(), *phase;
	size_t i;

	json_array_foreach (json_object_get(plan, "phases"), i, phase)
		if (verdict != CACHE_WARM || strcmp(js_str(phase, "phase"), "train") == 0)
			json_array_append(phases, phase);
	return phases;
}

/* What a run is not given where none of our agents is in its jobs. */
static void print_not_held(const json_t *plan)
{
	json_auto_t *words = plan_not_held(plan);
	const json_t *word;
	size_t i;

	if (words)
		out_line("without stoker's agent (sagemaker.launcher: toolkit):");
	json_array_foreach (words, i, word)
		out_line("  - %s", json_string_value(word));
}

/* How the agent gets into the containers of this plan; NULL where there are none, or none of
 * ours in them. Yours to free. */
static char *agent_words(const json_t *plan)
{
	json_auto_t *not_held = plan_not_held(plan);

	return arrival_way(plan) == ARRIVAL_NONE || not_held ? NULL : arrival_words(plan);
}

static void print_plan(const json_t *plan, const struct cache_view *view)
{
	const json_t *source = json_object_get(plan, "source");
	const char *commit = js_str(source, "commit");
	int64_t files = js_int(source, "files", 0);
	bool ahead = view->verdict == CACHE_COLD && plan_phase(plan, phase_names[PHASE_PRECOMPILE]);
	AUTO(auto_free) char *health = plan_health_words(plan);
	AUTO(auto_free) char *agent = agent_words(plan);
	json_t *phase;
	size_t i;

	out_line("%s on %s", js_str(plan, "name"), js_str(plan, "engine"));
	out_line("source:  %s%s%.12s%s, %lld file%s, %.12s", js_str(source, "kind"),
		 commit ? " " : "", commit ? commit : "",
		 js_bool(source, "dirty", false) ? " with uncommitted changes" : "",
		 (long long)files, files == 1 ? "" : "s", js_str(source, "digest"));
	out_line("cache:   %s: %s", cache_state_names[view->verdict], view->reason);
	print_changes(view->changed, CHANGES_SHOWN);
	if (json_array_size(view->changed) > CHANGES_SHOWN)
		out_line("  'stoker cache why' names them all");
	if (health)
		out_line("health:  %s", health);
	if (agent)
		out_line("agent:   %s", agent);
	if (strcmp(js_str(plan, "engine"), "batch") == 0 && !js_path(plan, "instance.vcpus"))
		out_line("machine: '%s' is in no catalogue: the job gets no devices, 1 vCPU and "
			 "2 GiB of memory; add it to your instances.yaml (STOKER_INSTANCES)",
			 js_str(js_path(plan, "spec.resources"), "instance"));
	out_line("phases:  %s", ahead ? "precompile, verify, train" : "train");
	json_array_foreach (json_object_get(plan, "phases"), i, phase) {
		AUTO(auto_free) char *line = command_text(json_object_get(phase, "command"));

		if (line && (ahead || strcmp(js_str(phase, "phase"), "train") == 0))
			out_line("  %-10s %s", js_str(phase, "phase"), line);
	}
	print_not_held(plan);
}

/* Between the two phases that start a job: of what their agents are told, or of a member of
 * what is sent for them. NULL: there is one phase alone. */
static json_t *difference_of(const json_t *requests, const char *sent)
{
	const json_t *sides[2];

	if (json_array_size(requests) != 2)
		return NULL;
	for (size_t i = 0; i < 2; i++) {
		const json_t *request = json_array_get(requests, i);
		const json_t *sends = json_object_get(request, "sends");

		sides[i] = sent ? json_object_get(json_array_get(sends, 0), sent) : request;
	}
	return sides[0] && sides[1] ? order_difference(sides[0], sides[1]) : NULL;
}

int cmd_plan(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	json_auto_t *result = NULL, *shown = NULL, *requests = NULL, *difference = NULL;
	json_auto_t *modes = NULL, *cost = NULL;
	AUTO(auto_free) char *agent = NULL;
	int code;

	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	code = plan_from_args(args, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	if (cache_view_make(plan->json, &view, err) < 0)
		return -1;
	modes = modes_find(journal, js_str(plan->json, "name"),
			   js_str(json_object_get(plan->json, "compile"), "graph_key"));
	cost = cost_before(journal, plan->json, view.verdict == CACHE_WARM);
	shown = plan_as_shown(plan->json);
	requests = order_planned(shown);
	if (plan_has_agent(plan->json))
		difference = difference_of(requests, NULL);
	if (order_sends(plan->json, requests, err) < 0)
		return -1;
	if (!difference)
		difference = difference_of(requests, "body");
	if (!out_is_json()) {
		print_plan(shown, &view);
		print_cost_before(plan->json, cost);
		print_modes_or_advice(modes);
		if (args->given[OPT_REQUESTS])
			print_requests(shown, requests, difference);
		return EXIT_DONE;
	}
	agent = agent_words(plan->json);
	result = json_object();
	js_put(result, "spec", json_incref(json_object_get(plan->json, "spec")));
	js_put_str(result, "engine", js_str(plan->json, "engine"));
	js_put(result, "cache", cache_json(plan->json, &view));
	js_put(result, "phases", phases_json(shown, view.verdict));
	js_put(result, "health", json_incref(json_object_get(plan->json, "health")));
	js_put(result, "cost", TAKE(cost));
	js_put(result, "requests", TAKE(requests));
	js_put(result, "difference", TAKE(difference));
	js_put(result, "source", json_incref(json_object_get(plan->json, "source")));
	js_put(result, "not_held", plan_not_held(plan->json));
	js_put(result, "modes", TAKE(modes));
	js_put_str(result, "agent", agent);
	js_put_str(result, "plan_digest", plan->digest);
	out_json(result);
	return EXIT_DONE;
}
