/*
 * Staged writes into the local directory of a sync: files are written under temporary names
 * beside their places, made durable in groups, and then renamed. Nothing is written outside
 * the directory or through a link. Folders are made as needed.
 *
 * A key that cannot be a file here is refused, which is not an error: `why` is the end of a
 * sentence ("has a part '..'").
 *
 * A temporary file is locked as long as its sync lives, so that staged_write_sweep() can
 * recognise and remove the files of a killed sync.
 */
#ifndef STK_STORE_STAGED_WRITE_H
#define STK_STORE_STAGED_WRITE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "jobs/store/store_dir.h"

struct staged_write;
struct staged_write_folder;

/* A staged file. Initialise with STAGED_WRITE_FILE_INIT. */
struct staged_write_file {
	int fd; /* open for writing */
	struct staged_write_folder *folder;
	const char *name; /* borrowed from the key */
	bool known;
	/* Reason to refuse an existing name that is not `known`; NULL: it is replaced. */
	const char *if_taken;
	bool named;      /* has its final name */
	const char *why; /* reason for a refusal; NULL if not refused */
	struct stat st;  /* valid once `named` */
	char temp[sizeof(STORE_RESERVED) + 24];
};
#define STAGED_WRITE_FILE_INIT ((struct staged_write_file){ .fd = -1 })

/* Opens the directory for staged writes, making it if need be. */
int staged_write_open(struct store_dir *store, struct staged_write **ret, struct err **err);
void staged_write_freep(struct staged_write **staged); /* after its files; for AUTO() */
/* Returns the descriptor of the directory itself. */
int staged_write_root(const struct staged_write *staged);

/* Returns 1 with a file to be written, 0 if the key is refused (`ret->why` says why), -1 with an
 * error. The key must live as long as the file. `known`: the directory was seen to have a file
 * of exactly this name. */
int staged_write_begin(struct staged_write *staged, const char *key, bool known,
		       struct staged_write_file *ret, struct err **err);
/* Closes the file, and removes it if it has no final name. */
void staged_write_drop(struct staged_write_file *file);

/* Commits complete files: on return their content is durable and they have their names, except
 * those that turn out to be refused. The new names are durable before the next call gives any,
 * and when staged_write_finish() returns. If it returns -1, the state of some files is unknown. */
int staged_write_commit(struct staged_write *staged, struct staged_write_file *const *files,
			size_t count, struct err **err);
int staged_write_finish(struct staged_write *staged, struct err **err);

/* Returns true if the name is reserved: a temporary file of any process, or another file that is
 * deliberately not an object. With `remove`, a temporary file of this module that no process
 * holds locked is removed. */
bool staged_write_sweep(int dir, const char *name, bool remove);

#endif
