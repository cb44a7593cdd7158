/* Shared by the files of the local engine and by nothing else: its record of an
 * attempt, what can be seen of its processes, and how they are signalled. */
#ifndef STK_ENGINE_LOCAL_INSIDE_H
#define STK_ENGINE_LOCAL_INSIDE_H

#include "jobs/base/json.h"
#include "jobs/base/proc.h"
#include "jobs/engine/far.h"
#include "jobs/engine/local.h"

#define TOKEN_TEXT 33 /* hex digits and a NUL */
#define PIDNS_TEXT 64
#define HOST_TEXT  256

/* Of the attempt whose files lie here; NULL: of none. */
struct near {
	char *prefix, *root;
};

struct local {
	struct engine engine;
	struct store *store; /* the workspace */
	char *root;          /* of its files, absolute; may not be there yet */
	struct far *far;     /* NULL: the workspace is a directory, and that one */
	struct near *near;   /* with a far workspace */
	/* this process's view of the machine */
	char boot[37], pidns[PIDNS_TEXT], host[HOST_TEXT];
};

/* --- local_far.c: a workspace that is no directory --- */

struct near *near_new(void);
void near_freep(struct near **near);

/* The object of that key, appended: 1, 0 absent, -1. Where the store is far, what it
 * said up to FAR_MS ago. */
int local_get(const struct local *local, const char *key, size_t max, struct sb *ret,
	      struct err **err);
/* What is remembered of an attempt counts no more: the next question goes to the store. */
void local_forget(const struct local *local, const char *prefix);
/* The files of this attempt lie here, beneath `root`: proved by what we read there. */
void local_know(const struct local *local, const char *prefix, const char *root);
/* Where its files lie, NULL if they cannot be read here, as far as is known. Borrowed,
 * until something else is known. */
const char *local_near_root(const struct local *local, const char *prefix);

/* --- local_record.c: engine.json --- */

struct agent_end {
	bool known;
	int status; /* of waitpid */
};

enum stop_why { STOP_NONE, STOP_REQUEST, STOP_PEER };

struct record {
	char job[128], token[TOKEN_TEXT];
	char boot[37], pidns[PIDNS_TEXT], host[HOST_TEXT];
	char *work; /* owned; NULL: an older version's */
	int nodes;
	bool started;           /* the identities of all agents stand in it */
	struct agent_end *ends; /* by rank; what became of agents that we reaped */
	struct proc_id *agents; /* by rank; pid 0: not known */
	struct proc_id submitter;
	int64_t submitted_ms; /* utc */
	int64_t stop_at_ms;   /* mono, of this boot */
	enum stop_why stop;
};

void record_release(struct record *record); /* for AUTO(); { 0 } is fine */
/* A fresh one for a job about to be started by this process. */
void record_init(struct record *record, const struct local *local, const char *job, int nodes);
/* 1 read, 0 there is none, -1 unreadable. */
int record_load(const struct local *local, const char *prefix, struct record *ret,
		struct err **err);
int record_save(const struct local *local, const char *prefix, const struct record *record,
		struct err **err);
/* The same, if there is none: 1 made, 0 taken, -1 error. */
int record_create(const struct local *local, const char *prefix, const struct record *record,
		  struct err **err);
int record_remove(const struct local *local, const char *prefix, struct err **err);

/* What the agents are given, and found by: path or URL. Yours to free. */
char *local_order(const struct local *local, const char *prefix);
/* Keys beneath the attempt's prefix; yours to free. */
char *local_key(const char *prefix, const char *name);
char *local_node_key(const char *prefix, int node, const char *name);
/* Where the file of a node is: NULL if it cannot be read here. Yours to free. */
char *local_node_path(const struct local *local, const char *prefix, int node, const char *name);

/* The report of a node as its agent has it, if it belongs to this submission: 1, 0 none, -1 error.
 * `token` NULL: of any. */
int report_load(const struct local *local, const char *prefix, int node, const char *token,
		json_t **ret, struct err **err);
/* A process of a report ("agent", "command"); false if it names none. */
bool report_process_of(const json_t *report, const char *name, struct proc_id *ret);

/* --- local_scan.c: processes of ours in /proc --- */

struct found {
	struct proc_id id;
	int rank; /* of an agent; -1: no agent */
};

/* Living processes of this user that carry the token in their environment (NULL:
 * none asked for) or are agents of this order; at most `max`. */
size_t scan_processes(const char *token, const char *order, struct found *ret, size_t max);
/* Signal exactly this process, never one that got its pid later. With a token
 * it must also still carry that. */
bool signal_process(const struct proc_id *id, int signo);
/* Collect the exit status of a child of ours that has ended; false if it is not
 * ours, or was collected before. */
bool reap_child(const struct proc_id *id, int *ret_status);

/* --- local_view.c: what can be seen of an attempt now --- */

enum sight {
	SIGHT_PIDS, /* same boot, same PID namespace: identities decide */
	SIGHT_GONE, /* the machine was restarted, or nobody holds a lock */
	SIGHT_HELD, /* somewhere else, and an agent holds its lock */
	SIGHT_NONE, /* somewhere else, perhaps alive */
};

struct node_view {
	bool alive;
	struct proc_id id; /* of the agent; pid 0: not known */
	json_t *report;    /* NULL: none */
};

struct view {
	struct record record;
	enum sight sight;
	struct node_view *nodes; /* record.nodes of them */
	int alive;               /* how many */
	char *order;             /* as the agents were given it */
};

void view_release(struct view *view); /* for AUTO(); { 0 } is fine */
/* 1, 0 there is no record, -1 it cannot be read. */
int view_load(const struct local *local, const char *prefix, struct view *ret, struct err **err);

/* Nothing of it is at work any more: its agents are gone, or, where they cannot be seen,
 * all of them have reported their ends. */
bool view_is_over(const struct view *view);

/* Kill whatever of the attempt lives on without its agent; how many there were. */
size_t view_kill_orphans(const struct view *view);
/* SIGTERM to the agents and a note of when; later, once that is `grace_ms` and
 * the margin ago, SIGKILL to them and to their commands. */
int view_stop(const struct local *local, const char *prefix, struct view *view, enum stop_why why,
	      int64_t grace_ms, struct err **err);

/* --- local_describe.c --- */

int local_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err);

#endif
