/* How an attempt began: its claim, its compiler, its command. */
#include "jobs/cache/fingerprint.h"
#include "jobs/engine/arrival.h"
#include "jobs/run/health.h"
#include "jobs/run/watch_inside.h"
#include "jobs/store/order.h"

/* Of an agent that an image held: is it of our build? Another may do, or not know what the
 * order asks for. NULL: there is nothing to say. Yours to free. */
static char *build_words(const json_t *plan, const json_t *report)
{
	const json_t *build = json_object_get(report, "build");
	const char *version = js_str(build, "version");

	if (!arrival_in_image(plan) || js_bool(build, "same", false))
		return NULL;
	return mem_format("the agent in the image of %s is of another build than this stoker "
			  "(%s%s): what it does not know is not done; put this one's there",
			  arrival_way(plan) == ARRIVAL_BAKED ? "batch.agent" : "batch.helper_image",
			  version ? "version " : "an older one", version ? version : "");
}

int record_claimed(struct attempt_watch *watch, const struct engine_status *status,
		   struct err **err)
{
	json_auto_t *report = NULL;
	AUTO(auto_free) char *words = NULL;
	struct event ev;

	if (watch_report(watch, 0, &report, err) < 0)
		return -1;
	if (js_int(report, "claimed", 0) == 0)
		return 0;
	watch_event(watch, EV_ATTEMPT_CLAIMED, &ev);
	EVENT_SET_STR(&ev, job, watch->job);
	EVENT_SET(&ev, node, 0);
	EVENT_SET_STR(&ev, host, js_str(report, "host"));
	words = build_words(watch->driver->plan, report);
	EVENT_SET_STR(&ev, reason, words);
	EVENT_SET_STR(&ev, nonce, js_str(report, "nonce"));
	EVENT_SET(&ev, since, js_int(report, "claimed", 0));
	if (bill_claimed(watch->driver, status, &ev, err) < 0)
		return -1;
	return driver_record(watch->driver, &ev, err);
}

/* What an agent could not compare with the lock, or was told to put up with. NULL: it
 * has nothing to say. Yours to free. */
static char *compiler_words(const json_t *report, const json_t **ret_changed)
{
	const json_t *compiler = json_object_get(report, "compiler");
	const json_t *changed = json_object_get(compiler, "changed");
	const char *unknown = js_str(compiler, "unknown");
	AUTO(auto_free) char *words = NULL;

	*ret_changed = changed;
	if (!changed)
		return unknown ? mem_format("it cannot be compared with the lock's: %s", unknown)
			       : NULL;
	words = fingerprint_words(changed);
	return mem_format("%s, for which phase 1 has run again already", words);
}

/* Of the first node that has something to say: they mostly say the same. */
static int record_compiler(struct attempt_watch *watch, struct err **err)
{
	for (int node = 0; node < watch->nodes && watch->driver->flow.policy.compiles; node++) {
		json_auto_t *report = NULL;
		AUTO(auto_free) char *words = NULL;
		const json_t *changed;
		struct event ev;

		if (watch_report(watch, node, &report, err) < 0)
			return -1;
		words = compiler_words(report, &changed);
		if (!words)
			continue;
		watch_event(watch, EV_COMPILER_CHECKED, &ev);
		EVENT_SET(&ev, node, node);
		EVENT_SET_STR(&ev, reason, words);
		if (changed)
			EVENT_SET(&ev, changed, (json_t *)changed);
		return driver_record(watch->driver, &ev, err);
	}
	return 0;
}

int record_started(struct attempt_watch *watch, struct utc started, struct err **err)
{
	struct event ev;

	if (started.ms <= 0 || watch->driver->flow.started || !watch->driver->flow.claimed)
		return 0;
	if (health_record(watch, err) < 0 ||
	    (watch->phase == PHASE_TRAIN && record_compiler(watch, err) < 0))
		return -1;
	watch_event(watch, EV_ATTEMPT_STARTED, &ev);
	EVENT_SET(&ev, started, started.ms);
	return driver_record(watch->driver, &ev, err);
}
