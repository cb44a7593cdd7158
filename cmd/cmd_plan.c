/* plan: what a run would do and why. Changes nothing anywhere. */
#include <string.h>

#include "aws/credentials/settings.h"
#include "aws/http/patience.h"
#include "cmd/args/machine_here.h"
#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_plan.h"
#include "cmd/view/cost_view.h"
#include "cmd/view/mode_comparison_view.h"
#include "cmd/view/plan_requests.h"
#include "cmd/view/plan_text.h"
#include "cmd/view/retrain_known.h"
#include "cmd/view/retrain_view.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/health.h"
#include "jobs/spec/machines/compatibility.h"

/* True for the phases that fill the cache. */
static bool is_ahead(const json_t *phase)
{
	return js_is(phase, "phase", flow_phase_names[PHASE_PRECOMPILE]) ||
	       js_is(phase, "phase", flow_phase_names[PHASE_VERIFY]);
}

/* Returns only the phases that would run: a warm cache needs no phase 1. */
static json_t *phases_json(const json_t *plan, enum cache_state verdict)
{
	json_t *phases = json_array(), *phase;
	size_t i;

	json_array_foreach (json_object_get(plan, "phases"), i, phase)
		if (verdict != CACHE_WARM || !is_ahead(phase))
			json_array_append(phases, phase);
	return phases;
}

/* Adds commands as the machines run them, if they differ from the spec's. */
static void put_commands(const json_t *plan, json_t *shown)
{
	json_t *phase;
	size_t i;

	json_array_foreach (json_object_get(shown, "phases"), i, phase) {
		json_t *command = json_object_get(phase, "command")
					  ? sends_command_as_run(plan, js_str(phase, "phase"))
					  : NULL;

		js_put(phase, "command", command);
		if (command)
			json_object_del(phase, "front");
	}
}

/* Prints the features that are missing if our agent is not in the run's jobs. */
static void print_not_held(const json_t *plan)
{
	json_auto_t *words = toolkit_limits_not_held(plan);
	const json_t *word;
	size_t i;

	if (words)
		out_line("without stoker's agent (sagemaker.launcher: toolkit):");
	json_array_foreach (words, i, word)
		out_line("  - %s", json_string_value(word));
}

/* Returns how the agent gets into the containers of this plan; NULL if there are no containers,
 * or none with our agent. The caller frees it. */
static char *agent_words(const json_t *plan)
{
	json_auto_t *not_held = toolkit_limits_not_held(plan);

	return agent_delivery_way(plan) == AGENT_DELIVERY_NONE || not_held
		       ? NULL
		       : agent_delivery_words(plan);
}

/* Returns what the tag of the plan's image says; NULL if it says nothing. */
static json_t *tag_of(const json_t *plan)
{
	const char *image = json_string_value(js_path(plan, "spec.image"));

	return image ? compatibility_image(image) : NULL;
}

/* Returns "pytorch 2.9.0, Neuron SDK 2.29.1, Python 3.12"; NULL for NULL. The caller frees it. */
static char *image_words(const json_t *tag)
{
	const char *framework = js_str(tag, "framework"), *sdk = js_str(tag, "sdk");

	if (!tag)
		return NULL;
	return mem_format("%s %s, %s%s, Python %s", framework ? framework : "version",
			  js_str(tag, "framework_version"), sdk ? "Neuron SDK " : "for ",
			  sdk ? sdk : js_str(tag, "device"), js_str(tag, "python"));
}

static void print_modes(const json_t *plan)
{
	const json_t *debug = json_object_get(plan, "debug");
	const char *name;
	json_t *value;

	if (json_is_true(json_object_get(plan, "benchmark")))
		out_line("benchmark: checkpoints are uploaded when the command is over; no step is "
			 "measured in which it saved");
	if (!debug)
		return;
	out_line("debug:   in no comparison; nothing is compiled ahead, and no cache is used");
	json_object_foreach (json_object_get(debug, "variables"), name, value)
		out_line("  %s=%s", name, json_string_value(value));
}

/* Prints the names of the phases that would run. `unknown`: whether the cache is warm is. */
static void print_phases(const json_t *plan, const json_t *caches, bool ahead, bool unknown)
{
	AUTO(sb_release) struct sb names = SB_INIT;
	const json_t *phase;
	size_t i;

	json_array_foreach (json_object_get(plan, "phases"), i, phase) {
		const char *name = js_str(phase, "phase");

		if (!ahead && is_ahead(phase))
			continue;
		if (json_object_get(json_object_get(caches, name), "precompile"))
			sb_addf(&names, ", precompile for %s", name);
		sb_addf(&names, "%s%s", names.len > 0 ? ", " : "", name);
	}
	out_line("phases:  %s%s", names.text,
		 !ahead || !unknown ? ""
		 : json_object_get(plan, "promote")
			 ? "; if the cache is warm, without the first two"
			 : "; if the cache is warm, train alone");
}

static void print_plan(const json_t *plan, const struct cache_view *view, const json_t *baseline,
		       const json_t *caches)
{
	const json_t *source = json_object_get(plan, "source");
	const char *commit = js_str(source, "commit");
	int64_t files = js_int(source, "files", 0);
	bool unknown = view->verdict == CACHE_UNKNOWN;
	bool ahead = (unknown || view->verdict == CACHE_COLD) &&
		     plan_phase(plan, flow_phase_names[PHASE_PRECOMPILE]);
	AUTO(auto_free) char *health = health_plan_words(plan);
	AUTO(auto_free) char *agent = agent_words(plan);
	AUTO(auto_free) char *inherited = inherited_words(plan);
	json_auto_t *tag = tag_of(plan);
	AUTO(auto_free) char *image = image_words(tag);
	json_t *phase;
	size_t i;

	out_line("%s on %s", js_str(plan, "name"), js_str(plan, "engine"));
	out_line("source:  %s%s%.12s%s, %lld file%s, %.12s", js_str(source, "kind"),
		 commit ? " " : "", commit ? commit : "",
		 js_bool(source, "dirty", false) ? " with uncommitted changes" : "",
		 (long long)files, files == 1 ? "" : "s", js_str(source, "digest"));
	if (view->verdict == CACHE_UNKNOWN)
		out_line("cache:   %s", view->reason);
	else
		out_line("cache:   %s: %s", flow_cache_state_names[view->verdict], view->reason);
	if (view->hint && unknown)
		out_line("         to know it, %s", view->hint);
	plan_text_print_changes(view->changed, out_is_verbose() ? SIZE_MAX : CHANGES_SHOWN);
	if (json_array_size(view->changed) > CHANGES_SHOWN && !out_is_verbose())
		out_line("  -v, or 'stoker cache why', names them all");
	if (view->hint && !unknown)
		out_line("         %s", view->hint);
	machine_here_print(plan);
	if (health)
		out_line("health:  %s", health);
	if (image)
		out_line("image:   %s, by its tag", image);
	if (agent)
		out_line("agent:   %s", agent);
	if (inherited)
		out_line("env:     %s", inherited);
	print_modes(plan);
	print_phases(plan, caches, ahead, unknown);
	json_array_foreach (json_object_get(plan, "phases"), i, phase) {
		AUTO(auto_free) char *line = plan_text_command(json_object_get(phase, "command"));

		if (line && (ahead || !is_ahead(phase)))
			out_line("  %-10s %s", js_str(phase, "phase"), line);
	}
	retrain_view_print(plan, baseline, caches);
	plan_text_print_derived(plan);
	plan_text_print_measures(plan, ahead);
	print_not_held(plan);
}

/* Adds a fact that could not be asked for: a row of `rows`, for JSON. */
static void add_unknown(const char *what, const char *reason, const char *hint, json_t *rows)
{
	json_t *row = json_pack("{s:s, s:s}", "what", what, "reason", reason);

	js_put_str(row, "hint", hint);
	json_array_append_new(rows, row);
}

static void print_unknown(const char *label, const char *what, const struct err *why, json_t *rows)
{
	if (!why)
		return;
	out_line("%-8s not known: %s", label, patience_reason(why));
	add_unknown(what, patience_reason(why), why->hint, rows);
}

/* Returns the facts that are unknown: an array, empty if all are known, and prints them. The
 * cache already has its own line. The region matters only if the plan needs one. */
static json_t *print_all_unknown(const json_t *plan, const struct cache_view *view,
				 const struct err *runs, const struct err *promoted)
{
	AUTO(err_freep) struct err *region = NULL, *account = NULL;
	const json_t *image = json_object_get(plan, "image");
	const char *unresolved = js_str(image, "unknown");
	json_t *rows = json_array();

	if (view->verdict == CACHE_UNKNOWN)
		add_unknown("cache", view->reason, view->hint, rows);
	if (unresolved && (view->verdict != CACHE_UNKNOWN || patience_is_offline())) {
		out_line("image:   not known: %s%s", unresolved,
			 patience_is_offline() ? "" : "; the job is submitted with its tag");
		add_unknown("image", unresolved, js_str(image, "hint"), rows);
	}
	if (machine_here_unknown(plan)) {
		out_line("machine: not known: %s", machine_here_unknown(plan));
		add_unknown("machine", machine_here_unknown(plan),
			    "name the type in resources.instance", rows);
	}
	if (aws_account_needs_region(plan) && !aws_region(&region))
		print_unknown("region:", "region", region, rows);
	/* No plan asks for it; one that is offline could not. */
	if (aws_account_needs_region(plan) && !js_path(plan, "spec.aws.account") &&
	    patience_check(&account) < 0)
		print_unknown("account:", "account", account, rows);
	print_unknown("runs:", "earlier runs", runs, rows);
	print_unknown("promoted:", "promoted model", promoted, rows);
	return rows;
}

/* The check-up in the units of printed JSON; NULL: there is none. */
static json_t *health_json(const json_t *plan)
{
	const json_t *health = json_object_get(plan, "health");
	json_t *ret = health ? json_object() : NULL;

	if (!ret)
		return NULL;
	js_put(ret, "device", json_incref(json_object_get(health, "device")));
	js_put(ret, "ops", json_incref(json_object_get(health, "ops")));
	js_put(ret, "size_bytes", json_incref(json_object_get(health, "size")));
	js_put(ret, "timeout", json_real((double)js_int(health, "timeout_ms", 0) / 1000));
	return ret;
}

/* Returns what the line of JSON says of the plan itself. */
static json_t *plan_json(const struct plan *plan, const json_t *shown,
			 const struct cache_view *view, const json_t *baseline,
			 const json_t *caches)
{
	static const char *const as_is[] = { "spec",    "origins", "engine",    "length", "width",
					     "derived", "source",  "benchmark", "debug" };
	AUTO(auto_free) char *agent = agent_words(plan->json);
	json_t *result = json_object();

	for (size_t i = 0; i < STK_LENGTH(as_is); i++)
		js_put(result, as_is[i], json_incref(json_object_get(plan->json, as_is[i])));
	js_put(result, "cache", plan_cache_json(plan->json, view));
	js_put(result, "phases", phases_json(shown, view->verdict));
	js_put(result, "machine", machine_here_view(plan->json));
	js_put(result, "health", health_json(plan->json));
	js_put(result, "image", tag_of(plan->json));
	retrain_view_put(plan->json, baseline, caches, result);
	js_put(result, "inherited", inherited_of_plan(plan->json));
	js_put(result, "not_held", toolkit_limits_not_held(plan->json));
	js_put_str(result, "agent", agent);
	js_put_str(result, "plan_digest", plan->digest);
	return result;
}

static int print_sweep(const struct args *args, struct journal *journal, const struct spec *spec,
		       const json_t *sweep, const struct plan *plan, struct err **err)
{
	AUTO(plan_requests_release) struct plan_requests requests = { 0 };

	if (!args->given[OPT_REQUESTS])
		return sweep_plan_print(journal, spec, sweep, plan, NULL, err);
	image_plan_try(plan->json);
	if (plan_requests_make(plan->json, &requests, err) < 0)
		return -1;
	return sweep_plan_print(journal, spec, sweep, plan, &requests, err);
}

int cmd_plan(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	AUTO(plan_requests_release) struct plan_requests requests = { 0 };
	json_auto_t *result = NULL, *shown = NULL, *comparison = NULL, *cost = NULL;
	json_auto_t *unknown = NULL, *sweep = NULL, *preload = NULL, *baseline = NULL;
	json_auto_t *caches = NULL;
	AUTO(err_freep) struct err *runs = NULL;
	AUTO(err_freep) struct err *promoted = NULL;
	int code;

	/* A plan can do without services: facts are left open if a service does not answer soon. */
	patience_set(args->given[OPT_OFFLINE] ? 0 : PATIENCE_BRIEF_MS);
	if (journal_open_try(args->value[OPT_STATE], &journal, &runs, err) < 0)
		return -1;
	code = spec_args_plan(args, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	/* 'run --dry-run' shows the spec as it is, which run runs. */
	sweep = args->given[OPT_DRY_RUN] ? NULL : spec_sweep(spec);
	if (sweep)
		return print_sweep(args, journal, spec, sweep, plan, err);
	image_plan_try(plan->json);
	if (cache_view_try(plan->json, &view, err) < 0 ||
	    retrain_view_caches(plan->json, &caches, err) < 0)
		return -1;
	comparison =
		mode_comparison_find(journal, js_str(plan->json, "name"),
				     js_str(json_object_get(plan->json, "compile"), "graph_key"));
	cost = cost_before(journal, plan->json, view.verdict == CACHE_WARM, &runs);
	if (plan_requests_make(plan->json, &requests, err) < 0)
		return -1;
	shown = plan_as_shown(plan->json);
	put_commands(plan->json, shown);
	preload = cache_preload_view(plan->json);
	baseline = retrain_known(plan->json, &promoted);
	if (!out_is_json()) {
		print_plan(shown, &view, baseline, caches);
		plan_text_print_preload(preload);
		if (out_is_verbose())
			plan_text_print_origins(plan->json);
		cmd_print_cost_before(plan->json, cost);
		cmd_print_comparison_or_advice(comparison);
		unknown = print_all_unknown(plan->json, &view, runs, promoted);
		if (args->given[OPT_REQUESTS])
			plan_requests_print(shown, &requests);
		return EXIT_DONE;
	}
	result = plan_json(plan, shown, &view, baseline, caches);
	js_put(result, "preload", json_array_size(preload) > 0 ? TAKE(preload) : NULL);
	js_put(result, "cost", TAKE(cost));
	plan_requests_put(&requests, result);
	js_put(result, "modes", TAKE(comparison));
	unknown = print_all_unknown(plan->json, &view, runs, promoted);
	if (json_array_size(unknown) > 0)
		js_put(result, "not_known", TAKE(unknown));
	out_json_exact(result); /* as status shows the same figures */
	return EXIT_DONE;
}
