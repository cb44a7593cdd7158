/* Private to the room: checks, the talks that they are part of, and their findings. */
#ifndef STK_RUN_DOCTOR_DOCTOR_INTERNAL_H
#define STK_RUN_DOCTOR_DOCTOR_INTERNAL_H

#include "jobs/run/doctor/doctor.h"

enum doctor_state { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_UNKNOWN };

/* What a talk is with. */
enum doctor_kind {
	DOCTOR_HERE,     /* this machine; each check is a talk of its own, as of SETTINGS */
	DOCTOR_KEYS,     /* whoever gives the credentials */
	DOCTOR_SETTINGS, /* what requests are made with */
	DOCTOR_STS,
	DOCTOR_PLACE,  /* each place of the plan: what is looked at */
	DOCTOR_BUCKET, /* the same: what is written, with a probe */
	DOCTOR_JOBS,   /* no service: what jobs are made of, for each plan of jobs, as below */
	DOCTOR_IMAGE,
	DOCTOR_BATCH,
	DOCTOR_EC2,   /* with what it needs of AWS Batch */
	DOCTOR_QUOTA, /* the same */
	DOCTOR_ROLE,  /* each role of the jobs */
	DOCTOR_KINDS
};

struct doctor_talk;

struct doctor_row {
	const char *id;
	enum doctor_kind kind;
	void (*check)(struct doctor_talk *talk);
	const enum aws_operation *operations; /* AWS_OPERATION_COUNT ends them; NULL: none */
	const char *engines; /* their names, of a check that needs a spec; NULL: all, and none */
	const char *field;   /* of the spec; NULL: that of the talk's place, or none */
	const char *cure;    /* of a failure whose error has none; NULL: it always has one */
};

/* Owned by its thread while that runs, but for `on`, which stays. */
struct doctor_talk {
	enum doctor_kind kind;
	const struct doctor_row *row; /* the check at hand; of HERE and SETTINGS the only one */
	char *on;                     /* what it is about; NULL: nothing in particular */
	json_t *plan;                 /* as the jobs at hand see it; owned; NULL: no spec */
	char *versions, *state_dir;   /* owned */
	struct err *state_why;        /* see doctor.h; owned */
	bool read_only, needs_aws;
	const char *what, *field; /* of a place: what it is to the run, and where the spec has it */
	json_t *findings;         /* owned */
	bool silent;              /* the service did not answer: nothing more is asked */
	bool has_keys;            /* of KEYS: there are credentials */
	void *own;                /* what the checks of the kind share, freed by `release` */
	void (*release)(void *own);
};

/* ---- doctor_finding.c ------------------------------------------------------------------ */

/* Adds a finding of the check at hand; cure NULL: none. Returns it, borrowed. */
json_t *doctor_finding(struct doctor_talk *talk, enum doctor_state state, const char *cure,
		       const char *fmt, ...) STK_PRINTF(4, 5);
/* The same from an error: unknown if nobody answered; if a service denies `right`, which is only
 * for looking, unknown with its name; else `fail`. NULL: a run needs the right too. */
json_t *doctor_finding_of(struct doctor_talk *talk, const struct err *why, const char *right);
/* The same of what a run does without: a warning, if not unknown. */
json_t *doctor_finding_warn(struct doctor_talk *talk, const struct err *why);
/* True if a service refused with this code. */
bool doctor_finding_has_code(const struct err *why, const char *code);
/* True if a service refused for want of a right. */
bool doctor_finding_is_denied(const struct err *why);
/* "unknown": not tried, because of `why`. */
void doctor_finding_untried(struct doctor_talk *talk, const char *why);

/* ---- doctor_ask.c ---------------------------------------------------------------------- */

/* Asks a service, and opens the client for it if that is NULL. For services that take forms the
 * members of `body` are its parameters: those of objects, and rows of lists by their numbers,
 * behind a dot; XML is returned as xml_tree() reads it, without the element around IAM's results.
 * Returns the member `name` of the reply (NULL: the whole), a new reference; NULL with an error. */
json_t *doctor_ask(struct aws **aws, enum aws_operation operation, const json_t *body,
		   const char *name, struct err **err);

/* ---- the checks: a file for each kind of talk ------------------------------------------ */

#define CHECK(id, kind, check, ...) void doctor_##check(struct doctor_talk *talk);
#include "jobs/run/doctor/checks.def"
#undef CHECK

#endif
