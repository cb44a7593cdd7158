/* Judges many entries on all cores: see content.h. Decompression of entries is most of the work of
 * checking a cache, and the entries are independent of each other. */
#include "jobs/base/process/parallel_for.h"
#include "jobs/cache/verdict/content.h"

struct inspections {
	struct store *store;
	struct inspection *list;
	inspection_skip_fn skip;
};

static void inspect_one(const struct inspections *all, struct inspection *one)
{
	if (!all->skip(one))
		one->found = content_inspect(all->store, one->kind, one->key, &one->state,
					     &one->why, &one->err);
}

static void inspect_some(struct parallel_for *loop, void *arg)
{
	const struct inspections *all = arg;
	size_t i, end;

	while (parallel_for_take(loop, &i, &end))
		for (; i < end; i++)
			inspect_one(all, &all->list[i]);
}

void content_inspect_all(struct store *store, struct inspection *list, size_t count,
			 inspection_skip_fn skip)
{
	struct inspections all = { store, list, skip };

	/* Any other store may be used by one thread only. */
	if (store_directory(store))
		parallel_for(count, PARALLEL_FOR_SMALL, inspect_some, &all);
	else
		for (size_t i = 0; i < count; i++)
			inspect_one(&all, &list[i]);
}
