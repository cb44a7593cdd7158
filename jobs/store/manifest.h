/*
 * The manifest of a sync: for each key, the file and the object that were found to be equal,
 * so that the next sync need read neither. Each remote store has a manifest file of a reserved
 * name in the local directory. It is read and written as a stream in key order.
 *
 * A row is valid for a file only as long as device, inode, size and both times are unchanged
 * to the nanosecond (a program cannot set the ctime), and for an object only as long as size
 * and tag are unchanged. Before adding a row, the caller makes sure that the file was not
 * written to in the moment in which it was looked at.
 *
 * The manifest is only ever replaced as a whole. If a sync was killed, its new manifest counts
 * up to the last whole row, followed by the rows of the old one behind that. If two syncs run
 * between the same places, only one writes the manifest. If the manifest is absent or cannot
 * be written, everything is compared by content, so no function here reports an error.
 */
#ifndef STK_STORE_MANIFEST_H
#define STK_STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/store/store.h"

struct manifest;

struct manifest_row {
	const char *key; /* borrowed until the next row is asked for */
	struct fs_stamp file;
	char tag[STORE_TAG];
};

bool manifest_holds(const struct manifest_row *row, const struct stat *st, uint64_t size,
		    const char *tag);

/* Opens the manifest of the folder `dir` (open; the caller closes it) and the store at `url`. If
 * `writes` is false, the manifest is not changed. Never returns NULL. */
struct manifest *manifest_open(int dir, const char *url, bool writes);
/* Closes without manifest_close(): rows written so far stay on disk for the next sync. */
void manifest_freep(struct manifest **manifest); /* for AUTO() */

/* Returns the remembered row of a key, or NULL if not found. Keys must be asked for in key
 * order. Rows passed on the way are kept if the key does not begin with `only` (NULL: all do). */
const struct manifest_row *manifest_find(struct manifest *manifest, const char *key,
					 const char *only);
/* Adds a row to the new manifest; rows must come in key order. */
void manifest_add(struct manifest *manifest, const struct manifest_row *row);
/* Writes the rows added so far, so that they outlive this process. */
void manifest_flush(struct manifest *manifest);
/* Ends the manifest after all rows were added: keeps the remaining rows that are not below
 * `only`, then puts the new manifest in place. */
void manifest_close(struct manifest *manifest, const char *only);

#endif
