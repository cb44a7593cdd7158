/* The process that delivers one notification: the command of a rule, or stoker-post. */
#ifndef STK_RUN_NOTIFY_PROCESS_H
#define STK_RUN_NOTIFY_PROCESS_H

#include <sys/types.h>

#include "jobs/base/text/js.h"

/* All is borrowed. */
struct notify_letter {
	const json_t *rule; /* of the spec's notify: "command" or "webhook" */
	const char *body;   /* JSON on one line */
	const char *occasion, *spec_file;
	const char *run; /* NULL: it is about no run */
};

/* Starts it, as the leader of a group of its own. The caller reaps it, and closes *ret_words, from
 * which its error output can be read without waiting. */
int notify_process_start(const struct notify_letter *letter, pid_t *ret_pid, int *ret_words,
			 struct err **err);

#endif
