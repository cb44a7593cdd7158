/* diff: what differs between two runs or specs. */
#include <string.h>

#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/plan/plan_difference.h"

static int take_plan(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	json_t **ret = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_RUN_CREATED && !*ret)
		*ret = json_incref(ev->plan);
	return *ret != NULL;
}

/* True for an operand that can only be a file. */
static bool looks_like_a_file(const char *text)
{
	return strcmp(text, "-") == 0 || strchr(text, '/') || strchr(text, '.');
}

static int plan_of_run(const struct args *args, const char *ref, json_t **ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	char run[JOURNAL_RUN_MAX];

	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    journal_resolve(journal, ref, run, err) < 0 ||
	    journal_read(journal, run, 1, take_plan, ret, err) < 0)
		return -1;
	return *ret ? 0 : err_set(err, EXIT_REFUSED, "run %s has no plan", run);
}

/* Returns 0, an exit code with the problems printed, or -1. */
static int plan_of_spec(const struct args *args, const char *path, json_t **ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	int code;

	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	code = spec_args_plan_of(args, path, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	image_plan_try(plan->json);
	*ret = json_incref(plan->json);
	return 0;
}

static void print_difference(const json_t *row)
{
	AUTO(auto_free) char *old = js_line(json_object_get(row, "old"));
	AUTO(auto_free) char *new = js_line(json_object_get(row, "new"));

	if (out_is_json())
		out_json(row);
	out_line("%s: %s -> %s", js_str(row, "field"), old, new);
}

/* Finds the plan of an operand. Returns 0, an exit code with the problems printed, or -1. */
static int find_plan(const struct args *args, const char *text, json_t **ret, struct err **err)
{
	return looks_like_a_file(text) ? plan_of_spec(args, text, ret, err)
				       : plan_of_run(args, text, ret, err);
}

int cmd_diff(const struct args *args, struct err **err)
{
	json_auto_t *old = NULL, *new = NULL, *rows = NULL;
	const json_t *row;
	size_t i;
	int code;

	if ((args->sets[0] || args->uses[0]) && !looks_like_a_file(args->operands[0]) &&
	    !looks_like_a_file(args->operands[1])) {
		err_set(err, EXIT_USAGE,
			"--set, --engine and --use change a spec, and '%s' and '%s' are runs",
			args->operands[0], args->operands[1]);
		return err_hint(err, "write a spec with a dot or a slash, such as ./stoker.yaml");
	}
	code = find_plan(args, args->operands[0], &old, err);
	if (code == 0)
		code = find_plan(args, args->operands[1], &new, err);
	if (code != 0)
		return code;
	rows = plan_difference(old, new);
	json_array_foreach (rows, i, row)
		print_difference(row);
	return i > 0 ? EXIT_RUN_FAILED : EXIT_DONE;
}
