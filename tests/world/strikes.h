/*
 * Strikes: one thing that stoker is asked to do, and each call of it that touches the outside fails
 * in turn, in a fork of the world, with each of its errors: once; for minutes; or once although it
 * was carried out. What must come of it:
 *
 *   it ends: done as asked, or with an error that has words and is no defect of stoker;
 *   it leaves no descriptor open;
 *   asked again, when nothing fails any more, it does what it was asked to do, and what it
 *   leaves is what it leaves when nothing ever fails.
 *
 * points.h does the like with a whole run.
 */
#ifndef STK_TESTS_WORLD_STRIKES_H
#define STK_TESTS_WORLD_STRIKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/flow/event.h"
#include "tests/world/play.h"

/* Done by a process of the world; `run` is that of the scenario. 0 or more, or -1 with an error. */
typedef int (*strike_fn)(const char *run, struct err **err);

struct strike_action {
	const char *name;
	const char *scenario; /* of setting.c */
	/* Prepares the world; NULL: nothing. */
	void (*before)(struct schedule *places);
	strike_fn act;
	strike_fn again; /* asked afterwards; NULL: the same */
	strike_fn check; /* looks at what is left then; NULL: nobody */
	uint64_t share;  /* of the ways to calls, one of so many; 0: all */
	/* The refusal of the place at all times, beside what is struck: an errno value, 0: nothing.
	 * NULL: it refuses nothing. */
	int (*refused)(enum call_id id, const char *path);
};

/* An action by its name, scenario, preparation and act; members that it has beside these follow. */
#define STRIKE(called, where, first, ...)                                                          \
	{                                                                                          \
		.name = called, .scenario = where, .before = first, .act = __VA_ARGS__             \
	}

/* What was struck may be the end of a run: a failure that lasted, or a service that denied access.
 */
bool strikes_may_end_run(void);

/* Body of a program [EVERY [NAME [CASE]]]: strikes each of the actions, or those with NAME in their
 * names, at one of EVERY so many ways of its share; CASE: those cases alone that have it in their
 * words. Returns its exit status: 1 if something broke, which is printed with the words of the
 * case. Prints how many cases there were. */
int strikes_main(int argc, char **argv, const struct strike_action *actions, size_t count);

/* For `before`: plays the run to its end, or until it has so many events, and kills its drivers;
 * plays it until that event, and kills all processes that there are; has a process do something in
 * which nothing fails. */
void strikes_run_to_end(struct schedule *places);
void strikes_run_until(int64_t events);
void strikes_run_until_event(enum event_kind kind);
void strikes_do(strike_fn fn);
/* Adds lines to the spec; replaces the first place with that text in it, which it must have. */
void strikes_add_to_spec(const char *lines);
void strikes_edit_spec(const char *text, const char *by);

#define STRIKES_SPEC "/srv/user/job/job.yaml"
/* Drives a run of the spec. */
int strikes_drive(const char *run, struct err **err);

/* For `check`: a call of `act` was refused. */
bool strikes_have_hit(void);

#endif
