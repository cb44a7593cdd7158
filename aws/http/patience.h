/*
 * How long this process waits for services that do not answer: for all of them together. A command
 * that would rather go on without an answer is brief; one that is to ask nobody is offline.
 *
 * The time is spent by connections that do not come about and by replies that do not begin. Once
 * it is spent, every further transfer fails at once. A service that answers costs nothing of it,
 * however much it has to say.
 */
#ifndef STK_AWS_HTTP_PATIENCE_H
#define STK_AWS_HTTP_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"

#define PATIENCE_BRIEF_MS INT64_C(2500) /* so that a command is back within 3 s */
/* Offline: no client is made, no credentials and no profiles are read. It is also the whole message
 * of the error that says so. */
#define PATIENCE_OFFLINE "--offline"

/* Set before anything is asked. 0: offline; without it there is no limit. */
void patience_set(int64_t ms);
bool patience_is_limited(void);
bool patience_is_offline(void);
/* Returns the ms that are left, INT64_MAX without a limit. */
int64_t patience_left(void);
void patience_spend(int64_t ms);

/* Offline: EXIT_UNREACHABLE; else 0. */
int patience_check(struct err **err);
/* Returns the reason for people: of an error because of the above PATIENCE_OFFLINE alone, whatever
 * was asked for; else its message. Borrowed. */
const char *patience_reason(const struct err *why);

#endif
