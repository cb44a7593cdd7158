/*
 * Messages of a helper (helper.h), as lines of JSON through its pipe: each is an object with its
 * kind in the member "news".
 */
#ifndef STK_NODE_NEWS_H
#define STK_NODE_NEWS_H

#include "jobs/base/process/loop.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/node/helper.h"

/* `line` is borrowed until the function returns. */
typedef void (*news_fn)(void *arg, const char *kind, const json_t *line);

struct news {
	struct helper *helper;
	struct loop *loop;
	struct watch *watch;
	struct sb text;
	news_fn fn; /* NULL: never listened */
	/* Called when the helper has closed its end: it ends. NULL: SIGCHLD tells; may be set
	 * once news_listen() has returned, and may release the news. */
	void (*ended)(void *arg);
	void *arg;
};

/* Starts to listen: `fn` is called from the loop. The helper must stay in place. */
void news_listen(struct news *news, struct helper *helper, struct loop *loop, news_fn fn,
		 void *arg);
/* Reads once from the pipe, as the loop would when there is something: for waits outside of it. */
void news_read(struct news *news);
/* To be called once the helper is reaped: handles the messages that it left. */
void news_drain(struct news *news);
void news_release(struct news *news); /* { 0 } is fine; the helper is closed elsewhere */

/* ---- functions of the helper ---- */

/* Returns a new object of that kind, to be filled. */
json_t *news_of(const char *kind);
/* Sends the line and takes its reference. If the pipe has no reader any more, the process ends. */
void news_say(int fd, json_t *line);

#endif
