/*
 * Passes the command's output on, byte for byte, between the agent's own lines.
 *
 * Only one thing is changed: a line of the command that begins like a line of
 * the agent gets a backslash in front, so that no script can speak for the
 * agent. A carriage return begins a line too, for readers that take it as one.
 * Memory is bounded whatever the command prints: nothing waits for the end of a
 * line, only the few bytes that may become that beginning are held back.
 */
#ifndef STK_NODE_UPLOAD_OUTPUT_RELAY_H
#define STK_NODE_UPLOAD_OUTPUT_RELAY_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/process/outlet.h"
#include "jobs/base/sb.h"
#include "jobs/node/orders.h"

struct output_relay {
	struct outlet outlet; /* destination of the output */
	int file_fd; /* log file, which counts for more than that; -1: none; the caller's */
	struct orders *orders; /* to the process that writes the log file instead; NULL: none */
	struct orders *notes;  /* to the process that reads the log file; NULL: none */
	struct mono noted_at;  /* begin of the second in which `noted` of them were given */
	int noted;
	bool withheld; /* the reader hung when the newest one was due */
	/* errno of the first failed write (to the file, if any; the caller's to set, if another
	 * process writes it); the rest is dropped. */
	int failed;
	bool mid_line;  /* the last byte written was no newline */
	bool at_start;  /* the next byte of the command begins a line */
	size_t matched; /* bytes of the agent's prefix matched so far, and held back */
	struct sb out;
};

/* `file_fd` -1 and no `orders`: no file, and the reader of `fd` is waited for. `fd` -1: the file is
 * all there is. `loop` may be NULL. */
void output_relay_init(struct output_relay *relay, int fd, int file_fd, struct orders *orders,
		       struct loop *loop);
void output_relay_release(struct output_relay *relay);

/* From now on these orders tell how long the log file is, and since when. */
void output_relay_note(struct output_relay *relay, struct orders *notes);

/* Writes all of it, again where it failed for causes that may pass. Returns 0, or errno. */
int output_relay_write(int fd, const char *bytes, size_t len);

/* Passes on output of the command, in pieces as they come. */
void output_relay_pass(struct output_relay *relay, const char *bytes, size_t len);
/* Writes what is held back: the command writes no more. */
void output_relay_flush(struct output_relay *relay);
/* Writes a line of the agent itself, given without its newline; on a line of its own even if the
 * command has not ended its line. */
void output_relay_say(struct output_relay *relay, const char *line);

#endif
