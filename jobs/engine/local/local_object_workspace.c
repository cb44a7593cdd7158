/* The local engine on a workspace that is not a directory: see local.h and local_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/engine/local/local_internal.h"

struct object_workspace *local_object_workspace_new(void)
{
	return mem_zero(1, sizeof(struct object_workspace));
}

static void forget_root(struct object_workspace *object_workspace)
{
	free(TAKE(object_workspace->prefix));
	free(TAKE(object_workspace->root));
}

void local_object_workspace_freep(struct object_workspace **object_workspace)
{
	if (!*object_workspace)
		return;
	forget_root(*object_workspace);
	free((*object_workspace)->ended);
	free(TAKE(*object_workspace));
}

int local_get(const struct local *local, const char *key, size_t max, struct sb *ret,
	      struct err **err)
{
	return local->cache ? workspace_cache_get(local->cache, key, max, ret, err)
			    : store_get(local->store, key, max, ret, NULL, err);
}

static bool is_remembered(const struct local *local, const char *prefix)
{
	return local->object_workspace->prefix &&
	       strcmp(local->object_workspace->prefix, prefix) == 0;
}

void local_forget(const struct local *local, const char *prefix)
{
	if (!local->cache)
		return;
	workspace_cache_forget(local->cache, prefix);
	if (is_remembered(local, prefix))
		forget_root(local->object_workspace);
}

void local_ended(const struct local *local, const char *prefix)
{
	struct object_workspace *object_workspace = local->object_workspace;

	if (!local->cache ||
	    (object_workspace->ended && strcmp(object_workspace->ended, prefix) == 0))
		return;
	free(object_workspace->ended);
	object_workspace->ended = mem_copy(prefix);
	workspace_cache_forget(local->cache, prefix);
}

void local_remember_root(const struct local *local, const char *prefix, const char *root)
{
	struct object_workspace *object_workspace = local->object_workspace;

	if (!local->cache ||
	    (is_remembered(local, prefix) && strcmp(object_workspace->root, root) == 0))
		return;
	forget_root(object_workspace);
	object_workspace->prefix = mem_copy(prefix);
	object_workspace->root = mem_copy(root);
}

const char *local_object_workspace_root(const struct local *local, const char *prefix)
{
	if (!local->cache)
		return local->root;
	return is_remembered(local, prefix) ? local->object_workspace->root : NULL;
}
