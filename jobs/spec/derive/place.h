/* Places within a scalar of the spec's file. */
#ifndef STK_SPEC_DERIVE_PLACE_H
#define STK_SPEC_DERIVE_PLACE_H

#include "jobs/spec/resolved.h"

/* Returns the place of a byte of a scalar's text, where the file has the text word by word: on one
 * line, or in a block that keeps its lines ("|"). Else the place of the scalar. */
struct mark place_in_scalar(const struct spec *spec, const struct node *node, size_t offset);

#endif
