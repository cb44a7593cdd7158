/*
 * The user's source, pinned by content: exactly what will run.
 *
 * A pin names every file that is included, with mode, size and SHA-256, and one digest over that
 * list. Making one changes nothing anywhere. Publishing it packs the same files into the workspace
 * under that digest, once.
 *
 * Included files: in a git work tree those that git tracks and those that it would show as
 * untracked; in a plain folder all that no `.gitignore` in it excludes; never `.git`, nor a folder
 * that stoker itself writes or wrote; of the files that tools leave behind (`__pycache__`, virtual
 * environments, …) only those that git tracks. A checked-out submodule counts with its own files,
 * judged by its own repository. `include` narrows the choice, `link` takes paths out of it. Empty
 * folders are not kept.
 *
 * No hook and no filter of the repository runs, so a file counts as it lies in the work tree (Git
 * LFS: the real content, if it is checked out).
 *
 * A repository is read in a process of its own, with a deadline: see pin_aside.h.
 *
 * Errors: EXIT_SPEC for mistakes in the spec (with the field's name), EXIT_REFUSED for obstacles on
 * this machine.
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
	char *const *link;    /* paths below root that reach the nodes otherwise; may be NULL */
	/* File of stoker's own with the digests of files read earlier: read by source_pin, written
	 * by source_publish. NULL: everything is read each time. */
	const char *memory;
	char *const *own;    /* absolute paths that stoker itself writes (state, workspace,
			      * cache, …): never part of the source; may be NULL */
	char *const *former; /* the same of earlier times; one may be the root itself */
};

struct source_file {
	char *path;    /* relative to the root */
	unsigned mode; /* 0100644, 0100755 or 0120000: a link; its content is the target */
	uint64_t size;
	char sha256[SHA256_HEX];
	/* Digest of what a compiler can see of the file (python_text.h); "": the same as
	 * `sha256`. */
	char reduced[SHA256_HEX];
};

struct source_pin {
	char kind[8];              /* "git" or "dir" */
	char commit[65];           /* full id; "" for a plain folder and before the first commit */
	bool dirty;                /* something included differs from that commit */
	char *dirty_files;         /* the first few and how they differ; NULL if clean */
	char *patch;               /* the difference as text, cut at 8 MiB; NULL if clean */
	struct source_file *files; /* by path (strcmp) */
	size_t count;
	char digest[SHA256_HEX]; /* SHA-256 over that list: the name of the bundle */
	struct sb digests;       /* new content of request.memory; empty: unchanged, or no memory */
};

/* Pins a source. Reads the included files once, on all cores. A file that request.memory knows and
 * that has not been touched since (digest_cache.h) is only looked at. */
int source_pin(const struct source_request *request, struct source_pin **ret, struct err **err);
void source_pin_freep(struct source_pin **pin);

/* Packs the files of `pin` (and no others) as `sources/<digest>.tar.gz`, and its patch as
 * `sources/<digest>.patch`, unless they are there; remembers its digests. Of the request only root,
 * rev and memory count. A file that is no longer what was pinned is an error: "changed while
 * packing". */
int source_publish(const struct source_request *request, const struct source_pin *pin,
		   struct store *workspace, struct err **err);

/* Computes SHA-256 of what a compiler can see of a single file elsewhere. */
int source_file_digest(const char *path, char ret[SHA256_HEX], struct err **err);

/* Returns "sources/<digest>.tar.gz". The caller frees it. */
char *source_bundle_key(const char *digest);

#endif
