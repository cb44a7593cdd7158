/* `cache ls` and `cache verify URL`: compares a cache with its compile manifests. See listing.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/verdict/content.h"
#include "jobs/cache/verdict/entry.h"
#include "jobs/cache/verdict/entry_proof.h"
#include "jobs/cache/verdict/listing.h"

/* The manifests that name each path: {path: [{"graph_key","name"}, …]}. */
static json_t *index_locks(const struct compile_manifest_set *set, const char *only)
{
	json_t *index = json_object();

	for (size_t i = 0; i < set->count; i++) {
		const struct compile_manifest *lock = set->locks[i];

		if (only && strcmp(only, lock->graph_key) != 0)
			continue;
		for (size_t n = 0; n < lock->count; n++) {
			const char *path = lock->graphs[n].path;
			json_t *locks = json_object_get(index, path);
			json_t *label = json_object();

			if (!locks) {
				locks = json_array();
				json_object_set_new_nocheck(index, path, locks);
			}
			js_put_str(label, "graph_key", lock->graph_key);
			js_put(label, "name", js_text(lock->name, strlen(lock->name)));
			json_array_append_new(locks, label);
		}
	}
	return index;
}

static json_t *locks_of(const json_t *index, const char *path)
{
	json_t *locks = json_object_get(index, path);

	return locks ? json_incref(locks) : json_array();
}

static json_t *graph_row(const char *graph, const char *path, const char *state, json_t *locks)
{
	json_t *row = json_object();

	js_put(row, "graph", js_text(graph, strlen(graph)));
	js_put(row, "path", js_text(path, strlen(path)));
	js_put_str(row, "state", state);
	js_put(row, "locks", locks);
	return row;
}

struct listing_check_list {
	json_t *index;
	listing_row_fn fn;
	void *arg;
};

static int list_graph(void *arg, const struct listing_graph *graph, struct err **err)
{
	struct listing_check_list *list = arg;
	char modified[UTC_TEXT];
	json_t *row =
		graph_row(graph->key, graph->path, compile_kind_entry_state_name(graph->state),
			  locks_of(list->index, graph->path));

	js_put_str(row, "kind", graph->kind->name);
	js_put(row, "size_bytes", json_integer((json_int_t)graph->bytes));
	js_put_str(row, "modified", clock_utc_format(graph->modified, modified));
	return list->fn(list->arg, row, err);
}

int cache_list(struct store *store, listing_row_fn fn, void *arg, struct err **err)
{
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	json_auto_t *index = NULL;
	struct listing_check_list list = { .fn = fn, .arg = arg };

	if (compile_manifest_set_load(store, &set, err) < 0)
		return -1;
	index = index_locks(&set, NULL);
	list.index = index;
	return listing_each(store, NULL, list_graph, &list, err);
}

#define OTHERS_AT_ONCE ((size_t)512)

/* A check in progress. */
struct check {
	struct store *store;
	const struct cache_check_options *options;
	struct entry_proofs *proofs; /* proofs of all manifests, whichever are checked */
	json_t *index;               /* path → manifests, for the manifests that are checked */
	json_t *judged;              /* paths that were checked already */
	/* entries to be judged that no manifest names, and the keys of their graphs */
	struct inspection *others;
	char **graphs;
	size_t waiting;
	listing_row_fn fn;
	void *arg;
	struct cache_check sum;
};

/* Checks one graph of one manifest; `ret_behind` is set if another manifest pins the present
 * bytes. */
static int check_locked(struct check *check, const struct compile_manifest *lock,
			const struct manifest_graph *graph, bool *ret_behind, struct err **err)
{
	AUTO(auto_free) char *what = NULL;
	struct entry_comparison entry_comparison;
	enum lock_fault fault;
	json_t *row;

	if (entry_proofs_compare(check->proofs, lock->kind, graph, &entry_comparison, err) < 0)
		return -1;
	*ret_behind = *ret_behind || entry_comparison.lock;
	fault = entry_comparison.lock ? LOCK_SAME : entry_comparison.fault;
	if (json_object_get(check->judged, graph->path))
		return 0;
	if (fault == LOCK_SAME) {
		bool spoilt;

		if (compile_manifest_graph_spoilt(check->store, lock->kind, graph, &spoilt, err) <
		    0)
			return -1;
		fault = spoilt ? LOCK_SPOILT : LOCK_SAME;
	}
	json_object_set_new_nocheck(check->judged, graph->path, json_true());
	check->sum.graphs++;
	check->sum.ok += fault == LOCK_SAME;
	check->sum.missing += fault == LOCK_MISSING;
	check->sum.truncated += fault == LOCK_TRUNCATED;
	check->sum.changed += fault == LOCK_CHANGED || fault == LOCK_SPOILT;
	if (fault == LOCK_SAME && !check->options->all)
		return 0;
	row = graph_row(graph->key, graph->path, compile_manifest_fault_name(fault),
			locks_of(check->index, graph->path));
	what = compile_manifest_fault_words(graph, fault, entry_comparison.size);
	js_put_str(row, "what", what);
	return check->fn(check->arg, row, err);
}

static int check_lock(struct check *check, const struct compile_manifest *lock, struct err **err)
{
	bool behind = false;
	int done = 0;

	check->sum.locks++;
	for (size_t n = 0; done == 0 && n < lock->count; n++)
		done = check_locked(check, lock, &lock->graphs[n], &behind, err);
	check->sum.behind += behind;
	return done;
}

/* True for a graph, not named by a manifest, that a compiler would fail on. A graph that another
 * job has extracted or is compiling is not counted. */
static bool is_damaged(enum entry_state state)
{
	return state == ENTRY_EMPTY || state == ENTRY_PARTIAL;
}

static char *other_words(struct store *store, const struct inspection *one, const char *graph)
{
	AUTO(auto_free) char *error = NULL;

	if (one->state == ENTRY_EMPTY)
		return mem_copy("no bytes");
	if (one->state != ENTRY_FAILED)
		return mem_copy(one->why ? one->why : "no compile manifest names it");
	error = entry_first_error(store, one->kind, graph);
	return mem_format("the compiler failed on it, and the failure is stored%s%s",
			  error ? ": " : "", error ? error : "");
}

/* True if the entry is bad by its size and markers already, so that its form need not be
 * checked. */
static bool is_judged(const struct inspection *one)
{
	return one->state != ENTRY_DONE;
}

static int tell_other(struct check *check, const char *graph, const struct inspection *one,
		      struct err **err)
{
	AUTO(auto_free) char *what = NULL;
	json_t *row;

	check->sum.others_bad += is_damaged(one->state);
	if (!is_damaged(one->state) && one->state != ENTRY_FAILED && !check->options->all)
		return 0;
	row = graph_row(graph, one->key,
			one->state == ENTRY_DONE ? "ok" : compile_kind_entry_state_name(one->state),
			json_array());
	what = other_words(check->store, one, graph);
	js_put(row, "what", js_text(what, strlen(what)));
	return check->fn(check->arg, row, err);
}

/* Judges and reports the collected entries, in the order of the listing. */
static int others_report(struct check *check, struct err **err)
{
	int done = 0;

	if (check->options->deep)
		content_inspect_all(check->store, check->others, check->waiting, is_judged);
	for (size_t i = 0; i < check->waiting; i++) {
		struct inspection *one = &check->others[i];

		if (done == 0 && one->found < 0) {
			*err = TAKE(one->err);
			done = -1;
		}
		if (done == 0)
			done = tell_other(check, check->graphs[i], one, err);
		err_freep(&one->err);
		auto_free(&one->key);
		auto_free(&check->graphs[i]);
	}
	check->waiting = 0;
	return done;
}

/* Collects an entry if no manifest names it. */
static int check_other(void *arg, const struct listing_graph *graph, struct err **err)
{
	struct check *check = arg;

	if (json_object_get(check->index, graph->path))
		return 0;
	check->sum.others++;
	check->graphs[check->waiting] = mem_copy(graph->key);
	check->others[check->waiting++] = (struct inspection){ .kind = graph->kind,
							       .key = mem_copy(graph->path),
							       .state = graph->state };
	return check->waiting == OTHERS_AT_ONCE ? others_report(check, err) : 0;
}

static int check_others(struct check *check, struct err **err)
{
	int done = listing_each(check->store, NULL, check_other, check, err), rest;
	AUTO(err_freep) struct err *late = NULL;

	rest = others_report(check, done < 0 ? &late : err);
	return done < 0 ? done : rest;
}

static int report_damaged(struct check *check, const json_t *damaged, struct err **err)
{
	for (size_t i = 0; i < json_array_size(damaged); i++) {
		const json_t *lock = json_array_get(damaged, i);
		const char *only = check->options->only;
		json_t *row;
		int done;

		/* A damaged manifest of another graph key is not reported. */
		if (only && !strstr(js_str(lock, "lock"), only))
			continue;
		row = json_deep_copy(lock);
		check->sum.damaged_locks++;
		js_put_str(row, "state", "damaged");
		done = check->fn(check->arg, row, err);
		if (done != 0)
			return done;
	}
	return 0;
}

static int check_all(struct check *check, const struct compile_manifest_set *set, struct err **err)
{
	const char *only = check->options->only;
	int done = report_damaged(check, set->damaged, err);

	for (size_t i = 0; done == 0 && i < set->count; i++) {
		const struct compile_manifest *lock = set->locks[i];

		if (only && strcmp(only, lock->graph_key) != 0)
			continue;
		done = check_lock(check, lock, err);
	}
	if (done == 0 && !only)
		done = check_others(check, err);
	return done < 0 ? -1 : 0;
}

int cache_check(struct store *store, const struct cache_check_options *options, listing_row_fn fn,
		void *arg, struct cache_check *ret, struct err **err)
{
	AUTO(entry_proofs_freep) struct entry_proofs *proofs = NULL;
	json_auto_t *index = NULL;
	json_auto_t *judged = json_object();
	AUTO(auto_free) struct inspection *others = mem_zero(OTHERS_AT_ONCE, sizeof *others);
	AUTO(auto_free) char **graphs = mem_zero(OTHERS_AT_ONCE, sizeof *graphs);
	struct check check = { .store = store,
			       .options = options,
			       .judged = judged,
			       .others = others,
			       .graphs = graphs,
			       .fn = fn,
			       .arg = arg };

	if (entry_proofs_load(store, &proofs, err) < 0)
		return -1;
	index = index_locks(entry_proofs_locks(proofs), options->only);
	check.index = index;
	check.proofs = proofs;
	if (check_all(&check, entry_proofs_locks(proofs), err) < 0)
		return -1;
	*ret = check.sum;
	return 0;
}
