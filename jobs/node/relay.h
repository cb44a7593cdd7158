/*
 * Passes the command's output on, byte for byte, between the agent's own lines.
 *
 * Only one thing is changed: a line of the command that begins like a line of
 * the agent gets a backslash in front, so that no script can speak for the
 * agent. A carriage return begins a line too, for readers that take it as one.
 * Memory is bounded whatever the command prints: nothing waits for the end of a
 * line, only the few bytes that may become that beginning are held back.
 */
#ifndef STK_NODE_RELAY_H
#define STK_NODE_RELAY_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/sb.h"

struct relay {
	int fd;      /* where it goes; the caller's */
	int copy_fd; /* and once more, as a file that counts for more; -1: nowhere; the caller's */
	int failed;  /* errno of the first write that failed, there if it goes there: the rest is
		      * dropped */
	bool deaf;   /* nobody takes it at `fd` any more */
	bool mid_line;  /* the last byte written was no newline */
	bool at_start;  /* the next byte of the command begins a line */
	size_t matched; /* bytes of the agent's prefix seen there and held back */
	struct sb out;
};

void relay_init(struct relay *relay, int fd);
void relay_release(struct relay *relay);

/* Output of the command, in pieces as they come. */
void relay_pass(struct relay *relay, const char *bytes, size_t len);
/* Let out what is held back: the command writes no more. */
void relay_flush(struct relay *relay);
/* A line of the agent itself, without its newline; on a line of its own even
 * where the command has not ended its line. */
void relay_say(struct relay *relay, const char *line);

#endif
