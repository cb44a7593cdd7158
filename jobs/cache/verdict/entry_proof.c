/* Compares entries with the pins of all manifests: see entry_proof.h. */
#include "jobs/cache/verdict/entry_proof.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/cache/verdict/content.h"

struct entry_proofs {
	struct store *store;
	struct compile_manifest_set set; /* empty for entry_proofs_of */
	struct compile_manifest const *const *locks;
	const struct compile_manifest *only;
	size_t count;
	json_t *pins; /* {path: {pin: [manifest, graph]}}, the indices of one that has this pin */
	json_t *seen; /* {path: {"pin", "size"} of the bytes there, {pin: bool}; null: absent} */
};

void entry_proofs_freep(struct entry_proofs **proofs)
{
	struct entry_proofs *old = *proofs;

	if (!old)
		return;
	compile_manifest_set_clear(&old->set);
	json_decref(old->pins);
	json_decref(old->seen);
	free(old);
	*proofs = NULL;
}

/* The pin of an entry as text. */
static char *pin_text(uint64_t size, bool tagged, const char *digest)
{
	return mem_format("%llu %s %s", (unsigned long long)size, tagged ? "etag" : "sha256",
			  digest);
}

static char *pin_of(const struct manifest_graph *graph)
{
	return pin_text(graph->size, graph->tagged, graph->digest);
}

static void index_pins(struct entry_proofs *proofs)
{
	for (size_t i = 0; i < proofs->count; i++) {
		const struct compile_manifest *lock = proofs->locks[i];

		for (size_t n = 0; n < lock->count; n++) {
			const struct manifest_graph *graph = &lock->graphs[n];
			AUTO(auto_free) char *pin = pin_of(graph);
			json_t *of_path = json_object_get(proofs->pins, graph->path);

			if (!of_path) {
				of_path = json_object();
				json_object_set_new_nocheck(proofs->pins, graph->path, of_path);
			}
			json_object_set_new_nocheck(
				of_path, pin, json_pack("[I, I]", (json_int_t)i, (json_int_t)n));
		}
	}
}

static struct entry_proofs *entry_proofs_new(struct store *store)
{
	struct entry_proofs *proofs = mem_zero(1, sizeof *proofs);

	proofs->store = store;
	proofs->pins = json_object();
	proofs->seen = json_object();
	return proofs;
}

int entry_proofs_load(struct store *store, struct entry_proofs **ret, struct err **err)
{
	AUTO(entry_proofs_freep) struct entry_proofs *proofs = entry_proofs_new(store);

	if (compile_manifest_set_load(store, &proofs->set, err) < 0)
		return -1;
	proofs->locks = (struct compile_manifest const *const *)proofs->set.locks;
	proofs->count = proofs->set.count;
	index_pins(proofs);
	*ret = TAKE(proofs);
	return 0;
}

struct entry_proofs *entry_proofs_of(struct store *store, const struct compile_manifest *lock)
{
	struct entry_proofs *proofs = entry_proofs_new(store);

	proofs->only = lock;
	proofs->locks = &proofs->only;
	proofs->count = 1;
	index_pins(proofs);
	return proofs;
}

const struct compile_manifest_set *entry_proofs_locks(const struct entry_proofs *proofs)
{
	return proofs->only ? NULL : &proofs->set;
}

bool entry_proofs_differ(const struct entry_proofs *proofs, const struct manifest_graph *graph)
{
	const json_t *of_path = json_object_get(proofs->pins, graph->path);
	AUTO(auto_free) char *pin = pin_of(graph);

	return json_object_size(of_path) > (json_object_get(of_path, pin) ? 1 : 0);
}

/* Gets the entry's pin as it is now, or as it was at the first call. */
static int read_pin(struct entry_proofs *proofs, const char *path, const json_t **ret,
		    struct err **err)
{
	struct content content;
	int found;

	*ret = json_object_get(proofs->seen, path);
	if (*ret)
		return 0;
	found = content_digest(proofs->store, path, &content, err);
	if (found < 0)
		return err_wrap(err, "cannot compare the cache with its compile manifests");
	if (found > 0) {
		AUTO(auto_free)
		char *pin = pin_text(content.size, content.tagged, content.digest);

		json_object_set_new_nocheck(
			proofs->seen, path,
			json_pack("{s:s, s:I}", "pin", pin, "size", (json_int_t)content.size));
	} else {
		json_object_set_new_nocheck(proofs->seen, path, json_null());
	}
	*ret = json_object_get(proofs->seen, path);
	return 0;
}

/* Tells whether a pin from another kind of store holds, in a cache that was copied here. Each pin
 * is compared only once. */
static int holds_elsewhere(struct entry_proofs *proofs, const struct manifest_graph *graph,
			   const char *pin, bool *ret, struct err **err)
{
	json_t *seen = json_object_get(proofs->seen, graph->path);
	struct content content = { .size = graph->size, .tagged = graph->tagged };
	int found;

	*ret = js_bool(seen, pin, false);
	if (json_object_get(seen, pin) || graph->tagged != (store_directory(proofs->store) != NULL))
		return 0;
	memcpy(content.digest, graph->digest, sizeof content.digest);
	found = content_is_elsewhere(proofs->store, graph->path, &content, err);
	if (found < 0)
		return err_wrap(err, "cannot compare the cache with its compile manifests");
	*ret = found > 0;
	json_object_set_new_nocheck(seen, pin, json_boolean(*ret));
	return 0;
}

int entry_proofs_compare(struct entry_proofs *proofs, const struct compile_kind *kind,
			 const struct manifest_graph *graph, struct entry_comparison *ret,
			 struct err **err)
{
	AUTO(auto_free) char *pin = pin_of(graph);
	const json_t *seen, *known;
	const struct compile_manifest *lock;

	*ret = (struct entry_comparison){ .fault = LOCK_MISSING };
	if (read_pin(proofs, graph->path, &seen, err) < 0)
		return -1;
	if (json_is_null(seen))
		return 0;
	ret->size = (uint64_t)js_int(seen, "size", 0);
	ret->fault = strcmp(js_str(seen, "pin"), pin) == 0 ? LOCK_SAME
		     : ret->size != graph->size            ? LOCK_TRUNCATED
							   : LOCK_CHANGED;
	if (ret->fault == LOCK_CHANGED) {
		bool holds;

		if (holds_elsewhere(proofs, graph, pin, &holds, err) < 0)
			return -1;
		if (holds)
			ret->fault = LOCK_SAME;
	}
	known = json_object_get(json_object_get(proofs->pins, graph->path), js_str(seen, "pin"));
	if (ret->fault == LOCK_SAME || !known)
		return 0;
	lock = proofs->locks[json_integer_value(json_array_get(known, 0))];
	if (lock->kind != kind)
		return 0;
	ret->lock = lock;
	ret->graph = &lock->graphs[json_integer_value(json_array_get(known, 1))];
	return 0;
}
