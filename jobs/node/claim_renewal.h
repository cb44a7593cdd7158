/*
 * The run's claim on its graph key. The agent of node 0 renews it during phase 1: the driver may be
 * dead while the job lives on and fills the cache. Costs one small object of the cache now and
 * then. The claim is only ever renewed here, never taken and never given up: see
 * jobs/cache/manifest/key_claim.h.
 */
#ifndef STK_NODE_CLAIM_RENEWAL_H
#define STK_NODE_CLAIM_RENEWAL_H

#include "jobs/base/clock.h"
#include "jobs/cache/manifest/key_claim.h"
#include "jobs/node/setup/agent_config.h"

struct claim_renewal {
	struct store *cache; /* NULL: not opened yet */
	struct key_claim claim;
	struct mono next; /* when it is due; ms 0: at once */
};

/* Called with each heartbeat: renews the claim if that is due. An error is no reason
 * to stop anything. */
void claim_renewal_beat(struct claim_renewal *renewal, const struct agent_config *config);
void claim_renewal_release(struct claim_renewal *renewal); /* for AUTO(); { 0 } is fine */

#endif
