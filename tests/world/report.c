/* What was reached: see report.h. */
#include "tests/world/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/flow_names.h"
#include "tests/world/kernel.h"
#include "tests/world/plants.h"
#include "tests/world/rules.h"
#include "tests/world/story.h"

#define LONG_EVENTS 60
/* With fewer, something rare may not have been reached by chance. */
#define REACH_FROM 3000

static uint64_t mix(uint64_t digest, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
	return digest;
}

static void add_story(struct report *ret, const struct story *story)
{
	ret->runs++;
	reached_add_story(&ret->reached, story);
	for (int64_t i = 0; i < story->count; i++) {
		const struct story_event *told = &story->events[i];
		char *text = json_dumps(told->row, JSON_COMPACT | JSON_SORT_KEYS);

		ret->digest = mix(ret->digest, text, strlen(text));
		ret->digest = mix(ret->digest, (const char *)&told->at_ns, sizeof told->at_ns);
		free(text);
		ret->events++;
	}
}

void report_make(struct report *ret)
{
	ret->digest = UINT64_C(14695981039346656037);
	ret->setting = playing->setting;
	ret->seconds = now_ns / WORLD_S;
	ret->drivers = (uint64_t)playing->drivers;
	if (rules_broken) {
		snprintf(ret->broken, sizeof ret->broken, "%s", rules_broken);
		snprintf(ret->why, sizeof ret->why, "%s", rules_why);
	}
	for (const struct story *story = stories; story; story = story->next)
		add_story(ret, story);
	for (const struct process *process = processes; process; process = process->next) {
		ret->processes++;
		ret->calls += process->calls;
	}
	reached_add_faults(&ret->reached);
	plants_asked(ret->asked);
}

void report_print_short(const struct report *report)
{
	printf("schedule %" PRIu64 ": runs %" PRIu64 ", events %" PRIu64 ", calls %" PRIu64
	       ", virtual seconds %" PRId64 "%s%s%s%s\n",
	       report->number, report->runs, report->events, report->calls, report->seconds,
	       report->broken[0] ? ", rule " : "", report->broken, report->broken[0] ? ": " : "",
	       report->why);
}

void reports_add(struct reports *reports, const struct report *report)
{
	struct report *sum = &reports->sum;

	reports->schedules++;
	reports->long_ones += report->events >= LONG_EVENTS;
	reports->nodes[report->setting.nodes]++;
	reports->far_state += report->setting.state >= STATE_SHARE;
	reports->cloud += report->setting.cloud;
	reports->calm += report->setting.calm;
	reports->died += report->died;
	reports->digest =
		mix(reports->digest, (const char *)&report->digest, sizeof report->digest);
	if ((report->broken[0] || report->died) && reports->broken_count++ == 0)
		reports->first_broken = *report;
	sum->events += report->events;
	sum->runs += report->runs;
	sum->processes += report->processes;
	sum->calls += report->calls;
	sum->drivers += report->drivers;
	sum->seconds += report->seconds;
	reached_add(&sum->reached, &report->reached);
}

/* Many schedules have to be of 60 events, half of them on several nodes, half on far state, a
 * tenth without faults. */
static bool print_shares(const struct reports *reports)
{
	uint64_t apart = reports->nodes[2] + reports->nodes[3] + reports->nodes[4];
	bool enough = reports->long_ones >= REACH_FROM && 2 * apart >= reports->schedules &&
		      2 * reports->far_state >= reports->schedules &&
		      10 * reports->calm >= reports->schedules;

	if (!enough)
		printf("too few are long, on several nodes, on far state or calm\n");
	return enough;
}

/* False if something was not reached that had to be. */
static bool print_counts(const struct reports *reports)
{
	bool many = reports->schedules >= REACH_FROM, reached;

	const struct report *sum = &reports->sum;

	reached = reached_print(&sum->reached, many);
	printf("schedules %" PRIu64 ", of 60 events or more %" PRIu64 ", calm %" PRIu64
	       ", on far state %" PRIu64 ", in the cloud %" PRIu64 "\n",
	       reports->schedules, reports->long_ones, reports->calm, reports->far_state,
	       reports->cloud);
	printf("nodes 1: %" PRIu64 ", 2: %" PRIu64 ", 3: %" PRIu64 ", 4: %" PRIu64 "\n",
	       reports->nodes[1], reports->nodes[2], reports->nodes[3], reports->nodes[4]);
	printf("events %" PRIu64 ", processes %" PRIu64 ", calls %" PRIu64 ", drivers %" PRIu64
	       ", virtual seconds %" PRId64 "\n",
	       sum->events, sum->processes, sum->calls, sum->drivers, sum->seconds);
	printf("digest %016" PRIx64 "\n", reports->digest);
	return (!many || print_shares(reports)) && reached;
}

bool reports_print(const struct reports *reports, const char *program, uint64_t seed, bool counts)
{
	const struct report *first = &reports->first_broken;
	bool reached = !counts || print_counts(reports);

	if (reports->broken_count > 0) {
		printf("rule %s is broken in schedule %" PRIu64 " of seed %" PRIu64 ": %s\n",
		       first->died ? "-" : first->broken, first->number, seed,
		       first->died ? "the simulator died" : first->why);
		if (counts)
			printf("replay: %s --seed %" PRIu64 " --schedule %" PRIu64 " --trace\n",
			       program, seed, first->number);
	}
	printf("violations %" PRIu64 "\n", reports->broken_count);
	return reports->broken_count == 0 && reached;
}
