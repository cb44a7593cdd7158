/* Keeps the manifests of one cache consistent when a graph that several of them name had to be
 * compiled again: see compile_manifest.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/verdict/entry_proof.h"

/* Takes over the pin and the run that proved it. */
static void take_over(struct manifest_graph *graph, const struct entry_comparison *proved)
{
	const struct manifest_graph *from = proved->graph;

	graph->size = from->size;
	graph->tagged = from->tagged;
	memcpy(graph->digest, from->digest, sizeof graph->digest);
	free(graph->proved_by);
	graph->proved_by = mem_copy(from->proved_by ? from->proved_by : proved->lock->run);
	graph->proved_at = from->proved_by ? from->proved_at : proved->lock->created;
}

/* Tries once. Returns the number of pins taken over, -1 with an error, -2 if the manifest
 * changed. */
static int64_t try_refresh(struct store *store, const char *graph_key, struct entry_proofs *proofs,
			   struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *damage = NULL;
	char tag[STORE_TAG];
	int64_t taken = 0;
	int done = compile_manifest_file_get(store, graph_key, &lock, tag, &damage, err);

	if (done <= 0)
		return done;
	for (size_t i = 0; i < lock->count; i++) {
		struct manifest_graph *graph = &lock->graphs[i];
		struct entry_comparison entry_comparison;

		if (!entry_proofs_differ(proofs, graph))
			continue;
		if (entry_proofs_compare(proofs, lock->kind, graph, &entry_comparison, err) < 0)
			return -1;
		if (!entry_comparison.graph)
			continue;
		take_over(graph, &entry_comparison);
		taken++;
	}
	if (taken == 0)
		return 0;
	done = compile_manifest_file_replace(store, lock, tag, err);
	return done > 0 ? taken : done < 0 ? -1 : -2;
}

static int too_busy(const char *graph_key, struct err **err)
{
	return err_set(err, EXIT_UNREACHABLE,
		       "cannot refresh the compile manifest '%s': other processes keep changing it",
		       graph_key);
}

int compile_manifest_refresh(struct store *store, const char *graph_key, int64_t *ret_taken,
			     struct err **err)
{
	int64_t taken = -2;

	if (!compile_manifest_key_is_good(graph_key))
		return err_set(err, EXIT_DEFECT, "invalid graph key '%s'", graph_key);
	for (int i = 0; taken == -2 && i < LOCK_TRIES; i++) {
		AUTO(entry_proofs_freep) struct entry_proofs *proofs = NULL;

		if (entry_proofs_load(store, &proofs, err) < 0)
			return -1;
		taken = try_refresh(store, graph_key, proofs, err);
	}
	if (taken == -1)
		return err_wrap(err, "cannot refresh the compile manifest");
	if (taken == -2)
		return too_busy(graph_key, err);
	*ret_taken = taken;
	return 0;
}

static bool any_differs(const struct entry_proofs *proofs, const struct compile_manifest *lock)
{
	for (size_t i = 0; i < lock->count; i++)
		if (entry_proofs_differ(proofs, &lock->graphs[i]))
			return true;
	return false;
}

/* Refreshes one other manifest. Returns the result as a row; NULL if nothing had to change. */
static json_t *refresh_other(struct store *store, const struct compile_manifest *other,
			     struct entry_proofs *proofs)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t taken = -2;
	json_t *row;

	for (int i = 0; taken == -2 && i < LOCK_TRIES; i++)
		taken = try_refresh(store, other->graph_key, proofs, &err);
	if (taken == 0)
		return NULL;
	if (taken == -2)
		too_busy(other->graph_key, &err);
	row = json_object();
	js_put_str(row, "graph_key", other->graph_key);
	js_put(row, "name", js_text(other->name, strlen(other->name)));
	if (taken > 0)
		js_put(row, "graphs", json_integer(taken));
	else
		js_put(row, "failed", js_text(err->message, strlen(err->message)));
	return row;
}

int compile_manifest_refresh_others(struct store *store, const struct compile_manifest *lock,
				    json_t **ret, struct err **err)
{
	AUTO(entry_proofs_freep) struct entry_proofs *proofs = entry_proofs_of(store, lock);
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	json_auto_t *rows = json_array();

	if (compile_manifest_set_load(store, &set, err) < 0)
		return -1;
	for (size_t i = 0; i < set.count; i++) {
		const struct compile_manifest *other = set.locks[i];
		json_t *row = NULL;

		if (other->kind == lock->kind && strcmp(other->graph_key, lock->graph_key) != 0 &&
		    any_differs(proofs, other))
			row = refresh_other(store, other, proofs);
		if (row)
			json_array_append_new(rows, row);
	}
	if (ret)
		*ret = TAKE(rows);
	return 0;
}
