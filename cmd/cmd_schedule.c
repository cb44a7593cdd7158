/* schedule next: the due times of a schedule. */
#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/follow/run_view.h"
#include "cmd/schedule/open_turn.h"
#include "cmd/schedule/schedule_times.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"

#define DUE_DEFAULT 10

/* ---- the last turn ---- */

static const char *state_word(enum turn_run state)
{
	static const char *const words[] = { [TURN_RUN_ABSENT] = "not begun",
					     [TURN_RUN_ENDED] = "ended",
					     [TURN_RUN_PAUSED] = "paused",
					     [TURN_RUN_DRIVEN] = "running",
					     [TURN_RUN_ALONE] = "without a driver" };

	return words[state];
}

static void print_last(const json_t *record, enum turn_run state, int64_t code)
{
	json_auto_t *line = json_object();
	static const char *const members[] = { "name", "at", "by", "outcome", "run", "reason" };
	const char *reason = js_str(record, "reason"), *run = js_str(record, "run");
	AUTO(auto_free) char *words = NULL;

	for (size_t i = 0; i < STK_LENGTH(members); i++)
		js_put_str(line, members[i], js_str(record, members[i]));
	if (run)
		js_put_str(line, "state", state_word(state));
	if (code >= 0)
		js_put(line, "exit_code", json_integer(code));
	if (out_is_json()) {
		out_json(line);
		return;
	}
	if (run && code >= 0)
		words = mem_format("run %s ended with exit code %lld", run, (long long)code);
	else if (run)
		words = mem_format("run %s, %s", run, state_word(state));
	else
		words = mem_format("%s%s%s",
				   js_is(record, "outcome", "nothing_new") ? "nothing new"
									   : "skipped",
				   reason ? ": " : "", reason ? reason : "");
	out_note("the last turn, of %.16sZ%s: %s", js_str(record, "at"),
		 js_is(record, "by", "hand") ? ", by hand" : "", words);
}

/* Prints what became of the last turn, if there was one. */
static int show_last(const struct args *args, const struct spec *spec, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(store_freep) struct store *place = NULL;
	AUTO(auto_free) char *workspace = NULL, *url = NULL;
	json_auto_t *record = NULL;
	enum turn_run state;
	int64_t code;
	int found;

	if (!spec_is_set(spec, SPEC_PROMOTE))
		return 0;
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	workspace = plan_workspace(spec, journal);
	url = plan_models(spec, workspace);
	if (store_open(url, &place, err) < 0)
		return -1;
	found = turn_before(place, NULL, &record, err);
	if (found <= 0)
		return found;
	if (open_turn_look(journal, record, &state, err) < 0)
		return -1;
	code = js_int(record, "exit_code", -1);
	if (code < 0 && state == TURN_RUN_ENDED)
		code = cmd_run_exit_code(journal, js_str(record, "run"), err);
	if (code < 0 && *err)
		return -1;
	print_last(record, state, code);
	return 0;
}

/* ---- due times ---- */

int cmd_schedule_next(const struct args *args, struct err **err)
{
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(schedule_times_release) struct schedule_times times = SCHEDULE_TIMES_INIT;
	AUTO(err_freep) struct err *unknown = NULL;
	struct utc at;
	int64_t count;
	int code;

	if (args_moment(args, OPT_AT, clock_utc_now(), &at, err) < 0 ||
	    args_number(args, OPT_NUMBER, DUE_DEFAULT, &count, err) < 0)
		return -1;
	if (!args->given[OPT_AT])
		at = clock_utc_now();
	if (count == 0) {
		err_set(err, EXIT_USAGE, "--number 0 leaves no due time");
		return err_hint(err, "give the number of due times, or omit --number");
	}
	code = spec_args_load(args, &spec, err);
	if (code != 0)
		return code;
	if (schedule_times_of_spec(spec, args->operands[0], &times, err) < 0)
		return -1;
	schedule_times_print(&times, at, count);
	/* The next due time is known without the place of the models. */
	if (show_last(args, spec, &unknown) < 0)
		out_warning("the last turn is not known: %s", unknown->message);
	return EXIT_DONE;
}
