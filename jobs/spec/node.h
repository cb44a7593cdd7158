/*
 * The tree of a spec as it was written: scalars as text, maps and lists, each
 * with its place. The field table decides later what a value means.
 *
 * Nodes live in an arena and go with it. An alias is a second pointer to the
 * anchored node (`shared`), so a bomb of aliases never unfolds in memory.
 */
#ifndef STK_SPEC_NODE_H
#define STK_SPEC_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/spec/lint/problem.h"

/* The place of a walk over the tree, kept on the stack and turned into text only when there is
 * something to say about it. */
struct path {
	const struct path *up; /* NULL: this is a top-level name */
	const char *name;      /* NULL: item `index` of the list above */
	size_t index;
};

/* Returns "metrics[1].regex"; NULL for a NULL path. The caller frees it. */
char *node_path_text(const struct path *path);

struct arena; /* memory that is released as a whole */

struct arena *node_arena_new(void);
void node_arena_freep(struct arena **arena);                              /* for AUTO() */
char *node_arena_text(struct arena *arena, const char *text, size_t len); /* adds the NUL */

enum node_kind {
	NODE_SCALAR,
	NODE_LIST,
	NODE_MAP,
};

struct entry { /* entry of a map, or (without a key) of a list */
	const char *key;
	struct mark at; /* place of the key; in a list, of the value */
	struct node *value;
};

struct node {
	enum node_kind kind;
	bool quoted;   /* a text, whatever it looks like */
	bool expanded; /* the text came from a variable */
	bool shared;   /* anchored: several places may point here */
	bool visited;  /* by the expansion of variables */
	bool unknown;  /* a variable in it could not be expanded, which was reported */
	struct mark at;
	const char *text;    /* scalar: NUL-terminated, no NUL inside */
	const char *written; /* text before variables were expanded */
	/* The text in which a literal "${STOKER_" is told from a reference, as
	 * jobs/store/order.h defines it; NULL: `text` says the same. */
	const char *deferred;
	struct entry *entries;
	size_t count, cap;
	size_t weight, bytes; /* nodes and text below, each alias counted in full */
};

struct node *node_new(struct arena *arena, enum node_kind kind, struct mark at);
struct node *node_scalar(struct arena *arena, const char *text, bool quoted, struct mark at);
void node_add(struct arena *arena, struct node *node, const char *key, struct mark at,
	      struct node *value);
/* Returns a node of its own with the same entries, which can be changed without touching the
 * other places an anchor is used. */
struct node *node_own(struct arena *arena, const struct node *node);

/* Returns a deep copy that nothing else points to, with `file` and `profile` in all marks (NULL:
 * as they are). Takes the number of its nodes from *room; NULL if there is not as much. */
struct node *node_copy(struct arena *arena, const struct node *node, const char *file,
		       const char *profile, size_t *room);
/* Removes the entry of a map, if it is there. */
void node_remove(struct node *map, const char *key);

/* Returns the entry of a map, or NULL. Linear: for the few names of a section. */
struct entry *node_entry(const struct node *map, const char *key);
/* Returns the text of a scalar as the agent is to get it. */
const char *node_deferred(const struct node *node);
/* True for a plain scalar that is empty, ~ or null: no value. */
bool node_is_null(const struct node *node);
/* "a string", "a list", "a mapping" for messages. */
const char *node_kind_text(const struct node *node);

#endif
