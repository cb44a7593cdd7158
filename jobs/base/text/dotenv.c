/* Reads files of variables, line by line: see dotenv.h. */
#include "jobs/base/text/dotenv.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"

#define NAME_MAX_BYTES ((size_t)512)

static const char form_hint[] = "write NAME=VALUE, and a text of several lines in quotes";

struct dotenv_reader {
	const char *at;
	int line;
	struct dotenv_fault *fault;
};

static int fault(struct dotenv_reader *reader, int line, const char *why, const char *hint)
{
	*reader->fault = (struct dotenv_fault){ line, why, hint };
	return -1;
}

static void skip_blanks(struct dotenv_reader *reader)
{
	reader->at += strspn(reader->at, " \t\r");
}

/* Leaves the rest of the line; false if that is more than a comment. */
static bool end_line(struct dotenv_reader *reader)
{
	skip_blanks(reader);
	if (*reader->at == '#')
		reader->at += strcspn(reader->at, "\n");
	if (*reader->at != '\n')
		return *reader->at == '\0';
	reader->at++;
	reader->line++;
	return true;
}

static bool expands(const char *text)
{
	return text[0] == '$' && (text[1] == '{' || text[1] == '(');
}

static int fault_expands(struct dotenv_reader *reader, int line)
{
	return fault(reader, line, "a value with ${ or $(, which do not expand here",
		     "write the value itself, or put it into single quotes to keep it as it is");
}

/* Adds the sign that an escape in double quotes stands for. */
static void add_escaped(struct dotenv_reader *reader, struct sb *value)
{
	static const char letters[] = "abfnrtv\\\"'$", signs[] = "\a\b\f\n\r\t\v\\\"'$";
	const char *found = reader->at[1] ? strchr(letters, reader->at[1]) : NULL;

	if (!found) {
		sb_addc(value, *reader->at++);
		return;
	}
	sb_addc(value, signs[found - letters]);
	reader->at += 2;
}

static int read_quoted(struct dotenv_reader *reader, struct sb *value)
{
	char quote = *reader->at++;
	int line = reader->line;

	while (*reader->at != quote) {
		if (*reader->at == '\0')
			return fault(reader, line, "a quote that is not closed",
				     "close the quote; within it write \\\" or \\' for a quote");
		if (quote == '"' && expands(reader->at))
			return fault_expands(reader, reader->line);
		reader->line += *reader->at == '\n';
		if (quote == '"' && *reader->at == '\\') {
			add_escaped(reader, value);
			continue;
		}
		if (*reader->at == '\\' && reader->at[1] == quote)
			reader->at++;
		sb_addc(value, *reader->at++);
	}
	reader->at++;
	return 0;
}

/* A value without quotes ends with its line, or before a blank and '#'. */
static int read_bare(struct dotenv_reader *reader, struct sb *value)
{
	const char *start = reader->at, *end = start;

	for (; *end && *end != '\n'; end++) {
		/* '=' stands before the value, if no blank does. */
		if (*end == '#' && isblank((unsigned char)end[-1]))
			break;
		if (expands(end))
			return fault_expands(reader, reader->line);
	}
	reader->at = end;
	while (end > start && strchr(" \t\r", end[-1]))
		end--;
	sb_add(value, start, (size_t)(end - start));
	return 0;
}

static int read_value(struct dotenv_reader *reader, struct sb *value)
{
	int line = reader->line;

	skip_blanks(reader);
	if (*reader->at == '"' || *reader->at == '\'') {
		if (read_quoted(reader, value) < 0)
			return -1;
		line = reader->line;
		if (!end_line(reader))
			return fault(reader, line, "text behind a value in quotes",
				     "put all of the value into one pair of quotes");
	} else if (read_bare(reader, value) < 0) {
		return -1;
	} else {
		end_line(reader);
	}
	if (!text_is_utf8(value->text, value->len))
		return fault(reader, line, "a value that is not UTF-8", "save the file as UTF-8");
	return 0;
}

/* Reads "NAME =" and leaves the cursor behind it. */
static int read_name(struct dotenv_reader *reader, struct sb *name)
{
	const char *start = reader->at;
	size_t len;

	if (text_starts(start, "export") && isblank((unsigned char)start[6]))
		start += 6 + strspn(start + 6, " \t");
	for (len = 0; isalnum((unsigned char)start[len]) || start[len] == '_';)
		len++;
	reader->at = start + len;
	reader->at += strspn(reader->at, " \t");
	if (*reader->at == '=' && len > 0 &&
	    (isdigit((unsigned char)*start) || len > NAME_MAX_BYTES))
		return fault(reader, reader->line, "a name that no variable can have",
			     "begin the name with a letter or '_', and keep it short");
	if (len == 0 || *reader->at != '=')
		return fault(reader, reader->line, "a line without NAME=", form_hint);
	reader->at++;
	sb_add(name, start, len);
	return 0;
}

int dotenv_read(const char *text, dotenv_fn *fn, void *arg, struct dotenv_fault *ret_fault)
{
	AUTO(sb_release) struct sb name = SB_INIT_SECRET;
	AUTO(sb_release) struct sb value = SB_INIT_SECRET;
	struct dotenv_reader reader = { text, 1, ret_fault };

	if (text_starts(text, "\xef\xbb\xbf"))
		reader.at += 3;
	while (*reader.at) {
		int line;

		if (end_line(&reader))
			continue;
		line = reader.line;
		sb_clear(&name);
		sb_clear(&value);
		if (read_name(&reader, &name) < 0 || read_value(&reader, &value) < 0)
			return -1;
		fn(arg, name.text, value.text, line);
	}
	return 0;
}
