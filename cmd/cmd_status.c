/* status: the state of a run, folded from its journal. */
#include "cmd/cmd.h"
#include "cmd/follow/attachment.h"
#include "cmd/follow/follow.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_view.h"
#include "cmd/view/status_text.h"

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
	out_json_exact(status);
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

static int show_sweep(const struct args *args, struct journal *journal, const json_t *record,
		      struct err **err)
{
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *view = NULL;

	if (args->given[OPT_WATCH]) {
		err_set(err, EXIT_USAGE, "--watch is for a run, and '%s' is a sweep",
			js_str(record, "sweep"));
		return err_hint(err, "'stoker wait %s' waits for the end of the sweep",
				js_str(record, "sweep"));
	}
	if (sweep_view(journal, record, NULL, &view, &damage, err) < 0)
		return -1;
	sweep_view_print(view);
	if (damage) {
		*err = TAKE(damage);
		return -1;
	}
	return args->given[OPT_EXIT_CODE] ? sweep_view_exit_code(view) : EXIT_DONE;
}

int cmd_status(const struct args *args, struct err **err)
{
	bool watched = args->given[OPT_WATCH];
	int code = EXIT_DONE;
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	json_auto_t *status = NULL, *record = NULL;
	int found = sweep_view_find(args, JOURNAL_READ, &journal, &record, err);

	if (found != 0)
		return found < 0 ? -1 : show_sweep(args, journal, record, err);
	journal_freep(&journal);
	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	if (watched)
		code = watch_run(args, journal, run, err);
	if (code < 0 || cmd_run_view_whole(journal, run, &status, err) < 0)
		return -1;
	if (!out_is_json())
		status_text_print_status(status);
	else if (!watched)
		out_json_exact(status);
	return args->given[OPT_EXIT_CODE] ? (int)js_int(status, "exit_code", EXIT_DETACHED)
					  : EXIT_DONE;
}
