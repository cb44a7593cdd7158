/*
 * A stdout or stderr that may be read slowly, or never: a log driver that hangs, a pipe that was
 * forgotten, a terminal behind a dead connection. If a full copy is kept elsewhere, writes never
 * wait for the reader: output that it does not take is buffered. Once the buffer is full, the
 * oldest output is dropped and a note in its place says how much is missing; or, if no note may be
 * mixed into the output of other programs, the newest output is dropped. If there is no copy,
 * writes wait for the reader.
 */
#ifndef STK_BASE_PROCESS_OUTLET_H
#define STK_BASE_PROCESS_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/process/loop.h"
#include "jobs/base/sb.h"

struct outlet_rules {
	size_t room;     /* size of the buffer in bytes; 0: writes wait for the reader, */
	bool until_stop; /* but not past loop_stop_pending(): then the rest is dropped */
	const char *by;  /* name that begins the note on dropped bytes; NULL: no note, and */
			 /* output that does not fit as a whole is dropped */
	const char *has; /* "the log has them": where the copy is */
};

struct outlet {
	int fd; /* owned by the caller */
	struct outlet_rules rules;
	int failed; /* errno of the first write that failed; later output is dropped silently */
	uint64_t dropped;    /* total bytes that were not taken in time */
	uint64_t unreported; /* dropped bytes not yet counted in a note */
	uint64_t noted;      /* dropped bytes counted in the note being written */
	bool note_begun;
	bool mid_line;     /* the last byte written was not a newline */
	struct sb note;    /* rest of the note that is not written yet */
	char *ring;        /* `room` bytes, allocated at the first need; NULL until then */
	size_t start, len; /* range of the waiting bytes in the ring */
	struct loop *loop; /* NULL: waiting bytes are written with the next output */
	struct watch *watch;
};

/* Makes writes to `fd` non-blocking. If possible, the descriptor is reopened, so that other
 * processes that share it are not affected. Regular files are left alone. Returns true if
 * outlet_block() must be called later. */
bool outlet_unblock(int fd);
void outlet_block(int fd);

/* The strings in `rules` are borrowed. */
void outlet_init(struct outlet *outlet, int fd, const struct outlet_rules *rules,
		 struct loop *loop);
void outlet_release(struct outlet *outlet);
/* Uses another loop from now on, or none (NULL). */
void outlet_use(struct outlet *outlet, struct loop *loop);

void outlet_put(struct outlet *outlet, const char *bytes, size_t len);
/* True if output waits for the reader. */
bool outlet_waits(const struct outlet *outlet);
/* Waits up to `wait_ms` for the reader to take the waiting output, then drops the rest. For use
 * when no more output is expected for a while. */
void outlet_flush(struct outlet *outlet, int64_t wait_ms);
/* The same, but waits as long as the reader takes some bytes at least every `idle_ms`. */
void outlet_drain(struct outlet *outlet, int64_t idle_ms);

#endif
