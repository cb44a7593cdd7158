/*
 * Decides whether the command still makes progress. Pure functions: time and signs of life come in
 * with each call, a finding comes out; no clock, no I/O, no allocation.
 *
 * Progress is, before the first step, any output. Once a step was seen, only these: a step larger
 * than all before, bytes of a checkpoint, a message of the compiler, bytes in the compile cache. If
 * no metric reports steps, any output counts throughout.
 *
 * Silence limits (doing → limit, without "fixed")
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
 * "fixed" replaces the limit of steps; the other limits are then never below it.
 *
 * A false alarm repeats in each attempt at the same place and so ends the run; a hang caught late
 * costs minutes once. So all limits are generous. For the same reason a progress bar that is being
 * redrawn (lines ended by a carriage return) is not progress, but delays the finding by up to an
 * hour.
 *
 * The numbers follow existing tools: NVIDIA's resiliency extension learns 5 × the largest gap,
 * leaves out the first five and waits 45 to 60 min until it has learnt; HyperPod's examples wait 5
 * to 10 min for a step line.
 */
#ifndef STK_BASE_STALL_H
#define STK_BASE_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"

#define STALL_GAPS 200 /* newest gaps, from which the percentile is taken */

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
	bool reports_steps; /* a metric reports steps */

	enum stall_doing doing;
	struct mono last;    /* last progress */
	struct mono drawn;   /* last redraw of a progress bar */
	struct mono checked; /* the last check */

	bool stepped;
	int64_t step; /* the largest */
	struct mono first_step_at, step_at;
	bool compiled, saved; /* since that step */
	bool waits; /* waits for another process that compiles; no other sign of life since */

	int64_t gaps[STALL_GAPS]; /* ms, a ring */
	size_t gap_count;         /* all ever noted */
	size_t skipped;           /* the first ones, not noted */
	int64_t longest_gap;
	int64_t longest_prelude, longest_pause; /* silence before and within a save */
};

struct stall_silence {
	enum stall_doing doing;
	int64_t silent_ms, limit_ms;
};

/* `limit_ms` is used with STALL_FIXED only. The silence begins at `now`. */
void stall_init(struct stall *stall, enum stall_mode mode, int64_t limit_ms, bool reports_steps,
		struct mono now);

/* Signs of life, in any order; `now` never goes back. */
void stall_output(struct stall *stall, struct mono now, bool drawn); /* no step in it */
/* A step that its node has not reported before, nor a later one. The job is where its foremost node
 * is; a node that follows is a sign of life as well. */
void stall_step(struct stall *stall, struct mono now, int64_t step);
void stall_compile(struct stall *stall, struct mono now, bool going_on); /* or done */
/* The command waits for another process that compiles, and repeats that message. Only the first one
 * is a sign of life, as the beginning of a compilation is. */
void stall_wait(struct stall *stall, struct mono now);
void stall_cache(struct stall *stall, struct mono now); /* the compile cache grew */
void stall_bytes(struct stall *stall, struct mono now); /* a checkpoint grew */
void stall_saved(struct stall *stall); /* a checkpoint is complete; not progress in itself */
/* The metric does not work: from now on any output is progress. */
void stall_forget_steps(struct stall *stall);
/* Everything noted so far came all at once, because it is from before: no gaps are learnt from it,
 * and the silence begins at `now`. */
void stall_caught_up(struct stall *stall, struct mono now);

/* True once the command is silent for longer than its limit. Call it every few seconds: a pause of
 * STALL_BLIND_MS or more between two calls means that stoker itself was stopped or the machine
 * slept, and does not count as silence. */
#define STALL_BLIND_MS 30000
bool stall_check(struct stall *stall, struct mono now, struct stall_silence *ret);

/* True if the command has been silent for half of its limit or longer; that half is at least as
 * long as any gap seen before. `ret` gets the limit that stall_check() would use now. Changes no
 * state. */
bool stall_is_half(const struct stall *stall, struct mono now, struct stall_silence *ret);

/* The silence limit for the current activity. */
int64_t stall_limit(const struct stall *stall);

#endif
