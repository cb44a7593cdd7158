/*
 * Orders of the agent to a helper (helper.h), as lines of JSON through its pipe: each is an object
 * with its kind in the member "order". One with "bytes" is followed by so many bytes as they are.
 *
 * The agent never waits for a helper: what the pipe does not take stays in the queue, and so does
 * all that the helper has not yet said to be carried out. A helper that is started after one that
 * died gets it from the first order that was not, so an order may be carried out twice.
 */
#ifndef STK_NODE_ORDERS_H
#define STK_NODE_ORDERS_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/node/helper.h"

struct orders {
	const struct helper *helper; /* NULL: none runs, and orders wait for one */
	struct loop *loop;
	struct watch *watch;   /* the pipe is full */
	struct sb queue;       /* orders that are not carried out, or not said to be */
	size_t sent;           /* bytes of the queue that the helper has been given */
	struct mono waits_for; /* last sign that orders are carried out, or since when one waits */
};

void orders_init(struct orders *orders, struct loop *loop);
void orders_release(struct orders *orders); /* { 0 } is fine */

/* Gives the helper, which has just been started, what waits and what is added from now on. */
void orders_begin(struct orders *orders, const struct helper *helper);
/* The helper is gone. */
void orders_end(struct orders *orders);

/* Returns a new order of that kind, to be filled. */
json_t *orders_new(const char *kind);
/* Adds an order and takes its reference. */
void orders_give(struct orders *orders, json_t *order);
/* Adds an order with these bytes, and the time ("at", UTC in ms). */
void orders_give_bytes(struct orders *orders, const char *kind, const char *bytes, size_t len);
/* Gives the helper more, as far as it takes it: to be called now and then. */
void orders_push(struct orders *orders);
/* To be called when the helper says that so many bytes of orders more are carried out. */
void orders_done(struct orders *orders, size_t bytes);
/* Returns the milliseconds for which an order has waited and none was carried out; 0: none waits.
 */
int64_t orders_wait_ms(const struct orders *orders);

/* ---- functions of the helper ---- */

struct orders_reader {
	int fd;
	struct sb text; /* read, and not taken yet */
	size_t at;      /* of that, bytes that are taken */
	size_t taken;   /* bytes taken since orders_taken() was called */
	int failures;   /* waits that failed, in a row */
	bool over;      /* the agent is gone, or cannot be heard: the helper ends */
};

/* Reads what is there; waits for it, `wait_ms` at most. */
void orders_read(struct orders_reader *reader, int64_t wait_ms);
/* Returns the next order that is there as a whole, with the bytes that follow it (`*ret_len` 0:
 * none), which are borrowed until the next call; NULL if there is none. */
json_t *orders_take(struct orders_reader *reader, const char **ret_bytes, size_t *ret_len);
/* The same for orders without bytes; waits for one, `wait_ms` at most. */
json_t *orders_wait(struct orders_reader *reader, int64_t wait_ms);
/* Returns the number of bytes of the orders that were taken since the last call. */
size_t orders_taken(struct orders_reader *reader);

#endif
