/*
 * Messages of torch-neuronx, its compiler's wrapper and neuron_parallel_compile, from their
 * documentation, the front-end's source and published logs (MODULE stands for
 * `MODULE_<graph>+<flags>`, CACHE for its folder in the cache):
 *
 *   Compile cache path: <url>
 *   Using a cached neff at CACHE/model.neff[. Exiting with a successfully …]
 *   Call compiler with cmd: neuronx-cc compile … model.MODULE.hlo_module.pb …
 *   Call compiler with cmd: ['neuronx-cc', … 'model.MODULE.hlo.pb', …]   (2023)
 *   No candidate found under CACHE.                                      (older)
 *   Compilation Successfully Completed for model.MODULE.hlo_module.pb
 *   Extracting graphs (CACHE/model.hlo_module.pb) for ahead-of-time parallel …
 *   Got a cached failed neff at CACHE/model.neff. Will skip compilation, …
 *   Failed compilation with ['neuronx-cc', … model.MODULE…]: …
 *   Compilation failed for … model.MODULE…: …
 *   CalledProcessError: Command '… MODULE …' returned non-zero exit status 70.
 *   RunNeuronCCImpl: error condition …
 *   parallel compilation with neuronx-cc exited with error.Received error code: -9
 *   Another process must be compiling CACHE/…, been waiting for: 1.5 minutes
 *   No todo hlos found in cache or hlo_tasklist, parallel_compile return …
 *   Current remaining items are 3, locked are 0, failed are 1, done are 2, …
 *   Subprocess 4711 encountered error: …
 *   sub-process 3 got exception: …           There was an error in the training script.
 *   Total graphs: 3     Total successful compilations: 2     Total failed compilations: 1
 *
 * Prefixes came in three generations (`TIME: INFO ||NCC_WRAPPER||: `, `TIME:  PID
 * INFO ||NEURON_CC_WRAPPER||: `, `TIME:  PID  [INFO]: `), and launchers add their own, so only the
 * message texts are searched for. Every rank of every node prints, so lines are cut and merged; a
 * message ends where another one begins.
 */
#include <string.h>
#include <strings.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/cursor.h"
#include "jobs/cache/kinds/neuron.h"
#include "jobs/cache/kinds/neuron_path.h"

#define COMMAND_MAX 4096 /* bytes of a compiler's command before its graph */
#define URL_MAX     1024
#define STAMP_REACH 200 /* bytes before a message that are searched for its time */

struct neuron_log_message {
	const char *start;
	enum note_kind kind;
	bool (*read)(struct cursor *in, struct graph_note *ret);
	bool inside; /* may occur inside another message */
};

/* Length of the text before the beginning of another message. */
static size_t own_length(const char *text, size_t len);

/* Consumes the text up to the end of this message's next graph. */
static bool eat_graph(struct cursor *in, struct graph_note *ret)
{
	struct compile_kind_words ahead = cursor_line_ahead(in, COMMAND_MAX);

	ahead.len = own_length(ahead.text, ahead.len);
	if (!neuron_find_graph(ahead.text, ahead.len, &ret->key, &ret->place))
		return false;
	in->at = ret->key.text + ret->key.len;
	return true;
}

/* The rest of this message on its line. */
static struct compile_kind_words own_why(struct cursor *in)
{
	struct compile_kind_words ahead = cursor_line_ahead(in, WHY_MAX);
	struct cursor own = { in->at, in->at + own_length(ahead.text, ahead.len) };
	struct compile_kind_words why;

	while (own.at < own.end && strchr(" :.", *own.at))
		own.at++;
	why = cursor_accept_why(&own);
	in->at = own.at;
	return why;
}

static bool read_graph(struct cursor *in, struct graph_note *ret)
{
	return eat_graph(in, ret);
}

static bool read_call(struct cursor *in, struct graph_note *ret)
{
	ret->called = true;
	return eat_graph(in, ret);
}

static bool read_alone(struct cursor *in, struct graph_note *ret)
{
	(void)in;
	(void)ret;
	return true;
}

/* The reason follows a colon after the command or the path. */
static bool read_failed(struct cursor *in, struct graph_note *ret)
{
	struct compile_kind_words ahead, skipped;
	struct cursor own;

	if (!eat_graph(in, ret))
		return false;
	ahead = cursor_line_ahead(in, COMMAND_MAX);
	own = (struct cursor){ in->at, in->at + own_length(ahead.text, ahead.len) };
	if (cursor_accept_until(&own, "]: ", COMMAND_MAX, &skipped) ||
	    cursor_accept_until(&own, ": ", COMMAND_MAX, &skipped)) {
		in->at = own.at;
		ret->why = own_why(in);
	}
	return true;
}

static bool holds(struct compile_kind_words text, const char *word)
{
	return memmem(text.text, text.len, word, strlen(word)) != NULL;
}

/* The way the command ended follows the command, which may hold quotes and brackets of its own. */
static bool read_ended(struct cursor *in, struct graph_note *ret)
{
	static const char *const ends[] = { "returned non-zero exit status", "died with <" };
	struct compile_kind_words ahead;

	if (!eat_graph(in, ret))
		return false;
	ahead = cursor_line_ahead(in, COMMAND_MAX);
	ahead.len = own_length(ahead.text, ahead.len);
	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		const char *end = memmem(ahead.text, ahead.len, ends[i], strlen(ends[i]));

		if (!end)
			continue;
		in->at = end;
		ret->why = own_why(in);
		ret->killed = holds(ret->why, "SIGKILL");
		return true;
	}
	return false;
}

static bool read_code(struct cursor *in, struct graph_note *ret)
{
	const char *start = in->at - strlen("Received error code: ");
	double code = 0;
	bool minus = cursor_accept(in, "-");

	if (!cursor_accept_number(in, &code) || code == 0)
		return false;
	/* Killed by a signal: -9, or 137 as a shell reports it. */
	ret->killed = minus ? code == 9 : code == 137;
	ret->why = (struct compile_kind_words){ start, (size_t)(in->at - start) };
	return true;
}

static bool read_words(struct cursor *in, struct graph_note *ret)
{
	ret->why = own_why(in);
	return ret->why.len > 0;
}

/* The compiler's error code is part of the message. */
static bool read_code_words(struct cursor *in, struct graph_note *ret)
{
	in->at -= strlen("NCC_E");
	return read_words(in, ret);
}

static bool read_waiting(struct cursor *in, struct graph_note *ret)
{
	struct compile_kind_words skipped;

	if (!eat_graph(in, ret) ||
	    !cursor_accept_until(in, "been waiting for: ", URL_MAX, &skipped) ||
	    holds(skipped, "been ") || !cursor_accept_number(in, &ret->seconds) ||
	    ret->seconds > 1e7)
		return false;
	ret->seconds *= 60;
	return cursor_accept(in, " minute");
}

static bool read_cache(struct cursor *in, struct graph_note *ret)
{
	struct compile_kind_words ahead = cursor_line_ahead(in, URL_MAX);

	if (own_length(ahead.text, ahead.len) != ahead.len || holds(ahead, "||") ||
	    holds(ahead, "/MODULE_") || memchr(ahead.text, '\0', ahead.len))
		return false; /* the end of the URL is not known */
	ret->why = cursor_accept_why(in);
	return ret->why.len > 0;
}

static bool read_total(struct cursor *in, struct graph_note *ret)
{
	double count;

	ret->graphs = ret->good = ret->bad = -1;
	if (!cursor_accept_number(in, &count) || count > 1e9)
		return false;
	ret->graphs = (int64_t)count;
	return true;
}

static bool read_total_good(struct cursor *in, struct graph_note *ret)
{
	bool found = read_total(in, ret);

	ret->good = ret->graphs;
	ret->graphs = -1;
	return found;
}

static bool read_total_bad(struct cursor *in, struct graph_note *ret)
{
	bool found = read_total(in, ret);

	ret->bad = ret->graphs;
	ret->graphs = -1;
	return found;
}

static bool read_worker(struct cursor *in, struct graph_note *ret)
{
	double number;

	return cursor_accept_number(in, &number) && cursor_accept(in, " got exception: ") &&
	       read_words(in, ret);
}

static bool read_subprocess(struct cursor *in, struct graph_note *ret)
{
	double number;

	return cursor_accept_number(in, &number) && cursor_accept(in, " encountered error: ") &&
	       read_words(in, ret);
}

static bool read_pool(struct cursor *in, struct graph_note *ret)
{
	in->at -= strlen("BrokenProcessPool");
	return read_words(in, ret);
}

/* clang-format off */
static const struct neuron_log_message messages[] = {
	{ "Another process must be compiling ", NOTE_WAITING, read_waiting, false },
	{ "BrokenProcessPool", NOTE_WORKER_DIED, read_pool, true },
	{ "Call compiler with cmd: ", NOTE_MISS, read_call, false },
	{ "CalledProcessError: Command ", NOTE_FAILED, read_ended, true },
	{ "Compilation Successfully Completed for ", NOTE_COMPILED, read_graph, false },
	{ "Compilation failed for ", NOTE_FAILED, read_failed, false },
	{ "Compile cache path: ", NOTE_CACHE, read_cache, false },
	{ "Current remaining items are ", NOTE_REMAINING, read_total, false },
	{ "Extracting graphs (", NOTE_EXTRACTED, read_graph, false },
	{ "Failed compilation with ", NOTE_FAILED, read_failed, false },
	{ "Got a cached failed neff at ", NOTE_CACHED_FAILURE, read_graph, false },
	{ "NCC_E", NOTE_FAILED, read_code_words, true },
	{ "No candidate found under ", NOTE_MISS, read_graph, false },
	{ "No todo hlos found in cache or hlo_tasklist", NOTE_NOTHING, read_alone, false },
	{ "Received error code: ", NOTE_FAILED, read_code, true },
	{ "RunNeuronCCImpl: error condition ", NOTE_FAILED, read_words, true },
	{ "Subprocess ", NOTE_FAILED, read_subprocess, true },
	{ "There was an error in the training script", NOTE_SCRIPT_FAILED, read_alone, false },
	{ "Total failed compilations: ", NOTE_TOTALS, read_total_bad, false },
	{ "Total graphs: ", NOTE_TOTALS, read_total, false },
	{ "Total successful compilations: ", NOTE_TOTALS, read_total_good, false },
	{ "Using a cached neff at ", NOTE_HIT, read_graph, false },
	{ "sub-process ", NOTE_WORKER_DIED, read_worker, false },
};
/* clang-format on */

static size_t own_length(const char *text, size_t len)
{
	for (size_t i = 0; i < STK_LENGTH(messages); i++) {
		const char *found = messages[i].inside ? NULL
						       : memmem(text, len, messages[i].start,
								strlen(messages[i].start));

		if (found)
			len = (size_t)(found - text);
	}
	return len;
}

static int64_t number_of(const char *digits, size_t count)
{
	int64_t value = 0;

	for (size_t i = 0; i < count; i++)
		value = value * 10 + (digits[i] - '0');
	return value;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar; years begin in March
 * here, so that the odd day comes last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t since_march = month > 2 ? month - 3 : month + 9;

	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * since_march + 2) / 5 + day - 719469;
}

/* "2024-01-31 12:34:56[.000789]" as milliseconds, 0 if `text` is not a time stamp. The fraction is
 * printed with three zeroes before the milliseconds. */
static int64_t read_stamp(const char *text, const char *end)
{
	static const char shape[] = "dddd-dd-dd dd:dd:dd";
	size_t len = sizeof shape - 1, digits = 0;
	int64_t ms;

	if ((size_t)(end - text) < len)
		return 0;
	for (size_t i = 0; i < len; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (shape[i] == 'd' ? !digit : text[i] != shape[i])
			return 0;
	}
	ms = ((days_of(number_of(text, 4), number_of(text + 5, 2), number_of(text + 8, 2)) * 24 +
	       number_of(text + 11, 2)) *
		      60 +
	      number_of(text + 14, 2)) *
		     60000 +
	     number_of(text + 17, 2) * 1000;
	text += len;
	if (text == end || *text != '.')
		return ms;
	text++;
	while (text + digits < end && digits < 6 && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	if (digits == 6 && memcmp(text, "000", 3) == 0)
		return ms + number_of(text + 3, 3);
	return digits < 3 ? ms : ms + number_of(text, 3);
}

/* The last time stamp before a message on its line. */
static int64_t stamp_before(const char *text, const char *message)
{
	const char *floor = message - text > STAMP_REACH ? message - STAMP_REACH : text;

	for (const char *at = message; at > floor && at[-1] != '\n'; at--) {
		int64_t stamp = at[-1] == '1' || at[-1] == '2' ? read_stamp(at - 1, message) : 0;

		if (stamp > 0)
			return stamp;
	}
	return 0;
}

static bool read_message(struct cursor *in, struct graph_note *ret)
{
	for (size_t i = 0; i < STK_LENGTH(messages); i++) {
		struct cursor rest = *in;

		if (messages[i].start[0] != *in->at || !cursor_accept(&rest, messages[i].start))
			continue;
		*ret = (struct graph_note){ .kind = messages[i].kind };
		if (!messages[i].read(&rest, ret))
			continue;
		*in = rest;
		return true;
	}
	return false;
}

bool neuron_scan(const char *text, size_t len, size_t *at, struct graph_note *ret)
{
	/* Every message begins with one of these; each position is tried once, and a failed attempt
	 * reads at most about COMMAND_MAX bytes. */
	static const bool begins[256] = {
		['A'] = true, ['B'] = true, ['C'] = true, ['E'] = true, ['F'] = true, ['G'] = true,
		['N'] = true, ['R'] = true, ['S'] = true, ['T'] = true, ['U'] = true, ['s'] = true,
	};

	for (size_t i = *at; i < len; i++) {
		struct cursor in = { text + i, text + len };

		if (!begins[(unsigned char)text[i]] || !read_message(&in, ret))
			continue;
		*at = (size_t)(in.at - text);
		ret->stamp_ms = stamp_before(text, text + i);
		return true;
	}
	*at = len;
	return false;
}

/* True if the line has an error code of the compiler: NCC_EXYZ123, or [XYZ123] in older ones. */
static bool has_code(struct compile_kind_words line)
{
	if (holds(line, "NCC_E"))
		return true;
	for (size_t i = 0; i + 8 <= line.len; i++) {
		const char *at = line.text + i;

		if (at[0] == '[' && at[7] == ']' && at[1] >= 'A' && at[1] <= 'Z' && at[2] >= 'A' &&
		    at[2] <= 'Z' && at[3] >= 'A' && at[3] <= 'Z' && at[4] >= '0' && at[4] <= '9' &&
		    at[5] >= '0' && at[5] <= '9' && at[6] >= '0' && at[6] <= '9')
			return true;
	}
	return false;
}

static bool says_error(struct compile_kind_words line)
{
	static const char *const words[] = { "error", "exception", "failed", "no space left",
					     "killed" };

	for (size_t i = 0; i < STK_LENGTH(words); i++) {
		size_t len = strlen(words[i]);

		for (size_t n = 0; n + len <= line.len; n++)
			if (strncasecmp(line.text + n, words[i], len) == 0)
				return true;
	}
	return false;
}

/* True if the line has letters, that is, is not only a ruler of asterisks. */
static bool says_anything(struct compile_kind_words line)
{
	for (size_t i = 0; i < line.len; i++)
		if ((line.text[i] >= 'a' && line.text[i] <= 'z') ||
		    (line.text[i] >= 'A' && line.text[i] <= 'Z'))
			return true;
	return false;
}

/* The line without the failed command, which is long and not informative, cut to WHY_MAX and to a
 * NUL byte. */
static struct compile_kind_words cut_line(struct compile_kind_words line)
{
	static const char command[] = "Failed compilation with [", end[] = "]: ";
	const char *why = NULL;

	if (line.len > sizeof command && memcmp(line.text, command, sizeof command - 1) == 0)
		why = memmem(line.text, line.len, end, sizeof end - 1);
	if (why) {
		line.len -= (size_t)(why + sizeof end - 1 - line.text);
		line.text = why + sizeof end - 1;
	}
	line.len = strnlen(line.text, line.len < WHY_MAX ? line.len : WHY_MAX);
	while (line.len > 0 && strchr(" \r\t", line.text[line.len - 1]))
		line.len--;
	return line;
}

struct compile_kind_words neuron_first_error(const char *log, size_t len)
{
	struct compile_kind_words error = { 0 }, first = { 0 };
	const char *at = log, *end = log + len;

	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		struct compile_kind_words line = { at, (size_t)((next ? next : end) - at) };

		line = cut_line(line);
		at = next ? next + 1 : end;
		if (has_code(line))
			return line;
		if (error.len == 0 && says_error(line) && !holds(line, "****"))
			error = line;
		if (first.len == 0 && says_anything(line))
			first = line;
	}
	return error.len > 0 ? error : first;
}
