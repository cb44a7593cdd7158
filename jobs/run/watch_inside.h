/*
 * An attempt under watch, shared by watch.c (what it says and does), begin.c (how it
 * began), ending.c (how it ended), bill.c (what its machines cost) and continuity.c (whether it
 * went on where it should). Included by these and by the bench alone.
 */
#ifndef STK_RUN_WATCH_INSIDE_H
#define STK_RUN_WATCH_INSIDE_H

#include "jobs/run/driver_inside.h"

struct node_log {
	struct attempt_watch *watch;
	int node;
	struct tail tail;
	char *last[LAST_LINES]; /* a ring of the newest lines */
	size_t last_len[LAST_LINES];
	size_t lines; /* ever */
	bool unread;  /* it may not be read; at the end that is not tried again */
};

struct attempt_watch {
	struct driver *driver;
	enum phase phase;
	int64_t attempt;
	char *job, *prefix;
	int nodes;
	struct node_log *logs; /* one a node */
	struct graph_book *book;
	bool spoiled, spoiled_told; /* the log shows that nothing is computed */
	json_t *late; /* key → step after which a training compiled it, null: before one */
	struct metrics *metrics;
	struct outside *outside;              /* NULL: it has agents (outside.h) */
	struct mono read_at;                  /* when the lines at hand were read */
	struct watch *wake;                   /* until a process of the job ends */
	bool graphs_changed, numbers_changed; /* since they were last recorded */
	int64_t hits, misses;                 /* as the book last counted them */
	double seconds;                       /* of the misses, the same */
	int64_t hits_told;                    /* in the newest jit.compiled */
	struct mono graphs_at;                /* when they were last recorded; ms 0: never */
	struct mono marks_at;                 /* when checkpoints were last looked for */
	bool numbers_fresh;                   /* since somebody was last shown them */
	struct mono shown_at;                 /* when; ms 0: never */
	int64_t first_step, last_step;        /* that the log shows; -1: none yet */
	struct utc stepped_at;                /* when last_step was seen */
	char waits[256];                      /* why the engine does not run it, as told last */
	bool caught_up;                       /* what was in the log before we came is read */
	struct err *unread;                   /* why a log may not be read; NULL: they may */
};

/* An event of this kind about this attempt. */
void watch_event(const struct attempt_watch *watch, enum event_kind kind, struct event *ret);

/* The report of a node's agent, from where it is nearest: 1 and a new reference, 0 there
 * is none, -1. */
int watch_report(struct attempt_watch *watch, int node, json_t **ret, struct err **err);

/* begin.c: record the claim of an attempt that is not known to hold it (of one that ended before
 * there is nothing to say), and when its command began, if it did. */
int record_claimed(struct attempt_watch *watch, const struct engine_status *status,
		   struct err **err);
int record_started(struct attempt_watch *watch, struct utc started, struct err **err);

/* bill.c: what the engine tells of the machines goes into attempt.claimed and attempt.ended; how
 * long machines of the attempt before were kept for it is recorded first. */
int bill_claimed(struct driver *driver, const struct engine_status *status, struct event *ev,
		 struct err **err);
int bill_ended(struct driver *driver, const struct engine_status *status, struct event *ev,
	       struct err **err);

/* ending.c: record what ended the attempt. */
int record_end(struct attempt_watch *watch, const struct engine_status *status, struct err **err);

/* waiting.c: the engine has not begun it, and says why. */
int record_waiting(struct attempt_watch *watch, const struct engine_status *status,
		   struct err **err);

/* continuity.c: once the first step is known, or at the end: did a resumed attempt
 * go on from its checkpoint? */
int record_continuity(struct attempt_watch *watch, bool at_end, struct err **err);

#endif
