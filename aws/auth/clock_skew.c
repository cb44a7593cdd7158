/* Offsets between the servers' clocks and this machine's: see clock_skew.h. */
#include "aws/auth/clock_skew.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/auto.h"

struct skew {
	char *host;
	int64_t ahead_ms;
};

struct clock_skews {
	struct skew *rows;
	size_t count;
};

struct clock_skews *clock_skews_new(void)
{
	return mem_zero(1, sizeof(struct clock_skews));
}

void clock_skews_freep(struct clock_skews **clock_skews)
{
	if (!*clock_skews)
		return;
	for (size_t i = 0; i < (*clock_skews)->count; i++)
		free((*clock_skews)->rows[i].host);
	free((*clock_skews)->rows);
	free(*clock_skews);
	*clock_skews = NULL;
}

static struct skew *find(const struct clock_skews *clock_skews, const char *host)
{
	for (size_t i = 0; i < clock_skews->count; i++)
		if (strcmp(clock_skews->rows[i].host, host) == 0)
			return &clock_skews->rows[i];
	return NULL;
}

struct utc clock_skew_time(const struct clock_skews *clock_skews, const char *host, struct utc now)
{
	const struct skew *row = find(clock_skews, host);

	if (row)
		now.ms += row->ahead_ms;
	return now;
}

/* Parses a number of two or four digits. */
static bool number(const char *text, size_t digits, int *ret)
{
	*ret = 0;
	for (size_t i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		*ret = *ret * 10 + (text[i] - '0');
	}
	return true;
}

/* Parses "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, the form that is sent today). */
static bool parse_date(const char *text, struct utc *ret)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	/* A letter or digit matches any of its kind, every other character itself. */
	static const char form[] = "Sun, 06 Nov 1994 08:49:37 GMT";
	char month[4] = "";
	struct tm tm = { 0 };
	const char *found;

	if (strlen(text) != sizeof form - 1)
		return false;
	for (size_t i = 0; form[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (isdigit((unsigned char)form[i])   ? !isdigit(c)
		    : isalpha((unsigned char)form[i]) ? !isalpha(c)
						      : c != (unsigned char)form[i])
			return false;
	}
	memcpy(month, text + 8, 3);
	found = strstr(months, month);
	if (!found || (found - months) % 3 != 0 || strcmp(text + 26, "GMT") != 0)
		return false;
	tm.tm_mon = (int)(found - months) / 3;
	if (!number(text + 5, 2, &tm.tm_mday) || !number(text + 12, 4, &tm.tm_year) ||
	    !number(text + 17, 2, &tm.tm_hour) || !number(text + 20, 2, &tm.tm_min) ||
	    !number(text + 23, 2, &tm.tm_sec) || tm.tm_mday < 1 || tm.tm_mday > 31 ||
	    tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60 || tm.tm_year < 1970)
		return false;
	tm.tm_year -= 1900;
	ret->ms = (int64_t)timegm(&tm) * 1000;
	return true;
}

bool clock_skew_learn(struct clock_skews *clock_skews, const char *host, const char *date,
		      struct utc used, struct utc now)
{
	struct skew *row = find(clock_skews, host);
	struct utc theirs;

	if (!parse_date(date, &theirs) || llabs(theirs.ms - used.ms) < CLOCK_SKEW_MIN_MS)
		return false;
	if (!row) {
		clock_skews->rows = mem_grow(clock_skews->rows, clock_skews->count + 1,
					     sizeof *clock_skews->rows);
		row = &clock_skews->rows[clock_skews->count++];
		row->host = mem_copy(host);
	}
	row->ahead_ms = theirs.ms - now.ms;
	return true;
}
