/* Derived values: each expression of the section `derive` becomes the value of its field. */
#ifndef STK_SPEC_DERIVE_DERIVE_H
#define STK_SPEC_DERIVE_DERIVE_H

#include "jobs/spec/resolved.h"

/* Works the expressions out in spec order, each on the values before it, and sets the values in the
 * tree, before it is checked: they are typed and checked like everything else. A field that an
 * override has set keeps its value. Where the spec has problems of its own, nothing is derived:
 * they come first. Derived values are in spec->derived. */
void derive_apply(struct binder *binder);

#endif
