/*
 * What a person sees while a run goes on, as a few rows of text: folded from the
 * events, so that a frame reads nothing but what is in memory. Pure: time comes in,
 * text comes out; whoever has the terminal draws it.
 */
#ifndef STK_REPORT_SCREEN_H
#define STK_REPORT_SCREEN_H

#include "jobs/base/sb.h"
#include "jobs/flow/event.h"
#include "jobs/report/look.h"

struct screen;

struct screen *screen_new(const char *run);
void screen_freep(struct screen **screen); /* for AUTO() */

/* Take in the next event, in order of seq; one that is known already is left out. */
void screen_add(struct screen *screen, const struct event *ev);

/* A train.progress that is in no journal: what is known between two that are. */
void screen_glimpse(struct screen *screen, const struct event *ev);

struct screen_frame {
	struct look look;
	size_t width, height;       /* no row is wider, and there are no more of them */
	struct utc now;             /* also turns the spinner: see SCREEN_SPIN_MS */
	const char *question;       /* asked of the person; NULL: nothing is */
	const char *question_short; /* the same for narrow terminals */
};
#define SCREEN_SPIN_MS 250

/* The rows, joined by newlines, with nothing in them that moves a cursor: printable
 * text and, with look.color, colours. */
void screen_render(const struct screen *screen, const struct screen_frame *frame, struct sb *out);

/* What an event is to a person who sees the block: false if the block says it. */
bool screen_scrolls(const struct event *ev, enum look_mark *ret_mark);

#endif
