/*
 * The live block: the rows of jobs/report/screen.h, redrawn in place on the terminal
 * that stderr is, with messages scrolling above it. Only where out_draws().
 *
 * While it is shown the cursor is hidden and rests at the block's first column and row,
 * so that a terminal that wraps its lines anew after a resize takes it along; what is
 * typed is not echoed. All that is undone on every way out: at the end, on Ctrl-Z, on
 * a signal that ends the process or a crash. In the background nothing is drawn.
 */
#ifndef STK_CMD_LIVE_H
#define STK_CMD_LIVE_H

#include "jobs/base/loop.h"
#include "jobs/flow/event.h"
#include "jobs/run/journal.h"

struct live;

/* Read the journal of the run once and begin to draw. NULL in `ret` where nothing is to
 * be drawn. Before the loop is gone it must be closed. */
int live_open(struct live **ret, struct journal *journal, const char *run, struct loop *loop,
	      struct err **err);
/* Take the block away, leave the messages. */
void live_close(struct live **live); /* NULL inside is fine */

/* All of these take NULL for "nothing is drawn". */
void live_event(struct live *live, const struct event *ev);
void live_glimpse(struct live *live, const struct event *ev);

/* Put a question beneath the block; one key is an answer then, read from descriptor 0.
 * Both NULL: it is answered. `brief` is for narrow terminals. */
void live_ask(struct live *live, const char *question, const char *brief);

#endif
