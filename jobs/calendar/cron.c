/* Cron's five fields: see cron.h. */
#include "jobs/calendar/cron.h"

#include <stdio.h>
#include <string.h>

struct cron_range {
	int min, max;
	const char *names; /* of three letters each, for the values from `first_name` on */
	int first_name;
	const char *range; /* "is not …" */
};

static const struct cron_range ranges[CRON_FIELDS] = {
	[CRON_MINUTE] = { 0, 59, "", 0, "is no minute: 0 to 59" },
	[CRON_HOUR] = { 0, 23, "", 0, "is no hour: 0 to 23" },
	[CRON_DAY] = { 1, 31, "", 0, "is no day of the month: 1 to 31" },
	[CRON_MONTH] = { 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", 1,
			 "is no month: 1 to 12, or JAN to DEC" },
	[CRON_WEEKDAY] = { 0, 7, "SUNMONTUEWEDTHUFRISAT", 0,
			   "is no day of the week: 0 (Sunday) to 7 (Sunday), or SUN to SAT" },
};

static const struct {
	const char *word, *line;
} words[] = {
	{ "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
	{ "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
	{ "@annually", "0 0 1 1 *" },
};

static const char hint_fields[] =
	"write minute, hour, day of the month, month and day of the week; "
	"every Monday at three in the night is \"0 3 * * MON\"";

/* A line as it is read. */
struct cron_reader {
	const char *at;
	enum cron_field field;
	struct cron_fault *fault;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char to_upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool fail(struct cron_reader *reader, const char *text, size_t len, const char *why,
		 const char *hint)
{
	*reader->fault = (struct cron_fault){ reader->field, text, len, why, hint };
	return false;
}

/* Length of the part of a list at `text`: to the next comma, blank or end. */
static size_t part_length(const char *text)
{
	size_t len = 0;

	while (text[len] && text[len] != ',' && !is_blank(text[len]))
		len++;
	return len;
}

/* Reads a number; -1 if there is none, or if it has more digits. */
static int read_number(const char **at, int digits_max)
{
	int value = 0, digits = 0;

	while (is_digit(**at)) {
		if (++digits > digits_max)
			return -1;
		value = value * 10 + (**at - '0');
		(*at)++;
	}
	return digits > 0 ? value : -1;
}

/* Reads a value of the field, by number or by name; -1 if there is none. */
static int read_value(const char **at, const struct cron_range *range)
{
	const char *name = *at;

	if (is_digit(**at)) {
		int value = read_number(at, 2);

		return value >= range->min && value <= range->max ? value : -1;
	}
	for (size_t i = 0; range->names[i * 3]; i++) {
		const char *known = range->names + i * 3;

		if (to_upper(name[0]) == known[0] && to_upper(name[1]) == known[1] &&
		    to_upper(name[2]) == known[2]) {
			*at += 3;
			return range->first_name + (int)i;
		}
	}
	return -1;
}

/* Reads the step behind a range; 1 if there is none, -1 after a fault. */
static int read_step(struct cron_reader *reader, const char *part, size_t len, int span)
{
	int step;

	if (*reader->at != '/')
		return 1;
	reader->at++;
	step = read_number(&reader->at, 4);
	if (step < 1) {
		fail(reader, part, len, "has no step: a whole number from 1",
		     "write, for example, */15");
		return -1;
	}
	if (step > span) {
		/* A minute of '*'/90 looks like every 90 minutes, and is once an hour. */
		fail(reader, part, len, "has a step that is longer than its range",
		     "steps begin anew with each hour, day, month, year or week: cron cannot count "
		     "across them");
		return -1;
	}
	return step;
}

/* Reads the bounds of one item of a list. */
static bool read_bounds(struct cron_reader *reader, const char *part, size_t len, int *low,
			int *high)
{
	const struct cron_range *range = &ranges[reader->field];
	bool by_name;

	if (*reader->at == '*') {
		reader->at++;
		*low = range->min;
		*high = reader->field == CRON_WEEKDAY ? 6 : range->max;
		return true;
	}
	*low = *high = read_value(&reader->at, range);
	if (*low < 0)
		return fail(reader, part, len, range->range, hint_fields);
	if (*reader->at == '-') {
		reader->at++;
		by_name = !is_digit(*reader->at);
		*high = read_value(&reader->at, range);
		if (*high < 0)
			return fail(reader, part, len, range->range, hint_fields);
		/* Sunday is the last day as the end of a range: FRI-SUN. */
		if (reader->field == CRON_WEEKDAY && by_name && *high == 0 && *low > 0)
			*high = 7;
		if (*high < *low)
			return fail(reader, part, len, "is a range that ends before it begins",
				    "write it as two, such as 22-23,0-5");
	} else if (*reader->at == '/') {
		*high = reader->field == CRON_WEEKDAY && *low < 7 ? 6 : range->max;
	}
	return true;
}

static bool read_item(struct cron_reader *reader, uint64_t *bits)
{
	const char *part = reader->at;
	size_t len = part_length(part);
	int low, high, step, min = ranges[reader->field].min;

	if (len == 0)
		return fail(reader, part, *part ? 1 : 0, "is an empty part of a list",
			    "remove the comma, or write what is missing");
	if (!read_bounds(reader, part, len, &low, &high))
		return false;
	step = read_step(reader, part, len, high - low < 1 ? 1 : high - low);
	if (step < 0)
		return false;
	if (reader->at != part + len)
		return fail(
			reader, part, len, ranges[reader->field].range,
			"cron has *, numbers, names, ranges, lists and steps; L, W, # and ? are of "
			"other schedulers");
	for (int value = low; value <= high; value += step)
		*bits |= UINT64_C(1) << (reader->field == CRON_WEEKDAY && value == 7 ? min : value);
	return true;
}

static bool read_field(struct cron_reader *reader, uint64_t *bits)
{
	*bits = 0;
	for (;;) {
		if (!read_item(reader, bits))
			return false;
		if (*reader->at != ',')
			return true;
		reader->at++;
	}
}

/* True if there is a day in some year that the day fields and the month name together. */
static bool ever_comes(const struct cron *cron)
{
	static const int longest[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	if (cron->either_day)
		return true;
	for (int month = 1; month <= 12; month++)
		for (int day = 1; day <= longest[month - 1]; day++)
			if (cron->bits[CRON_MONTH] >> month & 1 && cron->bits[CRON_DAY] >> day & 1)
				return true;
	return false;
}

static const char *skip_blanks(const char *text)
{
	while (is_blank(*text))
		text++;
	return text;
}

/* Returns the five fields that a word such as @daily stands for; NULL after a fault. */
static const char *read_word(struct cron_reader *reader, const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == len && memcmp(words[i].word, text, len) == 0)
			return words[i].line;
	fail(reader, text, len,
	     "is not one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually",
	     len == 7 && memcmp(text, "@reboot", len) == 0
		     ? "a schedule has times; what a machine does when it starts belongs to the "
		       "machine"
		     : hint_fields);
	return NULL;
}

bool cron_parse(const char *line, struct cron *ret, struct cron_fault *ret_fault)
{
	struct cron_reader reader = { line, CRON_FIELDS, ret_fault };
	const char *whole = skip_blanks(line);
	size_t len = strlen(whole);
	bool restricted[CRON_FIELDS];

	while (len > 0 && is_blank(whole[len - 1]))
		len--;
	reader.at = whole;
	if (*whole == '@')
		reader.at = read_word(&reader, whole, len);
	if (!reader.at)
		return false;
	for (int field = 0; field < CRON_FIELDS; field++) {
		reader.field = (enum cron_field)field;
		if (!*reader.at) {
			reader.field = CRON_FIELDS;
			return fail(&reader, whole, len, "has fewer than five fields", hint_fields);
		}
		restricted[field] = *reader.at != '*';
		if (!read_field(&reader, &ret->bits[field]))
			return false;
		reader.at = skip_blanks(reader.at);
	}
	reader.field = CRON_FIELDS;
	if (*reader.at)
		return fail(&reader, whole, len, "has more than five fields",
			    "there is no field for seconds or years");
	ret->either_day = restricted[CRON_DAY] && restricted[CRON_WEEKDAY];
	return ever_comes(ret) ||
	       fail(&reader, whole, len, "never comes: none of these months has such a day",
		    "the last day of a month is best reached by the first of the next one");
}

int cron_field_min(enum cron_field field)
{
	return ranges[field].min;
}

int cron_field_max(enum cron_field field)
{
	return field == CRON_WEEKDAY ? 6 : ranges[field].max;
}

bool cron_has_day(const struct cron *cron, int month, int day, int weekday)
{
	bool by_day = cron->bits[CRON_DAY] >> day & 1;
	bool by_weekday = cron->bits[CRON_WEEKDAY] >> weekday & 1;

	return cron->bits[CRON_MONTH] >> month & 1 &&
	       (cron->either_day ? by_day || by_weekday : by_day && by_weekday);
}

static bool is_full(uint64_t bits, enum cron_field field)
{
	for (int value = cron_field_min(field); value <= cron_field_max(field); value++)
		if (!(bits >> value & 1))
			return false;
	return true;
}

bool cron_is_full(const struct cron *cron, enum cron_field field)
{
	return is_full(cron->bits[field], field);
}

/* The longest list is every second minute, thirty of three signs each. */
void cron_write_list(uint64_t bits, enum cron_field field, int digits, const char *between,
		     char ret[CRON_LIST])
{
	int max = cron_field_max(field), last;
	size_t len = 0;

	if (is_full(bits, field)) {
		snprintf(ret, CRON_LIST, "*");
		return;
	}
	ret[0] = '\0';
	for (int value = cron_field_min(field); value <= max; value = last + 1) {
		last = value;
		if (!(bits >> value & 1))
			continue;
		while (last < max && bits >> (last + 1) & 1)
			last++;
		if (last - value < 2) /* two are shorter as a list */
			last = value;
		len += (size_t)snprintf(ret + len, CRON_LIST - len, "%s%0*d", len > 0 ? "," : "",
					digits, value);
		if (last > value)
			len += (size_t)snprintf(ret + len, CRON_LIST - len, "%s%0*d", between,
						digits, last);
	}
}
