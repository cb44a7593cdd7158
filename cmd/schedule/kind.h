/*
 * The schedulers that can wake stoker, one row each: what is set there for a schedule, how it is
 * set, looked for and removed.
 *
 * An alarm is JSON of the kind's own, with all that is to be set; the schedule's entry keeps it, so
 * that it can be removed without the spec. Setting and removing can be repeated.
 *
 * cmd/schedule: schedules: alarms in other schedulers, and turns when they ring.
 */
#ifndef STK_CMD_SCHEDULE_KIND_H
#define STK_CMD_SCHEDULE_KIND_H

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/calendar/cron.h"
#include "jobs/calendar/zone.h"

/* The parts of an alarm; all borrowed. */
struct alarm_setting {
	const char *name;            /* of the schedule, in the shape of a spec's name */
	const char *line, *timezone; /* as the spec has them */
	struct cron cron;
	const struct zone *zone;
	int64_t jitter_ms;
	int64_t from;         /* the moment from which it counts, in seconds */
	char *const *command; /* NULL-terminated; the program by its absolute path */
	const char *path;     /* PATH of the command; NULL: the scheduler's own */
	bool system;          /* for the machine, not for the user */
	/* Members for jobs elsewhere: the section `driver`, and where state and workspace are. */
	const json_t *driver;
	const char *state, *workspace;
};

struct schedule_kind {
	const char *name;
	bool has_system; /* takes --system */
	bool elsewhere;  /* the kind's alarms call stoker on another machine */
	/* Makes the alarm, and changes nothing; warnings are printed. */
	int (*make)(const struct alarm_setting *setting, json_t **ret, struct err **err);
	void (*print)(const json_t *alarm); /* on stdout, as the scheduler will have it */
	int (*set)(const json_t *alarm, struct err **err);
	/* 1: it is set as it was made; 0: it is not, or was changed; -1 */
	int (*look)(const json_t *alarm, struct err **err);
	int (*remove)(const json_t *alarm, struct err **err); /* absent is fine */
};

/* Returns the row of this name; NULL if there is none. */
const struct schedule_kind *kind_find(const char *name);
/* All names, separated by '|'. */
#define SCHEDULE_KINDS "systemd|cron|eventbridge"

extern const struct schedule_kind kind_cron_row, kind_systemd_row, kind_eventbridge_row;

/* EXIT_SPEC if a word has control characters, which end a line or a command. */
int kind_check_words(const struct alarm_setting *setting, struct err **err);

#endif
