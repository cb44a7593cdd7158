/* The rows of a comparison in the forms that people and programs read. */
#ifndef STK_CMD_COMPARE_COMPARE_TEXT_H
#define STK_CMD_COMPARE_COMPARE_TEXT_H

#include "cmd/compare/measure.h"
#include "jobs/report/text_style.h"

struct compare_sheet {
	const struct measure *runs; /* as they were named */
	size_t run_count;
	struct comparison_row *rows;
	json_t **differences; /* of each row from the baseline, as plan_difference() has them */
	size_t row_count;
	const char *metric; /* the metric of the curves; NULL: none */
	const char *target; /* as it was asked for; NULL: none */
	/* metrics by which the log itself tells the speed; NULL: the clock does */
	const char *throughput, *step_time;
};

/* Returns a ratio as a change, "+8.4 %" or "+334 %"; the caller frees it. */
char *compare_text_percent(double times);

/* Returns the verdict about a row with its reason, if it has one; the caller frees it. */
char *compare_text_verdict(const struct compare_sheet *sheet, size_t row);
/* Returns a row as JSON, a new reference. */
json_t *compare_text_json(const struct compare_sheet *sheet, size_t row);
/* Returns the table as texts, {"columns": [text], "rows": [[text or null]], "best": number of that
 * row; absent: none}, a new reference. The first two columns are of text, the others of figures. */
json_t *compare_text_cells(const struct compare_sheet *sheet);
/* Appends the table: for a terminal of this width (0: a pipe), as CSV, as Markdown. */
void compare_text_table(const struct compare_sheet *sheet, size_t width,
			const struct text_style *style, struct sb *ret);
void compare_text_csv(const struct compare_sheet *sheet, struct sb *ret);
void compare_text_markdown(const struct compare_sheet *sheet, struct sb *ret);
/* Appends what differs from the baseline, a line for each row. */
void compare_text_differences(const struct compare_sheet *sheet, struct sb *ret);

#endif
