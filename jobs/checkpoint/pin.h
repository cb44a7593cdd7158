/*
 * A pin: the files of one model as they were when a run was given it (its parent, a baseline) or
 * had made it (a candidate). A model is one checkpoint of any kind, also under a name that no step
 * is in: a file of torch.save or safetensors, or a folder.
 *
 *   <workspace>/pins/<digest>.json
 *   {"v":1, "url": absolute path or URL, "kind", "device", "world_size": as in its mark (absent:
 *    not known), "files": [{"path": relative to the model ("" if it is a single file), "size":
 *    bytes, "ends": as in a mark (absent: not known), "tag": in a store, of the object, "sha256":
 *    of the whole file (absent: not known)}…]}
 *
 * The digest is js_digest() of this object: the name proves the content, and one digest in an
 * order pins all files. A pin is written by whoever gives the run its model, before the run has an
 * attempt; the agents of all attempts read it. Pins are small, and are not removed with a run.
 *
 * A model proves complete as a checkpoint does (checkpoint.h), but for its older siblings and for
 * pointers beside it, which name the newest only. If it has a mark, it must be unchanged since it
 * was marked. In a store only the rules of its kind are checked before a job; the format of each
 * file is proved on the node that has downloaded it.
 *
 * Errors are for the user: EXIT_REFUSED with `damage` names the file that is damaged, missing or
 * changed, and the cure; a service that does not answer is EXIT_UNREACHABLE.
 */
#ifndef STK_CHECKPOINT_PIN_H
#define STK_CHECKPOINT_PIN_H

#include "jobs/checkpoint/checkpoint.h"

struct ckpt_pin {
	char *url;                    /* owned */
	const struct ckpt_kind *kind; /* never `auto` */
	char *device;       /* owned; type of the machine that saved it; NULL: not known */
	int64_t world_size; /* of the processes that saved it; 0: not known */
	json_t *files;      /* owned; as above, sorted by path */
	uint64_t bytes;
	char digest[SHA256_HEX];
};

void checkpoint_pin_release(struct ckpt_pin *pin); /* for AUTO() */

/* Proves the model at `url` (an absolute path, links in it followed, or a URL) now, and pins it.
 * `kind` may be `auto`. `hint`: the cure of what is the user's to correct, for example "correct
 * parent.from"; borrowed for the call. */
int checkpoint_pin_take(const char *url, const struct ckpt_kind *kind, const char *hint,
			struct ckpt_pin *ret, struct err **err);

/* Pins a model of which the files are known: `files` as above; its reference is not taken. Nothing
 * is looked at. Returns -1 (EXIT_REFUSED) if they are not as above. */
int checkpoint_pin_known(const char *url, const struct ckpt_kind *kind, const json_t *files,
			 struct ckpt_pin *ret, struct err **err);

/* Checks that a training of so many processes (0: not known) can load it: EXIT_REFUSED if the files
 * of its kind depend on the world size, and it was saved by another. */
int checkpoint_pin_fits(const struct ckpt_pin *pin, int64_t world_size, struct err **err);

/* Writes the pin into a workspace; repeated, it changes nothing. */
int checkpoint_pin_put(const struct ckpt_pin *pin, struct store *workspace, struct err **err);
/* Reads it again. One that is not there, or not what the digest says, is EXIT_REFUSED. */
int checkpoint_pin_get(struct store *workspace, const char *digest, struct ckpt_pin *ret,
		       struct err **err);

/* Brings the model into `folder` of a node, if it does not lie in a folder of this machine already,
 * and proves that it is what was pinned, and complete. `ret_path` is where it is; the caller frees
 * it. What an interrupted download left is used. */
int checkpoint_pin_fetch(const struct ckpt_pin *pin, const char *folder, char **ret_path,
			 struct err **err);

/* Returns the SHA-256 of each file of a model that lies at `path`, as members "path", "size",
 * "sha256": a new array in *ret. It reads all bytes. */
int checkpoint_pin_sums(const char *path, json_t **ret, struct err **err);

#endif
