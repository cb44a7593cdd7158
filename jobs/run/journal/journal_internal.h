/*
 * Shared by the parts of the journal over its stores: journal.c, journal_salvage.c (what is left of
 * a damaged run) and journal_summary.c (summaries). Included by these alone.
 */
#ifndef STK_RUN_JOURNAL_JOURNAL_INTERNAL_H
#define STK_RUN_JOURNAL_JOURNAL_INTERNAL_H

#include "jobs/run/journal/chain.h"
#include "jobs/run/journal/journal.h"

/* The event up to which a run was read or written in this process. */
struct journal_position {
	char run[JOURNAL_RUN_MAX];
	struct chain chain;
	bool whole; /* checked once that nothing follows the end */
};

struct journal {
	const struct journal_ops *ops;
	void *store;
	char *url, *dir;
	bool is_remote;
	struct journal_position at; /* position in the run that was last asked for */
	json_t *appended;
};

/* The position in the run; the position in another run is forgotten. */
struct journal_position *journal_position_in(struct journal *journal, const char *run);

/* Finds the link that event `seq` of a run is chained to. */
int journal_find_link(struct journal *journal, const char *run, int64_t seq, struct chain *ret,
		      struct err **err);

#endif
