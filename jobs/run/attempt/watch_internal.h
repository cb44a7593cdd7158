/*
 * A watched attempt, shared by the files of this room, from below to above: attempt_core.c,
 * reading.c and watch.c (what is known of it), a file for each kind of news (attempt_start.c,
 * attempt_end.c, attempt_cost.c, continuity.c, progress.c and others), and watch_turn.c, which has
 * them recorded. Included by these and by the bench alone.
 *
 * run/attempt: one attempt from its order to its end: submitted, watched, read, classified,
 * recorded. Consequences of the end are decided in flow.
 */
#ifndef STK_RUN_ATTEMPT_WATCH_INTERNAL_H
#define STK_RUN_ATTEMPT_WATCH_INTERNAL_H

#include "jobs/run/attempt/first_cause.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/plan/own_rows.h"

#define END_TRIES 3    /* failed looks at an ended attempt before they are passed over; */
#define END_MS    3000 /* or so long after the first: where each waits for a service, two do */

struct node_log {
	struct attempt_watch *watch;
	int node;
	struct tail tail;
	char *last[LAST_LINES]; /* a ring of the newest lines */
	size_t last_len[LAST_LINES];
	size_t lines;         /* lines so far */
	bool unread;          /* cannot be read; at the end that is not tried again */
	int64_t step;         /* newest step in this log; -1: none */
	bool behind;          /* more was there at the last look */
	uint64_t size;        /* size of the log, when last asked for */
	struct mono sized_at; /* when the size was asked for; ms 0: never */
};

/* A driver that takes over finds all of this again: it reads the log on from its bookmark and asks
 * the engine and the agents again. Only events that then say nothing new are journalled twice
 * (attempt.waiting, jit.compiled). */
struct attempt_watch {
	struct driver *driver;
	enum phase phase;
	int64_t attempt;
	char *job, *prefix;
	int nodes;
	struct node_log *logs; /* a log per node */
	int next_log;          /* index of the log to read next */
	struct graph_tally *tally;
	bool graph_tally_changed; /* since it was last counted */
	/* Times of steps. `step_rate`: as last told (jobs/base/step_rate.h; NULL: not yet);
	 * `rate_by_agent`: by an agent; `rate_read_at`: when it was asked for. `own_meter`: as seen
	 * here; `own_exact`: by the log's times. */
	json_t *step_rate;
	bool rate_by_agent, own_exact;
	struct mono rate_read_at;
	struct step_rate_meter *own_meter;
	json_t *recorded_row;                         /* newest row told (metrics.h); NULL: none */
	int64_t recorded_step;                        /* newest step told; -1: none */
	int step_node;                                /* node with the log that told last_step */
	bool output_invalid, output_invalid_recorded; /* the log shows that nothing is computed */
	json_t *late; /* key → step after which a training compiled it, null: before any */
	struct metrics *metrics;
	struct own_rows *own; /* the user's own rows of the failure table */
	struct first_cause *cause;
	struct toolkit_monitor *monitor;      /* NULL: the attempt has agents */
	struct toolkit_series *series;        /* NULL: its agents keep the readings */
	struct mono read_at;                  /* when the lines at hand were read */
	struct mono heard_at;                 /* when a log last had more; ms 0: never */
	struct watch *wake;                   /* on a process of the job, until it ends */
	struct mono woken_at;                 /* when an agent has ended; ms 0: none yet */
	bool graphs_changed, numbers_changed; /* since they were last recorded */
	int64_t hits, misses;                 /* as last counted in the book */
	double seconds;                       /* compile time of the misses, as last counted */
	int64_t hits_recorded;                /* hits as last recorded */
	struct mono graphs_at;                /* when graphs were last recorded; ms 0: never */
	struct mono marks_at;                 /* when checkpoints were last looked for */
	struct mono workers_at;               /* when dead workers of agents were last looked for */
	json_t *worker;                       /* dead worker (order.h); NULL: none known */
	int worker_node;                      /* node of that worker */
	bool numbers_fresh;                   /* new numbers since they were last shown */
	struct mono shown_at;                 /* when numbers were last shown */
	int64_t first_step, last_step;        /* steps in the logs; -1: none yet */
	struct utc stepped_at;                /* when last_step was seen */
	char waits[256];                      /* why the engine does not run it, as last told */
	/* The lines read now were not recorded by an earlier driver. */
	bool news;
	/* Members for bookmark.c: bytes read at the last bookmark, when that was put, and how long
	 * it took. */
	uint64_t marked_bytes;
	struct mono marked_at;
	int64_t marking_ms;
	bool whole;     /* all of the logs is read */
	bool caught_up; /* the backlog from before this driver is read */
	/* `behind_since`: since when the logs are not read to their end, ms 0: they are.
	 * `behind_recorded_at`: when that was last recorded; `behind_pause_ms`: pause until it is
	 * recorded again. */
	struct mono behind_since, behind_recorded_at;
	int64_t behind_pause_ms;
	int end_tries, log_tries; /* failed looks at the ended attempt */
	struct mono end_since;    /* the first of end_tries */
	bool passed_recorded;     /* a passed-over look was recorded */
	bool tasks_unseen;        /* the last look at the tasks done was passed over */
	struct err *unread;       /* why a log cannot be read; NULL: all can */
};

/* attempt_core.c: begins an event of this kind about this attempt. */
void attempt_event(const struct attempt_watch *watch, enum event_kind kind, struct event *ret);

/* Gets the report of a node's agent from its nearest copy. Returns 1 with a new reference, 0 if
 * absent, -1 with an error. */
int attempt_report(struct attempt_watch *watch, int node, struct node_report *ret,
		   struct err **err);

/* reading.c: reads as much as a turn has room for; `*ret_more`: more is left. `ends`: nothing more
 * comes, or nothing more is wanted; `ended`: nothing more comes. */
int reading_turn(struct attempt_watch *watch, bool ends, bool ended, bool *ret_more,
		 struct err **err);
/* All is read: a last line without a newline counts too. */
void reading_end(struct attempt_watch *watch);

/* Keeps a line among the newest of a node's log, as evidence. */
void reading_keep_line(struct node_log *log, const char *line, size_t len);

/* numbers.c: records train.progress, at the end all that is not told; shows the present numbers. */
int numbers_record(struct attempt_watch *watch, bool at_end, struct err **err);
void numbers_show(struct attempt_watch *watch);

/* bookmark.c: keeps how far the logs are read, if that is due (`leaving`: for the last time), and
 * goes on from there. */
void bookmark_put(struct attempt_watch *watch, bool leaving);
void bookmark_restore(struct attempt_watch *watch);

/* attempt_start.c: records the claim of an attempt that is not known to hold it (nothing if the
 * attempt ended before), and when its command began, if it did. */
int attempt_start_record_claim(struct attempt_watch *watch, const struct engine_status *status,
			       struct err **err);
int attempt_start_record(struct attempt_watch *watch, struct utc started, struct err **err);

/* attempt_cost.c: adds what the engine tells of the machines to attempt.claimed and attempt.ended;
 * first records how long machines of the previous attempt were kept for this one. */
int attempt_cost_claimed(struct driver *driver, const struct engine_status *status,
			 struct event *ev, struct err **err);
void attempt_cost_ended(const struct driver *driver, const struct engine_status *status,
			struct event *ev);
int attempt_cost_at_end(struct attempt_watch *watch, const struct engine_status *status,
			struct err **err);

/* progress.c: records new graphs and numbers; at the end all of them. */
int progress_record(struct attempt_watch *watch, bool at_end, struct err **err);

/* tasks_record.c: records which tasks of the attempt's phase are done, and what they told. */
int tasks_record(struct attempt_watch *watch, bool at_end, struct err **err);

/* Values that attempt.ended borrows until it is recorded. */
struct tasks_failed {
	int node; /* on which the attempt failed */
	struct node_report report;
	char *hint; /* owned */
};

void tasks_failed_release(struct tasks_failed *failed); /* for AUTO() */

/* Sets in attempt.ended the task in which the node failed, with its objects, and begins its hint
 * with them. */
int tasks_put_failed(struct attempt_watch *watch, struct tasks_failed *failed, struct event *ev,
		     struct err **err);

/* health_record.c: records health.checked, once per attempt, as soon as the result is known. */
int health_record(struct attempt_watch *watch, struct err **err);

/* attempt_end.c: records what ended the attempt. */
int attempt_end_record(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err);

/* workers.c: records a worker process of an agent that stays dead (jobs/node/workers.h), once per
 * attempt. While the attempt goes on, the drain that the agent asked for names the worker; at the
 * end the reports do. A failure is no error: the agent drains the attempt by itself. The worker is
 * kept in the watch, because it is the cause of the end. */
void workers_record(struct attempt_watch *watch, bool at_end);

/* agent_news.c: records which checkpoints the agent passes over and, before the end, that it hears
 * nothing from its command, or hears it again. */
int agent_news_record(struct attempt_watch *watch, bool at_end, struct err **err);

/* continuity.c: records whether a resumed attempt went on from its checkpoint, once the first step
 * is known or at the end. */
int continuity_record(struct attempt_watch *watch, bool at_end, struct err **err);

#endif
