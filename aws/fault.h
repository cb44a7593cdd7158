/*
 * What a service says when it refuses, in any of the protocols, and what that means:
 * reading it (pure), judging it by the table faults.def, and the error for a person.
 *
 * Everything read is outside text: bounded here, escaped by whoever prints it. A body that
 * is cut off, empty, or a proxy's HTML is no failure: then the HTTP status is the code.
 */
#ifndef STK_AWS_FAULT_H
#define STK_AWS_FAULT_H

#include "aws/http.h"
#include "aws/operation.h"
#include "jobs/base/err.h"

#define FAULT_CODE 96

struct fault {
	long status;
	char code[FAULT_CODE]; /* letters, digits and . _ - only; or the status: "404" */
	char message[1024];    /* "" if there is none */
	char request_id[96];
	char extended_id[160]; /* S3's second one */
	char region[40];       /* where S3 says the bucket is; "" if it does not */
};

enum fault_kind { FAULT_FINAL, FAULT_TRANSIENT, FAULT_THROTTLE, FAULT_CLOCK, FAULT_EXPIRED };

/* Of a reply that has a status. */
void fault_read(enum aws_protocol protocol, const struct http_reply *reply, struct fault *ret);

/* By the table, else by status: 500, 502, 503 and 504 are transient. */
enum fault_kind fault_kind(const struct fault *fault);
/* What to do about it; never NULL. */
const char *fault_hint(const struct fault *fault);

/* A body of S3's that came with status 200 and is an error, or is none of the documents
 * that it should be (empty, cut off): `ret` is filled in as if its status were 500. */
bool fault_in_disguise(const struct http_reply *reply, struct fault *ret);

#endif
