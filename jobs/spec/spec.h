/*
 * The job spec: read, checked, resolved.
 *
 * Everything here derives from one table, fields.def. A spec that loads has
 * every field of the right type and in range, every default filled in, every
 * ${VAR} expanded. A spec that does not load is answered with all of its
 * problems at once, each with file, line, column and a cure.
 *
 *     AUTO(spec_freep) struct spec *spec = NULL;
 *     AUTO(problems_release) struct problems problems = { 0 };
 *
 *     if (spec_load("train.yaml", sets, NULL, &spec, &problems, &err) < 0)
 *             ... print err if it is set, problems otherwise; exit EXIT_SPEC
 *     nodes = spec_int(spec, SPEC_RESOURCES_NODES);
 *
 * Text that comes back is as the spec says it: escape it before it reaches a
 * terminal. The values of secrets are never read here, only where they come
 * from.
 */
#ifndef STK_SPEC_SPEC_H
#define STK_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"

#define SPEC_BYTES_MAX    ((size_t)1 << 20) /* of a spec file */
#define SPEC_PROBLEMS_MAX 100               /* listed; the others are counted */

/* One per row of fields.def: SPEC_NAME, SPEC_COMPILE_CACHE_URL, ... Members of
 * list items and of free maps have rows of their own (SPEC_METRICS_REGEX). */
enum spec_field {
#define FIELD(id, ...) SPEC_##id,
#include "jobs/spec/fields.def"
#undef FIELD
	SPEC_FIELD_COUNT
};

/* One thing wrong, or (lint) one thing that is legal and costs evenings. */
struct problem {
	char *file;       /* as given by the caller; "--set" for an override */
	int line, column; /* from 1, columns in characters; 0 = the file as a whole */
	char *field;      /* dotted path of the field, or NULL */
	char *message;    /* lower case, no full stop */
	char *hint;       /* what to do about it, or NULL */
	bool lint;        /* a warning: the spec stays valid */
};

/* In file order, overrides last. Start from { 0 }. */
struct problems {
	struct problem *list;
	size_t count;
	size_t errors;  /* how many of all found are errors; 0 = valid */
	size_t dropped; /* found, but past SPEC_PROBLEMS_MAX: "and N more" */
	size_t cap;
};

void problems_release(struct problems *problems); /* for AUTO() */

/* "train.yaml:14:3: unknown field 'retires' in 'retry'", without the hint. A
 * lint says "warning: " before the message. Yours to free. */
char *problem_format(const struct problem *problem);

struct spec;

/* Looks up a variable for ${VAR}: NULL if it is unset. */
typedef const char *spec_getenv_fn(const char *name);

/* Read and check one spec. It reads only that file, variables through `getenv_fn` (NULL: the
 * process's own) and, where it names an instance type, one's own catalogue (instance.h). `sets` is
 * a NULL-terminated array of "path=value" overrides, or NULL.
 *
 * 0: *ret is the spec; problems may hold lints.
 * -1 with *err set: the file could not be read at all (missing, a directory,
 *    no permission, no regular file): EXIT_SPEC with its name.
 * -1 without: problems holds at least one error. */
int spec_load(const char *path, char *const *sets, spec_getenv_fn *getenv_fn, struct spec **ret,
	      struct problems *ret_problems, struct err **err) STK_MUST_CHECK;
/* The same for text in memory; `file` names it in problems. */
int spec_parse(const char *file, const char *text, size_t len, char *const *sets,
	       spec_getenv_fn *getenv_fn, struct spec **ret, struct problems *ret_problems)
	STK_MUST_CHECK;
void spec_freep(struct spec **spec); /* for AUTO() */

/* --- Values. All borrowed, valid as long as the spec. --- */

/* The whole resolved spec: nested objects in spec order, then defaults in
 * table order; integers, reals, booleans and texts. Durations, sizes and
 * percentages stay texts as written. An optional section (evaluate, data, …)
 * that the spec does not have is absent. `secrets` holds sources, no values. */
const json_t *spec_root(const struct spec *spec);

/* NULL when absent and without default, and for members of list items and
 * free maps (reach those through their parent). */
const json_t *spec_get(const struct spec *spec, enum spec_field field);

/* Typed access. A field that is absent gives NULL, 0 or false; asking for the
 * wrong type is a defect and gives the same. */
const char *spec_str(const struct spec *spec, enum spec_field field);
int64_t spec_int(const struct spec *spec, enum spec_field field);
bool spec_bool(const struct spec *spec, enum spec_field field);
double spec_real(const struct spec *spec, enum spec_field field);
double spec_fraction(const struct spec *spec, enum spec_field field); /* 0.1% → 0.001 */
/* Durations in milliseconds, sizes in bytes; SPEC_WORD where the field holds
 * one of its words ("auto", "none", "all") or is absent. */
#define SPEC_WORD ((int64_t)-1)
int64_t spec_ms(const struct spec *spec, enum spec_field field);
int64_t spec_bytes(const struct spec *spec, enum spec_field field);
/* The field holds this word (or text). */
bool spec_says(const struct spec *spec, enum spec_field field, const char *word);

/* Written by the user, in the file or by --set. */
bool spec_is_set(const struct spec *spec, enum spec_field field);
/* Where a field or an entry stands: "retry.backoff", "env.HOME",
 * "metrics[1].regex". False (and 0, 0) if it was not written. */
bool spec_place(const struct spec *spec, const char *dotted, int *ret_line, int *ret_column);
/* The override "path=value" that wrote it; NULL: the file did, or nothing. Borrowed. */
const char *spec_override(const struct spec *spec, const char *dotted);
const char *spec_file(const struct spec *spec);

/* What the catalogue knows of resources.instance, as instance.h has it; NULL: the spec
 * names none. */
const json_t *spec_instance(const struct spec *spec);
/* USD an hour and node: resources.price, or, where it is auto, the catalogue's. On the local
 * engine that does not count: it is no machine of AWS. 0: not known. */
double spec_price(const struct spec *spec);

/* --- What the job gets. ---
 *
 * In all of it ${STOKER_…} is left for the agent, and a literal "${STOKER_" is
 * told from that as jobs/store/order.h has it: $${STOKER_RUN} in the spec is
 * $${STOKER_RUN} here, and ${STOKER_RUN} in spec_get() and for the job. */

/* Any other text for the job, as these have it: none of it is a reference. Yours. */
char *spec_deferred(const char *text);

/* The command and its hyperparameters: `--name value` in spec order, numbers
 * as written (3.0e-4 stays 3.0e-4), booleans True and False, lists as JSON,
 * null left out. With `with_overrides` as phase 1 sees it: compile.overrides
 * and compile.max_steps applied. NULL-terminated, yours (auto_strv). */
char **spec_arguments(const struct spec *spec, bool with_overrides);
/* `env` as an object name → text, without secrets. A new reference. */
json_t *spec_env(const struct spec *spec, bool with_overrides);
/* The hyperparameters as name → text, rendered as above: the values of
 * STOKER_HP_<NAME>. A new reference. */
json_t *spec_hyperparameter_texts(const struct spec *spec, bool with_overrides);

/* Everything of the spec that belongs to the graph key, flattened:
 * "command": […], "hyperparameters.batch_size": "64", "env.X": "…",
 * "compile.kind": "jax", "resources.nodes": "4", "resources.instance": "trn1"
 * (the family). Left out: what compile.ignore names, phase 1's overrides,
 * secrets, and variables known to change no graph. Values under names that
 * look secret are "sha256:…". A reference and a text that only looks like one
 * differ, as above. A new reference. */
json_t *spec_key_ingredients(const struct spec *spec);

/* --- What this version cannot do yet. --- */

/* One problem for each thing the spec asks for explicitly and this version
 * cannot do. A field left out, or set to exactly its default, asks for
 * nothing. Returns how many. */
size_t spec_unready(const struct spec *spec, struct problems *ret);

/* --- The table for people and programs. --- */

/* JSON Schema, draft 2020-12, of a spec file. A new reference. */
json_t *spec_schema(void);

/* What there is to say about one field, several lines with a final newline:
 * type, default, range, engines, help, example. NULL if no field has that
 * path. Yours to free. */
char *spec_field_help(const char *dotted);
/* Path of a row, for messages: "retry.backoff.first". */
const char *spec_field_path(enum spec_field field);
/* The field path nearest to a mistyped one, or NULL. */
const char *spec_field_nearest(const char *dotted);

#endif
