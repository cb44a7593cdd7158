/*
 * sim: plays schedules of faults against the workflow machine and says which
 * rule broke, or what was reached. Everything on stdout follows from the seed;
 * how long it took is said on stderr.
 */
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENTS_MIN 60
/* With fewer, something rare may not have been reached by chance. */
#define REACH_FROM 5000

static const char usage[] =
	"usage: sim [--schedules N] [--seed S]     play schedules 0 to N-1 of a seed\n"
	"       sim --seed S --schedule K --trace  play one, with its timeline\n"
	"       sim --plant NAME [...]             put a bug in: succeeds if a rule notices\n"
	"       sim --plants                       list the bugs\n";

struct options {
	uint64_t schedules, seed, schedule;
	bool one, trace;
	const struct plant *plant;
};

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = text ? strtoull(text, &end, 10) : 0;

	if (!text || *text == '\0' || *end != '\0') {
		fputs(usage, stderr);
		exit(2);
	}
	return value;
}

static void parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--trace") == 0) {
			o->trace = true;
			continue;
		}
		if (strcmp(argv[i], "--plants") == 0) {
			for (size_t p = 0; p < plant_count; p++)
				printf("%-24s rule %d: %s\n", plants[p].name, plants[p].rule,
				       plants[p].what);
			exit(0);
		}
		i++;
		if (strcmp(argv[i - 1], "--schedules") == 0) {
			o->schedules = number(value);
		} else if (strcmp(argv[i - 1], "--seed") == 0) {
			o->seed = number(value);
		} else if (strcmp(argv[i - 1], "--schedule") == 0) {
			o->schedule = number(value);
			o->one = true;
		} else if (strcmp(argv[i - 1], "--plant") == 0 && value && plant_find(value)) {
			o->plant = plant_find(value);
		} else {
			fputs(usage, stderr);
			exit(2);
		}
	}
}

static void say_broken(const struct world *w, const char *program)
{
	printf("rule %d is broken in schedule %" PRIu64 " of seed %" PRIu64 ": %s\n", w->broken,
	       w->schedule, w->seed, w->why);
	if (!w->trace)
		printf("replay: %s%s%s --seed %" PRIu64 " --schedule %" PRIu64 " --trace\n",
		       program, w->plant ? " --plant " : "", w->plant ? w->plant->name : "",
		       w->seed, w->schedule);
}

/* The exit status of a session with a planted bug. */
static int judge_plant(const struct world *w)
{
	if (w->broken == w->plant->rule)
		return 0;
	printf("planted %s: rule %d should have noticed (%s)\n", w->plant->name, w->plant->rule,
	       w->plant->what);
	return 1;
}

static double cpu_seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

int main(int argc, char **argv)
{
	static struct world world;
	struct options o = { .schedules = 1000, .seed = 1 };
	struct timespec begin;
	double seconds;
	bool whole = true, reached = true;

	parse(argc, argv, &o);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	world.seed = o.seed;
	world.plant = o.plant;
	world.trace = o.trace;
	world.schedule = o.schedule;
	for (uint64_t k = 0; whole && k < (o.one ? 1 : o.schedules); k++) {
		if (!o.one)
			world.schedule = k;
		whole = world_play(&world, EVENTS_MIN);
	}
	seconds = cpu_seconds_since(&begin);
	if (!whole)
		say_broken(&world, argv[0]);
	if (o.plant)
		return judge_plant(&world);
	if (!whole)
		return 1;
	if (!o.one)
		reached = counts_print(o.schedules >= REACH_FROM);
	printf("violations 0\n");
	if (!o.one)
		fprintf(stderr, "%.1f s of CPU, %.0f schedules a second, %.0f events a second\n",
			seconds, (double)counts.schedules / seconds,
			(double)counts.events / seconds);
	return reached ? 0 : 1;
}
