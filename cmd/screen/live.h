/*
 * The live block: the rows of jobs/report/screen.h, redrawn in place on the terminal at stderr,
 * with messages scrolling above it. Only if out_draws().
 *
 * While it is shown the cursor is hidden and rests at the block's first column and row, so that a
 * terminal that rewraps its lines after a resize moves it along; typed characters are not echoed.
 * All of this is undone on every exit: at the end, on Ctrl-Z, on a signal that ends the process
 * or a crash. In the background nothing is drawn.
 */
#ifndef STK_CMD_SCREEN_LIVE_H
#define STK_CMD_SCREEN_LIVE_H

#include "jobs/base/process/loop.h"
#include "jobs/flow/event.h"
#include "jobs/run/journal/journal.h"

struct live;

/* Reads the journal of the run once and begins to draw. `ret` is NULL if nothing is to be drawn.
 * Must be closed before the loop is freed. */
int live_open(struct live **ret, struct journal *journal, const char *run, struct loop *loop,
	      struct err **err);

struct screen_frame;
struct sb;
/* Appends a block of at most frame->height rows of frame->width columns, without a newline at its
 * end. */
typedef void (*live_render_fn)(void *arg, const struct screen_frame *frame, struct sb *out);
/* The same as live_open() for a block that `render` makes. */
void live_open_with(struct live **ret, struct loop *loop, live_render_fn render, void *arg);

/* Removes the block; messages stay. */
void live_close(struct live **live); /* NULL inside is fine */

/* The functions below accept NULL: then nothing is drawn. */
void live_event(struct live *live, const struct event *ev);
void live_progress_update(struct live *live, const struct event *ev);

/* Shows a question beneath the block; a single key answers it, read from descriptor 0. Both NULL:
 * the question is answered. `brief` is for narrow terminals. */
void live_ask(struct live *live, const char *question, const char *brief);

#endif
