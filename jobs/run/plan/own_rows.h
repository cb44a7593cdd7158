/*
 * The user's own rows of the failure table, as the plan carries them: their regular expressions,
 * compiled, for failure_classify().
 */
#ifndef STK_RUN_PLAN_OWN_ROWS_H
#define STK_RUN_PLAN_OWN_ROWS_H

#include "jobs/base/text/js.h"
#include "jobs/flow/failure.h"

/* Ids of these rows begin with it. */
#define OWN_ROW_PREFIX "own-"

struct own_rows;

/* Compiles `rows`, the plan's [{"regex","class","hint"}…], which must outlive the result. A row
 * with an expression that this machine's PCRE2 refuses is skipped: validate has accepted it, and
 * the run must not fail because of it. */
struct own_rows *own_rows_new(const json_t *rows);
void own_rows_freep(struct own_rows **own);

/* The rows for struct failure_evidence; borrowed. */
const struct failure_own *own_rows_get(const struct own_rows *own);

#endif
