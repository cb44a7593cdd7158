/*
 * Derives the state of a driver from a run's events. In a long journal most of them need not be
 * read: a snapshot is kept beside them from time to time.
 *
 * The snapshot is the flow as it lies in memory. So it is used only by the very program that wrote
 * it, and only if it is whole and of this run; otherwise all events are read, with the same result.
 * Its loss costs time and nothing else.
 */
#include <string.h>
#include <unistd.h>

#include "jobs/base/hash.h"
#include "jobs/base/maker.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/notify_queue.h"

#define KEEP_EVERY 1000 /* events between two snapshots */
#define FORM       8    /* version of struct replay_kept */

struct replay_kept {
	int64_t form;
	unsigned char maker[MAKER_MAX];
	char run[JOURNAL_RUN_MAX];
	int64_t progress_ms; /* UTC of driver.progress_at; 0: none */
	struct run_facts facts;
	struct flow flow;
	char sum[SHA256_HEX]; /* sum of all members before */
};

/* The run has begun: its plan and what it was given make the policy of the flow. */
static void adopt_plan(struct driver *driver, const struct event *ev)
{
	json_t *inputs = EVENT_HAS(ev, inputs) ? json_incref(ev->inputs) : NULL;
	struct flow_policy policy;

	json_incref(ev->plan);
	json_decref(driver->plan);
	driver->plan = ev->plan;
	json_decref(driver->inputs);
	driver->inputs = inputs;
	plan_policy(driver->plan, driver->inputs, driver->run, &policy);
	flow_init(&driver->flow, &policy);
}

/* The time of an event, possibly of another process, on the monotonic clock of this one. */
static struct mono mono_of(struct utc at)
{
	struct mono now = clock_mono_now();
	int64_t age = clock_utc_now().ms - at.ms;

	if (age > 0)
		now.ms = age < now.ms ? now.ms - age : 0;
	return now;
}

/* A training may join a manifest that another run's phase 1 has made. */
static bool rests_on_cache(const struct driver *driver, enum phase phase)
{
	return phase == PHASE_TRAIN || flow_needs_cache(&driver->flow.policy, phase);
}

/* Notes the chores that the end of an attempt leaves to be done (chores.c). */
static void update_owed(struct driver *driver, const struct event *ev,
			const char lock_key[FLOW_KEY_MAX])
{
	switch (ev->kind) {
	case EV_ATTEMPT_ENDED:
		driver->facts.owed = (struct owed){
			.due = flow_phases[ev->phase].has_jobs,
			.phase = ev->phase,
			.attempt = ev->attempt,
			.went_well = rests_on_cache(driver, ev->phase) && EVENT_HAS(ev, exit) &&
				     ev->exit == 0,
		};
		/* The next stage rests on another manifest. */
		memcpy(driver->facts.owed.lock_key, lock_key, sizeof driver->facts.owed.lock_key);
		break;
	case EV_ATTEMPT_INTENDED:
	case EV_CHORE_FAILED:
	case EV_RUN_ENDED:
		driver->facts.owed.due = false;
		break;
	default:
		break;
	}
}

void replay_apply(struct driver *driver, const struct event *ev)
{
	char lock_key[FLOW_KEY_MAX];

	if (ev->kind == EV_RUN_CREATED)
		adopt_plan(driver, ev);
	memcpy(lock_key, driver->flow.lock_key, sizeof lock_key);
	flow_apply(&driver->flow, ev);
	if (ev->kind == EV_CHECKPOINT_REJECTED) {
		driver->facts.passed_count++;
		driver->facts.passed_at =
			EVENT_HAS(ev, since) ? ev->since : driver->facts.passed_at;
	}
	if (ev->kind == EV_ATTEMPT_STALLED)
		driver->facts.silent_until = ev->until;
	else if (ev->kind == EV_ATTEMPT_WENT_ON || ev->kind == EV_ATTEMPT_INTENDED)
		driver->facts.silent_until = 0;
	if (ev->kind == EV_JOURNAL_SALVAGED && EVENT_HAS(ev, requested)) {
		driver->facts.stop_lost = true;
		snprintf(driver->facts.lost_stop, sizeof driver->facts.lost_stop, "%s",
			 ev->requested);
	} else if (ev->kind == EV_JOURNAL_SETTLED) {
		driver->facts.stop_lost = false;
	}
	notify_queue_apply(driver, ev);
	update_owed(driver, ev, lock_key);
	driver->seq_at = clock_mono_now();
	if (ev->kind == EV_TRAIN_PROGRESS)
		driver->progress_at = mono_of(ev->at);
	if (ev->kind == EV_ATTEMPT_INTENDED) {
		driver->progress_at.ms = 0; /* the first step is recorded at once */
		driver->facts.resume_step = EVENT_HAS(ev, step) ? ev->step : -1;
		driver->facts.continuity_known = driver->submitted = driver->facts.worker_recorded =
			false;
		driver->facts.versions_nodes = 0;
	} else if (ev->kind == EV_ATTEMPT_VERSIONS) {
		driver->facts.versions_nodes = ev->nodes;
	} else if (ev->kind == EV_CACHE_PRELOADED) {
		driver->facts.preloaded = true;
	} else if (ev->kind == EV_TRAIN_CONTINUITY) {
		driver->facts.continuity_known = true;
	} else if (ev->kind == EV_WORKER_LOST) {
		driver->facts.worker_recorded = true;
	}
}

/* ---- the snapshot ---------------------------------------------------------------------- */

static void sum_of(const struct replay_kept *kept, char sum[SHA256_HEX])
{
	hash_sha256_hex(kept, offsetof(struct replay_kept, sum), sum);
}

/* True if these bytes are a snapshot that this program kept of this run. */
static bool is_good(const struct driver *driver, const struct sb *bytes, struct replay_kept *ret)
{
	unsigned char maker[MAKER_MAX];
	char sum[SHA256_HEX];

	if (bytes->len != sizeof *ret || !maker_find(maker))
		return false;
	memcpy(ret, bytes->text, sizeof *ret);
	sum_of(ret, sum);
	return ret->form == FORM && memcmp(ret->maker, maker, sizeof maker) == 0 &&
	       memcmp(ret->sum, sum, sizeof sum) == 0 &&
	       strncmp(ret->run, driver->run, sizeof ret->run) == 0;
}

/* The first event: the plan, and the seed that tells the run from an earlier one with the same
 * id. */
struct first {
	struct driver *driver;
	int64_t seed;
};

static int read_first(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct first *first = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_RUN_CREATED) {
		adopt_plan(first->driver, ev);
		first->seed = ev->seed;
	}
	return 1;
}

/* Sets the driver to the snapshot, if there is one; else it stays at the beginning. */
static int restore_snapshot(struct driver *driver, struct err **err)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) struct replay_kept *kept = mem_alloc(sizeof *kept);
	struct first first = { driver, -1 };
	int64_t seq = 0;

	if (journal_kept(driver->journal, driver->run, &seq, &bytes, &ignored) <= 0 || seq <= 0 ||
	    !is_good(driver, &bytes, kept))
		return 0;
	if (journal_read(driver->journal, driver->run, 1, read_first, &first, err) < 0)
		return -1;
	if (!driver->plan || first.seed != kept->flow.seed)
		return 0;
	driver->flow = kept->flow;
	driver->seq = driver->kept_seq = seq;
	driver->seq_at = clock_mono_now();
	driver->progress_at.ms = 0;
	if (kept->progress_ms > 0)
		driver->progress_at = mono_of((struct utc){ kept->progress_ms });
	driver->facts = kept->facts;
	return 0;
}

void replay_keep(struct driver *driver)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) struct replay_kept *kept = NULL;

	/* Pending notifications are not part of the snapshot, so it is kept later. */
	if (driver->seq - driver->kept_seq < KEEP_EVERY || notify_queue_pending(driver))
		return;
	driver->kept_seq = driver->seq; /* after a failure it is tried much later */
	kept = mem_zero(1, sizeof *kept);
	kept->form = FORM;
	if (!maker_find(kept->maker))
		return;
	snprintf(kept->run, sizeof kept->run, "%s", driver->run);
	if (driver->progress_at.ms > 0)
		kept->progress_ms =
			clock_utc_now().ms - (clock_mono_now().ms - driver->progress_at.ms);
	memcpy(&kept->facts, &driver->facts, sizeof kept->facts);
	memcpy(&kept->flow, &driver->flow, sizeof kept->flow);
	sum_of(kept, kept->sum);
	(void)!journal_keep(driver->journal, driver->run, driver->seq, kept, sizeof *kept,
			    &ignored);
}

/* ---- events ------------------------------------------------------------------------ */

/* True if the event is an append of ours that was reported as failed and is there all the same. */
static bool is_own(const struct driver *driver, const struct event *ev)
{
	char host[256] = "?";

	gethostname(host, sizeof host - 1);
	return !driver->took_over && ev->pid == (int64_t)getpid() && ev->host &&
	       strcmp(ev->host, host) == 0 && ev->epoch == driver->flow.epoch + 1;
}

static int replay_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct driver *driver = arg;

	(void)err;
	driver->seq = (int64_t)js_int(row, "seq", driver->seq);
	if (!ev)
		return 0;
	/* Another driver took over while this one still believed to be the driver. */
	if (ev->kind == EV_DRIVER_TOOK_OVER && driver->live) {
		bool own = is_own(driver, ev);

		driver->took_over |= own;
		driver->stood_down |= !own;
	}
	replay_apply(driver, ev);
	if (driver->live && driver->options->on_event)
		driver->options->on_event(driver->options->arg, ev, row);
	return 0;
}

int replay_rest(struct driver *driver, struct err **err)
{
	return journal_read(driver->journal, driver->run, driver->seq + 1, replay_event, driver,
			    err);
}

static int apply_salvaged(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct driver *driver = arg;

	(void)row;
	(void)err;
	/* No event can be about anything before the plan. */
	if (ev && (driver->plan || ev->kind == EV_RUN_CREATED))
		replay_apply(driver, ev);
	return 0;
}

int replay_salvage(struct driver *driver, struct err **err)
{
	json_decref(driver->plan);
	json_decref(driver->inputs);
	driver->plan = driver->inputs = NULL;
	driver->flow = (struct flow){ 0 };
	return journal_salvage(driver->journal, driver->run, apply_salvaged, driver, err);
}

int replay_all(struct driver *driver, struct err **err)
{
	if (restore_snapshot(driver, err) < 0 || replay_rest(driver, err) < 0)
		return -1;
	replay_keep(driver);
	return 0;
}
