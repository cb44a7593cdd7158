/*
 * Why did an attempt fail? Evidence in, classification out; pure.
 *
 * Evidence is believed in this order: the user's own rows, the node agent's own word, the engine's
 * own word, an exit status that is conclusive by itself, the first root cause in the log, symptoms
 * in the log (a lost peer), a signal, any other exit status. Log text is written by the job: it may
 * make an unknown failure a known one, and never a success, and it never chooses a command.
 *
 * - The engine's quotation of the program (SageMaker's AlgorithmError) counts as a log; a quota
 *   that is in use, but large enough, is waited for like capacity.
 * - Only the engine or a service can report Spot, preemption or capacity. The same words in a log
 * are a hint: any program prints them, of its own requests and buffers.
 * - The first cause over all nodes wins: later ones mostly follow from it.
 * - Advice is no evidence: "may be caused by", "please set" and warnings never decide.
 * - An exception such as TypeError or ValueError is a mistake in the code, unless it follows a
 * symptom that calls for another try. Any other failure that no row knows is CLASS_UNKNOWN, which
 * is retried: a doubt costs one more attempt, not the run. Its evidence is the exception, or the
 * last line that complains.
 * - A process that was killed from outside (SIGKILL, SIGTERM…) did not die of the traceback in its
 *   log: only rows with `if_killed` count then.
 * - An attempt that was stopped, at a limit, for want of progress, by its driver or by a stranger,
 *   is classified by that, whatever its command made of the stop (failure_ending.c).
 *
 * The patterns are rows of failure_table_*.c; a new one is a row there and a line in its test.
 * The texts come from the projects named there.
 */
#ifndef STK_FLOW_FAILURE_H
#define STK_FLOW_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/flow/event.h"

/* Number of bytes of a line that are looked at. */
#define FAILURE_LINE_MAX ((size_t)16 << 10)

struct failure_line {
	const char *text; /* bytes, untrusted; no terminator needed */
	size_t len;
};

/* Last lines of one node. Nodes are ordered by the time of the line, else by the end of their
 * command, else by their place in the array: the first to end comes first, if that is known. */
struct failure_log {
	int node;
	int signal;                       /* signal that ended the command, 0: none or not known */
	int64_t ended_ms;                 /* end of the command, UTC; 0: not known */
	const struct failure_line *lines; /* oldest first */
	const int64_t *at_ms;             /* UTC time of each line, 0: not known; may be NULL */
	size_t count;
	size_t survived;  /* number of first lines after which the job went on: they are quoted, but
			     not a cause */
	const char *show; /* hint that shows the whole log, where no other is known; may be NULL */
};

/* The cause for which the agents stopped the command. */
enum failure_stopped {
	FAILURE_NOT_STOPPED,
	FAILURE_STOPPED_TIMEOUT, /* compile.timeout was over */
	FAILURE_STOPPED_STALL,   /* the command made no progress for too long */
	FAILURE_STOPPED_DRAIN,   /* the driver asked to save and stop */
	FAILURE_STOPPED_WORKER,  /* an agent asked to, because a worker process stayed dead */
	FAILURE_STOPPED_OTHER    /* anything else, such as a signal at an agent */
};

/* The kind of refusal, if the engine refused the job. */
enum failure_refused { FAILURE_NOT_REFUSED, FAILURE_REFUSED_INVALID, FAILURE_REFUSED_DENIED };

struct failure_row;

/* Rows of the user, asked before the table: they use regular expressions, which the flow does
 * not implement. Such a row is a cause, also if the process was killed from outside. */
struct failure_own {
	const struct failure_row *rows;
	size_t count;
	/* True if the row's expression is found in the line; *ret_found is the text for {} of
	 * its hint. */
	bool (*find)(const void *arg, size_t row, struct failure_line line,
		     struct failure_line *ret_found);
	const void *arg;
};

/* Pointers are borrowed for the call; NULL means not known. */
struct failure_evidence {
	enum phase phase;
	int node; /* node of this exit, signal, complaint and memory */
	bool exit_known;
	int exit;                  /* as a shell gives it: 128 + n for signal n */
	int signal;                /* signal that ended the command, 0: none or not known */
	bool out_of_memory;        /* the kernel killed a process of the node for lack of memory */
	const char *engine_reason; /* the engine's own words */
	enum failure_class agent_class; /* CLASS_NONE: the node agent had no complaint */
	const char *agent_message;
	const char *agent_hint;
	const char *agent_mount; /* mount point with no space left, as the agent found it */
	const struct failure_log *logs;
	size_t log_count;
	const struct failure_own *own;
	const char *booleans; /* names of the hyperparameters that are true or false: "a, b" */
	/* An end, or no beginning, that is not the command's own: */
	enum failure_stopped stopped;
	const char *stall;  /* of a stall: its length, limit and place */
	const char *worker; /* why a worker process of an agent stayed dead; NULL: none did */
	const char *worker_hint;
	int worker_node;
	bool finished;   /* the command made its last step */
	bool requested;  /* the driver wanted the end: a request, a limit, a mismatch */
	bool taken_down; /* somebody asked the engine for the end */
	enum failure_refused refused;
	const char *refusal_hint;
	/* Explanations: of CLASS_TIMEOUT_HANG a wait for a lock, with its cure; of any class
	 * why the log cannot be read. */
	const char *wait, *wait_hint;
	const char *unread, *unread_hint;
};

#define FAILURE_SIGNATURE_SIZE 64

/* Texts are valid UTF-8 without control characters but newline and tab. */
struct failure_classification {
	enum failure_class class; /* CLASS_NONE: it succeeded */
	const char *rule;         /* id of the row that decided, or a name in its place */
	int node;                 /* node where the cause was seen; evidence->node if none */
	int end_node; /* node that ended the attempt: evidence->node, or that of a dead worker */
	char evidence[2048];   /* the lines on which the class rests: root lines, the end of a
				  traceback */
	size_t decisive_bytes; /* bytes of `evidence` that decided; the rest is context */
	char hint[4096];       /* the cure; may be empty */
	/* "class/rule/16 hex digits": equal in two attempts that failed in the same
	 * way. Numbers, addresses, paths' folders, ranks and times do not count. */
	char signature[FAILURE_SIGNATURE_SIZE];
};

void failure_classify(const struct failure_evidence *evidence, struct failure_classification *ret);

/* Tells the names of the variables that the failure may be the want of, in the order of their
 * likelihood: those that its evidence names, else those that the service in it is used with. Most
 * are not even set anywhere; the caller knows which are. */
typedef void failure_variable_fn(void *arg, const char *name, size_t len);
void failure_variables(const struct failure_classification *classification, failure_variable_fn *fn,
		       void *arg);

/* ---- while a log streams ------------------------------------------------------ */

#define FAILURE_INDEX_MAX 1024

/* Search index of failure_bears(): the rarest four bytes of each row, so that an uninteresting
 * line costs a look at each of its bytes and not one at each row. */
struct failure_index {
	uint64_t present[1024]; /* a bit for each hash of four bytes */
	struct failure_index_row {
		const char *pattern;
		const char *literal; /* part of the pattern that has the four bytes */
		size_t len, before;  /* of the literal; of it, in front of the four bytes */
		uint32_t gram;
		uint16_t next;
	} rows[FAILURE_INDEX_MAX];
	uint16_t head[1024];
	size_t count;
};
void failure_index_init(struct failure_index *index);

/* True if the line bears on a failure: a row of the user or of the table, an exception, or the
 * first line of a traceback. `own` may be NULL. */
bool failure_bears(const struct failure_index *index, const struct failure_own *own,
		   struct failure_line line);

/* ---- the table -------------------------------------------------------------- */

enum failure_role {
	FAILURE_ROOT,   /* a cause */
	FAILURE_SYMPTOM /* counts only if no cause was found */
};

enum failure_source {
	FAILURE_LOG,    /* lines of the log, and the agent's words */
	FAILURE_RAISED, /* exceptions alone: "pkg.Error: text", mostly at a traceback's end */
	FAILURE_ENGINE, /* the engine's words */
	FAILURE_SOURCE  /* the program's line that a traceback ends with, if no row knows the
			   exception */
};

struct failure_row {
	const char *id; /* unique, stable: people will ask about it */
	enum failure_source source;
	/* Literal text, found anywhere in the line ('^': at its beginning), ignoring case (but
	 * the engine's words are compared exactly). Each '*' stands for any text, each '#' for a
	 * whole number above zero; {} in the hint names the first of them. */
	const char *pattern;
	enum failure_role role;
	enum failure_class class;
	enum failure_class in_precompile; /* class in precompile; CLASS_NONE: the same */
	bool if_killed;                   /* counts although the process was killed from outside */
	/* {}: the text for the first wildcard; {option}: its first word, without dashes;
	 * {booleans}: the hyperparameters that are true or false */
	const char *hint;
};

/* Returns the n-th row in the order of the search; NULL behind the last. */
const struct failure_row *failure_row_at(size_t n);

#endif
