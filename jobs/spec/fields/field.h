/*
 * The field table as data: the rows of fields.def, how they nest, and the
 * shapes a text may be held to. Everything here is constant.
 *
 * spec/fields: the table of fields with their types, units, shapes and help; one row for each
 * field. The meaning of a value to a job is not known here.
 */
#ifndef STK_SPEC_FIELDS_FIELD_H
#define STK_SPEC_FIELDS_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/spec/spec.h"

enum field_type {
	FIELD_SECTION,  /* a map with members of its own */
	FIELD_LIST,     /* items; their row is "path[]" */
	FIELD_FREE,     /* a map with any names; the row of its values is "path.*" */
	FIELD_STRING,   /* text; unquoted numbers only where nothing can be lost */
	FIELD_INT,      /* whole number, 64 bits */
	FIELD_REAL,     /* finite number */
	FIELD_BOOL,     /* true, false */
	FIELD_CHOICE,   /* a word of `words` */
	FIELD_DURATION, /* 90s, 2h, 7d: range in milliseconds */
	FIELD_SIZE,     /* 8GiB: range in bytes */
	FIELD_PERCENT,  /* 0.1%: range in thousandths of a percent */
	FIELD_MARGIN,   /* 0.1% or 0.001: a share of another number, or a number of its unit */
	FIELD_ANY,      /* scalar, null or list: a hyperparameter */
	FIELD_OVERLAY,  /* fields of the spec, each with another value: a profile */
	FIELD_TYPE_COUNT
};

/* Form of a text beyond its type: shapes.def. */
enum field_shape {
#define SHAPE(id, ...) SHAPE_##id,
#include "jobs/spec/fields/shapes.def"
#undef SHAPE
	SHAPE_COUNT
};

struct shape_row {
	const char *pattern; /* Perl and ECMAScript alike; must match the whole text */
	const char *what;    /* "must be …" */
	const char *hint;
};

#define ENGINE_LOCAL     (1u << 0)
#define ENGINE_SLURM     (1u << 1)
#define ENGINE_BATCH     (1u << 2)
#define ENGINE_SAGEMAKER (1u << 3)

struct field {
	const char *path;
	enum field_type type;
	const char *fallback; /* default as text, or NULL */
	const char *help, *example;
	bool ready;                  /* implemented in this version */
	bool required;               /* required in its section, if that is present */
	bool optional;               /* section or list: defaults count only if it is there */
	bool in_key;                 /* part of the graph key */
	bool configurable;           /* may stand in a user's own configuration (top-level rows) */
	bool spec_only;              /* not in a user's configuration: it decides graphs */
	bool local_only;             /* a URL is not ready yet */
	bool s3_ready;               /* but a URL with an S3 prefix is, on the local engine */
	bool secret;                 /* the text never appears in messages */
	bool numbers;                /* unquoted numbers are taken as written */
	bool single;                 /* a list: a text is a list of one */
	bool is_path;                /* path on this machine, or a URL: ~/ is expanded (home.c) */
	int64_t min, max;            /* both 0: no range */
	size_t min_items, max_items; /* max 0: no maximum */
	const char *words, *ready_words; /* separated by single spaces */
	const char *stands_for; /* hyperparameters that it replaces, separated by single spaces: the
				   first that is there */
	const char *notes;      /* paragraphs for `stoker help FIELD`, one a line; NULL: none */
	enum field_shape shape, key_shape;
	unsigned engines; /* 0: all */
};

extern const struct field field_table[SPEC_FIELD_COUNT];
extern const struct shape_row field_shape_rows[SHAPE_COUNT];

static inline bool shape_is_regex(enum field_shape shape)
{
	return shape == SHAPE_REGEX || shape == SHAPE_READING;
}

/* A row number, or FIELD_NONE: "no such row", or "the spec as a whole". */
typedef int field_id;
#define FIELD_NONE (-1)

/* Returns the member `name` of a section (FIELD_NONE: of the spec). */
field_id field_child(field_id parent, const char *name);
/* True for a name at the top of a spec that is left to its author: "x-…". */
bool field_is_own(const char *name);
/* Returns the row of a list's items or a free map's values. */
field_id field_item(field_id parent);
/* Returns the section, list or free map that a row belongs to. */
field_id field_parent(field_id field);
/* Returns the row with that path; "metrics[3].regex" and "env.HOME" are found too. */
field_id field_find(const char *dotted);
/* Returns the last part of a row's path: "regex". Borrowed. */
const char *field_leaf(field_id field);

/* Calls `fn` with each fact that the table holds on a row beside its help, for people: "default"
 * and "30s", "engines" and "local, slurm". Both are borrowed for the call. */
typedef void field_fact_fn(void *arg, const char *what, const char *text);
void help_field_facts(field_id field, field_fact_fn *fn, void *arg);

/* "an integer", "a duration" … for messages and help. */
const char *field_type_text(enum field_type type);
/* Returns "from 1 to 10000", in the field's unit; NULL without a range. The caller frees it. */
char *field_range_text(const struct field *field);
/* True if `word` is among the space-separated words. */
bool field_word_in(const char *words, const char *word);
/* Returns "a, b or c". The caller frees it. */
char *field_words_list(const char *words, const char *last_separator);

#endif
