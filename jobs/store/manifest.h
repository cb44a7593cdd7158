/*
 * What a sync remembers: of each key, which file and which object were found to be equal,
 * so that the next one need read neither. It lies in the near directory, a file of a
 * reserved name for each far store, and is read and written as a stream in key order.
 *
 * A row speaks for a file only as long as device, inode, size and both times are to the
 * nanosecond what they were (the time of its last change cannot be set by a program), and
 * for an object as long as size and tag are. Whoever adds a row makes sure that the file
 * was not written to in the same moment in which it was looked at.
 *
 * It is only ever replaced as a whole. What a killed sync had written of a new one counts,
 * up to its last whole row, with the old one's rows behind that. Of two syncs at once
 * between the same places one writes it. Without one, or where it cannot be written,
 * everything is compared by content: so nothing here is an error.
 */
#ifndef STK_STORE_MANIFEST_H
#define STK_STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/store/store.h"

struct manifest;

struct manifest_file {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};

struct manifest_row {
	const char *key; /* borrowed, until the next is asked for */
	struct manifest_file file;
	char tag[STORE_TAG];
};

void manifest_describe(const struct stat *st, struct manifest_file *ret);
bool manifest_holds(const struct manifest_row *row, const struct stat *st, uint64_t size,
		    const char *tag);

/* Of the folder `dir` (open, the caller's) and the store at `url`. `writes` false: it will
 * not be changed. Never NULL. */
struct manifest *manifest_open(int dir, const char *url, bool writes);
/* Without manifest_close(): what was written so far stays to be found by the next. */
void manifest_freep(struct manifest **manifest); /* for AUTO() */

/* The remembered row of a key, NULL if there is none; to be asked in key order. Rows on the
 * way there whose keys do not begin with `only` (NULL: all do) are kept. */
const struct manifest_row *manifest_find(struct manifest *manifest, const char *key,
					 const char *only);
/* A row for the new one, in key order. */
void manifest_add(struct manifest *manifest, const struct manifest_row *row);
/* What was added outlives this process from here on. */
void manifest_flush(struct manifest *manifest);
/* All rows are added: the rest that is not of `only` is kept, and the new one is there. */
void manifest_close(struct manifest *manifest, const char *only);

#endif
