/* The rules with clocks, each in a file of its own: clocks_NAME.c begins with its words. */
#ifndef STK_TESTS_WORLD_CLOCKS_RULES_H
#define STK_TESTS_WORLD_CLOCKS_RULES_H

#include "tests/world/clocks_seen.h"

extern const struct clock_rule clock_evidence;    /* C6 */
extern const struct clock_rule clock_backoff;     /* C7 */
extern const struct clock_rule clock_lease;       /* C2 */
extern const struct clock_rule clock_limits;      /* C3 */
extern const struct clock_rule clock_timeout;     /* C3 */
extern const struct clock_rule clock_heard;       /* C1 */
extern const struct clock_rule clock_unreachable; /* C8 */
extern const struct clock_rule clock_stop;        /* C4, C5 */
extern const struct clock_rule clock_refused;     /* C10 */
extern const struct clock_rule clock_helpers;     /* C11 */
extern const struct clock_rule clock_command;     /* C12 */
extern const struct clock_rule clock_takeover;    /* C13 */
extern const struct clock_rule clock_end;         /* C14 */
extern const struct clock_rule clock_ledger;      /* 8 */
extern const struct clock_rule clock_submit;      /* 2 */

#endif
