/*
 * The field table as data: the rows of fields.def, how they nest, and the
 * shapes a text may be held to. Everything here is constant.
 */
#ifndef STK_SPEC_FIELD_H
#define STK_SPEC_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/spec/spec.h"

enum field_type {
	FIELD_SECTION,  /* a map with members of its own */
	FIELD_LIST,     /* of items, whose row is "path[]" */
	FIELD_FREE,     /* a map with any names, whose values' row is "path.*" */
	FIELD_STRING,   /* text; unquoted numbers only where nothing can be lost */
	FIELD_INT,      /* whole number, 64 bits */
	FIELD_REAL,     /* finite number */
	FIELD_BOOL,     /* true, false */
	FIELD_CHOICE,   /* one of `words` */
	FIELD_DURATION, /* 90s, 2h, 7d: range in milliseconds */
	FIELD_SIZE,     /* 8GiB: range in bytes */
	FIELD_PERCENT,  /* 0.1%: range in thousandths of a percent */
	FIELD_ANY,      /* scalar, null or list: a hyperparameter */
	FIELD_TYPE_COUNT
};

/* What a text must look like, beyond its type: shapes.def. */
enum field_shape {
#define SHAPE(id, ...) SHAPE_##id,
#include "jobs/spec/shapes.def"
#undef SHAPE
	SHAPE_COUNT
};

struct shape_row {
	const char *pattern; /* Perl and ECMAScript alike; must match all of it */
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
	const char *fallback; /* the default as text, or NULL */
	const char *help, *example;
	bool ready;                      /* this version does it */
	bool required;                   /* in its section, once that is there */
	bool optional;                   /* a section whose defaults count only if it is there */
	bool in_key;                     /* part of the graph key */
	bool local_only;                 /* a URL here is not ready yet */
	bool s3_ready;                   /* but one of an S3 prefix is, on the local engine */
	bool secret;                     /* its text never appears in messages */
	bool numbers;                    /* unquoted numbers are taken as written */
	int64_t min, max;                /* both 0: no range */
	size_t min_items, max_items;     /* max 0: as many as fit */
	const char *words, *ready_words; /* separated by single spaces */
	enum field_shape shape, key_shape;
	unsigned engines; /* 0: all */
};

extern const struct field fields[SPEC_FIELD_COUNT];
extern const struct shape_row shape_rows[SHAPE_COUNT];

/* A row number, or FIELD_NONE: "no such row" and "the spec as a whole". */
typedef int field_id;
#define FIELD_NONE (-1)

/* The member `name` of a section (FIELD_NONE: of the spec). */
field_id field_child(field_id parent, const char *name);
/* The row of a list's items or a free map's values. */
field_id field_item(field_id parent);
/* The section, list or free map that a row belongs to. */
field_id field_parent(field_id field);
/* The row with that path; "metrics[3].regex" and "env.HOME" are found too. */
field_id field_find(const char *dotted);
/* The last part of a row's path: "regex". Borrowed. */
const char *field_leaf(field_id field);

/* What the table says of a row beside its help, for people: "default" and "30s",
 * "engines" and "local, slurm". Both are borrowed for the call. */
typedef void field_fact_fn(void *arg, const char *what, const char *text);
void field_facts(field_id field, field_fact_fn *fn, void *arg);

/* "a whole number", "a duration" … for messages and help. */
const char *field_type_text(enum field_type type);
/* "from 1 to 10000", in the field's unit; NULL without a range. Yours. */
char *field_range_text(const struct field *field);
/* One of the space-separated words? */
bool word_in(const char *words, const char *word);
/* "a, b or c"; yours to free. */
char *words_list(const char *words, const char *last_separator);

#endif
