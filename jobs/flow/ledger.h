/*
 * The ledger: every millisecond of a run in exactly one bin, from run.created to
 * run.ended (or to now). Folded from the events of the journal alone; pure.
 *
 * A stretch of time gets its bin when an event says what it was spent on; until
 * then it is open, and ledger_at() closes it as what it looks like. So the bins
 * add up to the wall clock at any moment, to the millisecond, and what nothing
 * speaks for is `unknown`.
 *
 * Of saving nothing tells but its duration, and that later. It is taken out of the
 * steps of its attempt, but never more than these took beyond what as many steps
 * take where nothing was saved: with asynchronous saving they hardly slow down.
 *
 * Of compiling in training that is told too, when it is over. What had been put into
 * other bins of the attempt by then, because a step was told first, is taken out of them
 * again: steps, then what came before the first of them.
 *
 * Time in which a job held its machines is counted a second time by the same bins: that is
 * what costs. It goes from the moment that the engine tells of, or its claim, to the moment that
 * the engine tells of, or its end. What a service bills of an attempt may be another figure (of
 * a Spot job it is less): both are kept. Machines kept from one attempt to the next cost as well,
 * and are in no bin.
 */
#ifndef STK_FLOW_LEDGER_H
#define STK_FLOW_LEDGER_H

#include "jobs/flow/event.h"

enum ledger_bin {
	BIN_QUEUE,
	BIN_PROVISION, /* until an engine tells of it, part of queue */
	BIN_PULL,
	BIN_SETUP,
	BIN_HEALTH,
	BIN_PRECOMPILE,
	BIN_VERIFY,
	BIN_RESTORE,
	BIN_STEPS,
	BIN_JIT,
	BIN_CHECKPOINT,
	BIN_REPLAYED,
	BIN_HANG,
	BIN_BACKOFF,
	BIN_EVALUATE,
	BIN_INFER,
	BIN_IDLE,
	BIN_UNKNOWN,
	BIN_COUNT
};

struct ledger_row {
	const char *name;
	const char *evidence; /* the events that time in this bin rests on */
};
extern const struct ledger_row ledger_rows[BIN_COUNT];

/* What the run is at, as far as time is concerned. */
enum ledger_stage {
	STAGE_NONE,  /* no run.created yet */
	STAGE_CHECK, /* is the cache warm? */
	STAGE_READY, /* the next attempt is about to be intended */
	STAGE_QUEUE, /* intended or submitted, not claimed */
	STAGE_SETUP, /* claimed; its command has not begun as far as is known */
	STAGE_FIRST, /* the command runs; a training has shown no step yet */
	STAGE_STEPS, /* a training that has shown a step */
	STAGE_VERIFY,
	STAGE_BACKOFF, /* an attempt failed; the next one waits */
	STAGE_DONE,    /* the last attempt ended well */
	STAGE_OVER     /* run.ended */
};

/* All times are those of the journal: UTC, milliseconds. */
struct ledger {
	int64_t ms[BIN_COUNT];
	int64_t held_ms[BIN_COUNT]; /* the part of it in which a job held its machines */
	struct utc begun, mark, at; /* run.created; all before is in bins; newest event */
	enum ledger_stage stage;
	bool held;
	struct utc released;     /* held: no longer than this; ms 0: not known */
	int64_t attempt_held_ms; /* of the attempt, in all bins */
	int64_t billed_ms;       /* of ended attempts: as the service bills them, else held */
	bool billed_told;        /* a service billed one of them */
	int64_t kept_ms;         /* machines, from one attempt to the next */
	enum phase ended_phase;  /* of the attempt with machines that ended last, */
	int64_t ended_attempt;   /* 0: none; */
	bool kept_told;          /* whose machines' keeping was told */
	enum phase phase;        /* of the attempt */
	int64_t attempt;
	int64_t step, reached;       /* of the attempt; of any attempt before: -1 none */
	int64_t jit_told_ms;         /* of the attempt's jit.compiled so far */
	int64_t jit_ms;              /* known to lie in the open stretch, */
	struct utc jit_at;           /* and before this */
	int64_t saving_ms;           /* of the attempt, told and not found in steps yet */
	int64_t steps_ms, made;      /* of the attempt: in BIN_STEPS, and the steps in that */
	int64_t again_ms, first_ms;  /* of the attempt: in BIN_REPLAYED; before its first step */
	double step_ms;              /* of its fastest stretch without news of saving; 0 none */
	bool saving_told;            /* in the open stretch */
	struct utc until;            /* of a backoff */
	struct utc away_since;       /* driver.left; ms 0: somebody drives */
	struct utc back_at;          /* newest driver.took_over */
	int64_t away_ms;             /* without a driver, in the open stretch */
	struct utc unseen_since;     /* nothing was seen of the attempt since; ms 0: it was */
	bool resumed, saved, ending; /* the attempt: from a checkpoint; made one; is to end */
};

/* Take in the next event, in order of seq. A zeroed ledger is an empty one. */
void ledger_add(struct ledger *ledger, const struct event *ev);

/* The bins at `now` (never before the newest event; ignored once the run has ended):
 * their sum is `total_ms`. */
struct ledger_view {
	int64_t ms[BIN_COUNT], held_ms[BIN_COUNT];
	int64_t total_ms, held_total_ms;
	int64_t kept_ms;   /* of machines, from one attempt to the next: in no bin */
	int64_t billed_ms; /* of ended attempts, kept_ms included; -1: no service told of one */
	int64_t paid_ms;   /* the best that is known: billed, else held; kept_ms included */
};
void ledger_at(const struct ledger *ledger, struct utc now, struct ledger_view *ret);

#endif
