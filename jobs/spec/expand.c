/*
 * ${VAR} and ${VAR:-default} in values, never in keys. ${STOKER_…} stays for
 * the agent to expand on the node; $$ is a literal $. The result of $$ or of
 * a variable is never expanded again, neither here nor on the node: if it looks
 * like a reference, the node's `deferred` says that it is not one.
 */
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/resolved.h"

#define EXPAND_TEXT_MAX ((size_t)8 << 20) /* bytes that come from variables */

/* Beginning of a reference that the agent replaces, and the part behind its dollar. */
#define DEFERRED_NAME "{STOKER_"
#define DEFERRED      "$" DEFERRED_NAME

struct expander {
	struct arena *arena;
	struct reporter *reporter;
	spec_getenv_fn *getenv_fn;
	json_t *names; /* of variables that were met; NULL: not wanted */
	size_t bytes;
	bool full; /* the bound was reported */
};

static size_t name_length(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";

	if (!*text || !strchr(letters, *text))
		return 0;
	return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
}

static const char *malformed(struct expander *x, const struct node *node, const struct path *path,
			     const char *why)
{
	AUTO(auto_free) char *field = node_path_text(path);

	problem_hint(problem_error(x->reporter, node->at, field, "%s", why),
		     "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${");
	return NULL;
}

static void unset(struct expander *x, const struct node *node, const struct path *path,
		  const char *name)
{
	AUTO(auto_free) char *field = node_path_text(path);

	problem_hint(problem_error(x->reporter, node->at, field, "variable '%s' is not set", name),
		     "set the variable, or give a default: ${%s:-…}", name);
}

/* A value under construction, twice: as people see it, and as the agent gets it, where
 * references stay told from text that only looks like one. */
struct expand_value {
	struct sb text, deferred;
	struct sb literal; /* text behind the last reference, still to be deferred */
	bool any;          /* a variable was replaced */
};

static void value_release(struct expand_value *value)
{
	sb_release(&value->text);
	sb_release(&value->deferred);
	sb_release(&value->literal);
}

static void add_literal(struct expand_value *value, const char *text, size_t len)
{
	sb_add(&value->text, text, len);
	sb_add(&value->literal, text, len);
}

/* Doubles literal dollar signs where the agent would read them as a part of a reference: before
 * one, and before text that looks like one. */
static void defer_literal(struct expand_value *value, bool before_reference)
{
	const char *text = value->literal.text;

	while (*text) {
		size_t plain = strcspn(text, "$"), dollars = strspn(text + plain, "$");
		const char *after = text + plain + dollars;
		bool is_deferred = *after ? text_starts(after, DEFERRED_NAME) : before_reference;

		sb_add(&value->deferred, text, plain + dollars);
		if (is_deferred)
			sb_add(&value->deferred, text + plain, dollars);
		text = after;
	}
	sb_clear(&value->literal);
}

/* Returns the text of a default, in which $$ stands for $ as everywhere. */
static char *default_text(const char *text, size_t len)
{
	struct sb out = SB_INIT;

	for (size_t i = 0; i < len; i++) {
		sb_addc(&out, text[i]);
		i += text[i] == '$' && i + 1 < len && text[i + 1] == '$';
	}
	return sb_take(&out);
}

/* Adds "${STOKER_…}", from `text` up to `end`, its brace, which stays for the agent. */
static void add_reference(struct expand_value *value, const char *text, const char *end)
{
	const char *colon = memchr(text, ':', (size_t)(end - text));
	const char *rest = colon ? colon : end;
	AUTO(auto_free) char *fallback = default_text(rest, (size_t)(end + 1 - rest));

	defer_literal(value, true);
	sb_add(&value->text, text, (size_t)(rest - text));
	sb_adds(&value->text, fallback);
	sb_add(&value->deferred, text, (size_t)(rest - text));
	sb_adds(&value->deferred, fallback);
}

static void add_bounded(struct expander *x, const struct node *node, struct expand_value *out,
			const char *text, size_t len)
{
	x->bytes += len;
	if (x->bytes <= EXPAND_TEXT_MAX) {
		add_literal(out, text, len);
		return;
	}
	if (!x->full)
		problem_hint(problem_error(x->reporter, node->at, NULL,
					   "variables expand to more than 8 MiB"),
			     "read long texts from a file in the source");
	x->full = true;
}

/* Expands the "${…}" at `text`; returns the text behind it, or NULL after a problem. */
static const char *expand_one(struct expander *x, const struct node *node, const struct path *path,
			      const char *text, struct expand_value *out)
{
	size_t len = name_length(text + 2);
	const char *after = text + 2 + len, *end = strchr(text, '}');
	AUTO(auto_free) char *name = mem_copy_n(text + 2, len);
	const char *value;

	if (len == 0)
		return malformed(x, node, path, "'${' without a variable name");
	if (!end)
		return malformed(x, node, path, "'${' without '}'");
	if (text_starts(text, DEFERRED)) {
		add_reference(out, text, end);
		return end + 1;
	}
	if (*after != '}' && strncmp(after, ":-", 2) != 0)
		return malformed(x, node, path, "'${NAME' must go on with '}' or ':-'");
	if (*after == ':' && memmem(after, (size_t)(end - after), "${", 2))
		return malformed(x, node, path, "another '${' inside a default");
	value = x->getenv_fn(name);
	if (x->names)
		js_put(x->names, name, json_true());
	if (value && (*value || *after == '}')) {
		if (!text_is_utf8(value, strlen(value)))
			return malformed(x, node, path, "the value of a variable is not UTF-8");
		add_bounded(x, node, out, value, strlen(value));
	} else if (*after == ':') {
		AUTO(auto_free) char *other = default_text(after + 2, (size_t)(end - after - 2));

		add_bounded(x, node, out, other, strlen(other));
	} else {
		unset(x, node, path, name);
		return NULL;
	}
	out->any = true;
	return end + 1;
}

static void expand_scalar(struct expander *x, struct node *node, const struct path *path)
{
	AUTO(value_release)
	struct expand_value out = { .text = SB_INIT_MAX(EXPAND_TEXT_MAX),
				    .deferred = SB_INIT_MAX(2 * EXPAND_TEXT_MAX),
				    .literal = SB_INIT_MAX(EXPAND_TEXT_MAX) };
	const char *text = node->text, *dollar = strchr(text, '$');

	if (!dollar)
		return;
	while (dollar) {
		add_literal(&out, text, (size_t)(dollar - text));
		if (dollar[1] == '{') {
			text = expand_one(x, node, path, dollar, &out);
			if (!text) {
				node->unknown = true;
				return;
			}
		} else {
			add_literal(&out, "$", 1);
			text = dollar + (dollar[1] == '$' ? 2 : 1);
		}
		dollar = strchr(text, '$');
	}
	add_literal(&out, text, strlen(text));
	defer_literal(&out, false);
	node->text = node_arena_text(x->arena, out.text.text, out.text.len);
	node->expanded = out.any;
	if (out.deferred.len != out.text.len)
		node->deferred = node_arena_text(x->arena, out.deferred.text, out.deferred.len);
}

char *spec_deferred(const char *text)
{
	AUTO(value_release)
	struct expand_value value = { SB_INIT, SB_INIT, SB_INIT, false };

	add_literal(&value, text, strlen(text));
	defer_literal(&value, false);
	return sb_take(&value.deferred);
}

static void walk(struct expander *x, struct node *node, const struct path *path)
{
	if (node->visited) /* an anchor, seen again through an alias */
		return;
	node->visited = true;
	if (node->kind == NODE_SCALAR) {
		expand_scalar(x, node, path);
		return;
	}
	for (size_t i = 0; i < node->count; i++) {
		struct path at = { path, node->entries[i].key, i };

		walk(x, node->entries[i].value, &at);
	}
}

void expand_tree(struct arena *arena, struct reporter *reporter, spec_getenv_fn *getenv_fn,
		 struct node *root, json_t *names)
{
	struct expander x = {
		.arena = arena, .reporter = reporter, .getenv_fn = getenv_fn, .names = names
	};

	/* The content of x-… counts only where an alias brings it. */
	for (size_t i = 0; i < root->count; i++) {
		struct path at = { NULL, root->entries[i].key, i };

		if (!field_is_own(root->entries[i].key))
			walk(&x, root->entries[i].value, &at);
	}
}

const json_t *spec_variables(const struct spec *spec)
{
	return spec->variables;
}
