/*
 * CloudWatch Logs, read from a position on: one stream, or all streams with a common name prefix.
 * No event is lost and none comes twice, whatever the pages are like:
 *
 *   a page may be short or empty and yet not the last
 *   a token of a page is valid for a day; then reading goes on by time
 *   a group or stream that is absent has not begun: that is not an error
 *
 * A position is (time of the newest event, number of events of that millisecond handed out): it
 * can be stored, and a new cursor begins after it.
 *
 * All clients of this process together send at most 5 requests a second, which is the account's
 * limit; a read waits for its turn, at most a second for each read before it.
 *
 * Sources: service model of botocore 1.43 (logs); CloudWatch Logs quotas.
 *
 * aws/logs: events of CloudWatch Logs, read page by page from a token on. Lines are not
 * interpreted here.
 */
#ifndef STK_AWS_LOGS_LOGS_H
#define STK_AWS_LOGS_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

struct logs; /* a client; belongs to one thread */

/* `page` is the largest number of events in a reply; 0: the service's own limit (10000, or 1
 * MiB). */
int logs_open(int page, struct logs **ret, struct err **err);
void logs_freep(struct logs **logs); /* for AUTO(), after its cursors */

struct logs_position {
	int64_t at_ms; /* since 1970; 0: nothing was handed out yet */
	int64_t count; /* number of events at exactly that time */
};

struct logs_event {
	int64_t at_ms;       /* time of writing, as the writer gave it */
	const char *stream;  /* name of the stream */
	const char *message; /* outside text, may hold NUL; a line, without its end */
	size_t len;
	uint64_t id; /* digest of the service's own id of the event; 0: it gave none */
};
/* `event` is valid until the function returns. */
typedef void (*logs_fn)(void *arg, const struct logs_event *event);

enum logs_state {
	LOGS_MORE,    /* more events may be there at once */
	LOGS_NO_MORE, /* for now */
	LOGS_NOT_YET, /* no such group or stream yet */
};

/* ---- one stream ----------------------------------------------------------------- */

struct logs_cursor;

/* Starts at the beginning of the stream. */
struct logs_cursor *logs_cursor_new(const char *group, const char *stream);
void logs_cursor_freep(struct logs_cursor **cursor); /* for AUTO() */

/* Reads one page. A failed read hands out nothing and can be repeated. Events of one stream come
 * in the service's order. */
int logs_read(struct logs *logs, struct logs_cursor *cursor, logs_fn fn, void *arg,
	      enum logs_state *ret, struct err **err);

/* ---- all streams of a prefix ------------------------------------------------------ */

struct logs_filter;

/* An event that arrives late by up to a minute, after newer ones of other streams, is still
 * found, by its id; a filter that begins from a position has no ids of the events before it. */
struct logs_filter *logs_filter_new(const char *group, const char *prefix,
				    const struct logs_position *from);
void logs_filter_freep(struct logs_filter **filter);
struct logs_position logs_filter_position(const struct logs_filter *filter);
/* Reads one page, as above; events of all streams, by time. */
int logs_filter_read(struct logs *logs, struct logs_filter *filter, logs_fn fn, void *arg,
		     enum logs_state *ret, struct err **err);

/* Returns the names of these streams, sorted; the caller frees them (auto_strv). Empty if the
 * group does not exist yet; limited to the first 10000. A job that was started again has opened
 * new ones. */
int logs_streams(struct logs *logs, const char *group, const char *prefix, char ***ret,
		 struct err **err);

#endif
