/*
 * The simulator: the real workflow machine of jobs/flow among fakes that are
 * nasty but legal. Time, chance, journal, engine, jobs, claims, checkpoints and
 * drivers are all in one process and follow from one seed, so any schedule can
 * be played again exactly.
 *
 *   world.c    a schedule: who acts next, users, outages, clocks, takeovers
 *   journal.c  append-only, numbered, with appends that fail or say nothing
 *   engine.c   submit, find, describe, stop, all with lost words
 *   job.c      what runs there: claim, steps, checkpoints, failures, orphans
 *   driver.c   append, apply, carry out; crashes between any two of these
 *   key.c      another run that wants the same graphs, and its claim on them
 *   rules.c, budgets.c  the rules that must hold, looked at after every single step
 *   plant.c    bugs put in on purpose, to see that the rules notice
 */
#ifndef STK_TESTS_SIM_SIM_H
#define STK_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/flow/flow.h"

#define EVENTS_MAX      2048 /* of one run */
#define ARENA_MAX       (512 * 1024)
#define JOBS_MAX        256
#define CHECKPOINTS_MAX 1024
#define SUBMITS_MAX     1024
#define DRIVERS         2
#define RULES           9
#define SECOND          INT64_C(1000)
#define HOUR            (3600 * SECOND)
#define NEVER           INT64_MAX
#define DRY_SUBMITS     20
#define SILENT_ROW      25

/* ---- faults ------------------------------------------------------------------ */

enum fault {
	FAULT_SUBMIT_REFUSED,      /* a definite no */
	FAULT_SUBMIT_REPLY_LOST,   /* accepted, but nobody hears it */
	FAULT_SUBMIT_REQUEST_LOST, /* never arrived, and nobody hears that */
	FAULT_SUBMIT_LATE,         /* accepted; shows up in listings only later */
	FAULT_SUBMIT_DOUBLED,      /* one call, two engine jobs of one name */
	FAULT_ENGINE_UNSEEN,       /* the engine cannot be reached, up to hours */
	FAULT_STOP_LOST,           /* a stop that never arrives */
	FAULT_REPORT_LATE,         /* news that comes later than it could */
	FAULT_REPORT_TWICE,        /* news that is journalled again, whenever */
	FAULT_END_LATE,            /* the engine takes its time to say that a job ended */
	FAULT_CRASH,               /* of a driver, between any two steps */
	FAULT_PAUSE,               /* of a driver, while another takes over */
	FAULT_APPEND_FAILS,        /* disk full, service down: not written */
	FAULT_APPEND_AMBIGUOUS,    /* written, but the writer is told it failed */
	FAULT_JOB_FAILS,           /* with any class */
	FAULT_SPOT,                /* the machine is taken away */
	FAULT_CAPACITY,            /* there is no machine */
	FAULT_ENGINE_RESTART,      /* the engine starts the same job again by itself */
	FAULT_ORPHAN,              /* reported as ended, but it lives and writes */
	FAULT_CANCELLED,           /* someone stops the job at the engine */
	FAULT_CACHE_INCOMPLETE,    /* phase 1 says it went well; graphs are missing */
	FAULT_EXIT_LIES,           /* phase 1 says it failed; the cache is whole */
	FAULT_VERIFY_UNKNOWN,      /* the cache cannot be listed just now */
	FAULT_CHECKPOINT_PARTIAL,  /* the job ends in the middle of saving */
	FAULT_REQUEST_STOP,        /* a user stops the run, at any moment */
	FAULT_REQUEST_DRAIN,       /* the same, after a checkpoint */
	FAULT_QUEUE_LONG,          /* the job waits for very long */
	FAULT_START_HANGS,         /* it has its machine, and its command never begins */
	FAULT_DRAIN_IGNORED,       /* the script does nothing about the signal */
	FAULT_CHECKPOINT_IGNORED,  /* the script begins at step 0 */
	FAULT_CHOICE_UNKNOWN,      /* the checkpoints cannot be listed just now */
	FAULT_CHECKPOINT_DAMAGED,  /* a marked one is cut off, half of it is gone */
	FAULT_CLOCK_JUMP,          /* of one host's wall clock */
	FAULT_KEY_BUSY,            /* another run precompiles for the graph key */
	FAULT_OTHER_COMPILER,      /* the training's is not that of the lock */
	FAULT_KEY_UNKNOWN,         /* who does cannot be found out just now */
	FAULT_DROUGHT_SUBMITS,     /* no machine for the first 20 submits of a run */
	FAULT_DROUGHT_HOUR,        /* no machine for an hour or more, at any moment */
	FAULT_DESCRIBE_SILENT,     /* 25 questions after a job in a row without an answer */
	FAULT_COUNT
};

extern const char *const fault_names[FAULT_COUNT];

/* ---- who and what ------------------------------------------------------------- */

struct rng {
	uint64_t state;
};

enum job_state { JOB_QUEUED, JOB_STARTING, JOB_RUNNING, JOB_OVER };

struct job {
	char name[FLOW_ID_MAX];
	enum phase phase;
	int64_t attempt;
	int restart;          /* the engine's own, of the same job */
	enum job_state state; /* as it is */
	int64_t visible_at;   /* in listings */
	int64_t next_at;      /* when it acts again */
	int64_t end_seen_at;  /* when the engine says that it ended; NEVER */
	enum failure_class class;
	const char *signature;       /* of its failure, or NULL */
	const char *other_compiler;  /* than the lock's: what tells the two; NULL: the same */
	bool tolerates;              /* it was told to put up with it */
	int64_t claimed_at, over_at; /* 0: not yet */
	int64_t started_at, stepped_at;
	bool lost_claim; /* it ended as "not mine" */
	bool ever_held;  /* it held the claim at some time */
	bool ran_without_claim;
	bool stop_asked, drain_asked, drain_ignored;
	bool orphan;
	bool told_waiting;          /* a driver has journalled why it waits */
	bool dry;                   /* submitted while no machine was to be had */
	bool started, never_starts; /* its command */
	int64_t resumed_step;       /* -1: from scratch */
	int64_t first_step;         /* -1: no step yet */
	bool resumed_damaged;
	bool told_first; /* a driver has journalled it */
	int64_t step, goal;
	int saving; /* index of a checkpoint that is being written, or -1 */
	int64_t graphs;
	int64_t late, late_told; /* graphs compiled in training; of these journalled */
	bool has_news;           /* progress that no driver has journalled */
};

struct claim {
	bool taken;
	int job, restart;
	int64_t attempt;
};

struct checkpoint {
	char url[48];
	enum phase phase;
	int64_t attempt, step;
	bool complete; /* marked by a manifest */
	int64_t marked_at;
	int64_t damaged_at; /* NEVER */
};

struct submit {
	char name[FLOW_ID_MAX];
	enum phase phase;
	int64_t attempt;
	int64_t seq; /* length of the journal at the time of the call */
	bool refused;
};

/* The claim on the graph key, as it is. */
enum key_owner { KEY_FREE, KEY_OURS, KEY_OTHERS };
struct key {
	enum key_owner owner;
	int64_t renewed_at; /* by one of ours */
	int64_t taken_at;   /* by one of ours, last */
	int64_t other;      /* number of the other run that has it, or had it last; 0: none */
	int64_t until;      /* it ends then; NEVER */
	int64_t dead_at;    /* it has died with the claim; NEVER */
	bool fills;         /* it ends well: the cache is whole then */
};

/* What came of an append, as its writer sees it. */
enum append { APPEND_DONE, APPEND_TAKEN, APPEND_FAILED };

struct driver {
	bool alive;
	int64_t paused_until; /* 0: not paused */
	bool check_lease;     /* it was paused: nothing before it has read the journal */
	bool in_command;      /* its takeover is in the journal */
	int64_t epoch, next_at;
	int64_t seen;     /* events of the journal that it has applied */
	int64_t heard_at; /* true time of the newest of them */
	struct flow flow;
	struct effects effects;
	bool has_pending, pending_is_record, maybe_written;
	struct event pending;
	bool has_echo;
	struct event echo;
	int64_t key_other, key_seen_at; /* the other run that it waits for, since when */
};

/* Machines of one attempt after the other, held from `start` on. */
struct holding {
	enum phase phase;
	int64_t attempt, t, low, start, newest, back_at;
	bool open, held;
	int64_t least, most; /* milliseconds held by those that have ended */
};

struct world {
	/* given */
	uint64_t seed, schedule;
	const struct plant *plant;
	bool trace;
	/* chance */
	struct rng rng;
	int rate[FAULT_COUNT]; /* of 1024 */
	bool calm;             /* faults are over: now it has to end */
	/* time */
	int64_t now;                  /* true, since the schedule began */
	int64_t wall_offset[DRIVERS]; /* of each driver's host */
	int64_t job_offset;           /* of the machines that jobs run on */
	int64_t driver_pace, job_pace;
	/* the run */
	struct flow_policy policy;
	int run_number;
	bool engine_dedupes; /* a submit of a known name finds it */
	bool cache_whole;    /* the truth */
	int64_t whole_at;    /* since when */
	struct key key;
	int64_t key_at; /* when another run wants it */
	int64_t goal;   /* steps of the training */
	int64_t unseen_until;
	/* No machine is to be had: of so many submits, until then. */
	int64_t drought_left, drought_until, drought_at;
	bool drought_waits;    /* jobs wait for it in the engine's queue, else they fail */
	int64_t capacity_ends; /* jobs of this run that ended for want of a machine */
	int64_t silent_left;   /* questions that get no answer */
	int64_t silent_row;    /* so many in a row got none */
	int64_t stop_at, drain_at, pause_at, jump_at, unseen_at, damage_at;
	int64_t start_at; /* of the next driver */
	int64_t steps;
	/* the journal */
	struct event events[EVENTS_MAX];
	int64_t writer[EVENTS_MAX]; /* epoch of the driver that wrote it, -1: a user */
	int64_t count;
	char arena[ARENA_MAX];
	size_t arena_len;
	struct flow shadow; /* what replaying the journal gives */
	/* the engine, the workspace */
	struct job jobs[JOBS_MAX];
	int job_count;
	struct claim claims[PHASE_COUNT];
	struct checkpoint checkpoints[CHECKPOINTS_MAX];
	int checkpoint_count;
	struct submit submits[SUBMITS_MAX];
	int submit_count;
	struct driver drivers[DRIVERS];
	/* what the rules have looked at */
	int64_t checked;
	int64_t epoch_checked;  /* of the newest takeover among them */
	struct holding holding; /* until then */
	bool held_to_end;
	int submits_checked;
	struct claim claims_checked[PHASE_COUNT];
	bool dirty;                 /* a driver has applied something since */
	int64_t chose_at;           /* when a driver last looked for a checkpoint */
	const char *unclaimed_mark; /* a checkpoint that was marked without the claim */
	/* the first rule that is broken */
	int broken; /* 1…9, 0: none */
	char why[200];
};

/* ---- world.c -------------------------------------------------------------------- */

uint64_t rng_next(struct rng *rng);
/* 0 ≤ result < n; n > 0 */
int64_t rng_below(struct rng *rng, int64_t n);
/* Does this fault strike now? Counted when it does. */
bool strikes(struct world *w, enum fault fault);
/* When does it strike next? For faults that come from outside, by time. */
int64_t draw_time(struct world *w, enum fault fault, int64_t span);
/* A delay around `pace`: mostly near, sometimes far. */
int64_t some_time(struct world *w, int64_t pace);
/* Plays one schedule: runs one after the other until it has `events_min` events.
 * Returns false if a rule was broken. */
bool world_play(struct world *w, int64_t events_min);

/* ---- journal.c ------------------------------------------------------------------ */

/* Append as number `seq`, with the faults of appending for who != -1. */
enum append journal_append(struct world *w, int64_t seq, const struct event *ev, int who);
/* The machine under test, planted bugs included. */
void machine_apply(const struct world *w, struct flow *flow, const struct event *ev);
/* The journal has an event of that kind, phase and attempt up to `seq`: its number, 0. */
int64_t journal_find(const struct world *w, enum event_kind kind, enum phase phase, int64_t attempt,
		     int64_t seq);

/* ---- engine.c ------------------------------------------------------------------- */

enum submit_result { SUBMIT_DONE, SUBMIT_UNKNOWN, SUBMIT_REFUSED };
enum submit_result engine_submit(struct world *w, const struct effect *effect,
				 enum failure_class *ret_class);
int engine_find(struct world *w, const char *name); /* 1, 0 certainly not, -1 unknown */
void engine_stop(struct world *w, const char *name);
void engine_drain(struct world *w, const char *name);
bool engine_unseen(const struct world *w);

struct sight {
	bool seen, ended, claimed;
	enum failure_class class; /* of the one that counts, where all have ended */
	struct job *job;          /* one that counts */
};
void engine_describe(struct world *w, const char *name, struct sight *ret);

/* ---- job.c ---------------------------------------------------------------------- */

struct job *job_new(struct world *w, const char *name, enum phase phase, int64_t attempt,
		    const struct checkpoint *resumed);
void job_act(struct world *w, struct job *job);
bool job_alive(const struct job *job);
bool job_effective(const struct world *w, const struct job *job); /* it holds the claim */

const struct checkpoint *checkpoint_find(const struct world *w, const char *url);

/* ---- key.c ----------------------------------------------------------------------- */

#define KEY_VALID_MS (60 * SECOND)

void key_begin(struct world *w);      /* with a run */
void key_wanted(struct world *w);     /* by another run */
void key_other_ends(struct world *w); /* that has it */
void key_renew(struct world *w);      /* by one of ours, where it is */
/* Carry out EFFECT_CLAIM_KEY. */
void key_claim(struct world *w, struct driver *d, const struct effect *effect);
void key_release(struct world *w);

/* ---- cache.c -------------------------------------------------------------------- */

/* Carry out EFFECT_CHECK_CACHE and EFFECT_VERIFY. */
void cache_check(struct world *w, struct driver *d);
/* Before a training goes on: graphs that were proved may be gone. */
bool cache_lost(struct world *w, struct driver *d);
void cache_verify(struct world *w, struct driver *d);

/* ---- driver.c ------------------------------------------------------------------- */

void driver_start(struct world *w, int who);
void driver_act(struct world *w, int who);
/* An event of this kind for it to append next. */
struct event *driver_pend(struct driver *d, enum event_kind kind);

/* Wall clocks count from here, so that one that is set back is still after 1970. */
#define WALL_BEGIN INT64_C(1700000000000)

/* ---- rules.c -------------------------------------------------------------------- */

void rules_check(struct world *w);     /* after each step */
void rules_check_end(struct world *w); /* of a run */
/* The first rule that breaks is the one that is reported. */
void broken(struct world *w, int rule, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* An attempt that ended because its compiler is not the lock's. */
bool is_refused(const struct world *w, const struct event *ev);

/* ---- budgets.c: what retries, time and money come to, by the journal alone ---- */

void rule5(struct world *w);
void rule8(struct world *w);
/* What a limit.reached says, by the events before it. */
bool limit_is_true(const struct world *w, const struct event *ev);
/* Which steps a choice before event `seq` may trust: a recorded fall back gives up the
 * newest one known then, until there is one beyond it. */
int64_t trusted_below(const struct world *w, int64_t seq);

/* ---- plant.c -------------------------------------------------------------------- */

struct plant {
	const char *name;
	int rule; /* that has to notice */
	const char *what;
	/* the machine is wrong: after an event was applied */
	void (*machine)(struct flow *flow, const struct event *ev);
	/* the driver is wrong: instead of a effect; true: done */
	bool (*driver)(struct world *w, int who, struct effect *effect);
	/* an event is wrong before it is appended */
	void (*event)(struct world *w, int who, struct event *ev);
	bool claims_ignored, applies_first, marks_suffice, epochs_ignored;
};

extern const struct plant plants[];
extern const size_t plant_count;
const struct plant *plant_find(const char *name);

/* ---- report.c ------------------------------------------------------------------- */

/* Counts over all schedules. */
struct counts {
	uint64_t schedules, runs, events, steps, events_least, events_most;
	uint64_t kinds[EV_COUNT];
	uint64_t states[FLOW_STATE_COUNT][ATTEMPT_STATE_COUNT];
	uint64_t rules[64][ATTEMPT_STATE_COUNT]; /* rows of the machine, by attempt state before */
	uint64_t effects[EFFECT_KIND_COUNT];
	uint64_t faults[FAULT_COUNT];
	uint64_t outcomes[OUTCOME_COUNT][8]; /* by exit code */
	uint64_t doubled;                    /* jobs that found the claim taken */
	uint64_t stood_down, left;           /* drivers */
	uint64_t drained;                    /* attempts that saved before they ended */
	uint64_t dry, dry_hours;             /* runs that went on after 20 submits, after an hour */
	uint64_t silences;                   /* rows of 25 after which a job was seen again */
	uint64_t limits[LIMIT_COUNT];
	uint64_t bins[BIN_COUNT]; /* events after which the bin was not empty */
	uint64_t digest;          /* of every event: the same on every machine */
};
extern struct counts counts;

/* Prints all of them; false if something was never reached. */
bool counts_print(bool must_reach_all);
/* A line of the timeline, where it is wanted: TRACE(w, "job 3", "claims %s", …). */
#define TRACE(w, ...)                                                                              \
	do {                                                                                       \
		if ((w)->trace)                                                                    \
			trace_line(w, __VA_ARGS__);                                                \
	} while (0)
void trace_line(const struct world *w, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
const char *driver_name(int who); /* -1: the user */
void trace_event(const struct world *w, const char *who, const struct event *ev);

#endif
