/*
 * Digests of files, remembered from one pin of a source folder to the next, so that files that were
 * not touched since need not be read again.
 *
 * A file counts as untouched if device, inode, size, mode and both times are the same, to the
 * nanosecond. The time of the last change (ctime) cannot be set by a program, so a file that is
 * written and dated back is noticed. A file that was changed less than two seconds before reading
 * began, or later, is not remembered: it may be written again within one tick of the file system's
 * clock. As with git's index, a program that keeps writing through a mapping that it made before is
 * not noticed until the system writes that back.
 */
#ifndef STK_SOURCE_DIGEST_CACHE_H
#define STK_SOURCE_DIGEST_CACHE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"

#define DIGEST_CACHE_BYTES ((size_t)256 << 20) /* 200,000 files with long paths */

#define DIGEST_CACHE_MARK 88 /* room for the mark of a repository */

struct digest_row {
	struct fs_stamp stamp;
	uint32_t mode, path_len;
	char sha256[SHA256_HEX]; /* with its NUL, as is the path behind the row */
	char is_reduced;         /* a second digest follows the path, with its NUL */
	char pad[6];
};

/* Content of a file of digests. Start from { 0 }. */
struct digest_cache {
	struct sb bytes;
	char mark[DIGEST_CACHE_MARK]; /* "" if absent */
	size_t at, end;               /* offset of the next row, end of the last */
};

/* Loads a file of digests. A file that is absent, damaged or of another form counts as empty; so
 * does `path` NULL. */
void digest_cache_load(struct digest_cache *ret, const char *path);
void digest_cache_release(struct digest_cache *digests); /* for AUTO() */

/* Returns the row of a file, NULL if absent. Must be called in order of paths (strcmp).
 * Borrowed. */
const struct digest_row *digest_cache_next(struct digest_cache *digests, const char *path);
/* Returns the second digest of a row (source_file.reduced); "" if absent. Borrowed. */
const char *digest_reduced(const struct digest_row *row);
bool digest_holds(const struct digest_row *row, const struct stat *st);

/* Make a new file of digests: begin, each file in order of paths, end. The next load returns the
 * mark in digests.mark. `begun`: a time before the first file was looked at. */
void digest_cache_begin(struct sb *ret, const char *mark);
void digest_cache_add(struct sb *ret, const char *path, const struct stat *st, const char *sha256,
		      const char *reduced, struct utc begun);
void digest_cache_end(struct sb *ret);

/* Writes the file that digest_cache_load() reads. Files beside it that were not written for
 * DIGEST_CACHE_DAYS belong to folders that nobody runs any more, and are removed. Best effort:
 * without the file everything is read again. */
#define DIGEST_CACHE_DAYS 30
void digest_cache_keep(const char *path, const struct sb *bytes);

#endif
