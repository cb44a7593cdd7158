/*
 * What would fail is found before the first job: checks of this machine, the credentials, and what
 * a spec names. One row a check is in checks.def; each gives one finding or more.
 *
 * Checks that ask one service, or try one place, are a talk: they follow each other on a thread of
 * its own, and all talks go on at once. A check that has no answer within DOCTOR_LIMIT_MS ends as
 * "unknown", and so do those behind it in its talk; no other talk waits for it.
 *
 * A finding: {"check": id, "on": what it is about, "state": "ok" | "warn" | "fail" | "unknown",
 * "seen", "cure", "code" and "request_id" of the service that refused, "field" of the spec};
 * absent: there is nothing.
 *
 * run/doctor: the checks, and what they leave: nothing. No check starts a job or makes anything but
 * a probe in a bucket, which it removes.
 */
#ifndef STK_RUN_DOCTOR_DOCTOR_H
#define STK_RUN_DOCTOR_DOCTOR_H

#include "aws/aws.h"

#define DOCTOR_LIMIT_MS ((int64_t)10 * 1000)

/* All is borrowed until doctor_examine() returns. */
struct doctor_options {
	const struct err *state_why; /* why the state cannot be opened as runs do; NULL: it can */
	const char *versions;        /* of this program and its libraries, for people */
	const json_t *plan;          /* NULL: no spec */
	const char *state_dir;       /* folder of the state on this machine */
	const char *state_url; /* of a state that is not on a disk of this machine; NULL: it is */
	bool read_only;        /* nothing is written in buckets */
	const char *only;      /* pattern of the ids, as a shell has it; NULL: all */
};

/* True if the id of a check is like the pattern. */
bool doctor_knows(const char *only);
/* True if a check of the plan (NULL: none) makes calls of the operation. */
bool doctor_calls(const json_t *plan, enum aws_operation operation);

/* Returns the findings, an array in the order of the table. */
json_t *doctor_examine(const struct doctor_options *options);

#endif
