/*
 * The tree of a spec as it was written: scalars as text, maps and lists, each
 * with its place. What a value means is decided later, by the field table.
 *
 * Nodes live in an arena and go with it. An alias is a second pointer to the
 * anchored node (`shared`), so a bomb of aliases never unfolds in memory.
 */
#ifndef STK_SPEC_NODE_H
#define STK_SPEC_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/spec/problem.h"

struct arena; /* memory that is released as a whole */

struct arena *arena_new(void);
void arena_freep(struct arena **arena);            /* for AUTO() */
void *arena_get(struct arena *arena, size_t size); /* zeroed, aligned; never NULL */
char *arena_text(struct arena *arena, const char *text, size_t len); /* adds the NUL */

enum node_kind {
	NODE_SCALAR,
	NODE_LIST,
	NODE_MAP,
};

struct entry { /* of a map, or (without a key) of a list */
	const char *key;
	struct mark at; /* of the key; of the value in a list */
	struct node *value;
};

struct node {
	enum node_kind kind;
	bool quoted;   /* a text, whatever it looks like */
	bool expanded; /* its text came from a variable */
	bool shared;   /* anchored: several places may point here */
	bool visited;  /* by the expansion of variables */
	bool unknown;  /* a variable in it could not be expanded: reported */
	struct mark at;
	const char *text;    /* scalar: NUL-terminated, no NUL inside */
	const char *written; /* before variables were expanded */
	/* The text with a literal "${STOKER_" told from a reference, as
	 * jobs/store/order.h has it; NULL: the text as it is says the same. */
	const char *deferred;
	struct entry *entries;
	size_t count, cap;
	size_t weight, bytes; /* nodes and text below, each alias counted in full */
};

struct node *node_new(struct arena *arena, enum node_kind kind, struct mark at);
struct node *node_scalar(struct arena *arena, const char *text, bool quoted, struct mark at);
void node_add(struct arena *arena, struct node *node, const char *key, struct mark at,
	      struct node *value);
/* A node of its own with the same entries: to be changed without touching the
 * other places an anchor is used. */
struct node *node_own(struct arena *arena, const struct node *node);

/* The entry of a map, or NULL. Linear: for the few names of a section. */
struct entry *node_entry(const struct node *map, const char *key);
/* The text of a scalar as the agent is to get it. */
const char *node_deferred(const struct node *node);
/* Plain and empty, ~ or null: no value. */
bool node_is_null(const struct node *node);
/* "a text", "a list", "a map" for messages. */
const char *node_kind_text(const struct node *node);

#endif
