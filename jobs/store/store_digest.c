/* Digests of many objects, of files by all cores: see store_digest.h. */
#include "jobs/store/store_digest.h"

#include "jobs/base/process/parallel_for.h"
#include "jobs/store/store_backend.h"
#include "jobs/store/store_copy.h"

struct digest_batch {
	const char *url;
	struct store_digest *digests;
};

static void look_at(struct store *store, struct store_digest *digest)
{
	digest->looked = true;
	digest->there = store_sha256(store, digest->key, NULL, NULL, digest->sha256, &digest->size,
				     &digest->err);
}

/* A store belongs to one thread. */
static void look_at_some(struct parallel_for *loop, void *arg)
{
	struct digest_batch *batch = arg;
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *why = NULL;
	size_t first, end;

	if (store_open(batch->url, &store, &why) < 0)
		return; /* the caller looks at what nobody took */
	while (parallel_for_take(loop, &first, &end))
		for (size_t i = first; i < end; i++)
			look_at(store, &batch->digests[i]);
}

void store_sha256_all(struct store *store, struct store_digest *digests, size_t count)
{
	struct digest_batch batch = { store_url(store), digests };

	if (store->backend->digests) {
		store->backend->digests(store, digests, count);
		return;
	}
	parallel_for(count, 1, look_at_some, &batch);
	for (size_t i = 0; i < count; i++)
		if (!digests[i].looked)
			look_at(store, &digests[i]);
}
