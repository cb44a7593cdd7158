/* Alarms as texts: see alarm_text.h. */
#include "jobs/calendar/alarm_text.h"

#include <stdio.h>
#include <string.h>

static const char capitals[][4] = { "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT" };
static const char names[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* Writes the values of every field; weekdays are 0 to 6 in them. */
static void list_all(const uint64_t bits[CRON_FIELDS], int digits, const char *between,
		     char ret[CRON_FIELDS][CRON_LIST])
{
	for (int field = 0; field < CRON_FIELDS; field++)
		cron_write_list(bits[field], (enum cron_field)field, digits, between, ret[field]);
}

/* Writes days of the week by name, separated by commas; "" for all of them. */
static void list_days(uint64_t bits, const char words[][4], char ret[CRON_LIST])
{
	size_t len = 0;

	ret[0] = '\0';
	for (int day = 0; day < 7 && (bits & 127) != 127; day++)
		if (bits >> day & 1)
			len += (size_t)snprintf(ret + len, CRON_LIST - len, "%s%s",
						len > 0 ? "," : "", words[day]);
}

void alarm_text_cron(const struct cron *cron, char ret[ALARM_TEXT])
{
	char lists[CRON_FIELDS][CRON_LIST];
	size_t len = 0;

	list_all(cron->bits, 1, "-", lists);
	for (int field = 0; field < CRON_FIELDS; field++)
		len += (size_t)snprintf(ret + len, ALARM_TEXT - len, "%s%s", field > 0 ? " " : "",
					lists[field]);
}

void alarm_text_systemd(const struct alarm *alarm, const char *timezone, char ret[ALARM_TEXT])
{
	char lists[CRON_FIELDS][CRON_LIST], days[CRON_LIST];

	list_all(alarm->bits, 2, "..", lists);
	list_days(alarm->bits[CRON_WEEKDAY], names, days);
	snprintf(ret, ALARM_TEXT, "%s%s*-%s-%s %s:%s:00 %.64s", days, *days ? " " : "",
		 lists[CRON_MONTH], lists[CRON_DAY], lists[CRON_HOUR], lists[CRON_MINUTE],
		 timezone);
}

bool alarm_text_eventbridge(const struct alarm *alarm, char ret[ALARM_TEXT])
{
	char lists[CRON_FIELDS][CRON_LIST], days[CRON_LIST];

	list_all(alarm->bits, 1, "-", lists);
	list_days(alarm->bits[CRON_WEEKDAY], capitals, days);
	if (strcmp(lists[CRON_DAY], "*") != 0 && *days)
		return false;
	snprintf(ret, ALARM_TEXT, "cron(%s %s %s %s %s *)", lists[CRON_MINUTE], lists[CRON_HOUR],
		 *days ? "?" : lists[CRON_DAY], lists[CRON_MONTH], *days ? days : "?");
	return true;
}
