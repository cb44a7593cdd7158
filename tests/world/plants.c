/* Bugs put in on purpose: see plants.h. */
#include "tests/world/plants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/planted.h"

#define BLOCK 100 /* schedules that are played at a time */

/* The list of a program without bugs; world_planted has one of its own. */
__attribute__((weak)) const struct plant *plants_all(void)
{
	static const struct plant none;

	return &none;
}

static const struct plant *on;
static bool asked_for[64 * PLANT_WORDS]; /* by name */

/* ---- who asks ---- */

static uint64_t asked[PLANT_WORDS];

static void note(const char *name)
{
	static const char *noted[1024]; /* by their addresses: a place asks again and again */
	size_t at = (uintptr_t)name / 8 % 1024;
	const struct plant *all = plants_all();

	if (noted[at] == name)
		return;
	noted[at] = name;
	for (size_t i = 0; all[i].name; i++)
		if (strcmp(all[i].name, name) == 0)
			asked[i / 64] |= UINT64_C(1) << i % 64;
}

bool planted(const char *name)
{
	if (on)
		return strcmp(on->name, name) == 0;
	note(name);
	return false;
}

void plants_asked(uint64_t ret[PLANT_WORDS])
{
	memcpy(ret, asked, sizeof asked);
}

bool plant_turn_on(const char *name)
{
	for (const struct plant *row = plants_all(); row->name; row++)
		if (strcmp(row->name, name) == 0) {
			on = row;
			asked_for[row - plants_all()] = true;
			return true;
		}
	return false;
}

/* ---- until they are found ---- */

struct session {
	host_play_fn fn;
	const void *arg;
	const struct report *sound; /* the schedules of this block, without a bug */
	uint64_t from, count;
	struct tally *tallies;
};

/* Of one bug. */
struct tally {
	const struct plant *plant;
	uint64_t played, others; /* other rules broken */
	bool found;
};

/* A schedule without the bug that asks for no such bug is the same with it. */
static bool can_show(const struct report *sound, const struct plant *plant)
{
	size_t at = (size_t)(plant - plants_all());

	return !sound->broken[0] && !sound->died && (sound->asked[at / 64] >> at % 64 & 1) != 0;
}

/* In a child. What it comes to passes through the report: `broken` is the bug's own rule, or empty;
 * `runs` are the schedules played, `drivers` those in which another rule broke. */
static void play_with(const void *arg, uint64_t number, struct report *ret)
{
	const struct session *session = arg;
	const struct tally *tally = &session->tallies[number];
	uint64_t played = 0, others = 0, at = 0;
	bool found = false;

	on = tally->plant;
	for (; at < session->count && !found && !tally->found; at++) {
		if (!can_show(&session->sound[at], on))
			continue;
		host_run_one(session->fn, session->arg, session->from + at, ret);
		played++;
		found = !ret->died && strcmp(ret->broken, on->rule) == 0;
		others += !found && (ret->died || ret->broken[0]);
	}
	if (found)
		printf("%-28s rule %-3s found in %" PRIu64 " schedules, played %" PRIu64
		       ", other rules broken %" PRIu64 "\n",
		       on->name, on->rule, session->from + at, tally->played + played,
		       tally->others + others);
	else
		ret->broken[0] = '\0';
	ret->runs = played;
	ret->drivers = others;
	ret->died = false;
}

static uint64_t play_block(struct session *session, uint64_t count, int jobs)
{
	struct report *all = host_run_each(0, count, jobs, play_with, session);
	uint64_t missed = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct tally *tally = &session->tallies[i];

		tally->played += all[i].runs;
		tally->others += all[i].drivers;
		tally->found |= !all[i].died && all[i].broken[0];
		missed += !tally->found;
	}
	host_drop(all, count);
	return missed;
}

/* Schedules that break a rule by themselves show nothing. */
static uint64_t count_broken(const struct session *session)
{
	uint64_t broken = 0;

	for (uint64_t i = 0; i < session->count; i++) {
		if (!session->sound[i].broken[0] && !session->sound[i].died)
			continue;
		broken++;
		printf("schedule %" PRIu64 " breaks rule %s without any bug\n", session->from + i,
		       session->sound[i].broken);
	}
	return broken;
}

/* Returns how many are to be found: those that were turned on, or all that are not too rare. */
static uint64_t begin(bool rare, struct tally **ret)
{
	const struct plant *all = plants_all();
	uint64_t count = 0, listed = 0;

	*ret = calloc(64 * PLANT_WORDS, sizeof **ret);
	if (!*ret)
		abort();
	for (; all[listed].name && listed < 64 * PLANT_WORDS; listed++)
		if (on ? asked_for[listed] : rare || all[listed].rare[0] == '\0')
			(*ret)[count++].plant = &all[listed];
	if (all[listed].name)
		abort(); /* PLANT_WORDS are too few */
	on = NULL;
	return count;
}

bool plants_play(uint64_t most, int jobs, bool rare, host_play_fn fn, const void *arg)
{
	struct session session = { .fn = fn, .arg = arg };
	uint64_t count = begin(rare, &session.tallies), missed = count, broken = 0;

	if (count == 0)
		puts("this program has no bugs put in: use world_planted");
	while (missed > 0 && session.from < most) {
		struct report *sound;

		session.count = most - session.from < BLOCK ? most - session.from : BLOCK;
		sound = host_run_each(session.from, session.count, jobs, fn, arg);
		session.sound = sound;
		broken += count_broken(&session);
		missed = play_block(&session, count, jobs);
		host_drop(sound, session.count);
		session.from += session.count;
	}
	for (uint64_t i = 0; i < count; i++)
		if (!session.tallies[i].found)
			printf("%-28s rule %-3s NOT FOUND, schedules %" PRIu64 ", played %" PRIu64
			       ", other rules broken %" PRIu64 "\n",
			       session.tallies[i].plant->name, session.tallies[i].plant->rule,
			       session.from, session.tallies[i].played, session.tallies[i].others);
	printf("plants %" PRIu64 ", missed %" PRIu64 ", schedules %" PRIu64 "\n", count, missed,
	       session.from);
	free(session.tallies);
	return count > 0 && missed == 0 && broken == 0;
}
