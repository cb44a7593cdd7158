/* Judging many entries on all cores: see content.h. Inflating them is most of the work
 * on a cache, and no entry has to do with another. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "jobs/cache/content.h"

#define THREADS_MAX    8
#define ENTRIES_A_TURN 16 /* taken at a time, so threads seldom meet */
#define ENTRIES_ALONE  64 /* so few are faster without threads */

struct crew {
	struct store *store;
	struct inspection *list;
	size_t count;
	inspection_skip_fn skip;
	atomic_size_t next; /* entry that nobody has taken */
};

static void *inspect_some(void *arg)
{
	struct crew *crew = arg;
	size_t from;

	while ((from = atomic_fetch_add(&crew->next, ENTRIES_A_TURN)) < crew->count)
		for (size_t i = from; i < from + ENTRIES_A_TURN && i < crew->count; i++) {
			struct inspection *one = &crew->list[i];

			if (!crew->skip(one))
				one->found = content_inspect(crew->store, one->kind, one->key,
							     &one->state, &one->why, &one->err);
		}
	return NULL;
}

static size_t thread_count(size_t entries)
{
	cpu_set_t cpus;
	int count;

	if (entries < ENTRIES_ALONE || sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		return 1;
	count = CPU_COUNT(&cpus);
	return count > THREADS_MAX ? THREADS_MAX : (size_t)count;
}

void content_inspect_all(struct store *store, struct inspection *list, size_t count,
			 inspection_skip_fn skip)
{
	struct crew crew = { .store = store, .list = list, .count = count, .skip = skip };
	size_t wanted = thread_count(count), started = 0;
	pthread_t threads[THREADS_MAX];

	while (started + 1 < wanted &&
	       pthread_create(&threads[started], NULL, inspect_some, &crew) == 0)
		started++;
	inspect_some(&crew); /* this thread is one of them */
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}
