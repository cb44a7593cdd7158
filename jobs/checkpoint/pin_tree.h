/*
 * The tree of a model of which only the names are here: its objects in a store, or the list of a
 * pin. What a kind reads of it (metadata, indexes) is downloaded.
 */
#ifndef STK_CHECKPOINT_PIN_TREE_H
#define STK_CHECKPOINT_PIN_TREE_H

#include "jobs/checkpoint/candidate.h"

struct pin_tree {
	struct checkpoint_tree tree;  /* begin with TREE_INIT */
	const struct ckpt_root *root; /* borrowed */
	char *name;                   /* owned */
	json_t *files;                /* owned: "path", "size", "tag" of each */
	struct err *why;              /* a file could not be had: of the store, not of the model */
};

void pin_tree_release(struct pin_tree *far); /* for AUTO() */

/* Lists the object of this name, or else all beneath it. The root, and `far` itself, must stay in
 * place. Returns 1, 0 if nothing is there, -1 with an error. */
int pin_tree_list(struct pin_tree *far, const struct ckpt_root *root, const char *name,
		  struct err **err);
/* Takes the names from the list of a pin; nothing can be read. */
void pin_tree_name(struct pin_tree *far, const json_t *files);

#endif
