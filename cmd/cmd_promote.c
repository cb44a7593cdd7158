/* promote, rollback: which version of a model is in use. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/run_show.h"
#include "cmd/follow/run_view.h"
#include "cmd/lineage/model_of.h"
#include "cmd/screen/out.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/text.h"
#include "jobs/run/promotion.h"

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
	return !loop_stop_pending() && !cancel_is_due();
}

/* Prints what is current now. */
static void print_current(const struct model *model, const struct model_entry *entry, bool changed)
{
	json_auto_t *line = model_of_line(model, entry, true, false);

	js_put(line, "changed", json_boolean(changed));
	if (out_is_json())
		out_json(line);
	else if (!changed)
		out_line("run %s is current already, as generation %lld", js_str(line, "run"),
			 (long long)entry->generation);
	else
		out_line("run %s is current, as generation %lld", js_str(line, "run"),
			 (long long)entry->generation);
	if (!out_is_json()) {
		out_line("model: %s", js_str(json_object_get(line, "model"), "url"));
		out_line("digest: %s", entry->digest);
	}
}

/* ---- promote ---- */

/* Refuses a run whose own end speaks against its model. */
static int check_state(const struct args *args, const char *run, const json_t *status,
		       struct err **err)
{
	const char *state = js_str(status, "state");

	if (!js_str(status, "ended")) {
		err_set(err, EXIT_REFUSED, "run %s has not ended", run);
		return err_hint(err, "wait for its end, or end it: 'stoker stop %s'", run);
	}
	if (strcmp(state, "succeeded") == 0 || args->given[OPT_FORCE])
		return 0;
	err_set(err, strcmp(state, "refused") == 0 ? EXIT_GATE : EXIT_REFUSED,
		"run %s has %s: its model is not promoted without --force", run,
		strcmp(state, "stopped") == 0   ? "been stopped"
		: strcmp(state, "refused") == 0 ? "been refused"
						: "failed");
	return err_hint(err, "'stoker promote %s --force --reason TEXT' promotes it all the same",
			run);
}

static int check_reason(const struct args *args, bool needed, const char *option, struct err **err)
{
	const char *reason = args->value[OPT_REASON];

	if (!needed || (reason && reason[strspn(reason, " \t")]))
		return 0;
	err_set(err, EXIT_USAGE, "%s needs a reason", option);
	return err_hint(err, "add --reason TEXT: it stays in the lineage");
}

static int overtaken(const char *run, bool forced, const struct promotion_result *result,
		     struct err **err)
{
	err_set(err, EXIT_GATE, "run %s is not promoted: %s", run, result->reason);
	return err_hint(err, "'stoker lineage %s' shows what is current; %s promotes over it", run,
			forced ? "the same command" : "--force");
}

static int carry_out(struct journal *journal, const char *run, const struct promotion_how *how,
		     struct model *model, struct err **err)
{
	AUTO(promotion_intent_release) struct promotion_intent intent = { 0 };
	AUTO(promotion_result_release) struct promotion_result result = { 0 };
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	int intended = promotion_intend(journal, run, NULL, how, &intent, &result, err);

	if (intended < 0)
		return -1;
	if (intended > 0 && promotion_carry_out(journal, run, &intent, how, &result, err) < 0) {
		if (!(*err)->hint)
			err_hint(err, "run the same command again: it goes on, and promotes once");
		return -1;
	}
	if (result.fate == PROMOTION_OVERTAKEN)
		return overtaken(run, how->forced, &result, err);
	if (model_entry_read(model, result.generation, &entry, err) < 0)
		return -1;
	print_current(model, &entry, true);
	return EXIT_DONE;
}

int cmd_promote(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(model_freep) struct model *model = NULL;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	json_auto_t *status = NULL;
	struct promotion_how how = { .forced = args->given[OPT_FORCE],
				     .reason = args->value[OPT_REASON],
				     .progress = on_progress };
	struct lease_rules rules;
	char run[JOURNAL_RUN_MAX], same[JOURNAL_RUN_MAX];

	if (check_reason(args, how.forced, "--force", err) < 0 ||
	    cmd_lease_rules(args, &rules, err) < 0 ||
	    cmd_run_open(args, JOURNAL_WRITE, &journal, run, err) < 0 ||
	    cmd_run_view(journal, run, false, &status, err) < 0 ||
	    cmd_run_check_begun(journal, run, status, err) < 0 ||
	    check_state(args, run, status, err) < 0 ||
	    model_of_find(args, run, &model, same, err) < 0 ||
	    lease_take(journal, run, &rules, run_show_wait, NULL, &lease, err) < 0)
		return -1;
	/* A repeated command finds what the first one has done. */
	if (model_head(model, true, &head, err) < 0)
		return -1;
	if (js_is(head.body, "run", run)) {
		print_current(model, &head, false);
		return EXIT_DONE;
	}
	return carry_out(journal, run, &how, model, err);
}

/* ---- rollback ---- */

/* Reads "[MODEL] [GENERATION]": one operand that is a number is a generation. */
static int read_operands(const struct args *args, const char **ret_model, int64_t *ret_generation,
			 struct err **err)
{
	const char *last = args->operand_count > 0 ? args->operands[args->operand_count - 1] : "";
	bool is_number = *last && last[strspn(last, "0123456789")] == '\0';

	*ret_model = "@last";
	if (args->operand_count == 2 || (args->operand_count == 1 && !is_number))
		*ret_model = args->operands[0];
	*ret_generation = is_number && strlen(last) < 18 ? strtoll(last, NULL, 10) : 0;
	if (args->operand_count == 0 || (args->operand_count == 1 && !is_number) ||
	    *ret_generation > 0)
		return 0;
	err_set(err, EXIT_USAGE, "'%s' is not a generation", last);
	return err_hint(err, "'stoker lineage' shows the generations: 1, 2, …");
}

int cmd_rollback(const struct args *args, struct err **err)
{
	AUTO(model_freep) struct model *model = NULL;
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	const char *named;
	char run[JOURNAL_RUN_MAX];
	int64_t generation;
	int fate;

	if (check_reason(args, true, "rollback", err) < 0 ||
	    read_operands(args, &named, &generation, err) < 0 ||
	    model_of_find(args, named, &model, run, err) < 0)
		return -1;
	fate = model_roll_back(model, generation, args->value[OPT_REASON], &entry, err);
	if (fate < 0) {
		if ((*err)->code == EXIT_UNREACHABLE)
			err_hint(err, "'stoker lineage' tells whether it was done: look before you "
				      "repeat it");
		return -1;
	}
	if (fate == MODEL_OVERTAKEN) {
		err_set(err, EXIT_GATE,
			"nothing is rolled back: run %s was promoted at the same moment, as "
			"generation %lld",
			js_str(entry.body, "run"), (long long)entry.generation);
		return err_hint(err, "look at 'stoker lineage', and repeat the command if it is "
				     "still right");
	}
	print_current(model, &entry, fate != MODEL_SAME);
	return EXIT_DONE;
}
