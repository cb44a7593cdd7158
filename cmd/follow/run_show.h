/* Output of a run as it goes on: its events, the wait for its lease, and its outcome. */
#ifndef STK_CMD_FOLLOW_RUN_SHOW_H
#define STK_CMD_FOLLOW_RUN_SHOW_H

#include "jobs/flow/event.h"
#include "jobs/run/journal/journal.h"

/* Prints one plain line per change on stderr, or with --json the event on stdout. */
void run_show_event(void *arg, const struct event *ev, json_t *row);

/* Prints the journal of the run so far on stdout with --json, else nothing. */
int run_show_journal(struct journal *journal, const char *run, struct err **err);

/* A lease_wait_fn that prints the holder of the lease being waited for. */
void run_show_wait(void *arg, const char *holder, const struct err *trouble, int64_t at_most_ms);

/* Prints the summary of a run that is no longer driven here on stdout and returns its exit code;
 * EXIT_DETACHED if it goes on. */
int run_show_outcome(struct journal *journal, const char *run, struct err **err);

/* Notes that the state directory holds much, and which commands free what; nothing with --json. */
#define RUN_SHOW_MUCH ((uint64_t)10 << 30)
void run_show_space(const struct journal *journal);

#endif
