/* Opens the transfer backend of any kind of store: see transfer_backend.h. */
#include "jobs/store/transfer_backend.h"

#include "jobs/store/store_backend.h"

int transfer_backend_open(struct store *store, struct transfer_backend **ret, struct err **err)
{
	return store->backend->backend(store, ret, err);
}

void transfer_backend_freep(struct transfer_backend **backend)
{
	if (*backend)
		(*backend)->kind->free(*backend);
	*backend = NULL;
}
