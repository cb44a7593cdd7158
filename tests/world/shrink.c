/* Fewer faults: see shrink.h. A script is text: a line "schedule SEED NUMBER RULE", then a fault a
 * line (fault_print()). The setting, the habits and the time from which on all is calm are those
 * of the schedule unless lines say otherwise; "one run" says that no other follows; "#" begins a
 * comment. */
#include "tests/world/shrink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/faults.h"
#include "tests/world/habits.h"
#include "tests/world/host.h"
#include "tests/world/play.h"
#include "tests/world/report.h"

/* Which of the schedule's faults are left out. */
struct without {
	uint64_t seed, number;
	bool out[FAULTS_MAX];
};

static void play_without(const void *arg, uint64_t number, struct report *ret)
{
	const struct without *without = arg;
	struct schedule schedule = { .seed = without->seed,
				     .number = without->number,
				     .left_out = without->out };

	(void)number;
	schedule_play(&schedule);
	report_make(ret);
	ret->calm_from_ns = schedule.calm_from_ns;
	habits_print(ret->habits, sizeof ret->habits);
	ret->fault_count = (uint64_t)fault_count;
	for (int i = 0; i < fault_count; i++)
		fault_print(&faults[i], ret->script[i], sizeof ret->script[i]);
}

static struct report *try(const struct without *without)
{
	static struct report report;

	report = (struct report){ 0 };
	host_run_one(play_without, without, 0, &report);
	return &report;
}

int shrink(uint64_t seed, uint64_t number)
{
	struct without without = { .seed = seed, .number = number };
	const struct report *report = try(&without);
	char setting[SETTING_LINE_MAX];
	int count = (int)report->fault_count;
	char rule[8];

	memcpy(rule, report->broken, sizeof rule);
	if (!*rule) {
		printf("schedule %" PRIu64 " of seed %" PRIu64 " breaks no rule\n", number, seed);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		without.out[i] = true;
		if (strcmp(try(&without)->broken, rule) != 0)
			without.out[i] = false;
	}
	report = try(&without);
	setting_print(&report->setting, setting, sizeof setting);
	printf("# rule %s: %s\nschedule %" PRIu64 " %" PRIu64 " %s\n%s\n%s\ncalm %" PRId64 "\n",
	       rule, report->why, seed, number, rule, setting, report->habits,
	       report->calm_from_ns);
	for (int i = 0; i < count; i++)
		if (!without.out[i])
			printf("%s\n", report->script[i]);
	return 0;
}

FILE *__real_fopen(const char *path, const char *mode);

void script_load(const char *path, struct schedule *ret)
{
	FILE *file = __real_fopen(path, "r");
	char line[SETTING_LINE_MAX], scenario[32];
	bool begun = false;

	fault_count = 0;
	while (file && fgets(line, sizeof line, file)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!begun && sscanf(line, "scenario %31s", scenario) == 1 &&
		    setting_find_scenario(scenario)) {
			ret->scenario = setting_find_scenario(scenario);
		} else if (!begun && sscanf(line, "schedule %" SCNu64 " %" SCNu64, &ret->seed,
					    &ret->number) == 2) {
			begun = true;
		} else if (begun && setting_parse(line, &ret->setting)) {
			ret->has_setting = true;
		} else if (begun && strcmp(line, "one run\n") == 0) {
			ret->one_run = true;
		} else if (begun && (habits_parse(line) ||
				     sscanf(line, "calm %" SCNd64, &ret->calm_from_ns) == 1)) {
			continue;
		} else if (begun && fault_count < FAULTS_MAX &&
			   fault_parse(line, &faults[fault_count])) {
			fault_count++;
		} else {
			fprintf(stderr, "%s: not a line of a script: %s", path, line);
			exit(2);
		}
	}
	if (!begun) {
		fprintf(stderr, "%s: cannot be read, or is no script\n", path);
		exit(2);
	}
	fclose(file);
}
