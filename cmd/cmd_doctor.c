/* doctor: checks of this machine, the credentials and what a spec names, each with its cure. */
#include <string.h>

#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "jobs/base/process/cancel.h"
#include "jobs/run/doctor/doctor.h"
#include "jobs/run/journal/journal.h"

/* A state that cannot be read within this time counts as empty: its bucket is checked like the
 * others. */
#define STATE_MS 3000

/* The states in the order in which they are summed up, the worst first. */
static const char *const states[] = { "fail", "warn", "unknown", "ok" };
enum { FAIL, WARN, UNKNOWN, OK };

static const char *const labels[] = { "fail    ", "warn    ", "unknown ", "ok      " };
static const enum status_icon icons[] = { MARK_BAD, MARK_WARN, MARK_NONE, MARK_GOOD };

static size_t state_of(const json_t *finding)
{
	for (size_t i = 0; i < STK_LENGTH(states); i++)
		if (js_is(finding, "state", states[i]))
			return i;
	return UNKNOWN;
}

static void print_finding(const json_t *finding)
{
	const char *on = js_str(finding, "on"), *cure = js_str(finding, "cure");
	size_t state = state_of(finding);

	if (out_is_json()) {
		out_json(finding);
		return;
	}
	out_marked(labels[state], icons[state], "%s%s%s: %s", js_str(finding, "check"),
		   on ? " of " : "", on ? on : "", js_str(finding, "seen"));
	if (cure && state != OK)
		out_line("          cure: %s", cure);
}

/* Prints all findings, and how many there are of each state, which go to `counts`. */
static void print_all(const json_t *findings, size_t counts[STK_LENGTH(states)])
{
	AUTO(sb_release) struct sb sum = SB_INIT;
	const json_t *finding;
	size_t i;

	json_array_foreach (findings, i, finding) {
		counts[state_of(finding)]++;
		print_finding(finding);
	}
	for (i = 0; i < STK_LENGTH(states); i++)
		sb_addf(&sum, "%s%zu %s", i > 0 ? ", " : "", counts[i], states[i]);
	out_line("%s", sum.text);
}

/* The caller frees it. */
static char *versions(void)
{
	return mem_format("stoker %s, with %.*s", STOKER_VERSION, (int)strlen(STOKER_LIBRARIES) - 1,
			  STOKER_LIBRARIES);
}

static int check_pattern(const char *only, struct err **err)
{
	if (!only || doctor_knows(only))
		return 0;
	err_set(err, EXIT_USAGE, "no check is like '%.80s'", only);
	return err_hint(err, "'stoker doctor' names all of them before the colons; 'bucket.*' are "
			     "those of one kind");
}

int cmd_doctor(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(err_freep) struct err *unread = NULL;
	AUTO(auto_free) char *version = versions();
	json_auto_t *findings = NULL;
	struct doctor_options options = { .versions = version };
	size_t counts[STK_LENGTH(states)] = { 0 };
	int code;

	if (check_pattern(args->value[OPT_ONLY], err) < 0)
		return -1;
	cancel_after(STATE_MS);
	code = journal_open_try(args->value[OPT_STATE], &journal, &unread, err);
	cancel_after(0);
	if (code < 0)
		return -1;
	if (args->operand_count > 0)
		code = spec_args_plan(args, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	options.plan = plan ? plan->json : NULL;
	options.state_dir = journal_dir(journal);
	options.state_url = journal_is_remote(journal) ? journal_url(journal) : NULL;
	options.read_only = args->given[OPT_READ_ONLY];
	options.only = args->value[OPT_ONLY];
	findings = doctor_examine(&options);
	print_all(findings, counts);
	if (counts[FAIL] > 0 || (args->given[OPT_STRICT] && counts[WARN] + counts[UNKNOWN] > 0))
		return EXIT_REFUSED;
	return EXIT_DONE;
}
