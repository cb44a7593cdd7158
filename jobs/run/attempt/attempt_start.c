/* How an attempt began: its claim, its environment, its compiler, its command. */
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/run/attempt/versions.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

/* Returns a warning if the image's agent is of another build than this stoker: it may not know what
 * the order asks for. NULL if there is nothing to warn of. The caller frees it. */
static char *build_words(const json_t *plan, const struct node_report *report)
{
	const char *version = report->build.version;

	if (!agent_delivery_in_image(plan) || report->build.same)
		return NULL;
	return mem_format(
		"the agent in the image of %s is of another build than this stoker (%s%s) and "
		"ignores orders that it does not know; put this stoker's agent into the image",
		agent_delivery_way(plan) == AGENT_DELIVERY_BAKED ? "batch.agent"
								 : "batch.helper_image",
		version ? "version " : "an older one", version ? version : "");
}

int attempt_start_record_claim(struct attempt_watch *watch, const struct engine_status *status,
			       struct err **err)
{
	AUTO(node_report_release) struct node_report report = { 0 };
	AUTO(auto_free) char *words = NULL;
	struct event ev;

	if (attempt_report(watch, 0, &report, err) < 0)
		return -1;
	if (report.claimed == 0)
		return 0;
	attempt_event(watch, EV_ATTEMPT_CLAIMED, &ev);
	EVENT_SET_STR(&ev, job, watch->job);
	EVENT_SET(&ev, node, 0);
	EVENT_SET_STR(&ev, host, report.host);
	words = build_words(watch->driver->plan, &report);
	EVENT_SET_STR(&ev, reason, words);
	EVENT_SET_STR(&ev, nonce, report.nonce);
	EVENT_SET(&ev, since, report.claimed);
	if (attempt_cost_claimed(watch->driver, status, &ev, err) < 0)
		return -1;
	return driver_record(watch->driver, &ev, err);
}

/* Returns what an agent could not compare with the compile manifest, or was told to tolerate; NULL
 * if nothing. The caller frees it. */
static char *compiler_words(const struct node_report *report, const json_t **ret_changed)
{
	const json_t *changed = report->compiler.changed;
	const char *unknown = report->compiler.unknown;
	AUTO(auto_free) char *words = NULL;

	*ret_changed = changed;
	if (!changed)
		return unknown ? mem_format("the compiler cannot be compared with that of the "
					    "compile manifest: %s",
					    unknown)
			       : NULL;
	words = fingerprint_words(changed);
	return mem_format("%s, for which phase 1 has run again already", words);
}

/* Returns 1 if there was something to record, 0 if not, -1 with an error. */
static int record_compiler(struct attempt_watch *watch, int node, const struct node_report *report,
			   struct err **err)
{
	const json_t *changed;
	AUTO(auto_free) char *words = compiler_words(report, &changed);
	struct event ev;

	if (!words)
		return 0;
	attempt_event(watch, EV_COMPILER_CHECKED, &ev);
	EVENT_SET(&ev, node, node);
	EVENT_SET_STR(&ev, reason, words);
	if (changed)
		EVENT_SET(&ev, changed, (json_t *)changed);
	return driver_record(watch->driver, &ev, err) < 0 ? -1 : 1;
}

/* Appends "A, B", escaped: the names come from outside. */
static void add_names(struct sb *words, const json_t *names)
{
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name) {
		const char *text = json_string_value(name);

		sb_adds(words, i ? ", " : "");
		text_escape(words, text ? text : "?", strlen(text ? text : "?"), false);
	}
}

/* Returns which variables of the container the command did not get unchanged; NULL if none. The
 * caller frees it. */
static char *environment_words(const json_t *plan, const struct node_report *report,
			       json_t **ret_names)
{
	const char *unknown = js_str(json_object_get(plan, "image"), "env_unknown");
	json_t *withheld = report->environment.withheld;
	json_t *set_back = report->environment.set_back;
	AUTO(sb_release) struct sb words = SB_INIT_MAX(2000);

	*ret_names = json_array();
	json_array_extend(*ret_names, withheld);
	json_array_extend(*ret_names, set_back);
	if (json_array_size(withheld) > 0) {
		sb_adds(&words, "the command does not get ");
		add_names(&words, withheld);
		if (report->environment.image_known)
			sb_adds(&words, ", which neither the spec nor the image sets");
		else
			sb_addf(&words,
				", which the spec does not set; the image's value is not known%s%s",
				unknown ? ": " : "", unknown ? unknown : "");
	}
	if (json_array_size(set_back) > 0) {
		sb_adds(&words, words.len > 0 ? "; it gets " : "the command gets ");
		add_names(&words, set_back);
		sb_adds(&words, " as the image sets it, not as the container has it");
	}
	return words.len > 0 ? sb_take(&words) : NULL;
}

#define NAME_IT                                                                                    \
	"a variable that steers graphs is part of the graph key only if the spec sets it; name "   \
	"it in 'env'"

/* Returns what lets the command get them: where the image's values are not known, also what lets
 * them be known. The caller frees it. */
static char *environment_cure(const json_t *plan, const struct node_report *report)
{
	const char *hint = js_str(json_object_get(plan, "image"), "env_hint");

	if (!hint || report->environment.image_known)
		return mem_copy(NAME_IT);
	return mem_format(NAME_IT ", or %s", hint);
}

/* Returns 1 if there was something to record, 0 if not, -1 with an error. */
static int record_environment(struct attempt_watch *watch, int node,
			      const struct node_report *report, struct err **err)
{
	const json_t *plan = watch->driver->plan;
	json_auto_t *names = NULL;
	AUTO(auto_free) char *words = environment_words(plan, report, &names);
	AUTO(auto_free) char *cure = environment_cure(plan, report);
	struct event ev;

	if (!words)
		return 0;
	attempt_event(watch, EV_ENVIRONMENT_CHECKED, &ev);
	EVENT_SET(&ev, node, node);
	EVENT_SET_STR(&ev, reason, words);
	EVENT_SET(&ev, names, names);
	EVENT_SET_STR(&ev, hint, cure);
	return driver_record(watch->driver, &ev, err) < 0 ? -1 : 1;
}

/* Per check, only the first node with something to say is recorded: nodes mostly say the same. */
static int record_checks(struct attempt_watch *watch, struct err **err)
{
	bool compares = flow_needs_cache(&watch->driver->flow.policy, watch->phase);
	bool caches = json_object_get(watch->driver->plan, "compile") != NULL;
	int compiler = compares ? 0 : 1, environment = 0;

	for (int node = 0; caches && node < watch->nodes; node++) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (attempt_report(watch, node, &report, err) < 0)
			return -1;
		if (environment == 0)
			environment = record_environment(watch, node, &report, err);
		if (compiler == 0 && environment >= 0)
			compiler = record_compiler(watch, node, &report, err);
		if (environment < 0 || compiler < 0)
			return -1;
	}
	return 0;
}

/* Says once a run, at its first attempt, that a folder it needs is on a file system that cannot
 * sync folders: a power cut may take a file's name away there, whatever its writer synced. */
static int record_unsynced(struct attempt_watch *watch, struct err **err)
{
	const struct driver *driver = watch->driver;
	const char *url = js_str(json_object_get(driver->plan, "checkpoint"), "url");
	const char *places[] = { store_directory(driver->workspace),
				 driver->cache ? store_directory(driver->cache) : NULL,
				 url && url[0] == '/' ? url : NULL };
	AUTO(auto_free) char *words = NULL;
	struct event ev;

	if (driver->flow.attempts[PHASE_PRECOMPILE] + driver->flow.attempts[PHASE_TRAIN] != 1)
		return 0;
	for (size_t i = 0; !words && i < STK_LENGTH(places); i++)
		if (places[i] && fs_refuses_dir_sync(places[i]))
			words = mem_format("the file system of '%s' cannot sync folders",
					   places[i]);
	if (!words)
		return 0;
	attempt_event(watch, EV_ENVIRONMENT_CHECKED, &ev);
	EVENT_SET_STR(&ev, reason, words);
	EVENT_SET_STR(&ev, hint,
		      "a power cut of its server may take away files that were written last; "
		      "checkpoints and graphs are checked again before they are used");
	return driver_record(watch->driver, &ev, err);
}

int attempt_start_record(struct attempt_watch *watch, struct utc started, struct err **err)
{
	struct event ev;

	if (started.ms <= 0 || watch->driver->flow.started || !watch->driver->flow.claimed)
		return 0;
	if (health_record(watch, err) < 0 || record_checks(watch, err) < 0 ||
	    record_unsynced(watch, err) < 0 || versions_record(watch, err) < 0)
		return -1;
	attempt_event(watch, EV_ATTEMPT_STARTED, &ev);
	EVENT_SET(&ev, started, started.ms);
	return driver_record(watch->driver, &ev, err);
}
