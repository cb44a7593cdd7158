/* Specs and plans from a command line: see spec_args.h. */
#include "cmd/args/spec_args.h"

#include <string.h>

#include "aws/credentials/settings.h"
#include "cmd/args/machine_here.h"
#include "cmd/screen/out.h"
#include "cmd/screen/quote.h"
#include "jobs/base/fs/fs.h"

/* Size limit of a spec; a larger file is refused before it gets here. */
#define QUOTE_MAX ((size_t)1 << 20)

/* The file that problems are in: mostly all of them in one. */
struct quoted_file {
	const char *name; /* borrowed; NULL before the first is read */
	struct sb text;
};

/* Reads the file of a problem, unless it was the last to be read. False if there is nothing to show
 * of it. */
static bool read_quoted(struct quoted_file *file, const struct problem *problem)
{
	AUTO(err_freep) struct err *unreadable = NULL;

	if (problem->line <= 0 || problem->secret ||
	    strcmp(problem->file, "-") == 0) /* stdin cannot be read twice */
		return false;
	if (!file->name || strcmp(file->name, problem->file) != 0) {
		sb_clear(&file->text);
		file->name = problem->file;
		if (fs_read(problem->file, QUOTE_MAX, &file->text, &unreadable) < 0)
			sb_clear(&file->text);
	}
	return quote_is_harmless(file->text.text, file->text.len, problem->line, problem->field);
}

/* Prints the line of the file and a caret. */
static void print_quote(const struct problem *problem, struct quoted_file *file)
{
	AUTO(sb_release) struct sb quote = SB_INIT;
	size_t columns, rows;

	if (!read_quoted(file, problem))
		return;
	out_size(&columns, &rows);
	if (quote_line(&quote, file->text.text, file->text.len, problem->line, problem->column,
		       columns, out_style_err()->utf8))
		out_quote(quote.text, problem->lint);
}

static void print_object(const struct problem *problem)
{
	json_auto_t *object = json_object();

	js_put_str(object, "file", problem->file);
	js_put(object, "line", json_integer(problem->line));
	js_put(object, "column", json_integer(problem->column));
	js_put_str(object, "field", problem->field);
	js_put_str(object, "message", problem->message);
	js_put_str(object, "hint", problem->hint);
	js_put_str(object, "profiles", problem->profiles);
	if (problem->lint)
		js_put(object, "lint", json_true());
	if (problem->remark)
		js_put(object, "remark", json_true());
	out_json(object);
}

/* Adds text to an annotation of GitHub Actions. '%' and line ends are written as it wants them, in
 * a property also what ends one: toolkit/packages/core/src/command.ts, escapeData, escapeProperty.
 */
static void annotate(struct sb *line, const char *text, const char *of_property)
{
	for (; *text; text++)
		if (strchr("%\r\n", *text) || strchr(of_property, *text))
			sb_addf(line, "%%%02X", (unsigned)(unsigned char)*text);
		else
			sb_addc(line, *text);
}

static void print_annotation(const struct problem *problem)
{
	AUTO(sb_release) struct sb line = SB_INIT;

	sb_adds(&line, problem->remark ? "::notice file="
		       : problem->lint ? "::warning file="
				       : "::error file=");
	annotate(&line, problem->file, ":,");
	if (problem->line > 0)
		sb_addf(&line, ",line=%d", problem->line);
	if (problem->line > 0 && problem->column > 0)
		sb_addf(&line, ",col=%d", problem->column);
	sb_adds(&line, ",title=");
	annotate(&line, problem->field ? problem->field : "stoker", ":,");
	sb_adds(&line, "::");
	annotate(&line, problem->message, "");
	if (problem->profiles) {
		annotate(&line, " with --use ", "");
		annotate(&line, problem->profiles, "");
	}
	if (problem->hint) {
		annotate(&line, "\n", "");
		annotate(&line, problem->hint, "");
	}
	out_text(line.text, line.len);
}

/* Prints it for a program, if one reads; returns false if not. */
static bool print_for_program(const struct args *args, const struct problem *problem)
{
	if (out_is_json())
		print_object(problem);
	else if (args_is(args, OPT_FORMAT, "github"))
		print_annotation(problem);
	else
		return false;
	return true;
}

static void print_problem(const struct args *args, const struct problem *problem,
			  struct quoted_file *file)
{
	AUTO(auto_free) char *line = NULL;

	if (print_for_program(args, problem))
		return;
	line = problem_format(problem);
	if (problem->lint)
		out_note("%s", line);
	else
		out_error_line(line);
	print_quote(problem, file);
	if (problem->hint && problem->lint)
		out_note("hint: %s", problem->hint);
	else if (problem->hint)
		out_hint("%s", problem->hint);
}

static void print_problems(const struct args *args, const struct problems *problems,
			   bool with_lints)
{
	struct quoted_file file = { NULL, SB_INIT_MAX(QUOTE_MAX) };

	for (size_t i = 0; i < problems->count; i++)
		if (with_lints || !problems->list[i].lint)
			print_problem(args, &problems->list[i], &file);
	sb_release(&file.text);
	if (problems->dropped)
		out_note("and %zu more", problems->dropped);
}

/* Refuses a profile of AWS that is not there, if the spec has one of that name. */
static int check_profile(const struct args *args, const struct spec *spec, struct err **err)
{
	const char *name = args->value[OPT_PROFILE];
	const json_t *profile;
	size_t i;

	json_array_foreach (spec_profiles(spec), i, profile)
		if (name && strcmp(json_string_value(profile), name) == 0 &&
		    !aws_profile_exists(name)) {
			err_set(err, EXIT_REFUSED, "AWS has no profile '%s'; the spec has one",
				name);
			return err_hint(err, "did you mean --use %s?", name);
		}
	return 0;
}

/* Warnings to print for a valid spec. */
enum telling { NO_WARNINGS, WARNINGS, WARNINGS_OF_ALL };

/* `asks`: this machine may be asked for its type, which the spec may leave to it. */
static int load(const struct args *args, const char *path, enum telling telling, bool asks,
		struct spec **ret, struct err **err)
{
	AUTO(problems_release) struct problems problems = { 0 };
	const struct spec_changes changes = { args->uses, args->sets };
	int result = spec_load(path, &changes, NULL, ret, &problems, err);

	if (result == 0 && asks)
		result = machine_here_find(ret, &problems, err);
	if (result < 0 && *err)
		return -1;
	if (result == 0 && telling == WARNINGS_OF_ALL)
		spec_not_yet_warn(*ret, &problems);
	print_problems(args, &problems, telling != NO_WARNINGS || result < 0);
	if (result == 0 && check_profile(args, *ret, err) < 0)
		return -1;
	if (result == 0)
		aws_settings_spec(spec_str(*ret, SPEC_AWS_REGION));
	return result < 0 ? (int)EXIT_SPEC : 0;
}

void spec_args_unreadable(const struct args *args, const char *path, const struct err *err)
{
	const struct problem problem = {
		.file = (char *)path,
		.message = err->message,
		.hint = err->hint,
	};

	if (!print_for_program(args, &problem))
		out_error(err);
}

int spec_from_args(const struct args *args, const char *path, struct spec **ret, struct err **err)
{
	return load(args, path, WARNINGS_OF_ALL, false, ret, err);
}

int spec_args_check(const struct args *args, const char *path, json_t **ret_ways, struct err **err)
{
	AUTO(problems_release) struct problems problems = { 0 };
	const struct spec_changes changes = { args->uses, args->sets };
	int result = spec_check(path, &changes, NULL, ret_ways, &problems, err);

	if (result < 0 && *err)
		return -1;
	print_problems(args, &problems, true);
	return result < 0 ? (int)EXIT_SPEC : 0;
}

void spec_args_incomplete(const char *path, const char *field, const char *profiles)
{
	AUTO(auto_free) char *message = mem_format("without a profile '%s' is missing", field);
	AUTO(auto_free) char *hint = mem_format("choose one: --use %s", profiles);
	const struct problem problem = {
		.file = (char *)path,
		.field = (char *)field,
		.message = message,
		.hint = hint,
		.lint = true,
		.remark = true,
	};

	if (out_is_json())
		print_object(&problem);
}

/* Ends a command whose spec has problems, which are printed. For programs an error follows them. */
static int end_with_problems(const char *path, enum exit_code code, const char *what,
			     struct err **err)
{
	if (!out_is_json())
		return (int)code;
	err_set(err, code, "%s", what);
	err_at(err, path, 0, 0);
	return err_hint(err, "each line before this one is a problem with its cure");
}

int spec_args_load(const struct args *args, struct spec **ret, struct err **err)
{
	const char *path = args->operands[0];
	int code = load(args, path, out_is_json() ? NO_WARNINGS : WARNINGS_OF_ALL, true, ret, err);

	return code > 0 ? end_with_problems(path, EXIT_SPEC, "the spec is invalid", err) : code;
}

/* Loads a spec of which a plan can be made. Returns 0, an exit code, or -1. */
static int load_ready(const struct args *args, const char *path, struct spec **ret,
		      struct err **err)
{
	AUTO(problems_release) struct problems not_yet = { 0 };
	/* With --json only validate and plan print warnings on stdout. */
	int code = load(args, path, out_is_json() ? NO_WARNINGS : WARNINGS, true, ret, err);

	if (code > 0)
		return end_with_problems(path, EXIT_SPEC, "the spec is invalid", err);
	if (code < 0)
		return -1;
	if (spec_not_yet(*ret, &not_yet) > 0) {
		print_problems(args, &not_yet, true);
		return end_with_problems(path, EXIT_REFUSED,
					 "this version lacks features that the spec needs", err);
	}
	return 0;
}

int spec_args_plan(const struct args *args, const struct journal *journal, struct spec **ret_spec,
		   struct plan **ret, struct err **err)
{
	return spec_args_plan_of(args, args->operands[0], journal, ret_spec, ret, err);
}

int spec_args_plan_of(const struct args *args, const char *path, const struct journal *journal,
		      struct spec **ret_spec, struct plan **ret, struct err **err)
{
	int code = load_ready(args, path, ret_spec, err);

	return code == 0 ? plan_make(*ret_spec, journal, ret, err) : code;
}

int spec_args_plan_bare(const struct args *args, const struct journal *journal,
			struct spec **ret_spec, struct plan **ret, struct err **err)
{
	int code = load_ready(args, args->operands[0], ret_spec, err);

	return code == 0 ? plan_make_bare(*ret_spec, journal, ret, err) : code;
}
