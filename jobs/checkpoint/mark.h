/* What the files about marks share. */
#ifndef STK_CHECKPOINT_MARK_H
#define STK_CHECKPOINT_MARK_H

#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/tree.h"
#include "jobs/store/store.h"

/* Append {"url","why"}; NULL takes nothing. */
void mark_reject(json_t *rejected, const char *url, const char *why);

/* NULL: names, sizes and ends are as they were; else why not. Yours to free. */
char *mark_files_differ(const struct ckpt_mark *mark, const struct tree *tree);

/* The members "files" of a mark without tags: a new reference. */
int mark_files_of(const struct tree *tree, json_t **ret, struct err **err);
/* The whole of a mark: a new reference. */
json_t *mark_body(const struct ckpt *ckpt, const char *url, const struct ckpt_owner *owner,
		  struct utc at, json_t *files);
/* 1 written, 0 there is one, -1. */
int mark_put(const struct ckpt_root *root, const char *name, const json_t *body, struct err **err);

/* ---- where the marks of a root lie ---- */

#define MARK_FOLDER "marks/" /* in a store */

struct mark_place {
	struct store *store; /* borrowed, or `own` */
	struct store *own;
	char *prefix; /* owned: what the keys of marks begin with */
};

int mark_place_open(const struct ckpt_root *root, struct mark_place *ret, struct err **err);
void mark_place_close(struct mark_place *place); /* for AUTO() */

/* ---- marks that are not read yet ---- */

struct mark_name {
	const struct ckpt_root *root; /* borrowed */
	char *name;                   /* owned: of the checkpoint */
	int64_t step;                 /* by its name; -1: it tells none */
};

struct mark_names {
	struct mark_name *items; /* owned */
	size_t count;
};

void mark_names_release(struct mark_names *names); /* for AUTO() */
/* Those of a root are added; in no order. */
int mark_names_add(struct mark_names *names, const struct ckpt_root *root, struct err **err);
/* Highest step first, then highest attempt. */
void mark_names_sort(struct mark_names *names);

/* 1, 0 it is none (then it is rejected), -1. */
int mark_read(const struct ckpt_root *root, const char *name, struct ckpt_mark *ret,
	      json_t *rejected, struct err **err);

#endif
