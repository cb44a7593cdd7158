/*
 * What people and pipelines start: the commands of stoker, without their terminal. Each is a
 * process of the world that calls what cmd calls (driver_run(), request_stop(), …) in the same
 * order. cmd itself is left out: it prints.
 *
 *   stoker run RUN SPEC | resume RUN | stop RUN
 *
 * STOKER_STATE is read as everywhere. The exit status is that of the command.
 */
#ifndef STK_TESTS_WORLD_OPERATORS_H
#define STK_TESTS_WORLD_OPERATORS_H

#include "jobs/base/err.h"

struct driver_options;
struct journal;
struct plan;

void operators_register(void);

/* Loads a spec and makes its plan, as `run`, `plan` and `cache why` do. */
int operator_plan(const char *spec, const struct journal *journal, struct plan **ret,
		  struct err **err);

/* The work of `run` (`spec` NULL: of `resume`) before a terminal that these options stand for,
 * without a plan; the exit status that the run has, or -1. */
int operator_drive(const struct driver_options *options, const char *spec, struct err **err);
/* The same with nobody before it. */
int operator_run(const char *run, const char *spec, struct err **err);
/* As `run --detach` begins one, without a driver. */
int operator_begin(const char *run, const char *spec, struct err **err);
int operator_resume(const char *run, struct err **err);

#endif
