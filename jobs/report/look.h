/*
 * How states look to people, the same in the live block, `status` and `list`: a
 * sign before the word, coloured where that is wanted. The word alone says it all.
 * Of colours only those of the basic 16 that can be read on light and on dark.
 */
#ifndef STK_REPORT_LOOK_H
#define STK_REPORT_LOOK_H

#include <stdbool.h>

enum look_mark {
	MARK_NONE,
	MARK_GOOD,
	MARK_BAD,
	MARK_WARN,
	MARK_WAIT,
	MARK_RUN,
	MARK_FAINT, /* no sign; what is known anyway: labels */
	MARK_COUNT
};

struct look {
	bool utf8;  /* signs, bars and sparklines beyond ASCII */
	bool color; /* escape sequences */
};

/* One column; a blank where there is none. */
const char *look_sign(const struct look *look, enum look_mark mark);
/* What switches the colour of a mark on, and all colour off; "" without colour. */
const char *look_on(const struct look *look, enum look_mark mark);
const char *look_off(const struct look *look);

/* Of the state of a run or of an attempt, in the words of `status --json`; `class` is
 * that of an attempt that ended, else NULL. */
enum look_mark look_of_state(const char *state, const char *class);

#endif
