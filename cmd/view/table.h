/*
 * A table for a terminal or a pipe: columns as wide as their widest cell. On a terminal the columns
 * that matter least are left out until the rest fits, and those that may be cut are cut; a row
 * always is one line. Through a pipe everything is there, uncut.
 */
#ifndef STK_CMD_VIEW_TABLE_H
#define STK_CMD_VIEW_TABLE_H

#include "jobs/base/sb.h"
#include "jobs/report/text_style.h"

struct table_column {
	char *title; /* owned */
	int rank;    /* the least is left out last; 0: never */
	size_t cut;  /* columns of the terminal to which it may be cut; 0: never */
	bool marked; /* the sign of the row stands before it */
	bool shown;  /* on the terminal; set by table_print() */
	size_t width;
};

struct table_row {
	char **cells; /* owned; NULL: nothing is known */
	enum status_icon mark;
};

struct table {
	struct table_column *columns;
	size_t column_count;
	struct table_row *rows;
	size_t count;
};
void table_release(struct table *table); /* for AUTO() */

/* Adds a column, before any row; `title` is copied. */
void table_add_column(struct table *table, const char *title, int rank, size_t cut);
/* Adds a row without cells. */
void table_add_row(struct table *table, enum status_icon mark);
/* Sets a cell of the newest row and takes `text` over. */
void table_set(struct table *table, size_t column, char *text);

/* Appends the title and up to `most` rows, each with its newline, safe for a terminal. `width` 0:
 * through a pipe. */
void table_print(struct table *table, size_t width, size_t most, const struct text_style *style,
		 struct sb *ret);

#endif
