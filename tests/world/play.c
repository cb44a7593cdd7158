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
#include "tests/world/kernel_internal.h"
#include "tests/world/losses.h"
#include "tests/world/operators.h"
#include "tests/world/points.h"
#include "tests/world/programs.h"
#include "tests/world/rules.h"
#include "tests/world/shrink.h"
#include "tests/world/story.h"
#include "tests/world/tree.h"

#define LOOK_NS (10 * WORLD_S) /* between two looks of the person or the timer */

#define RUNS_MAX 6

/* A run ends so long after it began and the last fault came: two hours, and those in which a
 * training that hangs is waited for, of which the policy allows many; a fault may have cost a whole
 * training, too. */
#define LONGEST_NS (4 * 3600 * WORLD_S)
#define HANG_NS    (3600 * WORLD_S) /* until the agent ends a training without a first step */
#define TRAININGS  2

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

static bool is_driver_of(const struct process *process, const char *run)
{
	return process->argv && process->argv[0] && process->argv[1] &&
	       strcmp(process->argv[0], "stoker") == 0 && strcmp(process->argv[1], "stop") != 0 &&
	       strcmp(process->argv[2], run) == 0;
}

static bool has_driver(const char *run)
{
	for (const struct process *process = processes; process; process = process->next)
		if (process->state == PROCESS_ALIVE && is_driver_of(process, run))
			return true;
	return false;
}

/* None of those that it has does anything: they are stopped, or their machine sleeps. */
static bool is_driver_still(const char *run)
{
	for (const struct process *process = processes; process; process = process->next)
		if (process->state == PROCESS_ALIVE && is_driver_of(process, run) &&
		    process_runs(process))
			return false;
	return true;
}

bool schedule_is_neighbour(const char *run)
{
	return playing && playing->neighbour[0] && strcmp(playing->neighbour, run) == 0;
}

void schedule_name_run(struct schedule *schedule)
{
	schedule->runs++;
	snprintf(schedule->run, sizeof schedule->run, "r%" PRIu64 "-%d", schedule->number,
		 schedule->runs);
}

bool schedule_serves_neighbour(const struct process *process)
{
	for (int i = 0; playing->neighbour[0] && process && process->argv && process->argv[i]; i++)
		if (strstr(process->argv[i], playing->neighbour))
			return true;
	return false;
}

/* Of all runs so far that the rules look at. */
static int64_t count_events(void)
{
	int64_t events = 0;

	for (const struct story *story = stories; story; story = story->next)
		events += schedule_is_neighbour(story->run) ? 0 : story->count;
	return events;
}

/* Begins another run in the same world, with the cache that the last one has left. */
static void begin_next_run(void)
{
	rules_check_end();
	rules_next_run();
	schedule_name_run(playing);
	playing->ended_ns = 0;
	playing->began_ns = now_ns;
	(void)operator_start(playing, 0, "run", playing->run);
}

/* A run is begun, and whoever drives it may be gone, or not: a timer starts `stoker resume` again.
 */
static void drive_on(const char *run)
{
	int host = playing->hosts[1] ? (int)chance_below(2) : 0;
	bool wanted = !has_driver(run) ||
		      (story_of(run) &&
		       (habits_timer_starts() || (habits_are_impatient() && is_driver_still(run))));

	if (wanted && !playing->hosts[host]->off)
		(void)operator_start(playing, host, story_of(run) ? "resume" : "run", run);
}

static bool has_ended(const char *run)
{
	return story_last(story_of(run), EV_RUN_ENDED, 0) && !has_driver(run);
}

static void on_look(void *arg)
{
	bool neighbour_goes_on = playing->neighbour[0] && !has_ended(playing->neighbour);

	(void)arg;
	for (int host = 0; host < 2 && playing->hosts[host] && playing->hosts_to_boot; host++)
		if (playing->hosts[host]->off)
			machine_boot(playing->hosts[host]);
	if (story_last(story_of(playing->run), EV_RUN_ENDED, 0) && playing->ended_ns == 0)
		playing->ended_ns = now_ns;
	if (neighbour_goes_on)
		drive_on(playing->neighbour);
	if (!playing->ended_ns)
		drive_on(playing->run);
	else if (!has_driver(playing->run) && !playing->one_run && playing->runs < RUNS_MAX &&
		 count_events() < EVENTS_WANTED)
		begin_next_run();
	else if (!has_driver(playing->run) && !neighbour_goes_on)
		world_stop();
	world_at(now_ns + LOOK_NS, on_look, NULL);
}

static void begin_neighbour(void *arg)
{
	(void)arg;
	(void)operator_start(playing, playing->hosts[1] ? 1 : 0, "run", playing->neighbour);
}

static void begin_first(void *arg)
{
	(void)arg;
	if (!has_driver(playing->run) && !playing->hosts[0]->off)
		(void)operator_start(playing, 0, "run", playing->run);
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
	faults_on_events(count_events(), story);
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
	if (playing->setting.step_ns > 30 * WORLD_S)
		return (3600 + chance_below(3600)) * WORLD_S;
	if (chance_one_in(40))
		return (300 + chance_below(6900)) * WORLD_S;
	/* Machines of a service are waited for, attempt by attempt. */
	if (playing->setting.step_ns > 2 * WORLD_S || playing->setting.cloud)
		return (30 + chance_below(300)) * WORLD_S;
	return (10 + chance_below(chance_one_in(4) ? 300 : 60)) * WORLD_S;
}

/* Since the faults are over: a run that has not ended may wait for a person. */
static bool says_what_it_waits_for(const char *run)
{
	const struct story_event *last = story_last(story_of(run), EV_DRIVER_WAITING, 0);

	return last && last->at_ns > playing->calm_from_ns;
}

/* Returns how many attempts of the run were ended because they hung. */
static int64_t count_hangs(const struct story *story)
{
	int64_t hangs = 0;

	for (int64_t i = 0; story && i < story->count; i++) {
		const struct event *ev = &story->events[i].event;

		hangs += ev->kind == EV_ATTEMPT_ENDED && ev->class == CLASS_TIMEOUT_HANG;
	}
	return hangs;
}

/* Of the run that plays. */
static int64_t latest_end_ns(void)
{
	int64_t calm_ns = playing->calm_from_ns, began_ns = playing->began_ns;

	return (began_ns > calm_ns ? began_ns : calm_ns) + LONGEST_NS +
	       count_hangs(story_of(playing->run)) * HANG_NS +
	       TRAININGS * playing->setting.steps * playing->setting.step_ns;
}

void schedule_play(struct schedule *schedule)
{
	playing = schedule;
	story_reset();
	rules_reset();
	losses_reset();
	if (playing->script)
		script_load(playing->script, playing);
	setting_make(playing);
	playing->calm_from_ns = calm_from();
	habits_draw();
	faults_draw();
	if (playing->script)
		script_load(playing->script, playing);
	/* A script plays as the schedule did of which it was made, whatever is drawn today. */
	chance_seed(playing->seed, ~playing->number);
	faults_begin();
	if (playing->at_places)
		points_hook();
	world_observer = observe;
	if (playing->setting.neighbour)
		snprintf(playing->neighbour, sizeof playing->neighbour, "beside-%" PRIu64,
			 playing->number);
	if (playing->setting.neighbour_first) {
		begin_neighbour(NULL);
		world_at(chance_below(5 * WORLD_S), begin_first, NULL);
	} else {
		begin_first(NULL);
		if (playing->setting.neighbour)
			world_at(chance_below(3 * WORLD_S), begin_neighbour, NULL);
	}
	world_at(LOOK_NS, on_look, NULL);
	for (int64_t until = 0; until < latest_end_ns();) {
		until = latest_end_ns();
		world_play_until(until);
	}
	if (!playing->ended_ns && !says_what_it_waits_for(playing->run))
		rule_breaks("C14", "the run has not ended after %" PRId64 " h",
			    now_ns / WORLD_S / 3600);
	if (playing->neighbour[0] && !has_ended(playing->neighbour) &&
	    !says_what_it_waits_for(playing->neighbour))
		rule_breaks("C14", "the run beside it has not ended after %" PRId64 " h",
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
