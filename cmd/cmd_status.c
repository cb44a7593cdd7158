/* status, list: the state of runs, folded from their journals. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/modes_view.h"
#include "cmd/out.h"
#include "cmd/run_view.h"
#include "cmd/status_text.h"
#include "jobs/base/columns.h"
#include "jobs/run/lease.h"

static int add_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	if (ev)
		status_add(arg, ev);
	return 0;
}

static int fold(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
		struct err **err)
{
	AUTO(status_freep) struct status *status = status_new(run);

	if (journal_read(journal, run, 1, add_event, status, err) < 0)
		return -1;
	*ret = status_json(status, utc_now(), with_attempts);
	return 0;
}

/* The journal of a driver that was killed ends in the middle. */
static bool seems_driven(const json_t *status)
{
	return !json_object_get(status, "exit_code") &&
	       json_is_object(json_object_get(status, "driver"));
}

/* Only what is certain at the first look. */
static bool nobody_drives(struct journal *journal, const char *run)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *unknown = NULL;

	return lease_look(journal, run, NULL, &lease, &unknown) == 1;
}

int run_view(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
	     struct err **err)
{
	json_auto_t *status = NULL;

	if (fold(journal, run, with_attempts, &status, err) < 0)
		return -1;
	if (seems_driven(status) && nobody_drives(journal, run)) {
		/* It may have come to its end since it was read. */
		json_decref(TAKE(status));
		if (fold(journal, run, with_attempts, &status, err) < 0)
			return -1;
		if (seems_driven(status)) {
			js_put(status, "driver", json_null());
			js_put_str(status, "state", "waiting");
			js_put_str(status, "waiting_for", "a driver: 'stoker resume' takes it up");
		}
	}
	*ret = TAKE(status);
	return 0;
}

int run_view_whole(struct journal *journal, const char *run, json_t **ret, struct err **err)
{
	if (run_view(journal, run, true, ret, err) < 0)
		return -1;
	js_put(*ret, "modes",
	       modes_find(journal, js_str(*ret, "name"),
			  js_str(json_object_get(*ret, "cache"), "graph_key")));
	return 0;
}

int run_open(const struct args *args, enum journal_mode mode, struct journal **ret,
	     char run[JOURNAL_RUN_MAX], struct err **err)
{
	if (journal_open(args->value[OPT_STATE], mode, ret, err) < 0)
		return -1;
	return journal_resolve(*ret, args->operand_count ? args->operands[0] : "@last", run, err);
}

int run_exit_code(struct journal *journal, const char *run, struct err **err)
{
	json_auto_t *status = NULL;

	if (fold(journal, run, false, &status, err) < 0)
		return -1;
	return (int)js_int(status, "exit_code", EXIT_DETACHED);
}

int cmd_status(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	json_auto_t *status = NULL;

	if (run_open(args, JOURNAL_READ, &journal, run, err) < 0 ||
	    run_view_whole(journal, run, &status, err) < 0)
		return -1;
	if (out_is_json())
		out_json(status);
	else
		print_status(status);
	return EXIT_DONE;
}

static int collect_run(void *arg, const char *run, struct err **err)
{
	(void)err;
	json_array_insert_new(arg, 0, json_string(run)); /* newest first */
	return 0;
}

/* The rows of `list`, each as wide as the widest; names are cut, ids never. */
enum list_column { LIST_RUN, LIST_NAME, LIST_STATE, LIST_PHASE, LIST_CREATED, LIST_COLUMNS };
#define NAME_MOST 24

struct list_row {
	char *cells[LIST_COLUMNS];
	enum look_mark mark; /* before the state */
};

struct list_table {
	struct list_row *rows;
	size_t count;
};

static void list_table_release(struct list_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		for (size_t column = 0; column < LIST_COLUMNS; column++)
			free(table->rows[i].cells[column]);
	free(table->rows);
}

static char *cell(const char *text, size_t most)
{
	struct sb out = SB_INIT;

	columns_fit(&out, text ? text : "-", text ? strlen(text) : 1, most, out_look()->utf8);
	return sb_take(&out);
}

static void add_row(struct list_table *table, const json_t *status)
{
	static const char *const keys[LIST_COLUMNS] = { "run", "name", "state", "phase",
							"created" };
	struct list_row *row;

	table->rows = mem_grow(table->rows, table->count + 1, sizeof *table->rows);
	row = &table->rows[table->count++];
	row->mark = look_of_state(js_str(status, "state"), NULL);
	for (size_t i = 0; i < LIST_COLUMNS; i++)
		row->cells[i] = cell(js_str(status, keys[i]), i == LIST_NAME ? NAME_MOST : 80);
	/* To the second. */
	if (strlen(row->cells[LIST_CREATED]) > 19)
		row->cells[LIST_CREATED][19] = '\0';
}

static void print_cells(char *const cells[LIST_COLUMNS], const size_t widths[LIST_COLUMNS],
			enum look_mark mark)
{
	AUTO(sb_release) struct sb before = SB_INIT, after = SB_INIT;

	for (size_t i = 0; i < LIST_COLUMNS; i++) {
		size_t columns = columns_width(cells[i], strlen(cells[i]), out_look()->utf8);
		struct sb *to = i < LIST_STATE ? &before : &after;

		sb_adds(to, cells[i]);
		if (i + 1 < LIST_COLUMNS)
			sb_addf(to, "%*s", (int)(widths[i] - columns + 2), "");
	}
	out_marked(before.text, mark, "%s", after.text);
}

static void print_table(const struct list_table *table)
{
	static char *const titles[LIST_COLUMNS] = { "RUN", "NAME", "STATE", "PHASE", "CREATED" };
	size_t widths[LIST_COLUMNS];

	for (size_t column = 0; column < LIST_COLUMNS; column++) {
		widths[column] = strlen(titles[column]);
		for (size_t i = 0; i < table->count; i++) {
			const char *text = table->rows[i].cells[column];
			size_t width = columns_width(text, strlen(text), out_look()->utf8);

			if (width > widths[column])
				widths[column] = width;
		}
	}
	print_cells(titles, widths, MARK_NONE);
	for (size_t i = 0; i < table->count; i++)
		print_cells(table->rows[i].cells, widths, table->rows[i].mark);
}

int cmd_list(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(list_table_release) struct list_table table = { 0 };
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;

	if (args->given[OPT_PRUNE])
		return cmd_prune(args, err);
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    journal_runs(journal, collect_run, runs, err) < 0)
		return -1;
	if (json_array_size(runs) == 0)
		out_note("no runs in %s", journal_url(journal));
	json_array_foreach (runs, i, run) {
		json_auto_t *status = NULL;

		if (run_view(journal, json_string_value(run), false, &status, err) < 0)
			return -1;
		if (out_is_json())
			out_json(status);
		else
			add_row(&table, status);
	}
	if (table.count > 0)
		print_table(&table);
	return EXIT_DONE;
}
