/* Judging many entries on all cores: see content.h. Inflating them is most of the work
 * on a cache, and no entry has to do with another. */
#include "jobs/base/crew.h"
#include "jobs/cache/content.h"

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

static void inspect_some(struct crew *crew, void *arg)
{
	const struct inspections *all = arg;
	size_t i, end;

	while (crew_take(crew, &i, &end))
		for (; i < end; i++)
			inspect_one(all, &all->list[i]);
}

void content_inspect_all(struct store *store, struct inspection *list, size_t count,
			 inspection_skip_fn skip)
{
	struct inspections all = { store, list, skip };

	/* Any other store belongs to one thread. */
	if (store_directory(store))
		crew_run(count, inspect_some, &all);
	else
		for (size_t i = 0; i < count; i++)
			inspect_one(&all, &list[i]);
}
