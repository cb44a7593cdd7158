/*
 * One operation of AWS asked for many things at once: all are begun together, the client keeps
 * them to the operation's rate (aws/rates.def) and to its number of connections.
 */
#ifndef STK_ENGINE_MANY_H
#define STK_ENGINE_MANY_H

#include "aws/aws.h"
#include "jobs/base/json.h"

/* `reply`: of the i-th request; an error in it is that one's alone. Its body, of a success, is in
 * `text` and not parsed: `reply->json` is NULL. */
typedef void (*many_fn)(void *arg, size_t i, struct aws_reply *reply, const struct sb *text);

/* `bodies` is an array of requests' bodies. -1: this process is to end, and not all were
 * answered (aws_interrupt). */
int many_ask(struct aws *aws, enum aws_operation operation, const json_t *bodies, many_fn fn,
	     void *arg, struct err **err);

#endif
