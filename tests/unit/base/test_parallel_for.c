/* Every piece of work is done once, by however many threads. */
#include "jobs/base/process/parallel_for.h"
#include <setjmp.h>

#include <stdatomic.h>

#include "tests/unit/base/unit.h"

#define PIECES_MAX 1000

static atomic_int done[PIECES_MAX];

static void count_pieces(struct parallel_for *crew, void *arg)
{
	size_t i, end;

	while (parallel_for_take(crew, &i, &end))
		for (; i < end; i++)
			atomic_fetch_add(&((atomic_int *)arg)[i], 1);
}

static void every_piece_is_taken_once(void **state)
{
	static const size_t counts[] = { 0, 1, 16, 17, 63, 64, 65, PIECES_MAX };

	(void)state;
	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
		for (size_t i = 0; i < PIECES_MAX; i++)
			atomic_store(&done[i], 0);
		parallel_for(counts[c], PARALLEL_FOR_SMALL, count_pieces, done);
		for (size_t i = 0; i < PIECES_MAX; i++)
			assert_int_equal(atomic_load(&done[i]), i < counts[c]);
	}
}

static void take_one_turn(struct parallel_for *crew, void *arg)
{
	size_t first, end;

	if (parallel_for_take(crew, &first, &end))
		atomic_fetch_add((atomic_int *)arg, (int)(end - first));
}

static void who_takes_no_more_leaves_the_rest(void **state)
{
	atomic_int taken = 0;

	(void)state;
	parallel_for(PIECES_MAX, PARALLEL_FOR_SMALL, take_one_turn, &taken);
	assert_true(taken > 0 && taken < PIECES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_piece_is_taken_once),
		cmocka_unit_test(who_takes_no_more_leaves_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
