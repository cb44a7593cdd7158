/*
 * CloudWatch Logs, read from where one has got to: one stream, or all whose names begin the
 * same. Nothing is lost and nothing comes twice, whatever the pages are like:
 *
 *   a page may be short or empty and yet not the last
 *   a token of a page lives a day; then reading goes on by time
 *   a group or stream that is not there has not begun: that is no error
 *
 * A position is (time of the newest event, how many of that millisecond were handed out):
 * it can be written down, and a new cursor begins behind it.
 *
 * Everybody in this process together asks at most 5 times a second, as the account's limit
 * is; a read waits for its turn, a second at most for each that waits before it.
 *
 * Sources: service model of botocore 1.43 (logs); CloudWatch Logs quotas.
 */
#ifndef STK_AWS_LOGS_H
#define STK_AWS_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

struct logs; /* a client; belongs to one thread */

/* `page`: how many events at most a reply brings; 0: as many as the service likes (10000,
 * or 1 MiB). */
int logs_open(int page, struct logs **ret, struct err **err);
void logs_freep(struct logs **logs); /* for AUTO(), after its cursors */

struct logs_position {
	int64_t at_ms; /* since 1970; 0: nothing was handed out yet */
	int64_t count; /* of events at exactly that time */
};

struct logs_event {
	int64_t at_ms;       /* when it was written, says who wrote it */
	const char *stream;  /* its name */
	const char *message; /* outside text, may hold NUL; a line, without its end */
	size_t len;
};
/* What it points at is good until it returns. */
typedef void (*logs_fn)(void *arg, const struct logs_event *event);

enum logs_state {
	LOGS_MORE,    /* there may be more at once */
	LOGS_NO_MORE, /* for now */
	LOGS_NOT_YET, /* there is no such group or stream yet */
};

/* ---- one stream ----------------------------------------------------------------- */

struct logs_cursor;

/* From the beginning, or from behind `from`. */
struct logs_cursor *logs_cursor_new(const char *group, const char *stream,
				    const struct logs_position *from);
void logs_cursor_freep(struct logs_cursor **cursor); /* for AUTO() */
struct logs_position logs_cursor_position(const struct logs_cursor *cursor);

/* One page. A failure hands out nothing, and the same can be asked again. Events of one
 * stream come in the order in which the service has them. */
int logs_read(struct logs *logs, struct logs_cursor *cursor, logs_fn fn, void *arg,
	      enum logs_state *ret, struct err **err);

/* ---- all streams of a prefix ------------------------------------------------------ */

struct logs_filter;

/* One that arrives late by up to a minute, behind newer ones of other streams, is found all
 * the same, by its id; a filter that begins from a position has no ids of what lies before
 * that. */
struct logs_filter *logs_filter_new(const char *group, const char *prefix,
				    const struct logs_position *from);
void logs_filter_freep(struct logs_filter **filter);
struct logs_position logs_filter_position(const struct logs_filter *filter);
/* One page, as above; events of all streams, by time. */
int logs_filter_read(struct logs *logs, struct logs_filter *filter, logs_fn fn, void *arg,
		     enum logs_state *ret, struct err **err);

/* The names of these streams, sorted; yours to free (auto_strv). None if there is no such
 * group yet, the first 10000 of more. A job that was started again has opened new ones. */
int logs_streams(struct logs *logs, const char *group, const char *prefix, char ***ret,
		 struct err **err);

#endif
