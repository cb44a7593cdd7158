/*
 * What a run is given beside its spec, fixed before it is created: `inputs` of run.created
 * (jobs/run/plan/plan.h). The data is listed, and what a turn is given of it is stored by content
 * in the workspace (jobs/data/data.h); the parent is the promoted model of a retraining, or what
 * parent.from names, and is pinned (jobs/checkpoint/pin.h).
 *
 * Data that refused runs were given stays out of later turns if the spec says after_refusal:
 * set_aside, or `retrain --without RUN` says so: each such run has an object below promote.url,
 *
 *   aside/<run>.json   {"v":1, "run", "manifest": URL, "digest", "reason", "at": UTC}
 *
 * written only if absent. The new objects of its manifest are left out until they change.
 *
 * Every turn of a retraining leaves a record beside it (jobs/run/schedule/turn_record.h). A turn
 * that --at puts before the last one is refused: its data was settled later.
 *
 * run/inputs: what a run is given; what turns leave beside the promoted models.
 */
#ifndef STK_RUN_INPUTS_INPUTS_H
#define STK_RUN_INPUTS_INPUTS_H

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

struct inputs_ask {
	const json_t *plan;
	const char *run; /* the run that will be given them */
	/* The promoted model is the parent by default, new data is asked for, and the run promotes;
	 * else all data is new unless parent.from says otherwise. */
	bool retrain;
	struct utc at;       /* the moment of data.settle */
	bool at_is_given;    /* by --at */
	const json_t *turn;  /* as in the inputs; NULL: no schedule */
	const char *without; /* id of the run whose data is set aside first; NULL: none */
	/* Functions for a turn that others may be in the way of. `is_free` is asked once there is
	 * something that no model was given: -1 if another one is under way. `claim` is asked once
	 * that is stored, before the turn is recorded: -1 if another one has it. Both NULL: nothing
	 * is in the way. */
	int (*is_free)(void *arg, struct err **err);
	int (*claim)(void *arg, struct err **err);
	void *arg;
};

#define INPUTS_OLD 2

/* Returns 1 with the inputs, a new reference (NULL: the plan asks for none); 0 if there is nothing
 * new for a retraining, with a record of the turn; INPUTS_OLD if another turn came and went before
 * the claim, and changed what is new: ask again; -1: EXIT_REFUSED if data, parent or hold-out
 * cannot be used. `ret_words` says what was found, in a line; the caller frees it.
 *
 * Most turns find nothing new, often from a machine that begins with nothing. Such a turn asks a
 * bucket for the pages of the data's listing, the pointer and an entry beyond it, and writes its
 * record (jobs/data/data.h says when the cumulative list must be read as well). All else, what is
 * set aside, other turns, the hold-out, is asked for only once there is something new. */
int inputs_make(struct journal *journal, const struct inputs_ask *ask, json_t **ret,
		char **ret_words, struct err **err);

/* A gate has refused the run: has its new data stay out of later turns, if the
 * plan says so. Can be repeated. */
int inputs_set_aside(const json_t *plan, const json_t *inputs, const char *run, const char *reason,
		     struct err **err);

/* Lists the data of a run again before its promotion. *ret is a new object
 * {"changed","gone", "first": URL}, NULL if all objects of its manifest are
 * there as they were, or it has none. */
int inputs_find_drift(const json_t *plan, const json_t *inputs, json_t **ret, struct err **err);

#endif
