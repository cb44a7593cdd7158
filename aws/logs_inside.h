/* What reading one stream and reading many share: see logs.h. */
#ifndef STK_AWS_LOGS_INSIDE_H
#define STK_AWS_LOGS_INSIDE_H

#include "aws/aws.h"
#include "aws/logs.h"

struct logs {
	struct aws *aws;
	int page;
};

/* Ask when it is our turn. 1: `ret` holds the reply's JSON; 0: there is no such group or
 * stream yet; -1. `ret_code` may be NULL. */
int logs_ask(struct logs *logs, enum aws_operation operation, const json_t *body, json_t **ret,
	     char ret_code[96], struct err **err);

/* Hand out one event, and count it. */
void logs_hand_out(struct logs_position *position, const json_t *event, const char *stream,
		   logs_fn fn, void *arg);

#endif
