/* Times in headers, listings, profiles and replies: see date.h. */
#include "aws/date.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define HTTP_CHARS 29

/* False for a day that does not exist (February 30), which timegm() takes for another one. */
static bool utc_of(struct tm *tm, struct utc *ret)
{
	int day = tm->tm_mday;
	time_t seconds = timegm(tm);

	ret->ms = (int64_t)seconds * 1000;
	return tm->tm_mday == day;
}

bool aws_date_http(const char *text, struct utc *ret)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end && !*end && strlen(text) == HTTP_CHARS && tm.tm_year >= 70 && utc_of(&tm, ret);
}

bool aws_date_iso(const char *text, struct utc *ret)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%d", &tm);
	int ms = 0;
	long east;

	if (!rest || (*rest != 'T' && *rest != ' '))
		return false;
	rest = strptime(rest + 1, "%H:%M:%S", &tm);
	if (!rest)
		return false;
	if (*rest == '.' || *rest == ',') {
		rest++;
		for (int unit = 100; isdigit((unsigned char)*rest); rest++, unit /= 10)
			ms += unit * (*rest - '0');
	}
	if (*rest && strcasecmp(rest, "Z") != 0 && strcmp(rest, "UTC") != 0) {
		rest = strptime(rest, "%z", &tm);
		if (!rest || *rest)
			return false;
	}
	east = tm.tm_gmtoff;
	if (!utc_of(&tm, ret))
		return false;
	ret->ms += ms - (int64_t)east * 1000;
	return true;
}
