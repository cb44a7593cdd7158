/*
 * Summaries: what the events of a run came to, kept beside them, so that a look need not read them
 * all again. One a run, the newest.
 *
 * A summary is bound to the event that it ends with, by its number and its sum, and has a sum of
 * its own. It counts only if both fit, so it is never wrong: if it is lost, damaged or of an
 * earlier run with the same id, the events are read, with the same result. A summary proves the
 * state; it does not prove that the events before are still there (journal_prove() does).
 *
 * The contents of `head`, `line` and `rest` are the business of the caller.
 */
#ifndef STK_RUN_JOURNAL_SUMMARY_H
#define STK_RUN_JOURNAL_SUMMARY_H

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"

struct run_summary {
	int64_t seq;           /* of the newest event in it */
	char link[SHA256_HEX]; /* the sum of that event */
	char begun[UTC_TEXT];  /* the time of event 1; "" if not known */
	struct sb head;        /* little, for a list of many runs; empty: the run goes on */
	struct sb line, rest;  /* the whole */
	char line_sum[SHA256_HEX], rest_sum[SHA256_HEX];
	char sum[SHA256_HEX]; /* over all of the above but line and rest themselves */
};
#define SUMMARY_INIT ((struct run_summary){ .head = SB_INIT, .line = SB_INIT, .rest = SB_INIT })
void summary_release(struct run_summary *summary); /* for AUTO() */

/* Sets the sums. */
void summary_seal(struct run_summary *summary, const char *run);
/* True if everything but line and rest is as it was sealed for this run. */
bool summary_is_whole(const struct run_summary *summary, const char *run);
/* True if line and rest are, too. */
bool summary_has_its_rest(const struct run_summary *summary);

/* True if the summary ends with this event. */
bool summary_ends_with(const struct run_summary *summary, int64_t seq, const char *body,
		       size_t len);

#endif
