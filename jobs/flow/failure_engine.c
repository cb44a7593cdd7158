/* Quotations in the engine's words: a program's own complaint, and figures of a quota. */
#include <string.h>

#include "jobs/flow/failure_internal.h"

bool failure_is_quoted(const char *reason)
{
	return reason && strncmp(reason, "AlgorithmError", 14) == 0;
}

/* Returns the number that the text begins with; -1 if there is none, or a very long one. */
static long number_at(const char *text)
{
	long value = 0;
	int digits = 0;

	while (*text == ' ')
		text++;
	for (; *text >= '0' && *text <= '9' && digits < 9; text++, digits++)
		value = value * 10 + (*text - '0');
	return digits > 0 && !(*text >= '0' && *text <= '9') ? value : -1;
}

/* Returns the exit status behind the text, ignoring case; -1 if absent. */
static int number_behind(const char *text, const char *name)
{
	for (;;) {
		struct failure_line rest = { text, strlen(text) };
		size_t at = failure_find(rest, name);
		long value;

		if (at >= rest.len)
			return -1;
		text += at + strlen(name);
		value = number_at(text);
		if (value >= 0 && value <= 255)
			return (int)value;
	}
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
		const char *stop = at;

		while (stop < end && *stop != '\n')
			stop++;
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
	used += strlen("current utilization of ");
	more += strlen("request delta of ");
	limit += strlen("' is ");
	return number_at(used) > 0 && number_at(more) >= 0 && number_at(more) <= number_at(limit);
}
