/* Dates as numbers: see civil.h. */
#include "jobs/calendar/civil.h"

/* Years begin in March here, so that the leap day is the last of its year; an era is 400 of
 * them, 146,097 days. */
int64_t civil_days(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	int64_t day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;

	return era * 146097 + day_of_era - 719468;
}

struct civil civil_of(int64_t local)
{
	int64_t days = local / CIVIL_DAY - (local % CIVIL_DAY < 0);
	int rest = (int)(local - days * CIVIL_DAY);
	int64_t shifted = days + 719468;
	int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
	int64_t of_era = shifted - era * 146097;
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int month_from_march = (int)((5 * of_year + 2) / 153);
	struct civil ret;

	ret.day = (int)(of_year - (153 * month_from_march + 2) / 5 + 1);
	ret.month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
	ret.year = year_of_era + era * 400 + (ret.month <= 2);
	ret.weekday = (int)(((days % 7) + 7 + 4) % 7); /* the epoch was a Thursday */
	ret.hour = rest / CIVIL_HOUR;
	ret.minute = rest / CIVIL_MINUTE % 60;
	ret.second = rest % 60;
	return ret;
}

int civil_month_length(int64_t year, int month)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return month == 2 && leap ? 29 : lengths[month - 1];
}
