/* Pages of help for terminals, for man(1) and in Markdown: see doc.h. */
#include "cmd/help/doc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/columns.h"
#include "jobs/base/text/text.h"

#define MARGIN     2  /* columns before items and examples */
#define ROFF_WIDTH 60 /* width of the source, which groff refills; escapes make it longer */

void doc_release(struct doc *doc)
{
	sb_release(&doc->text);
}

/* Returns the next paragraph as one line, which the caller frees; NULL at the end. */
static char *next_paragraph(const char **text)
{
	AUTO(sb_release) struct sb line = SB_INIT;
	const char *end, *at = *text + strspn(*text, " \n");

	if (!*at)
		return NULL;
	end = strstr(at, "\n\n");
	if (!end)
		end = at + strlen(at);
	while (at < end) {
		size_t len = strcspn(at, " \n");

		sb_add(&line, at, len);
		at += len;
		at += strspn(at, " \n");
		if (at < end)
			sb_addc(&line, ' ');
	}
	*text = at;
	return sb_take(&line);
}

/* ---- terminal ------------------------------------------------------------------- */

static void blanks(struct sb *out, size_t count)
{
	while (count-- > 0)
		sb_addc(out, ' ');
}

/* Writes words from `column` (the cursor) up to `width` columns; later lines begin at `indent`. */
static void wrap(struct sb *out, const char *line, size_t column, size_t indent, size_t width)
{
	bool first = true;

	while (*line) {
		size_t len = strcspn(line, " "), wide = columns_width(line, len, true);

		if (!first && column + 1 + wide > width) {
			sb_addc(out, '\n');
			blanks(out, indent);
			column = indent;
		} else if (!first) {
			sb_addc(out, ' ');
			column++;
		}
		sb_add(out, line, len);
		column += wide;
		line += len + (line[len] == ' ');
		first = false;
	}
}

static void plain_paragraphs(struct sb *out, const char *text, size_t column, size_t indent)
{
	char *line = next_paragraph(&text);

	while (line) {
		wrap(out, line, column, indent, DOC_WIDTH);
		sb_addc(out, '\n');
		free(line);
		line = next_paragraph(&text);
		if (line) {
			sb_addc(out, '\n');
			blanks(out, indent);
		}
	}
}

static void plain_item(struct doc *doc, const char *term, const char *text)
{
	struct sb *out = &doc->text;
	size_t width = MARGIN + columns_width(term, strlen(term), true);

	blanks(out, MARGIN);
	sb_adds(out, term);
	if (width + 2 > doc->column) {
		sb_addc(out, '\n');
		width = 0;
	}
	blanks(out, doc->column - width);
	plain_paragraphs(out, text, doc->column, doc->column);
}

static void plain_lines(struct sb *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		blanks(out, len ? MARGIN : 0);
		sb_add(out, text, len);
		sb_addc(out, '\n');
		text += len + (text[len] == '\n');
	}
}

/* ---- man(1) --------------------------------------------------------------------- */

/* Escapes the text so that none of it acts as a request, and hyphens can be typed as shown. */
static void roff_add(struct sb *out, const char *text, size_t len)
{
	static const struct {
		char c;
		const char *escape;
	} rows[] = { { '\\', "\\(rs" }, { '-', "\\-" },   { '\'', "\\(aq" }, { '`', "\\(ga" },
		     { '^', "\\(ha" },  { '~', "\\(ti" }, { '"', "\\(dq" } };

	for (size_t at = 0; at < len;) {
		uint32_t code;
		size_t n = text_utf8(text + at, len - at, &code), row = 0;

		if (n > 1) {
			sb_addf(out, "\\[u%04X]", (unsigned)code);
			at += n;
			continue;
		}
		while (row < STK_LENGTH(rows) && rows[row].c != text[at])
			row++;
		if (row < STK_LENGTH(rows))
			sb_adds(out, rows[row].escape);
		else if (text[at] == '.' && (out->len == 0 || out->text[out->len - 1] == '\n'))
			sb_adds(out, "\\&.");
		else
			sb_addc(out, text[at]);
		at++;
	}
}

static void roff_line(struct sb *out, const char *before, const char *text, const char *after)
{
	sb_adds(out, before);
	roff_add(out, text, strlen(text));
	sb_adds(out, after);
}

/* Writes a line of a paragraph. A line of a single word may be broken after a slash. */
static void roff_words(struct sb *out, const char *line, size_t len)
{
	bool one = !memchr(line, ' ', len);

	for (size_t n; len > 0; line += n, len -= n) {
		const char *slash = one ? memchr(line, '/', len) : NULL;

		n = slash ? (size_t)(slash - line) + 1 : len;
		roff_add(out, line, n);
		if (slash && n < len)
			sb_adds(out, "\\:");
	}
	sb_addc(out, '\n');
}

static void roff_paragraphs(struct sb *out, const char *text, const char *between)
{
	char *line = next_paragraph(&text);

	while (line) {
		AUTO(sb_release) struct sb wrapped = SB_INIT;

		wrap(&wrapped, line, 0, 0, ROFF_WIDTH);
		for (const char *at = wrapped.text; *at;) {
			size_t len = strcspn(at, "\n");

			roff_words(out, at, len);
			at += len + (at[len] == '\n');
		}
		free(line);
		line = next_paragraph(&text);
		if (line)
			sb_adds(out, between);
	}
}

static void roff_lines(struct sb *out, const char *text)
{
	sb_adds(out, ".PP\n.RS 4\n.nf\n");
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (len == 0)
			sb_adds(out, ".sp\n");
		else
			roff_add(out, text, len);
		if (len)
			sb_addc(out, '\n');
		text += len + (text[len] == '\n');
	}
	sb_adds(out, ".fi\n.RE\n");
}

/* ---- Markdown ------------------------------------------------------------------- */

#define MARKDOWN_WIDTH 118

/* Writes paragraphs whose first line begins at `column`; signs of Markdown are escaped. */
static void markdown_paragraphs(struct sb *out, const char *text, size_t column, size_t indent)
{
	AUTO(sb_release) struct sb safe = SB_INIT;
	char *line;

	for (; *text; text++)
		sb_addf(&safe, "%s%c", strchr("<*_", *text) ? "\\" : "", *text);
	text = safe.len ? safe.text : "";
	while ((line = next_paragraph(&text))) {
		wrap(out, line, column, indent, MARKDOWN_WIDTH);
		sb_addc(out, '\n');
		free(line);
	}
}

/* ---- all ------------------------------------------------------------------------ */

static char *upper_case(const char *text)
{
	char *upper = mem_copy(text);

	for (char *c = upper; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return upper;
}

void doc_title(struct doc *doc, const char *name, const char *section, const char *date,
	       const char *source, const char *manual)
{
	AUTO(auto_free) char *upper = upper_case(name);

	sb_addf(&doc->text, ".\\\" Generated from the tables of stoker.\n.TH \"%s", upper);
	roff_line(&doc->text, "\" \"", section, "\" \"");
	sb_adds(&doc->text, date);
	roff_line(&doc->text, "\" \"", source, "\" \"");
	roff_line(&doc->text, "", manual, "\"\n.nh\n.ad l\n");
}

void doc_heading(struct doc *doc, const char *text)
{
	AUTO(auto_free) char *upper = upper_case(text);

	doc->fresh = true;
	if (doc->markdown)
		sb_addf(&doc->text, "\n## %c%s\n", upper[0], text + 1);
	else if (doc->roff)
		roff_line(&doc->text, ".SH \"", upper, "\"\n");
	else
		sb_addf(&doc->text, "%s%s:\n", doc->text.len ? "\n" : "", text);
}

void doc_subheading(struct doc *doc, const char *text)
{
	doc->fresh = true;
	if (doc->markdown)
		sb_addf(&doc->text, "\n### `%s`\n", text);
	else if (doc->roff)
		roff_line(&doc->text, ".SS \"", text, "\"\n");
	else
		sb_addf(&doc->text, "%s%s\n", doc->text.len ? "\n" : "", text);
}

void doc_paragraph(struct doc *doc, const char *text)
{
	if (doc->roff) {
		/* A heading implies a paragraph. */
		sb_adds(&doc->text, doc->fresh ? "" : ".PP\n");
		doc->fresh = false;
		roff_paragraphs(&doc->text, text, ".PP\n");
		return;
	}
	if (doc->text.len)
		sb_addc(&doc->text, '\n');
	if (doc->markdown)
		markdown_paragraphs(&doc->text, text, 0, 0);
	else
		plain_paragraphs(&doc->text, text, 0, 0);
}

void doc_gap(struct doc *doc)
{
	if (!doc->roff)
		sb_addc(&doc->text, '\n');
}

void doc_item(struct doc *doc, const char *term, const char *text)
{
	if (doc->markdown) {
		sb_addf(&doc->text, "- `%s`: ", term);
		markdown_paragraphs(&doc->text, text, strlen(term) + 6, 2);
		return;
	}
	if (!doc->roff) {
		plain_item(doc, term, text);
		return;
	}
	roff_line(&doc->text, ".TP\n\\fB", term, "\\fR\n");
	roff_paragraphs(&doc->text, text, ".IP\n");
}

void doc_item_line(struct doc *doc, const char *text)
{
	if (!doc->roff) {
		blanks(&doc->text, doc->column);
		plain_paragraphs(&doc->text, text, doc->column, doc->column);
		return;
	}
	sb_adds(&doc->text, ".br\n");
	roff_paragraphs(&doc->text, text, ".br\n");
}

void doc_example(struct doc *doc, const char *line, const char *what)
{
	if (doc->roff) {
		doc_item(doc, line, what);
		return;
	}
	blanks(&doc->text, MARGIN);
	sb_addf(&doc->text, "%s\n", line);
	blanks(&doc->text, 3 * MARGIN);
	plain_paragraphs(&doc->text, what, 3 * MARGIN, 3 * MARGIN);
}

void doc_literal(struct doc *doc, const char *text)
{
	if (doc->roff) {
		roff_lines(&doc->text, text);
		return;
	}
	if (doc->text.len)
		sb_addc(&doc->text, '\n');
	plain_lines(&doc->text, text);
}
