/* The driver's life: lease, replay, journal, wishes. See driver.h. */
#include "jobs/run/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aws/aws.h"
#include "aws/secret.h"
#include "jobs/base/hash.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/run/account.h"
#include "jobs/run/driver_inside.h"
#include "jobs/run/lease.h"
#include "jobs/run/notify.h"
#include "jobs/run/probe.h"
#include "jobs/store/order.h"

struct utc driver_now(const struct driver *driver)
{
	struct utc now = utc_now();
	int64_t least = driver->flow.at.ms;

	if (driver->live)
		least += mono_now().ms - driver->seq_at.ms;
	if (now.ms < least)
		now.ms = least;
	return now;
}

/* Read what others have appended: requests, or the word that we drive no more. */
static int absorb(struct driver *driver, struct err **err)
{
	if (replay_rest(driver, err) < 0)
		return -1;
	if (driver->stood_down)
		return err_set(err, EXIT_BUSY, "another driver took run %s over", driver->run);
	return 0;
}

/* 1 appended, 0 somebody else appended first and that is absorbed, -1 error. */
static int try_record(struct driver *driver, struct event *ev, struct err **err)
{
	int appended;

	ev->seq = driver->seq + 1;
	ev->at = driver_now(driver);
	appended = journal_append(driver->journal, driver->run, ev, err);
	if (appended < 0)
		return -1;
	if (appended == 0)
		return absorb(driver, err);
	driver->seq = ev->seq;
	replay_take_in(driver, ev);
	replay_keep(driver);
	if (driver->options->on_event) {
		json_auto_t *row = event_encode(driver->run, ev);

		driver->options->on_event(driver->options->arg, ev, row);
	}
	return 1;
}

int driver_record(struct driver *driver, struct event *ev, struct err **err)
{
	int recorded;

	while ((recorded = try_record(driver, ev, err)) == 0)
		;
	return recorded < 0 ? -1 : 0;
}

/* A decision is good only for the state it was made from: if something came
 * between, the flow is asked again. */
static int record_wish(struct driver *driver, const struct wish *wish, struct err **err)
{
	struct event ev = wish->event;

	return try_record(driver, &ev, err) < 0 ? -1 : 0;
}

static void on_timer(void *arg);

static void wake_in(struct driver *driver, int64_t delay_ms)
{
	loop_remove(driver->loop, driver->timer);
	driver->timer = loop_after(driver->loop, delay_ms < 1 ? 1 : delay_ms, on_timer, driver);
}

static int carry_out_watch(struct driver *driver, const struct wish *wish, struct err **err)
{
	if (!watch_is(driver, wish->phase, wish->attempt) &&
	    watch_open(driver, wish->phase, wish->attempt, wish->job, err) < 0)
		return -1;
	wake_in(driver, TICK_MS);
	return watch_tick(driver, err);
}

static int carry_out_stop(struct driver *driver, const struct wish *wish, struct err **err)
{
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, wish->phase, wish->attempt);

	return driver->engine->ops->stop(driver->engine, wish->job, prefix,
					 js_int(driver->plan, "grace_ms", 60000), err);
}

/* The agents look for this with each heartbeat. */
static int carry_out_drain(struct driver *driver, const struct wish *wish, struct err **err)
{
	AUTO(auto_free) char *prefix = attempt_prefix(driver->run, wish->phase, wish->attempt);
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, DRAIN_FILE);
	json_auto_t *drain = json_object();
	AUTO(auto_free) char *text = NULL;

	js_put(drain, "v", json_integer(1));
	js_put_str(drain, "reason", driver->flow.stop_reason);
	js_put(drain, "at", json_integer(driver_now(driver).ms));
	text = js_line(drain);
	return store_put_if_absent(driver->workspace, key, text, strlen(text), err) < 0 ? -1 : 0;
}

static int carry_out_choice(struct driver *driver, int64_t below, struct err **err)
{
	bool again;

	if (driver_choose_checkpoint(driver, below, &again, err) < 0)
		return -1;
	if (again)
		wake_in(driver, TICK_MS);
	return 0;
}

/* A sick node is among the machines that a next attempt would take over. */
static bool wants_others(const struct event *ev)
{
	return ev->kind == EV_RETRY_SCHEDULED && ev->action == ACTION_EXCLUDE;
}

static int carry_out_record(struct driver *driver, const struct wish *wish, struct err **err)
{
	bool next = wants_others(&wish->event);
	int64_t wait_ms = 0;

	if ((next || wish->event.kind == EV_RUN_ENDED) &&
	    bill_release(driver, next, &wait_ms, err) < 0)
		return -1;
	if (wait_ms == 0)
		return record_wish(driver, wish, err);
	wake_in(driver, wait_ms);
	return 0;
}

static int carry_out(struct driver *driver, const struct wish *wish, struct err **err)
{
	int64_t wait_ms = 0;

	switch (wish->kind) {
	case WISH_RECORD:
		return carry_out_record(driver, wish, err);
	case WISH_CHECK_CACHE:
		return driver_check_cache(driver, err);
	case WISH_CLAIM_KEY:
		if (driver_claim_key(driver, wish, &wait_ms, err) < 0)
			return -1;
		if (wait_ms > 0)
			wake_in(driver, wait_ms);
		return 0;
	case WISH_FIND:
		return driver_find(driver, wish, err);
	case WISH_SUBMIT:
		return driver_submit(driver, wish, err);
	case WISH_WATCH:
		return carry_out_watch(driver, wish, err);
	case WISH_CHOOSE_CHECKPOINT:
		return carry_out_choice(driver, wish->below, err);
	case WISH_DRAIN:
		return carry_out_drain(driver, wish, err);
	case WISH_STOP:
		return carry_out_stop(driver, wish, err);
	case WISH_LEAVE:
		driver_leave(driver, "the job could not be seen for limits.unreachable",
			     EXIT_UNREACHABLE);
		return 0;
	case WISH_VERIFY:
		if (driver_verify(driver, &wait_ms, err) < 0)
			return -1;
		if (wait_ms > 0)
			wake_in(driver, wait_ms);
		return 0;
	case WISH_WAIT:
		wake_in(driver, wish->until.ms - driver_now(driver).ms);
		return 0;
	case WISH_DONE:
		driver->exit_code = (enum exit_code)driver->flow.exit_code;
		notify_linger(driver);
		return 0;
	case WISH_KIND_COUNT:
		break;
	}
	return err_set(err, EXIT_DEFECT, "the flow asked for something unknown");
}

int driver_keep(struct driver *driver, struct err **err)
{
	if (lease_keep(driver->lease, err) == 0)
		return 0;
	driver->stood_down |= (*err)->code != EXIT_UNREACHABLE;
	return -1;
}

bool driver_may_act(struct driver *driver)
{
	if (driver_keep(driver, &driver->failure) == 0)
		return true;
	if (!driver_wait_for_service(driver))
		loop_quit(driver->loop);
	return false;
}

/* Renews the lease while the driver has nothing else to do. */
static void on_lease(void *arg)
{
	struct driver *driver = arg;

	if (driver->failure || driver->left)
		return;
	if (driver_may_act(driver) || !driver->failure)
		loop_after(driver->loop, lease_due(driver->lease), on_lease, driver);
}

/* A service that does not answer is waited for, as long as the plan allows: what could not
 * be done is wished for again. What lies on this machine does not come back by itself. */
bool driver_wait_for_service(struct driver *driver)
{
	const struct driver_options *options = driver->options;
	int64_t limit_ms = driver->flow.policy.unreachable_ms;
	struct mono now = mono_now();

	if (!driver->reaches_out || driver->failure->code != EXIT_UNREACHABLE)
		return false;
	if (aws_gives_up()) { /* not the service's fault: a signal is to be obeyed */
		err_freep(&driver->failure);
		wake_in(driver, AWAY_MS);
		return true;
	}
	if (driver->away_since.ms == 0) {
		driver->away_since = now;
		if (options->on_away)
			options->on_away(options->arg, driver->failure);
	}
	if (limit_ms > 0 && now.ms - driver->away_since.ms >= limit_ms)
		return false;
	err_freep(&driver->failure);
	wake_in(driver, AWAY_MS);
	return true;
}

/* Carry out wishes until they need time or news from outside: each recorded
 * event can change what is wished for. */
static void pump(struct driver *driver)
{
	int64_t before;

	if (driver->stop_wished && !driver_request_stop(driver))
		return;
	do {
		struct wishes wishes;

		before = driver->seq;
		driver_settle_key(driver);
		flow_wishes(&driver->flow, driver_now(driver), &wishes);
		for (int i = 0; i < wishes.count && driver->seq == before && !driver->left; i++) {
			if (!driver_may_act(driver))
				return;
			if (carry_out(driver, &wishes.list[i], &driver->failure) == 0) {
				driver->away_since.ms = 0;
				continue;
			}
			if (!driver_wait_for_service(driver))
				loop_quit(driver->loop);
			return;
		}
	} while (driver->seq != before && !driver->left);
	notify_pump(driver);
}

static void on_timer(void *arg)
{
	struct driver *driver = arg;

	driver->timer = NULL;
	if (!driver->failure && !driver->left)
		pump(driver);
}

static int64_t poll_ms(const struct driver *driver)
{
	return journal_is_far(driver->journal) ? POLL_FAR_MS : POLL_MS;
}

static void on_poll(void *arg)
{
	struct driver *driver = arg;
	int64_t before = driver->seq;

	driver->poll = loop_after(driver->loop, poll_ms(driver), on_poll, driver);
	if (driver->failure || driver->left)
		return;
	if (absorb(driver, &driver->failure) < 0) {
		if (!driver_wait_for_service(driver))
			loop_quit(driver->loop);
	} else if (driver->seq != before)
		driver_wake(driver);
}

void driver_wake(struct driver *driver)
{
	wake_in(driver, 0);
}

static void record_left(struct driver *driver, const char *reason)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event left = { .kind = EV_DRIVER_LEFT };

	EVENT_SET(&left, epoch, driver->flow.epoch);
	EVENT_SET_STR(&left, reason, reason);
	/* Whether it can be said or not, the driver leaves. */
	if (driver_record(driver, &left, &err) < 0)
		return;
}

void driver_leave(struct driver *driver, const char *reason, enum exit_code exit_code)
{
	driver->left = true;
	aws_hurry(LEAVE_MS);
	driver->exit_code = exit_code;
	record_left(driver, reason);
	loop_quit(driver->loop);
}

static int open_outside(struct driver *driver, struct err **err)
{
	const struct engine_ops *ops = engine_find(js_str(driver->plan, "engine"));
	const json_t *compile = json_object_get(driver->plan, "compile");
	const struct engine_where where = { .workspace = js_str(driver->plan, "workspace"),
					    .plan = driver->plan };

	if (plan_enter_aws(driver->plan, err) < 0)
		return -1;
	if (!ops)
		return err_set(err, EXIT_REFUSED, "this version has no engine '%s'",
			       js_str(driver->plan, "engine"));
	driver->kind = compile_kind_find(compile ? js_str(compile, "kind") : "none");
	if (!driver->kind)
		return err_set(err, EXIT_REFUSED, "this version has no compiler kind '%s'",
			       js_str(compile, "kind"));
	driver->reaches_out = plan_uses_aws(driver->plan) || journal_is_far(driver->journal);
	if (compile && store_open(js_str(compile, "cache"), &driver->cache, err) < 0)
		return -1;
	if (store_open(where.workspace, &driver->workspace, err) < 0 ||
	    ops->open(&where, &driver->engine, err) < 0 ||
	    driver->engine->ops->check(driver->engine, err) < 0)
		return -1;
	return 0;
}

static int begin_run(struct driver *driver, struct err **err)
{
	const struct plan *plan = driver->options->plan;
	struct event ev = { .kind = EV_RUN_CREATED };
	int64_t seed;
	int recorded;

	random_bytes(&seed, sizeof seed);
	seed &= INT64_MAX;
	EVENT_SET_STR(&ev, name, js_str(plan->json, "name"));
	EVENT_SET_STR(&ev, engine, js_str(plan->json, "engine"));
	EVENT_SET_STR(&ev, spec, js_str(plan->json, "spec_file"));
	EVENT_SET(&ev, plan, plan->json);
	EVENT_SET_STR(&ev, plan_digest, plan->digest);
	EVENT_SET(&ev, seed, seed);
	recorded = try_record(driver, &ev, err);
	/* A run begins once: what was created meanwhile is somebody else's to drive. */
	if (recorded == 0)
		return err_set(err, EXIT_BUSY, "run %s has just been created by another driver",
			       driver->run);
	return recorded < 0 ? -1 : 0;
}

static int take_over(struct driver *driver, struct err **err)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER };
	char host[256] = "?";

	gethostname(host, sizeof host - 1);
	EVENT_SET_STR(&ev, host, host);
	EVENT_SET(&ev, pid, (int64_t)getpid());
	EVENT_SET(&ev, epoch, driver->flow.epoch + 1);
	return driver_record(driver, &ev, err);
}

/* The journal's plan and the one in hand must be the same. */
static int check_same_plan(const struct driver *driver, struct err **err)
{
	char digest[SHA256_HEX];

	plan_digest(driver->plan, digest);
	if (!driver->options->plan || strcmp(digest, driver->options->plan->digest) == 0)
		return 0;
	err_set(err, EXIT_SPEC, "run %s belongs to another plan", driver->run);
	return err_hint(err, "the spec or its source has changed since: choose another --id");
}

static int drive(struct driver *driver, struct err **err)
{
	if (loop_new(&driver->loop, err) < 0)
		return -1;
	driver_watch_signals(driver);
	if (driver->options->on_loop && driver->flow.state != FLOW_ENDED)
		driver->options->on_loop(driver->options->arg, driver->loop);
	if (driver->flow.state != FLOW_ENDED && take_over(driver, err) < 0)
		return -1;
	driver_hear_signals(driver);
	driver->poll = loop_after(driver->loop, poll_ms(driver), on_poll, driver);
	if (lease_due(driver->lease) >= 0)
		loop_after(driver->loop, lease_due(driver->lease), on_lease, driver);
	driver_keep_key(driver);
	wake_in(driver, 0);
	if (loop_run(driver->loop, err) < 0)
		return -1;
	if (driver->failure) {
		*err = TAKE(driver->failure);
		aws_hurry(LEAVE_MS);
		if (!driver->stood_down)
			record_left(driver, (*err)->message);
		return err_hint(err, "%s%srun %s is safe: 'stoker resume %s' goes on with it",
				(*err)->hint ? (*err)->hint : "", (*err)->hint ? "; " : "",
				driver->run, driver->run);
	}
	return 0;
}

static void driver_release(struct driver *driver)
{
	watch_close(driver);
	notify_release(driver);
	driver_leave_key(driver);
	ckpt_watch_freep(&driver->leftovers);
	store_freep(&driver->checkpoints);
	if (driver->engine)
		driver->engine->ops->close(driver->engine);
	store_freep(&driver->workspace);
	store_freep(&driver->cache);
	if (driver->loop && driver->options->on_loop)
		driver->options->on_loop(driver->options->arg, NULL);
	driver_deafen(driver);
	loop_freep(&driver->loop);
	secret_strv_freep(&driver->job_env);
	free(driver->agent_prefix);
	free(driver->agent_archive);
	json_decref(driver->plan);
	err_free(driver->failure);
	lease_freep(&driver->lease);
	aws_hurry(0);
}

/* Take the lease, replay the journal, begin the run if it is new. */
static int make_ready(struct driver *driver, struct err **err)
{
	const struct plan *plan = driver->options->plan;

	if (lease_take(driver->journal, driver->run, driver->options->lease,
		       driver->options->on_wait, driver->options->arg, &driver->lease, err) < 0 ||
	    replay_all(driver, err) < 0)
		return -1;
	driver->live = true;
	if (driver->seq > 0) {
		if (driver->plan)
			return check_same_plan(driver, err);
		return err_set(err, EXIT_DEFECT, "the journal of run %s does not begin with a plan",
			       driver->run);
	}
	if (!plan)
		return err_set(err, EXIT_USAGE, "no run '%s'", driver->run);
	/* Nothing is journalled before all that a run needs is in place. */
	driver->plan = json_incref(plan->json);
	if (open_outside(driver, err) < 0 || driver_make_cache(driver, err) < 0 ||
	    probe_places(driver->plan, driver->journal, err) < 0 ||
	    job_env_make(driver->plan, &driver->job_env, err) < 0 || plan_publish(plan, err) < 0 ||
	    plan_pin_aws(plan->json, err) < 0)
		return -1;
	return begin_run(driver, err);
}

int driver_begin(struct journal *journal, const struct driver_options *options, struct err **err)
{
	AUTO(driver_release)
	struct driver driver = { .journal = journal, .options = options, .run = options->run };

	return make_ready(&driver, err);
}

int driver_run(struct journal *journal, const struct driver_options *options,
	       enum exit_code *ret_exit, struct err **err)
{
	AUTO(driver_release)
	struct driver driver = { .journal = journal, .options = options, .run = options->run };

	if (make_ready(&driver, err) < 0)
		return -1;
	*ret_exit = driver.exit_code = (enum exit_code)driver.flow.exit_code;
	if (driver.flow.state == FLOW_ENDED)
		return notify_pending(&driver) ? drive(&driver, err) : 0;
	if ((!driver.workspace && open_outside(&driver, err) < 0) || drive(&driver, err) < 0)
		return -1;
	*ret_exit = driver.exit_code;
	return 0;
}
