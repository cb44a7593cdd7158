/* Shared by the readers of one stream and of many: see logs.h. */
#ifndef STK_AWS_LOGS_LOGS_INTERNAL_H
#define STK_AWS_LOGS_LOGS_INTERNAL_H

#include "aws/aws.h"
#include "aws/logs/logs.h"

struct logs {
	struct aws *aws;
	int page;
};

/* Waits for a turn and sends the request. Returns 1 with the reply's JSON in `ret`; 0 if the
 * group or stream does not exist yet; -1 with an error. `ret_code` may be NULL. */
int logs_call(struct logs *logs, enum aws_operation operation, const json_t *body, json_t **ret,
	      char ret_code[96], struct err **err);

/* FNV-1a hash of an event's id; never 0. */
uint64_t logs_digest(const char *id);

/* Hands out one event and counts it. */
void logs_hand_out(struct logs_position *position, const json_t *event, const char *stream,
		   logs_fn fn, void *arg);

#endif
