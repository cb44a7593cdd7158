/* Reads Python as far as strings, comments and line ends go: see python_text.h. */
#include "jobs/source/python_text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"

#define NESTING_MAX  20  /* depth of nested f-strings; Python itself takes 150 brackets */
#define BRACKETS_MAX 100 /* in one field of an f-string */

struct python_text_reader {
	const char *at, *end;
	struct sb *out;
	size_t line;    /* start of the current line in `out` */
	bool continued; /* the line before ended with a backslash */
	const char *word;
	int nesting;
};

/* A string that is being read: its closing mark, and whether its braces hold code. */
struct quote {
	char mark;
	bool triple, fields;
};

static bool read_string(struct python_text_reader *reader);

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f';
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Returns the length of the line end at `at`; 0 if there is no line end. */
static size_t line_end(const struct python_text_reader *reader, const char *at)
{
	if (at < reader->end && *at == '\n')
		return 1;
	return at + 1 < reader->end && at[0] == '\r' && at[1] == '\n' ? 2 : 0;
}

/* Keeps one character; a line end becomes a newline. */
static void keep_char(struct python_text_reader *reader)
{
	size_t newline = line_end(reader, reader->at);

	sb_addc(reader->out, newline ? '\n' : *reader->at);
	reader->at += newline ? newline : 1;
}

static bool is_there(const struct python_text_reader *reader, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(reader->end - reader->at) >= len && memcmp(reader->at, text, len) == 0;
}

static bool is_tripled(const struct python_text_reader *reader, char mark)
{
	return is_there(reader, (const char[]){ mark, mark, mark, '\0' });
}

/* Notes the start of the current word: a word right before a quote is its prefix. */
static void track_word(struct python_text_reader *reader)
{
	if (!is_word(*reader->at))
		reader->word = NULL;
	else if (!reader->word)
		reader->word = reader->at;
}

/* ---- f-strings ---------------------------------------------------------------------- */

/* True if the word right before a quote makes its braces fields. */
static bool has_fields(const char *word, size_t len)
{
	static const char *const prefixes[] = { "f", "t", "fr", "rf", "tr", "rt" };

	for (size_t i = 0; word && i < STK_LENGTH(prefixes); i++)
		if (len == strlen(prefixes[i]) && strncasecmp(word, prefixes[i], len) == 0)
			return true;
	return false;
}

static bool read_field(struct python_text_reader *reader, const struct quote *quote);

/* Reads the format of a value: text up to the brace that ends its field. */
static bool read_format(struct python_text_reader *reader, const struct quote *quote)
{
	while (reader->at < reader->end) {
		char c = *reader->at;

		if (line_end(reader, reader->at) && !quote->triple)
			return false;
		if (quote->triple ? is_tripled(reader, quote->mark) : c == quote->mark)
			return false;
		if (c == '\\' || is_there(reader, "{{"))
			return false;
		keep_char(reader);
		if (c == '}')
			return true;
		if (c == '{' && !read_field(reader, quote))
			return false;
	}
	return false;
}

/* Reads the code in a field, behind its brace, up to the brace that ends it. */
static bool read_field(struct python_text_reader *reader, const struct quote *quote)
{
	static const char opening[] = "([{", closing[] = ")]}";
	char open[BRACKETS_MAX];
	int depth = 0;

	if (++reader->nesting > NESTING_MAX)
		return false;
	for (reader->word = NULL; reader->at < reader->end;) {
		char c = *reader->at;
		const char *opens = memchr(opening, c, 3), *closes = memchr(closing, c, 3);

		if (c == '#' || c == '\\')
			return false;
		if (c == '"' || c == '\'') {
			if (!read_string(reader))
				return false;
			continue;
		}
		track_word(reader);
		keep_char(reader);
		if (opens && depth < BRACKETS_MAX)
			open[depth++] = closing[opens - opening];
		else if (depth > 0 && closes && open[depth - 1] == c)
			depth--;
		else if (depth == 0 && (c == '}' || c == ':'))
			break;
		else if (opens || closes)
			return false;
	}
	reader->nesting--;
	return reader->at[-1] == '}' || (reader->at[-1] == ':' && read_format(reader, quote));
}

/* ---- strings ------------------------------------------------------------------------ */

static void read_escape(struct python_text_reader *reader, const struct quote *quote)
{
	keep_char(reader);
	/* A brace behind a backslash is still a brace. */
	if (reader->at < reader->end && !(quote->fields && strchr("{}", *reader->at)))
		keep_char(reader);
}

static bool ends_here(struct python_text_reader *reader, const struct quote *quote)
{
	int marks = quote->triple ? 3 : 1;

	if (*reader->at != quote->mark || (quote->triple && !is_tripled(reader, quote->mark)))
		return false;
	while (marks-- > 0)
		keep_char(reader);
	return true;
}

/* Reads a string from its quote on; its prefix is kept already. */
static bool read_string(struct python_text_reader *reader)
{
	const char *word = reader->word;
	struct quote quote = {
		.mark = *reader->at,
		.triple = is_tripled(reader, *reader->at),
		.fields = has_fields(word, word ? (size_t)(reader->at - word) : 0),
	};

	reader->word = NULL;
	for (int marks = quote.triple ? 3 : 1; marks > 0; marks--)
		keep_char(reader);
	while (reader->at < reader->end) {
		if (ends_here(reader, &quote))
			return true;
		if (line_end(reader, reader->at) && !quote.triple)
			return false;
		if (*reader->at == '\\') {
			read_escape(reader, &quote);
		} else if (quote.fields && *reader->at == '{') {
			bool twice = is_there(reader, "{{");

			keep_char(reader);
			if (twice)
				keep_char(reader);
			else if (!read_field(reader, &quote))
				return false;
		} else {
			keep_char(reader);
		}
	}
	return false;
}

/* ---- lines -------------------------------------------------------------------------- */

/* Ends a line: the blanks at its end go, and the whole line if nothing is left. */
static void end_line(struct python_text_reader *reader)
{
	struct sb *out = reader->out;

	while (out->len > reader->line && is_blank(out->text[out->len - 1]))
		out->text[--out->len] = '\0';
	if (out->len > reader->line || reader->continued)
		sb_addc(out, '\n');
	reader->line = out->len;
	reader->continued = false;
	reader->word = NULL;
}

static bool read_line(struct python_text_reader *reader)
{
	while (reader->at < reader->end) {
		char c = *reader->at;
		size_t newline = line_end(reader, reader->at);

		if (newline) {
			reader->at += newline;
			break;
		}
		if (c == '#') {
			while (reader->at < reader->end && !line_end(reader, reader->at))
				reader->at++;
			continue;
		}
		if (c == '\\') {
			if (!line_end(reader, reader->at + 1))
				return false;
			keep_char(reader);
			keep_char(reader);
			if (reader->at == reader->end)
				return false;
			reader->line = reader->out->len;
			reader->continued = true;
			reader->word = NULL;
			continue;
		}
		if (c == '"' || c == '\'') {
			if (!read_string(reader))
				return false;
			continue;
		}
		track_word(reader);
		keep_char(reader);
	}
	end_line(reader);
	return true;
}

/* ---- the first two lines ------------------------------------------------------------- */

/* True for an encoding in which a byte below 128 is always ASCII: the usual ones, some by the
 * beginning of their names. */
static bool is_plain_encoding(const char *name, size_t len)
{
	static const char *const beginnings[] = { "iso-8859-", "latin-", "cp125", "windows-125" };
	static const char *const names[] = { "utf-8", "utf8", "ascii", "us-ascii", "latin1" };
	char plain[24];

	if (len >= sizeof plain)
		return false;
	for (size_t i = 0; i < len; i++)
		plain[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
	plain[len] = '\0';
	for (size_t i = 0; i < STK_LENGTH(names); i++)
		if (strcmp(plain, names[i]) == 0)
			return true;
	for (size_t i = 0; i < STK_LENGTH(beginnings); i++)
		if (text_starts(plain, beginnings[i]))
			return true;
	return false;
}

/* Finds the encoding that a line declares in a comment: returns its name, with len 0 if none. */
static const char *encoding_of(const char *line, size_t *ret_len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	*ret_len = 0;
	if (line[strspn(line, " \t\f")] != '#')
		return NULL;
	while (*ret_len == 0 && (line = strstr(line, "coding"))) {
		line += strlen("coding");
		if (*line != ':' && *line != '=')
			continue;
		line += 1 + strspn(line + 1, " \t");
		*ret_len = strspn(line, letters);
	}
	return line;
}

/* Keeps the declarations in the first two lines (encoding, interpreter) in front of all else, where
 * they stay valid. */
static bool read_head(struct python_text_reader *reader)
{
	const char *at = reader->at;

	if (is_there(reader, "\xef\xbb\xbf")) {
		sb_add(reader->out, at, 3);
		reader->at = at += 3;
	}
	for (int i = 0; i < 2 && at < reader->end; i++) {
		const char *end = memchr(at, '\n', (size_t)(reader->end - at));
		AUTO(auto_free)
		char *line = mem_copy_n(at, (size_t)((end ? end : reader->end) - at));
		size_t len;
		const char *encoding;

		line[strcspn(line, "\r")] = '\0';
		encoding = encoding_of(line, &len);
		if (len > 0 && !is_plain_encoding(encoding, len))
			return false;
		if (len > 0)
			sb_addf(reader->out, "# coding: %.*s\n", (int)len, encoding);
		if (i == 0 && text_starts(line, "#!"))
			sb_addf(reader->out, "%s\n", line);
		at = end ? end + 1 : reader->end;
	}
	reader->line = reader->out->len;
	return true;
}

static bool is_certain(const char *text, size_t len)
{
	if (len > PYTHON_TEXT_MAX || memchr(text, '\0', len) || !text_is_utf8(text, len))
		return false;
	for (const char *at = text; (at = memchr(at, '\r', len - (size_t)(at - text))); at++)
		if (at + 1 == text + len || at[1] != '\n')
			return false;
	return true;
}

/* Appends the text by the rule to `ret`. Returns false if the text is to be left as it is; `ret` is
 * then spoilt. */
static bool reduce_text(const char *text, size_t len, struct sb *ret)
{
	struct python_text_reader reader = {
		.at = text, .end = text + len, .out = ret, .line = ret->len
	};

	if (!is_certain(text, len) || !read_head(&reader))
		return false;
	while (reader.at < reader.end)
		if (!read_line(&reader))
			return false;
	return !ret->truncated;
}

bool python_text_is(const char *path)
{
	size_t len = strlen(path);

	return len > 3 && strcmp(path + len - 3, ".py") == 0;
}

void python_text_digest(const char *text, size_t len, char ret[SHA256_HEX])
{
	AUTO(sb_release) struct sb reduced = SB_INIT_MAX(PYTHON_TEXT_MAX + 2);

	if (reduce_text(text, len, &reduced))
		hash_sha256_hex(reduced.text, reduced.len, ret);
	else
		hash_sha256_hex(text, len, ret);
}
