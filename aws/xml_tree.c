/* XML replies as JSON values: see xml.h. */
#include <string.h>

#include "aws/xml.h"

/* Elements in the root, and in those. */
#define DEPTH_MAX 33

/* Elements end in order, those within before those around them: what has ended at a depth, until
 * the element around it ends. */
struct tree {
	json_t *ended[DEPTH_MAX]; /* arrays of [name, value]; NULL: none */
	json_t *root;
};

static const char *name_of(const json_t *element)
{
	return json_string_value(json_array_get(element, 0));
}

static bool is_list(const json_t *elements)
{
	const char *first = name_of(json_array_get(elements, 0));
	const json_t *row;
	size_t i;

	json_array_foreach (elements, i, row)
		if (strcmp(name_of(row), first) != 0)
			return false;
	return i > 1 || strcmp(first, "item") == 0 || strcmp(first, "member") == 0;
}

/* Returns what the elements are together. */
static json_t *value_of(const json_t *elements)
{
	bool list = is_list(elements);
	json_t *ret = list ? json_array() : json_object();
	const json_t *row;
	size_t i;

	json_array_foreach (elements, i, row) {
		json_t *value = json_incref(json_array_get(row, 1));

		if (list)
			json_array_append_new(ret, value);
		else
			js_put(ret, name_of(row), value);
	}
	return ret;
}

static bool on_element(void *arg, const char *path, const char *text, size_t len)
{
	struct tree *tree = arg;
	const char *name = path;
	size_t depth = 0;
	json_t *value;

	for (const char *at = path; *at; at++)
		if (*at == '/') {
			depth++;
			name = at + 1;
		}
	if (depth + 1 >= DEPTH_MAX)
		return false;
	value = tree->ended[depth + 1] ? value_of(tree->ended[depth + 1]) : js_text(text, len);
	json_decref(tree->ended[depth + 1]);
	tree->ended[depth + 1] = NULL;
	if (depth == 0) {
		tree->root = value;
		return true;
	}
	if (!tree->ended[depth])
		tree->ended[depth] = json_array();
	json_array_append_new(tree->ended[depth],
			      json_pack("[o, o]", js_text(name, strlen(name)), value));
	return true;
}

int xml_tree(const void *bytes, size_t len, const char *what, json_t **ret, struct err **err)
{
	struct tree tree = { 0 };
	int result = xml_parse(bytes, len, what, on_element, &tree, err);

	for (size_t i = 0; i < DEPTH_MAX; i++)
		json_decref(tree.ended[i]);
	if (result == 0)
		*ret = tree.root;
	else
		json_decref(tree.root);
	return result;
}
