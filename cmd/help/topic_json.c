/* The topic json: lines of JSON on stdout, their parts, and the events. From printed.h and event.h;
 * also stoker-json(7) and docs/json.md. */
#include <string.h>

#include "cmd/help/topics.h"
#include "cmd/screen/out.h"
#include "jobs/flow/event.h"
#include "jobs/report/printed/printed.h"

static void add_names(struct sb *text, const struct event_field_row *field)
{
	sb_adds(text, "one of ");
	for (int i = 0; i < field->name_count; i++)
		sb_addf(text, "%s%s", i ? ", " : "", field->names[i]);
}

/* Adds the words of an enum: "a|b". */
static void add_words(struct sb *text, const char *words)
{
	sb_adds(text, "one of ");
	for (; *words; words++)
		if (*words == '|')
			sb_adds(text, ", ");
		else
			sb_addc(text, *words);
}

static const struct event_field_row *field_named(const char *name)
{
	int id = 0;

	while (strcmp(event_fields[id].name, name) != 0)
		id++;
	return &event_fields[id];
}

/* Adds a type of lines.def in words. */
static void add_type(struct sb *text, const char *type)
{
	size_t len = strlen(type);

	if (type[0] == '=') {
		add_words(text, type + 1);
		return;
	}
	if (type[0] == '@') {
		add_names(text, field_named(type + 1));
		return;
	}
	if (strncmp(type, "[]", 2) == 0) {
		sb_adds(text, "list of ");
		add_type(text, type + 2);
		return;
	}
	if (strncmp(type, "{}", 2) == 0) {
		sb_adds(text, "by name: ");
		add_type(text, type + 2);
		return;
	}
	if (len > 5 && strcmp(type + len - 5, "|null") == 0)
		sb_addf(text, "%.*s or null", (int)len - 5, type);
	else
		sb_adds(text, type);
}

static void add_field_type(struct sb *text, const struct event_field_row *field)
{
	static const char *const types[] = {
		[EVT_INT] = "int",  [EVT_REAL] = "number",     [EVT_BOOL] = "bool",
		[EVT_STR] = "text", [EVT_INSTANT] = "instant", [EVT_DURATION] = "number",
	};

	if (field->type == EVT_ENUM)
		add_names(text, field);
	else
		add_type(text, field->type == EVT_JSON ? field->unit : types[field->type]);
}

/* The form of a JSON field stands in its column of units. */
static const char *field_unit(const struct event_field_row *field)
{
	return field->type == EVT_JSON ? "" : field->unit;
}

/* ---- the page ------------------------------------------------------------------- */

/* `type` becomes the whole text of the item. */
static void write_key(struct doc *doc, const char *name, size_t len, struct sb *type,
		      const char *unit, bool optional, const char *meaning)
{
	AUTO(auto_free) char *term = mem_format("%.*s", (int)len, name);

	if (unit[0] && strcmp(unit, "UTC") != 0)
		sb_addf(type, ", %s", unit);
	if (optional)
		sb_adds(type, ", optional");
	if (meaning[0])
		sb_addf(type, ": %s", meaning);
	doc_item(doc, term, type->text);
}

static void write_keys(struct doc *doc, const struct printed_row *of)
{
	for (const struct printed_row *row = of + 1; row->name; row++) {
		AUTO(sb_release) struct sb type = SB_INIT;

		if (row->kind == PRINTED_LINE || row->kind == PRINTED_PART)
			return;
		if (row->kind == PRINTED_KEYS_OF) {
			write_keys(doc, printed_part(row->name));
			continue;
		}
		add_type(&type, row->type);
		write_key(doc, row->name, printed_key_len(row), &type, row->unit,
			  printed_key_is_optional(row), row->meaning);
	}
}

/* Returns where a line or part is printed, in a sentence that the caller frees. */
static char *place_of(const struct printed_row *row)
{
	if (row->kind == PRINTED_PART)
		return mem_format("Part of a line: %s.", row->meaning);
	if (row->commands[0])
		return mem_format("Printed by %s: %s.", row->commands, row->meaning);
	return mem_format("Printed as %s.", row->meaning);
}

static void write_all(struct doc *doc, const char *heading, enum printed_kind kind)
{
	doc_heading(doc, heading);
	for (const struct printed_row *row = printed_rows; row->name; row++) {
		AUTO(auto_free) char *text = NULL;

		if (row->kind != kind)
			continue;
		text = place_of(row);
		doc_subheading(doc, row->name);
		doc_paragraph(doc, text);
		doc_gap(doc);
		write_keys(doc, row);
	}
}

static void add_fields(struct sb *text, const char *label, field_set fields)
{
	const char *between = label;

	for (int id = 0; id < EVF_COUNT; id++)
		if (fields & FIELD_SET_OF(id)) {
			sb_addf(text, "%s%s", between, event_fields[id].name);
			between = ", ";
		}
}

static void write_events(struct doc *doc)
{
	doc_heading(doc, "events");
	doc_paragraph(doc, "Written when:");
	doc_gap(doc);
	for (int kind = 0; kind < EV_COUNT; kind++) {
		const struct event_row *row = &event_rows[kind];
		AUTO(sb_release) struct sb text = SB_INIT;

		sb_addf(&text, "%s.", row->meaning);
		add_fields(&text, " Has ", row->required);
		add_fields(&text, row->required ? "; may have " : " May have ",
			   row->allowed & ~row->required);
		doc_item(doc, row->name, text.text);
	}
	doc_heading(doc, "fields of events");
	doc_paragraph(doc, "Beside those of the part event:");
	doc_gap(doc);
	for (int id = 0; id < EVF_COUNT; id++) {
		const struct event_field_row *field = &event_fields[id];
		AUTO(sb_release) struct sb type = SB_INIT;

		add_field_type(&type, field);
		write_key(doc, field->name, strlen(field->name), &type, field_unit(field), false,
			  field->meaning);
	}
}

void topic_json_write(struct doc *doc)
{
	doc->column = 20;
	doc_paragraph(
		doc, "With --json a command prints one JSON object a line on standard output, "
		     "and nothing else there; messages go to standard error. run, retrain, attach, "
		     "resume, stop and events print events of the journal. If an error ends "
		     "the command, the last line is {\"error\":{…}}.");
	doc_paragraph(doc,
		      "An instant is text, RFC 3339 in UTC with milliseconds: "
		      "2026-11-21T11:36:00.123Z. A duration is a number of seconds. A size is an "
		      "int of bytes, and its name ends in _bytes. Money is in USD. An absent key "
		      "is not known yet, or does not apply.");
	doc_paragraph(doc,
		      "Keys, events and lines may be added in later versions, and are never "
		      "renamed. 'stoker schema --of NAME' prints a JSON Schema of a line, closed "
		      "for this version. Journals of earlier versions hold instants and "
		      "durations of events as whole milliseconds, and 'stoker events' prints "
		      "them as they are.");
	write_all(doc, "lines", PRINTED_LINE);
	write_all(doc, "parts", PRINTED_PART);
	write_events(doc);
}

/* ---- topics as JSON ------------------------------------------------------------- */

static void print_key(const char *of, const char *name, size_t len, struct sb *type,
		      const char *unit, bool optional, const char *meaning)
{
	json_auto_t *object = json_object();

	js_put_str(object, "of", of);
	js_put(object, "key", js_text(name, len));
	js_put_str(object, "type", type->text);
	js_put_str(object, "unit", unit[0] ? unit : NULL);
	js_put(object, "optional", json_boolean(optional));
	js_put_str(object, "meaning", meaning);
	out_json(object);
}

static void print_event(const struct event_row *row)
{
	for (int id = 0; id < EVF_COUNT; id++) {
		const struct event_field_row *field = &event_fields[id];
		AUTO(sb_release) struct sb type = SB_INIT;

		if (!(row->allowed & FIELD_SET_OF(id)))
			continue;
		add_field_type(&type, field);
		print_key(row->name, field->name, strlen(field->name), &type, field_unit(field),
			  !(row->required & FIELD_SET_OF(id)), field->meaning);
	}
}

void topic_json_json(void)
{
	const char *of = "";

	for (const struct printed_row *row = printed_rows; row->name; row++) {
		AUTO(sb_release) struct sb type = SB_INIT;

		if (row->kind == PRINTED_LINE || row->kind == PRINTED_PART)
			of = row->name;
		if (row->kind != PRINTED_KEY)
			continue;
		add_type(&type, row->type);
		print_key(of, row->name, printed_key_len(row), &type, row->unit,
			  printed_key_is_optional(row), row->meaning);
	}
	for (int kind = 0; kind < EV_COUNT; kind++)
		print_event(&event_rows[kind]);
}
