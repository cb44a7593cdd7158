/*
 * One checkpoint as a store lists it, how it gets there, and how it is looked at again.
 * Nothing is proved there: a listing is compared with what was proved in a folder.
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
	struct remote_file *items; /* owned; by path */
	size_t count;
};

/* What lies under this name; nothing at all is no error. `single`: one object of exactly
 * that name, else everything beneath it. */
int remote_list(const struct ckpt_root *root, const char *name, bool single, struct remote *ret,
		struct err **err);
void remote_release(struct remote *remote); /* for AUTO() */
const struct remote_file *remote_find(const struct remote *remote, const char *path);

/* Key of a file of the checkpoint; yours to free. */
char *remote_key(const struct ckpt_root *root, const char *name, const char *path);

/* NULL, or how the listing differs from the files there are, by name and size; yours to
 * free. */
char *remote_differs(const struct remote *remote, const struct tree *tree);

/* Add the tags of what the store lists to the files of a mark; an error if those are not
 * the files of the tree. */
int remote_pin(const struct ckpt_root *root, const char *name, const struct tree *tree,
	       json_t *files, struct err **err);

/* As ckpt_mark_holds(), ckpt_remove(), of a mark in a store. */
int remote_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err);
int remote_remove(const struct ckpt_mark *mark, struct err **err);

/* Send the files of the tree, and remove what lies under that name and is none of them. `fn`
 * (may be NULL) is called now and then, and stops it by returning false. The store lists
 * exactly the tree's files then. Interrupted, it is gone on with by the next. */
int remote_send(const struct ckpt_root *to, const struct ckpt *ckpt, const struct tree *tree,
		ckpt_copy_fn fn, void *arg, struct err **err);
/* A byte for each file of a part: what another node has brought stays as it is. */
enum { PART_SHARED = 1, PART_TAKEN };

/* Send the files of the tree but those whose byte in `skip` is set, and leave all others that
 * lie there alone; what is not there is only written where nobody else was first. 1, 0 somebody
 * was, and has left PART_TAKEN there: look again, -1. */
int remote_send_part(const struct ckpt_root *to, const struct ckpt *ckpt, const struct tree *tree,
		     unsigned char *skip, ckpt_copy_fn fn, void *arg, struct err **err);
/* All objects under that name into `folder`, which is there. */
int remote_fetch(const struct ckpt_root *from, const char *name, bool single, const char *folder,
		 ckpt_copy_fn fn, void *arg, struct err **err);

#endif
