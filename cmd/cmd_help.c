/* help, version: what the tables say. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/out.h"
#include "jobs/base/exitcode.h"
#include "jobs/base/json.h"
#include "jobs/spec/spec.h"

static void print_options(uint64_t options)
{
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct opt_row *row = &opt_rows[id];
		AUTO(auto_free) char *name = NULL;

		if (!(options >> id & 1) || !row->help)
			continue;
		name = mem_format("--%s%s%s", row->name, row->argument ? " " : "",
				  row->argument ? row->argument : "");
		if (row->letter)
			out_line("  -%c, %-28s %s", row->letter, name, row->help);
		else
			out_line("      %-28s %s", name, row->help);
	}
}

static void print_row(const struct cmd *cmd)
{
	AUTO(auto_free) char *usage = mem_format("%s %s", cmd->name, cmd->operands);

	out_line("  %-24s %s", usage, cmd->summary);
}

static void print_overview(void)
{
	out_line("stoker carries a training job through precompile, proof of the cache and "
		 "training");
	out_line("usage: stoker [OPTIONS] COMMAND …");
	out_line("%s", "");
	for (const struct cmd *cmd = cmd_table; cmd->name; cmd++)
		print_row(cmd);
	out_line("%s", "");
	out_line("options of every command:");
	print_options(OPTS_GLOBAL);
	out_line("%s", "");
	out_line("exit codes:");
	for (size_t i = 0; i < exit_row_count; i++)
		out_line("  %3d  %s", (int)exit_rows[i].code, exit_rows[i].meaning);
	out_line("%s", "");
	out_line("'stoker help COMMAND' and 'stoker help FIELD' say more");
}

static void print_family(const char *word)
{
	out_line("stoker %s COMMAND …", word);
	for (const struct cmd *cmd = cmd_table; (cmd = cmd_in_family(cmd, word)); cmd++)
		print_row(cmd);
	out_line("%s", "");
	out_line("'stoker help %s COMMAND' says more", word);
}

static void print_command(const struct cmd *cmd)
{
	out_line("stoker %s%s%s", cmd->name, cmd->operands[0] ? " " : "", cmd->operands);
	out_line("%s", cmd->summary);
	if (cmd->detail) {
		out_line("%s", "");
		out_block(cmd->detail);
	}
	if (cmd->options) {
		out_line("%s", "");
		out_line("options:");
		print_options(cmd->options);
	}
	out_line("%s", "");
	out_line("options of every command:");
	print_options(OPTS_GLOBAL);
}

static int help_on(const char *topic, struct err **err)
{
	const struct cmd *cmd = cmd_find(topic);
	AUTO(auto_free) char *field = cmd ? NULL : spec_field_help(topic);
	const char *near;

	if (cmd) {
		print_command(cmd);
		return EXIT_DONE;
	}
	if (cmd_in_family(cmd_table, topic)) {
		print_family(topic);
		return EXIT_DONE;
	}
	if (field) {
		out_block(field);
		return EXIT_DONE;
	}
	near = spec_field_nearest(topic);
	err_set(err, EXIT_USAGE, "no help on '%s'", topic);
	if (near)
		return err_hint(err, "did you mean '%s'?", near);
	return err_hint(err, "'stoker help' lists the commands; fields are named like "
			     "resources.nodes");
}

static void print_json(void)
{
	for (const struct cmd *cmd = cmd_table; cmd->name; cmd++) {
		json_auto_t *object = json_pack("{s:s, s:s, s:s}", "command", cmd->name, "operands",
						cmd->operands, "summary", cmd->summary);

		out_json(object);
	}
}

int cmd_help(const struct args *args, struct err **err)
{
	if (out_is_json()) {
		print_json();
		return EXIT_DONE;
	}
	if (args->given[OPT_HELP] && strcmp(args->cmd->name, "help") != 0) {
		print_command(args->cmd);
		return EXIT_DONE;
	}
	if (args->operand_count == 0) {
		print_overview();
		return EXIT_DONE;
	}
	if (args->operand_count == 2) {
		AUTO(auto_free)
		char *both = mem_format("%s %s", args->operands[0], args->operands[1]);

		return help_on(both, err);
	}
	return help_on(args->operands[0], err);
}

/* "jansson=2.14 sqlite3=3.40.1 …" from the build → {"jansson":"2.14",…}. */
static json_t *versions_json(void)
{
	const char *at = STOKER_LIBRARIES;
	json_t *versions = json_object();

	js_put_str(versions, "stoker", STOKER_VERSION);
	while (*at) {
		size_t name = strcspn(at, "="), all = strcspn(at, " ");

		json_object_setn_new(versions, at, name,
				     json_stringn(at + name + 1, all - name - 1));
		at += all + (at[all] == ' ');
	}
	return versions;
}

int cmd_version(const struct args *args, struct err **err)
{
	json_auto_t *versions = versions_json();
	const char *name;
	json_t *version;

	(void)args;
	(void)err;
	if (out_is_json())
		out_json(versions);
	json_object_foreach (versions, name, version)
		out_line("%s %s", name, json_string_value(version));
	return EXIT_DONE;
}
