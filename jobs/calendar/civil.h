/*
 * Dates of the Gregorian calendar as numbers: local seconds (those of a clock on the wall, as if
 * its zone were UTC) and what people call them.
 */
#ifndef STK_CALENDAR_CIVIL_H
#define STK_CALENDAR_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define CIVIL_DAY    86400
#define CIVIL_HOUR   3600
#define CIVIL_MINUTE 60

struct civil {
	int64_t year;
	int month, day; /* from 1 */
	int weekday;    /* 0: Sunday */
	int hour, minute, second;
};

/* Days from 1970-01-01 to a date; months and days are from 1, and must be in range. */
int64_t civil_days(int64_t year, int month, int day);
/* The names of a local time; `local` is at most 2^50 away from 0. */
struct civil civil_of(int64_t local);
int civil_month_length(int64_t year, int month);

#endif
