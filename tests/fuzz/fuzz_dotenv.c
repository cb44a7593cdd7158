/*
 * A file of variables: the input is its text. Variables have the form of one, come in the order of
 * their lines, and are no longer than the text; a fault names a line of the text.
 * Written again in single quotes, every value is read as it was.
 */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/dotenv.h"
#include "jobs/base/text/text.h"

struct seen {
	struct sb quoted; /* the variables again */
	struct sb plain;  /* name, value and a line end of each */
	size_t bytes;
	int line;
};

static void see(void *arg, const char *name, const char *value, int line)
{
	struct seen *seen = arg;

	MUST(line > seen->line || seen->line == 0);
	MUST(*name && !isdigit((unsigned char)*name));
	for (const char *c = name; *c; c++)
		MUST(isalnum((unsigned char)*c) || *c == '_');
	MUST(text_is_utf8(value, strlen(value)));
	seen->line = line;
	seen->bytes += strlen(name) + strlen(value) + 1;
	sb_adds(&seen->plain, name);
	sb_addc(&seen->plain, '=');
	sb_adds(&seen->plain, value);
	sb_addc(&seen->plain, '\n');
	sb_adds(&seen->quoted, name);
	sb_adds(&seen->quoted, "='");
	for (const char *c = value; *c; c++) {
		if (*c == '\'')
			sb_addc(&seen->quoted, '\\');
		sb_addc(&seen->quoted, *c);
	}
	sb_adds(&seen->quoted, "'\n");
}

static void release(struct seen *seen)
{
	sb_release(&seen->quoted);
	sb_release(&seen->plain);
}

/* A backslash before a quote, or at the end, has no form in single quotes. */
static bool can_be_quoted(const char *plain)
{
	return !strstr(plain, "\\'") && !strstr(plain, "\\\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	AUTO(auto_free) char *text = mem_copy_n((const char *)bytes, len);
	struct seen first = { SB_INIT, SB_INIT, 0, 0 }, again = { SB_INIT, SB_INIT, 0, 0 };
	struct dotenv_fault fault = { 0, NULL, NULL };
	int lines = 1;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	if (dotenv_read(text, see, &first, &fault) < 0)
		MUST(fault.line >= 1 && fault.line <= lines && *fault.why && *fault.hint);
	MUST(first.bytes <= strlen(text));
	MUST(first.line <= lines);
	if (can_be_quoted(first.plain.text)) {
		MUST(dotenv_read(first.quoted.text, see, &again, &fault) == 0);
		MUST(strcmp(first.plain.text, again.plain.text) == 0);
	}
	release(&first);
	release(&again);
	return 0;
}
