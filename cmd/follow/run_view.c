/* Opening and folding the journal of a run: see run_view.h. */
#include "cmd/follow/run_view.h"

#include <string.h>

#include "cmd/follow/run_head.h"
#include "cmd/view/mode_comparison_view.h"
#include "jobs/base/text/text.h"
#include "jobs/run/journal/summary.h"
#include "jobs/run/sweep/sweep_record.h"

#define LEASE_LEAST_MS 300

/* The state of a run, on its way through the events. */
struct run_view_fold {
	struct status *status;
	int64_t seq; /* of the newest event in it */
	bool ended;
};

static void fold_release(struct run_view_fold *fold)
{
	status_freep(&fold->status);
}

static int add_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct run_view_fold *fold = arg;

	(void)err;
	fold->seq = js_int(row, "seq", fold->seq);
	if (!ev)
		return 0;
	fold->ended |= ev->kind == EV_RUN_ENDED;
	status_add(fold->status, ev);
	return 0;
}

/* Finds the summary of the run. Returns 1 with it; 0 if there is none that may be used, -1. */
static int find_summary(struct journal *journal, const char *run, enum run_view_trust trust,
			struct run_summary *ret, struct err **err)
{
	AUTO(err_freep) struct err *unreadable = NULL;

	/* A failure, if it matters, is met again when the events are read. */
	if (journal_summary(journal, run, ret, &unreadable) <= 0)
		return 0;
	return trust == RUN_VIEW_TRUSTS ? 1 : journal_prove(journal, run, ret->seq, err);
}

/* Folds the events, those after the summary where it is one of a run that goes on. */
static int fold_events(struct journal *journal, const char *run, const struct run_summary *summary,
		       struct run_view_fold *fold, struct err **err)
{
	if (summary->rest.len > 0 && summary->head.len == 0)
		fold->status = status_from_kept(summary->rest.text, summary->rest.len);
	if (fold->status)
		fold->seq = summary->seq;
	else
		fold->status = status_new(run);
	return journal_read(journal, run, fold->seq + 1, add_event, fold, err);
}

static int note_more(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev;
	(void)row;
	(void)err;
	*(bool *)arg = true;
	return 1;
}

/* Takes the state of an ended run from its summary. Returns 1, 0 if it cannot be had from there,
 * -1. */
static int take_whole(struct journal *journal, const char *run, const struct run_summary *summary,
		      bool with_attempts, json_t **ret, struct err **err)
{
	json_auto_t *status = NULL, *attempts = NULL;
	bool more = false;

	if (summary->head.len == 0)
		return 0;
	if (journal_read(journal, run, summary->seq + 1, note_more, &more, err) < 0)
		return -1;
	if (more ||
	    js_parse(summary->line.text, summary->line.len, "the summary", &status, err) < 0 ||
	    js_parse(summary->rest.text, summary->rest.len, "the summary", &attempts, err) < 0) {
		err_freep(err);
		return 0;
	}
	if (with_attempts)
		js_put(status, "attempts", json_incref(attempts));
	*ret = TAKE(status);
	return 1;
}

static int fold(struct journal *journal, const char *run, enum run_view_trust trust,
		bool with_attempts, bool undriven, json_t **ret, struct err **err)
{
	AUTO(summary_release) struct run_summary summary = SUMMARY_INIT, none = SUMMARY_INIT;
	AUTO(fold_release) struct run_view_fold fold = { 0 };
	int found = find_summary(journal, run, trust, &summary, err), taken;

	if (found < 0)
		return -1;
	taken = found > 0 ? take_whole(journal, run, &summary, with_attempts, ret, err) : 0;
	if (taken != 0)
		return taken < 0 ? -1 : 0;
	if (fold_events(journal, run, found > 0 ? &summary : &none, &fold, err) < 0)
		return -1;
	if (undriven)
		status_undriven(fold.status);
	*ret = status_json(fold.status, clock_utc_now(), with_attempts);
	return 0;
}

static void make_summary(const struct run_view_fold *fold, struct run_summary *ret)
{
	AUTO(auto_free) char *line = NULL, *rest = NULL;
	json_auto_t *status = NULL, *tally = NULL;

	ret->seq = fold->seq;
	if (!fold->ended) {
		status_keep(fold->status, &ret->rest);
		return;
	}
	status = status_json(fold->status, clock_utc_now(), true);
	rest = js_line_exact(json_object_get(status, "attempts"));
	sb_adds(&ret->rest, rest);
	json_object_del(status, "attempts");
	line = js_line_exact(status);
	sb_adds(&ret->line, line);
	tally = status_tally(fold->status, clock_utc_now());
	run_head_make(status, tally, &ret->head);
}

/* True if the run has ended, and the summary is of the form of this version. */
static bool is_up_to_date(const struct run_summary *summary)
{
	AUTO(auto_free) char *head = mem_copy(summary->head.text);
	struct run_head ignored;

	return run_head_read(head, &ignored);
}

void cmd_run_summarise(struct journal *journal, const char *run)
{
	AUTO(fold_release) struct run_view_fold fold = { 0 };
	AUTO(summary_release) struct run_summary there = SUMMARY_INIT, made = SUMMARY_INIT;
	AUTO(err_freep) struct err *ignored = NULL;

	if (find_summary(journal, run, RUN_VIEW_TRUSTS, &there, &ignored) <= 0) {
		summary_release(&there);
		there = SUMMARY_INIT;
	}
	if (is_up_to_date(&there) || fold_events(journal, run, &there, &fold, &ignored) < 0 ||
	    fold.seq == 0)
		return;
	make_summary(&fold, &made);
	(void)!journal_summarise(journal, run, &made, &ignored);
}

/* True if the journal has a driver. The journal of a killed driver ends in the middle; a driver
 * that leaves records it. */
static bool seems_driven(const json_t *status)
{
	return !json_object_get(status, "exit_code") &&
	       !json_is_null(json_object_get(status, "driver"));
}

/* True only if that is certain at the first look. */
static bool nobody_drives(struct journal *journal, const char *run)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *unknown = NULL;

	return lease_check(journal, run, NULL, &lease, &unknown) == 1;
}

int cmd_run_tally(struct journal *journal, const char *run, json_t **ret, struct err **err)
{
	AUTO(summary_release) struct run_summary summary = SUMMARY_INIT, none = SUMMARY_INIT;
	AUTO(fold_release) struct run_view_fold fold = { 0 };
	int found = find_summary(journal, run, RUN_VIEW_TRUSTS, &summary, err);

	if (found < 0 || fold_events(journal, run, found > 0 ? &summary : &none, &fold, err) < 0)
		return -1;
	if (!fold.ended && nobody_drives(journal, run))
		status_undriven(fold.status);
	*ret = status_tally(fold.status, clock_utc_now());
	return 0;
}

int cmd_run_view_as(struct journal *journal, const char *run, enum run_view_trust trust,
		    bool with_attempts, json_t **ret, struct err **err)
{
	json_auto_t *status = NULL;

	if (fold(journal, run, trust, with_attempts, false, &status, err) < 0)
		return -1;
	if (seems_driven(status) && nobody_drives(journal, run)) {
		/* The run may have ended since it was read. */
		json_decref(TAKE(status));
		if (fold(journal, run, trust, with_attempts, true, &status, err) < 0)
			return -1;
	}
	*ret = TAKE(status);
	return 0;
}

int cmd_run_view(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
		 struct err **err)
{
	return cmd_run_view_as(journal, run, RUN_VIEW_PROVES, with_attempts, ret, err);
}

int cmd_run_check_begun(struct journal *journal, const char *run, const json_t *status,
			struct err **err)
{
	json_auto_t *runs = json_array();
	bool listed = false;
	json_t *one;
	size_t i;

	if (js_str(status, "created"))
		return 0;
	if (journal_runs(journal, runs, err) < 0)
		return -1;
	json_array_foreach (runs, i, one)
		listed |= strcmp(json_string_value(one), run) == 0;
	if (!listed)
		return err_set(err, EXIT_NOT_FOUND, "no run '%s'", run);
	err_set(err, EXIT_REFUSED, "not found");
	return damage_of_event(err, journal_url(journal), run, 1);
}

int cmd_run_view_whole(struct journal *journal, const char *run, json_t **ret, struct err **err)
{
	json_auto_t *status = NULL;

	if (cmd_run_view(journal, run, true, &status, err) < 0 ||
	    cmd_run_check_begun(journal, run, status, err) < 0)
		return -1;
	*ret = TAKE(status);
	js_put(*ret, "modes",
	       mode_comparison_find(journal, js_str(*ret, "name"),
				    js_str(json_object_get(*ret, "cache"), "graph_key")));
	return 0;
}

/* The word that is no run may be a sweep. */
static void name_sweep(struct journal *journal, const char *ref, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *record = NULL;

	if (((*err)->code != EXIT_NOT_FOUND && (*err)->code != EXIT_USAGE) ||
	    sweep_record_read(journal, ref, &record, &ignored) <= 0)
		return;
	err_freep(err);
	err_set(err, EXIT_USAGE, "'%s' is a sweep, and no run", ref);
	err_hint(err, "'stoker status %s' shows its runs: name one of them", ref);
}

int cmd_run_open(const struct args *args, enum journal_mode mode, struct journal **ret,
		 char run[JOURNAL_RUN_MAX], struct err **err)
{
	if (journal_open(args->value[OPT_STATE], mode, ret, err) < 0)
		return -1;
	if (journal_resolve(*ret, args->operands[0], run, err) == 0)
		return 0;
	name_sweep(*ret, args->operands[0], err);
	return -1;
}

int cmd_run_exit_code_or_pause(struct journal *journal, const char *run, bool *ret_paused,
			       struct err **err)
{
	json_auto_t *status = NULL;

	if (fold(journal, run, RUN_VIEW_PROVES, false, false, &status, err) < 0)
		return -1;
	*ret_paused = js_is(status, "state", "paused");
	return (int)js_int(status, "exit_code", EXIT_DETACHED);
}

int cmd_run_exit_code(struct journal *journal, const char *run, struct err **err)
{
	bool paused;

	return cmd_run_exit_code_or_pause(journal, run, &paused, err);
}

int cmd_lease_rules(const struct args *args, struct lease_rules *ret, struct err **err)
{
	const char *text = args->value[OPT_LEASE];

	*ret = LEASE_RULES;
	if (!text)
		return 0;
	if (!text_duration(text, &ret->valid_ms) || ret->valid_ms < LEASE_LEAST_MS) {
		err_set(err, EXIT_USAGE, "--lease needs a longer duration, not '%s'", text);
		return err_hint(err, "omit --lease");
	}
	ret->renew_ms = ret->valid_ms / 3;
	return 0;
}
