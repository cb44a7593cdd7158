/* The table of printed JSON, and schemas from it: see printed.h. */
#include "jobs/report/printed/printed.h"

#include <string.h>

#include "jobs/flow/event.h"

#define EVENTS     "events" /* the name of their schema */
#define ERRORS     "error"  /* a line that belongs to every schema */
#define NULLABLE   "|null"
#define AT_PATTERN "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"

const struct printed_row printed_rows[] = {
#define LINE(line, names, by, means)                                                               \
	{ .kind = PRINTED_LINE,                                                                    \
	  .name = (line),                                                                          \
	  .of = (names),                                                                           \
	  .commands = (by),                                                                        \
	  .meaning = (means) },
#define PART(part, means) { .kind = PRINTED_PART, .name = (part), .meaning = (means) },
#define KEY(key, form, in, means)                                                                  \
	{ .kind = PRINTED_KEY, .name = (key), .type = (form), .unit = (in), .meaning = (means) },
#define KEYS_OF(part) { .kind = PRINTED_KEYS_OF, .name = (part) },
#include "jobs/report/printed/lines.def"
#include "jobs/report/printed/parts.def"
#include "jobs/report/printed/parts_lineage.def"
#undef LINE
#undef PART
#undef KEY
#undef KEYS_OF
	{ 0 }
};

bool printed_key_is_optional(const struct printed_row *key)
{
	return key->name[strlen(key->name) - 1] == '?';
}

size_t printed_key_len(const struct printed_row *key)
{
	return strlen(key->name) - printed_key_is_optional(key);
}

const struct printed_row *printed_part(const char *name)
{
	for (const struct printed_row *row = printed_rows; row->name; row++)
		if (row->kind == PRINTED_PART && strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

static json_t *schema_of_row(const struct printed_row *row, json_t *defs);
static json_t *schema_of_type(const char *type, json_t *defs);

static json_t *reference(const char *name)
{
	json_t *schema = json_object();
	AUTO(auto_free) char *path = mem_format("#/$defs/%s", name);

	js_put_str(schema, "$ref", path);
	return schema;
}

/* Puts the part among the definitions once; a part may hold itself. */
static json_t *part_schema(const char *name, json_t *defs)
{
	const struct printed_row *part = printed_part(name);

	if (part && !json_object_get(defs, name)) {
		js_put(defs, name, json_object());
		js_put(defs, name, schema_of_row(part, defs));
	}
	return part ? reference(name) : NULL;
}

static json_t *words_schema(const char *words)
{
	json_t *list = json_array();

	while (*words) {
		size_t len = strcspn(words, "|");

		json_array_append_new(list, json_stringn(words, len));
		words += len + (words[len] == '|');
	}
	return json_pack("{s:o}", "enum", list);
}

static json_t *names_schema(const struct event_field_row *field)
{
	json_t *list = json_array();

	for (int i = 0; i < field->name_count; i++)
		json_array_append_new(list, json_string(field->names[i]));
	return json_pack("{s:o}", "enum", list);
}

static json_t *field_names_schema(const char *name)
{
	for (int id = 0; id < EVF_COUNT; id++)
		if (strcmp(event_fields[id].name, name) == 0 && event_fields[id].names)
			return names_schema(&event_fields[id]);
	return NULL;
}

static json_t *plain_schema(const char *type)
{
	static const struct {
		const char *type, *name;
	} rows[] = { { "text", "string" },
		     { "int", "integer" },
		     { "number", "number" },
		     { "bool", "boolean" },
		     { "object", "object" } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (strcmp(rows[i].type, type) == 0)
			return json_pack("{s:s}", "type", rows[i].name);
	if (strcmp(type, "instant") == 0)
		return json_pack("{s:s, s:s}", "type", "string", "pattern", AT_PATTERN);
	if (strcmp(type, "value") == 0)
		return json_pack("{s:[{s:s}, {s:[s, s, s]}]}", "anyOf", "type", "number", "enum",
				 "nan", "inf", "-inf");
	return strcmp(type, "any") == 0 ? json_object() : NULL;
}

static json_t *or_null(const char *type, size_t len, json_t *defs)
{
	AUTO(auto_free) char *value = mem_format("%.*s", (int)len, type);

	return json_pack("{s:[o, {s:s}]}", "anyOf", schema_of_type(value, defs), "type", "null");
}

/* Returns NULL for a type that is none. */
static json_t *schema_of_type(const char *type, json_t *defs)
{
	size_t len = strlen(type), tail = strlen(NULLABLE);
	json_t *plain;

	if (type[0] == '=')
		return words_schema(type + 1);
	if (type[0] == '@')
		return field_names_schema(type + 1);
	if (len > tail && strcmp(type + len - tail, NULLABLE) == 0)
		return or_null(type, len - tail, defs);
	if (strncmp(type, "[]", 2) == 0)
		return json_pack("{s:s, s:o}", "type", "array", "items",
				 schema_of_type(type + 2, defs));
	if (strncmp(type, "{}", 2) == 0)
		return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
				 schema_of_type(type + 2, defs));
	plain = plain_schema(type);
	return plain ? plain : part_schema(type, defs);
}

/* A closed object, to which members are added. */
static json_t *object_schema(const char *meaning)
{
	return json_pack("{s:s, s:s, s:{}, s:[], s:b}", "description", meaning, "type", "object",
			 "properties", "required", "additionalProperties", 0);
}

static void add_member(json_t *object, const char *name, bool required, json_t *schema,
		       const char *unit, const char *meaning)
{
	js_put_str(schema, "description", meaning);
	if (unit[0])
		js_put_str(schema, "x-unit", unit);
	js_put(json_object_get(object, "properties"), name, schema);
	if (required)
		json_array_append_new(json_object_get(object, "required"), json_string(name));
}

/* Adds the keys that follow a line or a part. */
static void add_keys(const struct printed_row *of, json_t *object, json_t *defs)
{
	for (const struct printed_row *row = of + 1; row->name; row++) {
		AUTO(auto_free) char *name = NULL;

		if (row->kind == PRINTED_LINE || row->kind == PRINTED_PART)
			return;
		if (row->kind == PRINTED_KEYS_OF) {
			add_keys(printed_part(row->name), object, defs);
			continue;
		}
		if (strcmp(row->name, "*") == 0) {
			js_put(object, "additionalProperties", schema_of_type(row->type, defs));
			continue;
		}
		name = mem_format("%.*s", (int)printed_key_len(row), row->name);
		add_member(object, name, !printed_key_is_optional(row),
			   schema_of_type(row->type, defs), row->unit, row->meaning);
	}
}

static json_t *schema_of_row(const struct printed_row *row, json_t *defs)
{
	json_t *object = object_schema(row->meaning);

	add_keys(row, object, defs);
	return object;
}

/* ---- events --------------------------------------------------------------------- */

static json_t *field_schema(const struct event_field_row *field, json_t *defs)
{
	static const char *const types[] = {
		[EVT_INT] = "int",  [EVT_REAL] = "number",     [EVT_BOOL] = "bool",
		[EVT_STR] = "text", [EVT_INSTANT] = "instant", [EVT_DURATION] = "number",
	};

	if (field->type == EVT_ENUM)
		return names_schema(field);
	return schema_of_type(field->type == EVT_JSON ? field->unit : types[field->type], defs);
}

/* Adds a schema for each event, by its name, and returns the alternatives. */
static void add_events(json_t *ways, json_t *defs)
{
	const struct printed_row *common = printed_part("event");

	for (int kind = 0; kind < EV_COUNT; kind++) {
		const struct event_row *row = &event_rows[kind];
		json_t *object = object_schema(row->meaning);

		add_keys(common, object, defs);
		json_object_set_new(json_object_get(object, "properties"), "event",
				    json_pack("{s:s}", "const", row->name));
		for (int id = 0; id < EVF_COUNT; id++) {
			const struct event_field_row *field = &event_fields[id];

			if (!(row->allowed & FIELD_SET_OF(id)))
				continue;
			add_member(object, field->name, row->required & FIELD_SET_OF(id),
				   field_schema(field, defs),
				   field->type == EVT_JSON ? "" : field->unit, field->meaning);
		}
		js_put(defs, row->name, object);
		json_array_append_new(ways, reference(row->name));
	}
}

/* ---- lines ---------------------------------------------------------------------- */

static bool is_of(const struct printed_row *row, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = row->of; *at;) {
		size_t word = strcspn(at, " ");

		if (word == len && strncmp(at, name, len) == 0)
			return true;
		at += word + (at[word] == ' ');
	}
	return false;
}

json_t *printed_schema(const char *of)
{
	json_t *schema = json_object(), *ways = json_array(), *defs = json_object();
	AUTO(auto_free) char *title = mem_format("a line of stoker --json: %s", of);
	bool known = strcmp(of, EVENTS) == 0;

	for (const struct printed_row *row = printed_rows; row->name; row++) {
		if (row->kind != PRINTED_LINE || !(is_of(row, of) || is_of(row, ERRORS)))
			continue;
		known |= is_of(row, of);
		js_put(defs, row->name, schema_of_row(row, defs));
		json_array_append_new(ways, reference(row->name));
	}
	if (strcmp(of, EVENTS) == 0)
		add_events(ways, defs);
	js_put_str(schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
	js_put_str(schema, "title", title);
	js_put(schema, "anyOf", ways);
	js_put(schema, "$defs", defs);
	if (known)
		return schema;
	json_decref(schema);
	return NULL;
}
