/*
 * Reads a repository in a process of its own, with a deadline.
 *
 * Files beneath .git are not trusted: a FIFO in place of an object, or a half-written one, keeps
 * libgit2 waiting for ever, and nothing in a process can end that. So the pin is made in a child,
 * which reports its progress. If it is silent for PIN_SILENCE_MS while it reads git's files, the
 * child is killed, and the error names the folder. Reading the work tree itself has no deadline:
 * large files on a slow disk take as long as they take.
 */
#ifndef STK_SOURCE_PIN_ASIDE_H
#define STK_SOURCE_PIN_ASIDE_H

#include "jobs/source/source.h"

#define PIN_SILENCE_MS 30000

/* Progress of a pin; made by pin_aside(). NULL: nobody listens. */
struct pin_ticker;
/* Tells that something of git was read: the silence begins again. */
void pin_tick(const struct pin_ticker *ticker);
/* Tells that from here on, until the next tick, the work tree's own files are read. */
void pin_tick_tree(const struct pin_ticker *ticker);

/* Makes a pin in the child. */
typedef int (*pin_fn)(const struct source_request *request, const struct pin_ticker *ticker,
		      struct source_pin **ret, struct err **err);

/* Runs `fn` in a child and returns what it made. EXIT_REFUSED: git's files did not answer. */
int pin_aside(pin_fn fn, const struct source_request *request, struct source_pin **ret,
	      struct err **err);

#endif
