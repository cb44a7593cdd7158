/* Fewer faults: see shrink.h. A script is text: a line "schedule SEED NUMBER RULE", then a fault a
 * line (fault_print()); "#" begins a comment. */
#include "tests/world/shrink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/faults.h"
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
	printf("# rule %s: %s\nschedule %" PRIu64 " %" PRIu64 " %s\n", rule, report->why, seed,
	       number, rule);
	for (int i = 0; i < count; i++)
		if (!without.out[i])
			printf("%s\n", report->script[i]);
	return 0;
}

FILE *__real_fopen(const char *path, const char *mode);

void script_load(const char *path, uint64_t *ret_seed, uint64_t *ret_number)
{
	FILE *file = __real_fopen(path, "r");
	char line[256];
	bool begun = false;

	fault_count = 0;
	while (file && fgets(line, sizeof line, file)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!begun &&
		    sscanf(line, "schedule %" SCNu64 " %" SCNu64, ret_seed, ret_number) == 2) {
			begun = true;
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
