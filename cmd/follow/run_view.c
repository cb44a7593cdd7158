/* Opening and folding the journal of a run: see run_view.h. */
#include "cmd/follow/run_view.h"

#include <string.h>

#include "cmd/view/mode_comparison_view.h"
#include "jobs/base/text/text.h"

#define LEASE_LEAST_MS 300

static int add_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	if (ev)
		status_add(arg, ev);
	return 0;
}

static int fold(struct journal *journal, const char *run, bool with_attempts, bool undriven,
		json_t **ret, struct err **err)
{
	AUTO(status_freep) struct status *status = status_new(run);

	if (journal_read(journal, run, 1, add_event, status, err) < 0)
		return -1;
	if (undriven)
		status_undriven(status);
	*ret = status_json(status, clock_utc_now(), with_attempts);
	return 0;
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

int cmd_run_view(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
		 struct err **err)
{
	json_auto_t *status = NULL;

	if (fold(journal, run, with_attempts, false, &status, err) < 0)
		return -1;
	if (seems_driven(status) && nobody_drives(journal, run)) {
		/* The run may have ended since it was read. */
		json_decref(TAKE(status));
		if (fold(journal, run, with_attempts, true, &status, err) < 0)
			return -1;
	}
	*ret = TAKE(status);
	return 0;
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

int cmd_run_open(const struct args *args, enum journal_mode mode, struct journal **ret,
		 char run[JOURNAL_RUN_MAX], struct err **err)
{
	if (journal_open(args->value[OPT_STATE], mode, ret, err) < 0)
		return -1;
	return journal_resolve(*ret, args->operands[0], run, err);
}

int cmd_run_exit_code(struct journal *journal, const char *run, struct err **err)
{
	json_auto_t *status = NULL;

	if (fold(journal, run, false, false, &status, err) < 0)
		return -1;
	return (int)js_int(status, "exit_code", EXIT_DETACHED);
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
