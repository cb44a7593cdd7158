/*
 * Shared by the parts of the driver. Below stand replay.c (events to state), driver_core.c
 * (services) and again.c (failures that are retried); then the watch on an attempt (attempt/),
 * cache_gate.c and precompile_claim.c (the cache), checkpoints.c, submit.c (an effect becomes a
 * job), chores.c, notify.c and interrupt.c; above them driver.c, the dispatcher. No file calls one
 * that calls it: what is to be done above is left in the state, and the dispatcher is woken.
 * Included by these and by the bench alone.
 */
#ifndef STK_RUN_DRIVER_INTERNAL_H
#define STK_RUN_DRIVER_INTERNAL_H

#include "jobs/base/process/loop.h"
#include "jobs/base/text/tail.h"
#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/manifest/key_claim.h"
#include "jobs/engine/engine.h"
#include "jobs/flow/flow.h"
#include "jobs/run/attempt/metrics.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/driver.h"
#include "jobs/run/plan/preflight.h"

#define TICK_MS                    100   /* shortest interval of looks at a running attempt */
#define TICK_QUIET_MS              1000  /* the longest */
#define MARKS_MS                   1000  /* interval of looks at its checkpoints */
#define MARKS_REMOTE_MS            15000 /* the same if each look is a request to a service */
#define POLL_MS                    500   /* interval of looks at the journal for requests */
#define POLL_REMOTE_MS             5000  /* the same if each look is a request to a service */
#define PROGRESS_MS                10000 /* least time between two train.progress except at an end */
#define PROGRESS_REMOTE_MS         60000
#define PROGRESS_UPDATE_MS         500  /* the same for progress that is shown and not recorded */
#define COMPILE_PROGRESS_MS        2000 /* the same for compile.progress and jit.compiled */
#define COMPILE_PROGRESS_REMOTE_MS 15000
#define AWAY_MS                    10000 /* between two tries of a service that did not answer */
#define LEAVE_MS                   3000  /* for all requests to services of a leaving driver */
#define LAST_LINES                 60    /* lines of the log that are kept as evidence */

struct attempt_watch;
struct ckpt_choice;
struct ckpt_root;
struct ckpt_watch;

/* Chores that the last ended attempt left to be done: noted by replay.c, done by chores.c. */
struct owed {
	bool due, went_well;
	enum phase phase;
	int64_t attempt;
	char lock_key[FLOW_KEY_MAX]; /* flow.lock_key while it ran */
	int tries;
};

/* Facts that the events tell of a run beside the flow; a snapshot keeps them as they are
 * (replay.c). */
struct run_facts {
	/* step that the newest attempt resumed from, -1 if none; whether train.continuity is
	 * recorded, and worker.lost */
	int64_t resume_step;
	bool continuity_known, worker_recorded;
	struct owed owed;
	int64_t passed_count,
		passed_at; /* checkpoints passed over; time of the newest, UTC in ms */
	/* a stop was requested in the damaged part of the journal, for this reason */
	bool stop_lost;
	char lost_stop[256];
	int64_t versions_nodes; /* nodes of the newest attempt whose versions are recorded */
	bool preloaded;         /* cache.preloaded is recorded */
	int64_t silent_until;   /* when the silent attempt will be stopped, UTC in ms; 0: not silent
				 */
};

#define AWAY_TOLD_MAX 8
/* A failure that was told in this wait: its hint, which may be NULL; whether it is journalled as
 * driver.waiting. */
struct away_told {
	char *hint;
	bool recorded;
};

/*
 * The comment of each member says how a driver that takes the run over restores it: "journal" by
 * replay; "rebuilt" it is looked for or opened again, and nothing is decided by its loss; "own" it
 * belongs to this process, and means nothing to another.
 */
struct driver {
	struct journal *journal;              /* own */
	const struct driver_options *options; /* own */
	const char *run;                      /* own */
	json_t *plan;                         /* journal: run.created */
	json_t *inputs;                       /* journal: run.created; NULL: none */
	const struct compile_kind *kind;      /* rebuilt, from the plan */
	struct flow flow;                     /* journal */
	int64_t seq;                          /* number of the newest event: journal */
	int64_t kept_seq;   /* newest event in the snapshot beside the journal: rebuilt */
	struct mono seq_at; /* time at which this process learnt of it: own */
	/* time of the newest train.progress; ms 0: none: journal (mono_of) */
	struct mono progress_at;
	struct loop *loop;                   /* own */
	struct watch *timer, *poll;          /* own */
	void (*turn)(struct driver *driver); /* the dispatcher, when the timer is due: own */
	struct watch *answer; /* input for the open question after an interrupt, or NULL: own */
	/* of the phase that was entered last (job_engine.c), with the plan that it was opened for:
	 * rebuilt */
	struct engine *engine;
	struct engine *engines[PHASE_COUNT]; /* opened so far; phases without their own: train */
	json_t *job_plans[PHASE_COUNT];      /* plans of those with their own */
	struct store *workspace, *cache;     /* cache: NULL without a compile phase: rebuilt */
	/* store of checkpoint.url if that is not a folder; opened when needed: rebuilt */
	struct store *checkpoints;
	char *agent_prefix;  /* rebuilt, content addressed */
	char *agent_archive; /* NULL unless containers download one: rebuilt, content addressed */
	char **job_env;      /* environment of an agent, secrets included: rebuilt, never kept */
	/* rebuilt: its log is read again from the start, reports and status are asked for */
	struct attempt_watch *watch;
	struct run_facts facts; /* journal */
	/* the engine was asked to start the attempt, which may not be journalled yet: rebuilt, a
	 * driver that takes over looks for the intended attempt (ATTEMPT_UNCERTAIN) */
	bool submitted;
	/* what the engine said then, until it is journalled: it did not know whether it has the
	 * job; its words or NULL: rebuilt */
	bool submit_unsure;
	char *submit_words;
	/* the attempts that could not be told to save, and that were told, 0: none: rebuilt, the
	 * second is told again */
	int64_t drain_failed_attempt, drain_told_attempt;
	/* the claim on the graph key, once it was needed: rebuilt, its nonce is in the journal; the
	 * run that is waited for, as journalled: rebuilt, recorded once more; the tag of the
	 * manifest at the last look: rebuilt */
	struct key_claim key;
	char *waited_for;
	char lock_seen[STORE_TAG];
	/* an unfinished verification, with the state at the last look and its time: rebuilt, the
	 * quiet period begins again */
	char seen[65];
	struct mono seen_at;
	bool verify_pending;
	/* The training attempt without a last report of its agent that has been searched for
	 * unmarked checkpoints, 0: none; the one that is searched since then; these, until they are
	 * settled: rebuilt, from the engine, the report and the folder */
	int64_t searched_attempt, sought_attempt;
	struct ckpt_watch *leftovers;
	struct mono leftovers_since;
	struct notify *notify;  /* NULL: no notification was ever due: journal (notify_queue.h) */
	struct lease *lease;    /* own */
	struct preflight probe; /* tries the buckets in use: own */
	bool trusts;            /* all buckets were tried: own */
	bool live;              /* replay is over: another driver's event ends this one: own */
	struct utc live_at;     /* the wall clock when the replay was over: own */
	struct mono live_since; /* the same moment: own */
	bool goes_on;           /* the run existed before this driver: rebuilt */
	bool took_over;         /* driver.took_over is journalled: own */
	bool reaches_out;       /* a part of the run is kept by a service: rebuilt, from the plan */
	/* Failures that are retried (again.c): since when, ms 0: no failure; how many in a row; the
	 * message of the one that was told last; of the first, the attempt; those that were told:
	 * own */
	struct mono away_since;
	int64_t away_times;
	char *away_why;
	char away_nonce[FLOW_ID_MAX];
	struct away_told away_told[AWAY_TOLD_MAX];
	size_t away_told_count;
	struct mono job_seen_at; /* when the engine last spoke of the job, ms 0: never: own */
	/* The time when the journal last took an event or, with no refusal since, was read: own */
	struct mono journal_spoke_at;
	bool append_fails;  /* the last append was refused: own */
	bool journal_fails; /* the last failure was the journal's: own */
	bool unsure; /* an append that failed may be there all the same: rebuilt, by reading */
	int crowded; /* submits in a row that the service throttled: own */
	bool left;   /* an interrupt detached it: own, journalled as driver.left */
	/* a stop that could not be journalled yet; its reason (NULL: interrupted); when the job was
	 * first told to save for it; when the workspace was last searched for one: rebuilt, as long
	 * as the request lies in the workspace (beside.h), else own */
	bool stop_pending;
	char *stop_words;
	struct mono stop_since, stop_read_at;
	bool stood_down;          /* own */
	enum exit_code exit_code; /* journal: run.ended */
	struct err *failure;      /* the error that ends this driver: own */
};

/* replay.c: applies an event that is durable. */
void replay_apply(struct driver *driver, const struct event *ev);
/* Apply all events of the run, from the newest snapshot on; or those after the newest applied. */
int replay_all(struct driver *driver, struct err **err);
int replay_rest(struct driver *driver, struct err **err);
/* Applies what is left of a damaged run, from the beginning and without proof: enough to find its
 * job, not to drive it. */
int replay_salvage(struct driver *driver, struct err **err);
/* Keeps a snapshot beside the journal if the last one is old. Nothing depends on it. */
void replay_keep(struct driver *driver);

/* driver_core.c: appends the event (numbered and dated here), applies it to the flow, shows it.
 * Returns -1 if it could not be made durable. */
int driver_record(struct driver *driver, struct event *ev, struct err **err);
/* The same once. Returns 1 if appended, 0 if another process appended first and that is absorbed,
 * -1. */
int driver_try_record(struct driver *driver, struct event *ev, struct err **err);
/* Reads the events that other processes have appended: requests, or a takeover. */
int driver_absorb(struct driver *driver, struct err **err);

/* The wall clock as it was when the driver took the run over, plus the time since: a clock that is
 * set moves no limit and no wait. Never behind the newest event plus the time since. */
struct utc driver_now(const struct driver *driver);

/* Checks that this is still the driver. Called before every effect, and once more where much time
 * can have passed since. Returns -1 if it stands down and the effect must not be carried out. */
int driver_keep(struct driver *driver, struct err **err);

/* Makes the loop look at the effects again as soon as it turns, or after `delay_ms`, or when the
 * next limit is due. */
void driver_wake(struct driver *driver);
void driver_wake_in(struct driver *driver, int64_t delay_ms);

/* Journals that this driver leaves, and why; then leaves the loop. */
void driver_leave(struct driver *driver, const char *reason, enum exit_code exit_code);
/* Journals it and no more; the driver leaves even if that fails. */
void driver_record_left(struct driver *driver, const char *reason);

/* Writes the drain file; the agents look for it with each heartbeat. */
int driver_write_drain(struct driver *driver, enum phase phase, int64_t attempt, struct err **err);

/* Asks the engine to stop a job, within the plan's grace. */
int driver_stop_job(struct driver *driver, enum phase phase, int64_t attempt, const char *job,
		    struct err **err);

/* again.c: handles a failure. Returns true if it is retried; the failure is cleared then, and the
 * effects are looked at after a while. Else the driver ends. */
bool again_try(struct driver *driver);
/* All effects were carried out: the earlier failure is over. */
void again_works(struct driver *driver);
void again_forget(struct driver *driver); /* frees what was told */
/* Like driver_keep(), for callers without an error to return. If it returns false, the failure is
 * retried later or the loop is left. */
bool again_may_act(struct driver *driver);

/* chores.c: does the chores that are due, or asks to be called in `ret_wait_ms` > 0; journals that
 * a chore was given up. */
int chores_do(struct driver *driver, int64_t *ret_wait_ms, struct err **err);
int chores_fail(struct driver *driver, enum phase phase, int64_t attempt, const char *what,
		const struct err *why, struct err **err);

/* beside_driver.c: a stop that was requested beside the journal lies in the workspace. The caller
 * frees the key. True if there is one that the journal does not have yet. */
char *beside_stop_file_key(const char *run);
bool beside_stop_file_read(struct driver *driver);
void beside_stop_file_clear(struct driver *driver);
/* The requested stop cannot be journalled: it reaches the job all the same. */
void beside_stop_unrecorded(struct driver *driver);

/* ready.c: takes the lease, replays the journal, begins the run if it is new; opens the engine and
 * the stores. */
int ready_make(struct driver *driver, struct err **err);
int ready_open_outside(struct driver *driver, struct err **err);
void ready_release(struct driver *driver);

/* job_engine.c: makes the engine of a phase's jobs driver->engine: a stage may have its own queue,
 * image and machines. Called before an engine is asked about an attempt. */
int job_engine_enter(struct driver *driver, enum phase phase, struct err **err);
/* Returns the plan as the jobs of a phase see it; borrowed. */
const json_t *job_engine_plan(struct driver *driver, enum phase phase);
/* The same of the stage whose cache is at hand (flow.h): what is looked at, filled and proved. */
const json_t *job_engine_cache_plan(struct driver *driver);
/* True if the jobs of the phase do not share the engine of the training. */
bool job_engine_is_own(const struct driver *driver, enum phase phase);
/* The plan has changed: the stages' engines are opened for it again. */
void job_engine_forget_stages(struct driver *driver);
void job_engine_close_all(struct driver *driver);

/* interrupt.c: handles signals as the caller's options say, as soon as the loop turns. */
void interrupt_watch_signals(struct driver *driver);
/* From now on, while the loop can turn, signals also end waits for AWS; the wait that the last one
 * ended is over. */
void interrupt_handle_signals(struct driver *driver);
/* The driver has left or is about to: late signals have nothing more to end, least of all a process
 * that has a lease to give back. */
void interrupt_ignore(struct driver *driver);
/* Journals that the run is to be stopped. Returns true if that is done; else it is retried, or the
 * loop is left. */
bool interrupt_request_stop(struct driver *driver);

/* settle.c: carries out EFFECT_SETTLE. */
int settle_run(struct driver *driver, struct err **err);

/* submit.c: carry out EFFECT_SUBMIT and EFFECT_FIND; each records its outcome. If `ret_wait_ms` is
 * set, there was no outcome: the effect is due again after that. */
int submit_job(struct driver *driver, const struct effect *effect, int64_t *ret_wait_ms,
	       struct err **err);
int submit_find(struct driver *driver, const struct effect *effect, struct err **err);
/* Returns the environment of every agent of this run: PATH, HOME, USER, LANG, TMPDIR and the values
 * of the secrets. EXIT_REFUSED names a missing secret. */
int submit_job_env(const json_t *plan, char ***ret, struct err **err);

/* attempt_core.c: reads the report of a node's agent in the workspace. Returns 1 and a new
 * reference, 0 if absent, -1. */
int attempt_read_report(const struct driver *driver, const char *prefix, int node,
			struct node_report *ret, struct err **err);

/* watch.c: opens, reads and closes what is known of an attempt. */
int watch_open(struct driver *driver, enum phase phase, int64_t attempt, const char *job,
	       struct err **err);
bool watch_is(const struct driver *driver, enum phase phase, int64_t attempt);
/* Reads on in the log of an attempt that has ended, without asking the engine: for a verification
 * after a takeover. `*ret_more`: come back soon, more is left. Does nothing once all is read. */
int watch_read_log(struct driver *driver, bool *ret_more, struct err **err);
const struct graph_tally *watch_tally(const struct driver *driver);
void watch_close(struct driver *driver);
/* watch.c: how long until the next look at the watched attempt: a hundredth of the time for which
 * nothing was heard of it, within TICK_MS and TICK_QUIET_MS. A job that runs for hours costs its
 * driver next to nothing, and each event is seen at most one percent late. */
int64_t watch_pause_ms(const struct driver *driver);
/* watch_turn.c: looks at the watched attempt once, and records news. */
int watch_turn(struct driver *driver, struct err **err);
/* True if the engine has said that the watched attempt ended, and a look at its end has failed. */
bool watch_is_ending(const struct driver *driver);

/* attempt_cost.c: gives back machines that are kept for a next attempt: because no attempt follows,
 * or because the `next` one needs others. `ret_wait_ms` > 0: come back then. */
int attempt_cost_release(struct driver *driver, bool next, int64_t *ret_wait_ms, struct err **err);

/* checkpoints.c: interval of looks for marks. */
int64_t checkpoints_interval_ms(const struct driver *driver);
/* Records checkpoint.complete for new marks of an attempt; carries out EFFECT_CHOOSE_CHECKPOINT. */
int checkpoints_record_marks(struct driver *driver, int64_t attempt, struct err **err);
/* `ret_again`: nothing is recorded yet, come back soon. */
int checkpoints_choose(struct driver *driver, int64_t below, bool *ret_again, struct err **err);
/* Finds the newest checkpoint of the training that is complete now, of any step; `ret_again` as
 * above. */
int checkpoints_find_newest(struct driver *driver, struct ckpt_choice *ret, bool *ret_again,
			    struct err **err);
/* True in *ret_any if the store has an object below the prefix. */
int checkpoints_any_object(struct store *store, const char *prefix, bool *ret_any,
			   struct err **err);

/* candidate.c: carries out EFFECT_CHOOSE_CANDIDATE; `ret_again` as above. */
int candidate_choose(struct driver *driver, bool *ret_again, struct err **err);
/* verdict.c: carries out EFFECT_JUDGE. */
int verdict_record(struct driver *driver, struct err **err);
/* promote.c: carries out EFFECT_PROMOTE: records the intent, or what came of it. */
int promote_candidate(struct driver *driver, struct err **err);

/* cache_gate.c: carry out EFFECT_CHECK_CACHE and EFFECT_VERIFY. `ret_wait_ms` > 0: look again then,
 * nothing was recorded. */
int cache_gate_check(struct driver *driver, struct err **err);
/* Looks at the cache before another attempt of a training: if proved graphs are lost, judged by
 * their sizes, cache.checked is recorded and *ret_lost is true. */
int cache_gate_find_lost(struct driver *driver, bool *ret_lost, struct err **err);
/* Makes the folder of the cache before a run begins; what the compiler could not make either is an
 * error here. */
int cache_gate_make(struct driver *driver, struct err **err);
/* cache_preload.c: before the cache is first looked at, fills it from the caches of cache.preload,
 * if it is empty, or an earlier copy into it has not ended, and records cache.preloaded. Runs that
 * share the cache do so one at a time, by a claim beside those on graph keys; nothing that is there
 * is written over. An object that cannot be read is told in the event, and is no error.
 * `ret_wait_ms` > 0: come back then, for it is not done: another run copies, or a signal or a
 * request has come, which the loop is to hear; what is copied stays. */
int cache_preload(struct driver *driver, int64_t *ret_wait_ms, struct err **err);
/* Checks before phase 1 that the folders of the cache and its manifests are writable. */
int cache_gate_probe(const struct driver *driver, struct err **err);
int cache_gate_verify(struct driver *driver, int64_t *ret_wait_ms, struct err **err);
/* Another run may have filled the cache: if so, cache.checked is recorded. If not, and `mine` (the
 * claim on the graph key is ours), bad entries of its manifest are removed. Reads nothing if there
 * is no manifest. */
int cache_gate_recheck(struct driver *driver, bool mine, bool *ret_warm, struct err **err);
/* Removes from the cache the locks of graphs that the watched attempt held. The attempt is over,
 * its log is read, and no process of it runs any more. `began_ms`, `ended_ms`: when its command
 * ran, UTC in ms. */
int cache_gate_clear_own_locks(struct driver *driver, int64_t began_ms, int64_t ended_ms,
			       struct err **err);
/* Key of the manifest that the training rests on; valid until the next event. */
const char *cache_gate_lock_key(struct driver *driver);
/* Adds graphs that a successful attempt of a phase compiled late to the manifest that it rested on,
 * of this key ("": of that of the plan). */
int cache_gate_join_late(struct driver *driver, enum phase phase, const char *key,
			 struct err **err);

/* precompile_claim.c: carries out EFFECT_CLAIM_KEY. `ret_wait_ms` > 0: another run has it, come
 * back then. */
int precompile_claim_take(struct driver *driver, const struct effect *effect, int64_t *ret_wait_ms,
			  struct err **err);
/* Renews the claim while the run needs it, from now on and until the loop ends. */
void precompile_claim_keep(struct driver *driver);
/* Gives the claim up as soon as the run does not need it. */
void precompile_claim_drop_unneeded(struct driver *driver);
/* Called when this driver ends; phase 1 may go on without it. */
void precompile_claim_leave(struct driver *driver);

#endif
