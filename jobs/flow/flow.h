/*
 * The workflow: one pure state machine. Events in, wishes out.
 *
 *     flow_step(flow, event, wishes)
 *
 * changes the state by one journalled event and says what the world should now
 * do. It does no I/O, reads no clock, takes no chances and allocates nothing:
 * time comes in with the event, chance from the run's journalled seed. The real
 * driver, the simulator and the tests drive this same machine.
 *
 * Wishes are *levels*, not edges: they follow from the state alone (and the
 * time), so a driver that died and replayed the journal gets the same wishes as
 * one that lived. Who carries them out remembers what is already under way.
 *
 * The order that keeps promises:
 *   1. append the event to the journal (durable), 2. flow_step() with it,
 *   3. carry out the wishes; what came of each is the next event.
 * A decision with consequences outside (a submission, the end of the run) is
 * itself an event: WISH_RECORD asks for it to be appended first. So intent is
 * durable before any effect, and what the journal says happened, happened.
 *
 * What whoever drives it has to keep to:
 * - A WISH_RECORD is good only for the state it was made from. Where the append
 *   finds its number taken, absorb what came between and ask again for wishes;
 *   an outcome already seen outside (submitted, ended) is appended after that.
 * - Wishes are carried out in their order, and no further once one of them led to
 *   an event: a limit is judged after the attempt was looked at, not before.
 * - No WISH_FIND while a submission of one's own is still in flight.
 * - `now` is the wall clock, but never behind the newest event plus the time
 *   measured since on the monotonic clock: else a clock that is set back would
 *   hold a retry for as long as it was set back.
 * - Everything that an attempt reported is journalled before its end.
 */
#ifndef STK_FLOW_FLOW_H
#define STK_FLOW_FLOW_H

#include "jobs/flow/event.h"
#include "jobs/flow/ledger.h"

#define FLOW_ID_MAX  64
#define FLOW_KEY_MAX 65 /* of a graph key: hex digits of SHA-256 */
#define FLOW_URL_MAX 1024

/* What the plan says, as far as the workflow decides by it. */
struct flow_policy {
	char run[FLOW_ID_MAX];
	bool compiles;            /* the spec has a compile phase (kind is not none, mode aot) */
	bool train_on_incomplete; /* compile.on_incomplete: train */
	int nodes;
	int64_t retry_attempts;         /* failures of a phase that count before the run fails */
	int64_t retry_without_progress; /* the same, in a row without a new checkpoint */
	int64_t backoff_first_ms, backoff_max_ms;
	int64_t compile_workers; /* compile processes at once by default; 0: not known */
	bool stop_on_mismatch;   /* checkpoint.on_mismatch: stop */
	/* how long a drain may wait for a new checkpoint; 0: no drain, stop at once */
	int64_t drain_ms;
	/* a training is told to save so long before limits.deadline and limits.cost, but never
	 * before half of them, and not if it ends before them anyway at its pace; so late none is
	 * begun; 0: when they are reached */
	int64_t lead_ms;
	/* limits; 0: none */
	int64_t deadline_ms, queue_ms, start_ms, unreachable_ms;
	int64_t health_ms; /* the longest check-up of the nodes, which start_ms leaves out; 0: none
			    */
	double cost_usd;
	double price_per_ms; /* USD, of all nodes together; 0: not known */
	int64_t jit_graphs;  /* compile.jit_budget.graphs; -1: compiles in training are meant */
	enum jit_action jit_action;
};

enum flow_state {
	FLOW_NEW,        /* no run.created yet */
	FLOW_PLANNED,    /* is the cache warm? */
	FLOW_PRECOMPILE, /* an attempt of phase 1, in the state below */
	FLOW_VERIFY,     /* phase 1 ended well: is the cache complete? */
	FLOW_TRAIN,      /* an attempt of the training */
	FLOW_ENDING,     /* the outcome is decided, not yet recorded */
	FLOW_ENDED,
	FLOW_STATE_COUNT
};

/* Of the current attempt; meaningful in PRECOMPILE and TRAIN. */
enum attempt_state {
	ATTEMPT_NONE,      /* the next one is to be intended */
	ATTEMPT_INTENDED,  /* journalled; not known to be submitted */
	ATTEMPT_UNCERTAIN, /* it may have been submitted: find it before anything else */
	ATTEMPT_SUBMITTED, /* the engine has it */
	ATTEMPT_RUNNING,   /* it holds the claim */
	ATTEMPT_LOST,      /* cannot be seen; unknown is not failed */
	ATTEMPT_FAILED,    /* ended badly; its retry is not scheduled yet */
	ATTEMPT_BACKOFF,   /* ended; the next one waits for `until` */
	ATTEMPT_STATE_COUNT
};

extern const char *const flow_state_names[FLOW_STATE_COUNT];
extern const char *const attempt_state_names[ATTEMPT_STATE_COUNT];

struct flow_budget {
	int64_t failures;   /* that count against retry_attempts */
	int64_t fruitless;  /* those in a row without a new complete checkpoint */
	uint64_t signature; /* hash of the last one's, without a new checkpoint since; 0: none */
	int64_t setbacks;   /* the same with those that do not count: for the backoff */
	int64_t of_class[CLASS_COUNT];
};

struct flow {
	struct flow_policy policy;
	enum flow_state state;
	enum attempt_state attempt_state;
	enum phase phase;                       /* of the current attempt */
	int64_t attempt;                        /* its number; 0 before the first of the phase */
	bool claimed;                           /* it held the claim at some time */
	int64_t attempts[PHASE_COUNT];          /* made so far */
	struct flow_budget budget[PHASE_COUNT]; /* what each has used up */
	enum failure_class last_class;          /* FAILED: what ended the attempt */
	char job[FLOW_ID_MAX];
	char nonce[FLOW_ID_MAX];
	char resumed_from[FLOW_URL_MAX]; /* what the attempt was intended with; empty: scratch */
	struct ledger ledger;
	struct utc at;    /* of the newest event; never runs backwards */
	struct utc until; /* BACKOFF: when the next attempt may be intended */
	int64_t seed, epoch;
	enum cache_state cache;
	bool cache_proved; /* verified complete in this run, or found warm */
	bool incomplete_retried;
	/* One run at a time precompiles for a graph key. `key_held`: the claim on it was
	 * taken for the attempt of phase 1 that comes next; `key_waited`: another run has
	 * it, as far as is known; `anew`: phase 1 is to run whatever the lock says. */
	bool key_held, key_waited, anew;
	/* Of the lock that the training rests on: that of the plan, or another one where the
	 * compiler turned out to be another; empty: not known. */
	char lock_key[FLOW_KEY_MAX];
	/* The difference between the compiler of a training and that of the lock, for which
	 * phase 1 ran again last: `signature` of that attempt.ended; empty: none. */
	char other_compiler[FLOW_ID_MAX];
	/* Phase 1 ended with a failure of the compiler, and with this exit status: its
	 * front-ends are not always right about it. */
	bool compile_failed, compile_last; /* and no retry is left */
	int64_t compile_exit;
	bool fewer_workers; /* the next precompile runs with fewer compile processes */
	int64_t workers;    /* of the current attempt; 0: as many as ever */
	bool started;       /* its command began */
	bool checked;       /* how its nodes are is known, and how long that took */
	int64_t checkup_ms;
	/* When the run was created; since when the engine has the current attempt, the
	 * attempt holds the claim, it cannot be seen (by this driver). ms 0: not so. */
	struct utc created, submitted_at, claimed_at, unseen_since;
	/* It is to end: on request, at a limit, over its budget of late graphs, or because
	 * it ignored its checkpoint or computes nothing.
	 * While `drain_until` is ahead the attempt may still save. */
	bool stop_requested, mismatch, jit_stop, spoiled;
	/* Graphs that the current training attempt had to compile; whether its budget
	 * is known to be exceeded; the attempt makes room for phase 1; how often that
	 * was so. */
	int64_t jit_graphs;
	bool jit_told, recompile;
	int64_t recompiles;
	bool leaving; /* this driver gives up looking; the run goes on with the next one */
	enum run_limit limit;
	struct utc drain_until;
	/* What the newest step of the attempt forecasts: when the training ends at its pace (ms
	 * 0: not known), the limit that would be reached before, and how often in a row it was
	 * so. `told`: the limits of which that was said, a bit each. */
	struct {
		struct utc ends;
		enum run_limit limit;
		int64_t times;
		unsigned told;
	} forecast;
	char stop_reason[256];
	/* Newest checkpoint of this run's training that is known to be complete; step -1:
	 * none. `chosen`: it was proved for the attempt that comes next. Only those with
	 * a step below `below` are trusted. */
	bool chosen;
	int64_t checkpoint_step, below;
	char checkpoint_url[FLOW_URL_MAX];
	/* the decided end, from ENDING on; hint and evidence of a compiler that failed
	 * wait here for the verdict on the cache */
	enum outcome outcome;
	int exit_code;
	enum failure_class end_class;
	enum phase end_phase;
	bool end_has_phase; /* false: it ended before its first phase */
	char end_reason[512];
	char end_hint[4096];
	char end_evidence[2048];
};

enum wish_kind {
	WISH_RECORD,      /* append `event`, then step with it */
	WISH_CHECK_CACHE, /* → cache.checked */
	WISH_CLAIM_KEY,   /* take the claim on the graph key, or see that it is still ours →
			   * cache.claimed | cache.waiting (once for each run that has it; then
			   * nothing, and come back soon). With `recheck` the cache is looked
			   * at once the claim is ours, and when its lock changes while another
			   * has it: warm → cache.checked. Nothing is recorded while that cannot
			   * be found out. */
	WISH_FIND,        /* does the engine know `job`? → attempt.submitted | attempt.missing */
	WISH_SUBMIT, /* → attempt.submitted | attempt.uncertain | attempt.ended (definite no) */
	WISH_WATCH, /* → attempt.claimed | attempt.lost | attempt.found | attempt.ended, progress */
	WISH_CHOOSE_CHECKPOINT, /* → checkpoint.chosen: of this run's marked checkpoints with a
				 * step less than `below` the newest that proves complete now
				 * (highest step; of equal ones the highest attempt), or none.
				 * Nothing is recorded while that cannot be found out. */
	WISH_DRAIN,  /* tell the attempt to save and to end; repeating it changes nothing */
	WISH_STOP,   /* stop `job` on the engine; its end comes by WISH_WATCH */
	WISH_LEAVE,  /* record driver.left and exit with EXIT_UNREACHABLE; nothing is stopped */
	WISH_VERIFY, /* → cache.verified */
	WISH_WAIT,   /* come back with flow_wishes() at `until` */
	WISH_DONE,   /* nothing is left to do */
	WISH_KIND_COUNT
};

struct wish {
	enum wish_kind kind;
	enum phase phase;
	int64_t attempt;
	const char *job;          /* borrowed from the flow */
	const char *resumed_from; /* SUBMIT: URL of a checkpoint, or NULL */
	/* SUBMIT: the difference between compilers for which phase 1 has run already and
	 * which is no reason to do so again, or NULL */
	const char *tolerated;
	int64_t workers;  /* SUBMIT: compile processes at once; 0: as many as ever */
	int64_t below;    /* CHOOSE_CHECKPOINT: only steps less than this */
	bool recheck;     /* CLAIM_KEY: another run may have filled the cache */
	struct utc until; /* WAIT; DRAIN: how long it may take */
	/* RECORD; its strings are borrowed from the flow and from `text` here, so
	 * a wish is not copied, and is gone with the next flow_wishes(). */
	struct event event;
	char text[2][128];
};

#define FLOW_WISHES_MAX 4
struct wishes {
	struct wish list[FLOW_WISHES_MAX];
	int count;
};

void flow_init(struct flow *flow, const struct flow_policy *policy);

/* By which a run knows its own claim on the graph key: the same for all its drivers,
 * and for no other run. */
void flow_key_nonce(const struct flow *flow, char ret_nonce[FLOW_ID_MAX]);

/* Whether the claim on the graph key is this run's to renew: from phase 1 to the
 * verdict on the cache. */
bool flow_keeps_key(const struct flow *flow);

/* Apply one journalled event. Late news (of another attempt or phase than the
 * current one) and events that mean nothing in this state change nothing but
 * the time. */
void flow_apply(struct flow *flow, const struct event *ev);

/* What the machines of the run's jobs have cost until `now`, USD: as billed, where a service told,
 * else for as long as they were held. 0 where the price is not known. */
double flow_cost(const struct flow *flow, struct utc now);

/* What should be done now, at `now`. */
void flow_wishes(const struct flow *flow, struct utc now, struct wishes *ret);

/* Both, with the event's own time as now. */
void flow_step(struct flow *flow, const struct event *ev, struct wishes *ret);

/* The row of the rule table that the event would fire, -1 where it means nothing;
 * and the sentence of a row. For tests and for reading a journal aloud. */
int flow_rule_find(const struct flow *flow, const struct event *ev);
int flow_rule_count(void);
const char *flow_rule_name(int rule);

/* Pure helpers, also used where things are shown.
 * retry_action: what a class of failure calls for, before budgets.
 * retry_limit: retries that this class gets by itself, -1: as the budgets say.
 * retry_delay_ms: full jitter below min(max, first * 2^n), from the seed; n is the
 * number of failures before this one. */
enum action retry_action(enum failure_class class);
bool retry_counts(enum failure_class class); /* against the budgets: Spot and capacity do not */
int64_t retry_limit(enum failure_class class);
int64_t retry_delay_ms(const struct flow_policy *policy, int64_t seed, int64_t failures);

#endif
