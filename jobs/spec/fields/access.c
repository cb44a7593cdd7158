/* Typed access to a resolved spec: see spec.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/fields/units.h"
#include "jobs/spec/resolved.h"

const json_t *spec_root(const struct spec *spec)
{
	return spec->root;
}

const char *spec_file(const struct spec *spec)
{
	return spec->file;
}

const json_t *spec_failures(const struct spec *spec)
{
	return spec->failures;
}

const json_t *spec_instance(const struct spec *spec)
{
	return spec->instance;
}

bool spec_is_configured(const struct spec *spec, enum spec_field field)
{
	const char *file = access_mark_of_field(spec, field).file;

	return file && file == spec->configuration;
}

const json_t *spec_here(const struct spec *spec)
{
	return spec->here;
}

void spec_put_here(struct spec *spec, json_t *here)
{
	json_decref(spec->here);
	spec->here = here;
}

const json_t *spec_get(const struct spec *spec, enum spec_field field)
{
	const char *path = field_table[field].path;

	return strpbrk(path, "[*") ? NULL : js_path(spec->root, path);
}

const char *spec_str(const struct spec *spec, enum spec_field field)
{
	return json_string_value(spec_get(spec, field));
}

int64_t spec_int(const struct spec *spec, enum spec_field field)
{
	return json_integer_value(spec_get(spec, field));
}

bool spec_bool(const struct spec *spec, enum spec_field field)
{
	return json_is_true(spec_get(spec, field));
}

double spec_real(const struct spec *spec, enum spec_field field)
{
	return json_number_value(spec_get(spec, field));
}

static int64_t measure(const struct spec *spec, enum spec_field field, enum field_type type)
{
	const char *text = spec_str(spec, field);
	int64_t value;

	if (!text || field_table[field].type != type || !units_parse(type, text, &value))
		return SPEC_WORD;
	return value;
}

int64_t spec_ms(const struct spec *spec, enum spec_field field)
{
	return measure(spec, field, FIELD_DURATION);
}

int64_t spec_bytes(const struct spec *spec, enum spec_field field)
{
	return measure(spec, field, FIELD_SIZE);
}

bool spec_says(const struct spec *spec, enum spec_field field, const char *word)
{
	const char *text = spec_str(spec, field);

	return text && strcmp(text, word) == 0;
}

bool access_on_aws(const struct spec *spec)
{
	return spec_says(spec, SPEC_ENGINE, "batch") || spec_says(spec, SPEC_ENGINE, "sagemaker");
}

bool spec_is_set(const struct spec *spec, enum spec_field field)
{
	return spec->written[field] != NULL;
}

const struct node *access_node_of_field(const struct spec *spec, enum spec_field field)
{
	return spec->written[field] ? spec->written[field]->value : NULL;
}

struct mark access_mark_of_entry(const struct entry *entry)
{
	const struct node *value = entry->value;

	return value->kind == NODE_SCALAR && !node_is_null(value) ? value->at : entry->at;
}

struct mark access_mark_of_field(const struct spec *spec, enum spec_field field)
{
	if (spec->written[field])
		return access_mark_of_entry(spec->written[field]);
	return spec->start;
}

/* Returns the entry with the longest key that `path` begins with: keys of free maps may hold
 * dots. */
static const struct entry *longest_key(const struct node *map, const char *path)
{
	const struct entry *found = NULL;
	size_t best = 0;

	for (size_t i = 0; i < map->count; i++) {
		size_t len = strlen(map->entries[i].key);

		if (len >= best && strncmp(path, map->entries[i].key, len) == 0 &&
		    (!path[len] || strchr(".[", path[len]))) {
			found = &map->entries[i];
			best = len;
		}
	}
	return found;
}

/* Returns NULL if it was not written. */
static const struct entry *find_entry(const struct spec *spec, const char *dotted)
{
	const struct node *node = spec->tree;
	const struct entry *entry = NULL;

	while (*dotted) {
		if (node->kind == NODE_LIST) {
			size_t index = strtoul(dotted + (*dotted == '['), NULL, 10);

			entry = index < node->count ? &node->entries[index] : NULL;
			dotted += strcspn(dotted, "].");
			dotted += *dotted == ']';
		} else {
			entry = node->kind == NODE_MAP ? longest_key(node, dotted) : NULL;
			dotted += entry ? strlen(entry->key) : 0;
		}
		if (!entry)
			return NULL;
		node = entry->value;
		dotted += *dotted == '.';
	}
	return entry;
}

bool access_mark_of_path(const struct spec *spec, const char *dotted, struct mark *ret)
{
	const struct entry *entry = find_entry(spec, dotted);

	if (entry)
		*ret = access_mark_of_entry(entry);
	return entry != NULL;
}

const char *spec_text(const struct spec *spec, const char *dotted)
{
	const struct entry *entry = find_entry(spec, dotted);

	return entry && entry->value->kind == NODE_SCALAR ? entry->value->text : NULL;
}

bool spec_position(const struct spec *spec, const char *dotted, const char **ret_file,
		   int *ret_line, int *ret_column)
{
	struct mark at = { 0 };
	bool found = access_mark_of_path(spec, dotted, &at);

	if (ret_file)
		*ret_file = at.set ? "--set" : at.file ? at.file : spec->file;
	*ret_line = at.set ? 0 : at.line;
	*ret_column = at.set ? 0 : at.column;
	return found;
}

const char *spec_override(const struct spec *spec, const char *dotted)
{
	struct mark at = { 0 };

	access_mark_of_path(spec, dotted, &at);
	return at.set;
}

json_t *spec_extended(const struct spec *spec)
{
	json_t *names = json_array(), *row;
	const char *name;

	json_object_foreach (spec->files, name, row)
		json_array_append_new(names, json_string(name));
	return names;
}

const json_t *spec_profiles(const struct spec *spec)
{
	return spec->profiles;
}

static struct problem *add_problem(struct binder *binder, enum spec_field field, const char *member,
				   bool lint, const char *fmt, va_list args) STK_PRINTF(5, 0);
static struct problem *add_problem(struct binder *binder, enum spec_field field, const char *member,
				   bool lint, const char *fmt, va_list args)
{
	struct mark at = access_mark_of_field(binder->spec, field);
	AUTO(auto_free)
	char *dotted = mem_format("%s%s", field_table[field].path, member ? member : "");

	if (member)
		access_mark_of_path(binder->spec, dotted, &at);
	return problem_add(&binder->reporter, at, dotted, lint, fmt, args);
}

struct problem *spec_error(struct binder *binder, enum spec_field field, const char *member,
			   const char *fmt, ...)
{
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = add_problem(binder, field, member, false, fmt, args);
	va_end(args);
	return problem;
}

struct problem *spec_lint(struct binder *binder, enum spec_field field, const char *member,
			  const char *fmt, ...)
{
	struct problem *problem;
	va_list args;

	va_start(args, fmt);
	problem = add_problem(binder, field, member, true, fmt, args);
	va_end(args);
	return problem;
}

void spec_freep(struct spec **spec)
{
	if (!*spec)
		return;
	json_decref((*spec)->files);
	json_decref((*spec)->profiles);
	json_decref((*spec)->root);
	json_decref((*spec)->instance);
	json_decref((*spec)->failures);
	json_decref((*spec)->env_files);
	json_decref((*spec)->passed);
	json_decref((*spec)->derived);
	json_decref((*spec)->variables);
	json_decref((*spec)->here);
	node_arena_freep(&(*spec)->arena);
	free((*spec)->file);
	free((*spec)->text);
	auto_strv(&(*spec)->uses);
	auto_strv(&(*spec)->sets);
	free(*spec);
	*spec = NULL;
}
