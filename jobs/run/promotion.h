/*
 * Promotion of a run's model: what its entry says, from the run's journal, and the steps of
 * jobs/model/model.h in their order. The driver in PROMOTE and `stoker promote` both come here.
 *
 *   driver                                          here
 *   promotion_intend()         reads the pointer, compares it with the run's inputs
 *   records promote.intended   (generation, nonce, digest of the entry before, url of the model)
 *   promotion_carry_out()      copies, writes entry and pointer, removes what `keep` lets go
 *   records promote.done (generation, digest, url, outputs) or promote.overtaken (generation,
 *   holder, reason)
 *
 * promotion_carry_out() can be repeated any number of times with one intent, after any failure or
 * kill: it does only what is left to do. It reads the journal up to promote.intended, so that its
 * evidence is the same each time.
 *
 * Events, as this file sets and reads them (rows of events.def):
 *   promote.intended   generation (INT), nonce, digest (STR: of the entry before; absent: the
 *                      first), url (of the model in the run)
 *   promote.done       generation, digest (of the entry), url (of the model below promote.url);
 *                      outputs (JSON, {"url"}), reason (absent)
 *   promote.overtaken  generation, holder (run that has it), reason (a sentence)
 */
#ifndef STK_RUN_PROMOTION_H
#define STK_RUN_PROMOTION_H

#include "jobs/model/model.h"
#include "jobs/run/journal/journal.h"

/* The model folder of a plan: promote.url, else WORKSPACE/models/NAME. The caller frees it. */
char *promotion_url(const json_t *plan);

/* The content of promote.intended. */
struct promotion_intent {
	int64_t seq; /* of promote.intended: the journal is read up to it; 0: all that is there */
	int64_t generation;
	char before[SHA256_HEX]; /* "": the first */
	char nonce[33];
	char *url; /* owned; of the model in the run */
};
void promotion_intent_release(struct promotion_intent *intent); /* for AUTO() */

enum promotion_fate {
	PROMOTION_OVERTAKEN, /* EXIT_GATE */
	PROMOTION_DONE,
};

struct promotion_result {
	enum promotion_fate fate;
	int64_t generation;
	char digest[SHA256_HEX]; /* of the entry, ours or that of the other */
	char *url, *outputs;     /* owned; outputs NULL: none */
	char *holder, *reason;   /* owned; of PROMOTION_OVERTAKEN */
};
void promotion_result_release(struct promotion_result *result); /* for AUTO() */

struct promotion_how {
	bool forced;
	const char *reason;
	/* Changes of the data since the run was given it, for the entry: {"changed","gone",
	 * "first": URL of the first}; NULL: nothing, or it was not looked at. Borrowed. */
	const json_t *drift;
	model_progress_fn progress; /* may be NULL */
	void *arg;
};

/* Finds the model of the run and the pointer. Returns 1 with the intent; 0 if the pointer is no
 * longer on the entry that the run was given (`ret` is then PROMOTION_OVERTAKEN), unless forced;
 * -1: no candidate is EXIT_RUN_FAILED, a debug run EXIT_REFUSED. `url`: the candidate, if it is
 * chosen already; NULL: promote.from, else the newest complete checkpoint. */
int promotion_intend(struct journal *journal, const char *run, const char *url,
		     const struct promotion_how *how, struct promotion_intent *ret,
		     struct promotion_result *ret_overtaken, struct err **err);

/* Finds the intent of the newest promote.intended in the journal. Returns 1, 0 if there is none,
 * -1. */
int promotion_intent_find(struct journal *journal, const char *run, struct promotion_intent *ret,
			  struct err **err);

/* Returns 0 with the result, or -1: call it again. */
int promotion_carry_out(struct journal *journal, const char *run,
			const struct promotion_intent *intent, const struct promotion_how *how,
			struct promotion_result *ret, struct err **err);

#endif
