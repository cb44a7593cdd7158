/*
 * The graph key: one hash over everything that decides which graphs the compiler will see, and the
 * list of changes between two keys.
 *
 * Ingredients are one JSON object. Members are values or nested objects; below "source" a member's
 * name is a file: changed files are named `source:train.py`, everything else
 * `hyperparameters.batch_size`.
 *
 * cache/graphs: the graph key and its ingredients, the tally of the graphs that logs name, and
 * fingerprints. The store is not touched here.
 */
#ifndef STK_CACHE_GRAPHS_GRAPH_KEY_H
#define STK_CACHE_GRAPHS_GRAPH_KEY_H

#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"

/* Version of the rules that make ingredients from a spec and its source; an ingredient itself, so
 * that a difference due to an earlier version of stoker is told from a change by the user. Absent:
 * 1.
 */
#define KEY_RULES     "key_rules"
#define KEY_RULES_NOW "3"

/* Replace, in place, the values whose names look like secrets (token, password,
 * …) by "sha256:<16 digits>", at any depth. Doing it twice changes nothing. */
void graph_key_ingredients_hide_secrets(json_t *ingredients);

/* SHA-256 over the canonical JSON, secrets hidden first (on a copy). */
void graph_key_of(const json_t *ingredients, char hex[SHA256_HEX]);

/* [{"field","old","new"}], sorted by field; null where one side has none.
 * Secret-looking values are hidden. Empty if they are equal. */
json_t *graph_key_ingredients_diff(const json_t *old_ingredients, const json_t *new_ingredients);

#endif
