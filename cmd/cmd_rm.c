/* rm, list --prune: removal of finished runs. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/run_show.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_view.h"
#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"
#include "jobs/run/journal/forget.h"
#include "jobs/run/sweep/sweep_record.h"

static void print_kept(const json_t *kept)
{
	const json_t *one;
	size_t i;

	json_array_foreach (kept, i, one) {
		AUTO(auto_free)
		char *size = text_format_bytes((uint64_t)js_int(one, "size_bytes", 0));

		if (js_is(one, "what", "checkpoint"))
			out_line("  kept: the only copy of the checkpoint of step %lld, %s: %s",
				 (long long)js_int(one, "step", 0), size, js_str(one, "url"));
		else
			out_line("  kept: the only copy of the outputs, %s: %s", size,
				 js_str(one, "url"));
	}
	if (json_array_size(kept) > 0)
		out_note("--with-checkpoints also removes the kept files");
}

static void print_removed(const json_t *line, bool dry_run)
{
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)js_int(line, "size_bytes", 0));
	int64_t files = js_int(line, "files", 0);
	AUTO(auto_free)
	char *what = mem_format("%lld file%s, %s", (long long)files, files == 1 ? "" : "s", size);
	const char *run = js_str(line, "run");
	char at[WHEN_TEXT];

	if (js_str(line, "ended"))
		out_line("%s %s: %s, %s at %s; %s", dry_run ? "would remove" : "removed", run,
			 js_str(line, "name"), js_str(line, "state"),
			 when_text(js_str(line, "ended"), out_width() > 0, at), what);
	else
		out_line("%s the remains of %s: %s", dry_run ? "would remove" : "removed", run,
			 what);
	print_kept(json_object_get(line, "kept"));
}

/* Finds the job of a damaged run that may still exist, as far as the journal shows. */
static int find_open_job(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	char **job = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_ATTEMPT_INTENDED) {
		free(*job);
		*job = mem_copy(ev->job);
	}
	if (ev && (ev->kind == EV_ATTEMPT_ENDED || ev->kind == EV_RUN_ENDED))
		free(TAKE(*job));
	return 0;
}

/* Reads the status of a run before its removal. A damaged journal does not prevent the removal. */
static int read_status(struct journal *journal, const char *run, json_t **ret, bool *ret_damaged,
		       struct err **err)
{
	AUTO(auto_free) char *job = NULL;

	*ret_damaged = false;
	if (cmd_run_view(journal, run, false, ret, err) == 0)
		return 0;
	if (!(*err)->damage)
		return -1;
	out_note("%s", (*err)->message);
	err_freep(err);
	*ret_damaged = true;
	if (journal_salvage(journal, run, find_open_job, &job, err) < 0)
		return -1;
	if (job)
		out_note("the journal does not record the end of job %s; check the job on its "
			 "engine",
			 job);
	return 0;
}

/* Removes one run and prints it: lines, or {"run","name","state","ended","removed": true if
 * removed, "files","size_bytes","kept": […]}; "damaged" if its journal was. */
static int forget(const struct args *args, struct journal *journal, const char *run,
		  const struct lease_rules *rules, struct err **err)
{
	static const char *const shown[] = { "name", "state", "ended" };
	const struct forget_options options = { .with_checkpoints =
							args->given[OPT_WITH_CHECKPOINTS],
						.dry_run = args->given[OPT_DRY_RUN] };
	json_auto_t *status = NULL, *removal = NULL, *line = json_object();
	bool damaged;

	if (read_status(journal, run, &status, &damaged, err) < 0 ||
	    run_forget(journal, run, &options, rules, run_show_wait, NULL, &removal, err) < 0)
		return -1;
	js_put_str(line, "run", run);
	/* Without its events a run has no state, only remains. */
	for (size_t i = 0; i < STK_LENGTH(shown) && js_str(status, "created"); i++)
		js_put_str(line, shown[i], js_str(status, shown[i]));
	if (damaged)
		js_put(line, "damaged", json_true());
	js_put(line, "removed", json_boolean(!options.dry_run));
	json_object_update(line, removal);
	if (out_is_json())
		out_json(line);
	else
		print_removed(line, options.dry_run);
	return 0;
}

/* A dry run must not create the journal. */
static enum journal_mode mode_of(const struct args *args)
{
	return args->given[OPT_DRY_RUN] ? JOURNAL_READ : JOURNAL_WRITE;
}

static int add_run(void *arg, const char *run, const char *state, struct err **err)
{
	(void)state;
	(void)err;
	json_object_set_new(arg, run, json_true());
	return 0;
}

/* Adds the runs of a sweep that has ended, or was stopped: no process begins more of them. */
static int add_sweep(struct journal *journal, const json_t *record, json_t *ret, struct err **err)
{
	const char *id = js_str(record, "sweep"), *state;
	AUTO(err_freep) struct err *damage = NULL; /* is told as the run is removed */
	json_auto_t *view = NULL;

	if (sweep_view(journal, record, NULL, &view, &damage, err) < 0)
		return -1;
	state = js_str(view, "state");
	if (sweep_view_exit_code(view) != EXIT_DETACHED)
		return sweep_view_each(view, add_run, ret, err);
	err_set(err, EXIT_REFUSED, "sweep %s has not ended: %s", id,
		strcmp(state, "running") == 0 ? "a run of it goes on"
					      : "runs of it have not begun");
	return err_hint(err, "'stoker stop %s' stops it", id);
}

/* Resolves all operands to ids of runs, each once, and to sweeps, by their whole ids. The leftovers
 * of an interrupted removal can only be named by the whole id. */
static int resolve_all(const struct args *args, json_t *ret, json_t *ret_sweeps, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;

	/* Opened for reading, so that nothing is created if the run does not exist. */
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	for (int i = 0; i < args->operand_count; i++) {
		json_auto_t *record = NULL;
		char run[JOURNAL_RUN_MAX];
		int found = sweep_record_read(journal, args->operands[i], &record, err);

		if (found < 0 || (found > 0 && add_sweep(journal, record, ret, err) < 0))
			return -1;
		if (found > 0) {
			json_object_set_new(ret_sweeps, args->operands[i], json_true());
			continue;
		}
		if (run_has_rests(journal, args->operands[i]))
			snprintf(run, sizeof run, "%s", args->operands[i]);
		else if (journal_resolve(journal, args->operands[i], run, err) < 0)
			return -1;
		json_object_set_new(ret, run, json_true());
	}
	return 0;
}

static int forget_sweep(struct journal *journal, const char *id, bool dry_run, struct err **err)
{
	json_auto_t *line = json_object();

	if (!dry_run && sweep_record_remove(journal, id, err) < 0)
		return -1;
	js_put_str(line, "sweep", id);
	js_put(line, "removed", json_boolean(!dry_run));
	if (out_is_json())
		out_json(line);
	else
		out_line("%s sweep %s", dry_run ? "would remove" : "removed", id);
	return 0;
}

int cmd_rm(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_object(), *sweeps = json_object();
	struct lease_rules rules;
	const char *run, *sweep;
	const json_t *value;

	if (cmd_lease_rules(args, &rules, err) < 0 || resolve_all(args, runs, sweeps, err) < 0 ||
	    journal_open(args->value[OPT_STATE], mode_of(args), &journal, err) < 0)
		return -1;
	json_object_foreach (runs, run, value)
		if (forget(args, journal, run, &rules, err) < 0)
			return -1;
	/* The record goes last: a removal that ended before it is repeated by the same words. */
	json_object_foreach (sweeps, sweep, value)
		if (forget_sweep(journal, sweep, args->given[OPT_DRY_RUN], err) < 0)
			return -1;
	return EXIT_DONE;
}

/* --- list --prune --- */

/* Returns 1 if the run ended by `before`, 0 if not, -1. A run that cannot be read stays; `kept`
 * becomes that failure. */
static int is_old(struct journal *journal, const char *run, struct utc before, struct err **kept,
		  struct err **err)
{
	json_auto_t *status = NULL;
	const char *ended;
	struct utc at;

	if (cmd_run_view_as(journal, run, RUN_VIEW_TRUSTS, false, &status, err) < 0) {
		if ((*err)->code == EXIT_UNREACHABLE)
			return -1;
		out_error_later(kept, err);
		return 0;
	}
	ended = js_str(status, "ended");
	return ended && clock_utc_parse(ended, &at) && at.ms <= before.ms;
}

static int find_old(const struct args *args, json_t *ret, struct err **kept, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *unfound = NULL;
	const char *text = args->value[OPT_PRUNE];
	json_auto_t *runs = json_array();
	struct utc before;
	int64_t age;
	json_t *run;
	size_t i;

	if (!text_duration(text, &age)) {
		err_set(err, EXIT_USAGE, "--prune needs an age, not '%s'", text);
		return err_hint(err, "write, for instance, --prune 30d");
	}
	before.ms = clock_utc_now().ms - age;
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	if (journal_runs(journal, runs, &unfound) < 0 && !unfound->damage) {
		*err = TAKE(unfound);
		return -1;
	}
	json_array_foreach (runs, i, run) {
		int old = is_old(journal, json_string_value(run), before, kept, err);

		if (old < 0)
			return -1;
		if (old > 0)
			json_array_append(ret, run);
	}
	if (unfound)
		out_error_later(kept, &unfound);
	return 0;
}

int cmd_prune(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_array();
	struct lease_rules rules;
	json_t *run;
	AUTO(err_freep) struct err *kept = NULL;
	size_t i;

	if (cmd_lease_rules(args, &rules, err) < 0 || find_old(args, runs, &kept, err) < 0)
		return -1;
	if (json_array_size(runs) == 0) {
		out_note("no run ended longer than %s ago", args->value[OPT_PRUNE]);
		*err = TAKE(kept);
		return *err ? -1 : EXIT_DONE;
	}
	if (journal_open(args->value[OPT_STATE], mode_of(args), &journal, err) < 0)
		return -1;
	/* A failure of one run does not keep back the others. */
	json_array_foreach (runs, i, run) {
		AUTO(err_freep) struct err *why = NULL;

		if (forget(args, journal, json_string_value(run), &rules, &why) < 0)
			out_error_later(&kept, &why);
	}
	*err = TAKE(kept);
	return *err ? -1 : EXIT_DONE;
}
