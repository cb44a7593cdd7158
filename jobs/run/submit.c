/* A wish for an attempt becomes a job: its order, its environment, the engine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/lend.h"
#include "aws/secret.h"
#include "jobs/base/variable.h"
#include "jobs/engine/arrival.h"
#include "jobs/flow/failure.h"
#include "jobs/run/account.h"
#include "jobs/run/agent.h"
#include "jobs/run/driver_inside.h"
#include "jobs/run/secret.h"
#include "jobs/store/order.h"

static bool is_lent(const char *name)
{
	const struct variable_row *row = variable_find(name);

	return row && (row->uses & VAR_LENT);
}

/* What an agent gets: PATH and the like, its secrets, and where it is AWS that it works with,
 * what it needs to get there. Nothing else of the caller's environment leaks in. Where a
 * service starts it, nothing does: the role of its job lets it in, and what that may read. */
int job_env_make(const json_t *plan, char ***ret, struct err **err)
{
	json_t *secrets = json_object_get(plan, "secrets"), *from;
	AUTO(secret_strv_freep) char **lent = NULL;
	AUTO(secret_strv_freep) char **env = NULL;
	size_t count = 0, lent_count = 0;
	const char *name;

	if (arrival_way(plan) != ARRIVAL_NONE) {
		*ret = mem_zero(1, sizeof **ret);
		return 0;
	}
	if (plan_uses_aws(plan))
		lent = aws_lend(&lent_count);
	env = mem_zero(VAR_COUNT + lent_count + json_object_size(secrets) + 1, sizeof *env);
	for (enum variable i = 0; i < VAR_COUNT; i++) {
		const char *value = NULL;

		name = variables[i].name;
		if (variables[i].uses & VAR_PASSED)
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
		/* What lets the agent in and what the command is given may differ. */
		env[count++] =
			mem_format("%s%s=%s", is_lent(name) ? ORDER_SECRET : "", name, value);
	}
	*ret = TAKE(env);
	return 0;
}

/* What a training is held to: the compiler that filled the cache for its graph key. */
static int locked_compiler(const struct driver *driver, const struct wish *wish, json_t **ret,
			   struct err **err)
{
	const char *key = driver_lock_key(driver);
	AUTO(compile_lock_freep) struct compile_lock *lock = NULL;
	AUTO(auto_free) char *damage = NULL;

	if (wish->phase != PHASE_TRAIN || !driver->flow.policy.compiles)
		return 0;
	if (lock_load(driver->cache, key, &lock, &damage, err) < 0)
		return -1;
	*ret = lock ? json_incref(lock->compiler) : NULL;
	return 0;
}

static int write_order(struct driver *driver, const struct wish *wish, const char *prefix,
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
		.phase = wish->phase,
		.attempt = wish->attempt,
		.job = wish->job,
		.workers = wish->workers,
		.resumed_from = wish->resumed_from,
		.resume_step = driver->flow.checkpoint_step,
		.tolerated = wish->tolerated,
		.lock = wish->phase == PHASE_TRAIN && driver->flow.policy.compiles
				? driver_lock_key(driver)
				: NULL,
		.claim = claim,
	};

	if (locked_compiler(driver, wish, &compiler, err) < 0)
		return -1;
	if (arrival_in_image(driver->plan)) {
		if (agent_digest(digest, err) < 0)
			return -1;
		of.agent = digest;
	}
	flow_key_nonce(&driver->flow, claim);
	of.compiler = compiler;
	*ret = order = order_make(driver->plan, &of);
	text = js_line(order);
	return store_put(driver->workspace, key, text, strlen(text), err);
}

static void attempt_event(struct event *ev, enum event_kind kind, const struct wish *wish)
{
	*ev = (struct event){ .kind = kind };
	EVENT_SET(ev, phase, wish->phase);
	EVENT_SET(ev, attempt, wish->attempt);
	EVENT_SET_STR(ev, job, wish->job);
}

/* What a service that is busy or has no machines refuses today it takes tomorrow; what else it
 * says no to stops the run. */
static enum failure_class refusal_class(const struct err *why, enum phase phase, const char *words,
					char *ret_hint, size_t size)
{
	struct failure_evidence evidence = { .phase = phase, .engine_reason = words };
	struct failure_verdict verdict;
	bool known;

	failure_judge(&evidence, &verdict);
	known = strcmp(verdict.rule, "words") != 0;
	snprintf(ret_hint, size, "%s", why->hint && why->hint[0] ? why->hint : "");
	if ((verdict.class == CLASS_CAPACITY || verdict.class == CLASS_SPOT) &&
	    (known || why->code != EXIT_SPEC)) {
		snprintf(ret_hint, size, "%s", verdict.hint);
		return verdict.class;
	}
	/* Words that no row knows are no reason to ask again: a definite no stays one. */
	if ((verdict.class == CLASS_TRANSIENT_INFRA && known) || why->code == EXIT_UNREACHABLE)
		return CLASS_TRANSIENT_INFRA;
	return why->code == EXIT_REFUSED ? CLASS_QUOTA_PERMISSION : CLASS_USER_CONFIG;
}

/* The engine's definite no: the attempt has ended before it began. */
static int record_refusal(struct driver *driver, const struct wish *wish, const struct err *why,
			  struct err **err)
{
	AUTO(auto_free) char *words = err_format(why);
	char hint[sizeof((struct failure_verdict *)NULL)->hint];
	struct event ev;

	attempt_event(&ev, EV_ATTEMPT_ENDED, wish);
	EVENT_SET(&ev, class, refusal_class(why, wish->phase, words, hint, sizeof hint));
	EVENT_SET_STR(&ev, evidence, words);
	EVENT_SET_STR(&ev, hint, hint[0] ? hint : NULL);
	return driver_record(driver, &ev, err);
}

static int publish_agent(struct driver *driver, struct engine_job *job, struct err **err)
{
	if (!driver->agent_prefix &&
	    agent_publish(driver->workspace, &driver->agent_prefix, err) < 0)
		return -1;
	job->agent_key = driver->agent_prefix;
	if (arrival_way(driver->plan) == ARRIVAL_LINK && !driver->agent_archive &&
	    agent_publish_archive(driver->workspace, driver->agent_prefix, &driver->agent_archive,
				  err) < 0)
		return -1;
	job->agent_archive = driver->agent_archive;
	return 0;
}

int driver_submit(struct driver *driver, const struct wish *wish, struct err **err)
{
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, wish->phase, wish->attempt);
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *order = NULL;
	struct engine_job job = {
		.name = wish->job,
		.run = driver->run,
		.phase = phase_names[wish->phase],
		.attempt = wish->attempt,
		.nodes = (int)js_int(driver->plan, "nodes", 1),
		.prefix = prefix,
	};
	struct event ev;
	int outcome;

	if (!driver->job_env && job_env_make(driver->plan, &driver->job_env, err) < 0)
		return -1;
	job.env = driver->job_env;
	if (plan_has_agent(driver->plan) && publish_agent(driver, &job, err) < 0)
		return -1;
	if (write_order(driver, wish, prefix, &order, err) < 0)
		return err_wrap(err, "cannot write the order of %s", wish->job);
	job.order = order;
	if (driver_keep(driver, err) < 0)
		return -1;
	outcome = driver->engine->ops->submit(driver->engine, &job, &why);
	if (outcome < 0 && why->code == EXIT_UNREACHABLE) {
		*err = TAKE(why); /* it is wished for again */
		return -1;
	}
	if (outcome < 0)
		return record_refusal(driver, wish, why, err);
	attempt_event(&ev, outcome > 0 ? EV_ATTEMPT_UNCERTAIN : EV_ATTEMPT_SUBMITTED, wish);
	EVENT_SET_STR(&ev, reason, why ? why->message : NULL);
	return driver_record(driver, &ev, err);
}

int driver_find(struct driver *driver, const struct wish *wish, struct err **err)
{
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, wish->phase, wish->attempt);
	struct event ev;
	int found = driver->engine->ops->find(driver->engine, wish->job, prefix, err);

	if (found < 0)
		return -1;
	attempt_event(&ev, found ? EV_ATTEMPT_SUBMITTED : EV_ATTEMPT_MISSING, wish);
	return driver_record(driver, &ev, err);
}
