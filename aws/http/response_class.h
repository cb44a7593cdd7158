/*
 * Outcome of an attempt: classification of its reply, or of the lack of one, and the error for a
 * person. Pure.
 */
#ifndef STK_AWS_HTTP_RESPONSE_CLASS_H
#define STK_AWS_HTTP_RESPONSE_CLASS_H

#include "aws/http/fault.h"
#include "aws/policy/policy.h"

struct response_class {
	enum {
		RESPONSE_DONE,
		RESPONSE_RETRY, /* another attempt may succeed */
		RESPONSE_FINAL,
	} what;
	bool timeout;        /* a retry after it costs more */
	bool effect_unknown; /* the service may have done it */
	bool unread;         /* no usable reply: there is no fault, only `why` */
	struct fault fault;  /* if there is a status */
	char why[256];       /* if there is no status: one clause */
	json_t *json;        /* parsed body of a success, for services that speak JSON; owned */
};

void response_class_of(const struct aws_call *call, const struct http_reply *reply,
		       struct response_class *ret);
void response_class_release(struct response_class *ret); /* for AUTO() */

/* Facts about a call that has ended. */
struct response_call {
	const struct aws_call *call;
	int attempts;
	const char *host; /* of the last attempt */
	struct policy_place place;
};

/* Sets the error of a call that ends with this response. Returns -1. */
int response_class_error(const struct response_class *response, const struct response_call *of,
			 struct err **err);

#endif
