/* Bugs put in on purpose: see plants.h. */
#include "tests/world/plants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/planted.h"

/* The list of a program without bugs; world_planted has one of its own. */
__attribute__((weak)) const struct plant *plants_all(void)
{
	static const struct plant none;

	return &none;
}

static const struct plant *on;

bool planted(const char *name)
{
	return on && strcmp(on->name, name) == 0;
}

bool plant_turn_on(const char *name)
{
	for (const struct plant *row = plants_all(); row->name; row++)
		if (strcmp(row->name, name) == 0) {
			on = row;
			return true;
		}
	return false;
}

struct session {
	uint64_t most;
	host_play_fn fn;
	const void *arg;
};

/* Another rule may break first: schedules are played until the bug's own does. `ret` says by
 * `broken` whether it did. */
static void play_with(const void *arg, uint64_t number, struct report *ret)
{
	const struct session *session = arg;
	uint64_t played = 0, others = 0;
	bool found = false;

	if (!on)
		on = &plants_all()[number];
	while (played < session->most && !found) {
		host_run_one(session->fn, session->arg, played++, ret);
		found = !ret->died && strcmp(ret->broken, on->rule) == 0;
		others += !found && (ret->died || ret->broken[0]);
	}
	if (!found)
		ret->broken[0] = '\0';
	ret->died = false;
	printf("%-28s rule %-3s %s%" PRIu64 ", other rules broken %" PRIu64 "\n", on->name,
	       on->rule, found ? "found by schedule " : "NOT FOUND, schedules ", played, others);
}

bool plants_play(uint64_t most, int jobs, host_play_fn fn, const void *arg)
{
	struct session session = { .most = most, .fn = fn, .arg = arg };
	struct report *all;
	uint64_t count = 0, missed = 0;

	while (plants_all()[count].name)
		count++;
	if (count == 0) {
		puts("this program has no bugs put in: use world_planted");
		return false;
	}
	if (on) /* the one that was asked for alone */
		count = 1;
	all = host_run_each(0, count, jobs, play_with, &session);
	for (uint64_t i = 0; i < count; i++)
		missed += all[i].died || all[i].broken[0] == '\0';
	printf("plants %" PRIu64 ", missed %" PRIu64 "\n", count, missed);
	host_drop(all, count);
	return missed == 0;
}
