/* Threads that share out pieces of work: see parallel_for.h. */
#include "jobs/base/process/parallel_for.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX 8
#define ALONE_BELOW 4 /* turns; fewer are faster without threads */

struct parallel_for {
	size_t count, turn;
	atomic_size_t next; /* first piece not taken yet */
	parallel_for_fn fn;
	void *arg;
};

bool parallel_for_take(struct parallel_for *loop, size_t *ret_first, size_t *ret_end)
{
	size_t first = atomic_fetch_add(&loop->next, loop->turn);

	if (first >= loop->count)
		return false;
	*ret_first = first;
	*ret_end = loop->count - first > loop->turn ? first + loop->turn : loop->count;
	return true;
}

static void *run_thread(void *arg)
{
	struct parallel_for *loop = arg;

	loop->fn(loop, loop->arg);
	return NULL;
}

static size_t thread_count(size_t turns)
{
	cpu_set_t cpus;
	int count;

	if (turns < ALONE_BELOW || sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		return 1;
	count = CPU_COUNT(&cpus);
	return count > THREADS_MAX ? THREADS_MAX : (size_t)count;
}

void parallel_for(size_t count, size_t turn, parallel_for_fn fn, void *arg)
{
	struct parallel_for loop = { .count = count, .turn = turn, .fn = fn, .arg = arg };
	size_t threads_max = thread_count(count / turn), started = 0;
	pthread_t threads[THREADS_MAX];

	while (started + 1 < threads_max &&
	       pthread_create(&threads[started], NULL, run_thread, &loop) == 0)
		started++;
	run_thread(&loop); /* the caller works too */
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}
