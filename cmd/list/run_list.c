/* All runs of a journal, for a list: see run_list.h. */
#include "cmd/list/run_list.h"

#include <stdlib.h>
#include <string.h>

#define NO_DRIVER "no driver"

static void row_release(struct listed *row)
{
	json_decref(TAKE(row->status));
	free(TAKE(row->text));
}

void run_list_release(struct run_list *list)
{
	run_list_cut(list, 0);
	free(list->rows);
	json_decref(list->errors);
	err_freep(&list->unfound);
}

/* A run, while the list is read. */
struct run_list_reading {
	struct journal *journal;
	enum run_view_trust trust;
	struct run_list *list;
};

bool run_list_is_alone(const struct listed *row)
{
	return !row->is_damaged && !row->has_ended &&
	       json_is_null(json_object_get(row->status, "driver"));
}

static struct utc time_of(const char *text)
{
	struct utc at = { 0 };

	return text && clock_utc_parse(text, &at) ? at : (struct utc){ 0 };
}

static void set_head(struct listed *row, const struct run_head *head)
{
	row->head = *head;
	row->created = time_of(head->created);
	row->ended = time_of(head->ended);
	row->word = run_list_is_alone(row) ? NO_DRIVER : head->state;
}

/* Takes the status over. */
static void set_status(struct listed *row, json_t *status)
{
	const struct run_head head = {
		.name = js_str(status, "name"),
		.engine = js_str(status, "engine"),
		.state = js_str(status, "state"),
		.phase = js_str(status, "phase"),
		.created = js_str(status, "created"),
		.ended = js_str(status, "ended"),
	};

	row_release(row);
	row->status = status;
	row->has_ended = json_object_get(status, "exit_code") != NULL;
	row->cost = js_real(json_object_get(status, "cost"), "accrued", -1);
	set_head(row, &head);
}

/* Takes what the summary of an ended run tells; nothing of one in another form. */
static void set_summary(struct listed *row, const char *text)
{
	struct run_head head = { 0 };

	row->text = mem_copy(text);
	if (!run_head_read(row->text, &head)) {
		row_release(row);
		return;
	}
	row->has_ended = true;
	row->cost = head.cost ? strtod(head.cost, NULL) : -1;
	set_head(row, &head);
}

/* Events are read when all runs are known: not from within the search for them. */
static int add_run(void *arg, const char *run, const char *head, struct err **err)
{
	struct run_list_reading *reading = arg;
	struct run_list *list = reading->list;
	struct listed *row;

	(void)err;
	list->rows = mem_room(list->rows, list->count, sizeof *list->rows);
	row = &list->rows[list->count++];
	*row = (struct listed){ .cost = -1, .size = -1 };
	snprintf(row->run, sizeof row->run, "%s", run);
	if (reading->trust == RUN_VIEW_TRUSTS && head)
		set_summary(row, head);
	return 0;
}

/* Makes a row of a run that cannot be read; the other runs are not affected. */
static int set_damaged(struct run_list *list, struct listed *row, const struct err *why)
{
	json_t *status = json_object(), *error = json_object();
	AUTO(auto_free) char *line = err_format(why);

	js_put_str(status, "run", row->run);
	js_put_str(status, "state", why->damage ? "damaged" : "unreadable");
	js_put_str(status, "error", why->message);
	js_put_str(status, "hint", why->hint);
	row->is_damaged = true;
	set_status(row, status);
	js_put_str(error, "message", line);
	js_put_str(error, "hint", why->hint);
	json_array_append_new(list->errors, error);
	list->worst = (int)why->code;
	return 0;
}

/* Returns 1 if the row stays, 0 if the run was removed just now, -1. */
static int read_run(struct run_list_reading *reading, struct listed *row, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *status = NULL;

	if (cmd_run_view_as(reading->journal, row->run, reading->trust, false, &status, &why) < 0 ||
	    cmd_run_check_begun(reading->journal, row->run, status, &why) < 0) {
		if (why->code == EXIT_NOT_FOUND)
			return 0;
		if (why->code == EXIT_UNREACHABLE) {
			*err = TAKE(why);
			return -1;
		}
		set_damaged(reading->list, row, why);
		return 1;
	}
	set_status(row, TAKE(status));
	return 1;
}

static void turn_round(struct run_list *list)
{
	for (size_t i = 0, j = list->count; i + 1 < j; i++) {
		struct listed row = list->rows[i];

		list->rows[i] = list->rows[--j];
		list->rows[j] = row;
	}
}

int run_list_read(struct journal *journal, enum run_view_trust trust, struct run_list *ret,
		  struct err **err)
{
	struct run_list_reading reading = { .journal = journal, .trust = trust, .list = ret };
	size_t kept = 0;

	ret->errors = json_array();
	if (journal_each(journal, add_run, &reading, &ret->unfound) < 0 && !ret->unfound->damage) {
		*err = TAKE(ret->unfound);
		return -1;
	}
	turn_round(ret);
	for (size_t i = 0; i < ret->count; i++) {
		int stays = ret->rows[i].text ? 1 : read_run(&reading, &ret->rows[i], err);

		if (stays < 0)
			return -1;
		if (stays > 0)
			ret->rows[kept++] = ret->rows[i];
	}
	ret->count = ret->total = kept;
	return 0;
}

void run_list_filter(struct run_list *list,
		     bool (*is_wanted)(const struct listed *row, const void *arg), const void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (is_wanted(&list->rows[i], arg))
			list->rows[kept++] = list->rows[i];
		else
			row_release(&list->rows[i]);
	list->count = kept;
}

/* The order of the list, and what it is asked to be. */
struct run_list_order {
	int (*compare)(const void *a, const void *b, void *arg);
	void *arg;
};

static int compare_stably(const void *a, const void *b, void *arg)
{
	const struct run_list_order *order = arg;
	const struct listed *x = a, *y = b;
	int result = order->compare(a, b, order->arg);

	return result ? result : (x->place > y->place) - (x->place < y->place);
}

void run_list_sort(struct run_list *list, int (*compare)(const void *a, const void *b, void *arg),
		   void *arg)
{
	struct run_list_order order = { compare, arg };

	for (size_t i = 0; i < list->count; i++)
		list->rows[i].place = i;
	if (list->count > 1)
		qsort_r(list->rows, list->count, sizeof *list->rows, compare_stably, &order);
}

void run_list_cut(struct run_list *list, size_t count)
{
	while (list->count > count)
		row_release(&list->rows[--list->count]);
}

int run_list_whole(struct journal *journal, struct listed *row, struct err **err)
{
	json_auto_t *status = NULL;

	if (row->status)
		return 0;
	if (cmd_run_view_as(journal, row->run, RUN_VIEW_TRUSTS, false, &status, err) < 0)
		return -1;
	set_status(row, TAKE(status));
	return 0;
}

int64_t run_list_duration(const struct listed *row, struct utc now)
{
	int64_t end = row->ended.ms > 0 ? row->ended.ms : now.ms;

	if (row->created.ms == 0)
		return -1;
	return end > row->created.ms ? end - row->created.ms : 0;
}
