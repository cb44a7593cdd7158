/* Durations, sizes, percentages and their cures: see units.h. */
#include "jobs/spec/fields/units.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/text/text.h"

/* Units that people write, and stoker's. Compared without case, so the spellings
 * that mean two things (m, M) are left to the general cure. */
static const struct unit_habit {
	enum field_type type;
	const char *written, *ours;
} unit_habits[] = {
	{ FIELD_DURATION, "sec", "s" },    { FIELD_DURATION, "secs", "s" },
	{ FIELD_DURATION, "second", "s" }, { FIELD_DURATION, "seconds", "s" },
	{ FIELD_DURATION, "min", "m" },    { FIELD_DURATION, "mins", "m" },
	{ FIELD_DURATION, "minute", "m" }, { FIELD_DURATION, "minutes", "m" },
	{ FIELD_DURATION, "hr", "h" },     { FIELD_DURATION, "hrs", "h" },
	{ FIELD_DURATION, "hour", "h" },   { FIELD_DURATION, "hours", "h" },
	{ FIELD_DURATION, "day", "d" },    { FIELD_DURATION, "days", "d" },
	{ FIELD_DURATION, "week", "w" },   { FIELD_DURATION, "weeks", "w" },
	{ FIELD_DURATION, "msec", "ms" },  { FIELD_DURATION, "millis", "ms" },
	{ FIELD_DURATION, "s", "s" },      { FIELD_DURATION, "h", "h" },
	{ FIELD_DURATION, "d", "d" },      { FIELD_SIZE, "k", "KiB" },
	{ FIELD_SIZE, "ki", "KiB" },       { FIELD_SIZE, "kb", "KiB" },
	{ FIELD_SIZE, "kib", "KiB" },      { FIELD_SIZE, "m", "MiB" },
	{ FIELD_SIZE, "mi", "MiB" },       { FIELD_SIZE, "mb", "MiB" },
	{ FIELD_SIZE, "mib", "MiB" },      { FIELD_SIZE, "g", "GiB" },
	{ FIELD_SIZE, "gi", "GiB" },       { FIELD_SIZE, "gb", "GiB" },
	{ FIELD_SIZE, "gigs", "GiB" },     { FIELD_SIZE, "gib", "GiB" },
	{ FIELD_SIZE, "t", "TiB" },        { FIELD_SIZE, "ti", "TiB" },
	{ FIELD_SIZE, "tb", "TiB" },       { FIELD_SIZE, "tib", "TiB" },
	{ FIELD_PERCENT, "percent", "%" }, { FIELD_PERCENT, "pct", "%" },
};

bool units_parse(enum field_type type, const char *text, int64_t *ret)
{
	uint64_t bytes;
	double percent;
	size_t len;

	switch (type) {
	case FIELD_DURATION:
		return text_duration(text, ret);
	case FIELD_SIZE:
		if (!text_size(text, &bytes) || bytes > INT64_MAX)
			return false;
		*ret = (int64_t)bytes;
		return true;
	case FIELD_PERCENT:
		len = text_float(text, strlen(text), &percent);
		if (len == 0 || strcmp(text + len, "%") != 0 || !(percent >= 0 && percent <= 1e6))
			return false;
		*ret = (int64_t)(percent * 1000.0 + 0.5);
		return true;
	default:
		return false;
	}
}

bool spec_margin(const char *text, double *ret_value, bool *ret_relative)
{
	AUTO(auto_free) char *number = mem_copy(text);
	size_t len = strlen(number);
	bool share = len > 0 && number[len - 1] == '%';
	double value;

	if (share)
		number[--len] = '\0';
	if (len == 0 || number[strspn(number, "0123456789.eE+-")] != '\0' ||
	    text_float(number, len, &value) != len || !isfinite(value) || value < 0 ||
	    (share && value > 100))
		return false;
	*ret_value = share ? value / 100 : value;
	*ret_relative = share;
	return true;
}

const char *units_must_be(enum field_type type)
{
	switch (type) {
	case FIELD_DURATION:
		return "a duration in ms, s, m, h, d or w";
	case FIELD_SIZE:
		return "a size in KiB, MiB, GiB or TiB";
	case FIELD_MARGIN:
		return "a percentage from 0% to 100%, or a number that is not negative";
	default:
		return "a percentage";
	}
}

/* Returns the length of the number at the start, without a unit; 0 if there is none. */
static size_t number_length(const char *text)
{
	size_t len = strspn(text, "0123456789");

	if (len > 0 && text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	return len;
}

char *units_hint(enum field_type type, const char *text, const char *example)
{
	size_t len = number_length(text);
	const char *unit = text + len;

	unit += strspn(unit, " ");
	if (len > 0 && !*unit && type == FIELD_DURATION)
		return mem_format("add a unit: %ss, %sm or %sh", text, text, text);
	if (len > 0 && !*unit && type == FIELD_PERCENT)
		return mem_format("add a percent sign: %s%%", text);
	for (size_t i = 0; len > 0 && i < STK_LENGTH(unit_habits); i++)
		if (unit_habits[i].type == type && strcasecmp(unit_habits[i].written, unit) == 0)
			return mem_format("write %.*s%s", (int)len, text, unit_habits[i].ours);
	if (type == FIELD_DURATION && len > 0 && strpbrk(unit, "0123456789"))
		return mem_format("use one unit: 90m, not 1h30m");
	return mem_format("for example: %s", example);
}
