/* The newest refusal of each thread: see refusal.h. */
#include "aws/http/refusal.h"

#include <stdio.h>

static _Thread_local struct refusal_said newest;

void refusal_keep(const struct err *became, const struct fault *fault)
{
	newest.became = became;
	snprintf(newest.code, sizeof newest.code, "%s", fault->code);
	snprintf(newest.request_id, sizeof newest.request_id, "%s", fault->request_id);
}

const struct refusal_said *refusal_of(const struct err *why)
{
	return newest.became == why ? &newest : NULL;
}
