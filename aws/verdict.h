/*
 * What an attempt has come to: judging a reply, or that there is none, and the error that a
 * person reads in the end. Pure.
 */
#ifndef STK_AWS_VERDICT_H
#define STK_AWS_VERDICT_H

#include "aws/fault.h"

struct verdict {
	enum {
		VERDICT_DONE,
		VERDICT_AGAIN, /* another attempt may fare better */
		VERDICT_END,
	} what;
	bool timeout;        /* retrying after it costs more */
	bool effect_unknown; /* the service may have done it */
	bool unread;         /* its headers did not help: there is no fault, just `why` */
	struct fault fault;  /* if there is a status */
	char why[256];       /* if there is none: one clause */
	json_t *json;        /* of a success, for services that speak JSON; owned */
};

void verdict_of(const struct aws_call *call, const struct http_reply *reply, struct verdict *ret);
void verdict_release(struct verdict *ret); /* for AUTO() */

/* The error of a call that ends with this verdict after so many attempts, the last of them
 * at `host`. -1. */
int verdict_error(const struct verdict *verdict, const struct aws_call *call, const char *host,
		  int attempts, struct err **err);

#endif
