/* The clocks of servers against ours: see skew.h. */
#include "aws/skew.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/auto.h"

struct skew {
	char *host;
	int64_t ahead_ms;
};

struct skews {
	struct skew *rows;
	size_t count;
};

struct skews *skews_new(void)
{
	return mem_zero(1, sizeof(struct skews));
}

void skews_freep(struct skews **skews)
{
	if (!*skews)
		return;
	for (size_t i = 0; i < (*skews)->count; i++)
		free((*skews)->rows[i].host);
	free((*skews)->rows);
	free(*skews);
	*skews = NULL;
}

static struct skew *find(const struct skews *skews, const char *host)
{
	for (size_t i = 0; i < skews->count; i++)
		if (strcmp(skews->rows[i].host, host) == 0)
			return &skews->rows[i];
	return NULL;
}

struct utc skew_time(const struct skews *skews, const char *host, struct utc now)
{
	const struct skew *row = find(skews, host);

	if (row)
		now.ms += row->ahead_ms;
	return now;
}

bool skew_learn(struct skews *skews, const char *host, const char *date, struct utc used,
		struct utc now)
{
	struct skew *row = find(skews, host);
	struct utc theirs;

	if (!http_date_parse(date, &theirs) || llabs(theirs.ms - used.ms) < SKEW_MIN_MS)
		return false;
	if (!row) {
		skews->rows = mem_grow(skews->rows, skews->count + 1, sizeof *skews->rows);
		row = &skews->rows[skews->count++];
		row->host = mem_copy(host);
	}
	row->ahead_ms = theirs.ms - now.ms;
	return true;
}

/* Two or four digits. */
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

bool http_date_parse(const char *text, struct utc *ret)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	/* A letter or digit stands for any of its kind, all else for itself. */
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
