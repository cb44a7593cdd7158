/*
 * The workflow: one pure state machine. Events in, effects out.
 *
 *     flow_apply(flow, event)
 *     flow_effects(flow, now, effects)
 *
 * The first changes the state by one journalled event, the second says what the world should now
 * do. They do no I/O, read no clock, use no random numbers and allocate nothing:
 * time comes in with the event, randomness from the run's journalled seed. The real
 * driver, the simulator and the tests drive this same machine.
 *
 * Effects are *levels*, not edges: they follow from the state alone (and the
 * time), so a driver that died and replayed the journal gets the same effects as
 * one that did not. The driver remembers what is already under way.
 *
 * The order that keeps promises:
 *   1. append the event to the journal (durable), 2. flow_apply() with it,
 *   3. carry out the effects; what came of each is the next event.
 * A decision with consequences outside (a submission, the end of the run) is
 * itself an event: EFFECT_RECORD asks for it to be appended first. So intent is
 * durable before any effect, and the journal is the truth about what happened.
 *
 * Rules for the driver:
 * - An EFFECT_RECORD is valid only for the state it was made from. If the append
 *   finds its number taken, apply the events between and ask again for effects;
 *   an outcome already seen outside (submitted, ended) is appended after that.
 * - Effects are carried out in their order, and no further once one of them led to
 *   an event: a limit is judged after the attempt was looked at, not before.
 * - No EFFECT_FIND while the driver's own submission is still in flight.
 * - `now` is the wall clock at the takeover plus the time measured since on the
 *   monotonic clock, never behind the newest event plus the time since: a clock
 *   that is set back would hold a retry, one that is set forward would reach a
 *   limit.
 * - Everything that an attempt reported is journalled before its end.
 */
#ifndef STK_FLOW_FLOW_H
#define STK_FLOW_FLOW_H

#include "jobs/flow/event.h"
#include "jobs/flow/ledger.h"
#include "jobs/flow/phase.h"

#define FLOW_ID_MAX    64
#define FLOW_KEY_MAX   65 /* graph key: hex digits of SHA-256 */
#define FLOW_URL_MAX   1024
#define FLOW_CAUSES    8
#define FLOW_TASKS_MAX 4096 /* tasks of a phase */

/* The policy for a phase beside training and phase 1. */
struct flow_stage {
	bool is_asked;           /* the run has this phase */
	int nodes;               /* of its jobs */
	double price_per_ms;     /* USD, of all of them together; 0: not known */
	int64_t tasks;           /* of a phase with tasks, at most FLOW_TASKS_MAX */
	bool compiles;           /* phase 1 compiles its graphs before it begins */
	int64_t compile_workers; /* as below, of that phase 1 */
};

/* The parts of the plan by which the workflow decides, and of what the run was given. */
struct flow_policy {
	char run[FLOW_ID_MAX];
	struct flow_stage stages[PHASE_COUNT]; /* evaluate, gate, infer and promote */
	bool has_baseline;  /* the evaluation also runs on the model that the gate compares with */
	int64_t generation; /* of the promoted version that the run was given; 0: none */
	bool gate_advises;  /* promote.when: always; the verdict is recorded and stops nothing */
	bool compiles;      /* the spec has a compile phase (kind is not none, mode aot) */
	bool train_on_incomplete;       /* compile.on_incomplete: train */
	int nodes;                      /* of the jobs of phase 1 and of the training */
	int64_t retry_attempts;         /* failures of a phase that count before the run fails */
	int64_t retry_without_progress; /* the same, in a row without a new checkpoint */
	int64_t attempts;               /* limits.attempts, over all phases; 0: none */
	int64_t backoff_first_ms, backoff_max_ms;
	int64_t compile_workers; /* compile processes at once by default; 0: not known */
	bool stop_on_mismatch;   /* checkpoint.on_mismatch: stop */
	/* longest wait of a drain for a new checkpoint; 0: no drain, stop at once */
	int64_t drain_ms;
	/* A training is told to save this long before limits.deadline and limits.cost, but never
	 * before half of them, and not if its pace says that it ends before them anyway; within
	 * that time no training is begun. 0: only when they are reached. */
	int64_t lead_ms;
	/* limits; 0: none */
	int64_t deadline_ms, queue_ms, start_ms, unreachable_ms;
	int64_t health_ms; /* longest check-up of the nodes, not included in start_ms; 0: none */
	double cost_usd;
	double price_per_ms; /* USD, of all nodes of the training together; 0: not known */
	/* Time and cost of evaluation and inference in the last promoted turn: a forecast of the
	 * training's end adds them. 0: not known */
	int64_t later_ms;
	double later_usd;
	int64_t jit_graphs; /* compile.jit_budget.graphs; -1: no budget, compiling in training is
				intended */
	enum jit_action jit_action;
};

enum flow_state {
	FLOW_NEW,        /* no run.created yet */
	FLOW_PLANNED,    /* is the cache warm? */
	FLOW_PRECOMPILE, /* an attempt of phase 1, in the state below */
	FLOW_VERIFY,     /* phase 1 ended well: is the cache complete? */
	FLOW_TRAIN,      /* an attempt of the training */
	FLOW_EVALUATE,   /* an attempt of the evaluation */
	FLOW_GATE,       /* is the candidate good enough? */
	FLOW_INFER,      /* an attempt of the inference */
	FLOW_PROMOTE,    /* the candidate becomes the promoted version */
	FLOW_ENDING,     /* the outcome is decided, not yet recorded */
	FLOW_ENDED,
	FLOW_PAUSED, /* a phase is over; nobody drives before the next driver takes over */
	FLOW_STATE_COUNT
};

/* State of the current attempt; meaningful in states with attempts (flow_has_attempts). */
enum attempt_state {
	ATTEMPT_NONE,      /* the next one is to be intended */
	ATTEMPT_INTENDED,  /* journalled; not known to be submitted */
	ATTEMPT_UNCERTAIN, /* may have been submitted: find it before anything else */
	ATTEMPT_SUBMITTED, /* the engine has it */
	ATTEMPT_RUNNING,   /* holds the claim */
	ATTEMPT_LOST,      /* cannot be seen; unknown is not failed */
	ATTEMPT_FAILED,    /* ended badly; its retry is not scheduled yet */
	ATTEMPT_BACKOFF,   /* ended; the next one waits for `until` */
	ATTEMPT_STATE_COUNT
};

/* Reason why a run is to end before its training is over. */
enum stop_cause {
	STOP_REQUEST,
	STOP_LIMIT,
	STOP_MISMATCH,       /* the training ignored its checkpoint */
	STOP_OUTPUT_INVALID, /* the attempt computes nothing */
	STOP_OVER_BUDGET,    /* the attempt compiled too many graphs */
	STOP_CAUSE_COUNT
};

struct flow_budget {
	int64_t failures;                    /* failures that count against retry_attempts */
	int64_t failures_without_checkpoint; /* counted failures in a row without a new complete
						checkpoint */
	/* Times that each signature was seen since the last new checkpoint; a new signature
	 * takes the place of the one seen longest ago. */
	struct {
		uint64_t signature; /* hash; 0: the place is free */
		int64_t times, failure;
	} causes[FLOW_CAUSES];
	int64_t backoff_failures; /* failures of any class since a new checkpoint: for the backoff
				   */
	int64_t of_class[CLASS_COUNT];
};

struct flow {
	struct flow_policy policy;
	enum flow_state state;
	enum attempt_state attempt_state;
	enum phase phase;              /* phase of the current attempt */
	int64_t attempt;               /* number of the attempt; 0 before the first of the phase */
	bool claimed;                  /* the attempt held the claim at some time */
	int64_t attempts[PHASE_COUNT]; /* attempts made so far */
	int64_t machines;              /* attempts that got machines and ended */
	struct flow_budget budget[PHASE_COUNT]; /* budget used up by each phase */
	enum failure_class last_class; /* FAILED: class of the failure that ended the attempt */
	char job[FLOW_ID_MAX];
	char nonce[FLOW_ID_MAX];
	char resumed_from[FLOW_URL_MAX]; /* checkpoint that the attempt was intended with; empty:
					    scratch */
	struct ledger ledger;
	struct utc at;    /* time of the newest event; never runs backwards */
	struct utc until; /* BACKOFF: when the next attempt may be intended */
	int64_t seed, epoch;
	enum cache_state cache;
	bool cache_proved; /* verified complete in this run, or found warm */
	/* The one of train, evaluate and infer whose graphs cache, phase 1 and verdict are about:
	 * it begins once they are proved. `precompiled`: phase 1 was begun for it.
	 *
	 * Its phase 1 comes just before the stage, and not with that of the training: only then is
	 * there a model for the command to load, and nothing is compiled for an inference that the
	 * gate refuses. No machines wait meanwhile, as each phase has jobs of its own. */
	enum phase stage;
	bool precompiled;
	bool looked;             /* since the last attempt of a stage, and nothing was lost */
	bool incomplete_retried; /* the one repeat after an incomplete cache was made */
	/* Only one run at a time precompiles for a graph key. `key_held`: the claim on it was
	 * taken for the next attempt of phase 1; `key_waited`: another run holds it, as far as
	 * is known; `anew`: phase 1 runs again whatever the compile manifest says. */
	bool key_held, key_waited, compile_forced;
	/* Graph key of the compile manifest that the training rests on: that of the plan, or
	 * another one if the compiler turned out to be another; empty: not known. */
	char lock_key[FLOW_KEY_MAX];
	/* Difference between the compiler of a training and that of the manifest, for which
	 * phase 1 ran again last: `signature` of that attempt.ended; empty: none. */
	char other_compiler[FLOW_ID_MAX];
	/* Phase 1 ended with a failure of the compiler, and with this exit status: the
	 * compiler's front ends do not always report it correctly. */
	bool compile_failed, compile_last; /* and no retry is left */
	int64_t compile_exit;
	bool fewer_workers; /* the next precompile runs with fewer compile processes */
	int64_t workers;    /* compile processes of the current attempt; 0: the default number */
	bool started;       /* the command of the attempt began */
	bool saved;         /* the attempt left a complete checkpoint */
	bool checked;       /* the check-up of its nodes has ended, and how long that took */
	int64_t checkup_ms;
	/* Times: the run's creation, and since when the engine has the current attempt, the attempt
	 * holds the claim, and this driver cannot see it. ms 0: not so. */
	struct utc created, submitted_at, claimed_at, unobserved_since;
	/* The attempt is to end, for this cause. Until `drain_until` it may still save. */
	bool stop_requested;
	enum stop_cause stop_cause;
	/* Graphs that the current training attempt had to compile; whether its budget is known
	 * to be exceeded; whether the attempt ends to make room for phase 1; how often attempts
	 * did. */
	int64_t jit_graphs;
	bool jit_reported, recompile;
	int64_t recompiles;
	bool leaving; /* the driver stops watching; the next driver continues the run */
	/* Events were lost, and the engine has not been asked yet what is under way: nothing is
	 * submitted before that. */
	bool unsettled;
	enum run_limit limit;
	struct utc drain_until;
	/* Forecast by the newest step of the attempt: when the training ends at its pace (ms 0:
	 * not known), the limit that would be reached before that, and how often in a row it was
	 * forecast. `told`: one bit for each limit whose risk was reported. */
	struct {
		struct utc ends;
		enum run_limit limit;
		int64_t times;
		unsigned reported;
	} forecast;
	char stop_reason[256];
	/* The model that is evaluated and promoted; empty: not chosen yet. Step -1: it is no
	 * checkpoint. */
	char candidate[FLOW_URL_MAX];
	int64_t candidate_step;
	/* Tasks of one phase, `tasks_of`, the current one or the last that had any: how many are
	 * done, and a bit for each that is. */
	enum phase tasks_of;
	int64_t tasks_done;
	uint64_t tasks[FLOW_TASKS_MAX / 64];
	bool promoting; /* promote.intended: nothing but its outcome ends it */
	/* The phase after which the run pauses (-1: it does not), and the state that it then goes
	 * on with. */
	int pause_after;
	enum flow_state paused;
	/* Newest checkpoint of this run's training that is known to be complete; step -1: none.
	 * `chosen`: proved complete for the next attempt. Only checkpoints with a step below
	 * `below` are trusted. */
	bool chosen;
	int64_t checkpoint_step, below;
	char checkpoint_url[FLOW_URL_MAX];
	/* Decided end of the run, from ENDING on. Hint and evidence of a failed compiler are
	 * kept here until the verdict on the cache. */
	enum outcome outcome;
	int exit_code;
	enum failure_class end_class;
	enum phase end_phase;
	bool end_has_phase; /* false: the run ended before its first phase */
	char end_reason[512];
	char end_hint[4096];
	char end_evidence[2048];
};

enum effect_kind {
	EFFECT_RECORD,      /* append `event`, then apply it */
	EFFECT_CHECK_CACHE, /* → cache.checked: before phase 1, or again before another attempt of
			       a stage after the training: warm, unless proved graphs are lost */
	EFFECT_CLAIM_KEY, /* take the claim on the graph key, or confirm that this run still has it
			     → cache.claimed | cache.waiting (once for each run that has it; then
			     nothing, and come back soon). With `recheck` the cache is looked at
			     once this run has the claim, and when its manifest changes while
			     another run has it: warm → cache.checked. Nothing is recorded while
			     that cannot be found out. */
	EFFECT_FIND,      /* does the engine know `job`? → attempt.submitted | attempt.missing */
	EFFECT_SUBMIT, /* → attempt.submitted | attempt.uncertain | attempt.ended (definite no) */
	EFFECT_WATCH, /* → attempt.claimed | attempt.lost | attempt.found | attempt.ended, progress
		       */
	EFFECT_CHOOSE_CHECKPOINT, /* before each attempt of a training but the first. A cache that
				     was proved is looked at first: graphs are lost → cache.checked.
				     → checkpoint.chosen: of this run's marked checkpoints with a
				     step less than `below` the newest that proves complete now
				     (highest step, then highest attempt), or none. Nothing is
				     recorded while that cannot be found out. */
	EFFECT_CHOOSE_CANDIDATE,  /* → candidate.chosen: the newest complete checkpoint of the
				     training, or the output that the spec names; without a URL if
				     there is none */
	EFFECT_JUDGE,             /* → gate.judged, by what the journal says was measured */
	EFFECT_PROMOTE, /* → promote.intended | promote.overtaken; once it is intended, →
			   promote.done | promote.overtaken, and repeating it changes nothing more
			 */
	EFFECT_DRAIN,   /* tell the attempt to save and to end; repeating it changes nothing */
	EFFECT_STOP,    /* stop `job` on the engine; EFFECT_WATCH reports its end */
	EFFECT_LEAVE,   /* record driver.left and exit with EXIT_UNREACHABLE; nothing is stopped */
	EFFECT_VERIFY,  /* → cache.verified */
	EFFECT_WAIT,    /* call flow_effects() again at `until` */
	EFFECT_DONE,    /* nothing is left to do */
	EFFECT_SETTLE,  /* after a salvage: what runs under this run's name, and what does its
			   workspace know? → attempt.intended of the newest attempt, if the journal
			   has none of it; then journal.settled. Nothing is recorded while that
			   cannot be found out. */
	EFFECT_KIND_COUNT
};

struct effect {
	enum effect_kind kind;
	enum phase phase;
	int64_t attempt;
	const char *job;          /* borrowed from the flow */
	const char *resumed_from; /* SUBMIT: URL of a checkpoint, or NULL */
	/* SUBMIT: difference between compilers for which phase 1 has already run, so that it is
	 * not a reason to run it again; or NULL */
	const char *tolerated;
	int64_t workers;  /* SUBMIT: compile processes at once; 0: the default number */
	int64_t below;    /* CHOOSE_CHECKPOINT: only steps less than this */
	bool recheck;     /* CLAIM_KEY: another run may have filled the cache */
	struct utc until; /* WAIT: when to come back; DRAIN: how long it may take */
	/* RECORD: its strings are borrowed from the flow and from `text` here, so an effect must
	 * not be copied, and is invalid after the next flow_effects(). */
	struct event event;
	char text[2][128];
};

#define FLOW_EFFECTS_MAX 4
struct effects {
	struct effect list[FLOW_EFFECTS_MAX];
	int count;
};

void flow_init(struct flow *flow, const struct flow_policy *policy);

/* Writes the nonce by which a run knows its own claim on the graph key: the same for all drivers
 * of the run, different for every other run. */
void flow_key_nonce(const struct flow *flow, char ret_nonce[FLOW_ID_MAX]);

/* Writes the nonce that an attempt of this run has, journalled or not: 26 characters of base 32. */
void flow_nonce(const struct flow *flow, enum phase phase, int64_t attempt,
		char ret_nonce[FLOW_ID_MAX]);

/* True if this run renews the claim on the graph key: from phase 1 to the verdict on the cache. */
bool flow_keeps_key(const struct flow *flow);

/* True in a state with attempts: a phase that starts jobs. */
bool flow_has_attempts(const struct flow *flow);

/* True if the run has got past this phase, or does not need it any more: nothing of it is under
 * way, and the next thing belongs to a later phase. */
bool flow_is_past(const struct flow *flow, enum phase phase);

/* True if the task of the current phase, by its index, is journalled as done. */
bool flow_task_is_done(const struct flow *flow, int64_t index);

/* True if attempts of the phase rest on a cache that phase 1 has filled, or that was found warm:
 * each is held to the manifest and the compiler that were proved. */
bool flow_needs_cache(const struct flow_policy *policy, enum phase phase);

/* Returns the phase whose machines the attempts of a phase have, and whose data and model: of phase
 * 1 the stage that it compiles for. */
enum phase flow_served(const struct flow *flow, enum phase phase);

/* Nodes and price of the jobs of a phase, other than a stage's phase 1. */
int flow_nodes(const struct flow_policy *policy, enum phase phase);
double flow_price_per_ms(const struct flow_policy *policy, enum phase phase);

/* True from the intent of the current attempt to its end. */
bool flow_attempt_is_open(const struct flow *flow);

/* True if the current attempt may be on its engine, as far as the journal tells. */
bool flow_may_have_job(const struct flow *flow);

/* Returns the limit that is reached now, LIMIT_NONE: none. */
enum run_limit limit_reached(const struct flow *flow, struct utc now);

/* Returns when the next limit can be reached by time alone, UTC in ms; INT64_MAX: never. It may lie
 * behind. */
int64_t limit_next_ms(const struct flow *flow);

/* Applies one journalled event. Late events (of another attempt or phase than the current one)
 * and events without meaning in this state change only the time and the ledger. */
void flow_apply(struct flow *flow, const struct event *ev);

/* Computes the effects that are due at `now`. */
void flow_effects(const struct flow *flow, struct utc now, struct effects *ret);

/* Returns the row of the rule table that the event would fire, -1 if it has no meaning;
 * flow_rule_name() returns the sentence of a row. For tests and for reading a journal aloud. */
int flow_rule_find(const struct flow *flow, const struct event *ev);
int flow_rule_count(void);
const char *flow_rule_name(int rule);

/* Response to each class of failure, before budgets. */
struct retry_row {
	enum action action;
	bool counts;   /* against retry.attempts and retry.without_progress */
	int64_t limit; /* retries of this class in a phase; -1: as the budgets say */
	int64_t same;  /* retries for one signature without a new checkpoint; -1: as
			* retry.without_progress says */
};
extern const struct retry_row retry_rows[CLASS_COUNT];

/* Returns when the training ends by the `eta` of a train.progress applied at `at`; ms 0: not
 * known. */
struct utc flow_training_ends(struct utc at, const struct event *ev);

#endif
