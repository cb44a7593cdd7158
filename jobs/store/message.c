/* Encodes, decodes and releases messages by their tables: see message.h. */
#include "jobs/store/message.h"

#include <stdlib.h>
#include <string.h>

/* Layout of every LIST. */
struct message_items {
	void *items;
	size_t count;
};

static void *value_of(const struct message_field *field, const void *message)
{
	return (char *)(uintptr_t)message + field->offset;
}

static unsigned *place_of(const struct message_field *field, const void *message)
{
	return (unsigned *)(void *)((char *)(uintptr_t)message + field->place);
}

/* The pointer in a LIST has the type of its items: copied, not looked at through another type. */
static struct message_items list_of(const struct message_field *field, const void *message)
{
	struct message_items list;

	memcpy(&list, value_of(field, message), sizeof list);
	return list;
}

/* ---- release ---- */

/* Frees a value and leaves an absent one. */
static void field_release(const struct message_field *field, void *message)
{
	void *at = value_of(field, message);
	struct message_items list;

	*place_of(field, message) = 0;
	switch (field->type) {
	case MESSAGE_INT:
	case MESSAGE_BOOL:
		break;
	case MESSAGE_TEXT:
		free(*(char **)at);
		*(char **)at = NULL;
		break;
	case MESSAGE_OBJECT:
		message_release(field->of, at);
		break;
	case MESSAGE_LIST:
		list = list_of(field, message);
		for (size_t i = 0; i < list.count; i++)
			message_release(field->of, (char *)list.items + i * field->of->size);
		free(list.items);
		memset(at, 0, sizeof list);
		break;
	default:
		json_decref(*(json_t **)at);
		*(json_t **)at = NULL;
		break;
	}
}

void message_release(const struct message *message, void *of)
{
	for (size_t i = 0; i < message->count; i++)
		field_release(&message->fields[i], of);
	memset(of, 0, message->size);
}

/* ---- decode ---- */

static const char *const type_names[] = {
	[MESSAGE_INT] = "whole number",
	[MESSAGE_BOOL] = "truth value",
	[MESSAGE_TEXT] = "text",
	[MESSAGE_TEXTS] = "list of texts",
	[MESSAGE_MAP] = "object of texts",
	[MESSAGE_PAIRS] = "list of pairs of texts",
	[MESSAGE_JSON] = "value",
	[MESSAGE_OBJECT] = "object",
	[MESSAGE_LIST] = "list of objects",
	[MESSAGE_SHAPE] = "object",
	[MESSAGE_SHAPES] = "list of objects",
};

/* True for a text without NUL bytes: it becomes an argument, a variable or a path. */
static bool is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static bool is_pair(const json_t *value)
{
	return json_array_size(value) == 2 && is_text(json_array_get(value, 0)) &&
	       is_text(json_array_get(value, 1));
}

static bool is_list_of(const json_t *list, bool (*is_item)(const json_t *value))
{
	const json_t *value;
	size_t i;

	if (!json_is_array(list))
		return false;
	json_array_foreach (list, i, value)
		if (!is_item(value))
			return false;
	return true;
}

static bool is_object(const json_t *value)
{
	return json_is_object(value);
}

static bool is_map(const json_t *map)
{
	const char *name;
	json_t *value;

	if (!json_is_object(map))
		return false;
	json_object_foreach ((json_t *)(uintptr_t)map, name, value)
		if (!is_text(value))
			return false;
	return true;
}

static bool is_of_type(const json_t *value, enum message_type type)
{
	switch (type) {
	case MESSAGE_INT:
		return json_is_integer(value);
	case MESSAGE_BOOL:
		return json_is_boolean(value);
	case MESSAGE_TEXT:
		return is_text(value);
	case MESSAGE_TEXTS:
		return is_list_of(value, is_text);
	case MESSAGE_MAP:
		return is_map(value);
	case MESSAGE_PAIRS:
		return is_list_of(value, is_pair);
	case MESSAGE_JSON:
		return true;
	case MESSAGE_OBJECT:
	case MESSAGE_SHAPE:
		return json_is_object(value);
	case MESSAGE_LIST:
	case MESSAGE_SHAPES:
		return is_list_of(value, is_object);
	}
	return false;
}

static int decode_members(const struct message *message, const json_t *json, const char *above,
			  void *ret, struct err **err);

/* Decodes the items of a list, each into `items`. */
static int decode_items(const struct message_field *field, const json_t *list, const char *path,
			char *items, struct err **err)
{
	const json_t *value;
	size_t i;

	json_array_foreach (list, i, value) {
		AUTO(auto_free) char *item = mem_format("%s[%zu]", path, i);

		if (decode_members(field->of, value, item, items + i * field->of->size, err) < 0)
			return -1;
	}
	return 0;
}

/* Checks a value that stays JSON by decoding it once. */
static int check_shape(const struct message_field *field, const json_t *value, const char *path,
		       struct err **err)
{
	AUTO(auto_free) void *item = mem_zero(1, field->of->size);
	size_t count = field->type == MESSAGE_SHAPES ? json_array_size(value) : 1;
	int done = 0;

	for (size_t i = 0; i < count && done == 0; i++) {
		done = decode_members(field->of,
				      json_is_array(value) ? json_array_get(value, i) : value, path,
				      item, err);
		message_release(field->of, item);
	}
	return done;
}

static int decode_value(const struct message_field *field, json_t *value, const char *path,
			void *message, struct err **err)
{
	void *at = value_of(field, message);
	struct message_items list;

	switch (field->type) {
	case MESSAGE_INT:
		*(int64_t *)at = json_integer_value(value);
		return 0;
	case MESSAGE_BOOL:
		*(bool *)at = json_is_true(value);
		return 0;
	case MESSAGE_TEXT:
		*(char **)at = mem_copy(json_string_value(value));
		return 0;
	case MESSAGE_OBJECT:
		return decode_members(field->of, value, path, at, err);
	case MESSAGE_LIST:
		list.count = json_array_size(value);
		list.items = mem_zero(list.count + 1, field->of->size);
		memcpy(at, &list, sizeof list);
		return decode_items(field, value, path, list.items, err);
	case MESSAGE_SHAPE:
	case MESSAGE_SHAPES:
		if (check_shape(field, value, path, err) < 0)
			return -1;
		break;
	default:
		break;
	}
	*(json_t **)at = json_incref(value);
	return 0;
}

static int decode_member(const struct message_field *field, json_t *value, const char *above,
			 unsigned *places, void *message, struct err **err)
{
	AUTO(auto_free)
	char *path = *above ? mem_format("%s.%s", above, field->name) : mem_copy(field->name);

	if (!is_of_type(value, field->type))
		return err_set(err, EXIT_DEFECT, "'%s' is no %s", path, type_names[field->type]);
	*place_of(field, message) = ++*places;
	return decode_value(field, value, path, message, err);
}

static const struct message_field *field_find(const struct message *message, const char *name)
{
	for (size_t i = 0; i < message->count; i++)
		if (strcmp(message->fields[i].name, name) == 0)
			return &message->fields[i];
	return NULL;
}

/* Sets the values of absent members, also of those in absent objects. */
static void put_fallbacks(const struct message *message, void *ret)
{
	for (size_t i = 0; i < message->count; i++) {
		const struct message_field *field = &message->fields[i];

		if (field->presence == MESSAGE_ELSE)
			*(int64_t *)value_of(field, ret) = field->fallback;
		if (field->type == MESSAGE_OBJECT)
			put_fallbacks(field->of, value_of(field, ret));
	}
}

/* Decodes in the order of the members, which is kept as the order of the places. */
static int decode_members(const struct message *message, const json_t *json, const char *above,
			  void *ret, struct err **err)
{
	unsigned *places = ret;
	const char *name;
	json_t *value;

	put_fallbacks(message, ret);
	json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
		const struct message_field *field = field_find(message, name);

		if (field && !json_is_null(value) &&
		    decode_member(field, value, above, places, ret, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < message->count; i++)
		if (message->fields[i].presence == MESSAGE_NEEDED &&
		    !*place_of(&message->fields[i], ret))
			return err_set(err, EXIT_DEFECT, "'%s%s%s' is missing", above,
				       *above ? "." : "", message->fields[i].name);
	return 0;
}

int message_decode(const struct message *message, const json_t *json, void *ret, struct err **err)
{
	if (!json_is_object(json))
		return err_set(err, EXIT_DEFECT, "%s is no object", message->title);
	if (decode_members(message, json, "", ret, err) < 0)
		return err_wrap(err, "%s", message->title);
	return 0;
}

/* ---- encode ---- */

static json_t *encode_list(const struct message_field *field, const void *message)
{
	struct message_items list = list_of(field, message);
	json_t *array = json_array();

	for (size_t i = 0; i < list.count; i++)
		json_array_append_new(
			array, message_encode(field->of, (char *)list.items + i * field->of->size));
	return array;
}

static void encode_member(json_t *ret, const struct message_field *field, const void *message)
{
	const void *at = value_of(field, message);

	switch (field->type) {
	case MESSAGE_INT:
		js_put(ret, field->name, json_integer(*(const int64_t *)at));
		break;
	case MESSAGE_BOOL:
		js_put(ret, field->name, json_boolean(*(const bool *)at));
		break;
	case MESSAGE_TEXT:
		js_put_str(ret, field->name, *(char *const *)at);
		break;
	case MESSAGE_OBJECT:
		js_put(ret, field->name, message_encode(field->of, at));
		break;
	case MESSAGE_LIST:
		js_put(ret, field->name, encode_list(field, message));
		break;
	default:
		js_put(ret, field->name, json_incref(*(json_t *const *)at));
		break;
	}
}

/* Returns the member that was set first after `place`; NULL: none. */
static const struct message_field *field_after(const struct message *message, const void *from,
					       unsigned place)
{
	const struct message_field *next = NULL;

	for (size_t i = 0; i < message->count; i++) {
		const struct message_field *field = &message->fields[i];

		if (*place_of(field, from) > place &&
		    (!next || *place_of(field, from) < *place_of(next, from)))
			next = field;
	}
	return next;
}

json_t *message_encode(const struct message *message, const void *from)
{
	const struct message_field *field = NULL;
	json_t *ret = json_object();

	while ((field = field_after(message, from, field ? *place_of(field, from) : 0)))
		encode_member(ret, field, from);
	return ret;
}

/* ---- change ---- */

static void mark(unsigned *place, unsigned *places)
{
	if (!*place)
		*place = ++*places;
}

/* Aborts if the message has no such member. */
static const struct message_field *field_named(const struct message *message, const char *name)
{
	const struct message_field *field = field_find(message, name);

	if (!field)
		abort();
	return field;
}

void message_renew(const struct message *message, void *of, const char *name)
{
	const struct message_field *field = field_named(message, name);
	unsigned place = *place_of(field, of);

	field_release(field, of);
	*place_of(field, of) = place;
	mark(place_of(field, of), of);
}

void message_remove(const struct message *message, void *from, const char *name)
{
	field_release(field_named(message, name), from);
}

void message_set_text(char **at, unsigned *place, unsigned *places, const char *text)
{
	char *copy = text ? mem_copy(text) : NULL;

	if (!copy)
		return;
	free(*at);
	*at = copy;
	mark(place, places);
}

void message_set_json(json_t **at, unsigned *place, unsigned *places, json_t *value)
{
	if (!value)
		return;
	json_decref(*at);
	*at = value;
	mark(place, places);
}
