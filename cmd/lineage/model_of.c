/* Model folders and entries of the command line: see model_of.h. */
#include "cmd/lineage/model_of.h"

#include <stdio.h>
#include <string.h>

#include "cmd/screen/out.h"
#include "jobs/base/text/pattern.h"
#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"
#include "jobs/run/promotion.h"

static int take_plan(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	json_t **plan = arg;

	(void)ev;
	(void)err;
	*plan = json_incref(json_object_get(row, "plan"));
	return 1;
}

static int open_of_run(struct journal *journal, const char *run, struct model **ret,
		       struct err **err)
{
	AUTO(auto_free) char *url = NULL;
	json_auto_t *plan = NULL;

	if (journal_read(journal, run, 1, take_plan, &plan, err) < 0)
		return -1;
	if (!plan)
		return err_set(err, EXIT_NOT_FOUND, "run %s has no first event", run);
	url = promotion_url(plan);
	return model_open(url, js_str(plan, "name"), ret, err);
}

/* Finds the newest run of this name. Returns 1, 0 if there is none, -1. A damaged run is passed
 * over. */
static int find_name(struct journal *journal, const char *name, char run[JOURNAL_RUN_MAX],
		     struct err **err)
{
	json_auto_t *runs = json_array();

	if (journal_runs(journal, runs, err) < 0)
		return -1;
	for (size_t i = json_array_size(runs); i-- > 0;) {
		const char *id = json_string_value(json_array_get(runs, i));
		AUTO(err_freep) struct err *why = NULL;
		json_auto_t *plan = NULL;

		if (journal_read(journal, id, 1, take_plan, &plan, &why) < 0 && !why->damage) {
			*err = TAKE(why);
			return -1;
		}
		if (js_is(plan, "name", name)) {
			snprintf(run, JOURNAL_RUN_MAX, "%s", id);
			return 1;
		}
	}
	return 0;
}

int model_of_find(const struct args *args, const char *text, struct model **ret,
		  char ret_run[JOURNAL_RUN_MAX], struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *no_run = NULL;
	int found;

	if (strchr(text, '/') || strchr(text, ':') || strcmp(text, ".") == 0) {
		ret_run[0] = '\0';
		return model_open(text, NULL, ret, err);
	}
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	if (journal_resolve(journal, text, ret_run, &no_run) == 0)
		return open_of_run(journal, ret_run, ret, err);
	if (no_run->code != EXIT_NOT_FOUND && no_run->code != EXIT_USAGE) {
		*err = TAKE(no_run);
		return -1;
	}
	found = find_name(journal, text, ret_run, err);
	if (found < 0)
		return -1;
	if (found > 0)
		return open_of_run(journal, ret_run, ret, err);
	if (no_run->code == EXIT_USAGE) {
		*err = TAKE(no_run);
		return -1;
	}
	err_set(err, EXIT_NOT_FOUND, "there is no run, and no run of a name, like '%s'", text);
	if (pattern_match("*.y*ml", text, false))
		return err_hint(err,
				"name the model as its spec does: by 'name', or by promote.url");
	return err_hint(err, "name a run, or the model folder: ./models/m5, s3://bucket/models/m5");
}

/* ---- entries ---- */

/* Returns a copy in which sizes have the name that printed sizes have. */
static json_t *with_sizes(const json_t *value)
{
	json_t *copy, *member;
	const char *key;

	if (!json_is_object(value))
		return json_deep_copy(value);
	copy = json_object();
	json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
		bool is_size = strcmp(key, "size") == 0 || strcmp(key, "bytes") == 0;

		js_put(copy, is_size ? "size_bytes" : key, with_sizes(member));
	}
	return copy;
}

json_t *model_of_line(const struct model *model, const struct model_entry *entry, bool current,
		      bool removed)
{
	static const char *const plain[] = { "name", "action", "at",     "by",    "run",
					     "of",   "reason", "forced", "before" };
	static const char *const of_version[] = { "parent",     "data",        "hold_out",
						  "source",     "image",       "versions",
						  "graph_keys", "plan_digest", "journal",
						  "gate",       "evaluate",    "outputs",
						  "benchmark" };
	const json_t *version = json_object_get(entry->body, "version");
	json_t *line = json_object(), *brief = with_sizes(json_object_get(version, "model"));
	AUTO(auto_free) char *url = model_entry_url(model, entry);

	js_put(line, "generation", json_integer(entry->generation));
	js_put_str(line, "digest", entry->digest);
	js_put(line, "current", json_boolean(current));
	for (size_t i = 0; i < STK_LENGTH(plain); i++)
		if (json_object_get(entry->body, plain[i]))
			js_put(line, plain[i], json_incref(json_object_get(entry->body, plain[i])));
	js_put_str(brief, "url", url);
	js_put(brief, "files",
	       json_integer((json_int_t)json_array_size(json_object_get(brief, "files"))));
	json_object_del(brief, "path");
	if (removed)
		js_put(brief, "removed", json_true());
	js_put(line, "model", brief);
	for (size_t i = 0; i < STK_LENGTH(of_version); i++)
		if (json_object_get(version, of_version[i]))
			js_put(line, of_version[i],
			       with_sizes(json_object_get(version, of_version[i])));
	return line;
}

static void print_made_from(const json_t *line)
{
	const json_t *data = json_object_get(line, "data"),
		     *parent = json_object_get(line, "parent");
	const char *commit = js_str(json_object_get(line, "source"), "commit");

	if (parent)
		out_line("     parent: %s", js_str(parent, "url") ? js_str(parent, "url") : "?");
	if (data)
		out_line("     data: %lld object%s, %lld new",
			 (long long)js_int(data, "objects", 0),
			 js_int(data, "objects", 0) == 1 ? "" : "s",
			 (long long)js_int(data, "new", 0));
	if (commit)
		out_line("     source: commit %s%s", commit,
			 js_bool(json_object_get(line, "source"), "dirty", false) ? ", with changes"
										  : "");
	if (js_str(json_object_get(line, "outputs"), "url"))
		out_line("     outputs: %s", js_str(json_object_get(line, "outputs"), "url"));
}

void model_of_print(const json_t *line)
{
	const json_t *model = json_object_get(line, "model");
	AUTO(auto_free)
	char *size = text_format_bytes((uint64_t)js_int(model, "size_bytes", 0));
	const char *reason = js_str(line, "reason");
	char at[WHEN_TEXT];

	out_line("%3lld  %s%s  %s  run %s%s%s", (long long)js_int(line, "generation", 0),
		 js_str(line, "action"), js_bool(line, "forced", false) ? ", forced" : "",
		 when_text(js_str(line, "at"), out_width() > 0, at), js_str(line, "run"),
		 js_bool(line, "current", false) ? "  current" : "",
		 js_bool(line, "benchmark", false) ? "  benchmark" : "");
	if (js_int(line, "of", 0) > 0)
		out_line("     back to generation %lld", (long long)js_int(line, "of", 0));
	if (reason)
		out_line("     reason: %s", reason);
	out_line("     model: %s, %s%s", js_str(model, "url"), size,
		 js_bool(model, "removed", false) ? ", removed" : "");
	print_made_from(line);
	out_line("     digest: %s", js_str(line, "digest"));
}
