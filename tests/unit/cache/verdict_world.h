/*
 * What the tests of the verdict share: a cache folder, a book and the question
 * about both, for whichever kind.
 */
#ifndef STK_TESTS_UNIT_CACHE_VERDICT_WORLD_H
#define STK_TESTS_UNIT_CACHE_VERDICT_WORLD_H

#include "tests/unit/cache/support.h"

#include "jobs/cache/verdict/cache_verdict.h"

struct world {
	struct store *store;
	struct graph_tally *tally;
	struct verify_request request;
};

/* Returns a world with the cache in `dir`; takes `book`. The job says that it went well. */
static struct world world_with(const struct compile_kind *kind, const char *dir,
			       struct graph_tally *tally)
{
	struct world world = { .store = open_cache(dir), .tally = tally };

	world.request = (struct verify_request){ .kind = kind,
						 .store = world.store,
						 .tally = tally,
						 .job_ok = true,
						 .job_words = "exit 0" };
	return world;
}

static void world_clear(struct world *world)
{
	store_freep(&world->store);
	graph_tally_freep(&world->tally);
}

/* Checks that the numbers of a verdict agree with each other, whatever the verdict is. */
static inline struct cache_verdict verify(const struct world *world)
{
	struct cache_verdict verdict = { 0 };
	struct err *err = NULL;

	cache_verify(&world->request, &verdict, &err);
	assert_no_error(err);
	assert_int_equal(verdict.done + verdict.failed + verdict.locked + verdict.missing,
			 verdict.graphs);
	assert_int_equal(json_array_size(verdict.problems), verdict.graphs - verdict.done);
	assert_int_equal(verdict.reason == NULL, verdict.complete);
	return verdict;
}

#endif
