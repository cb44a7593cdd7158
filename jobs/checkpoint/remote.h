/*
 * A checkpoint in a store: listing it, sending it, and checking it again later. Nothing is
 * proved in a store: a listing is compared with the files that were proved in a folder.
 */
#ifndef STK_CHECKPOINT_REMOTE_H
#define STK_CHECKPOINT_REMOTE_H

#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/tree.h"
#include "jobs/store/store.h"

struct remote_file {
	char *path; /* owned: relative to the checkpoint; "" if it is a single file */
	uint64_t size;
	char tag[STORE_TAG];
};

struct remote {
	struct remote_file *items; /* owned; sorted by path */
	size_t count;
};

/* Lists the objects under this name; an empty listing is not an error. `single`: one object of
 * exactly that name, else everything beneath it. */
int remote_list(const struct ckpt_root *root, const char *name, bool single, struct remote *ret,
		struct err **err);
void remote_release(struct remote *remote); /* for AUTO() */
const struct remote_file *remote_find(const struct remote *remote, const char *path);

/* Returns the key of a file of the checkpoint. The caller frees it. */
char *remote_key(const struct ckpt_root *root, const char *name, const char *path);

/* Returns NULL, or how the listing differs from the files of the tree by name and size. The
 * caller frees it. */
char *remote_differs(const struct remote *remote, const struct checkpoint_tree *tree);

/* Adds the tags that the store lists to the files of a mark. Fails if the store's files are not
 * the files of the tree. */
int remote_pin(const struct ckpt_root *root, const char *name, const struct checkpoint_tree *tree,
	       json_t *files, struct err **err);

/* Like checkpoint_mark_holds() and checkpoint_remove(), for a mark in a store. */
int remote_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err);
int remote_remove(const struct ckpt_mark *mark, struct err **err);

/* Uploads the files of the tree, and removes other objects under that name; afterwards the store
 * lists exactly the tree's files. `fn` (may be NULL) is called now and then, and stops the
 * upload by returning false. The next call goes on with an interrupted upload. */
int checkpoint_remote_send(const struct ckpt_root *to, const struct ckpt *ckpt,
			   const struct checkpoint_tree *tree, ckpt_copy_fn fn, void *arg,
			   struct err **err);
/* A byte for each file of a part: an object that another node has uploaded stays as it is. */
enum { PART_SHARED = 1, PART_TAKEN };

/* Uploads the files of the tree except those with a byte set in `skip`, and leaves all other
 * objects there alone. An absent object is only written if no other node writes it first.
 * Returns 1 if done, 0 if another node was first (those files are PART_TAKEN in `skip` now:
 * check them again), -1 with an error. */
int checkpoint_remote_send_part(const struct ckpt_root *to, const struct ckpt *ckpt,
				const struct checkpoint_tree *tree, unsigned char *skip,
				ckpt_copy_fn fn, void *arg, struct err **err);
/* Downloads all objects under that name into `folder`, which must exist. */
int checkpoint_remote_fetch(const struct ckpt_root *from, const char *name, bool single,
			    const char *folder, struct err **err);

#endif
