/*
 * The field table as JSON Schema (draft 2020-12): for editors, and for checks
 * of specs without stoker. Rules beyond a schema (fields against each other, ${VAR}'s values) are
 * left to `stoker validate`.
 */
#include <stdint.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/resolved.h"

/* Pattern of a value that a variable will stand for: any text with a ${NAME}. */
#define VARIABLE_PATTERN "\\$\\{"

static json_t *schema_of(field_id field);

static json_t *text_type(const char *type)
{
	return json_pack("{s:s}", "type", type);
}

static json_t *pattern(const char *text)
{
	return json_pack("{s:s, s:s}", "type", "string", "pattern", text);
}

static json_t *word_schema(const char *words)
{
	json_t *list = json_array();

	while (*words) {
		size_t n = strcspn(words, " ");

		json_array_append_new(list, json_stringn(words, n));
		words += n + (words[n] == ' ');
	}
	return json_pack("{s:o}", "enum", list);
}

static json_t *number_schema(const struct field *row)
{
	json_t *schema = text_type(row->type == FIELD_INT ? "integer" : "number");

	if (row->min != 0 || row->max != 0) {
		js_put(schema, "minimum", json_integer(row->min));
		js_put(schema, "maximum", json_integer(row->max));
	}
	return schema;
}

/* Readers of YAML 1.1 and 1.2 differ in what an unquoted number is; where
 * stoker takes it as text, the schema allows it too. */
static json_t *string_schema(const struct field *row)
{
	const char *shape = field_shape_rows[row->shape].pattern;
	json_t *schema = json_object();

	js_put(schema, "type", json_pack("[s, s]", "string", row->numbers ? "number" : "integer"));
	if (shape)
		js_put(schema, "pattern", json_string(shape));
	if (shape_is_regex(row->shape))
		js_put(schema, "format", json_string("regex"));
	return schema;
}

static const char *unit_pattern(enum field_type type)
{
	switch (type) {
	case FIELD_DURATION:
		return "^(0|[0-9]+(\\.[0-9]+)?(ms|s|m|h|d|w))$";
	case FIELD_SIZE:
		return "^[0-9]+(\\.[0-9]+)? ?([KMGT]i?B|B)?$";
	default:
		return "^[0-9.]+([eE][+-]?[0-9]+)?%$";
	}
}

/* A size without a unit is a number for YAML. */
static json_t *measure_schema(const struct field *row)
{
	json_t *schema = pattern(unit_pattern(row->type));

	if (row->type == FIELD_SIZE)
		js_put(schema, "type", json_pack("[s, s]", "string", "integer"));
	return schema;
}

/* A number without a percent sign is a number for YAML. */
static json_t *margin_schema(void)
{
	json_t *schema = pattern("^[0-9.]+([eE][+-]?[0-9]+)?%?$");

	js_put(schema, "type", json_pack("[s, s]", "string", "number"));
	js_put(schema, "minimum", json_integer(0));
	return schema;
}

static json_t *section_schema(field_id section)
{
	json_t *schema = text_type("object"), *members = json_object(), *required = json_array();

	for (field_id id = section + 1; id < SPEC_FIELD_COUNT; id++) {
		if (strchr("[*", field_leaf(id)[0]) || field_parent(id) != section)
			continue;
		js_put(members, field_leaf(id), schema_of(id));
		if (field_table[id].required)
			json_array_append_new(required, json_string(field_leaf(id)));
	}
	js_put(schema, "properties", members);
	if (json_array_size(required) > 0)
		js_put(schema, "required", required);
	else
		json_decref(required);
	if (section == FIELD_NONE) /* names of the author's own: field_is_own() */
		js_put(schema, "patternProperties", json_pack("{s:b}", "^x-.", 1));
	js_put(schema, "additionalProperties", json_false());
	/* A name with nothing below it is an empty section. */
	if (section != FIELD_NONE && !json_object_get(schema, "required"))
		js_put(schema, "type", json_pack("[s, s]", "object", "null"));
	return schema;
}

static json_t *list_schema(field_id list)
{
	json_t *schema = text_type("array");

	js_put(schema, "items", schema_of(field_item(list)));
	if (field_table[list].max_items > 0)
		js_put(schema, "maxItems", json_integer((json_int_t)field_table[list].max_items));
	if (field_table[list].min_items > 0)
		js_put(schema, "minItems", json_integer((json_int_t)field_table[list].min_items));
	else
		js_put(schema, "type", json_pack("[s, s]", "array", "null"));
	if (field_table[list].single)
		return json_pack("{s:[o, o]}", "anyOf", schema, schema_of(field_item(list)));
	return schema;
}

static json_t *free_schema(field_id map)
{
	json_t *schema = json_object();

	js_put(schema, "type", json_pack("[s, s]", "object", "null"));
	js_put(schema, "additionalProperties", schema_of(field_item(map)));
	js_put(schema, "propertyNames",
	       pattern(field_shape_rows[field_table[map].key_shape].pattern));
	return schema;
}

static json_t *plain_schema(field_id field)
{
	const struct field *row = &field_table[field];

	switch (row->type) {
	case FIELD_SECTION:
		return section_schema(field);
	case FIELD_LIST:
		return list_schema(field);
	case FIELD_FREE:
		return free_schema(field);
	case FIELD_STRING:
		return string_schema(row);
	case FIELD_INT:
	case FIELD_REAL:
		return number_schema(row);
	case FIELD_BOOL:
		return text_type("boolean");
	case FIELD_CHOICE:
		return word_schema(row->words);
	case FIELD_DURATION:
	case FIELD_SIZE:
	case FIELD_PERCENT:
		return measure_schema(row);
	case FIELD_MARGIN:
		return margin_schema();
	case FIELD_OVERLAY:
		return json_pack("{s:s}", "$ref", "#/$defs/profile");
	case FIELD_ANY:
	case FIELD_TYPE_COUNT:
		break;
	}
	return json_pack("{s:[s, s, s, s, s]}", "type", "string", "number", "boolean", "null",
			 "array");
}

/* Takes "required" out of a section and of those in it, and lets null take each member back: items
 * of lists stay as they are. */
static void relax(json_t *schema)
{
	json_t *members = json_object_get(schema, "properties"), *member;
	const char *name;
	void *next;

	if (!members)
		return;
	json_object_del(schema, "required");
	json_object_foreach_safe (members, next, name, member) {
		relax(member);
		js_put(members, name, json_pack("{s:[O, {s:s}]}", "anyOf", member, "type", "null"));
	}
}

/* Returns the schema of a profile, made of that of the spec. */
static json_t *profile_schema(const json_t *spec)
{
	static const char *const never[] = { "version", "profiles", "extends" };
	json_t *profile = json_deep_copy(spec), *members = json_object_get(profile, "properties");

	for (size_t i = 0; i < STK_LENGTH(never); i++)
		json_object_del(members, never[i]);
	relax(profile);
	js_put(members, "use",
	       json_pack("{s:[{s:s}, {s:s, s:{s:s}}], s:s}", "anyOf", "type", "string", "type",
			 "array", "items", "type", "string", "description",
			 "other profiles, on which this one stands"));
	js_put(profile, "type", json_pack("[s, s]", "object", "null"));
	return profile;
}

/* Lets what a spec stands on bring the fields that are required. */
static void require_if_whole(json_t *schema)
{
	json_t *required = json_incref(json_object_get(schema, "required"));

	json_object_del(schema, "required");
	js_put(schema, "if",
	       json_pack("{s:{s:[{s:[s]}, {s:[s]}]}}", "not", "anyOf", "required", "extends",
			 "required", "profiles"));
	js_put(schema, "then", json_pack("{s:o}", "required", required));
}

static json_t *schema_of(field_id field)
{
	const struct field *row = &field_table[field];
	json_t *schema = plain_schema(field);
	json_t *fallback = bind_default(field);
	bool scalar = row->type != FIELD_SECTION && row->type != FIELD_LIST &&
		      row->type != FIELD_FREE && row->type != FIELD_ANY &&
		      row->type != FIELD_OVERLAY;

	if (scalar) {
		json_t *ways = json_array();

		json_array_append_new(ways, schema);
		if (row->words && row->type != FIELD_CHOICE)
			json_array_append_new(ways, word_schema(row->words));
		json_array_append_new(ways, pattern(VARIABLE_PATTERN));
		schema = json_pack("{s:o}", "anyOf", ways);
	}
	js_put(schema, "description", json_string(row->help));
	if (fallback && row->type != FIELD_FREE)
		js_put(schema, "default", fallback);
	else
		json_decref(fallback);
	if (scalar && row->example)
		js_put(schema, "examples", json_pack("[s]", row->example));
	return schema;
}

json_t *spec_schema(void)
{
	json_t *schema = json_object(), *members = section_schema(FIELD_NONE);

	js_put(schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
	/* A name, not a place: nobody can be asked for it. It counts with the spec's version. */
	js_put(schema, "$id", json_string("urn:stoker:spec:1"));
	js_put(schema, "title", json_string("stoker job spec"));
	js_put(schema, "$defs", json_pack("{s:o}", "profile", profile_schema(members)));
	json_object_update(schema, members);
	json_decref(members);
	require_if_whole(schema);
	return schema;
}
