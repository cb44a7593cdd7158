/* The state of a run, from its journal. */
#ifndef STK_CMD_FOLLOW_RUN_VIEW_H
#define STK_CMD_FOLLOW_RUN_VIEW_H

#include "cmd/args/args.h"
#include "jobs/report/status.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease.h"

/* Opens the journal at --state, and resolves the first operand (@last if there is none) to the id
 * of a run. The caller frees the journal in every case. */
int cmd_run_open(const struct args *args, enum journal_mode mode, struct journal **ret,
		 char run[JOURNAL_RUN_MAX], struct err **err);

/* Sets the lease rules from the command line. */
int cmd_lease_rules(const struct args *args, struct lease_rules *ret, struct err **err);

/* Treatment of the events that a summary (jobs/run/journal/summary.h) stands for. */
enum run_view_trust {
	RUN_VIEW_PROVES, /* all are proved to be there, unchanged: damage is an error */
	RUN_VIEW_TRUSTS, /* nothing: the state is the same, and damage of them is not noticed */
};

/* Folds the journal of a run, and checks whether its driver is still alive. A new reference.
 * Changes nothing on disk. */
int cmd_run_view(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
		 struct err **err);

/* The same, with a choice. */
int cmd_run_view_as(struct journal *journal, const char *run, enum run_view_trust trust,
		    bool with_attempts, json_t **ret, struct err **err);

/* Folds the journal of a run to what it adds to the statistics of all runs (jobs/report/stats.h). A
 * new reference. */
int cmd_run_tally(struct journal *journal, const char *run, json_t **ret, struct err **err);

/* Keeps a summary of the run beside its journal, which is open for writing; a summary of its end is
 * kept once. Nothing depends on it. A driver calls it for a run that it drives, any process for one
 * that has ended. */
#define CMD_RUN_SUMMARISE_EVERY 10000 /* events between two summaries */
void cmd_run_summarise(struct journal *journal, const char *run);

/* Checks that a run, folded to `status`, has a first event. A listed run without one has lost its
 * events; an unlisted run was removed just now. */
int cmd_run_check_begun(struct journal *journal, const char *run, const json_t *status,
			struct err **err);

/* Like cmd_run_view(), with attempts and with `modes`: the comparison of precompiling in recorded
 * runs of its graph key (see mode_comparison_view.h). */
int cmd_run_view_whole(struct journal *journal, const char *run, json_t **ret, struct err **err);

/* Returns the exit code of a run that has ended, EXIT_DETACHED if it goes on, -1 on error. */
int cmd_run_exit_code(struct journal *journal, const char *run, struct err **err);
/* The same; *ret_paused: the run goes on, but nobody is to drive it before somebody asks for it. */
int cmd_run_exit_code_or_pause(struct journal *journal, const char *run, bool *ret_paused,
			       struct err **err);

#endif
