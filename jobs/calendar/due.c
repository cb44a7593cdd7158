/* Due times in a zone: see due.h. */
#include "jobs/calendar/due.h"

#include "jobs/calendar/civil.h"

/* 29 February on a given weekday comes after at most 40 years, across a century. */
#define DAYS_MAX (41 * 366)
/* No clock is further from UTC; zone.h */
#define FAR (27 * CIVIL_HOUR)

/* Returns the first moment at which the clock shows `local` or later. */
static int64_t moment_of(const struct zone *zone, int64_t local)
{
	struct zone_period period = zone_period_at(zone, local - FAR);

	while (period.to + period.offset <= local && period.to < ZONE_EVER)
		period = zone_period_at(zone, period.to);
	/* A time in a gap becomes the end of the gap. */
	return local - period.offset > period.from ? local - period.offset : period.from;
}

/* Lowest bit of `bits` from `from` on, -1 if there is none; highest up to `from`. */
static int bit_from(uint64_t bits, int from)
{
	bits = from < 64 ? bits >> from << from : 0;
	return bits ? __builtin_ctzll(bits) : -1;
}

static int bit_until(uint64_t bits, int from)
{
	bits = from < 0 ? 0 : from < 63 ? bits & ((UINT64_C(1) << (from + 1)) - 1) : bits;
	return bits ? 63 - __builtin_clzll(bits) : -1;
}

static bool has_day(const struct cron *cron, int64_t day)
{
	struct civil civil = civil_of(day * CIVIL_DAY);

	return cron_has_day(cron, civil.month, civil.day, civil.weekday);
}

static int64_t floor_day(int64_t local)
{
	return local / CIVIL_DAY - (local % CIVIL_DAY < 0);
}

/* Minute of the day, of those of the line, from `minute` on; -1 if there is none. */
static int minute_from(const struct cron *cron, int minute)
{
	int hour = bit_from(cron->bits[CRON_HOUR], minute / 60), of_hour;

	if (hour == minute / 60) {
		of_hour = bit_from(cron->bits[CRON_MINUTE], minute % 60);
		if (of_hour >= 0)
			return hour * 60 + of_hour;
		hour = bit_from(cron->bits[CRON_HOUR], hour + 1);
	}
	return hour < 0 ? -1 : hour * 60 + bit_from(cron->bits[CRON_MINUTE], 0);
}

static int minute_until(const struct cron *cron, int minute)
{
	int hour = bit_until(cron->bits[CRON_HOUR], minute / 60), of_hour;

	if (hour == minute / 60) {
		of_hour = bit_until(cron->bits[CRON_MINUTE], minute % 60);
		if (of_hour >= 0)
			return hour * 60 + of_hour;
		hour = bit_until(cron->bits[CRON_HOUR], hour - 1);
	}
	return hour < 0 ? -1 : hour * 60 + bit_until(cron->bits[CRON_MINUTE], 59);
}

/* The first local minute of the line from `local` on. */
static bool match_from(const struct cron *cron, int64_t local, int64_t *ret)
{
	int64_t day = floor_day(local);
	int minute = (int)((local - day * CIVIL_DAY + CIVIL_MINUTE - 1) / CIVIL_MINUTE);

	for (int days = 0; days <= DAYS_MAX; days++, day++, minute = 0) {
		int found = minute < 24 * 60 && has_day(cron, day) ? minute_from(cron, minute) : -1;

		if (found >= 0) {
			*ret = day * CIVIL_DAY + (int64_t)found * CIVIL_MINUTE;
			return true;
		}
	}
	return false;
}

/* The last local minute of the line up to `local`. */
static bool match_until(const struct cron *cron, int64_t local, int64_t *ret)
{
	int64_t day = floor_day(local);
	int minute = (int)((local - day * CIVIL_DAY) / CIVIL_MINUTE);

	for (int days = 0; days <= DAYS_MAX; days++, day--, minute = 24 * 60 - 1) {
		int found = has_day(cron, day) ? minute_until(cron, minute) : -1;

		if (found >= 0) {
			*ret = day * CIVIL_DAY + (int64_t)found * CIVIL_MINUTE;
			return true;
		}
	}
	return false;
}

static struct due make(const struct zone *zone, int64_t local)
{
	int64_t at = moment_of(zone, local);

	return (struct due){ at, local, zone_local(zone, at) != local };
}

bool due_next(const struct cron *cron, const struct zone *zone, int64_t after, struct due *ret)
{
	/* Local times that the clock has shown by now are not after `after`. */
	int64_t local = zone_local(zone, after);

	while (match_from(cron, local + 1, &local)) {
		*ret = make(zone, local);
		if (ret->at > after)
			return true; /* else the clock shows this time once more */
	}
	return false;
}

bool due_last(const struct cron *cron, const struct zone *zone, int64_t at, struct due *ret)
{
	struct zone_period period = zone_period_at(zone, at);
	int64_t local = at + period.offset, shown;

	/* The latest that the clock has shown by now: it may have been set back since. */
	while (period.from > at - 2 * FAR && period.from > -ZONE_EVER) {
		period = zone_period_at(zone, period.from - 1);
		shown = period.to - 1 + period.offset;
		if (shown > local)
			local = shown;
	}
	if (!match_until(cron, local, &local))
		return false;
	*ret = make(zone, local);
	return true;
}
