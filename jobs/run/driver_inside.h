/*
 * What the parts of the driver share: driver.c (life, journal, wishes),
 * replay.c (what the journal says),
 * submit.c (a wish becomes a job), watch.c, begin.c, ending.c and bill.c (a job becomes events),
 * checkpoints.c, proof.c and key.c (the cache), interrupt.c. Included by these and by the
 * bench alone.
 */
#ifndef STK_RUN_DRIVER_INSIDE_H
#define STK_RUN_DRIVER_INSIDE_H

#include "jobs/base/loop.h"
#include "jobs/cache/book.h"
#include "jobs/cache/key_claim.h"
#include "jobs/engine/engine.h"
#include "jobs/flow/flow.h"
#include "jobs/run/driver.h"
#include "jobs/run/metrics.h"
#include "jobs/run/order.h"
#include "jobs/run/tail.h"

#define TICK_MS                 100   /* how often a running attempt is looked at */
#define MARKS_MS                1000  /* how often its checkpoints are */
#define MARKS_FAR_MS            15000 /* the same where that is a request to a service */
#define POLL_MS                 500   /* how often the journal is looked at for requests */
#define POLL_FAR_MS             5000  /* the same where each look is a request to a service */
#define PROGRESS_MS             10000 /* least time between two train.progress but at an end */
#define PROGRESS_FAR_MS         60000
#define GLIMPSE_MS              500  /* the same for what is shown and not recorded */
#define COMPILE_PROGRESS_MS     2000 /* the same for compile.progress and jit.compiled */
#define COMPILE_PROGRESS_FAR_MS 15000
#define AWAY_MS                 10000 /* between two tries of what a service did not answer */
#define LEAVE_MS                3000  /* for all that a service is still told by who leaves */
#define LAST_LINES              60    /* of the log, kept as evidence */

struct attempt_watch;
struct ckpt_root;
struct ckpt_watch;

struct driver {
	struct journal *journal;
	const struct driver_options *options;
	const char *run;
	json_t *plan; /* of the journal */
	const struct compile_kind *kind;
	struct flow flow;
	int64_t seq;             /* of the newest event */
	int64_t kept_seq;        /* up to which the state is kept beside the journal */
	struct mono seq_at;      /* when this process came to know it */
	struct mono progress_at; /* of the newest train.progress; ms 0: none */
	struct loop *loop;
	struct watch *timer, *poll;
	struct watch *answer; /* of a question after an interrupt; NULL: none is open */
	struct engine *engine;
	struct store *workspace, *cache; /* cache: NULL without a compile phase */
	struct store *checkpoints; /* of checkpoint.url where that is no folder; when needed */
	char *agent_prefix;
	char *agent_archive; /* NULL unless containers fetch one */
	char **job_env;      /* what an agent gets, secrets included */
	struct attempt_watch *watch;
	/* of the newest attempt: the step that it resumed from, -1 if from none; and
	 * whether it was said if it really did */
	int64_t resume_step;
	bool continuity_known;
	/* the claim on the graph key, once it was wanted; the run that is waited for, as
	 * journalled; the lock as it was when it was last looked at */
	struct key_claim key;
	char *waited_for;
	char lock_seen[STORE_TAG];
	/* an unfinished verification: what the last look saw, and when */
	char seen[65];
	struct mono seen_at;
	bool looked;
	/* the training attempt whose agent was killed and may have left checkpoints that
	 * nobody marked, 0: none; these, until they are settled */
	int64_t left_by;
	struct ckpt_watch *leftovers;
	struct mono leftovers_since;
	struct notify *notify; /* NULL: nobody was ever to be told */
	struct lease *lease;
	bool live;              /* replay is over: an event of another driver now ends this one */
	bool reaches_out;       /* something of it is kept by a service */
	struct mono away_since; /* that does not answer; ms 0: it does */
	bool left;              /* an interrupt detached it */
	bool stop_wished;       /* by an interrupt; not journalled yet */
	bool stood_down;
	enum exit_code exit_code;
	struct err *failure; /* why this driver cannot go on */
};

/* replay.c: apply an event that is durable. */
void replay_take_in(struct driver *driver, const struct event *ev);
/* All events of the run, from the newest state that is kept on; those after the newest. */
int replay_all(struct driver *driver, struct err **err);
int replay_rest(struct driver *driver, struct err **err);
/* Keep the state beside the journal if that was long ago. Not necessary for anything. */
void replay_keep(struct driver *driver);

/* Append the event (numbered and dated here), apply it to the flow, show it.
 * -1: it could not be made durable. */
int driver_record(struct driver *driver, struct event *ev, struct err **err);

/* The wall clock, but never behind the newest event plus the time since: a
 * clock that is set back must not hold what waits. */
struct utc driver_now(const struct driver *driver);

/* Is this still the driver? Asked before every wish, and once more where much time
 * can have passed since. -1: it stands down, the wish must not be carried out. */
int driver_keep(struct driver *driver, struct err **err);
/* The same where nobody takes an error: false, and the loop is left. */
bool driver_may_act(struct driver *driver);

/* Look at the wishes again as soon as the loop turns. */
void driver_wake(struct driver *driver);

/* Journal that this driver leaves, and why; then leave the loop. */
void driver_leave(struct driver *driver, const char *reason, enum exit_code exit_code);

/* There is a failure: true if it is that of a service that is waited for, as long as the
 * plan allows; it is gone then, and the wishes are looked at again after a while. */
bool driver_wait_for_service(struct driver *driver);

/* interrupt.c: ask what signals mean, and do it, as soon as the loop turns. */
void driver_watch_signals(struct driver *driver);
/* From now on, as the loop can turn, they also end waits for AWS; the one that did is over. */
void driver_hear_signals(struct driver *driver);
/* It has left or is about to: signals that came too late to be obeyed have nothing more to
 * end, least of all a process that has a lease to give back. */
void driver_deafen(struct driver *driver);
/* Journal that the run is to be stopped: true if that is done; else the service is waited
 * for, or the loop is left. */
bool driver_request_stop(struct driver *driver);

/* submit.c: carry out WISH_SUBMIT and WISH_FIND; each records its outcome. */
int driver_submit(struct driver *driver, const struct wish *wish, struct err **err);
int driver_find(struct driver *driver, const struct wish *wish, struct err **err);
/* What every agent of this run gets: PATH, HOME, USER, LANG, TMPDIR and the
 * values of the secrets. EXIT_REFUSED names a secret that is not there. */
int job_env_make(const json_t *plan, char ***ret, struct err **err);
/* The report of a node's agent in the workspace: 1 and a new reference, 0 there is none,
 * -1. */
int report_read(const struct driver *driver, const char *prefix, int node, json_t **ret,
		struct err **err);

/* watch.c: follow an attempt; a tick records what is new. */
int watch_open(struct driver *driver, enum phase phase, int64_t attempt, const char *job,
	       struct err **err);
bool watch_is(const struct driver *driver, enum phase phase, int64_t attempt);
int watch_tick(struct driver *driver, struct err **err);
/* Read what the log has, without asking the engine: for a verification after a
 * takeover. */
int watch_read_log(struct driver *driver, struct err **err);
const struct graph_book *watch_book(const struct driver *driver);
void watch_close(struct driver *driver);

/* bill.c: machines that are kept for a next attempt are given back: because there is none, or
 * because the `next` one is to have others. `ret_wait_ms` > 0: come back then. */
int bill_release(struct driver *driver, bool next, int64_t *ret_wait_ms, struct err **err);

/* checkpoints.c: how often marks are looked for. */
int64_t checkpoints_pace_ms(const struct driver *driver);
/* Marks of an attempt that have appeared → checkpoint.complete;
 * carry out WISH_CHOOSE_CHECKPOINT. */
int checkpoints_look(struct driver *driver, int64_t attempt, struct err **err);
/* `ret_again`: nothing is recorded yet, come back soon. */
int driver_choose_checkpoint(struct driver *driver, int64_t below, bool *ret_again,
			     struct err **err);

/* proof.c: carry out WISH_CHECK_CACHE and WISH_VERIFY. `ret_wait_ms` > 0: look
 * again then, nothing was recorded. */
int driver_check_cache(struct driver *driver, struct err **err);
/* Before a run begins: what the compiler could not make either is an error here. */
int driver_make_cache(struct driver *driver, struct err **err);
/* Before phase 1 begins: what it makes must have somewhere to go, and the lock too. */
int driver_probe_cache(const struct driver *driver, struct err **err);
int driver_verify(struct driver *driver, int64_t *ret_wait_ms, struct err **err);
/* Another run may have filled the cache: if so, cache.checked is recorded. If not, and
 * `mine` (the claim on the graph key is ours), bad entries of its lock are removed.
 * Reads nothing where there is no lock. */
int driver_recheck_cache(struct driver *driver, bool mine, bool *ret_warm, struct err **err);
/* The attempt under watch is over, its log is read, and nothing of it runs any more: locks
 * of graphs that it held are removed from the cache. When its command ran, UTC in ms. */
int driver_clear_own_locks(struct driver *driver, int64_t began_ms, int64_t ended_ms,
			   struct err **err);
/* Of the lock that the training rests on; valid until the next event. */
const char *driver_lock_key(const struct driver *driver);
/* A training that succeeded: graphs it compiled late join the lock. */
int driver_join_late(struct driver *driver, struct err **err);

/* key.c: carry out WISH_CLAIM_KEY. `ret_wait_ms` > 0: another run has it, come back
 * then. */
int driver_claim_key(struct driver *driver, const struct wish *wish, int64_t *ret_wait_ms,
		     struct err **err);
/* Renew the claim while it is this run's to keep, from now on and until the loop ends. */
void driver_keep_key(struct driver *driver);
/* Give it up as soon as it is not. */
void driver_settle_key(struct driver *driver);
/* This driver ends; phase 1 may go on without it. */
void driver_leave_key(struct driver *driver);

#endif
