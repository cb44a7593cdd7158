/* Versions with which compared runs ran, as their agents found them. */
#ifndef STK_CMD_COMPARE_COMPARE_VERSIONS_H
#define STK_CMD_COMPARE_COMPARE_VERSIONS_H

#include "cmd/compare/measure.h"

/* Returns {name: version} of the newest training attempt that told any, borrowed; NULL: none did.
 */
const json_t *compare_versions_of(const struct measure *measure);

/* Adds to the rows of plan_difference() the versions that differ, as versions.NAME; not those of
 * which the rows have the planned compiler already. A version that only one of the two knows is no
 * difference. */
void compare_versions_add(json_t *rows, const struct measure *base, const struct measure *other);

/* True for the row of a version that comes with the machine and not with the job: runs that differ
 * in nothing else are repeats. */
bool compare_versions_is_machine(const char *field);
/* True for the row of a version. */
bool compare_versions_is_one(const char *field);

#endif
