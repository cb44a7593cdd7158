/* Renews the claim on a graph key: see claim_renewal.h. */
#include "jobs/node/claim_renewal.h"

static int open_cache(struct claim_renewal *renewal, const struct task *task, struct err **err)
{
	const json_t *compile = json_object_get(task->order, "compile");
	const char *cache = js_str(compile, "cache"), *key = js_str(compile, "graph_key");

	if (store_open(cache, &renewal->cache, err) < 0)
		return -1;
	key_claim_init(&renewal->claim, renewal->cache, key, task->run, js_str(compile, "claim"));
	return 0;
}

static bool is_wanted(const struct task *task)
{
	const json_t *compile = json_object_get(task->order, "compile");

	return task->node == 0 && js_str(compile, "cache") && js_str(compile, "graph_key") &&
	       js_str(compile, "claim");
}

void claim_renewal_look(struct claim_renewal *renewal, const struct task *task)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct mono now = clock_mono_now();

	if (!is_wanted(task) || now.ms < renewal->next.ms)
		return;
	renewal->next.ms = now.ms + KEY_CLAIM_RENEW_MS;
	if (!renewal->cache && open_cache(renewal, task, &ignored) < 0)
		return;
	(void)!key_claim_renew(&renewal->claim, &ignored);
}

void claim_renewal_release(struct claim_renewal *renewal)
{
	key_claim_clear(&renewal->claim);
	store_freep(&renewal->cache);
	*renewal = (struct claim_renewal){ 0 };
}
