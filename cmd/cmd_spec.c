/* init, validate, schema: work on the spec before a run. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/program.h"
#include "jobs/base/text/text.h"
#include "jobs/report/printed/printed.h"
#include "jobs/spec/fields/field.h"
#include "jobs/spec/template.h"

/* The steps of docs/porting.md, in their order. A starter spec names its own: "# Step: NAME". */
static const char *const port_steps[] = { "does it fit", "make it run", "make it fast",
					  "make it converge", "keep it up to date" };

static bool template_is_of(const struct embedded_file *file, const char *step)
{
	static const char mark[] = "\n# Step: ";
	const char *at = strstr(file->text, mark);
	size_t len = strlen(step);

	at = at ? at + strlen(mark) : "";
	return strncmp(at, step, len) == 0 && at[len] == '\n';
}

static void list_template(const struct embedded_file *file, const char *step)
{
	if (out_is_json()) {
		json_auto_t *object = json_pack("{s:s, s:s, s:s}", "template", file->name,
						"summary", file->summary, "step", step);

		out_json(object);
	}
	out_line("  %-16s %s", file->name, file->summary);
}

static int list_templates(void)
{
	for (size_t step = 0; step < STK_LENGTH(port_steps); step++) {
		out_line("%s", port_steps[step]);
		for (size_t i = 0; i < template_file_count; i++)
			if (template_is_of(&template_files[i], port_steps[step]))
				list_template(&template_files[i], port_steps[step]);
	}
	return EXIT_DONE;
}

static const struct embedded_file *find_template(const char *name, struct err **err)
{
	const char *suggestion = NULL;

	for (size_t i = 0; i < template_file_count; i++) {
		if (strcmp(template_files[i].name, name) == 0)
			return &template_files[i];
		if (text_distance(name, template_files[i].name, 3) <= 3)
			suggestion = template_files[i].name;
	}
	err_set(err, EXIT_USAGE, "no starter spec '%s'", name);
	if (suggestion)
		err_hint(err, "did you mean '%s'?", suggestion);
	else
		err_hint(err, "'stoker init --list' shows the starter specs");
	return NULL;
}

/* The text of a starter spec. Its line for editors names the schema of this stoker, wherever that
 * is installed. The caller frees it. */
static char *template_text(const struct embedded_file *file)
{
	static const char mark[] = "$schema=";
	AUTO(auto_free) char *found = program_file("stoker.schema.json");
	AUTO(auto_free) char *schema = found ? realpath(found, NULL) : NULL;
	const char *at = strstr(file->text, mark);

	if (!schema || !at || strpbrk(schema, " \t\r\n"))
		return mem_copy(file->text);
	at += strlen(mark);
	return mem_format("%.*s%s%s", (int)(at - file->text), file->text, schema,
			  at + strcspn(at, "\n"));
}

int cmd_init(const struct args *args, struct err **err)
{
	const char *path = args->operand_count ? args->operands[0] : "stoker.yaml";
	const struct embedded_file *file;
	AUTO(auto_free) char *text = NULL;
	AUTO(auto_close) int fd = -1;

	if (args->given[OPT_LIST])
		return list_templates();
	file = find_template(args->given[OPT_TEMPLATE] ? args->value[OPT_TEMPLATE] : "quickstart",
			     err);
	if (!file)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST) {
		err_set(err, EXIT_REFUSED, "'%s' already exists", path);
		return err_hint(err, "name another file, or remove it first");
	}
	if (fd < 0) {
		fs_error(err, errno, "cannot create '%s'", path);
		return (*err)->hint ? -1 : err_hint(err, "name a file in an existing folder");
	}
	text = template_text(file);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0) {
		fs_error(err, errno, "cannot write '%s'", path);
		unlink(path);
		return -1;
	}
	if (out_is_json()) {
		json_auto_t *object = json_pack("{s:s, s:s}", "file", path, "template", file->name);

		out_json(object);
	}
	out_note("wrote %s from the starter spec '%s'; next: stoker validate %s", path, file->name,
		 path);
	return EXIT_DONE;
}

static void add_word(struct sb *words, const char *word)
{
	sb_addf(words, "%s%s", words->len ? " " : "", word);
}

/* Adds the fields that are not there already. */
static void add_fields(struct sb *words, const json_t *fields)
{
	const json_t *field;
	size_t i;

	json_array_foreach (fields, i, field)
		if (!field_word_in(words->text, json_string_value(field)))
			add_word(words, json_string_value(field));
}

/* Says that a spec is valid, and with which of its profiles, if it is not in every way. */
static void tell_valid(const char *path, const json_t *ways)
{
	AUTO(sb_release) struct sb whole = SB_INIT;
	AUTO(sb_release) struct sb missing = SB_INIT;
	AUTO(auto_free) char *with = NULL;
	AUTO(auto_free) char *lacks = NULL;
	const json_t *way, *field;
	size_t i;

	json_array_foreach (ways, i, way) {
		const json_t *fields = json_object_get(way, "missing");

		if (i == 0)
			add_fields(&missing, fields);
		else if (json_array_size(fields) == 0)
			add_word(&whole, js_str(way, "use"));
	}
	with = field_words_list(whole.text, missing.len ? " or " : " and ");
	lacks = field_words_list(missing.text, " and ");
	json_array_foreach (json_object_get(json_array_get(ways, 0), "missing"), i, field)
		spec_args_incomplete(path, json_string_value(field), with);
	if (missing.len)
		out_line("%s is valid with --use %s; without a profile it lacks %s", path, with,
			 lacks);
	else if (whole.len)
		out_line("%s is valid, alone and with each of %s", path, with);
	else
		out_line("%s is valid", path);
}

int cmd_validate(const struct args *args, struct err **err)
{
	int code = EXIT_DONE;

	if (args->given[OPT_JSON] && args->given[OPT_FORMAT] &&
	    !args_is(args, OPT_FORMAT, "json")) {
		err_set(err, EXIT_USAGE, "--json and --format %s exclude each other",
			args->value[OPT_FORMAT]);
		return err_hint(err, "omit one of them");
	}
	for (int i = 0; i < args->operand_count; i++) {
		json_auto_t *ways = NULL;
		AUTO(err_freep) struct err *unreadable = NULL;
		int one = spec_args_check(args, args->operands[i], &ways, &unreadable);

		if (one < 0) {
			spec_args_unreadable(args, args->operands[i], unreadable);
			one = (int)unreadable->code;
		}
		if (one == 0)
			tell_valid(args->operands[i], ways);
		else
			code = one;
	}
	return code;
}

int cmd_schema(const struct args *args, struct err **err)
{
	const char *of = args->given[OPT_OF] ? args->value[OPT_OF] : PRINTED_SPEC;
	json_auto_t *schema = strcmp(of, PRINTED_SPEC) == 0 ? spec_schema() : printed_schema(of);

	if (!schema) {
		err_set(err, EXIT_USAGE, "no schema of '%s'", of);
		return err_hint(err, "choose one of " PRINTED_SPEC "|" PRINTED_NAMES);
	}
	out_json(schema);
	return EXIT_DONE;
}
