/*
 * Messages between a driver and its agents as tables: JSON objects with typed members. The rows of
 * a .def (order.def, node_report.def) give the struct, its encoder and decoder, the documentation
 * (docs/protocol.md) and the round-trip test, so that none of them can differ from the others.
 *
 * MESSAGE(m, "title") opens a message; rows follow, and END(m) closes it. A message stands behind
 * those it contains.
 *
 * FIELD(m, type, name, presence, "documentation"): the member of this name. The documentation is
 * not in the binary.
 *   type      INT (64-bit), BOOL, TEXT, TEXTS (list of texts), MAP (object of texts), PAIRS (list
 *             of [text, text]), JSON (any value, described elsewhere), OBJECT(other message),
 *             LIST(other message); SHAPE(other message) and SHAPES(other message) have the same
 *             form as these two, but stay JSON in the struct: they are only passed on
 *   presence  NEEDED: the decoder refuses a message without it. ALWAYS: every agent or driver
 *             writes it, but its lack is no error. OPTIONAL. ELSE(number): optional; this number
 *             holds if it is absent
 *
 * Members are encoded in the order in which they were set. Members that are only known to a newer
 * version are ignored; null counts as absent; a member of a wrong type is an error that names it.
 *
 * A struct that is all zeros is a message without members. It owns what is in it.
 */
#ifndef STK_STORE_MESSAGE_H
#define STK_STORE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"

enum message_type {
	MESSAGE_INT,
	MESSAGE_BOOL,
	MESSAGE_TEXT,
	MESSAGE_TEXTS,
	MESSAGE_MAP,
	MESSAGE_PAIRS,
	MESSAGE_JSON,
	MESSAGE_OBJECT,
	MESSAGE_LIST,
	MESSAGE_SHAPE,
	MESSAGE_SHAPES,
};

enum message_presence { MESSAGE_NEEDED, MESSAGE_ALWAYS, MESSAGE_OPTIONAL, MESSAGE_ELSE };

struct message;

struct message_field {
	const char *name;
	enum message_type type;
	const struct message *of; /* message of which it is one, or a list; NULL: a plain value */
	enum message_presence presence;
	int64_t fallback;     /* value of an absent INT */
	size_t offset, place; /* in the struct, of the value and of has_<name> */
};

struct message {
	const char *title;
	size_t size; /* of its struct */
	const struct message_field *fields;
	size_t count;
};

/* Member of the struct, by type; the struct begins with `unsigned places`. */
#define MESSAGE_C_INT       int64_t
#define MESSAGE_C_BOOL      bool
#define MESSAGE_C_TEXT      char *
#define MESSAGE_C_TEXTS     json_t *
#define MESSAGE_C_MAP       json_t *
#define MESSAGE_C_PAIRS     json_t *
#define MESSAGE_C_JSON      json_t *
#define MESSAGE_C_SHAPE(m)  json_t *
#define MESSAGE_C_SHAPES(m) json_t *
#define MESSAGE_C_OBJECT(m) struct m
#define MESSAGE_C_LIST(m)                                                                          \
	struct {                                                                                   \
		struct m *items;                                                                   \
		size_t count;                                                                      \
	}

/* Opens and closes the struct of a message. */
#define MESSAGE_STRUCT(m)                                                                          \
	struct m {                                                                                 \
		unsigned places;
#define MESSAGE_STRUCT_END                                                                         \
	}                                                                                          \
	;

/* Opens and closes its table: `<m>_message_table`, for the file alone. */
#define MESSAGE_TABLE(m, text)                                                                     \
	static const char m##_title[] = text;                                                      \
	static const struct message_field m##_fields[] = {
#define MESSAGE_TABLE_END(m)                                                                       \
	}                                                                                          \
	;                                                                                          \
	static const struct message m##_message_table = { .title = m##_title,                      \
							  .size = sizeof(struct m),                \
							  .fields = m##_fields,                    \
							  .count = STK_LENGTH(m##_fields) };

/* Columns of the table, by type and by presence. */
#define MESSAGE_T_INT              MESSAGE_INT, NULL
#define MESSAGE_T_BOOL             MESSAGE_BOOL, NULL
#define MESSAGE_T_TEXT             MESSAGE_TEXT, NULL
#define MESSAGE_T_TEXTS            MESSAGE_TEXTS, NULL
#define MESSAGE_T_MAP              MESSAGE_MAP, NULL
#define MESSAGE_T_PAIRS            MESSAGE_PAIRS, NULL
#define MESSAGE_T_JSON             MESSAGE_JSON, NULL
#define MESSAGE_T_OBJECT(m)        MESSAGE_OBJECT, &m##_message_table
#define MESSAGE_T_LIST(m)          MESSAGE_LIST, &m##_message_table
#define MESSAGE_T_SHAPE(m)         MESSAGE_SHAPE, &m##_message_table
#define MESSAGE_T_SHAPES(m)        MESSAGE_SHAPES, &m##_message_table
#define MESSAGE_P_NEEDED           MESSAGE_NEEDED, 0
#define MESSAGE_P_ALWAYS           MESSAGE_ALWAYS, 0
#define MESSAGE_P_OPTIONAL         MESSAGE_OPTIONAL, 0
#define MESSAGE_P_ELSE(n)          MESSAGE_ELSE, n
#define MESSAGE_EXPAND(macro, ...) macro(__VA_ARGS__)
#define MESSAGE_ROW(m, id, t, o, p, f)                                                             \
	{ .name = #id,                                                                             \
	  .type = (t),                                                                             \
	  .of = (o),                                                                               \
	  .presence = (p),                                                                         \
	  .fallback = (f),                                                                         \
	  .offset = offsetof(struct m, id),                                                        \
	  .place = offsetof(struct m, has_##id) },

/* Reads a message: `has_<name>` of each member says whether it is there. `ret` must be all zeros;
 * release it also after an error. */
int message_decode(const struct message *message, const json_t *json, void *ret, struct err **err);
/* Returns a new object with the members that are set. */
json_t *message_encode(const struct message *message, const void *from);
/* Frees what is in it and makes it all zeros. */
void message_release(const struct message *message, void *of);

/* Marks a member as set; set again, it keeps its place. The value of an OBJECT or a LIST is then
 * set member by member. */
#define MESSAGE_MARK(m, field)       ((void)((m)->has_##field || ((m)->has_##field = ++(m)->places)))
#define MESSAGE_SET(m, field, value) ((m)->field = (value), MESSAGE_MARK(m, field))
/* Sets a copy of the text; NULL leaves it as it is. */
#define MESSAGE_SET_TEXT(m, field, text)                                                           \
	message_set_text(&(m)->field, &(m)->has_##field, &(m)->places, text)
/* Sets a JSON value and takes it over; NULL leaves it as it is. */
#define MESSAGE_SET_JSON(m, field, value)                                                          \
	message_set_json(&(m)->field, &(m)->has_##field, &(m)->places, value)
/* Appends to a LIST that is marked as set: gives its new item, all zeros. */
#define MESSAGE_ADD(list)                                                                          \
	((list)->items = mem_grow((list)->items, (list)->count + 1, sizeof *(list)->items),        \
	 memset(&(list)->items[(list)->count], 0, sizeof *(list)->items),                          \
	 &(list)->items[(list)->count++])
/* Empties a member and marks it as set, where it was if it was set. */
void message_renew(const struct message *message, void *of, const char *name);
/* Removes a member; set again, it is the last. */
void message_remove(const struct message *message, void *from, const char *name);

void message_set_text(char **at, unsigned *place, unsigned *places, const char *text);
void message_set_json(json_t **at, unsigned *place, unsigned *places, json_t *value);

#endif
