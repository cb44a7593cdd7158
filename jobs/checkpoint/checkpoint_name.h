/*
 * Names in a folder of checkpoints: which of them can be a checkpoint, of which step, and which are
 * unfinished. Every kind (kind.h), and the code that lists a folder, reads names by these rules.
 */
#ifndef STK_CHECKPOINT_CHECKPOINT_NAME_H
#define STK_CHECKPOINT_CHECKPOINT_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the step in a name: after "step" or "iter", else after "epoch", else the last number
 * that is not a fraction. Temporary names, hidden names and marks have none; nor do files
 * without the ending of a checkpoint file. */
bool checkpoint_name_any(const char *name, bool is_folder, int64_t *ret_step);
/* True if the name is exactly `prefix` and a number. */
bool checkpoint_name_prefixed(const char *name, const char *prefix, int64_t *ret_step);
/* True if the name says that it is a checkpoint ("step-7", "model_7", "7"). `auto` uses this if
 * the content does not tell, because folders of logs are numbered too. */
bool checkpoint_name_tells(const char *name);
/* True if the ending of the name is one that only checkpoints have. */
bool checkpoint_name_of_state(const char *name);
/* True if a writer gives this name to something unfinished. */
bool checkpoint_name_temporary(const char *name);

/* True if `path` is `pattern`, in which each % stands for a number of up to nine digits; the
 * numbers go to `ret` (as many as there are %). */
#define PATTERN_NUMBERS 4
bool checkpoint_pattern_match(const char *pattern, const char *path, uint32_t ret[PATTERN_NUMBERS]);

#endif
