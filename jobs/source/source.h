/*
 * What exactly will run: the user's source, pinned by content.
 *
 * A pin names every file that is included, with mode, size and SHA-256, and
 * one digest over that list. Making one changes nothing anywhere. Publishing
 * it packs the same files into the workspace under that digest, once.
 *
 * Which files: in a git work tree those that git tracks and those that it
 * would show as untracked; in a plain folder all that no `.gitignore` in it
 * excludes; never `.git`. A checked-out submodule counts with its own files,
 * judged by its own repository. `include` narrows the choice, `link` takes
 * paths out of it. Empty folders are not kept.
 *
 * No hook and no filter of the repository runs, so a file counts as it lies
 * in the work tree (Git LFS: the real content, if it is checked out).
 *
 * Errors: EXIT_SPEC for what the spec says wrongly (with the field's name),
 * EXIT_REFUSED for what is in the way on this machine.
 */
#ifndef STK_SOURCE_SOURCE_H
#define STK_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"
#include "jobs/store/store.h"

struct source_request {
	const char *root;     /* absolute path of the folder that source.path names */
	const char *rev;      /* NULL or "HEAD": the work tree; else that commit's files */
	bool allow_dirty;     /* take a work tree that differs from its commit */
	char *const *include; /* globs (pattern.h), NULL-terminated; NULL or none: everything */
	char *const *link;    /* paths below root that are brought along otherwise; may be NULL */
	/* A file of our own in which digests of what was read are remembered: read by
	 * source_pin, written by source_publish. NULL: everything is read each time. */
	const char *memory;
	char *const *own; /* absolute paths of what we ourselves write (state, workspace,
			   * cache): never part of the source; may be NULL */
};

struct source_file {
	char *path;    /* relative to the root */
	unsigned mode; /* 0100644, 0100755 or 0120000: a link, whose content is its target */
	uint64_t size;
	char sha256[SHA256_HEX];
};

struct source_pin {
	char kind[8];              /* "git" or "dir" */
	char commit[65];           /* full id; "" for a plain folder and before the first commit */
	bool dirty;                /* something included differs from that commit */
	char *dirty_files;         /* the first few and how, for messages; NULL if clean */
	char *patch;               /* the difference as text, cut at 8 MiB; NULL if clean */
	struct source_file *files; /* by path (strcmp) */
	size_t count;
	char digest[SHA256_HEX]; /* SHA-256 over that list: the name of the bundle */
	struct sb digests; /* what request.memory is to hold; empty: it does, or there is none */
};

/* Reads the included files once, on all cores; those of which request.memory knows,
 * and which have not been touched since, it only looks at (see digests.h for when that
 * is so). */
int source_pin(const struct source_request *request, struct source_pin **ret, struct err **err);
void source_pin_freep(struct source_pin **pin);

/* Pack the files of `pin` (and no others) as `sources/<digest>.tar.gz`, and its
 * patch as `sources/<digest>.patch`, unless they are there; remember its digests.
 * Of the request only root, rev and memory count. A file that is no longer what was pinned is an
 * error: "changed while packing". */
int source_publish(const struct source_request *request, const struct source_pin *pin,
		   struct store *workspace, struct err **err);

/* "sources/<digest>.tar.gz". Yours to free. */
char *source_bundle_key(const char *digest);

#endif
