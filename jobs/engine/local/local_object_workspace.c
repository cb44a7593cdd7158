/* The local engine on a workspace that is not a directory: see local.h and local_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/engine/local/local_internal.h"

struct near *local_object_workspace_new(void)
{
	return mem_zero(1, sizeof(struct near));
}

static void forget_near(struct near *near)
{
	free(TAKE(near->prefix));
	free(TAKE(near->root));
}

void local_object_workspace_freep(struct near **near)
{
	if (*near)
		forget_near(*near);
	free(TAKE(*near));
}

int local_get(const struct local *local, const char *key, size_t max, struct sb *ret,
	      struct err **err)
{
	return local->far ? workspace_cache_get(local->far, key, max, ret, err)
			  : store_get(local->store, key, max, ret, NULL, err);
}

static bool is_near(const struct local *local, const char *prefix)
{
	return local->near->prefix && strcmp(local->near->prefix, prefix) == 0;
}

void local_forget(const struct local *local, const char *prefix)
{
	if (!local->far)
		return;
	workspace_cache_forget(local->far, prefix);
	if (is_near(local, prefix))
		forget_near(local->near);
}

void local_know(const struct local *local, const char *prefix, const char *root)
{
	struct near *near = local->near;

	if (!local->far || (is_near(local, prefix) && strcmp(near->root, root) == 0))
		return;
	forget_near(near);
	near->prefix = mem_copy(prefix);
	near->root = mem_copy(root);
}

const char *local_near_root(const struct local *local, const char *prefix)
{
	if (!local->far)
		return local->root;
	return is_near(local, prefix) ? local->near->root : NULL;
}
