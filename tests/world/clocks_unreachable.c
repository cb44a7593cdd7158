/*
 * C8. Unreachable: while a job is under way a driver gives up (75, or 4) only after
 * limits.unreachable without one answer, on any engine and state, counted over takeovers. One
 * answer resets it.
 *
 * Who must answer are two: the engine, of the job, and the journal. A driver may go when one of
 * them has been silent for so long. Of those that may go at any time, one had a signal (8), one was
 * taken over (7).
 *
 * Nor does it wait on for a job that nobody has seen for so long, however often it looks for it and
 * submits it again. The patience of who takes over begins again.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "jobs/base/exitcode.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/launches.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"

static struct {
	const struct process *driver; /* that is not judged yet */
	bool had_signal;
	int64_t engine_ns, journal_ns; /* their last answers, to anybody */
	bool unwritable;               /* what was to be journalled last was refused */
	struct stretch unseen;         /* of the driver, that cannot see the job */
	int64_t unseen_ns;             /* the same, when it said that it leaves */
} silence;

static void reset(void)
{
	memset(&silence, 0, sizeof silence);
}

static void on_engine(const struct story *story, const struct engine_word *word)
{
	(void)story;
	/* An accepted stop tells nothing of the job: if it counted, a driver whose looks fail would
	 * stop the job for ever. */
	if (word->answered && word->what != WORD_STOP)
		silence.engine_ns = now_ns;
	if (word->there)
		silence.unseen.who = NULL;
}

static void on_journal(const struct process *who, enum journal_word word)
{
	/* A journal that can be read need not be one that can be written. */
	if (word == JOURNAL_WAS_WRITTEN || (word == JOURNAL_WAS_READ && !silence.unwritable))
		silence.journal_ns = now_ns;
	if (word != JOURNAL_WAS_READ)
		silence.unwritable = word == JOURNAL_REFUSED;
	if (word == JOURNAL_REFUSED && who == silence.unseen.who)
		stretch_begin(&silence.unseen, who);
}

static void on_signal(const struct process *to, int signo)
{
	if (to == silence.driver && signo != SIGUSR1 && signo != SIGCHLD)
		silence.had_signal = true;
}

/* It has ended by itself: was it time to? */
static void judge(const struct story *story)
{
	int status = silence.driver->status, code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	int64_t longest = now_ns - (silence.engine_ns < silence.journal_ns ? silence.engine_ns
									   : silence.journal_ns);
	const struct flow *flow = &story->shadow;

	if (code < 0 || silence.driver->machine->off || code == EXIT_BUSY ||
	    code == EXIT_DETACHED || silence.had_signal || !seen_has_job(story) ||
	    launch_is_over(story->run, flow->phase, flow->attempt))
		return;
	/* The driver looked for the job and submitted it again until its patience was over. */
	if (silence.unseen_ns >= flow->policy.unreachable_ms * WORLD_MS - 2 * WORLD_S)
		return;
	if (longest < flow->policy.unreachable_ms * WORLD_MS - 2 * WORLD_S)
		rule_breaks("C8",
			    "a driver gave up with %d while %s %d is under way and all answered "
			    "%.1f s ago",
			    code, flow_phase_names[flow->phase], (int)flow->attempt,
			    (double)longest / 1e9);
}

static void on_event(const struct story *story, int64_t index)
{
	const struct story_event *told = &story->events[index];

	if (told->event.kind == EV_DRIVER_TOOK_OVER) {
		silence.driver = told->writer;
		silence.had_signal = false;
		silence.unseen_ns = 0;
	} else if (told->event.kind == EV_DRIVER_LEFT && silence.unseen.who == told->writer) {
		silence.unseen_ns = stretch_ns(&silence.unseen);
	} else if (told->event.kind == EV_ATTEMPT_INTENDED) {
		silence.engine_ns = now_ns;
	}
}

/* It knows of a job that may be under way, and does not see it. */
static void check_patience(const struct story *story)
{
	const struct process *driver = seen_driver();
	const struct flow *flow = &story->shadow;
	bool unseen =
		seen_has_job(story) && !flow->leaving &&
		(flow->attempt_state <= ATTEMPT_UNCERTAIN || flow->attempt_state == ATTEMPT_LOST);

	if (!driver || !unseen) {
		silence.unseen.who = NULL;
		return;
	}
	if (silence.unseen.who != driver)
		stretch_begin(&silence.unseen, driver);
	if (stretch_ns(&silence.unseen) >
	    flow->policy.unreachable_ms * WORLD_MS + figure_ns(C8_GIVES_UP))
		rule_breaks("C8", "%s %d was not seen for %.1f s and its driver waits on",
			    flow_phase_names[flow->phase], (int)flow->attempt,
			    (double)stretch_ns(&silence.unseen) / 1e9);
}

static void on_second(const struct story *story)
{
	check_patience(story);
	if (!silence.driver || silence.driver->state == PROCESS_ALIVE)
		return;
	judge(story);
	silence.driver = NULL;
}

const struct clock_rule clock_unreachable = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_engine = on_engine,
	.on_journal = on_journal,
	.on_signal = on_signal,
};
