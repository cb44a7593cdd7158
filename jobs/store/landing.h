/*
 * The near side of a sync as it is written to: files come under temporary names beside
 * their places, are made durable many at once, and then get their names. Nothing outside
 * the directory is written, and nothing through a link; folders are made as needed.
 *
 * Keys that cannot be files here are refused, which is no error: `why` is the end of a
 * sentence ("has a part '..'").
 *
 * A temporary file is locked as long as its sync lives, so that what a killed one has left
 * is known as such, and goes (landing_sweep).
 */
#ifndef STK_STORE_LANDING_H
#define STK_STORE_LANDING_H

#include <stdbool.h>
#include <sys/stat.h>

#include "jobs/store/store_dir.h"

struct landing;
struct landing_folder;

/* A file on its way to its name. Start from LANDING_FILE_INIT. */
struct landing_file {
	int fd; /* open to be filled */
	struct landing_folder *folder;
	const char *name; /* borrowed from the key */
	bool known;
	bool exclusive;  /* unless known, nothing of that name is replaced */
	bool named;      /* has its name */
	const char *why; /* it cannot have: refused */
	struct stat st;  /* once named */
	char temp[sizeof(STORE_RESERVED) + 24];
};
#define LANDING_FILE_INIT ((struct landing_file){ .fd = -1 })

/* The directory is made if need be. */
int landing_open(struct store_dir *store, struct landing **ret, struct err **err);
void landing_freep(struct landing **landing); /* after its files; for AUTO() */
/* The directory itself, open. */
int landing_root(const struct landing *landing);

/* 1 with a file to be filled; 0 refused, and `ret->why` says why; -1. The key must live as
 * long as the file. `known`: the directory was seen to have a file of exactly this name. */
int landing_begin(struct landing *landing, const char *key, bool known, struct landing_file *ret,
		  struct err **err);
/* One that will not have its name is removed. */
void landing_drop(struct landing_file *file);

/* They are complete: their content is durable, and they have their names, when this returns,
 * but for those that turn out to be refused. The names are durable before those of the next
 * call are given, and when landing_finish() returns. -1: of some nothing is known. */
int landing_commit(struct landing *landing, struct landing_file *const *files, size_t count,
		   struct err **err);
int landing_finish(struct landing *landing, struct err **err);

/* True if the name is that of a temporary file, of anybody's, or of another that is no
 * object by intent. With `remove`, one of ours that nobody fills any more goes. */
bool landing_sweep(int dir, const char *name, bool remove);

#endif
