/* Variables in values: see expand.h. */
#include "jobs/spec/expand.h"

#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"
#include "jobs/base/text.h"
#include "jobs/spec/path.h"

struct expander {
	struct arena *arena;
	struct reporter *reporter;
	spec_getenv_fn *getenv_fn;
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
	AUTO(auto_free) char *field = path_text(path);

	problem_hint(problem_error(x->reporter, node->at, field, "%s", why),
		     "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${");
	return NULL;
}

static void unset(struct expander *x, const struct node *node, const struct path *path,
		  const char *name)
{
	AUTO(auto_free) char *field = path_text(path);

	problem_hint(problem_error(x->reporter, node->at, field, "variable '%s' is not set", name),
		     "set it, or give a default: ${%s:-…}", name);
}

static void add_bounded(struct expander *x, const struct node *node, struct sb *out,
			const char *text, size_t len)
{
	x->bytes += len;
	if (x->bytes <= EXPAND_TEXT_MAX) {
		sb_add(out, text, len);
		return;
	}
	if (!x->full)
		problem_hint(problem_error(x->reporter, node->at, NULL,
					   "variables expand to more than 8 MiB"),
			     "read long texts from a file in the source");
	x->full = true;
}

/* One "${…}" at `text`; what follows it, or NULL after a problem. */
static const char *expand_one(struct expander *x, const struct node *node, const struct path *path,
			      const char *text, struct sb *out)
{
	size_t len = name_length(text + 2);
	const char *after = text + 2 + len, *end = strchr(text, '}');
	AUTO(auto_free) char *name = mem_copy_n(text + 2, len);
	const char *value;

	if (len == 0)
		return malformed(x, node, path, "'${' without a variable name");
	if (!end)
		return malformed(x, node, path, "'${' without '}'");
	if (text_starts(name, "STOKER_")) {
		sb_add(out, text, (size_t)(end + 1 - text));
		return end + 1;
	}
	if (*after != '}' && strncmp(after, ":-", 2) != 0)
		return malformed(x, node, path, "'${NAME' must go on with '}' or ':-'");
	if (*after == ':' && memmem(after, (size_t)(end - after), "${", 2))
		return malformed(x, node, path, "another '${' inside a default");
	value = x->getenv_fn(name);
	if (value && (*value || *after == '}')) {
		if (!text_is_utf8(value, strlen(value)))
			return malformed(x, node, path, "the value of a variable is not UTF-8");
		add_bounded(x, node, out, value, strlen(value));
	} else if (*after == ':') {
		add_bounded(x, node, out, after + 2, (size_t)(end - after - 2));
	} else {
		unset(x, node, path, name);
		return NULL;
	}
	return end + 1;
}

static void expand_scalar(struct expander *x, struct node *node, const struct path *path)
{
	AUTO(sb_release) struct sb out = SB_INIT_MAX(EXPAND_TEXT_MAX);
	const char *text = node->text, *dollar = strchr(text, '$');
	bool any = false;

	if (!dollar)
		return;
	while (dollar) {
		sb_add(&out, text, (size_t)(dollar - text));
		if (dollar[1] == '$') {
			sb_addc(&out, '$');
			text = dollar + 2;
		} else if (dollar[1] == '{') {
			any = any || !text_starts(dollar + 2, "STOKER_");
			text = expand_one(x, node, path, dollar, &out);
			if (!text) {
				node->unknown = true;
				return;
			}
		} else {
			sb_addc(&out, '$');
			text = dollar + 1;
		}
		dollar = strchr(text, '$');
	}
	sb_adds(&out, text);
	node->text = arena_text(x->arena, out.text, out.len);
	node->expanded = any;
}

static void walk(struct expander *x, struct node *node, const struct path *path)
{
	if (node->visited) /* an anchor, met again through an alias */
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
		 struct node *root)
{
	struct expander x = { .arena = arena, .reporter = reporter, .getenv_fn = getenv_fn };

	walk(&x, root, NULL);
}
