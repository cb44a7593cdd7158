/*
 * Digests of files, remembered from one pin of a source folder to the next, so that
 * what has not been touched since need not be read again.
 *
 * A file counts as untouched if device, inode, size, mode and both times are to the
 * nanosecond what they were. The time of its last change (ctime) cannot be set by a
 * program, so what is written and dated back is noticed. What had been changed in the
 * two seconds before it was read is not remembered: it may be written again within one
 * tick of the file system's clock. As with git's index, a program that keeps writing
 * through a mapping that it made before is not noticed until the system writes that back.
 */
#ifndef STK_SOURCE_DIGESTS_H
#define STK_SOURCE_DIGESTS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"

#define DIGESTS_BYTES ((size_t)256 << 20) /* 200,000 files with long paths */

#define DIGESTS_MARK 88 /* room for that of a repository */

struct digest_row {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
	uint32_t mode, path_len;
	char sha256[SHA256_HEX]; /* with its NUL, as the path that follows the row */
	char pad[7];
};

/* What a file of digests holds. Start from { 0 }. */
struct digests {
	struct sb bytes;
	char mark[DIGESTS_MARK]; /* "" if there is none */
	size_t at, end;          /* of the next row, behind the last */
};

/* A file that is not there, not whole or not ours is one that remembers nothing. `path`
 * NULL: the same. */
void digests_load(struct digests *ret, const char *path);
void digests_release(struct digests *digests); /* for AUTO() */

/* The row of a file, NULL if there is none. To be asked in order of paths (strcmp).
 * Borrowed. */
const struct digest_row *digests_next(struct digests *digests, const char *path);
bool digest_holds(const struct digest_row *row, const struct stat *st);

/* Make a new one, with the mark that comes back in digests.mark: begin, each file in order of
 * paths, end. `begun`: before the first of them was looked at. */
void digests_begin(struct sb *ret, const char *mark);
void digests_add(struct sb *ret, const char *path, const struct stat *st, const char *sha256,
		 struct utc begun);
void digests_end(struct sb *ret);

/* Write it to where digests_load() looks; what lies beside it and was not written for
 * DIGESTS_DAYS belongs to folders that nobody runs any more, and is removed. Best effort:
 * without it everything is read again. */
#define DIGESTS_DAYS 30
void digests_keep(const char *path, const struct sb *bytes);

#endif
