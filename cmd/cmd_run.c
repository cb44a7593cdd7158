/* run: carry a job through, follow it, say how it ended. */
#include <string.h>

#include "cmd/event_text.h"
#include "cmd/out.h"
#include "cmd/run_view.h"
#include "cmd/spec_args.h"
#include "cmd/status_text.h"
#include "jobs/base/text.h"
#include "jobs/run/driver.h"

/* One plain line per change on stderr, or the event itself on stdout. */
static void show_event(void *arg, const struct event *ev, json_t *row)
{
	AUTO(auto_free) char *sentence = NULL;
	char at[UTC_TEXT];

	(void)arg;
	if (out_is_json()) {
		out_json(row);
		return;
	}
	sentence = event_sentence(ev, row);
	if (sentence)
		out_note("%.8s  %s", utc_format(ev->at, at) + 11, sentence);
}

static int run_id(const struct args *args, char id[JOURNAL_RUN_MAX], struct err **err)
{
	char fresh[RUN_ID_LEN + 1];

	if (!args->given[OPT_ID]) {
		run_id_new(fresh);
		snprintf(id, JOURNAL_RUN_MAX, "%s", fresh);
		return 0;
	}
	if (!run_id_valid(args->value[OPT_ID])) {
		err_set(err, EXIT_USAGE, "'%s' cannot be a run's id", args->value[OPT_ID]);
		return err_hint(err,
				"use 1 to 40 lower-case letters, digits and hyphens, a letter or "
				"digit first");
	}
	snprintf(id, JOURNAL_RUN_MAX, "%s", args->value[OPT_ID]);
	return 0;
}

int cmd_run(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	json_auto_t *status = NULL;
	char id[JOURNAL_RUN_MAX];
	const char *on_interrupt = args->value[OPT_ON_INTERRUPT];
	struct driver_options options = {
		.run = id,
		.stop_on_interrupt = on_interrupt && strcmp(on_interrupt, "stop") == 0,
		.on_event = show_event,
	};
	enum exit_code exit_code = EXIT_DEFECT;
	int code;

	if (args->given[OPT_DRY_RUN])
		return cmd_plan(args, err);
	if (run_id(args, id, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	code = plan_from_args(args, journal_dir(journal), &spec, &plan, err);
	if (code != 0)
		return code;
	options.plan = plan;
	out_note("run %s of %s", id, js_str(plan->json, "name"));
	if (driver_run(journal, &options, &exit_code, err) < 0)
		return -1;
	if (exit_code == EXIT_DETACHED)
		out_note("detached: the job runs on; 'stoker run %s --id %s' goes on with it",
			 args->operands[0], id);
	if (out_is_json() || exit_code == EXIT_DETACHED)
		return (int)exit_code;
	if (run_view(journal, id, true, &status, err) < 0)
		return -1;
	print_summary(status);
	return (int)exit_code;
}
