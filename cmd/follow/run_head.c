/* The part of an ended run that a list shows: see run_head.h. */
#include "cmd/follow/run_head.h"

#include <string.h>

/* First in the text. A later form has another number. */
#define FORM "2"

void run_head_make(const json_t *status, const json_t *tally, struct sb *ret)
{
	static const char *const members[] = { "name",  "engine",  "state",
					       "phase", "created", "ended" };
	const json_t *cost = json_object_get(json_object_get(status, "cost"), "accrued");
	AUTO(auto_free) char *line = js_line(tally);

	sb_adds(ret, FORM);
	for (size_t i = 0; i < STK_LENGTH(members); i++) {
		const char *text = js_str(status, members[i]);

		sb_addf(ret, "\n%s", text ? text : "");
	}
	sb_addc(ret, '\n');
	if (cost)
		sb_addf(ret, "%.17g", json_number_value(cost));
	sb_addf(ret, "\n%s", line);
}

bool run_head_read(char *text, struct run_head *ret)
{
	const char **const members[] = { &ret->name,    &ret->engine, &ret->state, &ret->phase,
					 &ret->created, &ret->ended,  &ret->cost,  &ret->tally };
	char *end = strchr(text, '\n');

	if (!end || (size_t)(end - text) != strlen(FORM) || strncmp(text, FORM, strlen(FORM)) != 0)
		return false;
	for (size_t i = 0; i < STK_LENGTH(members); i++) {
		char *line = end ? end + 1 : NULL;

		if (!line)
			return false;
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		*members[i] = *line ? line : NULL;
	}
	/* A member with a line break in it is none of these. */
	return !end;
}
