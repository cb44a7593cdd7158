/*
 * Notifications about a run, to the receivers that the spec names in `notify`.
 *
 * At least once: the journal shows that a message is due, and after it was sent that is journalled
 * (`notify.sent`). A driver that dies between the two leaves it to the next one, which sends it
 * again; `id` in the message is the same then. Never in the way: every message goes out in a
 * process of its own, some at once, each stopped after NOTIFY_TIMEOUT_MS; the run does not wait for
 * them. Only after the end of a run its driver waits, for NOTIFY_FLUSH_MS at most; messages still
 * unsent then are left to the next `resume` of the run. After NOTIFY_TRIES tries a message is given
 * up and journalled as such (`notify.failed`).
 *
 * The message is one JSON object: the event as the journal has it (without the plan), and "id",
 * "occasion", "name" (of the spec), "text" (a sentence for people; what chat services show of a
 * webhook). A command gets it as one line on its input, runs beside the spec file, with the
 * environment that jobs have (without secrets) and STOKER_RUN and STOKER_OCCASION; it has succeeded
 * with exit status 0, and the last line of its error output says why not. A webhook gets it by
 * POST, from the program stoker-post beside the agent.
 */
#ifndef STK_RUN_NOTIFY_H
#define STK_RUN_NOTIFY_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/flow/event.h"

#define NOTIFY_TIMEOUT_MS 15000
#define NOTIFY_FLUSH_MS   30000
#define NOTIFY_TRIES      5
#define NOTIFY_FIRST_MS   1000 /* pause before the second try; then twice as long each time */

struct driver;
struct notify;

/* Sends what is due; the loop does the rest, and records the outcomes. */
void notify_pump(struct driver *driver);

/* The run has ended: leaves the loop once every message was sent, or time is up. */
void notify_flush(struct driver *driver);

/* Frees the messages; processes under way go on by themselves. */
void notify_release(struct driver *driver);

#endif
