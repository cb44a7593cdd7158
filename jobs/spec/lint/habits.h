/*
 * Names that people bring from other tools, and hyperparameters that lost their section: what each
 * means in a spec.
 */
#ifndef STK_SPEC_LINT_HABITS_H
#define STK_SPEC_LINT_HABITS_H

#include <stddef.h>

struct habit {
	const char *names; /* separated by single spaces */
	const char *meant; /* path of the field; NULL: there is none for it */
	const char *how; /* how it is written here ("a duration such as 12h"); NULL: alike; without
			  * `meant` the whole hint */
};

extern const struct habit habits[];
extern const size_t habit_count;

#endif
