/* Writing locks, and holding the cache against them: see lock.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/content.h"
#include "jobs/cache/listing.h"
#include "jobs/cache/lock_file.h"

#define JOIN_TRIES 16 /* rounds against others who change the same lock */

static const char *const fault_names[] = {
	[LOCK_SAME] = "ok",
	[LOCK_MISSING] = "missing",
	[LOCK_TRUNCATED] = "truncated",
	[LOCK_CHANGED] = "changed",
};

const char *lock_fault_name(enum lock_fault fault)
{
	return fault_names[fault];
}

static struct lock_graph *add_graph(struct compile_lock *lock)
{
	lock->graphs = mem_grow(lock->graphs, lock->count + 1, sizeof *lock->graphs);
	lock->graphs[lock->count] = (struct lock_graph){ 0 };
	return &lock->graphs[lock->count++];
}

static const struct lock_graph *find_graph(const struct compile_lock *lock, const char *key)
{
	for (size_t i = 0; i < lock->count; i++)
		if (strcmp(lock->graphs[i].key, key) == 0)
			return &lock->graphs[i];
	return NULL;
}

/* Pin a graph as it now is in the cache: 1, 0 it is not done there, -1 error. */
static int pin(struct store *store, struct compile_lock *lock, const char *key, bool late,
	       struct err **err)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = { 0 };
	struct content content;
	struct lock_graph *graph;
	enum entry_state state;
	const char *why;
	int found = listing_find(store, lock->kind, key, &listed, &hold, err);

	if (found <= 0 || listed.state != ENTRY_DONE)
		return found < 0 ? -1 : 0;
	found = content_inspect(store, lock->kind, listed.path, &state, &why, err);
	if (found < 0 || (found > 0 && state != ENTRY_DONE))
		return found < 0 ? -1 : 0;
	found = content_digest(store, listed.path, &content, err);
	if (found <= 0)
		return found;
	graph = add_graph(lock);
	graph->key = mem_copy(key);
	graph->path = mem_copy(listed.path);
	graph->size = content.size;
	graph->tagged = content.tagged;
	graph->late = late;
	memcpy(graph->digest, content.digest, sizeof graph->digest);
	return 1;
}

/* Late graphs of the lock that is about to be replaced, where they still hold. */
static int keep_late(struct store *store, const struct compile_lock *before,
		     struct compile_lock *lock, struct err **err)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct lock_graph *old = &before->graphs[i];
		enum lock_fault fault;
		struct lock_graph *kept;
		uint64_t size;

		if (!old->late || find_graph(lock, old->key))
			continue;
		if (lock_check_graph(store, old, &fault, &size, err) < 0)
			return -1;
		if (fault != LOCK_SAME)
			continue;
		kept = add_graph(lock);
		*kept = *old;
		kept->key = mem_copy(old->key);
		kept->path = mem_copy(old->path);
	}
	return 0;
}

int lock_write(const struct lock_facts *facts, const struct graph_book *book,
	       struct compile_lock **ret, struct err **err)
{
	AUTO(compile_lock_freep) struct compile_lock *lock = mem_zero(1, sizeof *lock);
	AUTO(compile_lock_freep) struct compile_lock *before = NULL;
	AUTO(auto_free) char *damage = NULL, *object = NULL, *text = NULL;
	json_auto_t *document = NULL;
	const struct book_graph *graph;

	lock->kind = facts->kind;
	lock->name = mem_copy(facts->name);
	lock->run = mem_copy(facts->run);
	lock->created = facts->now;
	lock->compiler = json_deep_copy(facts->compiler);
	lock->ingredients = json_deep_copy(facts->ingredients);
	ingredients_hide_secrets(lock->ingredients);
	graph_key_of(lock->ingredients, lock->graph_key);
	for (size_t i = 0; (graph = book_at(book, i)); i++) {
		int pinned = pin(facts->store, lock, graph->key, false, err);

		if (pinned < 0)
			return err_wrap(err, "cannot write the compile lock");
		if (pinned == 0)
			return err_set(err, EXIT_GATE,
				       "cannot write the compile lock: graph '%s' has gone from "
				       "the cache since it was verified",
				       graph->key);
	}
	if (lock->count == 0)
		return err_set(err, EXIT_DEFECT, "a compile lock needs at least one graph");
	if (lock_load(facts->store, lock->graph_key, &before, &damage, err) < 0 ||
	    (before && keep_late(facts->store, before, lock, err) < 0))
		return err_wrap(err, "cannot write the compile lock");
	document = compile_lock_json(lock);
	text = js_line(document);
	object = lock_object_key(lock->graph_key);
	if (store_put(facts->store, object, text, strlen(text), err) < 0)
		return err_wrap(err, "cannot write the compile lock");
	if (ret)
		*ret = TAKE(lock);
	return 0;
}

void lock_report_clear(struct lock_report *report)
{
	free(report->problems);
	*report = (struct lock_report){ 0 };
}

int lock_check_graph(struct store *store, const struct lock_graph *graph, enum lock_fault *ret,
		     uint64_t *ret_size, struct err **err)
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
	found = content_digest(store, graph->path, &content, err);
	if (found <= 0)
		return found;
	*ret = content.tagged == graph->tagged && strcmp(content.digest, graph->digest) == 0
		       ? LOCK_SAME
		       : LOCK_CHANGED;
	return 0;
}

int lock_check(struct store *store, const struct compile_lock *lock, struct lock_report *ret,
	       struct err **err)
{
	AUTO(lock_report_clear) struct lock_report report = { 0 };

	for (size_t i = 0; i < lock->count; i++) {
		struct lock_problem problem = { .graph = i };

		if (lock_check_graph(store, &lock->graphs[i], &problem.fault, &problem.size, err) <
		    0)
			return err_wrap(err, "cannot compare the cache with its lock");
		if (problem.fault == LOCK_SAME)
			continue;
		report.problems =
			mem_grow(report.problems, report.count + 1, sizeof *report.problems);
		report.problems[report.count++] = problem;
	}
	report.warm = report.count == 0;
	*ret = report;
	report = (struct lock_report){ 0 };
	return 0;
}

static json_t *problem_row(const struct lock_graph *graph, enum lock_fault fault)
{
	json_t *row = json_object();

	js_put(row, "graph", js_text(graph->key, strlen(graph->key)));
	js_put(row, "path", js_text(graph->path, strlen(graph->path)));
	js_put_str(row, "state", lock_fault_name(fault));
	return row;
}

char *lock_fault_words(const struct lock_graph *graph, enum lock_fault fault, uint64_t size)
{
	switch (fault) {
	case LOCK_MISSING:
		return mem_copy("it is gone from the cache");
	case LOCK_TRUNCATED:
		return mem_format("it has %llu bytes instead of %llu", (unsigned long long)size,
				  (unsigned long long)graph->size);
	case LOCK_CHANGED:
		return mem_copy("it has its size, but other content than was verified");
	case LOCK_SAME:
		break;
	}
	return mem_copy("unchanged");
}

json_t *lock_problems_json(const struct compile_lock *lock, const struct lock_report *report)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < report->count; i++) {
		const struct lock_problem *problem = &report->problems[i];
		const struct lock_graph *graph = &lock->graphs[problem->graph];
		AUTO(auto_free)
		char *what = lock_fault_words(graph, problem->fault, problem->size);
		json_t *row = problem_row(graph, problem->fault);

		js_put_str(row, "what", what);
		json_array_append_new(rows, row);
	}
	return rows;
}

int lock_repair(struct store *store, const struct compile_lock *lock,
		const struct lock_report *report, json_t **ret_removed, struct err **err)
{
	json_auto_t *removed = json_array();

	for (size_t i = 0; i < report->count; i++) {
		const struct lock_problem *problem = &report->problems[i];
		const struct lock_graph *graph = &lock->graphs[problem->graph];

		if (problem->fault == LOCK_MISSING)
			continue;
		if (store_delete(store, graph->path, err) < 0)
			return err_wrap(err, "cannot remove a damaged entry of the cache");
		json_array_append_new(removed, problem_row(graph, problem->fault));
	}
	*ret_removed = TAKE(removed);
	return 0;
}

/* One try: how many joined, -1 error, -2 the lock changed meanwhile. */
static int64_t try_join(struct store *store, const struct compile_kind *kind, const char *graph_key,
			const struct graph_book *book, struct err **err)
{
	AUTO(compile_lock_freep) struct compile_lock *lock = NULL;
	AUTO(auto_free) char *damage = NULL, *object = NULL, *text = NULL;
	json_auto_t *document = NULL;
	const struct book_graph *graph;
	char tag[STORE_TAG];
	int64_t joined = 0;
	int done = lock_file_get(store, graph_key, &lock, tag, &damage, err);

	if (done <= 0 || lock->kind != kind)
		return done < 0 ? -1 : 0;
	for (size_t i = 0; (graph = book_at(book, i)); i++) {
		if (!graph->missed || find_graph(lock, graph->key))
			continue;
		done = pin(store, lock, graph->key, true, err);
		if (done < 0)
			return -1;
		joined += done;
	}
	if (joined == 0)
		return 0;
	document = compile_lock_json(lock);
	text = js_line(document);
	object = lock_object_key(graph_key);
	done = store_replace_if_same(store, object, tag, text, strlen(text), err);
	return done > 0 ? joined : done < 0 ? -1 : -2;
}

int lock_join_late(struct store *store, const struct compile_kind *kind, const char *graph_key,
		   const struct graph_book *book, int64_t *ret_joined, struct err **err)
{
	int64_t joined = -2;

	if (!lock_key_is_good(graph_key))
		return err_set(err, EXIT_DEFECT, "'%s' is no graph key", graph_key);
	for (int i = 0; joined == -2 && i < JOIN_TRIES; i++)
		joined = try_join(store, kind, graph_key, book, err);
	if (joined == -1)
		return err_wrap(err, "cannot add late graphs to the compile lock");
	if (joined == -2)
		return err_set(err, EXIT_UNREACHABLE,
			       "cannot add late graphs to the compile lock '%s': others keep "
			       "changing it",
			       graph_key);
	*ret_joined = joined;
	return 0;
}
