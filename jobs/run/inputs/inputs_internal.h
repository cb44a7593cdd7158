/*
 * Shared by the files of this room: inputs.c asks the others, in this order:
 *
 *   inputs_turn.c   records of turns, and objects that are set aside
 *   inputs_data.c   data, hold-out and input of the inference
 */
#ifndef STK_RUN_INPUTS_INPUTS_INTERNAL_H
#define STK_RUN_INPUTS_INPUTS_INTERNAL_H

#include "jobs/data/data.h"
#include "jobs/model/model.h"
#include "jobs/run/inputs/inputs.h"

/* Inputs in the making. */
struct inputs {
	const struct inputs_ask *ask;
	struct journal *journal;
	json_t *json;
	struct store *workspace;
	struct store *beside;    /* at promote.url; NULL: the plan has none */
	struct model *model;     /* there; NULL likewise */
	struct model_entry head; /* generation 0: nothing was promoted yet; model_head_seen() */
	struct model_seen seen;  /* of the head */
	bool from_promoted;      /* the parent is the promoted model */
	struct data_list given;  /* to the parent, borrowed from `seen`; url NULL: nothing */
	json_t *aside_keys;      /* owned: records of what stays out */
	struct data_list *aside; /* manifests whose new objects stay out */
	size_t aside_count;
	struct data_turn *hold_out; /* owned; NULL: none is listed yet */
	struct data_turn *turn;     /* the data, likewise */
};

/* --- inputs_turn.c --- */

/* Refuses a turn that --at puts before the newest one. */
int inputs_turn_check(struct inputs *inputs, struct err **err);
/* Leaves a record of the turn. `counts` may be NULL; `run` NULL: no run came of
 * it. */
int inputs_turn_record(struct inputs *inputs, const char *run, const char *reason,
		       const struct data_counts *counts, struct err **err);
/* Sets aside the data of ask->without. */
int inputs_turn_put_aside(struct inputs *inputs, struct err **err);
/* Reads what is set aside. */
int inputs_turn_read_aside(struct inputs *inputs, struct err **err);
/* True if that is what is set aside now. */
int inputs_turn_same_aside(const struct inputs *inputs, bool *ret, struct err **err);

/* --- inputs_data.c --- */

/* Lists the data. This and the next two return 1, or 0 if there are fewer new objects than a
 * retraining asks for; `ret` is filled in both cases. */
int inputs_data_list(struct inputs *inputs, struct data_counts *ret, struct err **err);
/* Leaves out what is set aside. */
int inputs_data_leave_out(struct inputs *inputs, struct data_counts *ret, struct err **err);
/* Stores what the run is given. */
int inputs_data_store(struct inputs *inputs, struct data_counts *ret, struct err **err);
json_t *inputs_data_counts(const struct data_counts *counts);
/* A sentence about the counts, and what they are too few for unless `is_enough`; the caller frees
 * it. */
char *inputs_data_words(const json_t *plan, const struct data_counts *counts, bool is_enough);

#endif
