/* Four kinds of time: see clock.h. */
#include "jobs/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct utc clock_utc_now(void)
{
	return (struct utc){ read_clock(CLOCK_REALTIME) };
}

struct mono clock_mono_now(void)
{
	return (struct mono){ read_clock(CLOCK_BOOTTIME) };
}

struct awake clock_awake_now(void)
{
	return (struct awake){ read_clock(CLOCK_MONOTONIC) };
}

struct cpu clock_cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (struct cpu){ (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 };
}

const char *clock_utc_format(struct utc at, char text[UTC_TEXT])
{
	int64_t ms = at.ms % 1000;
	time_t seconds = (time_t)(at.ms / 1000);
	struct tm tm;

	if (ms < 0) {
		ms += 1000;
		seconds--;
	}
	/* RFC 3339 covers the years 0000 to 9999 only; any other time is written as the epoch. */
	if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 8099)
		return clock_utc_format((struct utc){ 0 }, text);
	/* The remainders tell the compiler that the text fits. */
	snprintf(text, UTC_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)(tm.tm_mon + 1) % 100u,
		 (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
		 (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u, (unsigned)ms % 1000u);
	return text;
}

/* True if `text` has a digit wherever `shape` has a 0, and otherwise the same characters. */
static bool has_shape(const char *text, const char *shape)
{
	for (; *shape; text++, shape++)
		if (*shape == '0' ? *text < '0' || *text > '9' : *text != *shape)
			return false;
	return *text == '\0';
}

static int number_at(const char *text, size_t from, size_t digits)
{
	int value = 0;

	for (size_t i = from; i < from + digits; i++)
		value = value * 10 + (text[i] - '0');
	return value;
}

bool clock_utc_parse(const char *text, struct utc *ret_at)
{
	struct tm want, tm = { 0 };
	time_t seconds;

	if (!has_shape(text, "0000-00-00T00:00:00.000Z"))
		return false;
	tm.tm_year = number_at(text, 0, 4) - 1900;
	tm.tm_mon = number_at(text, 5, 2) - 1;
	tm.tm_mday = number_at(text, 8, 2);
	tm.tm_hour = number_at(text, 11, 2);
	tm.tm_min = number_at(text, 14, 2);
	tm.tm_sec = number_at(text, 17, 2);
	want = tm;
	/* timegm turns a date that does not exist (February 30) into another day. */
	seconds = timegm(&tm);
	if (tm.tm_mon != want.tm_mon || tm.tm_mday != want.tm_mday || tm.tm_hour != want.tm_hour ||
	    tm.tm_min != want.tm_min || tm.tm_sec != want.tm_sec)
		return false;
	ret_at->ms = (int64_t)seconds * 1000 + number_at(text, 20, 3);
	return true;
}
