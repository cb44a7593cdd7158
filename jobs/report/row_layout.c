/* Rows cut to a terminal: see row_layout.h. */
#include "jobs/report/row_layout.h"

#include <string.h>

#include "jobs/base/text/columns.h"

void row_layout_init(struct row_layout *page, const struct text_style *look, size_t width)
{
	*page = (struct row_layout){ .look = *look, .width = width };
	for (size_t i = 0; i < ROW_LAYOUT_ROWS; i++)
		page->rows[i].text = SB_INIT;
}

void row_layout_release(struct row_layout *page)
{
	for (size_t i = 0; i < ROW_LAYOUT_ROWS; i++)
		sb_release(&page->rows[i].text);
}

static struct row_layout_row *newest(struct row_layout *page)
{
	return &page->rows[page->count - 1];
}

size_t row_layout_room(const struct row_layout *page)
{
	return page->width - page->rows[page->count - 1].columns;
}

void row_layout_row(struct row_layout *page, int rank, const char *label)
{
	if (page->count < ROW_LAYOUT_ROWS)
		page->count++;
	sb_clear(&newest(page)->text);
	newest(page)->columns = 0;
	newest(page)->rank = rank;
	if (!label)
		return;
	row_layout_add(page, MARK_FAINT, "%s", label);
	while (newest(page)->columns < ROW_LAYOUT_LABEL && row_layout_room(page) > 0)
		row_layout_add(page, MARK_NONE, " ");
}

void row_layout_add(struct row_layout *page, enum status_icon mark, const char *fmt, ...)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	struct row_layout_row *row = newest(page);
	va_list args;

	va_start(args, fmt);
	sb_addv(&text, fmt, args);
	va_end(args);
	if (text.len == 0 || row_layout_room(page) == 0)
		return;
	sb_adds(&row->text, text_style_on(&page->look, mark));
	row->columns += columns_fit(&row->text, text.text, text.len, row_layout_room(page),
				    page->look.utf8);
	if (*text_style_on(&page->look, mark))
		sb_adds(&row->text, text_style_off(&page->look));
}

void row_layout_raw(struct row_layout *page, enum status_icon mark, const char *text,
		    size_t columns)
{
	struct row_layout_row *row = newest(page);

	if (columns > row_layout_room(page))
		return;
	sb_addf(&row->text, "%s%s", text_style_on(&page->look, mark), text);
	if (*text_style_on(&page->look, mark))
		sb_adds(&row->text, text_style_off(&page->look));
	row->columns += columns;
}

void row_layout_sign(struct row_layout *page, enum status_icon mark)
{
	row_layout_raw(page, mark, text_style_icon_text(&page->look, mark), 1);
	row_layout_add(page, MARK_NONE, " ");
}

/* Returns the row to leave out first. */
static size_t least_wanted(const struct row_layout *page)
{
	size_t found = 0;

	for (size_t i = 1; i < page->count; i++)
		if (page->rows[i].rank >= page->rows[found].rank)
			found = i;
	return found;
}

static void drop(struct row_layout *page, size_t at)
{
	struct row_layout_row gone = page->rows[at];

	memmove(&page->rows[at], &page->rows[at + 1],
		(page->count - at - 1) * sizeof page->rows[0]);
	page->rows[--page->count] = gone; /* row_layout_release() still frees it */
}

void row_layout_finish(struct row_layout *page, size_t height, struct sb *out)
{
	while (page->count > height)
		drop(page, least_wanted(page));
	for (size_t i = 0; i < page->count; i++) {
		const struct sb *text = &page->rows[i].text;

		sb_adds(out, i ? "\n" : "");
		sb_add(out, text->text, text->len);
	}
}
