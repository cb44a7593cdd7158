/* rm, list --prune: forgetting finished runs. */
#include <stdlib.h>
#include <string.h>

#include "cmd/drive.h"
#include "cmd/out.h"
#include "cmd/run_view.h"
#include "jobs/base/text.h"
#include "jobs/run/forget.h"

/* Forget one run and say so: a line, or {"run","name","state","ended","removed"}. */
static int forget(struct journal *journal, const char *run, const struct lease_rules *rules,
		  struct err **err)
{
	static const char *const shown[] = { "name", "state", "ended" };
	json_auto_t *status = NULL, *line = json_object();

	if (run_view(journal, run, false, &status, err) < 0 ||
	    run_forget(journal, run, rules, drive_show_wait, NULL, err) < 0)
		return -1;
	js_put_str(line, "run", run);
	for (size_t i = 0; i < STK_LENGTH(shown); i++)
		js_put_str(line, shown[i], js_str(status, shown[i]));
	js_put(line, "removed", json_true());
	if (out_is_json())
		out_json(line);
	else if (js_str(line, "ended"))
		out_line("removed %s: %s, %s at %.19s", run, js_str(line, "name"),
			 js_str(line, "state"), js_str(line, "ended"));
	else
		out_line("removed what was left of %s", run);
	return 0;
}

/* The ids of all operands, each once. What a removal that was cut short has left
 * can only be named by its whole id. */
static int resolve_all(const struct args *args, json_t *ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;

	/* Nothing is made where there is no such run. */
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	for (int i = 0; i < args->operand_count; i++) {
		char run[JOURNAL_RUN_MAX];

		if (run_has_rests(journal, args->operands[i]))
			snprintf(run, sizeof run, "%s", args->operands[i]);
		else if (journal_resolve(journal, args->operands[i], run, err) < 0)
			return -1;
		json_object_set_new(ret, run, json_true());
	}
	return 0;
}

int cmd_rm(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_object();
	struct lease_rules rules;
	const char *run;
	const json_t *value;

	if (drive_lease_rules(args, &rules, err) < 0 || resolve_all(args, runs, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	json_object_foreach (runs, run, value)
		if (forget(journal, run, &rules, err) < 0)
			return -1;
	return EXIT_DONE;
}

/* --- list --prune --- */

struct old_runs {
	struct journal *journal;
	struct utc before;
	json_t *found;
};

static int note_old(void *arg, const char *run, struct err **err)
{
	struct old_runs *old = arg;
	json_auto_t *status = NULL;
	const char *ended;
	struct utc at;

	if (run_view(old->journal, run, false, &status, err) < 0)
		return -1;
	ended = js_str(status, "ended");
	if (ended && utc_parse(ended, &at) && at.ms <= old->before.ms)
		json_array_append_new(old->found, json_string(run));
	return 0;
}

static int find_old(const struct args *args, json_t *ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const char *text = args->value[OPT_PRUNE];
	struct old_runs old = { .found = ret };
	int64_t age;

	if (!text_duration(text, &age)) {
		err_set(err, EXIT_USAGE, "--prune needs an age, not '%s'", text);
		return err_hint(err, "write, for instance, --prune 30d");
	}
	old.before.ms = utc_now().ms - age;
	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	old.journal = journal;
	return journal_runs(journal, note_old, &old, err);
}

int cmd_prune(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_array();
	struct lease_rules rules;
	json_t *run;
	size_t i;
	int worst = EXIT_DONE;

	if (drive_lease_rules(args, &rules, err) < 0 || find_old(args, runs, err) < 0)
		return -1;
	if (json_array_size(runs) == 0) {
		out_note("no run ended longer than %s ago", args->value[OPT_PRUNE]);
		return EXIT_DONE;
	}
	if (journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	/* What keeps one does not keep the others. */
	json_array_foreach (runs, i, run) {
		AUTO(err_freep) struct err *why = NULL;

		if (forget(journal, json_string_value(run), &rules, &why) == 0)
			continue;
		out_error(why);
		worst = (int)why->code;
	}
	return worst;
}
