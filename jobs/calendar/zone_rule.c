/* The rule behind the last change of a zone: POSIX.1-2017, "Environment Variables", TZ, with the
 * hours beyond a day of RFC 9636, 3.3.1. */
#include <string.h>

#include "jobs/calendar/civil.h"
#include "jobs/calendar/zone.h"

struct rule_text {
	const char *at, *end;
};

static char peek(const struct rule_text *text)
{
	return text->at < text->end ? *text->at : '\0';
}

static bool take(struct rule_text *text, char c)
{
	if (peek(text) != c)
		return false;
	text->at++;
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Skips the name of a zone: letters, or anything between < and >. */
static bool skip_name(struct rule_text *text)
{
	const char *begin = text->at;

	if (take(text, '<')) {
		while (text->at < text->end && *text->at != '>')
			text->at++;
		return take(text, '>') && text->at - begin >= 3;
	}
	while (is_letter(peek(text)))
		text->at++;
	return text->at - begin >= 3;
}

/* Reads a number from `min` to `max`. */
static bool read_number(struct rule_text *text, int min, int max, int *ret)
{
	int value = 0, digits = 0;

	while (peek(text) >= '0' && peek(text) <= '9' && digits < 4) {
		value = value * 10 + (*text->at++ - '0');
		digits++;
	}
	*ret = value;
	return digits > 0 && value >= min && value <= max;
}

/* Reads [+-]hh[:mm[:ss]] as seconds. */
static bool read_time(struct rule_text *text, int hours_max, int32_t *ret)
{
	int sign = peek(text) == '-' ? -1 : 1, hours, minutes = 0, seconds = 0;

	if (peek(text) == '-' || peek(text) == '+')
		text->at++;
	if (!read_number(text, 0, hours_max, &hours))
		return false;
	if ((take(text, ':') && !read_number(text, 0, 59, &minutes)) ||
	    (take(text, ':') && !read_number(text, 0, 59, &seconds)))
		return false;
	*ret = sign * (hours * CIVIL_HOUR + minutes * CIVIL_MINUTE + seconds);
	return true;
}

/* Reads ",Mm.w.d/time" and its like. */
static bool read_day(struct rule_text *text, struct zone_day *ret)
{
	bool good;

	*ret = (struct zone_day){ .time = 2 * CIVIL_HOUR };
	if (!take(text, ','))
		return false;
	if (take(text, 'M')) {
		ret->kind = ZONE_WEEKDAY;
		good = read_number(text, 1, 12, &ret->month) && take(text, '.') &&
		       read_number(text, 1, 5, &ret->week) && take(text, '.') &&
		       read_number(text, 0, 6, &ret->day);
	} else if (take(text, 'J')) {
		ret->kind = ZONE_JULIAN;
		good = read_number(text, 1, 365, &ret->day);
	} else {
		ret->kind = ZONE_DAY;
		good = read_number(text, 0, 365, &ret->day);
	}
	return good && (!take(text, '/') || read_time(text, 167, &ret->time));
}

bool zone_rule_read(const char *rule, size_t len, struct zone *ret)
{
	struct rule_text text = { rule, rule + len };
	int32_t west;

	if (!skip_name(&text) || !read_time(&text, 24, &west))
		return false;
	ret->standard = -west; /* POSIX counts westwards */
	ret->has_rule = true;
	ret->has_summer = text.at < text.end;
	if (!ret->has_summer)
		return true;
	ret->summer = ret->standard + CIVIL_HOUR;
	if (!skip_name(&text))
		return false;
	if (peek(&text) != ',' && text.at < text.end) {
		if (!read_time(&text, 24, &west))
			return false;
		ret->summer = -west;
	}
	return read_day(&text, &ret->begin) && read_day(&text, &ret->end) && text.at == text.end;
}

/* Local seconds of the change in a year, by the clock before it. */
static int64_t local_of(const struct zone_day *day, int64_t year)
{
	int64_t days = civil_days(year, 1, 1);
	int first;

	switch (day->kind) {
	case ZONE_JULIAN: /* 29 February is never counted */
		days += day->day - 1 + (day->day >= 60 && civil_month_length(year, 2) == 29);
		break;
	case ZONE_DAY:
		days += day->day;
		break;
	case ZONE_WEEKDAY:
		days = civil_days(year, day->month, 1);
		first = (day->day - civil_of(days * CIVIL_DAY).weekday + 7) % 7;
		first += (day->week - 1) * 7;
		while (first >= civil_month_length(year, day->month)) /* week 5: the last */
			first -= 7;
		days += first;
		break;
	}
	return days * CIVIL_DAY + day->time;
}

struct zone_period zone_rule_period(const struct zone *zone, int64_t at)
{
	struct zone_period ret = { -ZONE_EVER, ZONE_EVER, zone->standard };
	int64_t year;

	if (!zone->has_summer)
		return ret;
	year = civil_of(at).year;
	for (int64_t y = year - 1; y <= year + 1; y++) {
		int64_t begin = local_of(&zone->begin, y) - zone->standard;
		int64_t end = local_of(&zone->end, y) - zone->summer;

		/* If both changes are the same moment, summer time goes on. */
		if (end <= at && end > ret.from) {
			ret.from = end;
			ret.offset = zone->standard;
		}
		if (begin <= at && begin >= ret.from) {
			ret.from = begin;
			ret.offset = zone->summer;
		}
		if (begin > at && begin < ret.to)
			ret.to = begin;
		if (end > at && end < ret.to)
			ret.to = end;
	}
	return ret;
}
