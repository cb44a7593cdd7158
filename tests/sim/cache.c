/* What is found in the cache: before phase 1, and after it. */
#include "tests/sim/sim.h"

void cache_check(struct world *w, struct driver *d)
{
	struct event *ev;

	/* Repairs decide nothing: the effect stays. */
	if (w->policy.compiles && !w->cache_whole && rng_below(&w->rng, 8) == 0) {
		ev = driver_pend(d, EV_CACHE_REPAIRED);
		EVENT_SET(ev, removed, NULL);
		return;
	}
	ev = driver_pend(d, EV_CACHE_CHECKED);
	EVENT_SET(ev, verdict,
		  !w->policy.compiles ? CACHE_NONE
		  : w->cache_whole    ? CACHE_WARM
				      : CACHE_COLD);
}

bool cache_lost(struct world *w, struct driver *d)
{
	struct event *ev;

	if (!w->policy.compiles || !d->flow.cache_proved)
		return false;
	/* A power cut has emptied files that were proved. */
	if (rng_below(&w->rng, 16) == 0)
		w->cache_whole = false;
	if (w->cache_whole)
		return false;
	ev = driver_pend(d, EV_CACHE_CHECKED);
	EVENT_SET(ev, verdict, CACHE_COLD);
	return true;
}

void cache_verify(struct world *w, struct driver *d)
{
	struct event *ev;

	if (strikes(w, FAULT_VERIFY_UNKNOWN))
		return;
	ev = driver_pend(d, EV_CACHE_VERIFIED);
	EVENT_SET(ev, attempt, d->flow.attempt);
	EVENT_SET(ev, complete, w->cache_whole);
	if (!w->cache_whole)
		EVENT_SET_STR(ev, reason, "graphs are missing");
	if (!w->cache_whole && rng_below(&w->rng, 8) == 0)
		EVENT_SET(ev, action, ACTION_STOP);
}
