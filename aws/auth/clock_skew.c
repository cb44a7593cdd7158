/* Offsets between the servers' clocks and this machine's: see clock_skew.h. */
#include "aws/auth/clock_skew.h"

#include <stdlib.h>
#include <string.h>

#include "aws/date.h"
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

bool clock_skew_learn(struct clock_skews *clock_skews, const char *host, const char *date,
		      struct utc used, struct utc now)
{
	struct skew *row = find(clock_skews, host);
	struct utc theirs;

	if (!aws_date_http(date, &theirs) || llabs(theirs.ms - used.ms) < CLOCK_SKEW_MIN_MS)
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
