/*
 * Calls: what each costs, and how it fails. One row of calls.def per function of the C library that
 * touches the outside; the linker's --wrap options, this enum, the fault injector and the lint are
 * made from that table.
 *
 * A wrapper has one shape. The call may fail before it has done anything, or after it has done all
 * (`done`: an answer that is lost), or be short:
 *
 *	int __wrap_rename(const char *from, const char *to)
 *	{
 *		struct call call = call_enter(CALL_rename, from, -1);
 *
 *		if (call.error && !call.done)
 *			return call_fail(&call);
 *		return call_return(&call, tree_rename(from, to));
 *	}
 *
 * call_enter() spends the time that the call takes, in which others run, the process may be
 * stopped, and may be killed: then it does not return. Outside of any process (self == NULL) a
 * wrapper must not be called: it aborts, since the world's own code uses __real_NAME() or plain
 * functions.
 */
#ifndef STK_TESTS_WORLD_CALL_H
#define STK_TESTS_WORLD_CALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a call does to the outside. */
enum call_kind {
	CALL_LOOKS,   /* changes nothing: a failure is repeated at no cost */
	CALL_CHANGES, /* changes something; may have been done although it failed */
	CALL_WAITS,   /* may wait for others */
	CALL_OWN,     /* touches only the process itself (masks, limits): fails never */
};

#define CALL(name, ...) CALL_##name,
enum call_id {
#include "tests/world/calls.def"
	CALL_COUNT
};
#undef CALL

struct call_row {
	const char *name;
	enum call_kind kind;
	const int *errors; /* that it may legally return; ends with 0 */
};
extern const struct call_row call_rows[CALL_COUNT];

/* "Access denied" of a service is its answer, not a call that failed: it means that somebody has to
 * allow something, and no client repeats it. */
bool call_is_answer(enum call_id id, int error);

struct call {
	enum call_id id;
	int error;    /* errno that it is to fail with; 0: it works */
	bool done;    /* `error` is said although the call was carried out */
	size_t share; /* of a read or write: at most so many bytes; 0: as many as asked */
};

/* `path`: what the call is about, for faults of one place and for the trace; NULL: nothing with a
 * name. `fd`: the descriptor it is about, or -1. */
struct call call_enter(enum call_id id, const char *path, int fd);
/* Spends the time that it takes to move so many bytes. */
void call_move(size_t bytes);
/* Sets errno to the error of the call; returns -1. */
int call_fail(const struct call *call);
/* `result` is a negative errno value, or the value of the function. */
ssize_t call_return(const struct call *call, ssize_t result);

/* ---- faults: told by who plays the schedule ---- */

struct process;

/* Asked at each call of a process, before it is carried out: what is to happen to it. Fills in
 * error, done and share of a call whose row allows it, may spend more time, may kill or stop the
 * process, or a machine. NULL: nothing ever happens. */
extern void (*call_fault)(struct process *process, struct call *call, const char *path);
/* What a call costs when nothing happens, in ns; drawn from the world's chance. */
extern int64_t (*call_cost)(const struct process *process, const struct call *call);

/* Of all calls so far, with their times and results: the same seed gives the same digest. */
extern uint64_t call_digest;

/* Declares the wrapper of a function of the C library. */
#define CALL_WRAPS(name) extern __typeof__(name) __wrap_##name

#endif
