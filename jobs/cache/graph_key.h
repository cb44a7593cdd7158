/*
 * The graph key: one hash over everything that decides which graphs the
 * compiler will see, and the words for what changed when it is another one.
 *
 * Ingredients are one JSON object. Members are values, or objects that are
 * gone into; below "source" a member's name is a file: changed files are named
 * `source:train.py`, everything else `hyperparameters.batch_size`.
 */
#ifndef STK_CACHE_GRAPH_KEY_H
#define STK_CACHE_GRAPH_KEY_H

#include "jobs/base/hash.h"
#include "jobs/base/json.h"

/* Replace, in place, the values whose names look like secrets (token, password,
 * …) by "sha256:<16 digits>", at any depth. Doing it twice changes nothing. */
void ingredients_hide_secrets(json_t *ingredients);
bool ingredient_looks_secret(const char *name);

/* SHA-256 over the canonical JSON, secrets hidden first (on a copy). */
void graph_key_of(const json_t *ingredients, char hex[SHA256_HEX]);

/* [{"field","old","new"}], sorted by field; null where one side has none.
 * Secret-looking values are hidden. Empty if they are equal. */
json_t *ingredients_diff(const json_t *old_ingredients, const json_t *new_ingredients);

#endif
