/* Warm or cold, and what made it so: see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/run/plan.h"

void cache_view_clear(struct cache_view *view)
{
	json_decref(view->changed);
	json_decref(view->problems);
	free(view->reason);
	compile_lock_freep(&view->lock);
	lock_report_clear(&view->report);
	*view = (struct cache_view){ .verdict = CACHE_NONE };
}

/* A JSON value as people would write it. */
static char *value_text(const json_t *value)
{
	if (!value || json_is_null(value))
		return mem_copy("nothing");
	if (json_is_string(value) && json_string_length(value) <= 80)
		return mem_copy(json_string_value(value));
	return js_line(value);
}

/* "hyperparameters.batch_size changed from 32 to 64 (and 2 more)". */
static char *change_reason(const json_t *changed)
{
	const json_t *first = json_array_get(changed, 0);
	AUTO(auto_free) char *old = value_text(json_object_get(first, "old"));
	AUTO(auto_free) char *new = value_text(json_object_get(first, "new"));
	const char *field = js_str(first, "field");
	size_t more = json_array_size(changed) - 1;
	struct sb text = SB_INIT_MAX(400);

	if (strncmp(field, "source:", 7) == 0)
		sb_addf(&text, "%s changed", field + 7);
	else
		sb_addf(&text, "%s changed from %.80s to %.80s", field, old, new);
	if (more)
		sb_addf(&text, " (and %zu more)", more);
	return sb_take(&text);
}

static char *warm_reason(size_t graphs, size_t behind)
{
	AUTO(auto_free)
	char *all = graphs == 1 ? mem_copy("the only graph of its lock is there")
				: mem_format("all %zu graphs of its lock are there", graphs);

	return behind ? mem_format("%s, %zu of them compiled anew and proved by other runs", all,
				   behind)
		      : mem_format("%s, unchanged", all);
}

static int view_of_lock(struct store *cache, struct cache_view *view, struct err **err)
{
	size_t i;
	json_t *problem;

	view->graphs = (int64_t)view->lock->count;
	if (lock_check(cache, view->lock, &view->report, err) < 0)
		return -1;
	if (view->report.count == 0) {
		view->verdict = CACHE_WARM;
		view->reason =
			warm_reason(view->lock->count, view->report.warm ? 0 : view->report.behind);
		return 0;
	}
	view->problems = lock_problems_json(view->lock, &view->report);
	json_array_foreach (view->problems, i, problem) {
		AUTO(auto_free) char *field = mem_format("cache:%s", js_str(problem, "graph"));

		json_array_append_new(view->changed,
				      json_pack("{s:s, s:s, s:s}", "field", field, "old", "ok",
						"new", js_str(problem, "state")));
	}
	view->reason =
		mem_format("graphs of its lock that are not as they were: %zu of %zu: %s is %s",
			   view->report.count, view->lock->count,
			   js_str(json_array_get(view->problems, 0), "graph"),
			   js_str(json_array_get(view->problems, 0), "state"));
	return 0;
}

int cache_view_make(const json_t *plan, struct cache_view *ret, struct err **err)
{
	const json_t *compile = json_object_get(plan, "compile");
	AUTO(cache_view_clear)
	struct cache_view view = { .verdict = CACHE_COLD, .changed = json_array() };
	AUTO(compile_lock_freep) struct compile_lock *nearest = NULL;
	AUTO(store_freep) struct store *cache = NULL;
	AUTO(auto_free) char *damage = NULL;
	const json_t *ingredients = json_object_get(compile, "ingredients");
	int found;

	if (!compile) {
		view.verdict = CACHE_NONE;
		view.reason = mem_copy("nothing is compiled ahead");
		goto done;
	}
	if (store_open(js_str(compile, "cache"), &cache, err) < 0)
		return -1;
	found = lock_load(cache, js_str(compile, "graph_key"), &view.lock, &damage, err);
	if (found < 0 || (found > 0 && view_of_lock(cache, &view, err) < 0))
		return err_wrap(err, "cannot read the compile cache");
	if (found > 0)
		goto done;
	if (damage) {
		view.reason = mem_format("its lock cannot be trusted: %s", damage);
		goto done;
	}
	found = lock_find_nearest(cache, js_str(plan, "name"), ingredients, &nearest, err);
	if (found < 0)
		return err_wrap(err, "cannot read the compile cache");
	if (found == 0) {
		view.reason = mem_copy("no precompile has been verified in this cache yet");
		goto done;
	}
	json_decref(view.changed);
	view.changed = ingredients_diff(nearest->ingredients, ingredients);
	view.reason = json_array_size(view.changed) ? change_reason(view.changed)
						    : mem_copy("its lock is gone");
done:
	*ret = view;
	view = (struct cache_view){ .verdict = CACHE_NONE };
	return 0;
}
