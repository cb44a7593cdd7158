/*
 * Rows of a block that must fit a terminal: each is cut to the width in display
 * columns, and where there are more rows than the height those of the highest rank
 * are left out, the last first. All text is made harmless on its way in.
 */
#ifndef STK_REPORT_PAGE_H
#define STK_REPORT_PAGE_H

#include "jobs/base/sb.h"
#include "jobs/report/look.h"

#define PAGE_ROWS  32
#define PAGE_LABEL 12 /* columns of "state:      " */

struct page {
	struct look look;
	size_t width; /* columns */
	size_t count;
	struct page_row {
		struct sb text;
		size_t columns;
		int rank; /* 0: stays to the last */
	} rows[PAGE_ROWS];
};

void page_init(struct page *page, const struct look *look, size_t width);
void page_release(struct page *page); /* for AUTO() */

/* Begin a row with its label ("" for its room alone, NULL for neither). Past PAGE_ROWS rows it goes
 * to the last one's place. */
void page_row(struct page *page, int rank, const char *label);
/* Add to the newest row as much as fits, in the colour of the mark. */
void page_add(struct page *page, enum look_mark mark, const char *fmt, ...) STK_PRINTF(3, 4);
/* Its sign and a blank, in its colour. */
void page_sign(struct page *page, enum look_mark mark);
/* Text of our own that takes `columns` columns; it must fit. */
void page_raw(struct page *page, enum look_mark mark, const char *text, size_t columns);
/* Columns left in the newest row. */
size_t page_room(const struct page *page);

/* At most `height` rows, joined by newlines. */
void page_finish(struct page *page, size_t height, struct sb *out);

#endif
