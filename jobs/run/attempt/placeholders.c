/* The placeholders that occur in planned requests: see order.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/engine/engine.h"
#include "jobs/run/attempt/order.h"

#define HASH "sha256:"

static const struct {
	const char *mark, *meaning;
} rows[] = {
#define PLACEHOLDER(mark, meaning) { mark, meaning },
#include "jobs/run/attempt/placeholders.def"
#undef PLACEHOLDER
};

/* A hash stands for a value where it is the whole of one; behind a '@' it is an image's digest. */
static bool occurs(const char *text, const char *mark)
{
	for (const char *at = text; (at = strstr(at, mark)) != NULL; at++)
		if (strcmp(mark, HASH) != 0 || at[-1] == '"' || at[-1] == '=')
			return true;
	return false;
}

json_t *placeholders_of_requests(const json_t *requests)
{
	AUTO(auto_free) char *text = js_line(requests);
	json_t *list = json_array();

	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (occurs(text, rows[i].mark))
			json_array_append_new(list, json_pack("{s:s, s:s}", "mark", rows[i].mark,
							      "meaning", rows[i].meaning));
	return list;
}
