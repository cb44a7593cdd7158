/* The runs of a journal, sorted by when they began: see begun.h. */
#include "jobs/run/journal/begun.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

void begun_release(struct begun *begun)
{
	free(begun->list);
}

static bool is_there(const struct begun *begun, const char *run)
{
	for (size_t i = 0; i < begun->count; i++)
		if (strcmp(begun->list[i].run, run) == 0)
			return true;
	return false;
}

void begun_add(struct begun *begun, const char *run, const char *body, size_t len)
{
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *row = NULL;
	struct begun_run *one;
	const char *at = NULL;
	struct utc time;

	if (!text_run_id_valid(run) || is_there(begun, run))
		return;
	/* Damage of the event is reported to the reader of the run, not here. */
	if (body && js_parse(body, len, "it", &row, &damage) == 0)
		at = js_str(row, "at");
	begun->list = mem_grow(begun->list, begun->count + 1, sizeof *begun->list);
	one = &begun->list[begun->count++];
	memset(one, 0, sizeof *one);
	snprintf(one->run, sizeof one->run, "%s", run);
	if (at && clock_utc_parse(at, &time))
		snprintf(one->at, sizeof one->at, "%s", at);
}

static int by_age(const void *a, const void *b)
{
	const struct begun_run *x = a, *y = b;
	int order = strcmp(x->at, y->at);

	return order ? order : strcmp(x->run, y->run);
}

int begun_hand_out(struct begun *begun, journal_run_fn fn, void *arg, struct err **err)
{
	int result = 0;

	if (begun->count > 1)
		qsort(begun->list, begun->count, sizeof *begun->list, by_age);
	for (size_t i = 0; result == 0 && i < begun->count; i++)
		result = fn(arg, begun->list[i].run, err);
	return result < 0 ? -1 : 0;
}
