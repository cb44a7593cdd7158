/* Alarms as texts: see alarm_text.h. */
#include "jobs/calendar/alarm_text.h"

#include <stdio.h>
#include <string.h>

static const char capitals[][4] = { "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT" };
static const char names[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

static void list(uint64_t bits, enum cron_field field, int digits, const char *between,
		 char ret[CRON_LIST])
{
	cron_write_list(bits, field, digits, between, ret);
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
	size_t len = 0;

	for (int field = 0; field < CRON_FIELDS; field++) {
		char values[CRON_LIST];

		list(cron->bits[field], (enum cron_field)field, 1, "-", values);
		len += (size_t)snprintf(ret + len, ALARM_TEXT - len, "%s%s", field > 0 ? " " : "",
					values);
	}
}

void alarm_text_systemd(const struct alarm *alarm, const char *timezone, char ret[ALARM_TEXT])
{
	char minutes[CRON_LIST], hours[CRON_LIST], days[CRON_LIST], months[CRON_LIST];
	char weekdays[CRON_LIST];

	list(alarm->bits[CRON_MINUTE], CRON_MINUTE, 2, "..", minutes);
	list(alarm->bits[CRON_HOUR], CRON_HOUR, 2, "..", hours);
	list(alarm->bits[CRON_DAY], CRON_DAY, 2, "..", days);
	list(alarm->bits[CRON_MONTH], CRON_MONTH, 2, "..", months);
	list_days(alarm->bits[CRON_WEEKDAY], names, weekdays);
	snprintf(ret, ALARM_TEXT, "%s%s*-%s-%s %s:%s:00 %.64s", weekdays, *weekdays ? " " : "",
		 months, days, hours, minutes, timezone);
}

bool alarm_text_eventbridge(const struct alarm *alarm, char ret[ALARM_TEXT])
{
	char minutes[CRON_LIST], hours[CRON_LIST], days[CRON_LIST], months[CRON_LIST];
	char weekdays[CRON_LIST];

	list(alarm->bits[CRON_MINUTE], CRON_MINUTE, 1, "-", minutes);
	list(alarm->bits[CRON_HOUR], CRON_HOUR, 1, "-", hours);
	list(alarm->bits[CRON_DAY], CRON_DAY, 1, "-", days);
	list(alarm->bits[CRON_MONTH], CRON_MONTH, 1, "-", months);
	list_days(alarm->bits[CRON_WEEKDAY], capitals, weekdays);
	if (strcmp(days, "*") != 0 && *weekdays)
		return false;
	snprintf(ret, ALARM_TEXT, "cron(%s %s %s %s %s *)", minutes, hours, *weekdays ? "?" : days,
		 months, *weekdays ? weekdays : "?");
	return true;
}
