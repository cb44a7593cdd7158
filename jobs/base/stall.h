/*
 * Is the command still getting on? A pure judge: time and signs of life come in
 * with each call, a verdict comes out; no clock, no I/O, no memory of its own.
 *
 * What counts as progress. Before the first step any output does. Once a step
 * was seen, only these do: a step larger than all before, bytes of a checkpoint,
 * a message of the compiler, bytes in the compile cache. Where no metric tells
 * steps, output is all there is and counts all along.
 *
 * How long may it be silent (doing → limit, without "fixed")
 *   start       nothing was printed yet                               30 min
 *   first_step  it printed, no step was seen yet                      60 min
 *   compile     the compiler began and has not ended                   2 h
 *   save        a checkpoint grew and is not complete, nor has a step
 *               followed: max(30 min, 2 × longest silence in a save, step limit)
 *   step        as long as it has been stepping (the first evaluation), within 5
 *               to 15 min, plus 5 × the 99th percentile of the last 200 gaps
 *               between steps; at least 2 × the longest gap seen (an evaluation)
 *               and 2 × the longest silence before a save's first bytes
 *               (gathering); at least 45 min before ten gaps are known, of which
 *               the first five do not count: graphs are still being compiled
 * "fixed" replaces the limit of steps; the others are then never below it.
 *
 * A false alarm repeats in each attempt at the same place and so ends the run,
 * a hang caught late costs minutes once: hence the generous side everywhere. For
 * the same reason a progress bar that is being redrawn (lines ended by a carriage
 * return) is no progress, but puts the verdict off by up to an hour.
 *
 * The numbers are those of the field: NVIDIA's resiliency extension learns 5 ×
 * the largest, leaves out the first five and without that knowledge waits 45 to
 * 60 min; HyperPod's examples wait 5 to 10 min for a step line.
 */
#ifndef STK_BASE_STALL_H
#define STK_BASE_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"

#define STALL_GAPS 200 /* of which the percentile is taken */

enum stall_mode { STALL_OFF, STALL_AUTO, STALL_FIXED };

enum stall_doing {
	DOING_START,
	DOING_COMPILE,
	DOING_FIRST_STEP,
	DOING_STEP,
	DOING_SAVE,
	DOING_COUNT
};
extern const char *const stall_doing_names[DOING_COUNT]; /* as reports spell them */

struct stall {
	enum stall_mode mode;
	int64_t fixed_ms;
	bool tells_steps; /* a metric does */

	enum stall_doing doing;
	struct mono last;   /* progress */
	struct mono drawn;  /* a progress bar */
	struct mono looked; /* the last judgement */

	bool stepped;
	int64_t step; /* the largest */
	struct mono first_step_at, step_at;
	bool compiled, saved; /* since that step */
	bool waits;           /* for another's compilation, and nothing else was heard since */

	int64_t gaps[STALL_GAPS]; /* ms, a ring */
	size_t gap_count;         /* all ever noted */
	size_t skipped;           /* the first ones, not noted */
	int64_t longest_gap;
	int64_t longest_prelude, longest_pause; /* before and in a save */
};

struct stall_verdict {
	enum stall_doing doing;
	int64_t silent_ms, limit_ms;
};

/* `limit_ms` counts with STALL_FIXED only. Starts the clock. */
void stall_init(struct stall *stall, enum stall_mode mode, int64_t limit_ms, bool tells_steps,
		struct mono now);

/* Signs of life, in any order; `now` never goes back. */
void stall_output(struct stall *stall, struct mono now, bool drawn); /* no step in it */
void stall_step(struct stall *stall, struct mono now, int64_t step);
void stall_compile(struct stall *stall, struct mono now, bool going_on); /* or done */
/* It waits for another process that compiles, and says so again and again: only the
 * first time is a sign of life, as the beginning of a compilation is. */
void stall_wait(struct stall *stall, struct mono now);
void stall_cache(struct stall *stall, struct mono now); /* it grew */
void stall_bytes(struct stall *stall, struct mono now); /* of a checkpoint */
void stall_saved(struct stall *stall);                  /* it is complete: no progress */
/* The metric has failed us: from now on any output is progress. */
void stall_forget_steps(struct stall *stall);
/* What was told so far came all at once, for it is from before: it teaches no pace, and the
 * silence begins now. */
void stall_caught_up(struct stall *stall, struct mono now);

/* True once it is silent for longer than its limit. To be asked every few seconds:
 * a pause of STALL_BLIND_MS or more between two looks means that we ourselves were
 * stopped or the machine slept, and is not held against the command. */
#define STALL_BLIND_MS 30000
bool stall_judge(struct stall *stall, struct mono now, struct stall_verdict *ret);

/* The limit that holds for what it is doing. */
int64_t stall_limit(const struct stall *stall);

#endif
