/* Rows of compatibility.yaml: see compatibility_rows.h. */
#include "jobs/spec/machines/compatibility_rows.h"

#include <ctype.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/machines/catalogue.h"
#include "jobs/spec/yaml.h"

#define ROW   "  - id:"
#define FIELD "    "

/* ---- lines --------------------------------------------------------------------------- */

static const char *text_of_file(void)
{
	return catalogue_file("compatibility")->text;
}

/* Returns the begin of the line after that one, or the end of the text. */
static const char *line_after(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

static bool begins(const char *line, const char *text)
{
	return strncmp(line, text, strlen(text)) == 0;
}

/* Returns the line after "NAME:" at the left; that section ends where a line begins at the left. */
static const char *section_of(const char *name)
{
	AUTO(auto_free) char *head = mem_format("\n%s:\n", name);
	const char *found = strstr(text_of_file(), head);

	return found ? found + strlen(head) : "";
}

bool compatibility_next(const char *section, struct row_text *row)
{
	const char *line = row->text ? row->text + row->len : section_of(section), *end;

	while (*line && !begins(line, ROW) && !isalpha((unsigned char)*line))
		line = line_after(line);
	if (!begins(line, ROW))
		return false;
	end = line_after(line);
	while (begins(end, FIELD))
		end = line_after(end);
	*row = (struct row_text){ line, (size_t)(end - line) };
	return true;
}

/* ---- fields -------------------------------------------------------------------------- */

struct row_text compatibility_field(struct row_text row, const char *name)
{
	AUTO(auto_free) char *head = mem_format("%s: ", name);
	const char *end = row.text + row.len;

	for (const char *line = row.text; line < end; line = line_after(line)) {
		const char *at = line + strlen(FIELD);

		if (begins(at, head)) {
			at += strlen(head);
			return (struct row_text){ at, strcspn(at, "\n") };
		}
	}
	return (struct row_text){ NULL, 0 };
}

static json_t *json_of(const struct node *node)
{
	json_t *ret;

	if (node->kind == NODE_SCALAR)
		return json_string(node->text);
	ret = node->kind == NODE_LIST ? json_array() : json_object();
	for (size_t i = 0; i < node->count; i++) {
		const struct entry *entry = &node->entries[i];

		if (node->kind == NODE_LIST)
			json_array_append_new(ret, json_of(entry->value));
		else
			json_object_set_new(ret, entry->key, json_of(entry->value));
	}
	return ret;
}

json_t *compatibility_value(struct row_text row, const char *name)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	AUTO(problems_release) struct problems problems = { 0 };
	struct reporter reporter = { "configs/catalogue/compatibility.yaml", &problems };
	struct row_text field = compatibility_field(row, name);
	struct node *tree = NULL;

	if (!field.text ||
	    spec_tree_parse(arena, &reporter, field.text, field.len, NULL, &tree) < 0 || !tree)
		return NULL;
	return json_of(tree);
}

static bool is_in_name(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_-.", c));
}

bool compatibility_has_word(struct row_text field, const char *word, size_t len)
{
	const char *end = field.text ? field.text + field.len : NULL, *at = field.text;

	for (; at && len > 0 && (at = memmem(at, (size_t)(end - at), word, len)); at++)
		if (!is_in_name(at[-1]) && (at + len == end || !is_in_name(at[len])))
			return true;
	return false;
}

char *compatibility_sources(const char *names)
{
	const char *section = section_of("sources");
	struct sb ret = SB_INIT;

	while (names && *names) {
		size_t len = strcspn(names, ",");
		AUTO(auto_free) char *head = mem_format("  %.*s: ", (int)len, names);
		const char *found = strstr(section, head);

		if (found)
			sb_addf(&ret, "%s%.*s", ret.len > 0 ? "; " : "",
				(int)strcspn(found + strlen(head), "\n"), found + strlen(head));
		names += len;
		names += strspn(names, ", ");
	}
	return sb_take(&ret);
}
