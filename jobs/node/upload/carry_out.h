/*
 * The uploader's orders (uploader.h) and what it does about each. Those that it goes on with later
 * are noted here, for its rounds (uploader_work.c).
 *
 * A workspace that is a directory refuses what will be refused again: a report or a piece of the
 * log that it does not take after a few tries is told as refused, as if the agent had written it
 * itself.
 */
#ifndef STK_NODE_UPLOAD_CARRY_OUT_H
#define STK_NODE_UPLOAD_CARRY_OUT_H

#include <stdbool.h>

#include "jobs/node/claim.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/upload/log_series.h"
#include "jobs/node/upload/uploader.h"
#include "jobs/node/upload/usage_file.h"

struct carrier {
	struct agent_config config; /* the restart is that of the claim, once it is taken */
	const struct claim *claim;
	struct store *store;                  /* the caller's */
	void (*say)(void *arg, json_t *line); /* takes the reference */
	void *arg;
	bool claimed, last;
	bool look_due;
	bool report_due;      /* of a file: it is new */
	bool report_new;      /* since report_due was looked at */
	char *progress;       /* to be published; NULL: it is */
	int log_fd;           /* of a directory, opened when it is needed; -1: not yet */
	int times_fd;         /* the same for the times of the log */
	struct mono dated_at; /* when the last of them was written; ms 0: never */
	bool log_lost;
	struct log_series series; /* of that log */
	struct usage_file usage;
};

void carry_out_release(struct carrier *carrier); /* closes the files */

/* Carries out an order with the bytes that follow it. */
void carry_out(struct carrier *carrier, const json_t *order, const char *bytes, size_t len);
/* The agent is gone: writes the bytes, if they are of the log, and does nothing else. */
void carry_out_log(struct carrier *carrier, const json_t *order, const char *bytes, size_t len);
/* Publishes the progress, if that is still to be done. */
void carry_out_progress(struct carrier *carrier);

extern const char *const carry_out_news[UPLOADER_NEWS]; /* kinds of the lines */
/* Returns a new line of that kind, to be filled. */
json_t *carry_out_line(enum uploader_news news);

#endif
