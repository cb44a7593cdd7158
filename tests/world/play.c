/* How a schedule plays: see play.h. */
#include "tests/world/play.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "jobs/base/exitcode.h"
#include "tests/world/faults.h"
#include "tests/world/habits.h"
#include "tests/world/operators.h"
#include "tests/world/points.h"
#include "tests/world/programs.h"
#include "tests/world/rules.h"
#include "tests/world/shrink.h"
#include "tests/world/story.h"
#include "tests/world/tree.h"

#define LOOK_NS (10 * WORLD_S) /* between two looks of the person or the timer */

/* Runs follow one another until so many events have been seen. */
#define EVENTS_WANTED 60
#define RUNS_MAX      6

#define LONGEST_NS (72 * 3600 * WORLD_S)

struct schedule *playing;

void trace_line(const char *format, ...)
{
	va_list args;

	if (!playing->trace)
		return;
	printf("%12.6f ", (double)now_ns / 1e9);
	if (self)
		printf("%s:%d %-12s ", self->machine->host, (int)self->pid, self->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ---- those who start drivers ---- */

static bool is_driver(const struct process *process)
{
	return process->argv && process->argv[0] && process->argv[1] &&
	       strcmp(process->argv[0], "stoker") == 0 && strcmp(process->argv[1], "stop") != 0;
}

static bool has_driver(void)
{
	for (const struct process *process = processes; process; process = process->next)
		if (process->state == PROCESS_ALIVE && is_driver(process))
			return true;
	return false;
}

void schedule_name_run(struct schedule *schedule)
{
	schedule->runs++;
	snprintf(schedule->run, sizeof schedule->run, "r%" PRIu64 "-%d", schedule->number,
		 schedule->runs);
}

static bool has_events_enough(void)
{
	int64_t events = 0;

	for (const struct story *story = stories; story; story = story->next)
		events += story->count;
	return events >= EVENTS_WANTED;
}

/* Begins another run in the same world, with the cache that the last one has left. */
static void begin_next_run(void)
{
	rules_check_end();
	rules_next_run();
	schedule_name_run(playing);
	playing->ended_ns = 0;
	(void)operator_start(playing, 0, "run");
}

/* The run is begun, and whoever drives it may be gone: a timer starts `stoker resume` again. */
static void on_look(void *arg)
{
	const struct story *story = story_of(playing->run);

	(void)arg;
	for (int host = 0; host < 2 && playing->hosts[host] && playing->hosts_to_boot; host++)
		if (playing->hosts[host]->off)
			machine_boot(playing->hosts[host]);
	if (story_last(story, EV_RUN_ENDED, 0) && playing->ended_ns == 0)
		playing->ended_ns = now_ns;
	if (playing->ended_ns && !has_driver()) {
		if (playing->scenario || playing->runs == RUNS_MAX || has_events_enough()) {
			world_stop();
			return;
		}
		begin_next_run();
	}
	if (!playing->ended_ns && !has_driver()) {
		int host = playing->hosts[1] ? (int)chance_below(2) : 0;

		if (!playing->hosts[host]->off)
			(void)operator_start(playing, host, story ? "resume" : "run");
	}
	world_at(now_ns + LOOK_NS, on_look, NULL);
}

/* ---- the play ---- */

/* Ends of processes, for the timeline. */
static void trace_ends(void)
{
	static bool told[4096];

	for (const struct process *p = processes; p; p = p->next)
		if (p->state != PROCESS_ALIVE && p->number < STK_LENGTH(told) && !told[p->number]) {
			told[p->number] = true;
			trace_line("%s:%d %s ended: %s %d", p->machine->host, (int)p->pid, p->name,
				   WIFSIGNALED(p->status) ? "signal" : "exit",
				   WIFSIGNALED(p->status) ? WTERMSIG(p->status)
							  : WEXITSTATUS(p->status));
		}
}

static void observe(void)
{
	const struct story *story = story_of(playing->run);
	static const struct story *traced_of;
	static int64_t traced;

	if (story != traced_of)
		traced = 0;
	traced_of = story;
	for (; playing->trace && story && traced < story->count; traced++) {
		char *text = json_dumps(story->events[traced].row, JSON_COMPACT);

		trace_line("%.300s", text);
		free(text);
	}
	if (playing->trace)
		trace_ends();
	rules_check();
	if (rules_broken)
		world_stop();
}

/* What the commands of stoker wrote to their terminals. */
static void print_outputs(void)
{
	for (int host = 0; host < 2 && playing->hosts[host]; host++) {
		char *text = tree_get(playing->hosts[host], "/srv/user/out", NULL);

		printf("%s\n%s", playing->hosts[host]->host, text ? text : "");
		free(text);
	}
}

/* Faults last for about as long as a run does without them; sometimes for hours. */
static int64_t calm_from(void)
{
	if (playing->setting.calm)
		return 0;
	if (chance_one_in(40))
		return (300 + chance_below(6900)) * WORLD_S;
	return (10 + chance_below(chance_one_in(8) ? 300 : 60)) * WORLD_S;
}

void schedule_play(struct schedule *schedule)
{
	playing = schedule;
	story_reset();
	rules_reset();
	if (playing->script)
		script_load(playing->script, &playing->seed, &playing->number);
	setting_make(playing);
	playing->calm_from_ns = calm_from();
	habits_draw();
	/* Drawn also where a script follows: chance goes on as in the schedule that it comes from.
	 */
	faults_draw();
	if (playing->script)
		script_load(playing->script, &playing->seed, &playing->number);
	faults_begin();
	if (playing->at_places)
		points_hook();
	world_observer = observe;
	(void)operator_start(playing, 0, "run");
	world_at(LOOK_NS, on_look, NULL);
	world_play_until(LONGEST_NS);
	if (!rules_broken && !playing->ended_ns)
		rule_breaks("C14", "the run has not ended after %" PRId64 " h",
			    now_ns / WORLD_S / 3600);
	if (!rules_broken)
		rules_check_end();
	if (playing->trace)
		print_outputs();
}

bool schedule_clock_stepped(void)
{
	return playing->clock_stepped;
}
