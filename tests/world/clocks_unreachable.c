/*
 * C8. Unreachable: while a job is under way a driver gives up (75, or 4) only after
 * limits.unreachable without one answer, on any engine and state, counted over takeovers. One
 * answer resets it.
 *
 * Who must answer are two: the engine, of the job, and the journal. A driver may go when one of
 * them has been silent for so long. Of those that may go at any time, one had a signal (8), one was
 * taken over (7).
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
} silence;

static void reset(void)
{
	memset(&silence, 0, sizeof silence);
}

static void on_engine(const struct story *story, const struct engine_word *word)
{
	(void)story;
	if (word->answered)
		silence.engine_ns = now_ns;
}

static void on_journal(const struct process *who, enum journal_word word)
{
	(void)who;
	if (word != JOURNAL_REFUSED)
		silence.journal_ns = now_ns;
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
	} else if (told->event.kind == EV_ATTEMPT_INTENDED) {
		silence.engine_ns = now_ns;
	}
}

static void on_second(const struct story *story)
{
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
