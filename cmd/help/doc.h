/*
 * A page of help: written once, shown on a terminal, as a page for man(1) or in Markdown.
 *
 * Texts are ours and UTF-8. In a paragraph one newline is a blank, two begin the next paragraph.
 * Nothing here prints.
 */
#ifndef STK_CMD_HELP_DOC_H
#define STK_CMD_HELP_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/sb.h"

#define DOC_WIDTH 80 /* columns of a terminal, where text is wrapped */

struct doc {
	bool roff;     /* for man(1) */
	bool markdown; /* if neither: for a terminal */
	size_t column; /* column of the items' texts on a terminal */
	bool fresh;    /* nothing beneath the heading yet */
	struct sb text;
};

#define DOC_TERMINAL ((struct doc){ .roff = false, .column = 26, .text = SB_INIT })
#define DOC_ROFF     ((struct doc){ .roff = true, .column = 26, .text = SB_INIT })
#define DOC_MARKDOWN ((struct doc){ .markdown = true, .text = SB_INIT })
void doc_release(struct doc *doc); /* for AUTO() */

/* Adds the title header of a page for man(1). `date` is YYYY-MM-DD. */
void doc_title(struct doc *doc, const char *name, const char *section, const char *date,
	       const char *source, const char *manual);

void doc_heading(struct doc *doc, const char *text); /* "exit codes" */
void doc_subheading(struct doc *doc, const char *text);
void doc_paragraph(struct doc *doc, const char *text);
/* Parts items from the paragraph before them. */
void doc_gap(struct doc *doc);
/* Adds a term and its text; items follow each other. */
void doc_item(struct doc *doc, const char *term, const char *text);
/* Adds to the previous item, on a line of its own. */
void doc_item_line(struct doc *doc, const char *text);
/* Adds a line to type, and its purpose beneath. */
void doc_example(struct doc *doc, const char *line, const char *what);
/* Adds lines to be shown unchanged. */
void doc_literal(struct doc *doc, const char *text);

#endif
