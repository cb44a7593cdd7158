/* Renews the claim on a graph key: see claim_renewal.h. */
#include "jobs/node/claim_renewal.h"

static int open_cache(struct claim_renewal *renewal, const struct agent_config *config,
		      struct err **err)
{
	const struct order_compile *compile = &config->order->compile;
	const char *cache = compile->cache, *key = compile->graph_key;

	if (store_open(cache, &renewal->cache, err) < 0)
		return -1;
	key_claim_init(&renewal->claim, renewal->cache, key, config->run, compile->claim);
	return 0;
}

static bool is_needed(const struct agent_config *config)
{
	const struct order_compile *compile = &config->order->compile;

	return config->node == 0 && compile->cache && compile->graph_key && compile->claim;
}

void claim_renewal_beat(struct claim_renewal *renewal, const struct agent_config *config)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct mono now = clock_mono_now();

	if (!is_needed(config) || now.ms < renewal->next.ms)
		return;
	renewal->next.ms = now.ms + KEY_CLAIM_RENEW_MS;
	if (!renewal->cache && open_cache(renewal, config, &ignored) < 0)
		return;
	(void)!key_claim_renew(&renewal->claim, &ignored);
}

void claim_renewal_release(struct claim_renewal *renewal)
{
	key_claim_clear(&renewal->claim);
	store_freep(&renewal->cache);
	*renewal = (struct claim_renewal){ 0 };
}
