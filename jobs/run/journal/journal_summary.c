/* Summaries of runs in their journal, and the proof of events that are not read: see journal.h. */
#include "jobs/run/journal/summary.h"

#include <stdio.h>
#include <string.h>

#include "jobs/run/journal/journal_internal.h"

/* The result of a look at one event. */
struct journal_look {
	int64_t seq;
	char link[SHA256_HEX], at[UTC_TEXT];
	const struct run_summary *summary; /* NULL, or the one that may end with it */
	bool found, ends;
};

static enum rows look(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct journal_look *l = arg;
	json_auto_t *row = NULL;
	const char *at;

	if (seq != l->seq || !body || !chain_sum_at_end(body, len, l->link))
		return ROWS_STOP;
	l->found = true;
	l->ends = l->summary && summary_ends_with(l->summary, seq, body, len);
	if (seq == 1 && js_parse(body, len, "it", &row, err) == 0 && (at = js_str(row, "at")))
		snprintf(l->at, sizeof l->at, "%s", at);
	err_freep(err);
	return ROWS_STOP;
}

static int look_at(struct journal *journal, const char *run, int64_t seq, struct journal_look *ret,
		   struct err **err)
{
	ret->seq = seq;
	return journal->ops->rows(journal->store, run, seq, look, ret, err);
}

int journal_summarise(struct journal *journal, const char *run, struct run_summary *summary,
		      struct err **err)
{
	struct journal_look first = { 0 }, last = { 0 };

	if (!journal->store || !journal->ops->summarise)
		return 0;
	if (look_at(journal, run, 1, &first, err) < 0 ||
	    look_at(journal, run, summary->seq, &last, err) < 0)
		return -1;
	/* An event of an earlier version has no sum. */
	if (!last.found)
		return 0;
	memcpy(summary->link, last.link, sizeof summary->link);
	snprintf(summary->begun, sizeof summary->begun, "%s", first.at);
	summary_seal(summary, run);
	return journal->ops->summarise(journal->store, run, summary, err);
}

int journal_summary(struct journal *journal, const char *run, struct run_summary *ret,
		    struct err **err)
{
	struct journal_look last = { .summary = ret };
	int found;

	if (!journal->store || !journal->ops->summary)
		return 0;
	found = journal->ops->summary(journal->store, run, ret, err);
	if (found <= 0)
		return found;
	if (!summary_is_whole(ret, run) || !summary_has_its_rest(ret))
		return 0;
	if (look_at(journal, run, ret->seq, &last, err) < 0)
		return -1;
	return last.ends;
}

struct journal_proof {
	struct chain chain;
	int64_t until;
	bool fits;
};

static enum rows prove(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct journal_proof *proof = arg;

	(void)err;
	proof->fits = body && chain_prove(&proof->chain, seq, body, len);
	return proof->fits && seq < proof->until ? ROWS_ON : ROWS_STOP;
}

int journal_prove(struct journal *journal, const char *run, int64_t seq, struct err **err)
{
	struct journal_proof proof = { .until = seq };
	struct journal_position *at;

	if (!journal->store)
		return 0;
	if (journal->ops->rows(journal->store, run, 1, prove, &proof, err) < 0)
		return -1;
	if (!proof.fits || proof.chain.seq != seq)
		return 0;
	at = journal_position_in(journal, run);
	if (at->chain.seq < seq)
		at->chain = proof.chain;
	return 1;
}
