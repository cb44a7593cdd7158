/* What must hold in any schedule: rules 1 to 9 and 12 to 16, and the rules with clocks, C1 to C15.
 */
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
/* The graphs of the phase that an event is about are as whole as they were when the driver may have
 * looked at them for it: what is removed after that is seen by the next look. */
struct story;
struct event;
bool rules_was_whole(const struct story *story, const struct event *ev);
/* rules_stages.c: what follows a training. */
void rule12(const struct story *story);
void rule13(const struct story *story);
void rule14(const struct story *story);
void rule15(const struct story *story);
void rule16(const struct story *story);
/* rules_promoted.c: what really lies there. */
void promoted_reset(void);
void promoted_check(void);
void promoted_check_model(const struct story *story, const struct event *done);
void promoted_check_outputs(const struct story *story);
/* The first that breaks is the one that is reported. */
void rule_breaks(const char *rule, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
