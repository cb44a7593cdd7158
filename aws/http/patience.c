/* Time for services that do not answer: see patience.h. */
#include "aws/http/patience.h"

#include <stdatomic.h>
#include <string.h>

static struct {
	bool is_limited, is_offline;
	_Atomic int64_t left; /* ms */
} patience;

void patience_set(int64_t ms)
{
	patience.is_limited = true;
	patience.is_offline = ms == 0;
	patience.left = ms;
}

bool patience_is_limited(void)
{
	return patience.is_limited;
}

bool patience_is_offline(void)
{
	return patience.is_offline;
}

int64_t patience_left(void)
{
	int64_t left = patience.left;

	if (!patience.is_limited)
		return INT64_MAX;
	return left > 0 ? left : 0;
}

void patience_spend(int64_t ms)
{
	patience.left -= ms;
}

int patience_check(struct err **err)
{
	if (!patience.is_offline)
		return 0;
	err_set(err, EXIT_UNREACHABLE, PATIENCE_OFFLINE);
	return err_hint(err, "omit " PATIENCE_OFFLINE);
}

const char *patience_reason(const struct err *why)
{
	size_t len = strlen(why->message), tail = strlen(PATIENCE_OFFLINE);

	return patience.is_offline && len > tail &&
			       strcmp(why->message + len - tail, PATIENCE_OFFLINE) == 0
		       ? PATIENCE_OFFLINE
		       : why->message;
}
