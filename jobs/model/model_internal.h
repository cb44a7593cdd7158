/* Shared by the files of this box: keys, and the form of entries and pointers. */
#ifndef STK_MODEL_MODEL_INTERNAL_H
#define STK_MODEL_MODEL_INTERNAL_H

#include "jobs/model/model.h"

#define MODEL_POINTER  "current.json"
#define MODEL_ENTRIES  "entries/"
#define MODEL_VERSIONS "versions/"

#define MODEL_POINTER_MAX ((size_t)64 << 10)

struct model {
	struct store *store; /* owned */
	char *name;          /* NULL: any */
};

/* ---- keys (model_key.c) ---- */

/* True for a SHA-256 in lower-case hex. */
bool model_is_digest(const char *text);
/* The key of an entry; the caller frees it. */
char *model_entry_key(int64_t generation);
/* The folder of a version's model files: "versions/<run>/model/"; the caller frees it. */
char *model_files_prefix(const char *run);
/* The key of a list of data that a version keeps; the caller frees it. */
char *model_list_key(const char *run, const char *sha256);

/* ---- form (model_form.c) ---- */

/* Bytes of an entry or a pointer: one line of JSON whose last member, "sum", is the SHA-256 of the
 * line without it. So a changed byte shows in the object itself, and not only in what refers to it.
 * Takes `body` and adds the member; the caller frees the text. */
char *model_seal(json_t *body);

/* Parses the bytes of entry `generation`; `name` as in model_open(), `what` names the object in
 * errors: EXIT_REFUSED, with `damage` unless its format or its name is another. */
int model_entry_parse(const char *bytes, size_t len, const char *what, int64_t generation,
		      const char *name, struct model_entry *ret, struct err **err);

/* ---- pointer (model_pointer.c) ---- */

struct model_pointer {
	int64_t generation; /* 0: there is none */
	char digest[SHA256_HEX];
	char seen[SHA256_HEX]; /* of the version's cumulative list; "": the entry tells */
	char run[64];          /* of that version; "" likewise */
	char tag[STORE_TAG];
};

/* Parses the bytes of a pointer, as model_entry_parse(); in model_form.c. */
int model_pointer_parse(const char *bytes, size_t len, const char *what, const char *name,
			struct model_pointer *ret, struct err **err);
/* Returns 1, 0 if there is none, -1. */
int model_pointer_read(struct model *model, struct model_pointer *ret, struct err **err);
/* Makes the entry current in place of the pointer that was read. Returns 1, 0 if another process
 * has written it meanwhile, -1. */
int model_pointer_write(struct model *model, const struct model_pointer *was,
			const struct model_entry *entry, struct err **err);

/* ---- verification (model_verify.c, model_look.c) ---- */

/* An object that entries name. */
struct model_object {
	char *key; /* owned */
	uint64_t size;
	char sha256[SHA256_HEX];
};
void model_objects_free(struct model_object *objects, size_t count);

struct model_verifying {
	struct model *model;
	const struct model_verification *how;
	struct model_verified *ret;
	json_t *told;           /* owned: {object: true} of what differs */
	json_t *seen;           /* owned: {key: sha256} of objects to look at */
	json_t *outputs;        /* owned: those of the entries, newest first; model_outputs.c */
	int64_t listed, newest; /* entries: how many, the highest number */
	json_t *removed;        /* owned: of the newest entry */
	bool head_found;
	struct model_object *objects;
	size_t count;
};

/* Each object is told once, with what was seen first. */
void model_verify_differs(struct model_verifying *v, const char *object, const char *why);
void model_verify_unchecked(struct model_verifying *v, const char *object, const char *why);
/* Looks at objects of a store, the model folder's or another, and tells what differs. */
int model_verify_objects(struct model_verifying *v, struct store *store,
			 const struct model_object *objects, size_t count, struct err **err);

/* The outputs of inference that the versions name (model_outputs.c): notes those of an entry, and
 * looks at all that can be reached. */
void model_verify_note_outputs(struct model_verifying *v, int64_t generation,
			       const json_t *version);
void model_verify_outputs(struct model_verifying *v);

#endif
