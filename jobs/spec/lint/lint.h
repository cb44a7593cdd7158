/*
 * Lints: legal settings that cost time later. One file per family; each adds
 * warnings, which leave a spec valid. (A flag that begins with a typographic
 * dash is found here too, as is one that overrides compile.cache_url: those are errors.)
 *
 * spec/lint: errors of a spec beyond its types: rules over several fields, warnings,
 * suggestions. Reads nothing but the spec.
 */
#ifndef STK_SPEC_LINT_LINT_H
#define STK_SPEC_LINT_LINT_H

#include "jobs/spec/resolved.h"

void lint_text(struct binder *binder);      /* typographic signs, secrets in the open */
void lint_flags(struct binder *binder);     /* compiler flags, redirects */
void lint_phases(struct binder *binder);    /* steps, checkpoints, topologies */
void lint_services(struct binder *binder);  /* limits of AWS services */
void lint_metrics(struct binder *binder);   /* patterns that cut numbers short */
void lint_loggers(struct binder *binder);   /* loggers that cannot resume what they did not make */
void lint_command(struct binder *binder);   /* words of a shell in a command */
void lint_variables(struct binder *binder); /* $HOME, which no shell expands */

/* Visits every text of an entry list: `fn` gets the dotted path and the scalar. `map` may be
 * NULL; lists inside are entered. */
typedef void lint_text_fn(struct binder *binder, const char *field, const struct node *text);
void lint_each_text(struct binder *binder, enum spec_field map, lint_text_fn *fn);

#endif
