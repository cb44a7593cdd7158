/* A wish for an attempt becomes a job: its order, its environment, the engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/base/variable.h"
#include "jobs/run/agent.h"
#include "jobs/run/driver_inside.h"
#include "jobs/store/order.h"

#define SECRET_MAX ((size_t)64 << 10)

/* The value behind `env:NAME` or `file:PATH`, appended to `ret`. */
static int secret_read(const json_t *plan, const char *name, const char *from, struct sb *ret,
		       struct err **err)
{
	if (strncmp(from, "env:", 4) == 0) {
		const char *value = getenv(from + 4);

		if (!value) {
			err_set(err, EXIT_REFUSED, "secret '%s': the variable '%s' is not set",
				name, from + 4);
			return err_hint(err, "export %s before you start stoker", from + 4);
		}
		sb_adds(ret, value);
		return 0;
	}
	if (strncmp(from, "file:", 5) == 0) {
		AUTO(auto_free) char *folder = fs_dirname(js_str(plan, "spec_file"));
		AUTO(auto_free) char *path = fs_join(folder, from + 5);

		if (fs_read(path, SECRET_MAX, ret, err) < 0) {
			err_code(err, EXIT_REFUSED);
			if (!(*err)->hint)
				err_hint(err, "correct secrets.%s, or write the secret there",
					 name);
			return err_wrap(err, "secret '%s'", name);
		}
		while (ret->len > 0 && ret->text[ret->len - 1] == '\n')
			ret->text[--ret->len] = '\0';
		if (strlen(ret->text) != ret->len) {
			err_set(err, EXIT_REFUSED, "secret '%s': '%s' holds a NUL byte", name,
				path);
			return err_hint(err, "no variable can hold it: write it there as text");
		}
		return 0;
	}
	return err_set(err, EXIT_REFUSED,
		       "secret '%s': this version reads only env: and file:", name);
}

int job_env_make(const json_t *plan, char ***ret, struct err **err)
{
	json_t *secrets = json_object_get(plan, "secrets"), *from;
	AUTO(auto_strv) char **env = NULL;
	const char *name;
	size_t count = 0;

	env = mem_zero(VAR_COUNT + json_object_size(secrets) + 1, sizeof *env);
	/* Nothing else of the caller's environment leaks in. */
	for (enum variable i = 0; i < VAR_COUNT; i++) {
		const char *value = NULL;

		name = variables[i].name;
		if (variables[i].uses & VAR_PASSED)
			value = getenv(name);
		if (value)
			env[count++] = mem_format("%s=%s", name, value);
	}
	json_object_foreach (secrets, name, from) {
		AUTO(sb_release) struct sb value = SB_INIT_MAX(SECRET_MAX);

		if (secret_read(plan, name, json_string_value(from), &value, err) < 0)
			return -1;
		env[count++] = mem_format("%s=%s", name, value.text);
		explicit_bzero(value.text, value.len);
	}
	*ret = TAKE(env);
	return 0;
}

char *checkpoint_root(const struct driver *driver, int64_t attempt)
{
	return order_checkpoint_root(driver->plan, store_url(driver->workspace), driver->run,
				     attempt);
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
		       struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, ORDER_FILE);
	json_auto_t *compiler = NULL, *order = NULL;
	AUTO(auto_free) char *text = NULL;
	char claim[FLOW_ID_MAX];
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
		.claim = claim,
	};

	if (locked_compiler(driver, wish, &compiler, err) < 0)
		return -1;
	flow_key_nonce(&driver->flow, claim);
	of.compiler = compiler;
	order = order_make(driver->plan, &of);
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

/* The engine's definite no: the attempt has ended before it began. */
static int record_refusal(struct driver *driver, const struct wish *wish, const struct err *why,
			  struct err **err)
{
	AUTO(auto_free) char *words = err_format(why);
	struct event ev;

	attempt_event(&ev, EV_ATTEMPT_ENDED, wish);
	EVENT_SET(&ev, class,
		  why->code == EXIT_REFUSED ? CLASS_QUOTA_PERMISSION : CLASS_USER_CONFIG);
	EVENT_SET_STR(&ev, evidence, words);
	EVENT_SET_STR(&ev, hint, why->hint);
	return driver_record(driver, &ev, err);
}

int driver_submit(struct driver *driver, const struct wish *wish, struct err **err)
{
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, wish->phase, wish->attempt);
	AUTO(err_freep) struct err *why = NULL;
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
	if (!driver->agent_prefix &&
	    agent_publish(driver->workspace, &driver->agent_prefix, err) < 0)
		return -1;
	job.agent_key = driver->agent_prefix;
	if (write_order(driver, wish, prefix, err) < 0)
		return err_wrap(err, "cannot write the order of %s", wish->job);
	if (driver_keep(driver, err) < 0)
		return -1;
	outcome = driver->engine->ops->submit(driver->engine, &job, &why);
	if (outcome < 0)
		return record_refusal(driver, wish, why, err);
	attempt_event(&ev, outcome > 0 ? EV_ATTEMPT_UNCERTAIN : EV_ATTEMPT_SUBMITTED, wish);
	if (outcome > 0)
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
