/*
 * Another run that wants the same graphs: it claims the graph key when that is free
 * or was left alone for too long, and ends well, badly, or not at all. Renewals of
 * ours are as good as those who make them: drivers and jobs of phase 1.
 */
#include "tests/sim/sim.h"

#include <string.h>

void key_begin(struct world *w)
{
	int64_t span = 100 * w->job_pace;

	w->key = (struct key){ .taken_at = NEVER, .until = NEVER, .dead_at = NEVER };
	w->key_at = w->policy.compiles ? draw_time(w, FAULT_KEY_BUSY, span) : NEVER;
	/* Mostly it was there first. */
	if (w->key_at != NEVER && rng_below(&w->rng, 2) == 0)
		w->key_at = w->now;
}

static bool is_ours(const struct world *w)
{
	return w->key.owner == KEY_OURS && w->now - w->key.renewed_at < KEY_VALID_MS;
}

void key_wanted(struct world *w)
{
	struct key *key = &w->key;

	w->key_at = draw_time(w, FAULT_KEY_BUSY, 200 * w->job_pace);
	if (is_ours(w) || key->owner == KEY_OTHERS || w->cache_whole)
		return;
	counts.faults[FAULT_KEY_BUSY]++;
	key->owner = KEY_OTHERS;
	key->other++;
	key->fills = rng_below(&w->rng, 2) == 0;
	key->dead_at = NEVER;
	key->until = w->now + some_time(w, 20 * w->job_pace);
	TRACE(w, "other run", "claims the graph key");
}

void key_other_ends(struct world *w)
{
	struct key *key = &w->key;

	key->until = NEVER;
	if (key->fills) {
		TRACE(w, "other run", "has filled the cache");
		if (!w->cache_whole)
			w->whole_at = w->now;
		w->cache_whole = true;
	}
	if (!key->fills && rng_below(&w->rng, 2) == 0) {
		TRACE(w, "other run", "dies with its claim");
		key->dead_at = w->now;
	} else {
		key->owner = KEY_FREE;
	}
}

void key_renew(struct world *w)
{
	if (w->key.owner == KEY_OURS)
		w->key.renewed_at = w->now;
}

void key_release(struct world *w)
{
	if (w->key.owner == KEY_OURS)
		w->key.owner = KEY_FREE;
}

static bool take(struct world *w, struct driver *d)
{
	struct key *key = &w->key;
	int64_t since = d->key_seen_at > key->dead_at ? d->key_seen_at : key->dead_at;

	if (key->owner == KEY_OTHERS && d->key_other != key->other) {
		d->key_seen_at = w->now;
		return false;
	}
	if (key->owner == KEY_OTHERS && (key->dead_at == NEVER || w->now - since < KEY_VALID_MS))
		return false;
	key->owner = KEY_OURS;
	key->renewed_at = key->taken_at = w->now;
	return true;
}

void key_claim(struct world *w, struct driver *d, const struct effect *effect)
{
	struct event *ev;
	bool ours;

	if (strikes(w, FAULT_KEY_UNKNOWN))
		return;
	ours = take(w, d);
	if (effect->recheck && w->cache_whole) {
		ev = driver_pend(d, EV_CACHE_CHECKED);
		EVENT_SET(ev, verdict, CACHE_WARM);
	} else if (ours) {
		ev = driver_pend(d, EV_CACHE_CLAIMED);
		EVENT_SET_STR(ev, graph_key, "key");
	} else if (d->key_other != w->key.other) {
		ev = driver_pend(d, EV_CACHE_WAITING);
		d->key_other = w->key.other;
		EVENT_SET_STR(ev, graph_key, "key");
		EVENT_SET_STR(ev, holder, "other");
	}
}
