/*
 * The inside of struct spec, and of its making: shared by the files of this
 * box, not for others.
 */
#ifndef STK_SPEC_RESOLVED_H
#define STK_SPEC_RESOLVED_H

#include "jobs/base/regex.h"
#include "jobs/spec/field.h"
#include "jobs/spec/node.h"
#include "jobs/spec/path.h"

struct spec {
	char *file;
	struct arena *arena;
	struct node *tree; /* variables expanded, overrides applied */
	json_t *root;      /* defaults filled in */
	json_t *instance;  /* NULL: the spec names none; see instance.h */
	/* What the user wrote for each row (in lists: for the first item that
	 * has it), NULL if nothing. */
	const struct entry *written[SPEC_FIELD_COUNT];
};

/* A spec in the making. */
struct binder {
	struct spec *spec;
	struct reporter reporter;
	struct regex *shapes[SHAPE_COUNT]; /* compiled when first needed */
};

void binder_release(struct binder *binder); /* for AUTO() */

/* --- value.c: one scalar against one row --- */

/* The scalar as the row's type; NULL after a problem. A new reference. */
json_t *value_convert(struct binder *binder, field_id field, const struct node *node,
		      const struct path *path);
/* Does a text have this shape? Without a problem. */
bool value_has_shape(struct binder *binder, enum field_shape shape, const char *text);
/* The text of a node for a message: short, as written, and never a secret's. */
char *value_shown(field_id field, const struct node *node);
/* A hyperparameter (scalar or list) as JSON; NULL after a problem. */
json_t *value_any(struct binder *binder, const struct node *node, const struct path *path);

/* --- bind.c: the tree against the table --- */

/* Fill in spec->root and spec->written from spec->tree, reporting every
 * problem; what is wrong is left out of the root. */
void bind_spec(struct binder *binder);
/* An engine's bit in field.engines; 0 for no engine. */
unsigned engine_bit(const char *engine);
/* A row's default as JSON; NULL if it has none. A new reference. */
json_t *bind_default(field_id field);
/* Text as the user could have written it for a row (a default, an example, an
 * override): texts are taken literally, the rest is YAML. NULL after a problem. */
struct node *bind_text(struct arena *arena, struct reporter *reporter, field_id field,
		       const char *text, const char *set);

/* --- rules.c, rules_sagemaker.c, lint.c: fields against each other --- */

void rules_check(struct binder *binder);
void rules_toolkit(struct binder *binder); /* what sagemaker.launcher: toolkit cannot do */
void rules_sagemaker(struct binder *binder);
/* What the machines have: workers against cores, a cost limit against the price. */
void machine_check(struct binder *binder);
void lint_check(struct binder *binder);

/* Where a row was written (its value; the name of a section), or the spec's
 * first line. */
struct mark mark_of_field(const struct spec *spec, enum spec_field field);
/* The node written for a row, NULL if it was not. */
const struct node *node_of_field(const struct spec *spec, enum spec_field field);

/* --- arguments.c --- */

/* A hyperparameter as the script will see it, for the agent (node_deferred); NULL
 * for null. Yours. */
char *render_value(const struct node *node);
/* The command, for the agent. A new reference. */
json_t *command_texts(const struct spec *spec);
/* The nodes of one free map with those of `over` (or NULL) on top, in spec
 * order; entries in *ret_entries are borrowed, the array is yours. */
size_t overlay(const struct node *map, const struct node *over, struct entry **ret_entries);

#endif
