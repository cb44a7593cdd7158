/*
 * The ledger: every millisecond of a run in exactly one bin, from run.created to run.ended (or
 * to now). Computed from the events of the journal alone; pure.
 *
 * A stretch of time gets its bin when an event says what it was spent on. Until then it is open,
 * and ledger_at() closes it as what it looks like. So the bins add up to the wall clock at any
 * moment, to the millisecond, and time without evidence is `unknown`.
 *
 * For saving, only the duration is reported, and later. It is taken out of the steps of its
 * attempt, but never more than these took beyond the time of as many steps without a save:
 * asynchronous saving hardly slows them down.
 *
 * Compiling in training is reported too, when it is over. Time that was put into other bins of
 * the attempt by then, because a step was reported first, is taken out of them again: out of
 * steps, then out of the time before the first step.
 *
 * Time in which a job held its machines is counted a second time by the same bins: it is the
 * time that costs. It begins when the engine says, else with the claim, and ends when the engine
 * says, else with the attempt. A service may bill another figure for an attempt (for a Spot job,
 * less): both are kept. Machines kept from one attempt to the next cost as well, and are in no
 * bin.
 */
#ifndef STK_FLOW_LEDGER_H
#define STK_FLOW_LEDGER_H

#include "jobs/base/step_rate.h"
#include "jobs/flow/event.h"

/* Each with the events that show time in it. */
enum ledger_bin {
	BIN_QUEUE,      /* attempt.intended to attempt.claimed; cache.waiting to cache.claimed or
			   cache.checked */
	BIN_PROVISION,  /* the engine's word before attempt.claimed; part of queue until then */
	BIN_PULL,       /* the engine's word of its machines to attempt.claimed */
	BIN_SETUP,      /* attempt.claimed to the first step of a fresh training, or to
			   attempt.started */
	BIN_HEALTH,     /* since and finished of health.checked */
	BIN_PRECOMPILE, /* attempt.started to attempt.ended of precompile */
	BIN_VERIFY,     /* before cache.checked; attempt.ended to cache.verified */
	BIN_RESTORE,    /* before checkpoint.chosen; attempt.started to the first step of a resumed
			   training */
	BIN_STEPS,      /* train.progress with a larger step, train.stretch; a training that ended
			   well */
	BIN_JIT,        /* the seconds of jit.compiled */
	BIN_CHECKPOINT, /* the seconds of checkpoint.complete, as far as they slowed the steps; a
			   request or limit.reached to attempt.ended of a training */
	BIN_REPLAYED,   /* train.progress of steps that an attempt before had reached */
	BIN_HANG,       /* the hang of attempt.ended */
	BIN_BACKOFF,    /* attempt.ended to attempt.intended */
	BIN_EVALUATE,   /* attempt.started to attempt.ended of evaluate */
	BIN_INFER,      /* the same of infer */
	BIN_IDLE,    /* driver.left, or the newest event but requests, to driver.took_over, while no
			attempt was under way */
	BIN_UNKNOWN, /* nothing: no driver looked, or the engine did not show it */
	BIN_COUNT
};
extern const char *const ledger_bin_names[BIN_COUNT];

/* Stage of the run, as far as time is concerned. */
enum ledger_stage {
	STAGE_NONE,  /* no run.created yet */
	STAGE_CHECK, /* is the cache warm? */
	STAGE_READY, /* the next attempt is about to be intended */
	STAGE_QUEUE, /* intended or submitted, not claimed */
	STAGE_SETUP, /* claimed; the command has not begun, as far as is known */
	STAGE_FIRST, /* the command runs; a training has shown no step yet */
	STAGE_STEPS, /* a training that has shown a step */
	STAGE_VERIFY,
	STAGE_BACKOFF, /* an attempt failed; the next one waits */
	STAGE_DONE, /* the last attempt ended well, or was never there and is not wanted any more */
	STAGE_OVER  /* run.ended */
};

/* Time of an attempt that was not observed: between two drivers, or while an engine did not show
 * it. It is `unknown`, unless an event accounts for it: a claim or a start with its own time,
 * the steps that an agent saw (train.stretch), a hang. */
struct ledger_hole {
	struct utc from, to;
};
#define LEDGER_HOLES_MAX 16

/* All times are those of the journal: UTC, milliseconds. */
struct ledger {
	int64_t ms[BIN_COUNT];
	int64_t held_ms[BIN_COUNT]; /* the part of `ms` in which a job held its machines */
	struct utc begun, mark, at; /* run.created; end of the time in bins; newest event */
	struct utc driven_at;       /* newest event that is no request: a driver wrote it */
	enum ledger_stage stage;
	bool held;
	struct utc released;     /* end of `held`; ms 0: not known */
	struct utc held_since;   /* the begin of the holding */
	int64_t attempt_held_ms; /* time held by the attempt, in all bins */
	int64_t billed_ms;       /* time of ended attempts: as the service bills it, else held */
	bool has_billed;         /* a service billed at least one of them */
	int64_t kept_ms;         /* time machines were kept between attempts */
	int64_t paid_of[PHASE_COUNT]; /* of billed_ms and kept_ms, what each phase took */
	enum phase ended_phase;       /* newest ended attempt with machines: its phase, */
	int64_t ended_attempt;        /* number of that, 0: none; */
	enum phase ended_payer;       /* as `payer` of that */
	bool kept_reported;           /* attempt.kept was counted for it */
	enum phase phase;             /* phase of the attempt */
	enum phase payer;             /* the phase, of a stage's phase 1 the stage: so priced */
	int64_t attempt;
	int64_t step, reached;      /* step of the attempt; highest of the attempts before */
	int64_t jit_reported_ms;    /* compiling reported by the attempt so far */
	int64_t jit_ms;             /* compiling known to lie in the open stretch, */
	struct utc jit_at;          /* and before this time */
	int64_t saving_ms;          /* saving reported by the attempt, not yet found in steps */
	int64_t steps_ms, made;     /* time of the attempt in BIN_STEPS; the steps made in that */
	int64_t again_ms, first_ms; /* time of the attempt in BIN_REPLAYED; before its first step */
	struct step_rate fastest;   /* of the attempt without saving */
	bool saving_reported;       /* saving was reported in the open stretch */
	struct utc until;           /* end of a backoff */
	struct utc away_since;      /* driver.left; ms 0: a driver is active */
	struct utc back_at;         /* newest driver.took_over */
	struct ledger_hole holes[LEDGER_HOLES_MAX]; /* in the open stretch, in order */
	int hole_count;
	bool stopping; /* the run is to end: nothing is submitted any more */
	bool salvaged; /* events were lost, and it is not settled yet what was under way */
	bool lost;     /* the engine does not show the attempt, since unseen_since */
	struct utc unobserved_since; /* nothing was seen of the attempt since; ms 0: it is seen */
	bool resumed, saved, ending; /* the attempt: from a checkpoint; made one; is to end */
};

/* Adds the next event, in order of seq. A zeroed ledger is empty. */
void ledger_add(struct ledger *ledger, const struct event *ev);

/* Marks the run as undriven since the newest event but requests; the caller learnt that by other
 * means. */
void ledger_undriven(struct ledger *ledger);
/* Returns since when the run is not observed, as far as the events tell; ms 0: it is, or it is
 * over. */
struct utc ledger_unobserved_since(const struct ledger *ledger);

/* The bins at `now` (never before the newest event; ignored once the run has ended):
 * their sum is `total_ms`. */
struct ledger_view {
	int64_t ms[BIN_COUNT], held_ms[BIN_COUNT];
	int64_t total_ms, held_total_ms;
	int64_t kept_ms;   /* time machines were kept between attempts: in no bin */
	int64_t billed_ms; /* time of ended attempts as billed, kept_ms included; -1: no service
			      billed one */
	int64_t paid_ms;   /* best known figure: billed, else held; kept_ms included */
	int64_t paid_of[PHASE_COUNT]; /* the part of it that jobs of each phase took */
};
void ledger_at(const struct ledger *ledger, struct utc now, struct ledger_view *ret);

#endif
