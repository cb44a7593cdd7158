/*
 * Alarms in the words of the schedulers that ring them.
 *
 * Sources: crontab(5) of Debian's cron 3.0pl1; systemd.time(7) of systemd 252, "Calendar Events";
 * EventBridge Scheduler, User Guide, "Schedule types", cron-based schedules.
 */
#ifndef STK_CALENDAR_ALARM_TEXT_H
#define STK_CALENDAR_ALARM_TEXT_H

#include "jobs/calendar/alarms.h"

#define ALARM_TEXT 2048

/* "30 2 * * 0" */
void alarm_text_cron(const struct cron *cron, char ret[ALARM_TEXT]);
/* "Sun *-*-* 02:30:00 Europe/Berlin", for OnCalendar= */
void alarm_text_systemd(const struct alarm *alarm, const char *timezone, char ret[ALARM_TEXT]);
/* "cron(30 2 ? * SUN *)"; false if both day fields are restricted, which it cannot express. */
bool alarm_text_eventbridge(const struct alarm *alarm, char ret[ALARM_TEXT]);

#endif
