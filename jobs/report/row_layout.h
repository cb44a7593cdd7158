/*
 * Rows of a block that must fit a terminal. Each row is cut to the width in display columns; if
 * there are more rows than the height, those of the highest rank are left out, the last first. Text
 * is made harmless (columns.h) as it is added.
 */
#ifndef STK_REPORT_ROW_LAYOUT_H
#define STK_REPORT_ROW_LAYOUT_H

#include "jobs/base/sb.h"
#include "jobs/report/text_style.h"

#define ROW_LAYOUT_ROWS  32
#define ROW_LAYOUT_LABEL 12 /* columns of "state:      " */

struct row_layout {
	struct text_style style;
	size_t width; /* columns */
	size_t count;
	struct row_layout_row {
		struct sb text;
		size_t columns;
		int rank; /* 0: left out last */
	} rows[ROW_LAYOUT_ROWS];
};

void row_layout_init(struct row_layout *layout, const struct text_style *style, size_t width);
void row_layout_release(struct row_layout *layout); /* for AUTO() */

/* Begins a row with its label ("" for blank space of its width, NULL for neither). After
 * ROW_LAYOUT_ROWS rows, the new row replaces the last one. */
void row_layout_row(struct row_layout *layout, int rank, const char *label);
/* Adds to the newest row as much as fits, in the colour of the mark. */
void row_layout_add(struct row_layout *layout, enum status_icon mark, const char *fmt, ...)
	STK_PRINTF(3, 4);
/* Adds the sign of the mark and a blank, in the colour of the mark. */
void row_layout_sign(struct row_layout *layout, enum status_icon mark);
/* Adds trusted text that takes `columns` columns; left out if it does not fit. */
void row_layout_raw(struct row_layout *layout, enum status_icon mark, const char *text,
		    size_t columns);
/* Returns the columns left in the newest row. */
size_t row_layout_room(const struct row_layout *layout);

/* Writes at most `height` rows, joined by newlines. */
void row_layout_finish(struct row_layout *layout, size_t height, struct sb *out);

#endif
