/* Results and messages: see out.h. */
#include "cmd/screen/out.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "jobs/base/process/outlet.h"
#include "jobs/base/text/columns.h"
#include "jobs/base/text/text.h"

#define LEAVE_MS 2000  /* limit for output still kept at the end */
#define IDLE_MS  60000 /* a reader that accepts nothing for this long counts as gone */

/* Index of stdout and stderr. */
enum out_stream { RESULTS, MESSAGES, STREAMS };

static struct {
	bool json, quiet, verbose, bulk;
	struct text_style style, style_err; /* styles for stdout and stderr */
	void (*sink)(void *arg, const char *line, size_t len);
	void *sink_arg;
	int write_errno; /* errno of the first failed write to stdout */
	bool has_outlets;
	bool unblocked[STREAMS];
	struct outlet outlets[STREAMS];
	struct sb line; /* pending line for stdout */
} out;

/* True if the terminal can do more than print lines one after the other. */
static bool is_able(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && term[0] && strcmp(term, "dumb") != 0;
}

static bool has_color(const char *option, int fd)
{
	const char *no_color = getenv("NO_COLOR");

	if (option && strcmp(option, "auto") != 0)
		return strcmp(option, "always") == 0;
	return is_able(fd) && !(no_color && no_color[0]);
}

/* Checks the locale's name alone: even a locale that is not installed tells the terminal's
 * encoding. */
static bool is_utf8(void)
{
	const char *const values[] = { getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG") };

	for (size_t i = 0; i < STK_LENGTH(values); i++)
		if (values[i] && values[i][0])
			return strcasestr(values[i], "utf-8") || strcasestr(values[i], "utf8");
	return false;
}

void out_init(const struct out_options *options)
{
	out.json = options->json;
	out.quiet = options->quiet;
	out.verbose = options->verbose;
	out.style.utf8 = out.style_err.utf8 = is_utf8();
	out.style.color = has_color(options->color, STDOUT_FILENO);
	out.style_err.color = has_color(options->color, STDERR_FILENO);
}

bool out_draws(void)
{
	return !out.json && !out.quiet && !out.verbose && is_able(STDERR_FILENO);
}

const struct text_style *out_style(void)
{
	return &out.style;
}

const struct text_style *out_style_err(void)
{
	return &out.style_err;
}

void out_size(size_t *ret_columns, size_t *ret_rows)
{
	struct winsize size = { 0 };

	(void)!ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col ? size.ws_col : 80;
	*ret_rows = size.ws_row ? size.ws_row : 24;
}

size_t out_width(void)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO))
		return 0;
	(void)!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size.ws_col ? size.ws_col : 80;
}

bool out_err_is_terminal(void)
{
	return isatty(STDERR_FILENO);
}

void out_divert(void (*sink)(void *arg, const char *line, size_t len), void *arg)
{
	out.sink = sink;
	out.sink_arg = arg;
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
	if (out.has_outlets)
		sb_add(&out.line, text, len);
	else if (fwrite(text, 1, len, stdout) != len && !out.write_errno)
		out.write_errno = errno ? errno : EIO;
}

/* Flushes each complete line, so that a reader at a pipe need not wait. */
static void end_line(void)
{
	put("\n", 1);
	if (out.has_outlets) {
		outlet_put(&out.outlets[RESULTS], out.line.text, out.line.len);
		sb_clear(&out.line);
	} else if (!out.bulk && fflush(stdout) != 0 && !out.write_errno)
		out.write_errno = errno ? errno : EIO;
}

static void put_err(const char *line, size_t len)
{
	if (out.sink)
		out.sink(out.sink_arg, line, len);
	else
		out_terminal(line, len);
}

/* A newline in the text is escaped too: it would forge a line. */
static void put_line(FILE *file, const char *prefix, const char *text, size_t len)
{
	AUTO(sb_release) struct sb safe = SB_INIT;

	sb_adds(&safe, prefix);
	text_escape(&safe, text, len, false);
	if (file == stdout) {
		put(safe.text, safe.len);
		end_line();
		return;
	}
	sb_addc(&safe, '\n');
	put_err(safe.text, safe.len);
}

static void put_line_v(FILE *file, const char *prefix, const char *fmt, va_list args)
	STK_PRINTF(3, 0);
static void put_line_v(FILE *file, const char *prefix, const char *fmt, va_list args)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	sb_addv(&text, fmt, args);
	put_line(file, prefix, text.text, text.len);
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
	if (!out.json)
		put_line(stdout, "", len ? text : "", len);
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

void out_finished(const char *lines)
{
	size_t len = strlen(lines);

	if (out.json || len == 0)
		return;
	put(lines, len - 1);
	end_line();
}

static void put_json(const char *line)
{
	put(line, strlen(line));
	end_line();
}

void out_json(const json_t *value)
{
	AUTO(auto_free) char *line = js_line(value);

	put_json(line);
}

void out_json_exact(const json_t *value)
{
	AUTO(auto_free) char *line = js_line_exact(value);

	put_json(line);
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
	return out.style_err.color ? colored : plain;
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

void out_error_line(const char *line)
{
	put_line(stderr, prefix("error: ", "\x1b[31merror:\x1b[0m "), line, strlen(line));
}

void out_error(const struct err *err)
{
	AUTO(auto_free) char *line = err_format(err);

	out_error_line(line);
	if (err->hint)
		out_hint("%s", err->hint);
}

void out_error_later(struct err **kept, struct err **why)
{
	if (*kept)
		out_error(*kept);
	err_freep(kept);
	*kept = TAKE(*why);
}

void out_error_json(const struct err *err)
{
	json_auto_t *line = NULL;
	json_t *object;

	if (!out.json)
		return;
	line = json_object();
	object = json_object();
	js_put(object, "code", json_integer((int)err->code));
	js_put_str(object, "name", exitcode_row_find((int)err->code)->name);
	js_put_str(object, "message", err->message);
	js_put_str(object, "hint", err->hint);
	js_put_str(object, "file", err->file);
	if (err->line > 0)
		js_put(object, "line", json_integer(err->line));
	if (err->line > 0 && err->column > 0)
		js_put(object, "column", json_integer(err->column));
	js_put_str(object, "field", err->field);
	if (err->damage)
		js_put(object, "damage", json_true());
	js_put(line, "error", object);
	out_json(line);
}

void out_quote(const char *lines, bool note)
{
	if (!out.json && !(note && out.quiet))
		put_err(lines, strlen(lines));
}

#define EVENT_ROWS 3
#define EVENT_SIGN 4 /* columns after the time: "12:30:59  ✓ " */
void out_event(const char *at, enum status_icon mark, const char *sentence)
{
	AUTO(sb_release) struct sb line = SB_INIT;
	const struct text_style *style = &out.style_err;
	size_t columns, rows, indent = strlen(at) + EVENT_SIGN;

	if (!out_draws()) {
		out_note("%s  %s", at, sentence);
		return;
	}
	out_size(&columns, &rows);
	sb_addf(&line, "%s%s%s  %s%s%s ", text_style_on(style, MARK_FAINT), at,
		text_style_off(style), text_style_on(style, mark),
		text_style_icon_text(style, mark), text_style_off(style));
	columns_wrap(&line, sentence, strlen(sentence),
		     columns > 2 * indent ? columns - indent - 1 : indent, indent, EVENT_ROWS,
		     style->utf8);
	sb_addc(&line, '\n');
	put_err(line.text, line.len);
}

void out_marked(const char *label, enum status_icon mark, const char *fmt, ...)
{
	AUTO(sb_release) struct sb before = SB_INIT;
	const struct text_style *style = &out.style;
	va_list args;

	if (out.json)
		return;
	sb_addf(&before, "%s%s%s%s ", label, text_style_on(style, mark),
		text_style_icon_text(style, mark), text_style_off(style));
	va_start(args, fmt);
	put_line_v(stdout, before.text, fmt, args);
	va_end(args);
}

/* --- output without waiting for readers --- */

static const int fds[STREAMS] = { STDOUT_FILENO, STDERR_FILENO };

static void finish_stream(enum out_stream stream, bool is_leaving)
{
	if (is_leaving)
		outlet_flush(&out.outlets[stream], LEAVE_MS / STREAMS);
	else
		outlet_drain(&out.outlets[stream], IDLE_MS);
}

static void close_outlets(bool is_leaving)
{
	struct outlet *results = &out.outlets[RESULTS];

	if (!out.has_outlets)
		return;
	finish_stream(RESULTS, is_leaving);
	if (!out.write_errno && results->failed != ECANCELED)
		out.write_errno = results->failed;
	if (results->dropped > 0)
		out_warning("%llu bytes were not written to stdout, because no reader took them in "
			    "time; 'stoker events' has all of them",
			    (unsigned long long)results->dropped);
	finish_stream(MESSAGES, is_leaving);
	out.has_outlets = false;
	for (size_t i = 0; i < STREAMS; i++) {
		outlet_release(&out.outlets[i]);
		if (out.unblocked[i])
			outlet_block(fds[i]);
	}
	sb_release(&out.line);
}

static void open_outlets(const struct outlet_rules rules[STREAMS])
{
	close_outlets(false);
	fflush(stdout);
	out.line = SB_INIT_MAX(OUT_ROOM);
	for (size_t i = 0; i < STREAMS; i++) {
		out.unblocked[i] = outlet_unblock(fds[i]);
		outlet_init(&out.outlets[i], fds[i], &rules[i], NULL);
	}
	out.has_outlets = true;
}

void out_keep(void)
{
	/* Nothing is inserted between events on stdout: their numbers show a gap. */
	static const struct outlet_rules rules[STREAMS] = {
		[RESULTS] = { .room = OUT_ROOM },
		[MESSAGES] = { .room = OUT_ROOM,
			       .by = "stoker",
			       .has = "'stoker events' has all events" },
	};

	open_outlets(rules);
}

void out_keep_with(struct loop *loop)
{
	for (size_t i = 0; i < STREAMS && out.has_outlets; i++)
		outlet_use(&out.outlets[i], loop);
}

void out_attend(void)
{
	static const struct outlet_rules rules[STREAMS] = { { .until_stop = true },
							    { .until_stop = true } };

	open_outlets(rules);
}

void out_keep_no_more(void)
{
	close_outlets(false);
}

void out_terminal(const char *bytes, size_t len)
{
	if (out.has_outlets)
		outlet_put(&out.outlets[MESSAGES], bytes, len);
	else
		fwrite(bytes, 1, len, stderr);
}

/* False if the terminal was stopped with Ctrl-S, or is not read at all. */
bool out_terminal_is_ready(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return !(out.has_outlets && outlet_waits(&out.outlets[MESSAGES])) && poll(&fd, 1, 0) == 1 &&
	       (fd.revents & POLLOUT);
}

int out_finish(struct err **err)
{
	close_outlets(true);
	if (fflush(stdout) != 0 && !out.write_errno)
		out.write_errno = errno;
	if (out.write_errno == 0 || out.write_errno == EPIPE)
		return 0;
	err_system(err, EXIT_REFUSED, out.write_errno, "cannot write to standard output");
	switch (out.write_errno) {
	case EBADF:
		return err_hint(err, "standard output is closed; redirect it to /dev/null instead");
	case ENOSPC:
	case EDQUOT:
		return err_hint(err, "free space in the target of the redirection, "
				     "then run the command again");
	default:
		return err_hint(err, "check where standard output leads to, "
				     "then run the command again");
	}
}
