/*
 * Outside text in HTML: inert, and readable.
 *
 * report/page: a report as one page of HTML that needs no network. The page is text, tables and
 * plain bars, readable without JavaScript; with it, dygraphs draws the curves from the numbers that
 * the page carries. Pure: data comes as JSON, the page is text. Nothing here opens a run.
 */
#ifndef STK_REPORT_PAGE_HTML_H
#define STK_REPORT_PAGE_HTML_H

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"

/* Append outside text, as content of an element or as a quoted attribute: what HTML would read as
 * markup is a character reference; controls, and marks that change the direction of text, are
 * visible escapes (text_escape()). NULL appends nothing. */
void html_text(struct sb *out, const char *text);
/* The same; newlines are kept: for <pre>. */
void html_lines(struct sb *out, const char *text);
/* The same of a formatted text. */
void html_textf(struct sb *out, const char *fmt, ...) STK_PRINTF(2, 3);

/* Appends a value as content of <script type="application/json">: it cannot end the element. */
void html_json(struct sb *out, const json_t *value);

/* Appends a value of a spec as text: a string as it is, anything else as JSON. */
void html_value(struct sb *out, const json_t *value);

#endif
