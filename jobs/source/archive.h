/*
 * Source bundles: gzip-compressed tar, the same bytes for the same files on every machine (same
 * libarchive and libdeflate). Only this code uses libarchive. It serves the packer and the node
 * agent that unpacks; it needs only base.
 *
 * A bundle holds regular files (0644 or 0755) and symbolic links that stay inside it, sorted by
 * path, with no times, owners or folders of their own.
 */
#ifndef STK_SOURCE_ARCHIVE_H
#define STK_SOURCE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

/* Limits for both directions: an archive beyond them is neither made nor unpacked. */
#define ARCHIVE_FILES_MAX 200000
#define ARCHIVE_BYTES_MAX ((uint64_t)1 << 30) /* bytes of content, 1 GiB */

struct archive_member {
	const char *path;   /* relative, UTF-8, no empty, "." or ".." part */
	unsigned mode;      /* 0100644, 0100755 or 0120000 */
	uint64_t size;      /* bytes of content; for a link, of its target */
	const char *sha256; /* expected digest of the content; NULL: not checked */
};

/* Receives a member's content. A link's content is its target. */
struct archive_sink;
int archive_sink_add(struct archive_sink *sink, const void *bytes, size_t len, struct err **err);

/* Adds all that is left to read of an open file; `path` is used in errors. */
int archive_sink_add_file(struct archive_sink *sink, int fd, const char *path, struct err **err);

/* Pushes the whole content of `member` into `sink`. */
typedef int (*archive_fill_fn)(void *arg, const struct archive_member *member,
			       struct archive_sink *sink, struct err **err);

/* Writes the members (sorted by path in byte order, each once) to `fd`. Content of another size or
 * digest than announced is an error. */
int archive_pack(int fd, const struct archive_member *members, size_t count, archive_fill_fn fill,
		 void *arg, struct err **err);

/* Unpacks into the new folder `dest` (0700), which appears whole or not at all; refuses if anything
 * has that name. The content is not trusted: absolute names, "..", writing through links, links
 * that lead out, hard links, devices, set-id bits, names that come twice and more than the limits
 * are errors. */
int archive_unpack(const char *path, const char *dest, struct err **err);

/* True if a link at `path` with this target stays inside the tree: relative, ".." only in front and
 * never above the top, so that no other link on the way can bend it outwards. */
bool archive_link_inside(const char *path, const char *target);

#endif
