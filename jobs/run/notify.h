/*
 * Telling whom the spec names in `notify` what becomes of a run.
 *
 * At least once: that somebody is to be told follows from the journal, and that it was
 * done is journalled after it was (`notify.sent`). A driver that dies between the two
 * leaves it to the next one, which tells it again; `id` in the message is the same then.
 * Never in the way: every message goes out in a process of its own, some at once, each
 * stopped after NOTIFY_TIMEOUT_MS; the run does not wait for them. Only a run that has
 * ended is kept by its driver for NOTIFY_LINGER_MS at most; what could not be told until
 * then is left to the next `resume` of the run. After NOTIFY_TRIES tries it is given up
 * and journalled as such (`notify.failed`).
 *
 * The message is one JSON object: the event as the journal has it (without the plan),
 * and "id", "occasion", "name" (of the spec), "text" (a sentence for people; what chat
 * services show of a webhook). A command gets it as one line on its input, runs beside
 * the spec file, with the environment that jobs have (without secrets) and STOKER_RUN
 * and STOKER_OCCASION; it has succeeded with exit status 0, and the last line of its
 * error output says why not. A webhook gets it by POST, from the program stoker-post
 * beside the agent.
 */
#ifndef STK_RUN_NOTIFY_H
#define STK_RUN_NOTIFY_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/flow/event.h"

#define NOTIFY_TIMEOUT_MS 15000
#define NOTIFY_LINGER_MS  30000
#define NOTIFY_TRIES      5
#define NOTIFY_FIRST_MS   1000 /* pause before the second try; then twice as long each time */

struct driver;
struct notify;

/* What the journal says, old or new: who is to be told, who has been. */
void notify_note(struct driver *driver, const struct event *ev);

/* Whether somebody is still to be told. */
bool notify_pending(const struct driver *driver);

/* Send what is due; the loop does the rest, and records what came of it. */
void notify_pump(struct driver *driver);

/* The run has ended: leave the loop once everybody was told, or time is up. */
void notify_linger(struct driver *driver);

/* Processes under way go on by themselves. */
void notify_release(struct driver *driver);

#endif
