/* attach, wait, resume, stop: control of an existing run. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/attachment.h"
#include "cmd/follow/choose.h"
#include "cmd/follow/foreground.h"
#include "cmd/follow/run_show.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_view.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/text/text.h"
#include "jobs/run/beside.h"
#include "jobs/run/journal/lease.h"
#include "jobs/run/request.h"
#include "jobs/run/salvage.h"
#include "jobs/run/sweep/sweep_record.h"

/* --- attach --- */

int cmd_attach(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct attach_options options = { .from_the_start = out_is_json() };
	char run[JOURNAL_RUN_MAX];
	int code;

	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	code = attachment_run(args, journal, run, &options, err);
	if (code != ATTACH_ALONE)
		return code;
	err_set(err, EXIT_REFUSED, "run %s has no driver any more", run);
	return err_hint(err, "'stoker resume %s' continues the run", run);
}

/* --- wait --- */

#define SWEEP_LOOK_MS        1000
#define SWEEP_LOOK_REMOTE_MS 5000

/* Waits until no run of the sweep is left that goes on, or may begin. */
static int wait_for_sweep(struct journal *journal, const char *id, int64_t timeout_ms,
			  struct err **err)
{
	struct mono since = clock_mono_now();
	json_auto_t *earlier = NULL;
	int code = EXIT_DETACHED;

	for (;;) {
		AUTO(err_freep) struct err *damage = NULL;
		json_auto_t *record = NULL, *view = NULL;
		int64_t gone;
		int found = sweep_record_read(journal, id, &record, err);

		if (found == 0) {
			err_set(err, EXIT_NOT_FOUND, "sweep %s was removed", id);
			return err_hint(err, "'stoker list' shows all runs");
		}
		if (found < 0 || sweep_view(journal, record, earlier, &view, &damage, err) < 0)
			return -1;
		json_decref(earlier);
		earlier = json_incref(view);
		code = sweep_view_exit_code(view);
		gone = clock_mono_now().ms - since.ms;
		if (code == EXIT_DETACHED && (timeout_ms == 0 || gone < timeout_ms) &&
		    cancel_pause(journal_is_remote(journal) ? SWEEP_LOOK_REMOTE_MS : SWEEP_LOOK_MS))
			continue;
		if (out_is_json())
			out_json(view);
		else if (code != EXIT_DETACHED)
			out_note("sweep %s %s", id, js_str(view, "state"));
		if (!damage || code == EXIT_DETACHED)
			return code;
		*err = TAKE(damage);
		return -1;
	}
}

int cmd_wait(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	struct attach_options options = { .quiet = true, .plain = true, .patient = true };
	char run[JOURNAL_RUN_MAX];
	json_auto_t *status = NULL, *record = NULL;
	int code, found;

	if (args_duration(args, OPT_TIMEOUT, &options.timeout_ms, err) < 0)
		return -1;
	found = sweep_view_find(args, JOURNAL_READ, &journal, &record, err);
	if (found != 0)
		return found < 0 ? -1
				 : wait_for_sweep(journal, js_str(record, "sweep"),
						  options.timeout_ms, err);
	journal_freep(&journal);
	if (cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0)
		return -1;
	code = attachment_run(args, journal, run, &options, err);
	if (code < 0 || cmd_run_view_whole(journal, run, &status, err) < 0)
		return -1;
	if (out_is_json())
		out_json(status);
	else if (code != EXIT_DETACHED)
		out_note("run %s %s", run, js_str(status, "state"));
	return code;
}

/* --- resume --- */

/* Starts a background driver if the run goes on and is not paused; NULL: it needs none. The summary
 * of an ended run is kept if it lacks one, because its driver was killed, for instance. */
static int start_driver(struct journal *journal, const char *run, struct background **ret,
			struct err **err)
{
	bool paused = false;
	int code = cmd_run_exit_code_or_pause(journal, run, &paused, err);

	if (code == EXIT_DETACHED && paused)
		return 0;
	if (code == EXIT_DETACHED)
		code = background_start(journal, run, NULL, ret, err);
	else if (code >= 0)
		cmd_run_summarise(journal, run);
	return code < 0 ? -1 : 0;
}

/* A run that already has a driver is not an error. */
static void record_failure(struct err **kept, struct err **why)
{
	if (*why && (*why)->code != EXIT_BUSY)
		out_error_later(kept, why);
}

/* A failure of one run does not keep back the others, and no run waits for another's lease. */
static int resume_all(struct journal *journal, struct err **err)
{
	json_auto_t *runs = json_array();
	AUTO(auto_free) struct background **drivers = NULL;
	AUTO(err_freep) struct err *unfound = NULL;
	json_t *run;
	size_t i;

	if (journal_runs(journal, runs, &unfound) < 0 && !unfound->damage) {
		*err = TAKE(unfound);
		return -1;
	}
	record_failure(err, &unfound);
	drivers = mem_zero(json_array_size(runs) + 1, sizeof(struct background *));
	json_array_foreach (runs, i, run) {
		AUTO(err_freep) struct err *why = NULL;

		(void)!start_driver(journal, json_string_value(run), &drivers[i], &why);
		record_failure(err, &why);
	}
	json_array_foreach (runs, i, run) {
		AUTO(err_freep) struct err *why = NULL;

		if (drivers[i])
			(void)!foreground_detach_await(drivers[i], json_string_value(run), &why);
		record_failure(err, &why);
		background_freep(&drivers[i]);
	}
	return *err ? -1 : EXIT_DONE;
}

#define OPEN_TRIES 4
#define OPEN_MS    300 /* before the second try; then doubled each time */

/* Retries transient failures: there may be a job without a driver. */
static int open_patiently(const struct args *args, struct journal **ret, char run[JOURNAL_RUN_MAX],
			  struct err **err)
{
	for (int i = 0; cmd_run_open(args, JOURNAL_WRITE, ret, run, err) < 0; i++) {
		journal_freep(ret);
		if (i >= OPEN_TRIES || !err_passes(*err) || !cancel_pause(OPEN_MS << i))
			return -1;
		err_freep(err);
	}
	return 0;
}

/* Opens the journal whatever its damage. A run that nothing but its folder shows is named in
 * full. */
static int open_to_salvage(const struct args *args, struct journal **ret, char run[JOURNAL_RUN_MAX],
			   struct err **err)
{
	const char *ref = args->operands[0];

	if (journal_open(args->value[OPT_STATE], JOURNAL_SALVAGE, ret, err) < 0)
		return -1;
	if (journal_resolve(*ret, ref, run, err) == 0)
		return 0;
	if (!text_run_id_valid(ref) || !((*err)->damage || journal_first_is_kept(*ret, ref)))
		return -1;
	err_freep(err);
	snprintf(run, JOURNAL_RUN_MAX, "%s", ref);
	return 0;
}

/* Sets the damaged part aside; then the run is resumed like any other. */
static int salvage(const struct args *args, struct journal *journal, const char *run,
		   struct err **err)
{
	struct lease_rules rules;
	struct driver_options options = {
		.run = run,
		.on_wait = run_show_wait,
		.lease = &rules,
		.on_event = run_show_event,
	};
	int done;

	if (cmd_lease_rules(args, &rules, err) < 0)
		return -1;
	done = salvage_run(journal, &options, err);
	if (done == 0)
		out_note("the journal of run %s is whole; there is nothing to salvage", run);
	return done < 0 ? -1 : 0;
}

int cmd_resume(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];
	int code;

	if (args->given[OPT_ALL] == (args->operand_count > 0)) {
		err_set(err, EXIT_USAGE, "resume takes a RUN or --all");
		return err_hint(err, "'stoker list' shows all runs");
	}
	if (args->given[OPT_ALL] && args->given[OPT_SALVAGE]) {
		err_set(err, EXIT_USAGE, "--salvage takes one RUN, not --all");
		return err_hint(err, "'stoker list' shows which runs are damaged");
	}
	if (args->given[OPT_ALL]) {
		if (journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
			return -1;
		return resume_all(journal, err);
	}
	if (args->given[OPT_SALVAGE] ? open_to_salvage(args, &journal, run, err) < 0 ||
					       salvage(args, journal, run, err) < 0
				     : open_patiently(args, &journal, run, err) < 0)
		return -1;
	if (!args->given[OPT_DETACH])
		return foreground_run(args, journal, run, NULL, NULL, err);
	code = cmd_run_exit_code(journal, run, err);
	return code == EXIT_DETACHED ? foreground_detach(journal, run, args->value[OPT_UNTIL], err)
				     : code;
}

/* --- stop --- */

/* Without a driver this process must carry out the stop; a driver that dies before it reads the
 * request is replaced. */
static int see_it_stopped(const struct args *args, struct journal *journal, const char *run,
			  struct err **err)
{
	const struct attach_options options = { 0 };

	for (;;) {
		AUTO(err_freep) struct err *busy = NULL;
		int code = foreground_run(args, journal, run, NULL, NULL, &busy);

		if (code < 0 && busy->code != EXIT_BUSY) {
			*err = TAKE(busy);
			return -1;
		}
		if (code < 0)
			code = attachment_run(args, journal, run, &options, err);
		if (code != ATTACH_ALONE)
			return code;
	}
}

static void print_step(void *arg, const char *what)
{
	(void)arg;
	out_note("%s", what);
}

/* Sets the error and hint for a job that only a person can still stop. */
static int not_stopped(const struct stop_beside *stop, struct err **why, struct err **err)
{
	AUTO(auto_free) char *cure = NULL;

	*err = TAKE(*why);
	if (!stop->job[0])
		return err_wrap(err, "cannot request the stop");
	err_wrap(err, "cannot stop job %s%s%s", stop->job, stop->trouble[0] ? ": " : "",
		 stop->trouble);
	/* One of the two remedies may be all that is needed. */
	if (stop->cure[0] || (*err)->hint)
		cure = mem_format("; or %s", stop->cure[0] ? stop->cure : (*err)->hint);
	if (stop->by_hand[0])
		return err_hint(err, "end the job with '%s'%s%s, then run 'stoker stop' again%s",
				stop->by_hand, stop->driven ? ", and its driver, " : "",
				stop->driven ? stop->holder : "", cure ? cure : "");
	return err_hint(err, "end the job on its machine, then run 'stoker stop' again%s",
			cure ? cure : "");
}

/* Stops the job directly, because the journal takes no request or nobody can drive the run; `why`
 * is that reason. */
static int stop_past(const struct args *args, struct journal *journal, const char *run,
		     struct err **why, struct err **err)
{
	struct stop_beside stop;
	AUTO(auto_free) char *cause = err_format(*why);

	out_note("%s; stopping the job directly", cause);
	if ((*why)->hint && !out_is_json())
		out_hint("%s", (*why)->hint);
	if (beside_stop(journal, run, args->value[OPT_REASON], print_step, NULL, &stop, err) < 0)
		return -1;
	/* A damaged journal does not prove that nothing is under way. */
	if (!stop.over && !stop.ended && (stop.damaged || !(stop.idle && stop.left)))
		return not_stopped(&stop, why, err);
	if (stop.over)
		out_note("run %s had ended before it could be stopped", run);
	if (stop.ended)
		out_note("job %s is stopped", stop.job);
	if (stop.damaged) {
		/* The job is stopped, but the journal still needs a person. */
		*err = TAKE(*why);
		return -1;
	}
	if (stop.over)
		return EXIT_DONE;
	if (stop.driven)
		out_note("the driver (%s) records the end as soon as the journal can be written",
			 stop.holder);
	else
		out_note("the run has no driver: 'stoker resume %s' records its end once the "
			 "journal can be written%s",
			 run, stop.left ? "" : "; run 'stoker stop' again then");
	if ((*why)->hint)
		out_hint("%s", (*why)->hint);
	return EXIT_DONE;
}

/* True if the command line names no run that there is: then there is nothing to stop. */
static bool names_no_run(const struct err *why)
{
	return why->code == EXIT_USAGE || why->code == EXIT_NOT_FOUND;
}

/* Opens the journal and finds the run, which a terminal is asked for if none is named. */
static int open_to_stop(const struct args *args, enum journal_mode mode, struct journal **ret,
			char run[JOURNAL_RUN_MAX], struct err **err)
{
	if (args->operand_count > 0)
		return cmd_run_open(args, mode, ret, run, err);
	if (!run[0] && choose_run(args->value[OPT_STATE], "stop", run, err) < 0)
		return -1;
	return journal_open(args->value[OPT_STATE], mode, ret, err);
}

static int stop_run(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *why = NULL;
	char run[JOURNAL_RUN_MAX] = "";
	enum request_result result;
	int code;

	if (open_to_stop(args, JOURNAL_WRITE, &journal, run, &why) < 0) {
		AUTO(err_freep) struct err *unread = NULL;

		journal_freep(&journal);
		if (names_no_run(why) ||
		    open_to_stop(args, JOURNAL_READ, &journal, run, &unread) < 0) {
			*err = TAKE(why);
			return -1;
		}
		return stop_past(args, journal, run, &why, err);
	}
	if (request_stop(journal, run, args->value[OPT_REASON], &result, &why) < 0) {
		if (names_no_run(why)) {
			*err = TAKE(why);
			return -1;
		}
		return stop_past(args, journal, run, &why, err);
	}
	if (result == REQUEST_TOO_LATE)
		code = cmd_run_exit_code(journal, run, err);
	else
		code = see_it_stopped(args, journal, run, &why);
	/* The request is recorded, but no driver can be had: because of an invalid lease, for
	 * instance. */
	if (code == -1 && !names_no_run(why))
		return stop_past(args, journal, run, &why, err);
	if (why)
		*err = TAKE(why);
	if (code == EXIT_STOPPED)
		return EXIT_DONE;
	if (code >= 0 && code != EXIT_DETACHED) {
		out_note("run %s had ended before it could be stopped", run);
		return EXIT_DONE;
	}
	return code;
}

/* A sweep whose runs are stopped. */
struct sweep_stop {
	const struct args *args;
	struct journal *journal;
	size_t found;        /* runs that went on at the last look */
	struct err *trouble; /* of a run that cannot be stopped */
};

static bool goes_on(const char *state)
{
	return strcmp(state, "running") == 0 || strcmp(state, "waiting") == 0;
}

/* All are asked before the end of any is awaited. */
static int request_one(void *arg, const char *run, const char *state, struct err **err)
{
	struct sweep_stop *stop = arg;
	AUTO(err_freep) struct err *ignored = NULL; /* it is asked again */
	enum request_result result;

	(void)err;
	if (goes_on(state)) {
		stop->found++;
		(void)!request_stop(stop->journal, run, stop->args->value[OPT_REASON], &result,
				    &ignored);
	}
	return 0;
}

static int stop_one(void *arg, const char *run, const char *state, struct err **err)
{
	struct sweep_stop *stop = arg;
	AUTO(err_freep) struct err *why = NULL;
	struct args args = *stop->args;
	char name[JOURNAL_RUN_MAX];
	const char *operands[] = { name };

	(void)err;
	/* The job of a damaged run may go on. */
	if (!goes_on(state) && strcmp(state, "damaged") != 0)
		return 0;
	snprintf(name, sizeof name, "%s", run);
	args.operands = operands;
	args.operand_count = 1;
	if (stop_run(&args, &why) < 0)
		out_error_later(&stop->trouble, &why);
	return 0;
}

/* Returns 1 if a sweep has ended, without a stop and as far as all is known; 0, -1. */
static int sweep_has_ended(struct journal *journal, const json_t *record, struct err **err)
{
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *view = NULL;
	int code;

	if (sweep_view(journal, record, NULL, &view, &damage, err) < 0)
		return -1;
	code = sweep_view_exit_code(view);
	return !damage && code != EXIT_DETACHED && code != EXIT_STOPPED;
}

/* Nothing of the sweep begins any more, and what is under way is stopped. A process of the sweep
 * may be about to begin a run, so that a second look follows. */
#define SWEEP_STOPS 3

static int stop_sweep(const struct args *args, struct journal *journal, const json_t *record,
		      struct err **err)
{
	const char *id = js_str(record, "sweep"), *reason = args->value[OPT_REASON];
	struct sweep_stop stop = { .args = args, .journal = journal };
	int ended = sweep_has_ended(journal, record, err);

	if (ended > 0)
		out_note("sweep %s had ended before it could be stopped", id);
	if (ended != 0)
		return ended < 0 ? -1 : EXIT_DONE;
	if (sweep_record_stop(journal, id, reason ? reason : "", err) < 0)
		return -1;
	for (int i = 0; i < SWEEP_STOPS && !stop.trouble; i++) {
		AUTO(err_freep) struct err *damage = NULL; /* is met again */
		json_auto_t *view = NULL;

		stop.found = 0;
		if (sweep_view(journal, record, NULL, &view, &damage, err) < 0 ||
		    sweep_view_each(view, request_one, &stop, err) < 0 ||
		    sweep_view_each(view, stop_one, &stop, err) < 0) {
			err_freep(&stop.trouble);
			return -1;
		}
		if (stop.found == 0)
			break;
	}
	if (stop.trouble) {
		*err = TAKE(stop.trouble);
		return -1;
	}
	out_note("sweep %s is stopped", id);
	return EXIT_DONE;
}

int cmd_stop(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *record = NULL;
	int found = sweep_view_find(args, JOURNAL_WRITE, &journal, &record, err);

	if (found != 0)
		return found < 0 ? -1 : stop_sweep(args, journal, record, err);
	journal_freep(&journal);
	return stop_run(args, err);
}
