/* What must hold in any schedule: rules 1 to 9 and the rules with clocks, C1 to C15. */
#ifndef STK_TESTS_WORLD_RULES_H
#define STK_TESTS_WORLD_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* The first rule that was broken: "3", "C7"; NULL: none. */
extern const char *rules_broken;
extern char rules_why[512];

void rules_reset(void);
/* Another run begins: what was seen of the last one's events is forgotten, what really happened is
 * not. */
void rules_next_run(void);
/* Events of the story that the rules have looked at before this look. */
int64_t rules_checked(void);
/* What a training attempt saved of that step, whole if there is such; NULL: nothing. */
struct truth_save;
const struct truth_save *rules_save_of(int64_t attempt, int64_t step);
/* The attempt that a URL of a checkpoint names; 0: none. */
int64_t rules_attempt_of_url(const char *url);
void rules_check(void);     /* after each effect and event */
void rules_check_end(void); /* once, when all is over */
/* The first that breaks is the one that is reported. */
void rule_breaks(const char *rule, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
