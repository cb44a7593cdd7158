/*
 * The report of single graphs that neuron_parallel_compile prints at its end, one block per node,
 * in the format of its source (JSON, four blanks per level; compile_time in newer versions only):
 *
 *     "compilation_report": {
 *         "<cache>/neuronxcc-V/MODULE_x+y/model.hlo_module.pb": {
 *             "status": true,
 *             "retry": 0,
 *             "compile_time": 12.3
 *         },
 *
 * The report is mixed with lines of other processes, each line may have a launcher's prefix, and
 * any line may be cut or missing. So it is not collected and parsed as a whole: a path opens a row
 * for the prefix of its line, and later lines with the same prefix belong to that row until a brace
 * closes it. The sums after the block are messages of one line (neuron_log.c).
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/kinds/cursor.h"
#include "jobs/cache/kinds/neuron.h"
#include "jobs/cache/kinds/neuron_path.h"

#define ROWS_MAX   16   /* rows open at a time; the oldest is replaced */
#define PATH_BYTES 1024 /* longest path that is accepted, in bytes */
#define PREFIX_MAX 256  /* bytes of a prefix that are compared */

/* Hash of the text before the JSON of a line: as it is, and with all numbers alike, because a
 * launcher may put the time there. */
struct prefix {
	uint64_t exact, shape;
};

struct neuron_summary_row {
	struct prefix prefix;
	uint64_t opened; /* counts up; 0: not open */
	bool judged, failed;
	char module[NEURON_MODULE_MAX + 1], place[NEURON_PLACE_MAX + 1];
};

struct summary {
	struct neuron_summary_row rows[ROWS_MAX];
	size_t open; /* number of open rows; with none, only a path is searched for */
	uint64_t opened;
	size_t line; /* start of the current line in its piece */
	/* Prefix of the current line: its text, once found, and its hash, once known. */
	struct compile_kind_words before;
	bool found, known;
	struct prefix prefix;
};

static void *summary_memory(void)
{
	return mem_zero(1, sizeof(struct summary));
}

static void summary_forget(void *memory)
{
	free(memory);
}

/* FNV-1a, by Fowler, Noll and Vo: there are few prefixes, and a collision does no harm. */
static uint64_t mix(uint64_t hash, char c)
{
	return (hash ^ (unsigned char)c) * UINT64_C(1099511628211);
}

static struct prefix prefix_of(const char *text, size_t len)
{
	struct prefix prefix = { UINT64_C(14695981039346656037), UINT64_C(14695981039346656037) };
	bool number = false;

	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (len > PREFIX_MAX)
		len = PREFIX_MAX;
	for (size_t i = 0; i < len; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';

		prefix.exact = mix(prefix.exact, text[i]);
		if (!digit || !number)
			prefix.shape = mix(prefix.shape, digit ? '0' : text[i]);
		number = digit;
	}
	return prefix;
}

static struct prefix prefix_here(struct summary *summary)
{
	if (!summary->known)
		summary->prefix = prefix_of(summary->before.text, summary->before.len);
	summary->known = true;
	return summary->prefix;
}

/* The open row that the current line belongs to; NULL: none. */
static struct neuron_summary_row *row_here(struct summary *summary)
{
	struct neuron_summary_row *like = NULL, *any = NULL;
	struct prefix prefix;

	if (summary->open == 0)
		return NULL;
	prefix = prefix_here(summary);
	for (size_t i = 0; i < ROWS_MAX; i++) {
		struct neuron_summary_row *row = &summary->rows[i];

		if (row->opened == 0)
			continue;
		if (row->prefix.exact == prefix.exact)
			return row;
		if (row->prefix.shape == prefix.shape && (!like || row->opened > like->opened))
			like = row;
		any = row;
	}
	return like ? like : summary->open == 1 ? any : NULL;
}

static void copy_words(char *to, size_t room, struct compile_kind_words text)
{
	size_t len = text.len < room ? text.len : room - 1;

	memcpy(to, text.len ? text.text : "", len);
	to[len] = '\0';
}

static void open_row(struct summary *summary, struct compile_kind_words module,
		     struct compile_kind_words place)
{
	struct prefix prefix = prefix_here(summary);
	struct neuron_summary_row *row = &summary->rows[0];

	for (size_t i = 0; i < ROWS_MAX; i++) {
		struct neuron_summary_row *other = &summary->rows[i];

		if (other->opened && other->prefix.exact == prefix.exact) {
			row = other;
			break;
		}
		if (other->opened < row->opened)
			row = other;
	}
	summary->open += row->opened == 0;
	*row = (struct neuron_summary_row){ .prefix = prefix, .opened = ++summary->opened };
	copy_words(row->module, sizeof row->module, module);
	copy_words(row->place, sizeof row->place, place);
}

static void skip_blanks(struct cursor *in)
{
	while (in->at < in->end && strchr(" \t", *in->at) && *in->at)
		in->at++;
}

static bool eat_colon(struct cursor *in)
{
	skip_blanks(in);
	if (!cursor_accept(in, ":"))
		return false;
	skip_blanks(in);
	return true;
}

/* `"…/MODULE/….pb": {` */
static bool eat_path(struct summary *summary, struct cursor *in)
{
	struct compile_kind_words path, module, place;

	if (!cursor_accept_until(in, "\"", PATH_BYTES, &path) || path.len < 3 ||
	    memcmp(path.text + path.len - 3, ".pb", 3) != 0 ||
	    !neuron_find_graph(path.text, path.len, &module, &place) || !eat_colon(in) ||
	    !cursor_accept(in, "{"))
		return false;
	open_row(summary, module, place);
	return true;
}

static void fill(const struct neuron_summary_row *row, enum note_kind kind, double seconds,
		 struct graph_note *ret)
{
	*ret = (struct graph_note){
		.kind = kind,
		.key = { row->module, strlen(row->module) },
		.place = { row->place, strlen(row->place) },
		.seconds = seconds,
		.summary = true,
	};
}

static bool eat_status(struct neuron_summary_row *row, struct cursor *in, struct graph_note *ret)
{
	bool good;

	if (!cursor_accept(in, "status\"") || !eat_colon(in))
		return false;
	good = cursor_accept(in, "true");
	if ((!good && !cursor_accept(in, "false")) || row->judged)
		return false;
	row->judged = true;
	row->failed = !good;
	fill(row, good ? NOTE_COMPILED : NOTE_FAILED, 0, ret);
	return true;
}

static bool eat_time(const struct neuron_summary_row *row, struct cursor *in,
		     struct graph_note *ret)
{
	double seconds;

	if (!cursor_accept(in, "compile_time\"") || !eat_colon(in) ||
	    !cursor_accept_number(in, &seconds) || seconds >= 1e9 || !row->judged || row->failed)
		return false;
	fill(row, NOTE_COMPILED, seconds, ret);
	return true;
}

static bool read_quoted(struct summary *summary, struct cursor *in, struct graph_note *ret)
{
	struct neuron_summary_row *row = row_here(summary);
	struct cursor rest = *in;

	if (row && eat_status(row, &rest, ret)) {
		*in = rest;
		return true;
	}
	rest = *in;
	if (row && eat_time(row, &rest, ret)) {
		*in = rest;
		return true;
	}
	rest = *in;
	if (eat_path(summary, &rest))
		*in = rest;
	return false;
}

static void begin_line(struct summary *summary, size_t at)
{
	summary->line = at;
	summary->found = summary->known = false;
}

static void close_row(struct summary *summary)
{
	struct neuron_summary_row *row = row_here(summary);

	if (!row)
		return;
	row->opened = 0;
	summary->open--;
}

static bool summary_scan(void *memory, const char *text, size_t len, size_t *at,
			 struct graph_note *ret)
{
	struct summary *summary = memory;
	size_t i = *at;

	if (i == 0)
		begin_line(summary, 0);
	while (i < len) {
		char c = text[i++];
		struct cursor in = { text + i, text + len };
		bool found;

		if (c == '\n')
			begin_line(summary, i);
		if (c != '"' && c != '}')
			continue;
		if (!summary->found)
			summary->before = (struct compile_kind_words){ text + summary->line,
								       i - 1 - summary->line };
		summary->found = true;
		if (c == '}') {
			close_row(summary);
			continue;
		}
		found = read_quoted(summary, &in, ret);
		i = (size_t)(in.at - text);
		if (found) {
			*at = i;
			return true;
		}
	}
	*at = len;
	return false;
}

static json_t *summary_keep(const void *memory)
{
	const struct summary *summary = memory;
	json_t *rows = json_array();

	for (size_t i = 0; i < ROWS_MAX; i++) {
		const struct neuron_summary_row *row = &summary->rows[i];

		if (row->opened)
			json_array_append_new(
				rows,
				json_pack("[I, I, I, b, b, o, o]", (json_int_t)row->prefix.exact,
					  (json_int_t)row->prefix.shape, (json_int_t)row->opened,
					  row->judged, row->failed,
					  js_text(row->module, strlen(row->module)),
					  js_text(row->place, strlen(row->place))));
	}
	return json_pack("{s:I, s:o}", "opened", (json_int_t)summary->opened, "rows", rows);
}

static bool summary_restore(void *memory, const json_t *kept)
{
	struct summary *summary = memory;
	const json_t *rows = json_object_get(kept, "rows"), *from;
	size_t i;

	if (json_array_size(rows) > ROWS_MAX)
		return false;
	summary->opened = (uint64_t)js_int(kept, "opened", 0);
	json_array_foreach (rows, i, from) {
		const char *module = json_string_value(json_array_get(from, 5));
		const char *place = json_string_value(json_array_get(from, 6));
		struct neuron_summary_row *row = &summary->rows[i];

		if (!module || !place)
			return false;
		row->prefix.exact = (uint64_t)json_integer_value(json_array_get(from, 0));
		row->prefix.shape = (uint64_t)json_integer_value(json_array_get(from, 1));
		row->opened = (uint64_t)json_integer_value(json_array_get(from, 2));
		row->judged = json_is_true(json_array_get(from, 3));
		row->failed = json_is_true(json_array_get(from, 4));
		copy_words(row->module, sizeof row->module,
			   (struct compile_kind_words){ module, strlen(module) });
		copy_words(row->place, sizeof row->place,
			   (struct compile_kind_words){ place, strlen(place) });
		summary->open += row->opened > 0;
	}
	return true;
}

const struct line_reader neuron_summary = {
	.memory = summary_memory,
	.forget = summary_forget,
	.keep = summary_keep,
	.restore = summary_restore,
	.scan = summary_scan,
};
