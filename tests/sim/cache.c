/* What is found in the cache: before phase 1, and after it. */
#include "tests/sim/sim.h"

void cache_check(struct world *w, struct driver *d)
{
	struct event *ev;

	/* Repairs decide nothing: the wish stays. */
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
