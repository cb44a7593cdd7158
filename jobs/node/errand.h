/*
 * An errand: what is to be fetched from a service before the command may start, done by a
 * helper (helper.h), so that the agent hears signals meanwhile. One at a time.
 */
#ifndef STK_NODE_ERRAND_H
#define STK_NODE_ERRAND_H

#include "jobs/base/err.h"
#include "jobs/base/loop.h"
#include "jobs/base/sb.h"
#include "jobs/node/helper.h"
#include "jobs/node/task.h"

/* In the helper. It opens the stores that it needs itself. */
typedef int (*errand_fn)(const struct task *task, struct err **err);
/* From the loop: it is over; `why` is NULL if it went well, and the callee's. */
typedef void (*errand_done_fn)(void *arg, struct err *why);

struct errand {
	struct helper helper; /* pid 0: none is under way */
	const struct task *task;
	errand_fn fn;
	struct loop *loop;
	struct watch *watch;
	struct sb text;
	errand_done_fn done;
	void *arg;
};

/* Errand and task must stay where they are until then. */
int errand_start(struct errand *errand, const struct task *task, errand_fn fn, struct loop *loop,
		 errand_done_fn done, void *arg, struct err **err);
/* Drop one that is under way: `done` is not called. For AUTO(); { 0 } is fine. */
void errand_release(struct errand *errand);

#endif
