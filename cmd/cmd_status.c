/* status, list: the state of runs, folded from their journals. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/attachment.h"
#include "cmd/follow/follow.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/view/status_text.h"
#include "jobs/base/text/columns.h"

/* True if the run goes on without a driver. */
static bool is_left_alone(const json_t *status)
{
	return !json_object_get(status, "exit_code") &&
	       json_is_null(json_object_get(status, "driver"));
}

/* --- status --watch --- */

struct status_watch {
	struct follow follow; /* first: the turn gets this */
	bool changed;
};

static int note_change(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct status_watch *watch = arg;

	(void)err;
	watch->changed = true;
	watch->follow.next = js_int(row, "seq", watch->follow.next) + 1;
	watch->follow.ended |= ev && ev->kind == EV_RUN_ENDED;
	return 0;
}

/* Prints the status again if the journal has grown. */
static int watch_turn(struct follow *follow)
{
	struct status_watch *watch = (struct status_watch *)(void *)follow;
	json_auto_t *status = NULL;

	watch->changed = false;
	if (journal_read(follow->journal, follow->run, follow->next, note_change, watch,
			 follow->err) < 0)
		return -1;
	if (!watch->changed)
		return 0;
	if (cmd_run_view_whole(follow->journal, follow->run, &status, follow->err) < 0)
		return -1;
	out_json(status);
	return 0;
}

/* Shows the run until it ends: as a block that is redrawn, or as one object for each change. */
static int watch_run(const struct args *args, struct journal *journal, const char *run,
		     struct err **err)
{
	const struct attach_options options = { .quiet = true, .patient = true };
	struct status_watch watch = {
		.follow = { .journal = journal, .run = run, .next = 1, .turn = watch_turn }
	};

	if (out_is_json())
		return follow_run(&watch.follow, err);
	if (out_draws())
		return attachment_run(args, journal, run, &options, err);
	err_set(err, EXIT_USAGE, "--watch needs a terminal that can be redrawn");
	return err_hint(err, "'stoker status --watch --json' prints an object for each change, and "
			     "'stoker wait' waits for the end");
}

int cmd_status(const struct args *args, struct err **err)
{
	bool watched = args->given[OPT_WATCH];
	int code = EXIT_DONE;
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	json_auto_t *status = NULL;

	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	if (watched)
		code = watch_run(args, journal, run, err);
	if (code < 0 || cmd_run_view_whole(journal, run, &status, err) < 0)
		return -1;
	if (!out_is_json())
		status_text_print_status(status);
	else if (!watched)
		out_json(status);
	return args->given[OPT_EXIT_CODE] ? (int)js_int(status, "exit_code", EXIT_DETACHED)
					  : EXIT_DONE;
}

/* Columns of `list`, each as wide as its widest cell; names are cut, ids never. */
enum list_column { LIST_RUN, LIST_NAME, LIST_STATE, LIST_PHASE, LIST_CREATED, LIST_COLUMNS };
#define NAME_MOST 24

struct list_row {
	char *cells[LIST_COLUMNS];
	enum status_icon mark; /* before the state */
};

struct list_table {
	struct list_row *rows;
	size_t count;
	size_t alone; /* number of runs without a driver */
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

	columns_fit(&out, text ? text : "-", text ? strlen(text) : 1, most, out_style()->utf8);
	return sb_take(&out);
}

/* Returns "no driver, unseen since 2026-11-25T16:52:04"; or that its job is out of sight. */
static char *state_text(const json_t *status)
{
	const char *state = is_left_alone(status) ? "no driver" : js_str(status, "state");
	const char *since = js_str(status, "unseen_since");

	if (!state || !since)
		return mem_copy(state ? state : "-");
	return mem_format("%s, unseen since %.19s", state, since);
}

static void add_row(struct list_table *table, const json_t *status)
{
	static const char *const keys[LIST_COLUMNS] = { "run", "name", "state", "phase",
							"created" };
	struct list_row *row;

	table->rows = mem_grow(table->rows, table->count + 1, sizeof *table->rows);
	row = &table->rows[table->count++];
	row->mark = text_style_icon_of_state(js_str(status, "state"), NULL);
	for (size_t i = 0; i < LIST_COLUMNS; i++)
		if (i == LIST_STATE)
			row->cells[i] = state_text(status);
		else
			row->cells[i] =
				cell(js_str(status, keys[i]), i == LIST_NAME ? NAME_MOST : 80);
	if (is_left_alone(status)) {
		row->mark = MARK_WARN;
		table->alone++;
	}
	/* Cut to whole seconds. */
	if (strlen(row->cells[LIST_CREATED]) > 19)
		row->cells[LIST_CREATED][19] = '\0';
}

static void print_cells(char *const cells[LIST_COLUMNS], const size_t widths[LIST_COLUMNS],
			enum status_icon mark)
{
	AUTO(sb_release) struct sb before = SB_INIT, after = SB_INIT;

	for (size_t i = 0; i < LIST_COLUMNS; i++) {
		size_t columns = columns_width(cells[i], strlen(cells[i]), out_style()->utf8);
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
			size_t width = columns_width(text, strlen(text), out_style()->utf8);

			if (width > widths[column])
				widths[column] = width;
		}
	}
	print_cells(titles, widths, MARK_NONE);
	for (size_t i = 0; i < table->count; i++)
		print_cells(table->rows[i].cells, widths, table->rows[i].mark);
}

/* Adds a row for a run that cannot be read; the other runs are not affected. */
static int add_damaged(struct list_table *table, const char *run, const struct err *why, int *worst)
{
	json_auto_t *status = json_object();

	if (why->code == EXIT_UNREACHABLE)
		return -1;
	js_put_str(status, "run", run);
	js_put_str(status, "state", why->damage ? "damaged" : "unreadable");
	js_put_str(status, "error", why->message);
	js_put_str(status, "hint", why->hint);
	if (out_is_json())
		out_json(status);
	else
		add_row(table, status);
	out_error(why);
	*worst = (int)why->code;
	return 0;
}

static int add_run(struct list_table *table, struct journal *journal, const char *run, int *worst,
		   struct err **err)
{
	json_auto_t *status = NULL;
	AUTO(err_freep) struct err *why = NULL;

	if (cmd_run_view(journal, run, false, &status, &why) < 0 ||
	    cmd_run_check_begun(journal, run, status, &why) < 0) {
		if (why->code == EXIT_NOT_FOUND || add_damaged(table, run, why, worst) == 0)
			return 0;
		*err = TAKE(why);
		return -1;
	}
	if (out_is_json())
		out_json(status);
	else
		add_row(table, status);
	return 0;
}

int cmd_list(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(list_table_release) struct list_table table = { 0 };
	AUTO(err_freep) struct err *unfound = NULL;
	json_auto_t *runs = json_array();
	int worst = EXIT_DONE;

	if (args->given[OPT_PRUNE])
		return cmd_prune(args, err);
	if (args->given[OPT_DRY_RUN] || args->given[OPT_WITH_CHECKPOINTS]) {
		err_set(err, EXIT_USAGE, "%s needs --prune",
			args->given[OPT_DRY_RUN] ? "--dry-run" : "--with-checkpoints");
		return err_hint(err, "give an age: stoker list --prune 30d --dry-run");
	}
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	if (journal_runs(journal, runs, &unfound) < 0 && !unfound->damage) {
		*err = TAKE(unfound);
		return -1;
	}
	if (json_array_size(runs) == 0 && !unfound)
		out_note("no runs in %s", journal_url(journal));
	for (size_t i = json_array_size(runs); i-- > 0;) /* newest first */
		if (add_run(&table, journal, json_string_value(json_array_get(runs, i)), &worst,
			    err) < 0)
			return -1;
	if (table.count > 0)
		print_table(&table);
	if (table.alone > 0)
		out_note("%zu of them have no driver: 'stoker resume --all' continues %s",
			 table.alone, table.alone == 1 ? "it" : "them");
	*err = TAKE(unfound);
	return *err ? -1 : worst;
}
