/* Instants and ages for people: see when.h. */
#include "jobs/base/text/when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *when_age(struct utc at, struct utc now, char ret[WHEN_TEXT])
{
	long long seconds = now.ms > at.ms ? (now.ms - at.ms) / 1000 : 0;

	if (seconds < 60)
		snprintf(ret, WHEN_TEXT, "%llds", seconds);
	else if (seconds < 3600)
		snprintf(ret, WHEN_TEXT, "%lldm", seconds / 60);
	else if (seconds < 86400)
		snprintf(ret, WHEN_TEXT, "%lldh", seconds / 3600);
	else
		snprintf(ret, WHEN_TEXT, "%lldd", seconds / 86400);
	return ret;
}

static struct tm local_of(struct utc at)
{
	time_t seconds = (time_t)(at.ms / 1000);
	struct tm local = { 0 };

	localtime_r(&seconds, &local);
	return local;
}

const char *when_instant(struct utc at, struct utc now, bool terminal, char ret[WHEN_TEXT])
{
	/* Names of months are English, like all that stoker says, whatever the locale. */
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct tm then = local_of(at), today = local_of(now);
	char utc[UTC_TEXT], day[WHEN_TEXT / 2] = "";

	if (!terminal) {
		snprintf(ret, WHEN_TEXT, "%.19sZ", clock_utc_format(at, utc));
		return ret;
	}
	if (then.tm_year != today.tm_year)
		snprintf(day, sizeof day, "%04d-%02d-%02d ", (then.tm_year + 1900) % 10000,
			 (then.tm_mon + 1) % 100, then.tm_mday % 100);
	else if (then.tm_yday != today.tm_yday)
		snprintf(day, sizeof day, "%s %d ", months[then.tm_mon % 12], then.tm_mday % 100);
	snprintf(ret, WHEN_TEXT, "%s%02d:%02d:%02d", day, then.tm_hour % 100, then.tm_min % 100,
		 then.tm_sec % 100);
	return ret;
}

const char *when_text(const char *utc, bool terminal, char ret[WHEN_TEXT])
{
	struct utc at;

	if (!utc)
		return "-";
	if (!clock_utc_parse(utc, &at))
		return utc;
	return when_instant(at, clock_utc_now(), terminal, ret);
}
