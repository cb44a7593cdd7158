/*
 * Presentation of states, the same in the live block, `status` and `list`: a sign before the word,
 * coloured if wanted. The word alone is sufficient. Colours are only those of the basic 16 that are
 * readable on light and dark.
 */
#ifndef STK_REPORT_TEXT_STYLE_H
#define STK_REPORT_TEXT_STYLE_H

#include <stdbool.h>

enum status_icon {
	MARK_NONE,
	MARK_GOOD,
	MARK_BAD,
	MARK_WARN,
	MARK_WAIT,
	MARK_RUN,
	MARK_FAINT, /* no sign; for labels */
	MARK_COUNT
};

struct text_style {
	bool utf8;  /* signs, bars and sparklines beyond ASCII */
	bool color; /* escape sequences */
};

/* Returns a sign of one column; a blank if the mark has no sign. */
const char *text_style_icon_text(const struct text_style *style, enum status_icon mark);
/* Returns an arrow from an old value to a new one. */
const char *text_style_arrow(const struct text_style *style);
/* Escape sequences that switch the colour of a mark on, and all colour off; "" without colour. */
const char *text_style_on(const struct text_style *style, enum status_icon mark);
const char *text_style_off(const struct text_style *style);

/* Returns the mark for the state of a run or attempt, in the words of `status --json`; `class` is
 * that of an attempt that ended, else NULL. */
enum status_icon text_style_icon_of_state(const char *state, const char *class);

#endif
