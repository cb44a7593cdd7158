/* Whether the cache is warm or cold, and why: see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/http/patience.h"
#include "jobs/base/text/text.h"
#include "jobs/run/plan/plan.h"

const char *cache_view_verdict(const struct cache_view *view)
{
	return view->verdict == CACHE_UNKNOWN && patience_is_offline()
		       ? NULL
		       : flow_cache_state_names[view->verdict];
}

void cache_view_clear(struct cache_view *view)
{
	json_decref(view->changed);
	json_decref(view->problems);
	free(view->reason);
	free(view->hint);
	compile_manifest_freep(&view->lock);
	compile_manifest_report_clear(&view->report);
	*view = (struct cache_view){ .verdict = CACHE_NONE };
}

/* Returns a JSON value as readable text. */
static char *value_text(const json_t *value)
{
	if (!value || json_is_null(value))
		return mem_copy("nothing");
	if (json_is_string(value) && json_string_length(value) <= 80)
		return mem_copy(json_string_value(value));
	return js_line(value);
}

/* If the spec is the same and its tag leads to another image, says so; else NULL. */
static char *moved_words(const struct compile_manifest *nearest, const json_t *plan,
			 const json_t *row)
{
	const char *reference = js_str(json_object_get(plan, "image"), "reference");

	if (!js_is(row, "field", "image") || !reference || !nearest->image ||
	    strcmp(nearest->image, reference) != 0)
		return NULL;
	return mem_format("the tag of '%.200s' has moved: %.80s → %.80s", reference,
			  js_str(row, "old"), js_str(row, "new"));
}

/* "hyperparameters.batch_size changed from 32 to 64". */
static char *change_words(const json_t *row)
{
	AUTO(auto_free) char *old = value_text(json_object_get(row, "old"));
	AUTO(auto_free) char *new = value_text(json_object_get(row, "new"));
	const char *field = js_str(row, "field");

	if (strncmp(field, "source:", 7) == 0)
		return mem_format("%s changed", field + 7);
	return mem_format("%s changed from %.80s to %.80s", field, old, new);
}

/* Returns one change, and the number of others; a moved tag comes first, since no edit of the user
 * shows it. */
static char *change_reason(const struct compile_manifest *nearest, const json_t *plan,
			   const json_t *changed)
{
	AUTO(auto_free) char *words = NULL;
	size_t count = json_array_size(changed), i;
	const json_t *row;

	json_array_foreach ((json_t *)(uintptr_t)changed, i, row)
		if ((words = moved_words(nearest, plan, row)))
			break;
	if (!words)
		words = change_words(json_array_get(changed, 0));
	return count > 1 ? mem_format("%s (and %zu more)", words, count - 1) : TAKE(words);
}

/* A manifest made by other rules reports only that: the user's own changes cannot be seen in it. */
static json_t *rules_differ(const json_t *before, const json_t *now)
{
	const char *rules = js_str(now, KEY_RULES);
	json_t *old = json_object_get(before, KEY_RULES);

	if (!rules || js_is(before, KEY_RULES, rules))
		return NULL;
	return json_pack("[{s:s, s:o, s:s}]", "field", KEY_RULES, "old",
			 old ? json_incref(old) : json_null(), "new", rules);
}

/* Explains why the cache is cold, compared with the nearest manifest. */
static void explain_cold(struct cache_view *view, const struct compile_manifest *nearest,
			 const json_t *plan, const json_t *ingredients)
{
	json_decref(view->changed);
	view->changed = rules_differ(nearest->ingredients, ingredients);
	if (view->changed) {
		view->reason = mem_copy(
			"the compile manifest is of an earlier version of stoker with other rules "
			"for graph keys; phase 1 finds the graphs that are compiled already");
		return;
	}
	view->changed = graph_key_ingredients_diff(nearest->ingredients, ingredients);
	view->hint = key_hint(ingredients, view->changed);
	view->reason = json_array_size(view->changed) ? change_reason(nearest, plan, view->changed)
						      : mem_copy("the compile manifest is gone");
}

static char *warm_reason(size_t graphs, size_t behind)
{
	AUTO(auto_free)
	char *all = graphs == 1
			    ? mem_copy("the only graph of the compile manifest is in the cache")
			    : mem_format("all %zu graphs of the compile manifest are in the cache",
					 graphs);

	return behind ? mem_format("%s, %zu of them compiled anew and verified by other runs", all,
				   behind)
		      : mem_format("%s, unchanged", all);
}

static int view_of_lock(struct store *cache, struct cache_view *view, struct err **err)
{
	size_t i;
	json_t *problem;

	view->graphs = (int64_t)view->lock->count;
	if (compile_manifest_check(cache, view->lock, &view->report, err) < 0)
		return -1;
	if (view->report.count == 0) {
		view->verdict = CACHE_WARM;
		view->reason =
			warm_reason(view->lock->count, view->report.warm ? 0 : view->report.behind);
		return 0;
	}
	view->problems = compile_manifest_problems_json(view->lock, &view->report);
	json_array_foreach (view->problems, i, problem) {
		AUTO(auto_free) char *field = mem_format("cache:%s", js_str(problem, "graph"));

		json_array_append_new(view->changed,
				      json_pack("{s:s, s:s, s:s}", "field", field, "old", "ok",
						"new", js_str(problem, "state")));
	}
	view->reason = mem_format("changed graphs of the compile manifest: %zu of %zu: %s is %s",
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
	AUTO(compile_manifest_freep) struct compile_manifest *nearest = NULL;
	AUTO(store_freep) struct store *cache = NULL;
	AUTO(auto_free) char *damage = NULL;
	const json_t *ingredients = json_object_get(compile, "ingredients");
	int found;

	if (!compile) {
		view.verdict = CACHE_NONE;
		view.reason = mem_copy("nothing is compiled ahead");
		goto done;
	}
	if (!js_str(compile, "graph_key")) {
		const json_t *image = json_object_get(plan, "image");
		const char *why = js_str(image, "unknown"), *hint = js_str(image, "hint");

		view.verdict = CACHE_UNKNOWN;
		view.reason = mem_format("not known: %s", why ? why : "the image is not resolved");
		view.hint = hint ? mem_copy(hint) : NULL;
		goto done;
	}
	if (store_open(js_str(compile, "cache"), &cache, err) < 0)
		return -1;
	found = compile_manifest_load(cache, js_str(compile, "graph_key"), &view.lock, &damage,
				      err);
	if (found < 0 || (found > 0 && view_of_lock(cache, &view, err) < 0))
		return err_wrap(err, "cannot read the compile cache");
	if (found > 0)
		goto done;
	if (damage) {
		view.reason = mem_format("the compile manifest cannot be trusted: %s", damage);
		goto done;
	}
	found = compile_manifest_find_nearest(cache, js_str(plan, "name"), ingredients, &nearest,
					      err);
	if (found < 0)
		return err_wrap(err, "cannot read the compile cache");
	if (found == 0) {
		view.reason = mem_copy("no precompile has been verified in this cache yet");
		goto done;
	}
	explain_cold(&view, nearest, plan, ingredients);
done:
	*ret = view;
	view = (struct cache_view){ .verdict = CACHE_NONE };
	return 0;
}

int cache_view_try(const json_t *plan, struct cache_view *ret, struct err **err)
{
	const char *cache = js_str(json_object_get(plan, "compile"), "cache");
	AUTO(err_freep) struct err *why = NULL;

	if (cache_view_make(plan, ret, &why) == 0)
		return 0;
	/* A local folder that cannot be read is an error that the user must see. */
	if (!text_starts(cache, "s3:") ||
	    (why->code != EXIT_REFUSED && why->code != EXIT_UNREACHABLE)) {
		*err = TAKE(why);
		return -1;
	}
	*ret = (struct cache_view){ .verdict = CACHE_UNKNOWN, .changed = json_array() };
	ret->reason = mem_format("not known: %s", patience_reason(why));
	ret->hint = TAKE(why->hint);
	return 0;
}
