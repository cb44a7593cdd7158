/* A wish for an attempt becomes a job: its order, its environment, the engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/run/agent.h"
#include "jobs/run/driver_inside.h"
#include "jobs/store/order.h"

#define SECRET_MAX ((size_t)64 << 10)

/* What a command gets of the caller's environment; nothing else leaks in. */
static const char *const passed_on[] = { "PATH", "HOME", "USER", "LANG", "TMPDIR" };

char *attempt_prefix(const char *run, enum phase phase, int64_t attempt)
{
	return mem_format("runs/%s/%s-%lld/", run, phase_names[phase], (long long)attempt);
}

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

	env = mem_zero(STK_LENGTH(passed_on) + json_object_size(secrets) + 1, sizeof *env);
	for (size_t i = 0; i < STK_LENGTH(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (value)
			env[count++] = mem_format("%s=%s", passed_on[i], value);
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

static json_t *names_of(json_t *object)
{
	json_t *names = json_array(), *value;
	const char *name;

	json_object_foreach (object, name, value)
		json_array_append_new(names, json_string(name));
	return names;
}

char *checkpoint_root(const struct driver *driver, int64_t attempt)
{
	const char *url = js_str(json_object_get(driver->plan, "checkpoint"), "url");

	if (url)
		return mem_format("%s/%s/attempt-%lld", url, driver->run, (long long)attempt);
	return mem_format("%s/runs/%s/%s-%lld/checkpoints", store_url(driver->workspace),
			  driver->run, phase_names[PHASE_TRAIN], (long long)attempt);
}

/* Of the training alone: what phase 1 saves is computed from nothing. */
static void put_checkpoint(json_t *order, const struct driver *driver, const struct wish *wish,
			   const char *prefix)
{
	json_t *checkpoint = json_deep_copy(json_object_get(driver->plan, "checkpoint"));
	const char *sync = js_str(checkpoint, "sync");
	AUTO(auto_free) char *root = checkpoint_root(driver, wish->attempt);
	AUTO(auto_free)
	char *folder = mem_format("%s/%scheckpoints", store_url(driver->workspace), prefix);

	js_put_str(order, "checkpoint_dir", folder);
	js_put_str(checkpoint, "sync", strcmp(sync, "agent") == 0 ? "agent" : "none");
	js_put_str(checkpoint, "root", root);
	json_object_del(checkpoint, "url");
	json_object_del(checkpoint, "on_mismatch");
	js_put(order, "checkpoint", checkpoint);
	js_put(order, "stall", json_incref(json_object_get(driver->plan, "stall")));
	if (wish->resumed_from) {
		js_put_str(order, "resume_from", wish->resumed_from);
		js_put(order, "resume_step", json_integer(driver->flow.checkpoint_step));
	}
}

/* The front-end and how many graphs it is to compile at a time come first. */
static json_t *command_json(const struct driver *driver, const struct wish *wish,
			    const json_t *phase)
{
	const char *front = js_str(phase, "front");
	json_t *command = json_array();

	if (front)
		json_array_append_new(command, json_string(front));
	if (front && wish->workers > 0 && driver->kind->workers_option) {
		AUTO(auto_free) char *workers = mem_format("%lld", (long long)wish->workers);

		json_array_append_new(command, json_string(driver->kind->workers_option));
		json_array_append_new(command, json_string(workers));
	}
	json_array_extend(command, json_object_get(phase, "command"));
	return command;
}

/* What an earlier try has stored as failed is tried again. */
static json_t *env_json(const struct driver *driver, const struct wish *wish, const json_t *phase)
{
	json_t *env = json_deep_copy(json_object_get(phase, "env"));
	const char *variable = driver->kind->retry_variable;

	if (wish->phase == PHASE_PRECOMPILE && wish->attempt > 1 && variable) {
		const char *flags = js_str(env, variable);
		AUTO(auto_free)
		char *more = mem_format("%s%s%s", flags ? flags : "", flags && *flags ? " " : "",
					driver->kind->retry_words);

		if (!flags || !strstr(flags, driver->kind->retry_words))
			js_put_str(env, variable, more);
	}
	return env;
}

static void put_compile(json_t *order, const struct driver *driver, const struct wish *wish,
			const json_t *compiler)
{
	const json_t *compile = json_object_get(driver->plan, "compile");
	json_t *object = json_pack("{s:s, s:s}", "kind", js_str(compile, "kind"), "cache",
				   js_str(compile, "cache"));

	if (wish->workers > 0)
		js_put(object, "workers", json_integer(wish->workers));
	js_put(object, "program",
	       json_incref(
		       json_array_get(js_path(plan_phase(driver->plan, "train"), "command"), 0)));
	if (wish->phase == PHASE_TRAIN && compiler)
		js_put(object, "compiler", json_incref((json_t *)compiler));
	js_put_str(object, "tolerated", wish->tolerated);
	if (wish->phase == PHASE_PRECOMPILE) {
		char nonce[FLOW_ID_MAX];

		flow_key_nonce(&driver->flow, nonce);
		js_put_str(object, "graph_key", js_str(compile, "graph_key"));
		js_put_str(object, "claim", nonce);
	}
	js_put(order, "compile", object);
}

/* See jobs/store/order.h for the members. */
static json_t *order_json(const struct driver *driver, const struct wish *wish, const char *prefix,
			  const json_t *compiler)
{
	const json_t *plan = driver->plan;
	const json_t *phase = plan_phase(plan, phase_names[wish->phase]);
	const json_t *compile = json_object_get(plan, "compile");
	AUTO(auto_free) char *run_prefix = mem_format("runs/%s/", driver->run);
	json_t *order = json_object();

	js_put(order, "v", json_integer(1));
	js_put_str(order, "run", driver->run);
	js_put_str(order, "phase", phase_names[wish->phase]);
	js_put(order, "attempt", json_integer(wish->attempt));
	js_put_str(order, "job", wish->job);
	js_put_str(order, "nonce", driver->flow.nonce);
	js_put(order, "nodes", json_integer(js_int(plan, "nodes", 1)));
	js_put_str(order, "workspace", store_url(driver->workspace));
	js_put_str(order, "prefix", prefix);
	js_put_str(order, "run_prefix", run_prefix);
	js_put_str(order, "source", js_str(json_object_get(plan, "source"), "bundle"));
	js_put(order, "links", json_incref(js_path(plan, "source.links")));
	js_put(order, "command", command_json(driver, wish, phase));
	js_put(order, "env", env_json(driver, wish, phase));
	js_put(order, "secrets", names_of(json_object_get(plan, "secrets")));
	if (compile)
		put_compile(order, driver, wish, compiler);
	js_put(order, "metrics", json_incref(json_object_get(plan, "metrics")));
	js_put(order, "scratch", json_boolean(wish->phase == PHASE_PRECOMPILE));
	if (wish->phase == PHASE_TRAIN)
		put_checkpoint(order, driver, wish, prefix);
	if (wish->phase == PHASE_PRECOMPILE)
		js_put(order, "timeout_ms", json_integer(js_int(compile, "timeout_ms", 0)));
	js_put(order, "grace_ms", json_integer(js_int(plan, "grace_ms", 60000)));
	return order;
}

/* What a training is held to: the compiler that filled the cache for its graph key. */
static int locked_compiler(const struct driver *driver, const struct wish *wish, json_t **ret,
			   struct err **err)
{
	const char *key = js_str(json_object_get(driver->plan, "compile"), "graph_key");
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

	if (locked_compiler(driver, wish, &compiler, err) < 0)
		return -1;
	order = order_json(driver, wish, prefix, compiler);
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
