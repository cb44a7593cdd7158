/* Runs named on the command line, measured, and put into rows. */
#ifndef STK_CMD_COMPARE_COMPARE_H
#define STK_CMD_COMPARE_COMPARE_H

#include "cmd/args/args.h"
#include "cmd/compare/compare_text.h"

#define COMPARE_RUNS_MAX 2000

struct compare {
	struct measure *runs; /* owned; in the order in which they were named */
	size_t count;
	struct compare_sheet sheet; /* owned but for what it borrows from `runs` */
};
void compare_release(struct compare *compare); /* for AUTO(); { 0 } is fine */

/* Finds the runs that the operands name, at most so many; EXIT_USAGE for one that is named twice.
 */
int compare_find(struct compare *compare, const struct args *args, int most,
		 struct journal *journal, struct err **err);

/* Makes the rows of the runs, which are all measured; `target` is what --to says, or NULL. */
void compare_make(struct compare *compare, const struct measure_question *question,
		  const char *target);

#endif
