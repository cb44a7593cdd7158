/*
 * By which tests in Python ask for due times: each line of stdin is a zone, two moments in seconds
 * and a line of cron, separated by tabs, and is answered by the due times after the first moment
 * and up to the second, on one line, or by "!" and what is wrong with it. A due time that a clock
 * change has moved has a '*' behind it. `--last` answers with the same due times, found from the
 * end backwards; `--systemd` and `--eventbridge` with the alarms from the first moment on,
 * separated by bars; `--cron ZONE` with the line of cron by the clock of that zone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/calendar/alarm_text.h"
#include "jobs/calendar/due.h"
#include "jobs/spec/schedule.h"

#define MOST 1024 /* zones */

static struct {
	char name[64];
	struct schedule_zone zone;
} zones[MOST];

static const struct zone *zone_named(const char *name)
{
	AUTO(err_freep) struct err *err = NULL;
	size_t i = 0;

	while (i < MOST && zones[i].name[0] && strcmp(zones[i].name, name) != 0)
		i++;
	if (i == MOST || strlen(name) >= sizeof zones[i].name)
		exit(3);
	if (!zones[i].name[0]) {
		zones[i].zone = SCHEDULE_ZONE_INIT;
		if (schedule_zone_read(name, NULL, &zones[i].zone, &err) <= 0) {
			fprintf(stderr, "%s: %s\n", name, err ? err->message : "unknown");
			exit(2);
		}
		strcpy(zones[i].name, name);
	}
	return &zones[i].zone.zone;
}

static void print(const struct due *due)
{
	printf("%lld%s ", (long long)due->at, due->moved ? "*" : "");
}

static void print_last(const struct cron *cron, const struct zone *zone, long long from,
		       long long to)
{
	struct due *found = NULL, due;
	size_t count = 0;

	while (due_last(cron, zone, to, &due) && due.at > from) {
		found = mem_room(found, count, sizeof *found);
		found[count++] = due;
		to = due.at - 1;
	}
	while (count > 0)
		print(&found[--count]);
	free(found);
}

static void print_alarms(const struct cron *cron, const struct zone *zone, long long from,
			 const char *timezone)
{
	struct alarm alarms[ALARMS_MAX];
	size_t count = alarms_in_zone(cron, zone, from, alarms);
	char text[ALARM_TEXT];

	for (size_t i = 0; i < count; i++) {
		if (timezone)
			alarm_text_systemd(&alarms[i], timezone, text);
		else if (!alarm_text_eventbridge(&alarms[i], text))
			strcpy(text, "!");
		printf("%s%s", i > 0 ? "|" : "", text);
	}
}

static void print_cron(const struct cron *cron, const struct zone *zone, long long from,
		       const struct zone *other)
{
	char text[ALARM_TEXT];
	struct cron line;

	alarms_elsewhere(cron, zone, other, from, &line);
	alarm_text_cron(&line, text);
	fputs(text, stdout);
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		char *rest = line;
		const char *name = strsep(&rest, "\t");
		long long from = atoll(strsep(&rest, "\t")), to = atoll(strsep(&rest, "\t"));
		const struct zone *zone = zone_named(name);
		struct cron_fault fault;
		struct cron cron;
		struct due due;

		rest[strcspn(rest, "\n")] = '\0';
		if (!cron_parse(rest, &cron, &fault))
			printf("! %.*s %s", (int)fault.len, fault.text, fault.why);
		else if (strcmp(option, "--last") == 0)
			print_last(&cron, zone, from, to);
		else if (strcmp(option, "--systemd") == 0)
			print_alarms(&cron, zone, from, name);
		else if (strcmp(option, "--eventbridge") == 0)
			print_alarms(&cron, zone, from, NULL);
		else if (strcmp(option, "--cron") == 0)
			print_cron(&cron, zone, from, zone_named(argv[2]));
		else
			for (; due_next(&cron, zone, from, &due) && due.at <= to; from = due.at)
				print(&due);
		putchar('\n');
	}
	free(line);
	for (size_t i = 0; i < MOST && zones[i].name[0]; i++)
		schedule_zone_release(&zones[i].zone);
	return 0;
}
