/* The runs of a journal, sorted by when they began: see begun.h. */
#include "jobs/run/journal/begun.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

void begun_release(struct begun *begun)
{
	for (size_t i = 0; i < begun->count; i++)
		free(begun->list[i].head);
	free(begun->list);
}

static bool is_there(const struct begun *begun, const char *run)
{
	for (size_t i = 0; i < begun->count; i++)
		if (strcmp(begun->list[i].run, run) == 0)
			return true;
	return false;
}

void begun_add_at(struct begun *begun, const char *run, const char *at, const char *head)
{
	struct begun_run *one;

	begun->list = mem_room(begun->list, begun->count, sizeof *begun->list);
	one = &begun->list[begun->count++];
	memset(one, 0, sizeof *one);
	snprintf(one->run, sizeof one->run, "%s", run);
	snprintf(one->at, sizeof one->at, "%s", at);
	one->head = head ? mem_copy(head) : NULL;
}

void begun_time_of(const char *body, size_t len, char ret[UTC_TEXT])
{
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *row = NULL;
	const char *at = NULL;
	struct utc time;

	/* Damage of the event is reported to the reader of the run, not here. */
	if (body && js_parse(body, len, "it", &row, &damage) == 0)
		at = js_str(row, "at");
	snprintf(ret, UTC_TEXT, "%s", at && clock_utc_parse(at, &time) ? at : "");
}

void begun_add(struct begun *begun, const char *run, const char *body, size_t len)
{
	char at[UTC_TEXT];

	if (!text_run_id_valid(run) || is_there(begun, run))
		return;
	begun_time_of(body, len, at);
	begun_add_at(begun, run, at, NULL);
}

static int by_id(const void *run, const void *one)
{
	return strcmp(run, ((const struct begun_run *)one)->run);
}

bool begun_has(const struct begun *begun, const char *run)
{
	return begun->count > 0 &&
	       bsearch(run, begun->list, begun->count, sizeof *begun->list, by_id);
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
		result = fn(arg, begun->list[i].run, begun->list[i].head, err);
	return result < 0 ? -1 : 0;
}
