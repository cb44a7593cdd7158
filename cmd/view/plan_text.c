/* Plans as text: see plan_text.h. */
#include "cmd/view/plan_text.h"

#include <string.h>

#include "cmd/screen/out.h"
#include "jobs/base/sb.h"

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "_-./=:,@%+";

/* Undoes the escape of jobs/store/order.h: right before "{STOKER_", two dollar signs stand for
 * one. */
static json_t *shown(const char *text)
{
	static const char name[] = "{STOKER_";
	struct sb out = SB_INIT;
	json_t *ret;

	while (*text) {
		size_t plain_len = strcspn(text, "$"), dollars = strspn(text + plain_len, "$");
		const char *after = text + plain_len + dollars;
		bool deferred = strncmp(after, name, sizeof name - 1) == 0;

		sb_add(&out, text, plain_len + (deferred ? (dollars + 1) / 2 : dollars));
		text = after;
	}
	ret = js_text(out.text, out.len);
	sb_release(&out);
	return ret;
}

json_t *plan_as_shown(const json_t *plan)
{
	json_t *ret = json_deep_copy(plan), *phase, *value;
	size_t i, n;
	const char *name;

	json_array_foreach (json_object_get(ret, "phases"), i, phase) {
		json_t *command = json_object_get(phase, "command");
		json_t *env = json_object_get(phase, "env");

		json_array_foreach (command, n, value)
			json_array_set_new(command, n, shown(json_string_value(value)));
		json_object_foreach (env, name, value)
			json_object_set_new(env, name, shown(json_string_value(value)));
	}
	return ret;
}

json_t *plan_cache_json(const json_t *plan, const struct cache_view *view)
{
	json_t *cache = json_object();

	js_put_str(cache, "verdict", cache_view_verdict(view));
	js_put_str(cache, "graph_key", js_str(json_object_get(plan, "compile"), "graph_key"));
	if (view->lock)
		js_put(cache, "graphs", json_integer(view->graphs));
	js_put(cache, "changed", json_incref(view->changed));
	js_put_str(cache, "reason", view->reason);
	js_put_str(cache, "hint", view->hint);
	if (view->problems)
		js_put(cache, "problems", json_incref(view->problems));
	return cache;
}

char *plan_text_command(const json_t *command)
{
	struct sb text = SB_INIT;
	json_t *word;
	size_t i;

	if (!command)
		return NULL;
	json_array_foreach (command, i, word) {
		const char *at = json_string_value(word);

		if (i > 0)
			sb_addc(&text, ' ');
		if (at[0] && strspn(at, plain) == strlen(at)) {
			sb_adds(&text, at);
			continue;
		}
		sb_addc(&text, '\'');
		for (; *at; at++)
			sb_adds(&text, *at == '\'' ? "'\\''" : (char[]){ *at, '\0' });
		sb_addc(&text, '\'');
	}
	return sb_take(&text);
}

/* Prints the workers of a phase; usually equal for both phases, and printed once. */
static void print_processes(const json_t *processes, const char *phase)
{
	int64_t each = js_int(processes, "per_node", 0), all = js_int(processes, "world", each);
	const char *variable = js_str(processes, "variable");
	const char *launcher = js_str(processes, "launcher");
	AUTO(sb_release) struct sb text = SB_INIT;

	if (each > 0)
		sb_addf(&text, "%lld on each node", (long long)each);
	else
		sb_adds(&text, "their number is known to the job alone");
	if (all > each)
		sb_addf(&text, ", %lld in all", (long long)all);
	if (launcher)
		sb_addf(&text, ", by %s", launcher);
	if (variable)
		sb_addf(&text, " (%s=%lld)", variable, (long long)each);
	out_line("%-8s %s%s%s: %s", "workers:", phase ? phase : "", phase ? ": " : "", text.text,
		 js_str(processes, "reason"));
}

void plan_text_print_preload(const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *why = js_str(row, "why");

		out_line("%-8s %s%s%s", i == 0 ? "preload:" : "", js_str(row, "url"),
			 why ? ": nothing can be had from there: "
			     : ", if the cache is empty when the run begins",
			 why ? why : "");
	}
}

void plan_text_print_derived(const json_t *plan)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(plan, "derived"), i, row)
		out_line("%-8s %s = %s, by %s", i == 0 ? "derived:" : "", js_str(row, "field"),
			 js_str(row, "value"), js_str(row, "expression"));
}

void plan_text_print_measures(const json_t *plan, bool ahead)
{
	const json_t *phases = json_object_get(plan, "phases"), *phase;
	const json_t *width = json_object_get(plan, "width"), *first = NULL;
	int64_t workers = js_int(width, "workers", 0);
	size_t i;

	if (ahead)
		out_line("length:  phase 1: %s", js_str(json_object_get(plan, "length"), "reason"));
	if (ahead && workers > 0)
		out_line("width:   phase 1: %lld compiler%s at once (%s %lld): %s",
			 (long long)workers, workers == 1 ? "" : "s", js_str(width, "option"),
			 (long long)workers, js_str(width, "reason"));
	else if (ahead && width)
		out_line("width:   phase 1: %s", js_str(width, "reason"));
	json_array_foreach (phases, i, phase) {
		const json_t *processes = json_object_get(phase, "processes");
		bool alike = first && json_equal(first, processes);

		if (!processes || alike || (!ahead && !js_is(phase, "phase", "train")))
			continue;
		print_processes(processes, first ? js_str(phase, "phase") : NULL);
		first = processes;
	}
}

static char *side_text(const json_t *value)
{
	if (!value || json_is_null(value))
		return mem_copy("(none)");
	return json_is_string(value) ? mem_copy(json_string_value(value)) : js_line(value);
}

static void print_change(const json_t *change)
{
	AUTO(auto_free) char *old = side_text(json_object_get(change, "old"));
	AUTO(auto_free) char *new = side_text(json_object_get(change, "new"));

	out_line("  %s: %s %s %s", js_str(change, "field"), old, text_style_arrow(out_style()),
		 new);
}

void plan_text_print_changes(const json_t *changes, size_t most)
{
	size_t count = json_array_size(changes);

	for (size_t i = 0; i < count && i < most; i++)
		print_change(json_array_get(changes, i));
	if (count > most)
		out_line("  and %zu more", count - most);
}

/* Prints a line per member: its name behind `before`, and its value. */
static void print_members(const char *before, const char *between, const json_t *object)
{
	json_t *value;
	const char *name;

	json_object_foreach ((json_t *)object, name, value) {
		AUTO(auto_free) char *text = side_text(value);

		out_line("%s%s%s%s", before, name, between, text);
	}
}

/* True if the member has lines of its own already, or repeats the heading. */
static bool is_own_member(const char *name)
{
	static const char *const own[] = { "v",   "phase",     "stage", "command",
					   "env", "agent_env", "sends" };

	for (size_t i = 0; i < STK_LENGTH(own); i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return false;
}

/* Prints members under the names that the difference uses. An order is not nested deeper. */
static void print_member(const char *name, const json_t *value)
{
	AUTO(auto_free) char *text = side_text(value);
	AUTO(auto_free) char *before = mem_format("  %s.", name);

	if (json_is_object(value))
		print_members(before, ": ", value);
	else
		out_line("  %s: %s", name, text);
}

/* Prints a request body as it is sent, a line per member. */
static void print_sends(const json_t *sends)
{
	json_t *row;
	size_t i;

	json_array_foreach (sends, i, row) {
		out_line("  sends %s:", js_str(row, "operation"));
		print_members("    ", ": ", json_object_get(row, "body"));
	}
}

static void print_request(const json_t *request)
{
	AUTO(auto_free) char *line = plan_text_command(json_object_get(request, "command"));
	const char *name, *stage = js_str(request, "stage");
	json_t *value;

	out_line("%s%s%s:", js_str(request, "phase"), stage ? " for " : "", stage ? stage : "");
	out_line("  %s", line);
	print_members("  env ", "=", json_object_get(request, "env"));
	print_members("  agent_env ", "=", json_object_get(request, "agent_env"));
	json_object_foreach ((json_t *)request, name, value)
		if (!is_own_member(name))
			print_member(name, value);
	print_sends(json_object_get(request, "sends"));
}

static void print_difference(const json_t *difference)
{
	const char *arrow = text_style_arrow(out_style());
	json_t *row;
	size_t i;

	out_line("difference: precompile %s train", arrow);
	json_array_foreach (difference, i, row) {
		const char *field = js_str(row, "field");
		const json_t *first = json_object_get(row, "precompile");
		const json_t *second = json_object_get(row, "train");
		bool command = strcmp(field, "command") == 0;
		AUTO(auto_free) char *one = command ? plan_text_command(first) : side_text(first);
		AUTO(auto_free) char *two = command ? plan_text_command(second) : side_text(second);

		if (command) {
			out_line("  command:");
			out_line("    - %s", one);
			out_line("    + %s", two);
		} else {
			out_line("  %s: %s %s %s", field, one, arrow, two);
		}
	}
}

void plan_text_print_requests(const json_t *plan, const json_t *requests, const json_t *difference)
{
	json_t *request;
	size_t i;

	out_line("requests to the engine '%s':", js_str(plan, "engine"));
	json_array_foreach (requests, i, request)
		print_request(request);
	if (difference)
		print_difference(difference);
}

/* ---- origins ---- */

void plan_text_print_origins(const json_t *plan)
{
	const char *field;
	json_t *origin;
	int width = 0;

	json_object_foreach (json_object_get(plan, "origins"), field, origin)
		width = (int)strlen(field) > width && strlen(field) <= 40 ? (int)strlen(field)
									  : width;
	out_line("fields:");
	json_object_foreach (json_object_get(plan, "origins"), field, origin) {
		const char *file = js_str(origin, "file"), *profile = js_str(origin, "profile");

		if (!file)
			out_line("  %-*s %s", width, field, js_str(origin, "option"));
		else
			out_line("  %-*s %s:%lld:%lld%s%s", width, field, file,
				 (long long)js_int(origin, "line", 0),
				 (long long)js_int(origin, "column", 0),
				 profile ? ", profile " : "", profile ? profile : "");
	}
}
