/* schedule add, ls, rm: alarms in other schedulers. */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/schedule/kind.h"
#include "cmd/schedule/schedule_times.h"
#include "cmd/screen/out.h"
#include "cmd/view/table.h"
#include "jobs/base/process/program.h"
#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"
#include "jobs/run/schedule/schedule_record.h"

/* ---- add ---- */

static const struct schedule_kind *find_kind(const struct args *args, struct err **err)
{
	const struct schedule_kind *kind = kind_find(args->value[OPT_TO]);

	if (!args->given[OPT_TO])
		err_set(err, EXIT_USAGE, "schedule add needs --to");
	else if (!kind)
		err_set(err, EXIT_USAGE, "--to: no scheduler is called '%s'", args->value[OPT_TO]);
	if (!kind) {
		err_hint(err, "choose one of " SCHEDULE_KINDS);
		return NULL;
	}
	if (!args->given[OPT_SYSTEM] || kind->has_system)
		return kind;
	err_set(err, EXIT_USAGE, "--system is for systemd, not for %s", kind->name);
	err_hint(err, "omit --system");
	return NULL;
}

/* Adds the options that lead to the same account. Another machine has no profiles of this one, and
 * a job on it is not told its region. */
static int add_account(const struct args *args, const struct schedule_kind *kind, char ***words,
		       size_t *count, struct err **err)
{
	const char *profile = kind->elsewhere ? NULL : args->value[OPT_PROFILE];
	const char *region = kind->elsewhere ? aws_region(err) : args->value[OPT_REGION];

	if (kind->elsewhere && !region)
		return -1;
	if (profile) {
		auto_strv_add(words, count, "--profile");
		auto_strv_add(words, count, profile);
	}
	if (region) {
		auto_strv_add(words, count, "--region");
		auto_strv_add(words, count, region);
	}
	return 0;
}

/* Returns the line that an alarm calls: this program, with the options that lead to the same
 * state and account. */
static char **alarm_command(const struct args *args, const struct schedule_kind *kind,
			    const char *state, const char *name, struct err **err)
{
	AUTO(auto_free) char *program = program_path();
	AUTO(auto_strv) char **words = NULL;
	size_t count = 0;

	if (!program || *program != '/') {
		err_set(err, EXIT_REFUSED, "it cannot be told where this program lies");
		err_hint(err, "start stoker by its path");
		return NULL;
	}
	auto_strv_add(&words, &count, program);
	auto_strv_add(&words, &count, "--state");
	auto_strv_add(&words, &count, state);
	if (add_account(args, kind, &words, &count, err) < 0)
		return NULL;
	auto_strv_add(&words, &count, "schedule");
	auto_strv_add(&words, &count, "run");
	auto_strv_add(&words, &count, name);
	return TAKE(words);
}

static int make_alarm(const struct args *args, const struct schedule_kind *kind, const char *state,
		      const struct spec *spec, json_t **ret, struct err **err)
{
	AUTO(schedule_times_release) struct schedule_times times = SCHEDULE_TIMES_INIT;
	AUTO(auto_strv) char **command = NULL;
	struct alarm_setting setting;

	if (schedule_times_of_spec(spec, args->operands[0], &times, err) < 0)
		return -1;
	command = alarm_command(args, kind, state, times.name, err);
	if (!command)
		return -1;
	setting = (struct alarm_setting){ .name = times.name,
					  .line = times.line,
					  .timezone = times.timezone,
					  .cron = times.cron,
					  .zone = &times.zone.zone,
					  .jitter_ms = spec_ms(spec, SPEC_SCHEDULE_JITTER),
					  .from = clock_utc_now().ms / 1000,
					  .command = command,
					  .path = getenv("PATH"),
					  .system = args->given[OPT_SYSTEM],
					  .driver = spec_get(spec, SPEC_DRIVER),
					  .state = state,
					  .workspace = spec_str(spec, SPEC_WORKSPACE) };
	return kind->make(&setting, ret, err);
}

/* An alarm has nothing of this shell's environment. */
static int refuse_own_secrets(const struct args *args, const struct spec *spec, struct err **err)
{
	const json_t *secrets = spec_get(spec, SPEC_SECRETS), *source;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)secrets, name, source)
		if (text_starts(json_string_value(source), "env:")) {
			err_set(err, EXIT_SPEC,
				"secret '%s' comes from this shell's environment, "
				"which an alarm has not",
				name);
			err_at(err, args->operands[0], 0, 0);
			err_field(err, "secrets");
			return err_hint(err, "name another source: file:PATH, ssm:NAME or "
					     "secretsmanager:NAME");
		}
	return 0;
}

static json_t *make_entry(const struct plan *plan, const char *url,
			  const struct schedule_kind *kind, json_t *alarm)
{
	json_t *entry = json_object();
	char now[UTC_TEXT];

	js_put(entry, "v", json_integer(1));
	js_put_str(entry, "name", js_str(plan->json, "name"));
	js_put_str(entry, "url", url);
	js_put_str(entry, "to", kind->name);
	js_put(entry, "alarm", json_incref(alarm));
	js_put_str(entry, "added", clock_utc_format(clock_utc_now(), now));
	return entry;
}

/* A name stands for one place: 'schedule run NAME' has one meaning. */
static int check_former(const json_t *former, const char *url, struct err **err)
{
	if (!former || js_is(former, "url", url))
		return 0;
	err_set(err, EXIT_REFUSED, "schedule '%s' is of another model, in '%s'",
		js_str(former, "name"), js_str(former, "url"));
	return err_hint(err, "'stoker schedule rm %s' first, or choose another name for the spec",
			js_str(former, "name"));
}

/* A damaged pin is written anew. */
static int read_former_pin(const char *url, json_t **ret, struct err **err)
{
	if (schedule_pin_read(url, ret, err) >= 0)
		return 0;
	if ((*err)->code != EXIT_REFUSED)
		return -1;
	err_freep(err);
	return 0;
}

static int remove_former(const json_t *former, const struct schedule_kind *kind, struct err **err)
{
	const struct schedule_kind *before = kind_find(js_str(former, "to"));

	return former && before && before != kind
		       ? before->remove(json_object_get(former, "alarm"), err)
		       : 0;
}

static int add(const struct args *args, const struct schedule_kind *kind, struct journal *journal,
	       const struct spec *spec, const struct plan *plan, struct err **err)
{
	const char *name = js_str(plan->json, "name");
	const char *url = js_str(json_object_get(plan->json, "promote"), "url");
	json_auto_t *alarm = NULL, *former = NULL, *entry = NULL, *pin = NULL, *pinned = NULL;

	if (!url) {
		err_set(err, EXIT_SPEC, "the spec has no section 'promote'");
		err_at(err, args->operands[0], 0, 0);
		return err_hint(err,
				"a turn promotes: write where to, for example promote: {url: "
				"s3://bucket/models/%s}",
				name);
	}
	if (refuse_own_secrets(args, spec, err) < 0 ||
	    schedule_entry_read(journal, name, &former, err) < 0 ||
	    check_former(former, url, err) < 0 || read_former_pin(url, &pinned, err) < 0 ||
	    make_alarm(args, kind, journal_url(journal), spec, &alarm, err) < 0)
		return -1;
	entry = make_entry(plan, url, kind, alarm);
	pin = schedule_pin_make(spec, plan, pinned);
	/* An alarm that rings finds its pin; what is half set is known to 'rm'. */
	if (plan_publish(plan, err) < 0 || schedule_pin_write(url, pin, err) < 0 ||
	    remove_former(former, kind, err) < 0 || schedule_entry_write(journal, entry, err) < 0 ||
	    kind->set(alarm, err) < 0)
		return -1;
	if (out_is_json())
		out_json(entry);
	else
		out_line("%s: added to %s", name, kind->name);
	return EXIT_DONE;
}

static void print_alarm(const struct schedule_kind *kind, json_t *alarm)
{
	json_auto_t *line = json_object();

	js_put_str(line, "to", kind->name);
	js_put(line, "alarm", json_incref(alarm));
	out_json(line);
}

int cmd_schedule_add(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	json_auto_t *alarm = NULL;
	const struct schedule_kind *kind = find_kind(args, err);
	bool print = args->given[OPT_PRINT];
	int code;

	if (!kind || journal_open(args->value[OPT_STATE], print ? JOURNAL_READ : JOURNAL_WRITE,
				  &journal, err) < 0)
		return -1;
	if (!print) {
		code = spec_args_plan(args, journal, &spec, &plan, err);
		return code != 0 ? code : add(args, kind, journal, spec, plan, err);
	}
	code = spec_from_args(args, args->operands[0], &spec, err);
	if (code != 0)
		return code;
	if (refuse_own_secrets(args, spec, err) < 0 ||
	    make_alarm(args, kind, journal_url(journal), spec, &alarm, err) < 0)
		return -1;
	if (out_is_json())
		print_alarm(kind, alarm);
	else
		kind->print(alarm);
	return EXIT_DONE;
}

/* ---- ls ---- */

/* Describes a schedule in a line of JSON, for `ls`. */
static int describe(const json_t *entry, struct utc now, json_t **ret, struct err **err)
{
	AUTO(schedule_times_release) struct schedule_times times = SCHEDULE_TIMES_INIT;
	const struct schedule_kind *kind = kind_find(js_str(entry, "to"));
	json_auto_t *pin = NULL;
	char utc[UTC_TEXT];
	struct due due;
	int set = kind ? kind->look(json_object_get(entry, "alarm"), err) : 0;

	if (set < 0 || schedule_pin_read(js_str(entry, "url"), &pin, err) < 0)
		return -1;
	*ret = json_object();
	js_put_str(*ret, "name", js_str(entry, "name"));
	js_put_str(*ret, "url", js_str(entry, "url"));
	js_put_str(*ret, "to", js_str(entry, "to"));
	js_put(*ret, "set", json_boolean(set > 0));
	js_put_str(*ret, "added", js_str(entry, "added"));
	if (!pin)
		return 0;
	js_put_str(*ret, "cron", js_str(pin, "cron"));
	js_put_str(*ret, "timezone", js_str(pin, "timezone"));
	if (schedule_times_of_pin(pin, &times, err) < 0)
		return -1;
	if (due_next(&times.cron, &times.zone.zone, now.ms / 1000, &due))
		js_put_str(*ret, "next", clock_utc_format((struct utc){ due.at * 1000 }, utc));
	return 0;
}

static void add_row(struct table *table, const json_t *line)
{
	char text[WHEN_TEXT];
	const char *cron = js_str(line, "cron"), *next = js_str(line, "next");
	bool set = js_bool(line, "set", false);

	table_add_row(table, set && cron ? MARK_GOOD : MARK_BAD);
	table_set(table, 0, mem_copy(js_str(line, "name")));
	table_set(table, 1, mem_format("%s%s", js_str(line, "to"), set ? "" : " (not set)"));
	table_set(table, 2, mem_copy(next ? when_text(next, out_width() > 0, text) : "-"));
	table_set(table, 3, mem_copy(cron ? cron : "not pinned any more"));
	table_set(table, 4, mem_copy(cron ? js_str(line, "timezone") : ""));
	table_set(table, 5, mem_copy(js_str(line, "url")));
}

int cmd_schedule_ls(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(table_release) struct table table = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *kept = NULL;
	json_auto_t *entries = json_array();
	struct utc now = clock_utc_now();
	static const char *const titles[] = { "NAME", "TO", "NEXT", "CRON", "ZONE", "MODEL" };
	json_t *entry;
	size_t i;

	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    schedule_entries(journal, entries, err) < 0)
		return -1;
	for (i = 0; i < STK_LENGTH(titles); i++)
		table_add_column(&table, titles[i], (int)i, 0);
	json_array_foreach (entries, i, entry) {
		AUTO(err_freep) struct err *why = NULL;
		json_auto_t *line = NULL;

		if (describe(entry, now, &line, &why) < 0) {
			out_error_later(&kept, &why);
			continue;
		}
		if (out_is_json())
			out_json(line);
		else
			add_row(&table, line);
	}
	if (table.count > 0) {
		table_print(&table, out_width(), SIZE_MAX, out_style(), &text);
		out_finished(text.text);
	}
	if (json_array_size(entries) == 0)
		out_note("no schedules in %s", journal_url(journal));
	*err = TAKE(kept);
	return *err ? -1 : EXIT_DONE;
}

/* ---- rm ---- */

int cmd_schedule_rm(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const char *name = args->operands[0];
	json_auto_t *entry = NULL;
	const struct schedule_kind *kind;
	int found;

	if (journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	found = schedule_entry_read(journal, name, &entry, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		err_set(err, EXIT_NOT_FOUND, "no schedule '%s' in %s", name, journal_url(journal));
		return err_hint(err, "'stoker schedule ls' lists them");
	}
	kind = kind_find(js_str(entry, "to"));
	if (!kind) {
		err_set(err, EXIT_REFUSED,
			"schedule '%s' is in a scheduler that this version does "
			"not know: '%s'",
			name, js_str(entry, "to"));
		return err_hint(err, "use the version of stoker that added it");
	}
	if (kind->remove(json_object_get(entry, "alarm"), err) < 0 ||
	    schedule_pin_remove(js_str(entry, "url"), err) < 0 ||
	    schedule_entry_remove(journal, name, err) < 0)
		return -1;
	if (out_is_json())
		out_json(entry);
	else
		out_line("%s: removed from %s", name, kind->name);
	return EXIT_DONE;
}
