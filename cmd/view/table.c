/* A table for a terminal or a pipe: see table.h. */
#include "cmd/view/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/columns.h"

#define GAP     2 /* columns between two cells */
#define NO_TEXT "-"

void table_release(struct table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		for (size_t column = 0; column < table->column_count; column++)
			free(table->rows[i].cells[column]);
		free(table->rows[i].cells);
	}
	for (size_t column = 0; column < table->column_count; column++)
		free(table->columns[column].title);
	free(table->rows);
	free(table->columns);
}

void table_add_column(struct table *table, const char *title, int rank, size_t cut)
{
	struct table_column *column;

	table->columns = mem_grow(table->columns, table->column_count + 1, sizeof *table->columns);
	column = &table->columns[table->column_count++];
	*column = (struct table_column){ .title = mem_copy(title), .rank = rank, .cut = cut };
}

void table_add_row(struct table *table, enum status_icon mark)
{
	struct table_row *row;

	table->rows = mem_room(table->rows, table->count, sizeof *table->rows);
	row = &table->rows[table->count++];
	row->cells = mem_zero(table->column_count, sizeof *row->cells);
	row->mark = mark;
}

void table_set(struct table *table, size_t column, char *text)
{
	char **cell = &table->rows[table->count - 1].cells[column];

	free(*cell);
	*cell = text;
}

static const char *text_of(const struct table_row *row, size_t column)
{
	return row->cells[column] && row->cells[column][0] ? row->cells[column] : NO_TEXT;
}

/* Columns of the sign and its blank. */
static size_t mark_width(const struct table_column *column)
{
	return column->marked ? 2 : 0;
}

static void measure(struct table *table, size_t most, bool utf8)
{
	for (size_t i = 0; i < table->column_count; i++) {
		struct table_column *column = &table->columns[i];

		column->shown = true;
		column->width = columns_width(column->title, strlen(column->title), utf8);
		for (size_t row = 0; row < table->count && row < most; row++) {
			const char *text = text_of(&table->rows[row], i);
			size_t width = columns_width(text, strlen(text), utf8);

			if (width > column->width)
				column->width = width;
		}
		column->width += mark_width(column);
	}
}

static size_t whole_width(const struct table *table)
{
	size_t width = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].shown)
			width += table->columns[i].width + (width ? GAP : 0);
	return width;
}

/* Cuts columns that may be cut, the first one first, by as much as is too much. */
static void cut(struct table *table, size_t width)
{
	for (size_t i = 0; i < table->column_count && whole_width(table) > width; i++) {
		struct table_column *column = &table->columns[i];
		size_t over = whole_width(table) - width;
		size_t least = column->cut + mark_width(column);

		if (!column->shown || column->cut == 0 || column->width <= least)
			continue;
		column->width = column->width > least + over ? column->width - over : least;
	}
}

/* True if nothing but dashes would stand in the column. */
static bool is_empty(const struct table *table, size_t column, size_t most)
{
	for (size_t row = 0; row < table->count && row < most; row++)
		if (strcmp(text_of(&table->rows[row], column), NO_TEXT) != 0)
			return false;
	return true;
}

/* Returns the column that goes next; NULL if all that are left stay. */
static struct table_column *least_of(struct table *table)
{
	struct table_column *least = NULL;

	for (size_t i = 0; i < table->column_count; i++) {
		struct table_column *column = &table->columns[i];

		if (column->shown && column->rank > 0 && (!least || column->rank >= least->rank))
			least = column;
	}
	return least;
}

/* Chooses and cuts the columns so that a row fits. */
static void fit(struct table *table, size_t width, size_t most)
{
	struct table_column *least;

	for (size_t i = 0; i < table->column_count && whole_width(table) > width; i++)
		if (table->columns[i].rank > 0 && is_empty(table, i, most))
			table->columns[i].shown = false;
	for (;;) {
		AUTO(auto_free)
		struct table_column *before =
			mem_alloc(table->column_count * sizeof *table->columns);

		memcpy(before, table->columns, table->column_count * sizeof *table->columns);
		cut(table, width);
		if (whole_width(table) <= width)
			return;
		memcpy(table->columns, before, table->column_count * sizeof *table->columns);
		least = least_of(table);
		if (!least)
			break;
		least->shown = false;
	}
	cut(table, width);
}

static void add_cell(const struct table_column *column, const char *text, enum status_icon mark,
		     bool is_last, size_t room, const struct text_style *style, struct sb *ret)
{
	size_t width = column->width < room ? column->width : room;
	size_t used = 0, sign = mark_width(column);

	if (sign > 0 && sign < width) {
		sb_adds(ret, text_style_on(style, mark));
		sb_adds(ret, text_style_icon_text(style, mark));
		sb_adds(ret, text_style_off(style));
		sb_addc(ret, ' ');
		used = sign;
	}
	used += columns_fit(ret, text, strlen(text), width - used, style->utf8);
	for (size_t blanks = is_last ? 0 : width - used + GAP; blanks > 0; blanks--)
		sb_addc(ret, ' ');
}

/* Prints a row; `row` NULL: the titles. Columns that a terminal has no room for at all are left
 * out. */
static void print_row(const struct table *table, const struct table_row *row, size_t width,
		      const struct text_style *style, struct sb *ret)
{
	size_t last = 0, used = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].shown)
			last = i;
	for (size_t i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];

		if (!column->shown || (width && used >= width))
			continue;
		add_cell(column, row ? text_of(row, i) : column->title, row ? row->mark : MARK_NONE,
			 i == last || (width && used + column->width + GAP >= width),
			 width ? width - used : SIZE_MAX, style, ret);
		used += column->width + GAP;
	}
	sb_addc(ret, '\n');
}

void table_print(struct table *table, size_t width, size_t most, const struct text_style *style,
		 struct sb *ret)
{
	measure(table, most, style->utf8);
	if (width > 0)
		fit(table, width, most);
	print_row(table, NULL, width, style, ret);
	for (size_t i = 0; i < table->count && i < most; i++)
		print_row(table, &table->rows[i], width, style, ret);
}
