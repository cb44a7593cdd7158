/*
 * Data in the folders of a run that has no other copy: complete checkpoints without a copy beneath
 * checkpoint.url, and files left in STOKER_OUTPUT_DIR. A removal of the run leaves these where they
 * are, unless told otherwise.
 *
 * A place is a workspace: a directory, or a store with the folder of this machine that goes with it
 * (jobs/store/local_store_dir.h). Keys are relative to `runs/<run>/` in it.
 *
 *   {"what": "checkpoint" | "output", "step" (of a checkpoint), "url": path or URL, "files",
 *    "size_bytes", "keys": [what is not to be removed: files, or folders with all in them]}
 */
#ifndef STK_RUN_JOURNAL_KEEPSAKES_H
#define STK_RUN_JOURNAL_KEEPSAKES_H

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"
#include "jobs/store/store.h"

/* Adds the keepsakes in the folder `<root>/runs/<run>` to `ret`. `twin` is the store that goes with
 * the folder and may hold copies of checkpoints; NULL if there is no such store. No link is
 * followed. */
int keepsakes_in_folder(const json_t *plan, const char *root, const char *run, struct store *twin,
			json_t *ret, struct err **err);
/* The same among the objects of a store. */
int keepsakes_in_store(const json_t *plan, struct store *store, const char *run, json_t *ret,
		       struct err **err);

/* Tells whether the key is a keepsake or inside one (IS), or a folder above one (ABOVE). */
enum keepsake_is { KEEPSAKE_NOT, KEEPSAKE_IS, KEEPSAKE_ABOVE };
enum keepsake_is keepsakes_have(const json_t *keepsakes, const char *key);

#endif
