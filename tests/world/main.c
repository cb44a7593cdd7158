/*
 * world: plays schedules of the real driver and the real agents in the simulated world, and says
 * which rule broke, or what was reached. Everything on stdout follows from the seed; how long it
 * took is said on stderr. Each schedule plays in a child of its own, so that what killed processes
 * leave in memory is of no concern.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "tests/world/faults.h"
#include "tests/world/host.h"
#include "tests/world/operators.h"
#include "tests/world/plants.h"
#include "tests/world/play.h"
#include "tests/world/points.h"
#include "tests/world/programs.h"
#include "tests/world/report.h"
#include "tests/world/rules.h"
#include "tests/world/shrink.h"
#include "tests/world/sqlite.h"
#include "tests/world/tree.h"

static const char usage[] =
	"usage: world [--schedules N] [--seed S] [--from K] [--jobs J] [--each]\n"
	"                         play schedules K to K+N-1 of a seed\n"
	"                         (each: a line of each one)\n"
	"       world --seed S --schedule K [--trace|--calls]\n"
	"                         play one, with its timeline, or all its calls\n"
	"       world --seed S --schedule K --shrink\n"
	"                         drop its faults one by one while the rule still breaks, and "
	"print\n"
	"                         the script that is left\n"
	"       world --script FILE [--trace]\n"
	"                         play a schedule with the faults of a script\n"
	"       world --scenario NAME [--points errors|kills|cuts|doubles] [--every N] [--first K] "
	"[--jobs "
	"J]\n"
	"                         play a fixed scenario, with something at each of its places\n"
	"       world_planted --plants [--rare] [--schedules N] [--jobs J]\n"
	"                         with each of the bugs that are put in on purpose, play schedules "
	"until\n"
	"                         its rule notices (rare: also with those that few schedules "
	"show);\n"
	"                         --plant NAME puts one in for all of the above, and for --plants "
	"that\n"
	"                         one alone\n";

struct options {
	uint64_t schedules, seed, from;
	int jobs;
	bool one, trace, calls, shrink, has_points, plants, rare, each;
	const char *scenario, *script;
	struct points points;
};

static _Noreturn void misused(void)
{
	fputs(usage, stderr);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = text ? strtoull(text, &end, 10) : 0;

	if (!text || *text == '\0' || *end != '\0')
		misused();
	return value;
}

static enum points_mode mode_named(const char *name)
{
	for (int mode = 0; name && mode < POINTS_MODES; mode++)
		if (strcmp(points_mode_names[mode], name) == 0)
			return (enum points_mode)mode;
	misused();
}

static void parse_value(const char *option, const char *value, struct options *o)
{
	if (strcmp(option, "--schedules") == 0) {
		o->schedules = number(value);
	} else if (strcmp(option, "--seed") == 0) {
		o->seed = number(value);
	} else if (strcmp(option, "--from") == 0) {
		o->from = number(value);
	} else if (strcmp(option, "--jobs") == 0) {
		o->jobs = (int)number(value);
	} else if (strcmp(option, "--every") == 0) {
		o->points.every = number(value);
	} else if (strcmp(option, "--first") == 0) {
		o->points.first = number(value);
	} else if (strcmp(option, "--schedule") == 0) {
		o->from = number(value);
		o->one = true;
	} else if (strcmp(option, "--scenario") == 0 && value && setting_find_scenario(value)) {
		o->scenario = value;
		o->one = true;
	} else if (strcmp(option, "--script") == 0 && value) {
		o->script = value;
		o->one = true;
	} else if (strcmp(option, "--plant") == 0 && value && plant_turn_on(value)) {
		return;
	} else if (strcmp(option, "--points") == 0) {
		o->points.mode = mode_named(value);
		o->has_points = true;
	} else {
		misused();
	}
}

static void parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0) {
			o->trace = true;
		} else if (strcmp(argv[i], "--calls") == 0) {
			o->trace = o->calls = true;
		} else if (strcmp(argv[i], "--each") == 0) {
			o->each = true;
		} else if (strcmp(argv[i], "--shrink") == 0) {
			o->shrink = true;
		} else if (strcmp(argv[i], "--plants") == 0) {
			o->plants = true;
		} else if (strcmp(argv[i], "--rare") == 0) {
			o->rare = true;
		} else {
			parse_value(argv[i], i + 1 < argc ? argv[i + 1] : NULL, o);
			i++;
		}
	}
	o->points.jobs = o->jobs;
}

static void play(const void *options, uint64_t k, struct report *ret)
{
	const struct options *o = options;
	struct schedule schedule = { .seed = o->seed,
				     .number = k,
				     .trace = o->trace,
				     .trace_calls = o->calls,
				     .scenario = o->scenario,
				     .at_places = o->has_points,
				     .script = o->script };

	schedule_play(&schedule);
	report_make(ret);
	ret->number = k;
	if (o->each)
		report_print_short(ret);
}

static void play_points(const struct options *o, struct reports *reports)
{
	struct report report = { 0 };

	points_begin(&o->points);
	play(o, o->from, &report);
	if (points_is_case()) {
		if (report.broken[0]) {
			char why[sizeof report.why];

			snprintf(why, sizeof why, "%.200s [%s]", report.why, points_case());
			memcpy(report.why, why, sizeof why);
		}
		points_end_case(&report);
	}
	reports_add(reports, &report);
	points_finish(reports);
}

/* What OpenSSL makes once is made before the first fork; memory is given back to nobody, for a
 * schedule is short. */
static void warm_up(void)
{
	char hex[SHA256_HEX];

	hash_sha256_hex("", 0, hex);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 1 << 22);
	mallopt(M_MXFAST, 0); /* what is fast and then merged again is slow */
}

int main(int argc, char **argv)
{
	struct options o = { .schedules = 100, .seed = 1, .jobs = 1, .points.every = 1 };
	struct reports reports = { 0 };
	double begin, seconds;

	parse(argc, argv, &o);
	setvbuf(stdout, NULL, _IOLBF, 0);
	operators_register();
	programs_register();
	sqlite_register();
	warm_up();
	begin = host_seconds();
	if (o.plants)
		return plants_play(o.schedules, o.jobs, o.rare, play, &o) ? 0 : 1;
	if (o.shrink)
		return shrink(o.seed, o.from);
	if (o.has_points) {
		play_points(&o, &reports);
	} else if (o.one) {
		struct report report = { 0 };

		play(&o, o.from, &report);
		reports_add(&reports, &report);
	} else {
		host_run_all(o.from, o.schedules, o.jobs, play, &o, &reports);
	}
	seconds = host_seconds() - begin;
	fprintf(stderr, "%.1f s, %.1f schedules a second\n", seconds,
		(double)reports.schedules / seconds);
	return reports_print(&reports, argv[0], o.seed, !o.one) ? 0 : 1;
}
