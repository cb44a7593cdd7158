/*
 * Why did an attempt fail? Evidence in, verdict out; pure.
 *
 * What decides, in this order: the node agent's own word, the engine's own
 * word, an exit status that says it by itself, the first root cause in the log,
 * symptoms in the log (a lost peer), a signal, any other exit status. Log text
 * is written by whoever runs in the job: it may make an unknown failure a known
 * one, and never a success, and it never chooses a command.
 *
 * - What the engine merely quotes of the program (SageMaker's AlgorithmError) counts as a
 *   log; a quota that is in use, but large enough, is waited for like capacity.
 * - The first cause over all nodes wins: what follows it is mostly others hearing
 *   of it.
 * - Advice is no evidence: "may be caused by", "please set" and warnings never
 *   decide.
 * - An exception that no row knows, nor one that it is chained to, is judged by its
 *   words (failure_words.c); one that Python raises by itself, such as TypeError, is a
 *   mistake in the code unless they speak strongly for something else.
 * - Where nothing is known at all, an exception among the last lines counts without a
 *   traceback, then the last line that speaks of an error with those around it, then
 *   the last lines and the engine's words. The less is known, the more must speak for
 *   a verdict that stops the run.
 * - Killed from outside (SIGKILL, SIGTERM…), a process did not die of the
 *   traceback in its log: then only rows that say so count.
 *
 * The patterns are rows of failure_table_*.c; a new one is a row there and a line
 * in its test. Their sources are the notes of the projects named there.
 */
#ifndef STK_FLOW_FAILURE_H
#define STK_FLOW_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/flow/event.h"

/* Only so many bytes of a line are looked at. */
#define FAILURE_LINE_MAX ((size_t)16 << 10)

struct failure_line {
	const char *text; /* bytes, untrusted; no terminator needed */
	size_t len;
};

/* The end of what one node said. Nodes are compared by the time of the line, else
 * by the time they ended, else by their place in the array: the first to end first,
 * where that is known. */
struct failure_log {
	int node;
	int signal;                       /* that ended its command, 0: none or not known */
	int64_t ended_ms;                 /* when its command ended, UTC; 0: not known */
	const struct failure_line *lines; /* oldest first */
	const int64_t *at_ms;             /* of each line, UTC, 0: not known; may be NULL */
	size_t count;
};

/* All pointers are borrowed for the call; those that are NULL say nothing. */
struct failure_evidence {
	enum phase phase;
	int node; /* whose exit, signal, complaint and memory these are */
	bool exit_known;
	int exit;                       /* as a shell gives it: 128 + n for signal n */
	int signal;                     /* that ended the command, 0: none or not known */
	bool out_of_memory;             /* the kernel killed a process of it for want of memory */
	const char *engine_reason;      /* the engine's own words */
	enum failure_class agent_class; /* CLASS_NONE: the node agent had no complaint */
	const char *agent_message;
	const char *agent_hint;
	const char *agent_mount; /* mount point with no space left, as the agent found it */
	const struct failure_log *logs;
	size_t log_count;
};

#define FAILURE_SIGNATURE_SIZE 64

/* Texts are valid UTF-8 without control characters but newline and tab. */
struct failure_verdict {
	enum failure_class class; /* CLASS_NONE: it succeeded */
	const char *rule;         /* id of the row that decided, or what stands for one */
	int node;                 /* where the cause was seen; evidence->node if nowhere */
	char evidence[2048];      /* what it rests on: root lines, the end of a traceback */
	size_t proof;             /* bytes of it that made the verdict; the rest is context */
	char hint[4096];          /* the cure; may be empty */
	/* "class/rule/16 hex digits": equal in two attempts that failed in the same
	 * way. Numbers, addresses, paths' folders, ranks and times do not count. */
	char signature[FAILURE_SIGNATURE_SIZE];
};

void failure_judge(const struct failure_evidence *evidence, struct failure_verdict *ret);

/* Write ret->signature anew, after class, rule, evidence or proof were changed. */
void failure_sign(struct failure_verdict *ret);

/* ---- the table -------------------------------------------------------------- */

enum failure_role {
	FAILURE_ROOT,   /* a cause */
	FAILURE_SYMPTOM /* counts where no cause was found */
};

enum failure_source {
	FAILURE_LOG,    /* lines of the log, and the agent's words */
	FAILURE_RAISED, /* exceptions alone: "pkg.Error: text", mostly at a traceback's end */
	FAILURE_ENGINE, /* the engine's words */
	FAILURE_SOURCE  /* the program's line that a traceback ends with, where no row knows the
			   exception */
};

struct failure_row {
	const char *id; /* unique, stable: people will ask about it */
	enum failure_source source;
	/* Literal text, found anywhere in the line ('^': at its beginning), in capitals
	 * or not (but the engine's words are compared exactly); each
	 * '*' stands for any text, the first one is what {} in the hint names. */
	const char *pattern;
	enum failure_role role;
	enum failure_class class;
	enum failure_class in_precompile; /* CLASS_NONE: the same there */
	bool if_killed;                   /* counts although the process was killed from outside */
	const char *hint; /* {}: the text for '*'; {option}: its first word, without dashes */
};

/* All rows, in the order in which they are asked; NULL behind the last. */
const struct failure_row *failure_row_at(size_t n);

#endif
