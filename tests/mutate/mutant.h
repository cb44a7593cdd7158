/*
 * Which mutant is chosen, and which were met: included by every source that tests/mutate/weave.py
 * writes.
 */
#ifndef STK_TESTS_MUTATE_MUTANT_H
#define STK_TESTS_MUTATE_MUTANT_H

#define MUTANT_COUNT (1U << 20)

extern const unsigned mutant_chosen; /* 0: none; MUTANT_COUNT: those that are met are recorded */

/* Notes that the places of `count` mutants from `first` were evaluated, and returns 0. */
int mutants_record(unsigned first, unsigned count) __attribute__((cold));

/* True if one of `count` mutants from `first` is chosen. It is asked at every place, so it is
 * short. */
static inline int mutant_at(unsigned first, unsigned count)
{
	if (__builtin_expect(mutant_chosen - first < count, 0))
		return 1;
	return __builtin_expect(mutant_chosen == MUTANT_COUNT, 0) ? mutants_record(first, count)
								  : 0;
}

#endif
