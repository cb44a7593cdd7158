/* Parts of the page, for its own files. Each appends whole elements. */
#ifndef STK_REPORT_PAGE_PAGE_INTERNAL_H
#define STK_REPORT_PAGE_PAGE_INTERNAL_H

#include "jobs/report/page/html.h"

/* A table with a caption; cells are outside text. A row's first cell is its head. */
void page_table_begin(struct sb *out, const char *caption, const char *const *heads, size_t count);
/* The same with columns of figures behind the first `texts`. */
void page_figures_begin(struct sb *out, const char *caption, const char *const *heads, size_t count,
			size_t texts);
void page_table_end(struct sb *out);
void page_row_begin(struct sb *out, const char *head);
void page_cell(struct sb *out, const char *text); /* NULL: not known */
void page_number(struct sb *out, const char *fmt, ...) STK_PRINTF(2, 3);
void page_no_number(struct sb *out);
void page_row_end(struct sb *out);
/* A row of two cells, left out without a text. */
void page_pair(struct sb *out, const char *name, const char *text);
void page_pair_value(struct sb *out, const char *name, const json_t *value);

/* "1m 05s"; "" if it is not known. The caller frees it. */
char *page_time(double seconds);
char *page_figure(double value);      /* six digits; "not known" for NaN */
char *page_step_time(double seconds); /* "4.41 ms"; "not known" for NaN; the caller frees it */

/* page_charts.c: the curves, and the figures of each metric. */
void page_charts(struct sb *out, const json_t *data);

/* page_bars.c: where time and money went, and the course of a run. */
void page_ledger(struct sb *out, const json_t *run);
void page_timeline(struct sb *out, const json_t *run);

/* page_run.c: the other sections about a run. */
void page_outcome(struct sb *out, const json_t *run);
void page_asked(struct sb *out, const json_t *run);
void page_attempts(struct sb *out, const json_t *run);
void page_late(struct sb *out, const json_t *run);
void page_nodes(struct sb *out, const json_t *run);
void page_usage(struct sb *out, const json_t *run);
void page_repeat(struct sb *out, const json_t *run);

#endif
