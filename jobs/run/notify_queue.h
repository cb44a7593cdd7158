/*
 * The notifications that are due: taken from the journal's events, old and new. Pure state:
 * notify.c sends them. See notify.h.
 */
#ifndef STK_RUN_NOTIFY_QUEUE_H
#define STK_RUN_NOTIFY_QUEUE_H

#include <sys/types.h>

#include "jobs/base/process/loop.h"
#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

#define NOTIFY_WORDS_MAX 512 /* the last bytes of a command's error output that are kept */

struct driver;

/* A message that is still to be sent, or to be recorded. */
struct notify_message {
	struct driver *driver;
	int64_t about, rule;
	const char *occasion;
	char *body; /* JSON on one line */
	int tries;
	struct mono due; /* time of the next try */
	pid_t sender;    /* leads a group of its own, and is not waited for yet; 0: no process */
	int words_fd;
	char words[NOTIFY_WORDS_MAX];
	size_t words_len;
	struct watch *end, *readable, *timeout;
	bool too_late;
	/* Outcome, once known; then only the record is still due. */
	bool is_sent;
	char *failure; /* message; NULL: not failed */
	struct notify_message *next;
};

struct notify {
	struct notify_message *first;
	int under_way;
	struct watch *timer; /* for the next try that is due */
	struct watch *flush; /* NULL: the run has not ended */
};

/* Takes an event of the journal, old or new: a message becomes due, or was sent. */
void notify_queue_apply(struct driver *driver, const struct event *ev);

/* True if a rule of `notify` asks for an occasion, one of the words of notify[].when. */
bool notify_queue_asks(const json_t *rule, const char *occasion);

/* True if a message is still to be sent. */
bool notify_queue_pending(const struct driver *driver);

#endif
