/* Preparation before a run is driven: its lease, its journal, the engine and the stores; and their
 * release. */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/secret.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/cancel.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/journal/forget.h"
#include "jobs/run/journal/lease.h"
#include "jobs/run/notify.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/own_places.h"
#include "jobs/run/plan/parent.h"
#include "jobs/run/plan/plan_difference.h"
#include "jobs/run/plan/preflight.h"

#define TAKE_UP_TRIES    4
#define DIFFERENCES_TOLD 5   /* of two plans */
#define TAKE_UP_MS       300 /* before the second try; then twice as long */

/* Submitting is checked before the first job, for the stages too. */
static int check_engines(struct driver *driver, struct err **err)
{
	for (enum phase phase = PHASE_COUNT; phase-- > 0;) {
		if (phase != PHASE_TRAIN && !job_engine_is_own(driver, phase))
			continue;
		if (job_engine_enter(driver, phase, err) < 0 ||
		    driver->engine->ops->check(driver->engine, err) < 0)
			return phase == PHASE_TRAIN ? -1
						    : err_wrap(err, "%s", flow_phase_names[phase]);
	}
	return job_engine_enter(driver, PHASE_TRAIN, err);
}

int ready_open_outside(struct driver *driver, struct err **err)
{
	const struct engine_ops *ops = engine_find(js_str(driver->plan, "engine"));
	const json_t *compile = json_object_get(driver->plan, "compile");
	const char *workspace = js_str(driver->plan, "workspace");

	if (aws_account_enter(driver->plan, err) < 0)
		return -1;
	if (!ops)
		return err_set(err, EXIT_REFUSED, "engine '%s' is not part of this version",
			       js_str(driver->plan, "engine"));
	driver->kind = compile_kind_find(compile ? js_str(compile, "kind") : "none");
	if (!driver->kind)
		return err_set(err, EXIT_REFUSED, "compiler kind '%s' is not part of this version",
			       js_str(compile, "kind"));
	driver->reaches_out =
		aws_account_is_needed(driver->plan) || journal_is_remote(driver->journal);
	if (compile && !driver->cache &&
	    store_open(js_str(compile, "cache"), &driver->cache, err) < 0)
		return -1;
	if (!driver->workspace && store_open(workspace, &driver->workspace, err) < 0)
		return -1;
	return job_engine_enter(driver, driver->flow.phase, err);
}

/* Finds what the run is given: what the caller has, and the models that the spec names. */
static int find_inputs(struct driver *driver, struct err **err)
{
	const json_t *given = driver->options->inputs;
	json_auto_t *inputs = given ? json_deep_copy(given) : json_object();

	if (parent_add(driver->plan, driver->workspace, inputs, err) < 0)
		return -1;
	json_decref(driver->inputs);
	driver->inputs = json_object_size(inputs) > 0 ? TAKE(inputs) : NULL;
	return 0;
}

static int begin_run(struct driver *driver, struct err **err)
{
	const struct plan *plan = driver->options->plan;
	struct event ev = { .kind = EV_RUN_CREATED };
	int kept = run_find_kept(driver->journal, driver->run, err);
	int64_t seed;
	int recorded;

	if (kept < 0)
		return -1;
	/* The new run would take the kept data for its own, by name and place. */
	if (kept > 0) {
		err_set(err, EXIT_SPEC,
			"an earlier run '%s' was removed, and the only copies of its checkpoints "
			"or outputs are kept under that id",
			driver->run);
		return err_hint(err,
				"choose another --id, or remove the copies with 'stoker rm %s "
				"--with-checkpoints'",
				driver->run);
	}
	hash_random_bytes(&seed, sizeof seed);
	seed &= INT64_MAX;
	EVENT_SET_STR(&ev, name, js_str(plan->json, "name"));
	EVENT_SET_STR(&ev, engine, js_str(plan->json, "engine"));
	EVENT_SET_STR(&ev, spec, js_str(plan->json, "spec_file"));
	EVENT_SET(&ev, plan, plan->json);
	EVENT_SET_STR(&ev, plan_digest, plan->digest);
	EVENT_SET(&ev, seed, seed);
	if (driver->inputs)
		EVENT_SET(&ev, inputs, driver->inputs);
	recorded = driver_try_record(driver, &ev, err);
	/* A run begins once: a run that was created meanwhile belongs to another driver. */
	if (recorded == 0)
		return err_set(err, EXIT_BUSY, "run %s has just been created by another driver",
			       driver->run);
	return recorded < 0 ? -1 : 0;
}

/* Checks that the journal's plan and the given one are the same. */
static int check_same_plan(const struct driver *driver, struct err **err)
{
	json_auto_t *difference = NULL;
	AUTO(auto_free) char *words = NULL;
	char digest[SHA256_HEX];

	plan_digest(driver->plan, digest);
	if (!driver->options->plan || strcmp(digest, driver->options->plan->digest) == 0)
		return 0;
	difference = plan_difference(driver->plan, driver->options->plan->json);
	words = plan_difference_words(difference, DIFFERENCES_TOLD);
	err_set(err, EXIT_SPEC, "run %s belongs to another plan%s%s", driver->run,
		words[0] ? "; what has changed since: " : "", words);
	return err_hint(err,
			"choose another --id, or undo the change; 'stoker diff %s SPEC' shows "
			"all of it",
			driver->run);
}

static int damage_no_plan(const struct driver *driver, struct err **err)
{
	err_set(err, EXIT_REFUSED, "not 'run.created'");
	return damage_of_event(err, journal_url(driver->journal), driver->run, 1);
}

/* Takes the lease and replays the journal. May be called again after a failure. */
static int take_run(struct driver *driver, struct err **err)
{
	const struct driver_options *options = driver->options;

	if (!lease_is_held(driver->lease) &&
	    (preflight_state(&driver->probe, driver->journal, err) < 0 ||
	     lease_take(driver->journal, driver->run, options->lease, options->on_wait,
			options->arg, &driver->lease, err) < 0))
		return -1;
	if (replay_all(driver, err) < 0)
		return -1;
	driver->live = true;
	driver->live_at = clock_utc_now();
	driver->live_since = clock_mono_now();
	driver->goes_on = driver->seq > 0;
	if (driver->seq == 0)
		return 0;
	if (!driver->plan)
		return damage_no_plan(driver, err);
	if (check_same_plan(driver, err) < 0)
		return -1;
	if (driver->flow.state == FLOW_ENDED)
		return 0;
	if (ready_open_outside(driver, err) < 0)
		return -1;
	/* The check of what submitting needs must not keep a driver from a job that was already
	 * submitted. */
	return flow_may_have_job(&driver->flow) ? 0 : check_engines(driver, err);
}

/* The run exists, and its job may be under way: transient failures do not keep a driver from it. */
static int take_run_patiently(struct driver *driver, struct err **err)
{
	for (int i = 0; take_run(driver, err) < 0; i++) {
		bool exists = !driver->options->plan || driver->seq > 0;

		if (!exists || i >= TAKE_UP_TRIES || !err_passes(*err) ||
		    !cancel_pause(TAKE_UP_MS << i))
			return -1;
		err_freep(err);
	}
	return 0;
}

/* The same, and begins the run if it is new. */
int ready_make(struct driver *driver, struct err **err)
{
	const struct plan *plan = driver->options->plan;

	if (take_run_patiently(driver, err) < 0)
		return -1;
	if (driver->seq > 0)
		return 0;
	if (!plan)
		return err_set(err, EXIT_NOT_FOUND, "no run '%s'", driver->run);
	/* Nothing is journalled before everything that a run needs is in place. */
	driver->plan = json_incref(plan->json);
	if (ready_open_outside(driver, err) < 0 || check_engines(driver, err) < 0 ||
	    image_plan_resolve(driver->plan, err) < 0 || cache_gate_make(driver, err) < 0 ||
	    preflight_places(&driver->probe, driver->plan, driver->journal, err) < 0 ||
	    find_inputs(driver, err) < 0 ||
	    submit_job_env(driver->plan, &driver->job_env, err) < 0 ||
	    plan_publish(plan, err) < 0 || aws_account_pin(plan->json, err) < 0)
		return -1;
	/* The image's digest and the account are known by now. */
	job_engine_forget_stages(driver);
	own_places_remember(journal_dir(driver->journal), plan->json);
	driver->trusts = true;
	return begin_run(driver, err);
}

void ready_release(struct driver *driver)
{
	watch_close(driver);
	notify_release(driver);
	precompile_claim_leave(driver);
	checkpoint_watch_freep(&driver->leftovers);
	store_freep(&driver->checkpoints);
	job_engine_close_all(driver);
	store_freep(&driver->workspace);
	store_freep(&driver->cache);
	if (driver->loop && driver->options->on_loop)
		driver->options->on_loop(driver->options->arg, NULL);
	interrupt_ignore(driver);
	loop_freep(&driver->loop);
	secret_strv_freep(&driver->job_env);
	again_forget(driver);
	free(driver->submit_words);
	free(driver->stop_words);
	free(driver->agent_prefix);
	free(driver->agent_archive);
	json_decref(driver->plan);
	json_decref(driver->inputs);
	err_free(driver->failure);
	lease_freep(&driver->lease);
	preflight_release(&driver->probe);
	cancel_after(0);
}
