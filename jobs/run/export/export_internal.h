/* Shared by the definitions for AWS: what the spec must have for a driver in a container. */
#ifndef STK_RUN_EXPORT_EXPORT_INTERNAL_H
#define STK_RUN_EXPORT_EXPORT_INTERNAL_H

#include "jobs/run/export/export.h"

#define REPEAT_AFTER_S 60 /* pause before a step is repeated */

/* Refuses what a driver in a container of AWS cannot drive: an engine of the driver's own machine,
 * state or workspace that are not on S3. EXIT_REFUSED. */
int export_check_away(const struct export_job *job, struct err **err);
/* Returns a text of the spec (borrowed); EXIT_SPEC with the field and its example if it has none.
 */
int export_need(const struct spec *spec, const char *path, const char *example, const char **ret,
		struct err **err);
/* Returns a text of the spec, borrowed; NULL if it has none, or the word none. */
const char *export_text(const struct spec *spec, const char *path);

#endif
