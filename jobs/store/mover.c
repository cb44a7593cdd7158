/* The door to every far side of a sync: see mover.h. */
#include "jobs/store/mover.h"

#include "jobs/store/store_backend.h"

int mover_open(struct store *store, struct mover **ret, struct err **err)
{
	return store->backend->mover(store, ret, err);
}

void mover_freep(struct mover **mover)
{
	if (*mover)
		(*mover)->kind->free(*mover);
	*mover = NULL;
}
