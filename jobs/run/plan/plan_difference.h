/*
 * Differences of two plans, in the words of the spec: fields, source, image, compiler. All that
 * follows from these (commands, graph key) is left out.
 */
#ifndef STK_RUN_PLAN_PLAN_DIFFERENCE_H
#define STK_RUN_PLAN_PLAN_DIFFERENCE_H

#include "jobs/base/text/js.h"

/* Returns [{"field","old","new"}], a new array sorted by field; null where one side has none. A
 * field of the spec has its path, the others begin with source, files, image, compiler, aws or
 * workspace. Secret-looking values are hidden. */
json_t *plan_difference(const json_t *old_plan, const json_t *new_plan);

/* Returns the first `most` differences as "lr: 0.1 -> 0.2; …, and 3 more", long values
 * cut short; the caller frees it. */
char *plan_difference_words(const json_t *difference, size_t most);

#endif
