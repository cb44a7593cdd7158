/*
 * What a service said when it refused a request: its code, and its name of the request. The error
 * tells both to a person; this is for whoever passes them on to a program.
 *
 * One is kept a thread, the newest, with the error that it became: as long as that is handed on and
 * added to, it is found.
 */
#ifndef STK_AWS_HTTP_REFUSAL_H
#define STK_AWS_HTTP_REFUSAL_H

#include "aws/http/fault.h"
#include "jobs/base/err.h"

struct refusal_said {
	const struct err *became;
	char code[FAULT_CODE];
	char request_id[FAULT_CODE]; /* "": not told */
};

void refusal_keep(const struct err *became, const struct fault *fault);
/* Returns the refusal that became this error; NULL: none did, or a newer one is kept. Valid until
 * this thread's next request ends. */
const struct refusal_said *refusal_of(const struct err *why);

#endif
