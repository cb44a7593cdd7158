/* From a spec to a run: see start.h. */
#include "cmd/follow/start.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd/args/machine_here.h"
#include "cmd/args/spec_args.h"
#include "cmd/follow/foreground.h"
#include "cmd/follow/outcome.h"
#include "cmd/follow/run_show.h"
#include "cmd/schedule/hand_turn.h"
#include "cmd/schedule/open_turn.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/run/inputs/inputs.h"
#include "jobs/run/judge.h"
#include "jobs/run/sweep/sweep_record.h"

/* A run in the making. */
struct run_start {
	const struct args *args;
	const struct start_how *how;
	struct journal *journal;
	char id[JOURNAL_RUN_MAX];
	bool may_exist; /* the run's id is not a fresh one */
	struct spec *spec;
	struct plan *plan;
	json_t *inputs;
	struct store *place; /* where turns by hand are claimed; NULL: this is none */
	bool claimed;
	bool nothing_new;
};

static void start_release(struct run_start *start)
{
	json_decref(start->inputs);
	store_freep(&start->place);
	plan_freep(&start->plan);
	spec_freep(&start->spec);
	journal_freep(&start->journal);
}

static int choose_id(struct run_start *start, struct err **err)
{
	const struct args *args = start->args;
	const char *given = start->how->id ? start->how->id : args->value[OPT_ID];
	char fresh[RUN_ID_LEN + 1];

	start->may_exist = given != NULL;
	if (!given) {
		text_run_id_new(fresh);
		snprintf(start->id, sizeof start->id, "%s", fresh);
		return 0;
	}
	if (!text_run_id_valid(given)) {
		err_set(err, EXIT_USAGE, "invalid run id '%s'", given);
		return err_hint(err,
				"use 1 to 40 lower-case letters, digits and hyphens, a letter or "
				"digit first");
	}
	snprintf(start->id, sizeof start->id, "%s", given);
	return 0;
}

/* An id that a sweep has cannot name a run: 'status ID' would have two
 * meanings. */
static int refuse_sweep(struct journal *journal, const char *id, struct err **err)
{
	json_auto_t *record = NULL;
	int found = sweep_record_read(journal, id, &record, err);

	if (found <= 0)
		return found;
	err_set(err, EXIT_SPEC, "'%s' is a sweep, and no run", id);
	return err_hint(err, "choose another --id");
}

/* 'validate' asks for a gate only where a spec says that it promotes: 'run' needs none. */
static int refuse_no_gate(const json_t *plan, struct err **err)
{
	if (json_array_size(json_object_get(plan, "gate")) > 0 ||
	    !js_is(json_object_get(plan, "promote"), "when", "gate"))
		return 0;
	err_set(err, EXIT_SPEC,
		"'retrain' promotes, and the spec has no gate: nothing says what "
		"may be promoted");
	return err_hint(err, "add gate: [{metric: accuracy, max_drop: 0.1%%}], or promote: {when: "
			     "manual}, or {when: always}");
}

/* --- inputs of the run --- */

/* A run that exists, as its first event says. */
struct known_run {
	bool exists;
	bool promotes; /* the run may promote: 'retrain' began it */
};

static int find_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct known_run *ret = arg;

	(void)row;
	(void)err;
	ret->exists = true;
	ret->promotes = EVENT_HAS(ev, inputs) && js_bool(ev->inputs, "promotes", false);
	return 1;
}

/* The same name for another thing: nothing would be promoted, with exit code 0. */
static int refuse_training(const struct run_start *start, struct err **err)
{
	err_set(err, EXIT_SPEC, "run %s was not begun by 'retrain', and promotes nothing",
		start->id);
	return err_hint(err, "promote its model: 'stoker promote %s'; or give another --id",
			start->id);
}

static int refuse_busy(const char *run, struct err **err)
{
	err_set(err, EXIT_BUSY, "run %s retrains this model now", run);
	return err_hint(err, "wait for its end: 'stoker attach %s'; or end it: 'stoker stop %s'",
			run, run);
}

/* A turn begins once the one before has ended, or is left to nobody. */
static int look_for_turn(const struct run_start *start, struct err **err)
{
	struct open_turn open;
	int found = open_turn_find(start->journal, start->place, NULL, &open, err);

	if (found > 0 && open.state == TURN_RUN_DRIVEN)
		return refuse_busy(open.run, err);
	return found < 0 ? -1 : 0;
}

/* Most turns by hand find nothing new, and need no journal, which may lie in a bucket: others ask
 * it from here on. */
static int look_around(void *arg, struct err **err)
{
	const struct run_start *start = arg;

	return journal_begin(start->journal, err) < 0 ||
			       judge_check(start->plan->json, start->journal, err) < 0
		       ? -1
		       : look_for_turn(start, err);
}

/* Claims the turn: of several that are begun by hand in the same moment, one runs. */
static int claim_turn(void *arg, struct err **err)
{
	struct run_start *start = arg;
	const char *name = js_str(start->plan->json, "name");
	char other[JOURNAL_RUN_MAX];
	int claimed = hand_turn_claim(start->journal, start->place, name, start->id, other, err);

	if (claimed == 0)
		return refuse_busy(other, err);
	if (claimed < 0)
		return -1;
	start->claimed = true;
	return look_for_turn(start, err);
}

/* The one line of a turn without news. */
static void tell_nothing_new(const struct run_start *start, struct utc at, const char *words)
{
	const char *given = js_str(start->how->turn, "due");
	struct utc due;

	json_auto_t *line = json_object();

	js_put_str(line, "name", js_str(start->plan->json, "name"));
	js_put_str(line, "outcome", "nothing_new");
	js_put_str(line, "reason", words);
	if (out_is_json())
		out_json(line);
	else
		out_line("nothing new: %s", words);
	if (given && clock_utc_parse(given, &due))
		at = due;
	open_turn_tell(start->plan->json, at, "nothing_new", words);
}

/* Asks once. Returns as inputs_make() does. */
static int ask_for_inputs(struct run_start *start, struct inputs_ask *ask, struct err **err)
{
	const struct args *args = start->args;
	AUTO(auto_free) char *words = NULL;
	int found;

	if (args_moment(args, OPT_AT, clock_utc_now(), &ask->at, err) < 0)
		return -1;
	if (!args->given[OPT_AT])
		ask->at = clock_utc_now();
	found = inputs_make(start->journal, ask, &start->inputs, &words, err);
	if (found == 0)
		tell_nothing_new(start, ask->at, words);
	else if (found == 1 && words)
		out_note("%s", words);
	return found;
}

/* Fixes what a new run is given; one that exists goes on with what it was given
 * first. */
static int find_inputs(struct run_start *start, struct err **err)
{
	const char *url = js_str(json_object_get(start->plan->json, "promote"), "url");
	bool by_hand = start->how->retrain && !start->how->turn && url;
	struct inputs_ask ask = {
		.plan = start->plan->json,
		.run = start->id,
		.retrain = start->how->retrain,
		.at_is_given = start->args->given[OPT_AT],
		.turn = start->how->turn,
		.without = start->args->value[OPT_WITHOUT],
		.is_free = by_hand ? look_around : NULL,
		.claim = by_hand ? claim_turn : NULL,
		.arg = start,
	};
	bool promotes = !js_is(json_object_get(start->plan->json, "promote"), "when", "manual");
	struct known_run known = { 0 };
	int found;

	if (start->may_exist &&
	    journal_read(start->journal, start->id, 1, find_event, &known, err) < 0)
		return -1;
	if (known.exists && start->how->retrain && promotes && !known.promotes)
		return refuse_training(start, err);
	if (known.exists)
		return 0;
	if (by_hand ? store_open(url, &start->place, err) < 0
		    : journal_begin(start->journal, err) < 0 ||
			      judge_check(start->plan->json, start->journal, err) < 0)
		return -1;
	do
		found = ask_for_inputs(start, &ask, err);
	while (found == INPUTS_OLD);
	start->nothing_new = found == 0;
	if (found <= 0 && start->claimed)
		hand_turn_release(start->place);
	return found < 0 ? -1 : 0;
}

/* --- driver of the run --- */

static int run_detached(const struct run_start *start, struct err **err)
{
	struct driver_options options = { .run = start->id,
					  .plan = start->plan,
					  .inputs = start->inputs,
					  .on_event = run_show_event };
	int ended;

	if (driver_begin(start->journal, &options, err) < 0)
		return -1;
	/* Repeated for a run that has ended, the command returns its exit code. */
	ended = run_show_outcome(start->journal, start->id, err);
	if (ended == EXIT_DETACHED)
		return foreground_detach(start->journal, start->id, start->args->value[OPT_UNTIL],
					 err);
	return ended < 0 || run_show_journal(start->journal, start->id, err) < 0 ? -1 : ended;
}

static int make_plan(struct run_start *start, struct err **err)
{
	const json_t *given = start->how->plan;

	if (!given)
		return spec_args_plan(start->args, start->journal, &start->spec, &start->plan, err);
	/* The run adds to its plan what it finds out. */
	start->plan = plan_of_json(json_deep_copy(given));
	return 0;
}

static int carry_out(struct run_start *start, struct err **err)
{
	const struct args *args = start->args;
	int code;

	if (start->may_exist && refuse_sweep(start->journal, start->id, err) < 0)
		return -1;
	code = make_plan(start, err);
	if (code != 0)
		return code;
	if (start->how->retrain && refuse_no_gate(start->plan->json, err) < 0)
		return -1;
	if (start->spec)
		machine_here_warn(start->plan->json);
	if (start->spec && spec_is_set(start->spec, SPEC_SWEEP))
		out_note("the spec runs as it is; 'stoker sweep' runs the cells of its section "
			 "'sweep'");
	if (find_inputs(start, err) < 0)
		return -1;
	if (start->nothing_new)
		return EXIT_DONE;
	return args->given[OPT_DETACH] ? run_detached(start, err)
				       : foreground_run(args, start->journal, start->id,
							start->plan, start->inputs, err);
}

/* --- a service that ends the command before or after the run is driven --- */

static void on_early_end(int signo)
{
	(void)signo;
	_exit(EXIT_DETACHED); /* what is half done is so after SIGKILL, too */
}

/* While the run is driven, the loop has SIGTERM. Before that the data may be listed for minutes,
 * and afterwards the summary is printed: a step of a pipeline that its service ends then is
 * repeated like any other (8), and the same command goes on. On a terminal the signal ends the
 * process. */
static void expect_early_end(void)
{
	struct sigaction now, early = { .sa_handler = on_early_end };

	if (!isatty(STDERR_FILENO) && sigaction(SIGTERM, NULL, &now) == 0 &&
	    !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
		sigaction(SIGTERM, &early, NULL);
}

int start_run(const struct args *args, const struct start_how *how, bool *ret_nothing_new,
	      struct err **err)
{
	AUTO(start_release) struct run_start start = { .args = args, .how = how };
	enum journal_mode mode;
	int code;

	expect_early_end();
	if (choose_id(&start, err) < 0)
		return -1;
	mode = start.may_exist || !how->retrain ? JOURNAL_WRITE : JOURNAL_LATER;
	code = journal_open(args->value[OPT_STATE], mode, &start.journal, err) < 0
		       ? -1
		       : carry_out(&start, err);
	if (ret_nothing_new)
		*ret_nothing_new = start.nothing_new;
	return outcome_write(args, start.journal, start.id,
			     start.nothing_new ? "nothing_new" : NULL, code, err);
}
