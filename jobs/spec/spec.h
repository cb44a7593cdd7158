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
 * terminal. The values of secrets are never kept here, only where they come
 * from; of an env_file only the names are.
 */
#ifndef STK_SPEC_SPEC_H
#define STK_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

#define SPEC_BYTES_MAX    ((size_t)1 << 20) /* size of a spec file */
#define SPEC_PROBLEMS_MAX 100               /* number listed; the others are counted */

/* Rows of fields.def: SPEC_NAME, SPEC_COMPILE_CACHE_URL, ... Members of list items and of free
 * maps have rows of their own (SPEC_METRICS_REGEX). */
enum spec_field {
#define FIELD(id, ...) SPEC_##id,
#include "jobs/spec/fields/fields.def"
#undef FIELD
	SPEC_FIELD_COUNT
};

/* An error, or (lint) a legal thing that costs time later. */
struct problem {
	char *file;       /* as given by the caller; "--set" for an override */
	int line, column; /* from 1, columns in characters; 0 = the file as a whole */
	char *field;      /* dotted path of the field, or NULL */
	char *message;    /* lower case, no full stop */
	char *hint;       /* the cure, or NULL */
	bool lint;        /* a warning: the spec stays valid */
	bool remark;      /* a lint that is no warning: worth knowing, and often as it should be */
	bool secret;      /* the line may hold a secret: never show it */
	bool missing;     /* a field that a profile could add */
	char *profiles;   /* the profiles with which it is one, "dev, gpu"; NULL: without any */
};

/* Problems in file order, those of overrides last. Start from { 0 }. */
struct problems {
	struct problem *list;
	size_t count;
	size_t errors;  /* number of errors among all found; 0 = valid */
	size_t dropped; /* number found past SPEC_PROBLEMS_MAX: "and N more" */
	size_t cap;
};

void problems_release(struct problems *problems); /* for AUTO() */

/* Returns "train.yaml:14:3: unknown field 'retires' in 'retry'", without the hint. A lint has
 * "warning: " before the message, or "remark: ". The caller frees it. */
char *problem_format(const struct problem *problem);

struct spec;

/* Changes by a command line on top of the file, each NULL-terminated, or NULL. */
struct spec_changes {
	char *const *uses; /* names of profiles, the later on top */
	char *const *sets; /* "path=value", above all profiles */
};

/* Looks up a variable for ${VAR}: NULL if it is unset. */
typedef const char *spec_getenv_fn(const char *name);

/* Reads and checks one spec. The function reads only that file and those that it extends, the
 * user's configuration, variables through `getenv_fn` (NULL: the process's own), the names in the
 * files of env_file and, if the spec names an instance type, the user's own catalogue (instance.h).
 * It starts stoker-derive for each derived value. `changes` may be NULL.
 *
 * 0: *ret is the spec; problems may hold lints.
 * -1 with *err set: the file could not be read at all (missing, a directory,
 *    no permission, no regular file): EXIT_SPEC with its name.
 * -1 without: problems holds at least one error. */
int spec_load(const char *path, const struct spec_changes *changes, spec_getenv_fn *getenv_fn,
	      struct spec **ret, struct problems *ret_problems, struct err **err) STK_MUST_CHECK;
/* The same for text in memory; `file` names it in problems. */
int spec_parse(const char *file, const char *text, size_t len, const struct spec_changes *changes,
	       spec_getenv_fn *getenv_fn, struct spec **ret, struct problems *ret_problems)
	STK_MUST_CHECK;
/* Checks a spec alone and with each of its profiles: its problems are those of all, each once, and
 * name the profiles with which they are there. What is missing alone may be missing with a profile,
 * too, as long as it is complete in one way.
 *
 * 0: *ret_ways is an array of {"use": name of the profile (absent: alone), "missing": [field…] that
 *    make this way incomplete (empty: none)}, a new reference; the first is the spec alone.
 * -1: as above. */
int spec_check(const char *path, const struct spec_changes *changes, spec_getenv_fn *getenv_fn,
	       json_t **ret_ways, struct problems *ret_problems, struct err **err) STK_MUST_CHECK;
/* The same spec with more overrides: as it was read, whatever has become of its file. */
int spec_with(const struct spec *spec, char *const *sets, struct spec **ret,
	      struct problems *ret_problems) STK_MUST_CHECK;
/* True if a text is meant as a spec, right or wrong: a map with version, name and command. */
bool spec_is_one(const char *text, size_t len);
/* Returns the names of the profiles that a spec has, valid or not: a new array. */
json_t *spec_profiles_of(const char *path);
void spec_freep(struct spec **spec); /* for AUTO() */

/* --- The user's own configuration, for commands that read no spec. --- */

/* Reads $STOKER_CONFIG, else stoker/config.yaml in $XDG_CONFIG_HOME or ~/.config. Returns 0 and the
 * place of the runs and the AWS region that it names, each NULL if it does not; the caller frees
 * them. -1 (EXIT_SPEC, with its place) if the file is wrong. */
int spec_configuration(spec_getenv_fn *getenv_fn, char **ret_state, char **ret_region,
		       struct err **err) STK_MUST_CHECK;

/* --- Values. All are borrowed and valid as long as the spec. --- */

/* The whole resolved spec: nested objects in spec order, then defaults in
 * table order; integers, reals, booleans and texts. Durations, sizes and
 * percentages stay texts as written. An optional section (evaluate, data, …)
 * that the spec does not have is absent. `secrets` holds sources, no values. */
const json_t *spec_root(const struct spec *spec);

/* Returns NULL if the field is absent and has no default, and for members of list items and free
 * maps (reach those through their parent). */
const json_t *spec_get(const struct spec *spec, enum spec_field field);

/* Typed access. A field that is absent gives NULL, 0 or false; asking for the
 * wrong type is a defect and gives the same. */
const char *spec_str(const struct spec *spec, enum spec_field field);
int64_t spec_int(const struct spec *spec, enum spec_field field);
bool spec_bool(const struct spec *spec, enum spec_field field);
double spec_real(const struct spec *spec, enum spec_field field);
/* Durations in milliseconds, sizes in bytes; SPEC_WORD where the field holds
 * one of its words ("auto", "none", "all") or is absent. */
#define SPEC_WORD ((int64_t)-1)
int64_t spec_ms(const struct spec *spec, enum spec_field field);
int64_t spec_bytes(const struct spec *spec, enum spec_field field);
/* Reads a margin, which stays a text as written: "0.1%" is 0.001 and relative, "0.001" is that and
 * absolute. False for anything else, and for what is negative or more than 100%. */
bool spec_margin(const char *text, double *ret_value, bool *ret_relative);
/* True if the field holds this word (or text). */
bool spec_says(const struct spec *spec, enum spec_field field, const char *word);

/* True if the user wrote the field, in the file or by --set. */
bool spec_is_set(const struct spec *spec, enum spec_field field);
/* True if the user's configuration gives the field. */
bool spec_is_configured(const struct spec *spec, enum spec_field field);
/* Finds the place of a field or an entry: "retry.backoff", "env.HOME", "metrics[1].regex". False
 * (and 0, 0) if it was not written. The file is "--set" for an override; NULL: not wanted. */
bool spec_position(const struct spec *spec, const char *dotted, const char **ret_file,
		   int *ret_line, int *ret_column);
/* Returns where each value came from: field → {"file", "line", "column", "profile" (absent: none)}
 * or
 * {"option": "--set"}. What is not there has its default. A new reference. */
json_t *spec_origins(const struct spec *spec);
/* Returns the files that the spec extends, as problems name them: a new array. */
json_t *spec_extended(const struct spec *spec);
/* Returns the names of the spec's profiles, an array. Borrowed. */
const json_t *spec_profiles(const struct spec *spec);
/* Returns the text there, variables expanded but not ~: as it is on every machine; NULL if none
 * was written. Borrowed. */
const char *spec_text(const struct spec *spec, const char *dotted);
/* Returns the override "path=value" that wrote it; NULL if the file did, or nothing. Borrowed. */
const char *spec_override(const struct spec *spec, const char *dotted);
const char *spec_file(const struct spec *spec);

/* Returns the catalogue's data on resources.instance, as instance.h defines them; NULL if the
 * spec names no instance, or leaves it to this machine ("auto"). */
const json_t *spec_instance(const struct spec *spec);
/* The facts that this machine shows, beside the type that it is said to be: a plan of engine local
 * keeps them as "here". {"by": "spec" or "metadata", "devices", "gpus", "vcpus", "ram_bytes",
 * "written": where "auto" was written}, or {"unknown": why nobody says the type}. NULL: not looked
 * at. Borrowed; the other takes it over. */
const json_t *spec_here(const struct spec *spec);
void spec_put_here(struct spec *spec, json_t *here);

/* The user's own rows of the failure table, those of the spec and of failures.yaml: an array of
 * {"regex","class","hint"}. Borrowed. */
const json_t *spec_failures(const struct spec *spec);
/* Returns the metrics of both forms, `metrics` and `metric_definitions`: a new array of
 * {"name","regex"}. */
json_t *spec_metrics(const struct spec *spec);
/* The derived values: an array of {"field","expression","value": as text, of a number the shortest
 * digits that read back the same}, in spec order; NULL: none. Borrowed. */
const json_t *spec_derived(const struct spec *spec);
/* The variables of this shell that the spec, or the user's configuration, names: an object with the
 * name of each, in that order. Not those that stoker itself reads. Borrowed. */
const json_t *spec_variables(const struct spec *spec);
/* Returns USD per hour and node: resources.price or, if that is auto, the catalogue's. 0: not
 * known. */
double spec_price(const struct spec *spec);

/* --- Values for the job. ---
 *
 * In all these texts ${STOKER_…} is left for the agent, and a literal "${STOKER_"
 * is told from that as jobs/store/order.h defines it: $${STOKER_RUN} in the spec is
 * $${STOKER_RUN} here, and ${STOKER_RUN} in spec_get() and for the job. */

/* Returns any other text for the job in the same form: no part of it is a reference. The caller
 * frees it. */
char *spec_deferred(const char *text);

/* The command, with what its launcher needs, and its hyperparameters: `--name value` in spec order,
 * numbers as written (3.0e-4 stays 3.0e-4), booleans True and False, lists as JSON, null left out.
 * With `with_overrides` as phase 1 sees it: compile.overrides and compile.max_steps applied.
 * NULL-terminated; the caller frees it (auto_strv). */
char **spec_arguments(const struct spec *spec, bool with_overrides);
/* `env` and what pass_env takes from the caller, as an object name → text, without secrets. A new
 * reference. */
json_t *spec_env(const struct spec *spec, bool with_overrides);
/* All variables whose values are kept nowhere, as an object name → source: those of `secrets`, of
 * env_file ("env_file:PATH", the path relative to the spec) and the secret ones of pass_env
 * ("env:NAME"). A new reference. */
json_t *spec_secrets(const struct spec *spec);
/* The hyperparameters as name → text, rendered as above: the values of
 * STOKER_HP_<NAME>. A new reference. */
json_t *spec_hyperparameter_texts(const struct spec *spec, bool with_overrides);

/* Number of workers on each node of a phase; NULL: the command starts no launcher (launch.h), and
 * resources.workers says nothing.
 *   {"launcher": "torchrun" | "accelerate" (absent: none), "per_node", "world": on all nodes that
 *    run the command together (both absent: only the job will know), "by": "resources.workers" |
 *    "command" | "env" | "secrets" | "resources.instance" | "toolkit" | the launcher's name (its
 *    default of one), "reason": in words, "variable": the name of one that is to be set to
 *    "per_node" (absent: none is)}
 * A new reference. */
json_t *spec_processes(const struct spec *spec, bool with_overrides);

/* Number of steps of phase 1, and its source:
 *   {"hyperparameter": that counts them (absent: not known), "steps" (absent: not a number),
 *    "by": "compile.max_steps" | "compile.overrides" | "default" | "hyperparameters" (the training
 *    is as short) | "unknown", "reason": in words}
 * A new reference. */
json_t *spec_length(const struct spec *spec);
/* Returns the steps of a phase, 0: not known. */
int64_t spec_steps(const struct spec *spec, bool with_overrides);

/* Number of graphs that the front end of phase 1 is told to compile at once; NULL: stoker starts
 * no front end.
 *   {"workers" (absent: it decides itself), "option": the option that tells it,
 *    "by": "compile.parallel" | "auto" | "front end", "reason": in words}
 * A new reference. */
json_t *spec_width(const struct spec *spec);
/* True if the command begins with the front end of phase 1 itself, even behind `env`. */
bool spec_has_front(const struct spec *spec);

#define KEY_WORLD "resources.nodes*workers"

/* Everything of the spec that belongs to the graph key, flattened:
 * "command": […], "hyperparameters.batch_size": "64", "env.X": "…",
 * "compile.kind": "jax", "resources.instance": "trn1" (the family), KEY_WORLD: "64" (on all nodes;
 * "resources.nodes" where only the job knows it). Left out: the launcher's options for these and
 * for the rendezvous, entries of compile.ignore, phase 1's overrides,
 * secrets, and variables known to change no graph. Values under names that
 * look secret are "sha256:…". A reference and a text that only looks like one
 * differ, as above. A new reference. */
json_t *spec_key_ingredients(const struct spec *spec);

/* --- A sweep: the spec with other values, many times. --- */

#define SPEC_SWEEP_CELLS_MAX 1000
#define SPEC_SWEEP_RUNS_MAX  2000

/* Returns the cells of the section `sweep`; NULL if the spec has none.
 *   {"kind": "grid" | "one_at_a_time" | "list" | "ladder", "repeat", "parallel",
 *    "on_best": true if the values of a cell are to be set on top of those of the best cell before
 *    it (in every other ladder a cell has those of all steps up to it),
 *    "cost": USD, "deadline_ms": limits of all runs (absent: none),
 *    "cells": [{"name": a few words for people, "sets": ["field=value"…]: for spec_with()}…]}
 * The first cell is the baseline. A new reference. */
json_t *spec_sweep(const struct spec *spec);
/* Appends overrides of another cell to those of a cell that is made on top of it: all but its
 * name. */
void spec_sweep_put_on_top(json_t *sets, const json_t *more);

/* --- Retraining: the sections data, parent, evaluate, gate, infer, promote, schedule, driver. ---
 */

/* True if the spec has one of them. A spec without any is a training. */
bool spec_retrains(const struct spec *spec);
/* Returns a section with its defaults, though the spec does not have it: a new reference. Required
 * members are absent then. Words ("none", "auto", "data.url", "checkpoint") are as written, places
 * as spec_get() has them. */
json_t *spec_section(const struct spec *spec, enum spec_field section);
/* Returns all entries of the gate, that of evaluate.metric first: a new array of
 *   {"metric", "direction", "against": "promoted", "max_drop": "0.1%" | "0.001", "confidence":
 * "95%"}
 *   {"metric", "against": "run:ID", "max_gap"}   {"metric", "at_least"}   {"metric", "at_most"}
 * empty if there is no gate. */
json_t *spec_gate(const struct spec *spec);
/* Returns the spec as a stage of it runs, SPEC_EVALUATE or SPEC_INFER: with the command,
 * hyperparameters and overrides of the stage, and its resources, image, env and job queue on top of
 * the training's. All functions of this header tell of the stage then: spec_arguments(),
 * spec_processes(), spec_price(), spec_key_ingredients() … `problems` is for what cannot be wrong
 * once the spec itself was loaded. The stage must be in the spec. */
int spec_stage(const struct spec *spec, enum spec_field stage, struct spec **ret,
	       struct problems *ret_problems) STK_MUST_CHECK;

/* --- Limits of this version. --- */

/* Adds a problem for each thing that the spec asks for explicitly and this version cannot do. A
 * field left out, or set to exactly its default, asks for nothing. Returns their number. */
size_t spec_not_yet(const struct spec *spec, struct problems *ret);
/* The same as warnings, in the same words, beside the problems that are in *ret already: for
 * commands that only check the spec. */
size_t spec_not_yet_warn(const struct spec *spec, struct problems *ret);

/* --- The table for people and programs. --- */

/* Returns the JSON Schema, draft 2020-12, of a spec file. A new reference. */
json_t *spec_schema(void);

/* Returns the field path nearest to a mistyped one, or NULL. */
const char *spec_field_nearest(const char *dotted);

#endif
