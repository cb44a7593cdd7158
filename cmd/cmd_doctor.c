/* doctor: checks of this machine, the credentials and what a spec names, each with its cure. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"
#include "aws/http/patience.h"
#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "jobs/base/process/cancel.h"
#include "jobs/run/doctor/doctor.h"
#include "jobs/run/doctor/doctor_inside.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/rights/rights.h"

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

/* --- a job that looks around --- */

static int check_inside(const struct args *args, struct err **err)
{
	if (!args->given[OPT_INSIDE])
		return 0;
	if (args->operand_count == 0) {
		err_set(err, EXIT_USAGE, "--inside needs a spec: it starts a job of it");
		return err_hint(err, "stoker doctor stoker.yaml --inside");
	}
	if (args->given[OPT_YES] ||
	    (!out_is_json() && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
		return 0;
	err_set(err, EXIT_USAGE, "--inside starts a job, and nobody can be asked");
	return err_hint(err, "add --yes");
}

/* Tells what the job costs, and asks unless the answer is given. */
static bool may_begin(const struct args *args, const json_t *plan)
{
	const char *type = js_str(json_object_get(plan, "instance"), "type");
	double cost = doctor_inside_cost(plan);
	AUTO(auto_free)
	char *usd = cost < 0 ? mem_copy("for a price that is not known")
			     : mem_format("for %.2f USD at most", cost);
	char answer[16] = "";

	out_note("--inside starts a job of one node%s%s on engine %s, for %d minutes at most, %s",
		 type ? " of " : "", type ? type : "", js_str(plan, "engine"),
		 DOCTOR_INSIDE_MINUTES, usd);
	if (args->given[OPT_YES])
		return true;
	out_note("start it? [y/N]");
	return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void on_begin(const char *run)
{
	out_note("run %s looks around; 'stoker stop %s' ends it", run, run);
}

static void on_away(void *arg, const struct err *why)
{
	(void)arg;
	out_note("%s; trying again", why->message);
}

/* Adds the findings of the job. */
static int look_inside(const struct args *args, const json_t *plan, json_t *findings,
		       struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	struct lease_rules rules;
	struct doctor_inside inside = {
		.plan = plan, .rules = &rules, .on_begin = on_begin, .on_away = on_away
	};
	json_auto_t *found = NULL;

	if (!may_begin(args, plan))
		return 0;
	if (cmd_lease_rules(args, &rules, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	inside.journal = journal;
	found = doctor_inside_examine(&inside);
	json_array_extend(findings, found);
	return 0;
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

/* ---- policies ---- */

static int check_alone(const struct args *args, struct err **err)
{
	static const enum opt_id of_findings[] = { OPT_ONLY, OPT_STRICT, OPT_READ_ONLY, OPT_INSIDE,
						   OPT_YES };

	if (args->given[OPT_POLICY] && args->given[OPT_TRUST]) {
		err_set(err, EXIT_USAGE, "--policy and --trust print two things");
		return err_hint(err, "choose one of them");
	}
	for (size_t i = 0; i < STK_LENGTH(of_findings); i++)
		if (args->given[of_findings[i]]) {
			err_set(err, EXIT_USAGE, "--%s is about findings, and --%s makes none",
				args_opt_rows[of_findings[i]].name,
				args->given[OPT_POLICY] ? "policy" : "trust");
			return err_hint(err, "omit one of them");
		}
	if (args->operand_count > 0)
		return 0;
	err_set(err, EXIT_USAGE, "--%s needs a SPEC", args->given[OPT_POLICY] ? "policy" : "trust");
	return err_hint(err, "for example stoker doctor --policy submitter stoker.yaml");
}

/* Returns the account of the credentials, if the spec does not say it and ARNs hold it; NULL: it is
 * not known. The caller frees it. */
static char *account_for(const json_t *plan)
{
	AUTO(auto_free) char *said = rights_account(plan);
	AUTO(err_freep) struct err *unknown = NULL;
	char *account = NULL;

	if (said || !rights_need_account(plan))
		return NULL;
	patience_set(PATIENCE_BRIEF_MS);
	return sts_account(&account, &unknown) < 0 ? NULL : account;
}

static void print_document(const json_t *document)
{
	AUTO(auto_free) char *text = NULL, *lines = NULL;

	if (out_is_json()) {
		out_json(document);
		return;
	}
	text = json_dumps(document, JSON_INDENT(2));
	lines = mem_format("%s\n", text);
	out_block(lines);
}

static enum rights_role role_named(const char *name)
{
	enum rights_role role = 0;

	while (role < RIGHTS_ROLE_COUNT - 1 && strcmp(rights_role_names[role], name) != 0)
		role++;
	return role;
}

/* Trust policies are printed a line each; for people as one object. */
static void print_trust(const json_t *roles)
{
	const char *role;
	json_t *trust;

	if (!out_is_json()) {
		print_document(roles);
		return;
	}
	json_object_foreach ((json_t *)(uintptr_t)roles, role, trust) {
		json_auto_t *line = json_pack("{s:s, s:O}", "role", role, "trust", trust);

		out_json(line);
	}
}

/* The source is not looked at, as policies say nothing of it: whoever gives rights need not have
 * it. No service is asked for anything but the account. */
static int print_rights(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(err_freep) struct err *ignored = NULL, *no_region = NULL;
	AUTO(auto_free) char *account = NULL;
	struct rights_where where = { .calls = doctor_calls };
	json_auto_t *document = NULL;
	int code;

	if (check_alone(args, err) < 0)
		return -1;
	/* Profiles are read now: they are not once no service is to be asked. */
	(void)aws_region(&ignored);
	err_freep(&ignored);
	patience_set(0);
	if (journal_open_try(args->value[OPT_STATE], &journal, &ignored, err) < 0)
		return -1;
	code = spec_args_plan_bare(args, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	where.region = aws_region(&no_region);
	where.state = journal_is_remote(journal) ? journal_url(journal) : NULL;
	account = account_for(plan->json);
	where.account = account;
	if (args->given[OPT_TRUST]) {
		if (rights_trust(plan->json, &document, err) < 0)
			return -1;
		print_trust(document);
		return EXIT_DONE;
	}
	if (rights_policy(plan->json, role_named(args->value[OPT_POLICY]), &where, &document, err) <
	    0)
		return -1;
	print_document(document);
	return EXIT_DONE;
}

/* ---- the command ---- */

int cmd_doctor(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	AUTO(err_freep) struct err *unread = NULL, *no_region = NULL;
	AUTO(auto_free) char *version = versions();
	json_auto_t *findings = NULL;
	struct doctor_options options = { .versions = version };
	size_t counts[STK_LENGTH(states)] = { 0 };
	bool late_region;
	int code;

	if (args->given[OPT_POLICY] || args->given[OPT_TRUST])
		return print_rights(args, err);
	if (check_pattern(args->value[OPT_ONLY], err) < 0 || check_inside(args, err) < 0)
		return -1;
	cancel_after(STATE_MS);
	code = journal_open_try(args->value[OPT_STATE], &journal, &unread, err);
	cancel_after(0);
	if (code < 0)
		return -1;
	late_region = unread && !aws_region(&no_region);
	if (args->operand_count > 0)
		code = spec_args_plan(args, journal, &spec, &plan, err);
	if (code != 0)
		return code;
	options.plan = plan ? plan->json : NULL;
	options.state_dir = journal_dir(journal);
	options.state_why = late_region ? unread : NULL;
	options.state_url = journal_is_remote(journal) ? journal_url(journal) : NULL;
	options.read_only = args->given[OPT_READ_ONLY];
	options.only = args->value[OPT_ONLY];
	findings = doctor_examine(&options);
	if (args->given[OPT_INSIDE] && plan &&
	    (code = look_inside(args, plan->json, findings, err)) != 0)
		return code;
	print_all(findings, counts);
	if (counts[FAIL] > 0 || (args->given[OPT_STRICT] && counts[WARN] + counts[UNKNOWN] > 0))
		return EXIT_REFUSED;
	return EXIT_DONE;
}
