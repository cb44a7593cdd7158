/* Turns an effect for an attempt into a job: its order, its environment, the engine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/child_aws_env.h"
#include "aws/credentials/secret.h"
#include "jobs/base/variable.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/flow/failure.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/plan/agent.h"
#include "jobs/run/plan/aws_account.h"
#include "jobs/run/plan/secret.h"
#include "jobs/store/order.h"

#define CROWDED_MS    ((int64_t)1000)
#define CROWDED_TIMES 4
/* A refusal that may pass by itself is definite only after so many in a row. */
#define REFUSED_TIMES 3

/* True for a variable that the agent itself has from the caller. */
static bool is_of_agent(const char *name)
{
	const struct variable_row *row = variable_find(name);

	return row && (row->uses & (VAR_LENT | VAR_PASSED));
}

/* Makes the agent's environment: PATH and the like, its secrets and, if it works with AWS, the
 * variables needed to get there. Nothing else of the caller's environment leaks in. If a service
 * starts the agent the environment is empty: the role of its job gives access, also to secrets. */
int submit_job_env(const json_t *plan, char ***ret, struct err **err)
{
	json_t *secrets = json_object_get(plan, "secrets"), *from;
	AUTO(secret_strv_freep) char **lent = NULL;
	AUTO(secret_strv_freep) char **env = NULL;
	size_t count = 0, lent_count = 0;
	const char *name;

	if (agent_delivery_way(plan) != AGENT_DELIVERY_NONE) {
		*ret = mem_zero(1, sizeof **ret);
		return 0;
	}
	if (aws_account_is_needed(plan))
		lent = child_aws_env(&lent_count);
	env = mem_zero(VAR_COUNT + lent_count + json_object_size(secrets) + 1, sizeof *env);
	for (enum variable i = 0; i < VAR_COUNT; i++) {
		const char *value = NULL;

		name = variable_rows[i].name;
		if (variable_rows[i].uses & VAR_PASSED)
			value = getenv(name);
		if (value)
			env[count++] = mem_format("%s=%s", name, value);
	}
	for (size_t i = 0; i < lent_count; i++)
		env[count++] = mem_copy(lent[i]);
	json_object_foreach (secrets, name, from) {
		AUTO(secret_freep) char *value = NULL;

		if (secret_value(plan, name, json_string_value(from), &value, err) < 0)
			return -1;
		/* The agent's own AWS variables may differ from those that the command is given. */
		env[count++] =
			mem_format("%s%s=%s", is_of_agent(name) ? ORDER_SECRET : "", name, value);
	}
	*ret = TAKE(env);
	return 0;
}

/* Loads the compiler that an attempt is held to: the one that filled the cache for its graph
 * key. */
static int locked_compiler(struct driver *driver, const struct effect *effect, json_t **ret,
			   struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *damage = NULL;

	if (!flow_needs_cache(&driver->flow.policy, effect->phase))
		return 0;
	if (compile_manifest_load(driver->cache, cache_gate_lock_key(driver), &lock, &damage, err) <
	    0)
		return -1;
	*ret = lock ? json_incref(lock->compiler) : NULL;
	return 0;
}

static int write_order(struct driver *driver, const struct effect *effect, const char *prefix,
		       json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, ORDER_FILE);
	json_auto_t *compiler = NULL;
	json_t *order;
	AUTO(auto_free) char *text = NULL;
	char claim[FLOW_ID_MAX], digest[SHA256_HEX];
	struct order_of of = {
		.run = driver->run,
		.nonce = driver->flow.nonce,
		.workspace = store_url(driver->workspace),
		.phase = effect->phase,
		.attempt = effect->attempt,
		.job = effect->job,
		.workers = effect->workers,
		.resumed_from = effect->resumed_from,
		.resume_step = driver->flow.checkpoint_step,
		.tolerated = effect->tolerated,
		.lock = flow_needs_cache(&driver->flow.policy, effect->phase)
				? cache_gate_lock_key(driver)
				: NULL,
		.claim = claim,
		.inputs = driver->inputs,
		.flow = &driver->flow,
	};

	if (locked_compiler(driver, effect, &compiler, err) < 0)
		return -1;
	if (agent_delivery_in_image(driver->plan)) {
		if (agent_digest(digest, err) < 0)
			return -1;
		of.agent = digest;
	}
	flow_key_nonce(&driver->flow, claim);
	of.compiler = compiler;
	*ret = order = order_make(job_engine_plan(driver, effect->phase), &of);
	text = js_line(order);
	return store_put(driver->workspace, key, text, strlen(text), err);
}

static void submit_event(struct event *ev, enum event_kind kind, const struct effect *effect)
{
	*ev = (struct event){ .kind = kind };
	EVENT_SET(ev, phase, effect->phase);
	EVENT_SET(ev, attempt, effect->attempt);
	EVENT_SET_STR(ev, job, effect->job);
}

/* Records the engine's definite refusal: the attempt has ended before it began. */
static int record_refusal(struct driver *driver, const struct effect *effect, const struct err *why,
			  struct err **err)
{
	AUTO(auto_free) char *words = err_format(why);
	const struct failure_evidence evidence = {
		.phase = effect->phase,
		.engine_reason = words,
		.refused = why->code == EXIT_REFUSED ? FAILURE_REFUSED_DENIED
						     : FAILURE_REFUSED_INVALID,
		.refusal_hint = why->hint,
	};
	struct failure_classification classification;
	struct event ev;

	failure_classify(&evidence, &classification);
	submit_event(&ev, EV_ATTEMPT_ENDED, effect);
	EVENT_SET(&ev, class, classification.class);
	EVENT_SET_STR(&ev, evidence, words); /* the whole of it, however long */
	EVENT_SET_STR(&ev, hint, classification.hint[0] ? classification.hint : NULL);
	return driver_record(driver, &ev, err);
}

static int publish_agent(struct driver *driver, struct engine_job *job, struct err **err)
{
	if (!driver->agent_prefix &&
	    agent_publish(driver->workspace, &driver->agent_prefix, err) < 0)
		return -1;
	job->agent_key = driver->agent_prefix;
	if (agent_delivery_way(driver->plan) == AGENT_DELIVERY_LINK && !driver->agent_archive &&
	    agent_publish_archive(driver->workspace, driver->agent_prefix, &driver->agent_archive,
				  err) < 0)
		return -1;
	job->agent_archive = driver->agent_archive;
	return 0;
}

/* The service takes only so many requests a second: this one is sent again soon, after ever longer
 * waits, and at last the service counts as unreachable. */
static int wait_for_turn(struct driver *driver, struct err **why, int64_t *ret_wait_ms,
			 struct err **err)
{
	if (driver->crowded < CROWDED_TIMES) {
		*ret_wait_ms = CROWDED_MS << driver->crowded++;
		return 0;
	}
	*err = TAKE(*why);
	return err_code(err, EXIT_UNREACHABLE);
}

/* Records what became of the submission. A driver that cannot journal it does not submit again: the
 * engine may not list the job yet, and would start a second one. */
static int record_submission(struct driver *driver, const struct effect *effect, struct err **err)
{
	struct event ev;

	submit_event(&ev, driver->submit_unsure ? EV_ATTEMPT_UNCERTAIN : EV_ATTEMPT_SUBMITTED,
		     effect);
	EVENT_SET_STR(&ev, reason, driver->submit_words);
	return driver_record(driver, &ev, err);
}

int submit_job(struct driver *driver, const struct effect *effect, int64_t *ret_wait_ms,
	       struct err **err)
{
	AUTO(auto_free)
	char *prefix = order_attempt_prefix(driver->run, effect->phase, effect->attempt);
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *order = NULL;
	struct engine_job job = {
		.name = effect->job,
		.run = driver->run,
		.phase = flow_phase_names[effect->phase],
		.attempt = effect->attempt,
		.nodes = plan_nodes(job_engine_plan(driver, effect->phase), effect->phase),
		.prefix = prefix,
	};
	int outcome;

	if (driver->submitted)
		return record_submission(driver, effect, err);
	if (job_engine_enter(driver, effect->phase, err) < 0)
		return -1;
	if (!driver->job_env && submit_job_env(driver->plan, &driver->job_env, err) < 0)
		return -1;
	job.env = driver->job_env;
	if (toolkit_limits_has_agent(driver->plan) && publish_agent(driver, &job, err) < 0)
		return -1;
	if (write_order(driver, effect, prefix, &order, err) < 0)
		return err_wrap(err, "cannot write the order of %s", effect->job);
	job.order = order;
	if (driver_keep(driver, err) < 0)
		return -1;
	driver->submitted = true;
	outcome = driver->engine->ops->submit(driver->engine, &job, &why);
	driver->submitted = outcome >= 0;
	if (outcome < 0 && why->code == EXIT_BUSY)
		return wait_for_turn(driver, &why, ret_wait_ms, err);
	driver->crowded = 0;
	if (outcome < 0 && (why->code == EXIT_UNREACHABLE ||
			    (err_passes(why) && driver->away_times < REFUSED_TIMES))) {
		*err = TAKE(why); /* the flow will ask for it again */
		return -1;
	}
	if (outcome < 0)
		return record_refusal(driver, effect, why, err);
	driver->submit_unsure = outcome > 0;
	if (!driver->submit_unsure)
		driver->job_seen_at = clock_mono_now();
	free(driver->submit_words);
	driver->submit_words = why ? mem_copy(why->message) : NULL;
	return record_submission(driver, effect, err);
}

int submit_find(struct driver *driver, const struct effect *effect, struct err **err)
{
	AUTO(auto_free)
	char *prefix = order_attempt_prefix(driver->run, effect->phase, effect->attempt);
	struct event ev;
	int found;

	if (job_engine_enter(driver, effect->phase, err) < 0)
		return -1;
	found = driver->engine->ops->find(driver->engine, effect->job, prefix, err);
	if (found < 0)
		return -1;
	driver->submitted = found > 0;
	if (found > 0)
		driver->job_seen_at = clock_mono_now();
	submit_event(&ev, found ? EV_ATTEMPT_SUBMITTED : EV_ATTEMPT_MISSING, effect);
	if (driver_record(driver, &ev, err) < 0)
		return -1;
	if (found > 0 || !driver->submit_unsure)
		return 0;
	/* The service takes no jobs: it is asked again as one that does not answer is, after ever
	 * longer waits and not for ever. */
	driver->submit_unsure = false;
	return err_set(err, EXIT_UNREACHABLE, "%s",
		       driver->submit_words ? driver->submit_words : "the service takes no jobs");
}
