/* Alarms for other schedulers: see alarms.h. */
#include "jobs/calendar/alarms.h"

#include "jobs/calendar/civil.h"
#include "jobs/calendar/due.h"

static int64_t end_of(int64_t from)
{
	return from + (int64_t)ALARMS_YEARS * 366 * CIVIL_DAY;
}

static void let_all(struct alarm *alarm, enum cron_field field)
{
	for (int value = cron_field_min(field); value <= cron_field_max(field); value++)
		alarm->bits[field] |= UINT64_C(1) << value;
}

/* Lets a local time through. */
static void let(struct alarm *alarm, int64_t local)
{
	struct civil civil = civil_of(local);

	alarm->bits[CRON_MINUTE] |= UINT64_C(1) << civil.minute;
	alarm->bits[CRON_HOUR] |= UINT64_C(1) << civil.hour;
	alarm->bits[CRON_DAY] |= UINT64_C(1) << civil.day;
	alarm->bits[CRON_MONTH] |= UINT64_C(1) << civil.month;
	alarm->bits[CRON_WEEKDAY] |= UINT64_C(1) << civil.weekday;
}

static struct alarm of_cron(const struct cron *cron)
{
	struct alarm ret;

	for (int field = 0; field < CRON_FIELDS; field++)
		ret.bits[field] = cron->bits[field];
	return ret;
}

static int first_bit(uint64_t bits)
{
	return __builtin_ctzll(bits);
}

/* The due times that clock changes move: at most one a change. False if there is none. */
static bool add_moved(const struct cron *cron, const struct zone *zone, int64_t from,
		      struct alarm *ret)
{
	int64_t at = from;
	bool any = false;
	struct due due;

	*ret = (struct alarm){ 0 };
	while ((at = zone_period_at(zone, at).to) < end_of(from)) {
		if (!due_next(cron, zone, at - 1, &due) || due.at != at || !due.moved)
			continue;
		let(ret, zone_local(zone, at));
		any = true;
	}
	if (!any)
		return false;
	/* "The last Sunday" is any of seven dates, also those of later years; and a date comes on
	 * every weekday. */
	for (int day = first_bit(ret->bits[CRON_DAY]); ret->bits[CRON_DAY] >> day > 1; day++)
		ret->bits[CRON_DAY] |= UINT64_C(1) << day;
	let_all(ret, CRON_WEEKDAY);
	return true;
}

size_t alarms_in_zone(const struct cron *cron, const struct zone *zone, int64_t from,
		      struct alarm ret[ALARMS_MAX])
{
	size_t count = 0;

	if (cron->either_day) {
		ret[count] = of_cron(cron);
		let_all(&ret[count++], CRON_WEEKDAY);
		ret[count] = of_cron(cron);
		let_all(&ret[count++], CRON_DAY);
	} else {
		ret[count++] = of_cron(cron);
	}
	return count + add_moved(cron, zone, from, &ret[count]);
}

/* True if the clock has shown this local time before. */
static bool is_repeated(const struct zone *zone, int64_t at)
{
	struct zone_period period = zone_period_at(zone, at), before;

	if (period.from <= -ZONE_EVER)
		return false;
	before = zone_period_at(zone, period.from - 1);
	return before.offset > period.offset && at + period.offset < period.from + before.offset;
}

static int64_t day_of(int64_t local)
{
	return local / CIVIL_DAY - (local % CIVIL_DAY < 0);
}

void alarms_elsewhere(const struct cron *cron, const struct zone *zone, const struct zone *other,
		      int64_t from, struct cron *ret)
{
	bool repeated = false, same_days = true;
	struct alarm alarm = { 0 };
	int64_t at = from, local;
	struct due due;

	for (; due_next(cron, zone, at, &due) && due.at < end_of(from); at = due.at) {
		local = zone_local(other, due.at);
		let(&alarm, local);
		same_days = same_days && day_of(local) == day_of(due.wanted);
		repeated = repeated || is_repeated(other, due.at);
	}
	/* The second time is left out, but not by a line that names every hour. */
	if (repeated)
		let_all(&alarm, CRON_HOUR);
	for (int field = 0; field < CRON_FIELDS; field++)
		ret->bits[field] =
			same_days && field >= CRON_DAY ? cron->bits[field] : alarm.bits[field];
	ret->either_day = same_days && cron->either_day;
	/* Two restricted day fields would mean either: one of them is enough. */
	if (!ret->either_day && !cron_is_full(ret, CRON_WEEKDAY)) {
		let_all(&alarm, CRON_DAY);
		ret->bits[CRON_DAY] = alarm.bits[CRON_DAY];
	}
}
