/* The driver's part in the claim on a graph key, so that of several runs that need the same graphs
 * one precompiles and the others wait: see jobs/cache/manifest/key_claim.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/run/driver_internal.h"

#define WAIT_MS        1000  /* between two looks at another run's claim */
#define WAIT_REMOTE_MS 10000 /* the same if each look is a request to a service */

static void release_claim(struct driver *driver)
{
	AUTO(err_freep) struct err *ignored = NULL;

	/* A failure is ignored: other runs find the claim unchanged before long. */
	(void)!key_claim_release(&driver->key, &ignored);
	key_claim_clear(&driver->key);
}

/* Key of the graphs that phase 1 compiles now: the training's, or those of a stage. */
static const char *graph_key(struct driver *driver)
{
	return plan_graph_key(job_engine_cache_plan(driver));
}

/* The nonce comes from the journal. */
static struct key_claim *claim_of(struct driver *driver)
{
	const char *key = graph_key(driver);

	if (driver->key.key && strcmp(driver->key.key, key) != 0)
		release_claim(driver);
	if (!driver->key.key) {
		char nonce[FLOW_ID_MAX];

		flow_key_nonce(&driver->flow, nonce);
		key_claim_init(&driver->key, driver->cache, key, driver->run, nonce);
	}
	return &driver->key;
}

/* Records the holder of the claim whenever it changes. */
static int record_waiting(struct driver *driver, struct err **err)
{
	const struct key_claim *claim = claim_of(driver);
	AUTO(auto_free)
	char *whom = mem_format("%s %s %lld", claim->holder ? claim->holder : "?",
				claim->host ? claim->host : "?", (long long)claim->since_ms);
	struct event ev = { .kind = EV_CACHE_WAITING };

	if (driver->waited_for && strcmp(driver->waited_for, whom) == 0)
		return 0;
	free(driver->waited_for);
	driver->waited_for = TAKE(whom);
	EVENT_SET_STR(&ev, graph_key, graph_key(driver));
	EVENT_SET_STR(&ev, holder, claim->holder ? claim->holder : "?");
	EVENT_SET_STR(&ev, host, claim->host);
	if (claim->since_ms > 0)
		EVENT_SET(&ev, since, claim->since_ms);
	return driver_record(driver, &ev, err);
}

static int record_claimed(struct driver *driver, struct err **err)
{
	struct event ev = { .kind = EV_CACHE_CLAIMED };

	free(TAKE(driver->waited_for));
	EVENT_SET_STR(&ev, graph_key, graph_key(driver));
	EVENT_SET_STR(&ev, reason, claim_of(driver)->taken);
	return driver_record(driver, &ev, err);
}

int precompile_claim_take(struct driver *driver, const struct effect *effect, int64_t *ret_wait_ms,
			  struct err **err)
{
	int taken = key_claim_try(claim_of(driver), err);
	bool warm = false;

	*ret_wait_ms = 0;
	if (taken < 0 || (effect->recheck && cache_gate_recheck(driver, taken > 0, &warm, err) < 0))
		return -1;
	if (warm)
		return 0;
	if (taken > 0)
		return cache_gate_probe(driver, err) < 0 ? -1 : record_claimed(driver, err);
	*ret_wait_ms = store_directory(driver->cache) ? WAIT_MS : WAIT_REMOTE_MS;
	return record_waiting(driver, err);
}

/* Renews the claim, also one that an earlier driver left behind. */
static void renew_claim(struct driver *driver)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (!driver->cache || !flow_needs_cache(&driver->flow.policy, driver->flow.stage) ||
	    !lease_is_mine(driver->lease))
		return;
	claim_of(driver);
	/* If the renewal fails, others may come to compile the same graphs. */
	if (flow_keeps_key(&driver->flow))
		(void)!key_claim_renew(&driver->key, &ignored);
}

static void on_renew(void *arg)
{
	precompile_claim_keep(arg);
}

void precompile_claim_keep(struct driver *driver)
{
	renew_claim(driver);
	loop_after(driver->loop, KEY_CLAIM_RENEW_MS, on_renew, driver);
}

void precompile_claim_drop_unneeded(struct driver *driver)
{
	if (driver->key.key && !flow_keeps_key(&driver->flow) && lease_is_mine(driver->lease))
		release_claim(driver);
}

/* A running attempt renews the claim itself. */
static bool is_under_way(const struct flow *flow)
{
	return flow->state == FLOW_PRECOMPILE && flow->attempt_state != ATTEMPT_NONE &&
	       flow->attempt_state != ATTEMPT_FAILED && flow->attempt_state != ATTEMPT_BACKOFF;
}

void precompile_claim_leave(struct driver *driver)
{
	if (driver->key.key && !is_under_way(&driver->flow) && !driver->stood_down &&
	    driver->lease && lease_is_mine(driver->lease))
		release_claim(driver);
	key_claim_clear(&driver->key);
	free(TAKE(driver->waited_for));
}
