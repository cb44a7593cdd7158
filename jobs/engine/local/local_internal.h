/* Private to the local engine: its record of an attempt, the view of its processes, and
 * signalling. */
#ifndef STK_ENGINE_LOCAL_LOCAL_INTERNAL_H
#define STK_ENGINE_LOCAL_LOCAL_INTERNAL_H

#include "jobs/base/process/proc.h"
#include "jobs/base/text/js.h"
#include "jobs/engine/local/local.h"
#include "jobs/engine/log_times.h"
#include "jobs/engine/workspace_cache.h"

#define TOKEN_TEXT 33 /* hex digits and a NUL */
#define PIDNS_TEXT 64
#define HOST_TEXT  256

struct object_workspace {
	char *prefix, *root; /* attempt with files on this machine; NULL: none */
	char *ended; /* prefix of the attempt that was last seen to have ended; NULL: none */
};

struct local {
	struct engine engine;
	struct store *store; /* the workspace */
	/* root folder of the workspace's files, absolute; may not exist yet */
	char *root;
	struct log_times times;        /* of the log that was asked about last */
	struct workspace_cache *cache; /* NULL: the workspace is a directory, which is `root` */
	struct object_workspace *object_workspace; /* used with a remote workspace */
	/* identity of this machine, boot and PID namespace, as seen by this process */
	char boot[37], pidns[PIDNS_TEXT], host[HOST_TEXT];
};

/* --- local_object_workspace.c: a workspace that is not a directory --- */

struct object_workspace *local_object_workspace_new(void);
void local_object_workspace_freep(struct object_workspace **object_workspace);

/* Appends the object of that key: 1, 0 absent, -1. From a remote store, as it was up to REMOTE_MS
 * ago. */
int local_get(const struct local *local, const char *key, size_t max, struct sb *ret,
	      struct err **err);
/* Forgets the cached state of an attempt: the next read goes to the store. */
void local_forget(const struct local *local, const char *prefix);
/* The attempt is seen to have ended: what its agents wrote last is in the store now, so the first
 * time the cached state is forgotten. */
void local_ended(const struct local *local, const char *prefix);
/* Records that the files of this attempt are beneath `root` on this machine: proved by reading
 * them. */
void local_remember_root(const struct local *local, const char *prefix, const char *root);
/* Returns the root of the attempt's files; NULL if they cannot be read here, as far as is known.
 * Borrowed, until local_remember_root() or local_forget(). */
const char *local_object_workspace_root(const struct local *local, const char *prefix);

/* --- local_record.c: engine.json --- */

struct agent_end {
	bool known;
	int status; /* status as from waitpid() */
};

enum stop_why { STOP_NONE, STOP_REQUEST, STOP_PEER };

struct local_record {
	char job[128], token[TOKEN_TEXT];
	char boot[37], pidns[PIDNS_TEXT], host[HOST_TEXT];
	char *work; /* owned; NULL: record of an older version */
	int nodes;
	bool started;           /* the record holds the identities of all agents */
	struct agent_end *ends; /* by rank; ends of the agents that this engine reaped */
	struct proc_id *agents; /* by rank; pid 0: not known */
	struct proc_id submitter;
	int64_t submitted_ms; /* utc */
	int64_t stop_at_ms;   /* mono, of this boot */
	enum stop_why stop;
};

void local_record_release(struct local_record *record); /* for AUTO(); { 0 } is fine */
/* Initialises a new record for a job that this process is about to start. */
void local_record_init(struct local_record *record, const struct local *local, const char *job,
		       int nodes);
/* Returns 1, 0 if absent, -1 if unreadable. */
int local_record_load(const struct local *local, const char *prefix, struct local_record *ret,
		      struct err **err);
int local_record_save(const struct local *local, const char *prefix,
		      const struct local_record *record, struct err **err);
/* Saves the record if there is none yet: 1 created, 0 taken, -1 error. */
int local_record_create(const struct local *local, const char *prefix,
			const struct local_record *record, struct err **err);
int local_record_remove(const struct local *local, const char *prefix, struct err **err);

/* Returns the path or URL of the order, which the agents get as an argument and are found by. The
 * caller frees it. */
char *local_order(const struct local *local, const char *prefix);
/* Return keys beneath the attempt's prefix; the caller frees them. */
char *local_key(const char *prefix, const char *name);
char *local_node_key(const char *prefix, int node, const char *name);
/* Returns the path of a node's file; NULL if it cannot be read here. The caller frees it. */
char *local_node_path(const struct local *local, const char *prefix, int node, const char *name);

/* Reads an object of this name from an agent's folder: 1, 0 absent, -1. */
int local_record_load_node(const struct local *local, const char *prefix, int node,
			   const char *file, json_t **ret, struct err **err);
/* Reads the report of a node from its agent's copy, if it belongs to this submission: 1, 0 absent,
 * -1 error. `token` NULL: of any submission. */
int local_record_load_report(const struct local *local, const char *prefix, int node,
			     const char *token, struct node_report *ret, struct err **err);
/* Reads a process of a report; false if the report names none. */
bool local_record_process_of_report(const struct node_report_process *process, struct proc_id *ret);

/* --- local_scan.c: the attempt's processes in /proc --- */

struct local_found {
	struct proc_id id;
	int rank; /* rank of an agent; -1: not an agent */
};

/* Finds living processes of this user that carry the token in their environment (NULL: not searched
 * for) or are agents of this order; at most `max`. Returns the count, or -1 if one of them could
 * not be looked at: then there may be more. */
int local_scan_processes(const char *token, const char *order, struct local_found *ret, size_t max,
			 struct err **err);
/* Finds the command of this node that an agent has started: 1 and its pid, 0 none, -1. */
int local_scan_command(pid_t agent, int node, pid_t *ret, struct err **err);
/* Signals exactly this process, never one that got its pid later. */
bool local_scan_signal(const struct proc_id *id, int signo);
/* Collects the exit status of a child of this process that has ended; false if it is not a child,
 * or was collected before. */
bool local_scan_reap(const struct proc_id *id, int *ret_status);

/* --- local_view.c: the visible state of an attempt --- */

enum local_sight {
	SIGHT_PIDS, /* same boot, same PID namespace: identities decide */
	SIGHT_GONE, /* the machine was restarted, or no lock is held */
	SIGHT_HELD, /* elsewhere, and an agent holds its lock */
	SIGHT_NONE, /* elsewhere, perhaps alive */
};

struct node_view {
	bool alive;
	struct proc_id id; /* identity of the agent; pid 0: not known */
	bool reported;
	struct node_report report; /* if reported */
};

struct local_view {
	struct local_record record;
	enum local_sight sight;
	struct node_view *nodes; /* record.nodes of them */
	int alive;               /* number of agents alive */
	char *order;             /* path or URL, as the agents got it */
};

void local_view_release(struct local_view *view); /* for AUTO(); { 0 } is fine */
/* Returns 1, 0 if there is no record, -1 if it cannot be read. */
int local_view_load(const struct local *local, const char *prefix, struct local_view *ret,
		    struct err **err);

/* True if the attempt is over: its agents are gone, or, if they cannot be seen, all of them have
 * reported their ends. */
bool local_view_is_over(const struct local_view *view);

/* Kills processes of the attempt that outlived their agent; returns how many there were, or -1 if
 * that is not known. */
int local_view_kill_orphans(const struct local_view *view, struct err **err);
/* Sends SIGTERM to the agents and records the time. When called again later than `grace_ms` and the
 * margin, sends SIGKILL to them and to their commands. */
int local_view_stop(const struct local *local, const char *prefix, struct local_view *view,
		    enum stop_why why, int64_t grace_ms, struct err **err);

/* --- local_describe.c --- */

int local_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err);

#endif
