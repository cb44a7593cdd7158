/* Rows cut to a terminal: see row_layout.h. */
#include "jobs/report/row_layout.h"

#include <string.h>

#include "jobs/base/text/columns.h"

void row_layout_init(struct row_layout *layout, const struct text_style *style, size_t width)
{
	*layout = (struct row_layout){ .style = *style, .width = width };
	for (size_t i = 0; i < ROW_LAYOUT_ROWS; i++)
		layout->rows[i].text = SB_INIT;
}

void row_layout_release(struct row_layout *layout)
{
	for (size_t i = 0; i < ROW_LAYOUT_ROWS; i++)
		sb_release(&layout->rows[i].text);
}

static struct row_layout_row *newest(struct row_layout *layout)
{
	return &layout->rows[layout->count - 1];
}

size_t row_layout_room(const struct row_layout *layout)
{
	return layout->width - layout->rows[layout->count - 1].columns;
}

void row_layout_row(struct row_layout *layout, int rank, const char *label)
{
	if (layout->count < ROW_LAYOUT_ROWS)
		layout->count++;
	sb_clear(&newest(layout)->text);
	newest(layout)->columns = 0;
	newest(layout)->rank = rank;
	if (!label)
		return;
	row_layout_add(layout, MARK_FAINT, "%s", label);
	while (newest(layout)->columns < ROW_LAYOUT_LABEL && row_layout_room(layout) > 0)
		row_layout_add(layout, MARK_NONE, " ");
}

void row_layout_add(struct row_layout *layout, enum status_icon mark, const char *fmt, ...)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	struct row_layout_row *row = newest(layout);
	va_list args;

	va_start(args, fmt);
	sb_addv(&text, fmt, args);
	va_end(args);
	if (text.len == 0 || row_layout_room(layout) == 0)
		return;
	sb_adds(&row->text, text_style_on(&layout->style, mark));
	row->columns += columns_fit(&row->text, text.text, text.len, row_layout_room(layout),
				    layout->style.utf8);
	if (*text_style_on(&layout->style, mark))
		sb_adds(&row->text, text_style_off(&layout->style));
}

void row_layout_raw(struct row_layout *layout, enum status_icon mark, const char *text,
		    size_t columns)
{
	struct row_layout_row *row = newest(layout);

	if (columns > row_layout_room(layout))
		return;
	sb_addf(&row->text, "%s%s", text_style_on(&layout->style, mark), text);
	if (*text_style_on(&layout->style, mark))
		sb_adds(&row->text, text_style_off(&layout->style));
	row->columns += columns;
}

void row_layout_sign(struct row_layout *layout, enum status_icon mark)
{
	row_layout_raw(layout, mark, text_style_icon_text(&layout->style, mark), 1);
	row_layout_add(layout, MARK_NONE, " ");
}

/* Returns the row to leave out first. */
static size_t find_last_rank(const struct row_layout *layout)
{
	size_t found = 0;

	for (size_t i = 1; i < layout->count; i++)
		if (layout->rows[i].rank >= layout->rows[found].rank)
			found = i;
	return found;
}

static void drop(struct row_layout *layout, size_t at)
{
	struct row_layout_row gone = layout->rows[at];

	memmove(&layout->rows[at], &layout->rows[at + 1],
		(layout->count - at - 1) * sizeof layout->rows[0]);
	layout->rows[--layout->count] = gone; /* row_layout_release() still frees it */
}

void row_layout_finish(struct row_layout *layout, size_t height, struct sb *out)
{
	while (layout->count > height)
		drop(layout, find_last_rank(layout));
	for (size_t i = 0; i < layout->count; i++) {
		const struct sb *text = &layout->rows[i].text;

		sb_adds(out, i ? "\n" : "");
		sb_add(out, text->text, text->len);
	}
}
