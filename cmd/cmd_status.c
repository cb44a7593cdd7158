/* status, list: the state of runs, folded from their journals. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/modes_view.h"
#include "cmd/out.h"
#include "cmd/run_view.h"
#include "cmd/status_text.h"
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

static void print_row(const json_t *status)
{
	const char *created = js_str(status, "created"), *name = js_str(status, "name");

	out_line("%-14s %-24.24s %-10s %-11s %.19s", js_str(status, "run"), name ? name : "-",
		 js_str(status, "state"), js_str(status, "phase") ? js_str(status, "phase") : "-",
		 created ? created : "-");
}

int cmd_list(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;

	if (args->given[OPT_PRUNE])
		return cmd_prune(args, err);
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    journal_runs(journal, collect_run, runs, err) < 0)
		return -1;
	if (json_array_size(runs) == 0)
		out_note("no runs in %s", journal_dir(journal));
	else
		out_line("%-14s %-24s %-10s %-11s %s", "RUN", "NAME", "STATE", "PHASE", "CREATED");
	json_array_foreach (runs, i, run) {
		json_auto_t *status = NULL;

		if (run_view(journal, json_string_value(run), false, &status, err) < 0)
			return -1;
		if (out_is_json())
			out_json(status);
		else
			print_row(status);
	}
	return EXIT_DONE;
}
