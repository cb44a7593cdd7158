/*
 * Progress display of a run, as a few rows of text. Folded from the events, so that drawing a frame
 * reads nothing but memory. Pure: time comes in, text comes out; the owner of the terminal draws
 * it.
 */
#ifndef STK_REPORT_SCREEN_H
#define STK_REPORT_SCREEN_H

#include "jobs/base/sb.h"
#include "jobs/flow/event.h"
#include "jobs/report/text_style.h"

struct screen;

struct screen *screen_new(const char *run);
void screen_freep(struct screen **screen); /* for AUTO() */

/* Adds the next event, in order of seq; an event that was added already is ignored. */
void screen_add(struct screen *screen, const struct event *ev);

/* Adds a train.progress that is not in the journal: progress between two journalled ones. */
void screen_progress_update(struct screen *screen, const struct event *ev);

struct screen_frame {
	struct text_style style;
	size_t width, height; /* limits of columns and rows */
	/* also selects the picture of the spinner: see SCREEN_SPIN_MS */
	struct utc now;
	const char *question;       /* question for the person; NULL: none */
	const char *question_short; /* the same for narrow terminals */
};
#define SCREEN_SPIN_MS 250

/* Writes the rows, joined by newlines. They hold nothing that moves a cursor: only printable text
 * and, with look.color, colours. */
void screen_render(const struct screen *screen, const struct screen_frame *frame, struct sb *out);

/* True if the event is printed above the block, with its mark; false if the block shows it. */
bool screen_scrolls(const struct event *ev, enum status_icon *ret_mark);

#endif
