/* Objects of a store that hold one JSON value, in one line. */
#ifndef STK_STORE_STORE_JSON_H
#define STK_STORE_STORE_JSON_H

#include "jobs/base/text/js.h"
#include "jobs/store/store.h"

/* Like store_get(), with a new reference. If the object is not JSON, it is there, but `ret` is
 * NULL. */
int store_json_get(struct store *store, const char *key, size_t max, json_t **ret,
		   char ret_tag[STORE_TAG], struct err **err);

int store_json_put(struct store *store, const char *key, const json_t *value, struct err **err);

/* Writes in place of the content that `tag` names; NULL: only if the key is absent. Returns 1 if
 * written, 0 if another process was faster, -1 with an error (outcome unknown). */
int store_json_replace(struct store *store, const char *key, const char *tag, const json_t *value,
		       struct err **err);

#endif
