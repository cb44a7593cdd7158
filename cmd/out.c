/* Results and messages: see out.h. */
#include "cmd/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/text.h"

static struct {
	bool json, quiet, verbose, color, bulk;
	int write_errno; /* of the first failed write to stdout */
} out;

void out_init(const struct out_options *options)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	out.json = options->json;
	out.quiet = options->quiet;
	out.verbose = options->verbose;
	if (options->color && strcmp(options->color, "auto") != 0)
		out.color = strcmp(options->color, "always") == 0;
	else
		out.color = isatty(STDERR_FILENO) && !(no_color && no_color[0]) && term &&
			    strcmp(term, "dumb") != 0;
}

bool out_is_json(void)
{
	return out.json;
}

bool out_is_verbose(void)
{
	return out.verbose;
}

void out_bulk(bool bulk)
{
	out.bulk = bulk;
}

static void put(const char *text, size_t len)
{
	if (fwrite(text, 1, len, stdout) != len && !out.write_errno)
		out.write_errno = errno ? errno : EIO;
}

/* Complete lines, at once: what reads us through a pipe need not wait. */
static void end_line(void)
{
	put("\n", 1);
	if (!out.bulk && fflush(stdout) != 0 && !out.write_errno)
		out.write_errno = errno ? errno : EIO;
}

/* A newline in what is filled in is an escape too: it would forge a line. */
static void put_line_v(FILE *file, const char *prefix, const char *fmt, va_list args)
	STK_PRINTF(3, 0);
static void put_line_v(FILE *file, const char *prefix, const char *fmt, va_list args)
{
	AUTO(sb_release) struct sb raw = SB_INIT, safe = SB_INIT;

	sb_addv(&raw, fmt, args);
	sb_adds(&safe, prefix);
	text_escape(&safe, raw.text, raw.len, false);
	if (file == stdout) {
		put(safe.text, safe.len);
		end_line();
		return;
	}
	sb_addc(&safe, '\n');
	fwrite(safe.text, 1, safe.len, file);
}

void out_line(const char *fmt, ...)
{
	va_list args;

	if (out.json)
		return;
	va_start(args, fmt);
	put_line_v(stdout, "", fmt, args);
	va_end(args);
}

void out_text(const char *text, size_t len)
{
	AUTO(sb_release) struct sb safe = SB_INIT;

	if (out.json)
		return;
	text_escape(&safe, len ? text : "", len, false);
	put(safe.text, safe.len);
	end_line();
}

void out_block(const char *text)
{
	AUTO(sb_release) struct sb safe = SB_INIT;

	if (out.json)
		return;
	text_escape(&safe, text, strlen(text), true);
	put(safe.text, safe.len);
	end_line();
}

void out_json(const json_t *value)
{
	AUTO(auto_free) char *line = js_line(value);

	put(line, strlen(line));
	end_line();
}

void out_note(const char *fmt, ...)
{
	va_list args;

	if (out.quiet || out.json)
		return;
	va_start(args, fmt);
	put_line_v(stderr, "", fmt, args);
	va_end(args);
}

static const char *prefix(const char *plain, const char *colored)
{
	return out.color ? colored : plain;
}

void out_warning(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_line_v(stderr, prefix("warning: ", "\x1b[33mwarning:\x1b[0m "), fmt, args);
	va_end(args);
}

void out_hint(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_line_v(stderr, prefix("hint: ", "\x1b[36mhint:\x1b[0m "), fmt, args);
	va_end(args);
}

/* The line itself with our prefix; split off so that callers need no format. */
static void put_prefixed(const char *before, const char *fmt, ...) STK_PRINTF(2, 3);
static void put_prefixed(const char *before, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_line_v(stderr, before, fmt, args);
	va_end(args);
}

void out_error_line(const char *line)
{
	put_prefixed(prefix("error: ", "\x1b[31merror:\x1b[0m "), "%s", line);
}

void out_error(const struct err *err)
{
	AUTO(auto_free) char *line = err_format(err);

	out_error_line(line);
	if (err->hint)
		out_hint("%s", err->hint);
}

int out_finish(struct err **err)
{
	if (fflush(stdout) != 0 && !out.write_errno)
		out.write_errno = errno;
	if (out.write_errno == 0 || out.write_errno == EPIPE)
		return 0;
	err_system(err, EXIT_REFUSED, out.write_errno, "cannot write to standard output");
	if (out.write_errno == EBADF)
		return err_hint(err, "it is closed: redirect it to /dev/null instead");
	return err_hint(err, "free space where it is redirected to, then run it again");
}
