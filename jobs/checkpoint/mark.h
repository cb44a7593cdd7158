/* Functions shared by the files about marks. */
#ifndef STK_CHECKPOINT_MARK_H
#define STK_CHECKPOINT_MARK_H

#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/tree.h"
#include "jobs/store/store.h"

/* Appends {"url","why"} to `rejected`, if that is not NULL. */
void mark_reject(json_t *rejected, const char *url, const char *why);

/* Returns NULL if names, sizes and ends match the mark, else why not. The caller frees it. */
char *mark_files_differ(const struct ckpt_mark *mark, const struct checkpoint_tree *tree);

/* Builds the member "files" of a mark, without tags: a new reference. */
int mark_files_of(const struct checkpoint_tree *tree, json_t **ret, struct err **err);
/* Builds a whole mark: a new reference. */
json_t *mark_body(const struct ckpt *ckpt, const char *url, const struct ckpt_owner *owner,
		  struct utc at, json_t *files);
/* Returns 1 if written, 0 if the mark exists already, -1 with an error. */
int mark_put(const struct ckpt_root *root, const char *name, const json_t *body, struct err **err);

/* ---- place of the marks of a root ---- */

#define MARK_FOLDER "marks/" /* in a store */

struct mark_place {
	struct store *store; /* borrowed, or `own` */
	struct store *own;
	char *prefix; /* owned; prefix of the keys of marks */
};

int mark_place_open(const struct ckpt_root *root, struct mark_place *ret, struct err **err);
void mark_place_close(struct mark_place *place); /* for AUTO() */

/* ---- marks that are not read yet ---- */

struct mark_name {
	const struct ckpt_root *root; /* borrowed */
	char *name;                   /* owned; name of the checkpoint */
	int64_t step;                 /* from its name; -1: no step in it */
};

struct mark_names {
	struct mark_name *items; /* owned */
	size_t count;
};

void mark_names_release(struct mark_names *names); /* for AUTO() */
/* Adds the names of the marks in a root, in no order. */
int mark_names_add(struct mark_names *names, const struct ckpt_root *root, struct err **err);
/* Sorts by highest step, then highest attempt. */
void mark_names_sort(struct mark_names *names);

/* Returns 1, 0 if it is absent or not a valid mark (which is rejected), -1 with an error. */
int mark_read(const struct ckpt_root *root, const char *name, struct ckpt_mark *ret,
	      json_t *rejected, struct err **err);

#endif
