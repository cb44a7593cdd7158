/* What the engine's words quote of others: a program's own complaint, and figures of a
 * quota. */
#include <stdlib.h>
#include <string.h>

#include "jobs/flow/failure_inside.h"

bool failure_is_quoted(const char *reason)
{
	return reason && strncmp(reason, "AlgorithmError", 14) == 0;
}

/* The number behind the text, in capitals or not; -1: there is none. */
static int number_behind(const char *text, const char *name)
{
	const char *at = text, *end;
	size_t len = strlen(name);

	for (; *at; at++) {
		long value;

		if (strncasecmp(at, name, len) != 0)
			continue;
		value = strtol(at + len, (char **)&end, 10);
		if (end != at + len && value >= 0 && value <= 255)
			return (int)value;
	}
	return -1;
}

int failure_quoted_exit(const char *reason)
{
	int exit = number_behind(reason, "exit code:");

	return exit >= 0 ? exit : number_behind(reason, "ExitCode");
}

size_t failure_quoted_lines(const char *reason, struct failure_line *ret, size_t max)
{
	const char *at = strstr(reason, "ErrorMessage \""), *end;
	size_t count = 0;

	if (!at)
		return 0;
	at += strlen("ErrorMessage \"");
	end = strstr(at, "\"\nCommand");
	if (!end)
		end = strstr(at, "\" Command");
	if (!end)
		end = at + strlen(at);
	while (at < end && count < max) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		const char *stop = line ? line : end;

		if (stop > at)
			ret[count++] = (struct failure_line){ at, (size_t)(stop - at) };
		at = stop + 1;
	}
	return count;
}

/* "The account-level service limit 'ml.x for training job usage' is 8 Instances, with
 * current utilization of 8 Instances and a request delta of 2 Instances." */
bool failure_quota_frees(const char *reason)
{
	const char *limit = strstr(reason, "service limit '");
	const char *used = strstr(reason, "current utilization of ");
	const char *more = strstr(reason, "request delta of ");

	limit = limit ? strstr(limit, "' is ") : NULL;
	if (!limit || !used || !more)
		return false;
	return strtol(used + strlen("current utilization of "), NULL, 10) > 0 &&
	       strtol(more + strlen("request delta of "), NULL, 10) <=
		       strtol(limit + strlen("' is "), NULL, 10);
}
