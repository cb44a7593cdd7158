/*
 * The inside of struct spec, and of the code that makes it: shared by the files of this box, not
 * for others.
 */
#ifndef STK_SPEC_RESOLVED_H
#define STK_SPEC_RESOLVED_H

#include "jobs/base/text/regex.h"
#include "jobs/spec/fields/field.h"
#include "jobs/spec/machines/launch.h"
#include "jobs/spec/node.h"

struct spec {
	char *file;
	char *text; /* as it was read, and what was set in it: for spec_with() */
	size_t len;
	char **uses, **sets; /* of the command line; NULL-terminated */
	spec_getenv_fn *getenv_fn;
	json_t *files; /* the other files: name → {"text", "folder": see layers/extends.c} */
	const char *configuration; /* the user's file, as its marks name it; NULL: none */
	json_t *profiles;          /* the names of its profiles; NULL before they are read */
	struct arena *arena;
	struct node *tree; /* all layers in one, variables expanded, overrides applied */
	struct mark start; /* of the first field in its own file */
	json_t *root;      /* defaults filled in */
	json_t *instance;  /* NULL: the spec names none; see instance.h */
	json_t *failures;  /* see failures.h */
	json_t *env_files; /* see env_file.c; NULL before it is read */
	json_t *passed;    /* see pass_env.c; NULL before it is read */
	json_t *derived;   /* see spec_derived() */
	json_t *variables; /* see spec_variables() */
	json_t *here;      /* see spec_here() */
	bool alone;        /* a stage whose nodes run the command each for itself */
	/* Entry that the user wrote for each row (in lists: for the first item that has it),
	 * NULL if none. */
	const struct entry *written[SPEC_FIELD_COUNT];
};

/* A spec in the making. */
struct binder {
	struct spec *spec;
	struct reporter reporter;
	struct regex *shapes[SHAPE_COUNT]; /* compiled when first needed */
	spec_getenv_fn *getenv_fn;
	json_t *catalogue; /* rows of instance types; NULL: the spec names no instance */
};

void bind_release(struct binder *binder); /* for AUTO() */

/* --- value.c: one scalar against one row --- */

/* Returns the scalar as the row's type, a new reference; NULL after a problem. */
json_t *value_convert(struct binder *binder, field_id field, const struct node *node,
		      const struct path *path);
/* True if a text has this shape. Reports no problem. */
bool value_has_shape(struct binder *binder, enum field_shape shape, const char *text);
/* Returns the text of a node for a message: short, as written, and never that of a secret. The
 * caller frees it. */
char *value_shown(field_id field, const struct node *node);
/* Returns a hyperparameter (scalar or list) as JSON; NULL after a problem. */
json_t *value_any(struct binder *binder, const struct node *node, const struct path *path);

/* --- home.c --- */

/* Returns the text of a path (field.is_path) with the caller's home for ~, also behind "dir:"
 * and "file:"; NULL after a problem. The caller frees it. */
char *home_expand(struct binder *binder, const struct node *node, const char *field);
/* Returns the path of a file in $XDG_CONFIG_HOME/stoker (~/.config/stoker), whether it exists or
 * not; NULL if no directory is known for it. The caller frees it. */
char *home_config_file(spec_getenv_fn *getenv_fn, const char *name);

/* --- schedule.c --- */

/* Return true if a text is a cron line that comes, or a time zone of this machine; false after a
 * problem. */
bool schedule_is_cron(struct binder *binder, const struct node *node, const char *field);
bool schedule_is_zone(struct binder *binder, const struct node *node, const char *field);

/* --- set.c --- */

/* Applies each "path=value" of --set to the tree, in order; the later wins. That is before it is
 * checked, so they are typed, expanded and checked like everything else. `root` is a map. */
void set_apply(struct arena *arena, struct reporter *reporter, struct node *root,
	       char *const *sets);
/* Sets one value at a path, with the place of the value. */
void set_node(struct arena *arena, struct reporter *reporter, struct node *root, const char *path,
	      struct node *value);
/* Checks a key that is the path of a field, in a map of such keys that problems call `where`: of
 * the fields in `never` (names at the top, up to NULL) problems say `why`. Returns its row;
 * FIELD_NONE after a problem. */
field_id set_check_path(struct binder *binder, const struct entry *entry, const char *where,
			const char *const never[], const char *why);

/* --- retrain.c --- */

/* Makes the tree of a spec, in which variables are expanded, that of a stage: see spec_stage(). */
void retrain_make_stage(struct spec *spec, struct reporter *reporter, enum spec_field stage);

/* --- load.c --- */

/* Resolves spec->tree: the table, and what the spec names beside it. Problems between fields are
 * not looked for. */
void load_resolve(struct binder *binder);

/* --- expand.c --- */

/* Expands the variables in every value below `root` in place and reports those that are unset or
 * malformed; such values are marked unknown. `names`: an object that has the name of each then;
 * NULL: not wanted. */
void expand_tree(struct arena *arena, struct reporter *reporter, spec_getenv_fn *getenv_fn,
		 struct node *root, json_t *names);

/* --- env_file.c, pass_env.c: variables that the spec names and does not hold --- */

#define ENV_FILE_SCHEME "env_file:"

/* Reads the names in the files of env_file into spec->env_files: name → {"source", "file": as
 * problems name it, "line"}, of the last file that has it. */
void env_file_load(struct binder *binder);
/* Adds an error at the line of that file which sets the variable. Its text is shown nowhere. */
struct problem *env_file_error(struct binder *binder, const char *name, const char *fmt, ...)
	STK_PRINTF(3, 4);

/* Reads the variables of pass_env into spec->passed: name → value, for those that are set and are
 * not passed anyway. */
void pass_env_load(struct binder *binder);
/* True if the value must not be kept: its name looks secret, or it holds a password. */
bool pass_env_is_secret(const char *name, const char *value);

/* --- bind.c: the tree against the table --- */

/* Fills in spec->root and spec->written from spec->tree and reports every problem; values with
 * problems are left out of the root. */
void bind_spec(struct binder *binder);
/* Returns an engine's bit in field.engines; 0 for no engine. */
unsigned bind_engine_bit(const char *engine);
/* Returns the value of one row as it stands in a file other than a spec, a new reference; NULL
 * after a problem. */
json_t *bind_field(struct binder *binder, field_id field, const struct entry *entry);
/* The same; problems call the field `name`. */
json_t *bind_field_as(struct binder *binder, field_id field, const char *name,
		      const struct entry *entry);
/* Returns the defaults of the members of an absent section, a new reference; NULL if none. */
json_t *bind_defaults(field_id section);
/* Returns a row's default as JSON, a new reference; NULL if it has none. */
json_t *bind_default(field_id field);
/* Parses text as the user could have written it for a row (a default, an example, an override):
 * texts are taken literally, the rest is YAML. NULL after a problem. */
struct node *bind_text(struct arena *arena, struct reporter *reporter, field_id field,
		       const char *text, const char *set);

/* --- rules.c, rules_sagemaker.c, lint.c: fields against each other --- */

void rules_check(struct binder *binder);
void rules_toolkit(struct binder *binder);     /* limits of sagemaker.launcher: toolkit */
void rules_environment(struct binder *binder); /* env, secrets, env_file, pass_env */
/* True in script mode: no agent runs in the job, and the image starts torchrun and the front
 * end. */
bool spec_has_toolkit(const struct spec *spec);
void rules_sagemaker(struct binder *binder);
/* rules for machines, images and versions that go together (compatibility.h) */
void rules_compatibility(struct binder *binder);
void rules_modes(struct binder *binder);   /* benchmark and debug */
void rules_retrain(struct binder *binder); /* data, gate, promote and their like */
void sweep_check(struct binder *binder);   /* sweep.c: which cells there are, and their values */
/* Checks the spec against its machines: workers against cores, a cost limit against the price. */
void machine_check(struct binder *binder);
/* Checks the workers of a spec against the cores or GPUs of a node; `stage` stands before the names
 * of its fields ("evaluate."; "": the spec itself). */
void workers_check(struct binder *binder, const char *stage);
/* Checks the row of a type against the engine: the names that SageMaker has, the figures that AWS
 * Batch needs. */
void type_check(struct binder *binder, enum spec_field field, const char *member,
		const json_t *row);
void lint_check(struct binder *binder);

/* Checks the length and the width of phase 1. */
void phase_one_check(struct binder *binder);

/* Returns the place of an entry: that of a scalar is its own, that of a map or list is its name,
 * which stands before it. */
struct mark access_mark_of_entry(const struct entry *entry);
/* Finds the place of a field or an entry by its path, as spec_position() does. */
bool access_mark_of_path(const struct spec *spec, const char *dotted, struct mark *ret);
/* The same of a row; the spec's first line if it was not written. */
struct mark access_mark_of_field(const struct spec *spec, enum spec_field field);
/* Returns the node written for a row, NULL if there is none. */
const struct node *access_node_of_field(const struct spec *spec, enum spec_field field);

/* True if a service of AWS runs the job. */
bool access_on_aws(const struct spec *spec);

/* Add a problem at a field that was bound, or with `member` (".HOME", "[2].name") at that member
 * of it. The message needs no place; problem_hint() adds the cure. */
struct problem *spec_error(struct binder *binder, enum spec_field field, const char *member,
			   const char *fmt, ...) STK_PRINTF(4, 5);
struct problem *spec_lint(struct binder *binder, enum spec_field field, const char *member,
			  const char *fmt, ...) STK_PRINTF(4, 5);

/* --- phase_one.c, processes.c --- */

enum length_by {
	LENGTH_UNKNOWN,  /* nothing known makes phase 1 shorter than the training */
	LENGTH_GIVEN,    /* compile.max_steps */
	LENGTH_OVERRIDE, /* compile.overrides */
	LENGTH_DEFAULT,  /* default of compile.max_steps */
	LENGTH_OWN,      /* the training itself is as short as that */
	LENGTH_WAYS
};

struct length {
	enum length_by by;
	const char *name;             /* name of the hyperparameter, borrowed; NULL: not known */
	const struct entry *training; /* entry with the steps of the training; NULL: none */
	int64_t steps;                /* 0: not a number */
};

struct length phase_one_length_of(const struct spec *spec);

/* Returns the cores of the instance, as the runtime shows them with this environment; 0: not
 * known. */
int64_t processes_cores_of(const struct spec *spec, const json_t *env);
/* A variable that shows the job fewer cores or GPUs than the machine has. */
struct processes_limit {
	const char *name, *value; /* NULL: no such variable is set; else borrowed */
	int64_t units; /* those that it names, maybe more than there are; -1: it cannot be read */
};
/* Finds it in the environment, or in front of the command's program. The instance must have
 * accelerators. */
struct processes_limit processes_limit_of(const struct spec *spec, const json_t *env,
					  const json_t *command);
/* Returns the number of nodes that run the command together. */
int64_t processes_nodes_of(const struct spec *spec);
/* Returns the texts of the command with the options that its launcher needs. A new reference. */
json_t *processes_command(const struct spec *spec, bool with_overrides, const json_t *texts);

/* --- arguments.c --- */

/* Returns a hyperparameter as the script will see it, for the agent (node_deferred); NULL for
 * null. The caller frees it. */
char *arguments_render_value(const struct node *node);
/* Returns the command, for the agent. A new reference. */
json_t *arguments_command_texts(const struct spec *spec);
#endif
