/*
 * Variables as a shell writes them: $HOME. No shell reads a spec, and only ${HOME} is expanded
 * in it, so such a text is passed on as it stands: a folder named "$HOME" is made, a script gets
 * the letters. The same holds of ~/ outside of paths.
 */
#include <ctype.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/lint/lint.h"

/* Returns the length of the name at `text`; names in lower case count in paths alone: elsewhere
 * "$name" is mostly something else. */
static size_t name_at(const char *text, bool in_path)
{
	size_t len = 0;

	if (isdigit((unsigned char)*text))
		return 0;
	while (isupper((unsigned char)text[len]) || isdigit((unsigned char)text[len]) ||
	       text[len] == '_' || (in_path && islower((unsigned char)text[len])))
		len++;
	if (!in_path && (len < 2 || isalnum((unsigned char)text[len])))
		return 0;
	return len;
}

/* Returns the first one in a text as it was written, where $$ stands for $; NULL if there is
 * none. */
static const char *find_variable(const char *text, bool in_path, size_t *ret_len)
{
	for (const char *at = strchr(text, '$'); at; at = strchr(at, '$')) {
		if (at[1] == '$') {
			at += 2;
			continue;
		}
		*ret_len = name_at(++at, in_path);
		if (*ret_len > 0)
			return at;
	}
	return NULL;
}

static void check_text(struct binder *binder, field_id id, const struct node *node,
		       const struct path *path)
{
	const struct field *row = &field_table[id];
	AUTO(auto_free) char *field = NULL;
	const char *name;
	size_t len;

	if ((row->type != FIELD_STRING && row->type != FIELD_ANY) || shape_is_regex(row->shape) ||
	    id == SPEC_DERIVE_ANY || !node->written)
		return;
	if (!row->is_path && row->shape != SHAPE_RELATIVE && strncmp(node->written, "~/", 2) == 0) {
		field = node_path_text(path);
		problem_hint(problem_lint(&binder->reporter, node->at, field,
					  "'~/' in '%s' does not expand here", field),
			     "write ${HOME}/, or the path in the job");
		return;
	}
	name = find_variable(node->written, row->is_path, &len);
	if (!name)
		return;
	field = node_path_text(path);
	problem_hint(problem_lint(&binder->reporter, node->at, field,
				  "'$%.*s' in '%s' does not expand here", (int)len, name, field),
		     "write ${%.*s}, or $$%.*s for the plain text", (int)len, name, (int)len, name);
}

static void check_node(struct binder *binder, field_id id, const struct node *node,
		       const struct path *path);

/* A shell expands the variables of its own lines. */
static void check_list(struct binder *binder, field_id id, const struct node *list,
		       const struct path *path)
{
	bool is_command = strcmp(field_leaf(id), "command") == 0, shell = false;

	for (size_t i = 0; i < list->count; i++) {
		const struct node *item = list->entries[i].value;
		struct path below = { path, NULL, i };

		if (!shell)
			check_node(binder, field_table[id].type == FIELD_LIST ? field_item(id) : id,
				   item, &below);
		shell = shell ||
			(is_command && item->kind == NODE_SCALAR && launch_is_shell(item->text));
	}
}

static void check_node(struct binder *binder, field_id id, const struct node *node,
		       const struct path *path)
{
	if (id == FIELD_NONE || id == SPEC_SLURM_SETUP)
		return;
	if (node->kind == NODE_SCALAR)
		check_text(binder, field_table[id].single ? field_item(id) : id, node, path);
	if (node->kind == NODE_LIST)
		check_list(binder, id, node, path);
	for (size_t i = 0; node->kind == NODE_MAP && i < node->count; i++) {
		const struct entry *entry = &node->entries[i];
		struct path below = { path, entry->key, i };

		check_node(binder,
			   field_table[id].type == FIELD_FREE ? field_item(id)
							      : field_child(id, entry->key),
			   entry->value, &below);
	}
}

void lint_variables(struct binder *binder)
{
	const struct node *tree = binder->spec->tree;

	for (size_t i = 0; i < tree->count; i++) {
		struct path path = { NULL, tree->entries[i].key, i };

		check_node(binder, field_child(FIELD_NONE, tree->entries[i].key),
			   tree->entries[i].value, &path);
	}
}
