/* A list in any order, put in order: parts of it are sorted in memory and written to a temporary
 * file, then merged. Memory holds one part. See data_internal.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/data/data_internal.h"

#define PART_BYTES ((size_t)8 << 20) /* of lines in memory, with their index */

/* Lines as "url NUL line newline": they are sorted by what they begin with. */
struct part {
	struct sb text;
	size_t *starts, count;
};

struct sort {
	struct part part;
	struct data_writer file; /* all parts, one behind the other */
	uint64_t *ends, written; /* offsets behind the parts */
	size_t parts;
	const char *name;
	data_row_fn fn;
	void *arg;
	struct sb last; /* the line that was passed on last */
	char *last_url;
};

static int by_url(const void *a, const void *b, void *text)
{
	return strcmp((const char *)text + *(const size_t *)a,
		      (const char *)text + *(const size_t *)b);
}

/* Sorts the part in memory, and appends it to the file. */
static int flush_part(struct sort *sort, struct err **err)
{
	struct part *part = &sort->part;

	if (part->count == 0)
		return 0;
	qsort_r(part->starts, part->count, sizeof *part->starts, by_url, part->text.text);
	for (size_t i = 0; i < part->count; i++) {
		const char *url = part->text.text + part->starts[i];
		const char *line = url + strlen(url) + 1;
		size_t len = (size_t)(strchr(line, '\n') + 1 - line);

		sb_add(&sort->file.out, line, len);
		sort->written += len;
		if (sort->file.out.len >= PART_BYTES / 16 &&
		    data_writer_flush(&sort->file, err) < 0)
			return -1;
	}
	sort->ends = mem_grow(sort->ends, sort->parts + 1, sizeof *sort->ends);
	sort->ends[sort->parts++] = sort->written;
	part->count = 0;
	sb_clear(&part->text);
	return data_writer_flush(&sort->file, err);
}

static int collect_row(struct sort *sort, const struct data_row *row, struct err **err)
{
	struct part *part = &sort->part;

	part->starts = mem_room(part->starts, part->count, sizeof *part->starts);
	part->starts[part->count++] = part->text.len;
	sb_adds(&part->text, row->url);
	sb_addc(&part->text, '\0');
	data_row_put(&part->text, row, DATA_LINE_SEEN);
	return part->text.len + part->count * sizeof *part->starts < PART_BYTES
		       ? 0
		       : flush_part(sort, err);
}

/* Passes on a row, unless it is the one before once more. */
static int pass_row(struct sort *sort, struct data_row *row, struct err **err)
{
	struct sb line = SB_INIT;
	bool same, known;

	data_row_put(&line, row, DATA_LINE_SEEN);
	same = sort->last_url && strcmp(sort->last_url, row->url) == 0;
	known = same && strcmp(line.text, sort->last.text) == 0;
	sb_release(&sort->last);
	sort->last = line;
	if (known)
		return 0;
	if (same) {
		err_set(err, EXIT_REFUSED, "'%s' has '%s' twice, with two sizes or ETags",
			sort->name, row->url);
		return err_hint(err, "keep the line that describes the object as it is");
	}
	free(sort->last_url);
	sort->last_url = mem_copy(row->url);
	return sort->fn(sort->arg, row, err);
}

static int merge_parts(struct sort *sort, struct data_cursor *cursors, struct err **err)
{
	uint64_t from = 0;

	for (size_t i = 0; i < sort->parts; from = sort->ends[i++]) {
		cursors[i].reader =
			data_reader_part(sort->file.fd, sort->name, from, sort->ends[i]);
		if (data_cursor_next(&cursors[i], err) < 0)
			return -1;
	}
	for (;;) {
		struct data_cursor *first = NULL;

		for (size_t i = 0; i < sort->parts; i++)
			if (cursors[i].at &&
			    (!first || strcmp(cursors[i].row.url, first->row.url) < 0))
				first = &cursors[i];
		if (!first)
			return 0;
		if (pass_row(sort, &first->row, err) < 0 || data_cursor_next(first, err) < 0)
			return -1;
	}
}

static void sort_release(struct sort *sort)
{
	sb_release(&sort->part.text);
	free(sort->part.starts);
	data_writer_release(&sort->file);
	free(sort->ends);
	sb_release(&sort->last);
	free(sort->last_url);
}

int data_sort_rows(struct data_reader *reader, const char *name, data_row_fn fn, void *arg,
		   struct err **err)
{
	AUTO(sort_release)
	struct sort sort = { .part = { .text = SB_INIT },
			     .file = { .fd = -1 },
			     .name = name,
			     .fn = fn,
			     .arg = arg,
			     .last = SB_INIT };
	struct data_cursor *cursors;
	struct data_row row;
	int found, result;

	if (data_writer_open(&sort.file, DATA_LINE_SPOOL, err) < 0)
		return -1;
	while ((found = data_reader_next(reader, &row, err)) > 0)
		if (collect_row(&sort, &row, err) < 0)
			return -1;
	if (found < 0 || flush_part(&sort, err) < 0)
		return -1;
	cursors = mem_zero(sort.parts, sizeof *cursors);
	result = merge_parts(&sort, cursors, err);
	for (size_t i = 0; i < sort.parts; i++)
		data_cursor_release(&cursors[i]);
	free(cursors);
	return result;
}
