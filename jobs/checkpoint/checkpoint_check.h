/*
 * One checkpoint while a row of kind.h judges it, and the tools that the rows share: a reason why
 * it is not complete, small files as text or JSON, and files that are numbered by rank.
 */
#ifndef STK_CHECKPOINT_CHECKPOINT_CHECK_H
#define STK_CHECKPOINT_CHECKPOINT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/text/js.h"
#include "jobs/checkpoint/checkpoint_name.h"
#include "jobs/checkpoint/tree.h"

/* Checkpoint being proved. */
struct checkpoint_check {
	const struct checkpoint_tree *tree;
	const char *name; /* name of the entry in its root */
	int64_t step;     /* -1: none in its name (pin.h) */
	bool described;   /* a file beside the state names its size, and it is so */
	char *why;        /* owned; why it is not complete; NULL while it may be */
};

/* Sets check->why and returns false. */
bool checkpoint_check_fail(struct checkpoint_check *check, const char *fmt, ...) STK_PRINTF(2, 3);

/* True if the numbers of all files that match fill a grid from 0 on. If false, check->why is set.
 * `ret_sides` are the lengths of its sides, 0 if nothing matches. */
bool checkpoint_check_grid(struct checkpoint_check *check, const char *pattern,
			   uint32_t ret_sides[PATTERN_NUMBERS]);

/* Returns a small file as text, or NULL if it is absent or too large. The caller frees it. */
char *checkpoint_check_text(const struct checkpoint_check *check, const char *path);
/* Returns a JSON object, or NULL if it is absent or not an object (the format of all files is
 * proved elsewhere). */
json_t *checkpoint_check_json(const struct checkpoint_check *check, const char *path);

#endif
