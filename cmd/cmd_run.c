/* run: starts a run from a spec, driven here or in the background. */
#include <string.h>

#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/follow/foreground.h"
#include "cmd/follow/run_show.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/run/sweep/sweep_record.h"

static int run_id(const struct args *args, char id[JOURNAL_RUN_MAX], struct err **err)
{
	char fresh[RUN_ID_LEN + 1];

	if (!args->given[OPT_ID]) {
		text_run_id_new(fresh);
		snprintf(id, JOURNAL_RUN_MAX, "%s", fresh);
		return 0;
	}
	if (!text_run_id_valid(args->value[OPT_ID])) {
		err_set(err, EXIT_USAGE, "invalid run id '%s'", args->value[OPT_ID]);
		return err_hint(err,
				"use 1 to 40 lower-case letters, digits and hyphens, a letter or "
				"digit first");
	}
	snprintf(id, JOURNAL_RUN_MAX, "%s", args->value[OPT_ID]);
	return 0;
}

/* An id that a sweep has cannot name a run: 'status ID' would have two meanings. */
static int refuse_sweep(struct journal *journal, const char *id, struct err **err)
{
	json_auto_t *record = NULL;
	int found = sweep_record_read(journal, id, &record, err);

	if (found <= 0)
		return found;
	err_set(err, EXIT_SPEC, "'%s' is a sweep, and no run", id);
	return err_hint(err, "choose another --id");
}

static int run_detached(struct journal *journal, const char *run, const struct plan *plan,
			struct err **err)
{
	struct driver_options options = { .run = run, .plan = plan, .on_event = run_show_event };
	int ended;

	if (driver_begin(journal, &options, err) < 0)
		return -1;
	/* Repeated for a run that has ended, the command returns its exit code. */
	ended = run_show_outcome(journal, run, err);
	if (ended == EXIT_DETACHED)
		return foreground_detach(journal, run, err);
	return ended < 0 || run_show_journal(journal, run, err) < 0 ? -1 : ended;
}

int cmd_run(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	char id[JOURNAL_RUN_MAX];
	int code;

	if (args->given[OPT_DRY_RUN])
		return cmd_plan(args, err);
	if (run_id(args, id, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	if (args->given[OPT_ID] && refuse_sweep(journal, id, err) < 0)
		return -1;
	code = spec_args_plan(args, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	if (spec_is_set(spec, SPEC_SWEEP))
		out_note("the spec runs as it is; 'stoker sweep' runs the cells of its section "
			 "'sweep'");
	return args->given[OPT_DETACH] ? run_detached(journal, id, plan, err)
				       : foreground_run(args, journal, id, plan, err);
}
