/* Rows cut to a terminal: see page.h. */
#include "jobs/report/page.h"

#include <string.h>

#include "jobs/base/columns.h"

void page_init(struct page *page, const struct look *look, size_t width)
{
	*page = (struct page){ .look = *look, .width = width };
	for (size_t i = 0; i < PAGE_ROWS; i++)
		page->rows[i].text = SB_INIT;
}

void page_release(struct page *page)
{
	for (size_t i = 0; i < PAGE_ROWS; i++)
		sb_release(&page->rows[i].text);
}

static struct page_row *newest(struct page *page)
{
	return &page->rows[page->count - 1];
}

size_t page_room(const struct page *page)
{
	return page->width - page->rows[page->count - 1].columns;
}

void page_row(struct page *page, int rank, const char *label)
{
	if (page->count < PAGE_ROWS)
		page->count++;
	sb_clear(&newest(page)->text);
	newest(page)->columns = 0;
	newest(page)->rank = rank;
	if (!label)
		return;
	page_add(page, MARK_FAINT, "%s", label);
	while (newest(page)->columns < PAGE_LABEL && page_room(page) > 0)
		page_add(page, MARK_NONE, " ");
}

void page_add(struct page *page, enum look_mark mark, const char *fmt, ...)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	struct page_row *row = newest(page);
	va_list args;

	va_start(args, fmt);
	sb_addv(&text, fmt, args);
	va_end(args);
	if (text.len == 0 || page_room(page) == 0)
		return;
	sb_adds(&row->text, look_on(&page->look, mark));
	row->columns +=
		columns_fit(&row->text, text.text, text.len, page_room(page), page->look.utf8);
	if (*look_on(&page->look, mark))
		sb_adds(&row->text, look_off(&page->look));
}

void page_raw(struct page *page, enum look_mark mark, const char *text, size_t columns)
{
	struct page_row *row = newest(page);

	if (columns > page_room(page))
		return;
	sb_addf(&row->text, "%s%s", look_on(&page->look, mark), text);
	if (*look_on(&page->look, mark))
		sb_adds(&row->text, look_off(&page->look));
	row->columns += columns;
}

void page_sign(struct page *page, enum look_mark mark)
{
	page_raw(page, mark, look_sign(&page->look, mark), 1);
	page_add(page, MARK_NONE, " ");
}

/* The row to go first. */
static size_t least_wanted(const struct page *page)
{
	size_t found = 0;

	for (size_t i = 1; i < page->count; i++)
		if (page->rows[i].rank >= page->rows[found].rank)
			found = i;
	return found;
}

static void drop(struct page *page, size_t at)
{
	struct page_row gone = page->rows[at];

	memmove(&page->rows[at], &page->rows[at + 1],
		(page->count - at - 1) * sizeof page->rows[0]);
	page->rows[--page->count] = gone; /* still the page's to release */
}

void page_finish(struct page *page, size_t height, struct sb *out)
{
	while (page->count > height)
		drop(page, least_wanted(page));
	for (size_t i = 0; i < page->count; i++) {
		const struct sb *text = &page->rows[i].text;

		sb_adds(out, i ? "\n" : "");
		sb_add(out, text->text, text->len);
	}
}
