/* Compares a cache with its manifests and removes damaged entries: see compile_manifest.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/verdict/content.h"
#include "jobs/cache/verdict/entry.h"
#include "jobs/cache/verdict/entry_proof.h"
#include "jobs/cache/verdict/listing.h"

static const char *const fault_names[] = {
	[LOCK_SAME] = "ok",         [LOCK_MISSING] = "missing", [LOCK_TRUNCATED] = "truncated",
	[LOCK_CHANGED] = "changed", [LOCK_SPOILT] = "spoilt",
};

const char *compile_manifest_fault_name(enum lock_fault fault)
{
	return fault_names[fault];
}

void compile_manifest_report_clear(struct lock_report *report)
{
	free(report->problems);
	*report = (struct lock_report){ 0 };
}

int compile_manifest_check_graph(struct store *store, const struct manifest_graph *graph,
				 enum lock_fault *ret, uint64_t *ret_size, struct err **err)
{
	struct store_object object;
	struct content content;
	int found = store_stat(store, graph->path, &object, err);

	*ret_size = 0;
	*ret = LOCK_MISSING;
	if (found <= 0)
		return found;
	*ret_size = object.size;
	if (object.size != graph->size) {
		*ret = LOCK_TRUNCATED;
		return 0;
	}
	if (graph->tagged == (store_directory(store) != NULL)) {
		/* The cache was copied from a store of another kind. */
		content = (struct content){ .size = graph->size, .tagged = graph->tagged };
		memcpy(content.digest, graph->digest, sizeof content.digest);
		found = content_is_elsewhere(store, graph->path, &content, err);
		if (found >= 0)
			*ret = found > 0 ? LOCK_SAME : LOCK_CHANGED;
		return found < 0 ? -1 : 0;
	}
	if (store_directory(store)) {
		found = content_digest(store, graph->path, &content, err);
		if (found <= 0)
			return found;
	} else {
		content.tagged = true;
		memcpy(content.digest, object.tag, sizeof content.digest);
	}
	*ret = content.tagged == graph->tagged && strcmp(content.digest, graph->digest) == 0
		       ? LOCK_SAME
		       : LOCK_CHANGED;
	return 0;
}

/* Checks the problems again: a graph that another manifest pins as it is now is not a problem. */
static int leave_proved(struct store *store, const struct compile_manifest *lock,
			struct lock_report *report, struct err **err)
{
	AUTO(entry_proofs_freep) struct entry_proofs *proofs = NULL;
	size_t left = 0;

	if (entry_proofs_load(store, &proofs, err) < 0)
		return -1;
	for (size_t i = 0; i < report->count; i++) {
		struct lock_problem problem = report->problems[i];
		struct entry_comparison entry_comparison;

		if (entry_proofs_compare(proofs, lock->kind, &lock->graphs[problem.graph],
					 &entry_comparison, err) < 0)
			return -1;
		problem.fault = entry_comparison.fault;
		problem.size = entry_comparison.size;
		report->behind += entry_comparison.lock != NULL;
		if (!entry_comparison.lock && problem.fault != LOCK_SAME)
			report->problems[left++] = problem;
	}
	report->count = left;
	return 0;
}

int compile_manifest_graph_spoilt(struct store *store, const struct compile_kind *kind,
				  const struct manifest_graph *graph, bool *ret, struct err **err)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = { 0 };
	int found;

	*ret = false;
	if (!kind->prefix)
		return 0; /* a single object, which matches its pin */
	found = listing_find(store, kind, graph->key, &listed, &hold, err);
	*ret = found > 0 && listed.state != ENTRY_DONE;
	return found < 0 ? -1 : 0;
}

static void add_problem(struct lock_report *report, struct lock_problem problem)
{
	report->problems = mem_grow(report->problems, report->count + 1, sizeof *report->problems);
	report->problems[report->count++] = problem;
}

/* Adds graphs that match their pin but are spoilt by their other objects. `listed`, by graph, has
 * the answer from a full listing; NULL: ask for each graph. */
static int add_spoilt(struct store *store, const struct compile_manifest *lock, const bool *listed,
		      struct lock_report *report, struct err **err)
{
	size_t by_pin = report->count;

	for (size_t i = 0; lock->kind->prefix && i < lock->count; i++) {
		bool spoilt = listed && listed[i], known = false;

		for (size_t n = 0; n < by_pin; n++)
			known |= report->problems[n].graph == i;
		if (known)
			continue;
		if (!listed && compile_manifest_graph_spoilt(store, lock->kind, &lock->graphs[i],
							     &spoilt, err) < 0)
			return -1;
		if (spoilt)
			add_problem(report, (struct lock_problem){ .graph = i,
								   .fault = LOCK_SPOILT,
								   .size = lock->graphs[i].size });
	}
	return 0;
}

/* ---- all graphs of a manifest at once, from one listing ---- */

struct sighting {
	const struct manifest_graph *graph;
	bool there;
	uint64_t size;
	char tag[STORE_TAG];
	/* roles of all objects of the graph, for kinds with several, and */
	unsigned roles;
	uint64_t compiled; /* size of the compiled graph */
};

struct sightings {
	const struct compile_kind *kind;
	struct sighting *items;   /* by path */
	struct sighting **by_key; /* by the keys of their graphs */
	size_t count;
};

static int by_path(const void *a, const void *b)
{
	const struct sighting *x = a, *y = b;

	return strcmp(x->graph->path, y->graph->path);
}

static int by_graph_key(const void *a, const void *b)
{
	const struct sighting *const *x = a, *const *y = b;

	return strcmp((*x)->graph->key, (*y)->graph->key);
}

/* Compares like strcmp the key in `words` with the graph key of a sighting. */
static int words_to_key(const void *words, const void *sighting)
{
	const struct compile_kind_words *key = words;
	const char *other = (*(const struct sighting *const *)sighting)->graph->key;
	int differs = strncmp(key->text, other, key->len);

	return differs ? differs : -(other[key->len] != '\0');
}

/* Notes the role of an object: a manifest pins only one object of a graph; the others tell whether
 * the compiler uses it. */
static void note_role(const struct sightings *all, const struct store_object *object)
{
	struct sighting **end = all->by_key + all->count, **seen;
	struct entry_object entry;

	if (!all->kind->prefix || !all->kind->object(object->key, &entry))
		return;
	seen = bsearch(&entry.graph, all->by_key, all->count, sizeof *seen, words_to_key);
	while (seen && seen > all->by_key && words_to_key(&entry.graph, seen - 1) == 0)
		seen--;
	for (; seen && seen < end && words_to_key(&entry.graph, seen) == 0; seen++) {
		(*seen)->roles |= entry.role;
		if (entry.role == ROLE_COMPILED)
			(*seen)->compiled = object->size;
	}
}

static int note_sighting(void *arg, const struct store_object *object, struct err **err)
{
	const struct sightings *all = arg;
	struct manifest_graph named = { .path = (char *)object->key };
	struct sighting key = { .graph = &named };
	struct sighting *seen = bsearch(&key, all->items, all->count, sizeof key, by_path);

	(void)err;
	note_role(all, object);
	if (!seen)
		return 0;
	/* An entry may be named twice. */
	while (seen > all->items && by_path(seen - 1, &key) == 0)
		seen--;
	for (; seen < all->items + all->count && by_path(seen, &key) == 0; seen++) {
		seen->there = true;
		seen->size = object->size;
		memcpy(seen->tag, object->tag, sizeof seen->tag);
	}
	return 0;
}

static enum lock_fault fault_of(const struct sighting *seen)
{
	const struct manifest_graph *graph = seen->graph;

	if (!seen->there)
		return LOCK_MISSING;
	if (seen->size != graph->size)
		return LOCK_TRUNCATED;
	/* An object that was listed without its tag is not proved. */
	return graph->tagged && *seen->tag && strcmp(seen->tag, graph->digest) == 0 ? LOCK_SAME
										    : LOCK_CHANGED;
}

static int by_graph(const void *a, const void *b)
{
	const struct sighting *x = a, *y = b;

	return x->graph < y->graph ? -1 : x->graph > y->graph;
}

static int list_sightings(struct store *store, const struct sightings *all, struct err **err)
{
	for (size_t i = 0; i < all->count; i++)
		all->by_key[i] = &all->items[i];
	qsort(all->items, all->count, sizeof *all->items, by_path);
	qsort(all->by_key, all->count, sizeof *all->by_key, by_graph_key);
	if (store_list(store, "", note_sighting, (void *)all, err) < 0)
		return err_wrap(err, "cannot compare the cache with its compile manifest");
	qsort(all->items, all->count, sizeof *all->items, by_graph);
	return 0;
}

/* Checks by a listing, because checking each graph would cost a request each. `ret_spoilt` gets, by
 * graph, what compile_manifest_graph_spoilt() would return. */
static int check_listed(struct store *store, const struct compile_manifest *lock,
			struct lock_report *report, bool *ret_spoilt, struct err **err)
{
	AUTO(auto_free) struct sighting *items = mem_zero(lock->count + 1, sizeof *items);
	AUTO(auto_free) struct sighting **by_key = mem_zero(lock->count + 1, sizeof *by_key);
	const struct sightings all = { lock->kind, items, by_key, lock->count };

	for (size_t i = 0; i < lock->count; i++)
		items[i].graph = &lock->graphs[i];
	if (list_sightings(store, &all, err) < 0)
		return -1;
	for (size_t i = 0; i < lock->count; i++) {
		enum lock_fault fault = fault_of(&items[i]);

		if (fault != LOCK_SAME)
			add_problem(report, (struct lock_problem){ i, fault, items[i].size });
		ret_spoilt[i] = items[i].roles &&
				lock->kind->state(items[i].roles, items[i].compiled) != ENTRY_DONE;
	}
	return 0;
}

/* Checks the graphs one by one: in a directory, where content is read, or if there are few. */
static int check_each(struct store *store, const struct compile_manifest *lock,
		      struct lock_report *report, struct err **err)
{
	for (size_t i = 0; i < lock->count; i++) {
		struct lock_problem problem = { .graph = i };

		if (compile_manifest_check_graph(store, &lock->graphs[i], &problem.fault,
						 &problem.size, err) < 0)
			return err_wrap(err, "cannot compare the cache with its compile manifest");
		if (problem.fault != LOCK_SAME)
			add_problem(report, problem);
	}
	return 0;
}

/* Leaves problems out that another manifest proves, and adds spoilt graphs (`listed` as for
 * add_spoilt()). Takes the problems that were found by the pins. */
static int finish_report(struct store *store, const struct compile_manifest *lock,
			 const bool *listed, struct lock_report *report, struct lock_report *ret,
			 struct err **err)
{
	if ((report->count > 0 && leave_proved(store, lock, report, err) < 0) ||
	    add_spoilt(store, lock, listed, report, err) < 0)
		return -1;
	report->warm = report->count == 0 && report->behind == 0;
	*ret = *report;
	*report = (struct lock_report){ 0 };
	return 0;
}

int compile_manifest_check(struct store *store, const struct compile_manifest *lock,
			   struct lock_report *ret, struct err **err)
{
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	AUTO(auto_free) bool *spoilt = mem_zero(lock->count + 1, sizeof *spoilt);
	bool each = store_directory(store) || lock->count <= LOCK_FEW;

	if (each ? check_each(store, lock, &report, err) < 0
		 : check_listed(store, lock, &report, spoilt, err) < 0)
		return -1;
	return finish_report(store, lock, each ? NULL : spoilt, &report, ret, err);
}

int compile_manifest_check_sizes(struct store *store, const struct compile_manifest *lock,
				 struct lock_report *ret, struct err **err)
{
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };

	if (!store_directory(store)) /* a listing there has the tags, too */
		return compile_manifest_check(store, lock, ret, err);
	for (size_t i = 0; i < lock->count; i++) {
		const struct manifest_graph *graph = &lock->graphs[i];
		struct store_object object = { 0 };
		int found = store_stat(store, graph->path, &object, err);

		if (found < 0)
			return err_wrap(err, "cannot compare the cache with its compile manifest");
		if (found > 0 && object.size == graph->size)
			continue;
		add_problem(&report,
			    (struct lock_problem){ .graph = i,
						   .fault = found ? LOCK_TRUNCATED : LOCK_MISSING,
						   .size = object.size });
	}
	return finish_report(store, lock, NULL, &report, ret, err);
}

static json_t *problem_row(const struct manifest_graph *graph, enum lock_fault fault)
{
	json_t *row = json_object();

	js_put(row, "graph", js_text(graph->key, strlen(graph->key)));
	js_put(row, "path", js_text(graph->path, strlen(graph->path)));
	js_put_str(row, "state", compile_manifest_fault_name(fault));
	return row;
}

char *compile_manifest_fault_words(const struct manifest_graph *graph, enum lock_fault fault,
				   uint64_t size)
{
	switch (fault) {
	case LOCK_MISSING:
		return mem_copy("gone from the cache");
	case LOCK_TRUNCATED:
		return mem_format("%llu bytes instead of %llu", (unsigned long long)size,
				  (unsigned long long)graph->size);
	case LOCK_CHANGED:
		return mem_copy("same size, but other content than was verified");
	case LOCK_SPOILT:
		return mem_copy("unchanged, but without its marker of completeness, or locked");
	case LOCK_SAME:
		break;
	}
	return mem_copy("unchanged");
}

json_t *compile_manifest_problems_json(const struct compile_manifest *lock,
				       const struct lock_report *report)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < report->count; i++) {
		const struct lock_problem *problem = &report->problems[i];
		const struct manifest_graph *graph = &lock->graphs[problem->graph];
		AUTO(auto_free)
		char *what = compile_manifest_fault_words(graph, problem->fault, problem->size);
		json_t *row = problem_row(graph, problem->fault);

		js_put_str(row, "what", what);
		json_array_append_new(rows, row);
	}
	return rows;
}

int compile_manifest_repair(struct store *store, const struct compile_manifest *lock,
			    const struct lock_report *report, json_t **ret_removed,
			    struct err **err)
{
	AUTO(entry_proofs_freep) struct entry_proofs *proofs = NULL;
	json_auto_t *removed = json_array();

	if (report->count > 0 && entry_proofs_load(store, &proofs, err) < 0)
		return -1;
	for (size_t i = 0; i < report->count; i++) {
		const struct manifest_graph *graph = &lock->graphs[report->problems[i].graph];
		json_auto_t *keys = NULL;
		struct entry_comparison now;

		if (entry_proofs_compare(proofs, lock->kind, graph, &now, err) < 0)
			return -1;
		if (now.fault == LOCK_SAME || now.lock) {
			bool spoilt;

			if (compile_manifest_graph_spoilt(store, lock->kind, graph, &spoilt, err) <
			    0)
				return -1;
			if (!spoilt)
				continue;
			now.fault = LOCK_SPOILT;
		}
		if (now.fault == LOCK_MISSING)
			continue;
		if (entry_discard(store, lock->kind, graph->key, &keys, err) < 0)
			return -1;
		if (json_array_size(keys) == 0)
			continue;
		json_array_append_new(removed, problem_row(graph, now.fault));
	}
	*ret_removed = TAKE(removed);
	return 0;
}
