/*
 * A text with flags of the Neuron compiler, against what AWS documents of them
 * (jobs/spec/fields/compiler_flags.def) and against the machines that it compiles for.
 */
#ifndef STK_SPEC_LINT_LINT_COMPILER_H
#define STK_SPEC_LINT_LINT_COMPILER_H

#include "jobs/spec/resolved.h"

#define COMPILER_FLAGS "NEURON_CC_FLAGS"

/* A text of flags and its place. */
struct flags_text {
	const char *field;
	struct mark at;
	char **words;     /* as the compiler takes the text apart, ending with NULL */
	const char *type; /* of machine; NULL: those of the spec */
	bool partial;     /* the text that was there before counts, too */
};

void lint_compiler_flags(struct binder *binder, const struct flags_text *text);

#endif
