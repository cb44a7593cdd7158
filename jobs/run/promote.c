/*
 * EFFECT_PROMOTE: the candidate becomes the promoted version. The intent is journalled before
 * anything is copied, and what follows is repeated with that intent until it is done or another run
 * came first (promotion.h).
 */
#include <string.h>

#include "jobs/base/process/cancel.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/inputs/inputs.h"
#include "jobs/run/promotion.h"

/* A promotion under way. */
struct promoting {
	struct driver *driver;
	struct err *lost; /* why the copy was stopped; owned */
};

static void promoting_release(struct promoting *promoting)
{
	err_free(promoting->lost);
}

/* Keeps the lease while a copy takes its time; false stops it. */
static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	struct promoting *promoting = arg;

	(void)done;
	(void)total;
	if (loop_stop_pending() || cancel_is_due())
		return false;
	return promoting->lost || driver_keep(promoting->driver, &promoting->lost) == 0;
}

static int record_intended(struct driver *driver, const struct promotion_intent *intent,
			   struct err **err)
{
	struct event ev = { .kind = EV_PROMOTE_INTENDED };

	EVENT_SET(&ev, generation, intent->generation);
	EVENT_SET_STR(&ev, nonce, intent->nonce);
	EVENT_SET_STR(&ev, url, intent->url);
	EVENT_SET_STR(&ev, digest, intent->before[0] ? intent->before : NULL);
	return driver_record(driver, &ev, err);
}

static int record_overtaken(struct driver *driver, int64_t generation, const char *holder,
			    const char *reason, const char *hint, struct err **err)
{
	struct event ev = { .kind = EV_PROMOTE_OVERTAKEN };

	EVENT_SET(&ev, generation, generation);
	EVENT_SET_STR(&ev, holder, holder);
	EVENT_SET_STR(&ev, reason, reason);
	EVENT_SET_STR(&ev, hint, hint);
	return driver_record(driver, &ev, err);
}

static int record_result(struct driver *driver, const struct promotion_result *result,
			 struct err **err)
{
	struct event ev = { .kind = EV_PROMOTE_DONE };
	json_auto_t *outputs = NULL;

	if (result->fate == PROMOTION_OVERTAKEN)
		return record_overtaken(driver, result->generation, result->holder, result->reason,
					NULL, err);
	EVENT_SET(&ev, generation, result->generation);
	EVENT_SET_STR(&ev, digest, result->digest);
	EVENT_SET_STR(&ev, url, result->url);
	if (result->outputs) {
		outputs = json_pack("{s:s}", "url", result->outputs);
		EVENT_SET(&ev, outputs, outputs);
	}
	return driver_record(driver, &ev, err);
}

/* Records that inputs or results of the run are not what they were: that does not pass, and is a
 * verdict. */
static int record_refusal(struct driver *driver, int64_t generation, struct err **why,
			  struct err **err)
{
	AUTO(err_freep) struct err *kept = TAKE(*why);

	return record_overtaken(driver, generation, NULL, kept->message, kept->hint, err);
}

static int record_drift(struct driver *driver, const json_t *drift, struct err **err)
{
	AUTO(auto_free)
	char *reason = mem_format("the data is not what the run was given: %lld of its objects "
				  "changed, %lld are gone; the first is %s",
				  (long long)js_int(drift, "changed", 0),
				  (long long)js_int(drift, "gone", 0), js_str(drift, "first"));

	return record_overtaken(driver, 0, NULL, reason,
				"retrain once more: the next turn is given the data as it is then",
				err);
}

/* The candidate was damaged or is gone: no driver that comes later finds another one. */
static bool is_verdict(const struct err *why)
{
	return why->code == EXIT_GATE || why->code == EXIT_RUN_FAILED;
}

int promote_candidate(struct driver *driver, struct err **err)
{
	AUTO(promoting_release) struct promoting promoting = { .driver = driver };
	AUTO(promotion_intent_release) struct promotion_intent intent = { 0 };
	AUTO(promotion_result_release) struct promotion_result result = { 0 };
	struct promotion_how how = { .progress = on_progress, .arg = &promoting };
	json_auto_t *drift = NULL;
	int found = promotion_intent_find(driver->journal, driver->run, &intent, err);

	if (found < 0 || inputs_find_drift(driver->plan, driver->inputs, &drift, err) < 0)
		return -1;
	how.drift = drift;
	if (found == 0 && drift &&
	    js_is(json_object_get(driver->plan, "data"), "on_change", "stop"))
		return record_drift(driver, drift, err);
	if (found == 0) {
		found = promotion_intend(driver->journal, driver->run, driver->flow.candidate, &how,
					 &intent, &result, err);
		if (found < 0)
			return is_verdict(*err) ? record_refusal(driver, 0, err, err) : -1;
		return found > 0 ? record_intended(driver, &intent, err)
				 : record_result(driver, &result, err);
	}
	if (promotion_carry_out(driver->journal, driver->run, &intent, &how, &result, err) == 0)
		return record_result(driver, &result, err);
	if (promoting.lost) {
		err_freep(err);
		*err = TAKE(promoting.lost);
		return -1;
	}
	return is_verdict(*err) ? record_refusal(driver, intent.generation, err, err) : -1;
}
