/* Readings of a log: see metric_reader.h. */
#include "jobs/series/metric_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/number_pattern.h"
#include "jobs/base/text/regex.h"
#include "jobs/store/order.h"

/* A pattern that took too long this often will do so again. */
#define GIVEN_UP_MAX 3

struct metric {
	char *name;
	struct regex *regex; /* NULL: given up */
	bool given_up;       /* given up, and not told yet */
	/* Text that may be one number with a comma in it; doubted: found, and not told yet. */
	char doubt[METRIC_DOUBT_MAX];
	bool doubted;
};

struct metric_reader {
	struct metric *list;
	size_t count;
	size_t step; /* SIZE_MAX: none */
	int64_t last_step;
};

static int compile(const char *pattern, struct regex **ret, struct err **err)
{
	AUTO(auto_free) char *whole = number_pattern_whole(pattern);

	return regex_compile(whole ? whole : pattern, ret, err);
}

int metric_reader_new(const json_t *specs, struct metric_reader **ret, struct err **err)
{
	AUTO(metric_reader_freep) struct metric_reader *reader = mem_zero(1, sizeof *reader);

	reader->step = order_progress_metric(specs);
	reader->count = json_array_size(specs);
	reader->list = mem_zero(reader->count, sizeof *reader->list);
	for (size_t i = 0; i < reader->count; i++) {
		const json_t *spec = json_array_get(specs, i);
		struct metric *metric = &reader->list[i];

		metric->name = mem_copy(js_str(spec, "name"));
		if (compile(js_str(spec, "regex"), &metric->regex, err) < 0)
			return err_wrap(err, "metric '%s'", metric->name);
	}
	*ret = TAKE(reader);
	return 0;
}

void metric_reader_freep(struct metric_reader **reader)
{
	struct metric_reader *r = *reader;

	if (!r)
		return;
	for (size_t i = 0; r->list && i < r->count; i++) {
		free(r->list[i].name);
		regex_freep(&r->list[i].regex);
	}
	free(r->list);
	free(r);
	*reader = NULL;
}

size_t metric_reader_count(const struct metric_reader *reader)
{
	return reader->count;
}

const char *metric_reader_name(const struct metric_reader *reader, size_t metric)
{
	return reader->list[metric].name;
}

size_t metric_reader_step(const struct metric_reader *reader)
{
	return reader->step;
}

static size_t count_digits(const char *text, size_t len)
{
	size_t count = 0;

	while (count < len && isdigit((unsigned char)text[count]))
		count++;
	return count;
}

/* Notes a number that ends at `end` and may go on behind a comma: of "1,234", 1 is read. */
static void note_comma(struct metric *metric, const char *line, size_t len, size_t end)
{
	size_t digits = 0;

	while (digits < end && isdigit((unsigned char)line[end - digits - 1]))
		digits++;
	if (metric->doubt[0] || digits == 0 || digits > 3 ||
	    (digits < end && line[end - digits - 1] == '.') ||
	    count_digits(line + end + 1, len - end - 1) != 3)
		return;
	snprintf(metric->doubt, sizeof metric->doubt, "%.*s", (int)digits + 4, line + end - digits);
	metric->doubted = true;
}

/* Reads the metric's number from the line; false if the line has none. */
static bool read_number(struct metric *metric, const char *line, size_t len, double *ret)
{
	size_t end;

	if (!metric->regex)
		return false;
	end = regex_number(metric->regex, line, len, ret);
	if (end > 0 && end < len && line[end] == ',')
		note_comma(metric, line, len, end);
	if (end > 0)
		return true;
	if (regex_given_up(metric->regex) >= GIVEN_UP_MAX) {
		regex_freep(&metric->regex);
		metric->given_up = true;
	}
	return false;
}

/* Reads the number of the last step, if the pattern has a group for it. */
static void read_last_step(struct metric_reader *reader, const char *line, size_t len)
{
	const struct regex *regex = reader->list[reader->step].regex;
	struct regex_span spans[REGEX_GROUPS_MAX + 1] = { 0 };
	AUTO(auto_free) char *text = NULL;
	int64_t of;

	if (regex_groups(regex) < 2 || !regex_find(regex, line, len, 0, spans) || !spans[2].set)
		return;
	text = mem_copy_n(line + spans[2].from, spans[2].to - spans[2].from);
	of = strtoll(text, NULL, 10);
	if (of > 0)
		reader->last_step = of;
}

/* Reads the step on the line; false if there is none. */
static bool read_step(struct metric_reader *reader, int64_t *current, const char *line, size_t len,
		      double *ret)
{
	if (reader->step == SIZE_MAX || !read_number(&reader->list[reader->step], line, len, ret))
		return false;
	read_last_step(reader, line, len);
	if (!(*ret >= 0 && *ret < 9e15))
		return false;
	*current = (int64_t)*ret;
	return true;
}

size_t metric_reader_line(struct metric_reader *reader, int64_t *current, const char *line,
			  size_t len, struct metric_reading *ret)
{
	size_t count = 0;
	double value;

	if (read_step(reader, current, line, len, &value))
		ret[count++] = (struct metric_reading){ reader->step, *current, value };
	for (size_t i = 0; i < reader->count; i++)
		if (i != reader->step && read_number(&reader->list[i], line, len, &value))
			ret[count++] = (struct metric_reading){ i, *current, value };
	return count;
}

uint32_t metric_reader_start(const char *line, size_t len, uint32_t start)
{
	const char *report = memchr(line, '{', len);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *object = NULL;
	int64_t told;

	if (!report || !memmem(line, len, "\"restart\"", strlen("\"restart\"")) ||
	    js_parse(report, len - (size_t)(report - line), "a report", &object, &ignored) < 0)
		return start;
	told = js_int(object, "restart", 0);
	return told > start && told < METRIC_STARTS_MAX ? (uint32_t)told : start;
}

int64_t metric_reader_last_step(const struct metric_reader *reader)
{
	return reader->last_step;
}

const char *metric_reader_given_up(struct metric_reader *reader)
{
	for (size_t i = 0; i < reader->count; i++)
		if (reader->list[i].given_up) {
			reader->list[i].given_up = false;
			return reader->list[i].name;
		}
	return NULL;
}

const char *metric_reader_doubted(struct metric_reader *reader, const char **ret_text)
{
	for (size_t i = 0; i < reader->count; i++)
		if (reader->list[i].doubted) {
			reader->list[i].doubted = false;
			*ret_text = reader->list[i].doubt;
			return reader->list[i].name;
		}
	return NULL;
}
