/*
 * Error replies of services in any of the protocols: reading them (pure), classifying them by the
 * table faults.def, and the hint for a person.
 *
 * Everything read is outside text: bounded here, escaped where it is printed. A body that is cut
 * off, empty, or a proxy's HTML is not a failure: then the HTTP status is the code.
 */
#ifndef STK_AWS_HTTP_FAULT_H
#define STK_AWS_HTTP_FAULT_H

#include "aws/http/http.h"
#include "aws/operation.h"
#include "jobs/base/err.h"

#define FAULT_CODE 96

struct fault {
	long status;
	char code[FAULT_CODE]; /* letters, digits and . _ - only; or the status: "404" */
	char message[1024];    /* "" if there is none */
	char request_id[96];
	char extended_id[160]; /* S3's second one */
	char region[40];       /* region of the bucket as S3 gives it; "" if not given */
};

enum fault_kind {
	FAULT_FINAL,
	FAULT_DENIED,
	FAULT_TRANSIENT,
	FAULT_THROTTLE,
	FAULT_CLOCK,
	FAULT_EXPIRED,
};

/* Reads the error of a reply that has a status. */
void fault_read(enum aws_protocol protocol, const struct http_reply *reply, struct fault *ret);

/* Classifies by the table, else by status: 500, 502, 503 and 504 are transient. */
enum fault_kind fault_kind(const struct fault *fault);
/* Returns a hint for a person; never NULL. */
const char *fault_hint(const struct fault *fault);

/* True if a reply of S3 with status 200 is an error, or is not one of the documents expected
 * (empty, cut off): `ret` is filled in as if the status were 500. */
bool fault_in_disguise(const struct http_reply *reply, struct fault *ret);

#endif
