/*
 * Requests of a spec that this version cannot fulfil yet. The table says which fields and words
 * are ready; a field at its default asks for nothing.
 */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/fields/units.h"
#include "jobs/spec/resolved.h"

struct not_yet_search {
	const struct spec *spec;
	struct reporter reporter;
	struct problem *(*report)(struct reporter *to, struct mark at, const char *field,
				  const char *fmt, ...)STK_PRINTF(4, 5);
};

/* True for the same value in other words: 24h and 1d, [a] and [ a ]. */
static bool equal(enum field_type type, const json_t *a, const json_t *b)
{
	int64_t x, y;

	if (json_is_string(a) && json_is_string(b) && units_parse(type, json_string_value(a), &x) &&
	    units_parse(type, json_string_value(b), &y))
		return x == y;
	return json_equal(a, b);
}

static bool is_default(field_id field, const json_t *value)
{
	json_auto_t *fallback = bind_default(field);

	return fallback && equal(field_table[field].type, value, fallback);
}

static void refuse(struct not_yet_search *search, field_id field, const struct entry *entry,
		   const struct path *path, const char *value)
{
	const struct field *row = &field_table[field];
	AUTO(auto_free) char *name = node_path_text(path);
	AUTO(auto_free) char *ready = NULL;
	struct problem *problem;

	if (value)
		problem = search->report(&search->reporter, access_mark_of_entry(entry), name,
					 "'%s: %s' is not part of this version yet", name, value);
	else
		problem = search->report(&search->reporter, entry->at, name,
					 "'%s' is not part of this version yet", name);
	if (value && row->ready_words) {
		ready = field_words_list(row->ready_words, " and ");
		problem_hint(problem, "ready are: %s", ready);
	} else if (row->local_only) {
		problem_hint(problem, "use a path on this machine%s",
			     row->s3_ready ? " and s3:// prefixes" : "");
	} else {
		problem_hint(problem, "remove the field to run without it");
	}
}

static bool is_url(const char *text)
{
	/* git@host:path is a URL too. */
	return strstr(text, "://") || (text_starts(text, "git@") && strchr(text, ':'));
}

/* Length of "s3://" in a URL: the text after it may hold a password. */
static size_t scheme(const char *text)
{
	size_t len = strcspn(text, ":");

	return len + (text[len] == ':') + (text_starts(text + len, "://") ? 2 : 0);
}

/* Reports a value that `run` refuses in this version. */
static void check_scalar(struct not_yet_search *search, field_id field, const struct entry *entry,
			 const struct path *path, const json_t *value)
{
	const struct field *row = &field_table[field];
	const char *text = json_string_value(value);

	AUTO(auto_free) char *kind = text ? mem_format("%.*s…", (int)scheme(text), text) : NULL;

	if (row->local_only && text && is_url(text) &&
	    !(row->s3_ready && text_starts(text, "s3://")))
		refuse(search, field, entry, path, kind);
	else if (row->ready_words && !json_is_number(value)) {
		const char *word =
			json_is_boolean(value) ? json_is_true(value) ? "true" : "false" : text;

		if (!field_word_in(row->ready_words, word))
			refuse(search, field, entry, path, word);
	} else if (!row->ready && !is_default(field, value)) {
		refuse(search, field, entry, path, NULL);
	}
}

static void check(struct not_yet_search *search, field_id field, const struct entry *entry,
		  const struct path *path, const json_t *value);

/* Checks members that the user wrote, each with its value in the resolved spec. */
static void check_members(struct not_yet_search *search, field_id section, const struct node *map,
			  const struct path *path, const json_t *object)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct entry *entry = &map->entries[i];
		struct path below = { path, entry->key, i };
		field_id id = section != FIELD_NONE && field_table[section].type == FIELD_FREE
				      ? field_item(section)
				      : field_child(section, entry->key);

		if (id != FIELD_NONE)
			check(search, id, entry, &below, json_object_get(object, entry->key));
	}
}

/* True if a section says more than defaults, so that refusing all of it is fair. */
static bool says_something(field_id section, const struct node *map, const json_t *object)
{
	for (size_t i = 0; i < map->count; i++) {
		field_id id = field_child(section, map->entries[i].key);

		if (id != FIELD_NONE &&
		    !is_default(id, json_object_get(object, map->entries[i].key)))
			return true;
	}
	return false;
}

static void check(struct not_yet_search *search, field_id field, const struct entry *entry,
		  const struct path *path, const json_t *value)
{
	const struct field *row = &field_table[field];
	const struct node *node = entry->value;

	if (!value)
		return;
	switch (row->type) {
	case FIELD_SECTION:
		if (row->ready)
			check_members(search, field, node, path, value);
		else if (says_something(field, node, value))
			refuse(search, field, entry, path, NULL);
		break;
	case FIELD_FREE:
		check_members(search, field, node, path, value);
		break;
	case FIELD_LIST:
		if (!row->ready && json_array_size(value) > 0 && !is_default(field, value))
			refuse(search, field, entry, path, NULL);
		for (size_t i = 0; row->ready && i < node->count; i++) {
			struct path below = { path, NULL, i };

			check(search, field_item(field), &node->entries[i], &below,
			      json_array_get(value, i));
		}
		break;
	default:
		check_scalar(search, field, entry, path, value);
		break;
	}
}

static size_t find_all(struct not_yet_search *search)
{
	check_members(search, FIELD_NONE, search->spec->tree, NULL, search->spec->root);
	problems_finish(search->reporter.problems, search->reporter.file);
	return search->reporter.problems->count;
}

size_t spec_not_yet(const struct spec *spec, struct problems *ret)
{
	struct not_yet_search search = { spec, { spec->file, ret }, problem_error };

	return find_all(&search);
}

size_t spec_not_yet_warn(const struct spec *spec, struct problems *ret)
{
	struct not_yet_search search = { spec, { spec->file, ret }, problem_lint };

	return find_all(&search);
}
