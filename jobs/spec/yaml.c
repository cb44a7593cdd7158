/* YAML events to nodes with places and bounds: see yaml.h. */
#include "jobs/spec/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/fields/field.h"
#include "jobs/spec/fields/keys.h"

#define ANCHORS_MAX 1024

struct anchor {
	char *name;
	struct node *node;
	bool open; /* the value is still being read */
};

struct frame { /* an open list or map */
	struct node *node;
	const char *key; /* key of the next value; NULL: a key comes next */
	struct mark key_at;
	size_t anchor; /* index + 1 of the anchor that names it, or 0 */
};

struct yaml_reader {
	struct arena *arena;
	struct reporter *reporter;
	const char *set;
	struct frame frames[TREE_DEPTH_MAX];
	size_t depth;
	struct anchor *anchors;
	size_t anchor_count;
	size_t nodes, bytes, aliases;
	struct node *root;
	size_t documents;
};

static struct mark mark_of(const struct yaml_reader *reader, yaml_mark_t mark)
{
	return (struct mark){ .line = (int)mark.line + 1,
			      .column = (int)mark.column + 1,
			      .set = reader->set };
}

/* Returns the reader's place, as "compile.overrides.env"; NULL at the top. The caller frees it. */
static char *path_of(const struct yaml_reader *reader)
{
	struct sb path = SB_INIT_MAX(1024);

	for (size_t i = 0; i + 1 < reader->depth; i++) {
		const struct frame *frame = &reader->frames[i];

		if (frame->node->kind == NODE_LIST)
			sb_addf(&path, "[%zu]", frame->node->count);
		else if (frame->key)
			sb_addf(&path, "%s%s", path.len > 0 ? "." : "", frame->key);
	}
	return path.len > 0 ? sb_take(&path) : NULL;
}

static int fatal(struct yaml_reader *reader, struct mark at, const char *hint, const char *message)
{
	problem_hint(problem_error(reader->reporter, at, NULL, "%s", message), "%s", hint);
	return -1;
}

/* Puts a finished or just opened value into the container that it belongs to. */
static int attach_node(struct yaml_reader *reader, struct node *node, struct mark at)
{
	struct frame *frame;

	if (reader->depth == 0) {
		reader->root = node;
		return 0;
	}
	frame = &reader->frames[reader->depth - 1];
	if (frame->node->kind == NODE_LIST) {
		node_add(reader->arena, frame->node, NULL, at, node);
	} else if (frame->key) {
		node_add(reader->arena, frame->node, frame->key, frame->key_at, node);
		frame->key = NULL;
	} else if (node->kind == NODE_SCALAR) {
		/* An unquoted << merges; it is told from a quoted key by its address. */
		frame->key =
			strcmp(node->text, "<<") == 0 && !node->quoted ? keys_merge : node->text;
		frame->key_at = at;
	} else {
		return fatal(reader, at, "write the key as one word",
			     "a key must be a string, not a list or a mapping");
	}
	return 0;
}

static int count(struct yaml_reader *reader, struct mark at, size_t nodes, size_t bytes)
{
	reader->nodes += nodes;
	reader->bytes += bytes;
	if (reader->nodes <= TREE_NODES_MAX && reader->bytes <= TREE_TEXT_MAX)
		return 0;
	return fatal(
		reader, at, "move long lists into files of the source",
		reader->aliases > 0
			? "with its aliases the spec unfolds to more than 200000 values or 8 MiB"
			: "the spec has more than 200000 values");
}

static int remember_anchor(struct yaml_reader *reader, const yaml_char_t *name, struct node *node,
			   struct mark at, bool open)
{
	struct anchor *anchor;

	if (!name)
		return 0;
	if (reader->anchor_count == ANCHORS_MAX)
		return fatal(reader, at, "use fewer anchors", "more than 1024 anchors");
	if (!reader->anchors)
		reader->anchors = mem_zero(ANCHORS_MAX, sizeof *reader->anchors);
	anchor = &reader->anchors[reader->anchor_count++];
	*anchor = (struct anchor){ mem_copy((const char *)name), node, open };
	node->shared = true;
	return 0;
}

static int on_alias(struct yaml_reader *reader, const yaml_event_t *event, struct mark at)
{
	const char *name = (const char *)event->data.alias.anchor;

	reader->aliases++;
	for (size_t i = reader->anchor_count; i > 0; i--) {
		struct anchor *anchor = &reader->anchors[i - 1];

		if (strcmp(anchor->name, name) != 0)
			continue;
		if (anchor->open)
			return fatal(reader, at, "an alias cannot stand inside its own anchor",
				     "an anchor contains itself");
		if (count(reader, at, anchor->node->weight, anchor->node->bytes) < 0)
			return -1;
		return attach_node(reader, anchor->node, at);
	}
	problem_hint(problem_error(reader->reporter, at, NULL, "no anchor '&%s' comes before '*%s'",
				   name, name),
		     "a string that begins with '*' needs quotes");
	return -1;
}

/* A tag may say that a scalar is a text; any other tag must agree with the node. */
static int read_tag(struct yaml_reader *reader, const yaml_char_t *tag, struct mark at, bool *text)
{
	static const char standard[] = "tag:yaml.org,2002:";
	const char *name = (const char *)tag;
	bool known;

	if (!tag)
		return 0;
	if (strcmp(name, "!") == 0 || strcmp(name, "tag:yaml.org,2002:str") == 0) {
		*text = true;
		return 0;
	}
	if (text_starts(name, standard) &&
	    field_word_in("int float bool null seq map", name + strlen(standard)))
		return 0;
	known = text_starts(name, standard);
	problem_hint(problem_error(reader->reporter, at, NULL, "tag '%s%s' has no meaning here",
				   known ? "!!" : "", known ? name + strlen(standard) : name),
		     "remove the tag; a string that begins with '!' needs quotes");
	return -1;
}

static int on_scalar(struct yaml_reader *reader, const yaml_event_t *event, struct mark at)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	struct node *node;

	if (memchr(value, 0, len))
		return fatal(reader, at, "remove the \\0; no program can be given such a string",
			     "the string holds a NUL character");
	if (read_tag(reader, event->data.scalar.tag, at, &quoted) < 0 ||
	    count(reader, at, 1, len) < 0)
		return -1;
	node = node_scalar(reader->arena, value, quoted, at);
	if (remember_anchor(reader, event->data.scalar.anchor, node, at, false) < 0)
		return -1;
	return attach_node(reader, node, at);
}

/* Containers are placed when they end, with their weight. */
static int on_open(struct yaml_reader *reader, enum node_kind kind, const yaml_char_t *anchor,
		   const yaml_char_t *tag, struct mark at)
{
	bool text = false;
	struct node *node;
	struct frame *frame;

	if (reader->depth == TREE_DEPTH_MAX)
		return fatal(reader, at, "reduce the nesting; no field of a spec is that deep",
			     "nested more than 64 levels deep");
	if (read_tag(reader, tag, at, &text) < 0 || count(reader, at, 1, 0) < 0)
		return -1;
	node = node_new(reader->arena, kind, at);
	frame = &reader->frames[reader->depth++];
	*frame = (struct frame){ .node = node };
	if (remember_anchor(reader, anchor, node, at, true) < 0)
		return -1;
	frame->anchor = anchor ? reader->anchor_count : 0;
	return 0;
}

static int on_close(struct yaml_reader *reader)
{
	struct frame *frame = &reader->frames[reader->depth - 1];
	struct node *node = frame->node;

	if (node->kind == NODE_MAP) {
		AUTO(auto_free) char *path = path_of(reader);

		keys_check(reader->reporter, node, path);
		/* Merged entries were counted at their alias. */
		if (keys_resolve_merges(reader->arena, reader->reporter, node) < 0)
			return -1;
	}
	if (frame->anchor > 0)
		reader->anchors[frame->anchor - 1].open = false;
	reader->depth--;
	return attach_node(reader, node, node->at);
}

static int on_document(struct yaml_reader *reader, struct mark at)
{
	if (++reader->documents < 2)
		return 0;
	return fatal(reader, at, "a spec is one document: remove the '---' or split the file",
		     "a second document begins here");
}

static int on_event(struct yaml_reader *reader, const yaml_event_t *event)
{
	struct mark at = mark_of(reader, event->start_mark);

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return on_document(reader, at);
	case YAML_ALIAS_EVENT:
		return on_alias(reader, event, at);
	case YAML_SCALAR_EVENT:
		return on_scalar(reader, event, at);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(reader, NODE_LIST, event->data.sequence_start.anchor,
			       event->data.sequence_start.tag, at);
	case YAML_MAPPING_START_EVENT:
		return on_open(reader, NODE_MAP, event->data.mapping_start.anchor,
			       event->data.mapping_start.tag, at);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(reader);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return 0;
}

/* libyaml's messages, and their meaning to the author of a spec. `context` rows point to where
 * the construct began, the others to where it broke. */
static const struct syntax_row {
	const char *problem, *message, *hint;
	bool from_context;
} syntax_rows[] = {
	{ "mapping values are not allowed", "a ':' where no name can stand",
	  "quote a string that holds ': ', and line names of one section up exactly", false },
	{ "did not find expected alphabetic or numeric character",
	  "a '*' or '&' without a name behind it", "quote a string that begins with it", true },
	{ "found unexpected end of stream", "the quotes that open here are never closed",
	  "close the quotes; inside '…' write a quote as ''", true },
	{ "found unexpected document indicator", "the quotes that open here are never closed",
	  "close the quotes; inside '…' write a quote as ''", true },
	{ "could not find expected ':'", "a line that is neither 'name: value' nor '- item'",
	  "put a ':' and a space after the name", true },
	{ "did not find expected ',' or ']'", "invalid list, which opens here with '['",
	  "separate items by commas, close with ']', quote strings that hold , [ ] { } or ':'",
	  true },
	{ "did not find expected ',' or '}'", "invalid mapping, which opens here with '{'",
	  "separate members by commas, close with '}', quote strings that hold , [ ] { } or ${…}",
	  true },
	{ "did not find expected key", "invalid indentation or quoting",
	  "line names of one section up exactly; quote a string that goes on after its quotes",
	  false },
	{ "did not find expected '-' indicator", "invalid continuation of the list above",
	  "line the '-' of all items up exactly", false },
	{ "did not find expected node content", "a value is missing here",
	  "close every '[' and '{'; quote a string that begins with ',', ']' or '}'", false },
	{ "did not find expected <document start>", "something follows the end of the spec",
	  "line all top-level fields up at the first column", false },
	{ "found a tab character", "a tab in the indentation", "indent with spaces", false },
	{ "block sequence entries are not allowed", "a '-' where no list item can stand",
	  "put the '-' on a line of its own, below its name", false },
	{ "found unknown escape character", "an unknown escape after '\\' inside \"…\"",
	  "write '\\\\' for a backslash, or use '…', where a backslash is just that", false },
	{ "found undefined tag handle", "a '!' begins a tag that does not exist",
	  "quote a string that begins with '!'", false },
	{ "unacceptable character", "a control character", "remove it", false },
	{ "control characters are not allowed", "a control character", "remove it", false },
};

/* Reports `c` if no unquoted text may begin with it. */
static bool bad_start(struct yaml_reader *reader, struct mark at, char c)
{
	if (c == '\t')
		problem_hint(problem_error(reader->reporter, at, NULL, "a tab in the indentation"),
			     "indent with spaces");
	else if (c > ' ' && c < 0x7f)
		problem_hint(problem_error(reader->reporter, at, NULL,
					   "an unquoted text cannot begin with '%c'", c),
			     "put the whole text in quotes");
	else
		return false;
	return true;
}

/* libyaml adds an end to a last line without one: a problem at the end of the text would be on a
 * line that does not exist. */
static struct mark problem_mark(const struct yaml_reader *reader, yaml_mark_t mark,
				const char *text, size_t len)
{
	struct mark at = mark_of(reader, mark);
	size_t characters = 0;

	if (mark.column > 0 || mark.line == 0 || len == 0 || strchr("\r\n", text[len - 1]))
		return at;
	for (size_t i = 0; i < len; i++)
		characters += ((unsigned char)text[i] & 0xc0) != 0x80;
	if (mark.index < characters)
		return at;
	return (struct mark){ .line = at.line - 1,
			      .column = bytes_mark(text, len).column,
			      .set = at.set };
}

static void syntax_error(struct yaml_reader *reader, const yaml_parser_t *parser, const char *text,
			 size_t len)
{
	const char *problem = parser->problem ? parser->problem : "no YAML";
	struct mark at = problem_mark(reader, parser->problem_mark, text, len);

	if (parser->error == YAML_READER_ERROR)
		at = bytes_mark(text, parser->problem_offset < len ? parser->problem_offset : len);
	else if (strstr(problem, "cannot start any token") &&
		 bad_start(reader, at, bytes_at(text, len, at)))
		return;
	for (size_t i = 0; i < STK_LENGTH(syntax_rows); i++) {
		const struct syntax_row *row = &syntax_rows[i];

		if (!strstr(problem, row->problem))
			continue;
		if (row->from_context && parser->context)
			at = mark_of(reader, parser->context_mark);
		problem_hint(problem_error(reader->reporter, at, NULL, "%s", row->message), "%s",
			     row->hint);
		return;
	}
	problem_hint(problem_error(reader->reporter, at, NULL, "%s", problem),
		     "quote the text if it is meant as one");
}

int spec_tree_parse(struct arena *arena, struct reporter *reporter, const char *text, size_t len,
		    const char *set, struct node **ret)
{
	AUTO(auto_free) struct yaml_reader *reader = mem_zero(1, sizeof *reader);
	yaml_parser_t parser;
	int result = 0;
	bool done = false;

	reader->arena = arena;
	reader->reporter = reporter;
	reader->set = set;
	if (!yaml_parser_initialize(&parser))
		abort(); /* only for lack of memory */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (!done && result == 0) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			syntax_error(reader, &parser, text, len);
			result = -1;
			break;
		}
		done = event.type == YAML_STREAM_END_EVENT;
		result = on_event(reader, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	for (size_t i = 0; i < reader->anchor_count; i++)
		free(reader->anchors[i].name);
	free(reader->anchors);
	if (result == 0)
		*ret = reader->root;
	return result;
}

int spec_file_parse(struct arena *arena, struct reporter *reporter, const char *text, size_t len,
		    struct node **ret)
{
	size_t skip;

	*ret = NULL;
	if (bytes_check(reporter, text, len, &skip) < 0)
		return -1;
	return spec_tree_parse(arena, reporter, text + skip, len - skip, NULL, ret);
}
