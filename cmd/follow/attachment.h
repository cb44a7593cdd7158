/*
 * Following a run that another process drives: its events are printed as they come, a live block
 * is drawn, and its end gives the exit code.
 */
#ifndef STK_CMD_FOLLOW_ATTACHMENT_H
#define STK_CMD_FOLLOW_ATTACHMENT_H

#include "cmd/args/args.h"
#include "jobs/run/journal/journal.h"

/* attachment_run(): the run no longer has a driver. */
#define ATTACH_ALONE (-2)

struct attach_options {
	bool from_the_start; /* print the events from before the attachment too */
	bool quiet;          /* print no events */
	bool plain;          /* draw no block */
	bool patient;        /* go on without a driver, which another process may start */
	int64_t timeout_ms;  /* 0: none */
};

/* Returns the exit code of the run when it has ended; EXIT_DETACHED after a signal or the timeout;
 * ATTACH_ALONE; -1 on error. Without `quiet` the outcome is printed. */
int attachment_run(const struct args *args, struct journal *journal, const char *run,
		   const struct attach_options *options, struct err **err);

#endif
