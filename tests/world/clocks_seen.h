/*
 * What a driver was told by its engine and its journal, and what it tried, as it happened: the
 * rules with clocks begin to count there. The world calls the functions below at these places;
 * each rule is a row of functions, which are called in turn.
 */
#ifndef STK_TESTS_WORLD_CLOCKS_SEEN_H
#define STK_TESTS_WORLD_CLOCKS_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/engine/engine.h"
#include "tests/world/call.h"
#include "tests/world/story.h"

/* What a driver asked its engine for, and what it was told. */
struct engine_word {
	/* WORD_SUBMITS: it is about to, and nothing is told yet. */
	enum { WORD_DESCRIBE, WORD_FIND, WORD_SUBMITS, WORD_SUBMIT, WORD_STOP } what;
	const struct process *who;
	enum phase phase;
	int64_t attempt;
	bool answered;           /* not refused, not lost */
	bool there;              /* the job is, or was, one of the engine's: not STOP */
	bool absent;             /* it is not: FIND, and SUBMIT that had no effect */
	enum engine_state state; /* DESCRIBE */
	bool well;               /* DESCRIBE: it has ended, with exit 0 */
};

/* The end of a call of the journal. */
enum journal_word { JOURNAL_REFUSED, JOURNAL_WAS_READ, JOURNAL_WAS_WRITTEN };

/* A call of a process that was refused. */
struct refusal {
	const struct process *who;
	enum call_id id;
	const char *about; /* path, key or name; "": nothing with a name */
	bool done;         /* it was carried out all the same */
};

/* A rule; a function may be NULL. Those with a story are called once there is one. */
struct clock_rule {
	void (*reset)(void);
	void (*on_event)(const struct story *story, int64_t index);
	void (*on_second)(const struct story *story);
	void (*on_engine)(const struct story *story, const struct engine_word *word);
	/* A process is about to start or to stop a job. */
	void (*on_act)(const struct process *who, const char *what);
	void (*on_refusal)(const struct refusal *refusal);
	void (*on_journal)(const struct process *who, enum journal_word word);
	void (*on_signal)(const struct process *to, int signo);
	void (*on_call)(const struct process *who, enum call_id id, const char *about);
	void (*on_end)(const struct story *story);
};

/* The driver that took the run over last; NULL: it has ended, or has left. */
const struct process *seen_driver(void);
/* A word that the engine gives about that attempt is of its own: its newest. */
bool seen_is_open(const struct story *story, enum phase phase, int64_t attempt);
/* It is, or may be, under way as far as the journal tells. */
bool seen_has_job(const struct story *story);

void seen_begin(void);                         /* a schedule begins */
void seen_next_run(void);                      /* of it, in the same world */
void seen_look(const struct story *story);     /* after each effect and event */
void seen_look_end(const struct story *story); /* once */

/* ---- called by the world ---- */

/* The same engine, listened to. */
const struct engine_ops *seen_engine(const struct engine_ops *real);
void seen_refusal(const struct process *who, enum call_id id, const char *about, bool done);
void seen_journal(const struct process *who, enum journal_word word);
/* A call that the running process begins; of a driver's the rules hear that have a name. */
void seen_call(const struct process *who, enum call_id id, const char *about);

#endif
