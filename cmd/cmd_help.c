/* help, version: output of the tables. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/help/manual.h"
#include "cmd/help/topics.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/field.h"

static void show(struct doc *doc)
{
	/* The block adds the last newline itself. */
	while (doc->text.len > 0 && doc->text.text[doc->text.len - 1] == '\n')
		doc->text.text[--doc->text.len] = '\0';
	out_block(doc->text.text);
}

/* Returns the topic that was probably meant, borrowed; NULL if none is near. */
static const char *nearest(const struct cmd *table, const char *topic)
{
	const char *best = NULL;
	size_t best_distance = 3;

	for (const struct cmd *cmd = table; cmd->name; cmd++) {
		size_t distance = text_distance(topic, cmd->name, 2);

		if (cmd_is_shown(cmd) && distance < best_distance && distance < strlen(cmd->name)) {
			best = cmd->name;
			best_distance = distance;
		}
	}
	for (const struct topic *row = topics; row->name; row++) {
		size_t distance = text_distance(topic, row->name, 2);

		if (distance < best_distance) {
			best = row->name;
			best_distance = distance;
		}
	}
	return best ? best : spec_field_nearest(topic);
}

static void command_json(const struct cmd *cmd)
{
	json_auto_t *object = json_pack("{s:s, s:s, s:s}", "command", cmd->name, "operands",
					cmd->operands, "summary", cmd->summary);
	json_t *options = json_array(), *exits = json_array();

	for (int id = 0; id < OPT_COUNT; id++)
		if (((OPTS_GLOBAL | cmd->options) >> id & 1) && args_opt_rows[id].help)
			json_array_append_new(options, json_string(args_opt_rows[id].name));
	for (const enum exit_code *code = cmd->exits; *code != EXIT_DONE; code++)
		json_array_append_new(exits, json_integer((int)*code));
	js_put(object, "options", options);
	js_put(object, "exit_codes", exits);
	out_json(object);
}

/* Prints the rows of a topic's table; without one, those of the commands. */
static void print_json(const struct cmd *table, const struct topic *topic)
{
	if (topic && topic->write_json) {
		topic->write_json();
		return;
	}
	for (const struct cmd *cmd = table; cmd->name; cmd++)
		if (cmd_is_shown(cmd))
			command_json(cmd);
}

static int help_on(const struct cmd *table, const char *name, struct err **err)
{
	AUTO(doc_release) struct doc doc = DOC_TERMINAL;
	const struct cmd *cmd = cmd_find(table, name);
	const struct topic *topic = topic_find(name);
	/* A field with the name of a command is available as spec.NAME. */
	const char *field = text_starts(name, "spec.") ? name + 5 : name;
	const char *suggestion;

	if (cmd && cmd_is_shown(cmd)) {
		manual_command(&doc, cmd);
		if (field_find(name) != FIELD_NONE) {
			AUTO(auto_free)
			char *more = mem_format("The spec has a field of this name: 'stoker help "
						"spec.%s'.",
						name);

			doc_paragraph(&doc, more);
		}
	} else if (cmd_in_family(table, name)) {
		manual_family(&doc, table, name);
	} else if (topic) {
		topic->write(&doc);
	} else if (!manual_field(&doc, field)) {
		suggestion = nearest(table, name);
		err_set(err, EXIT_USAGE, "no help on '%s'", name);
		if (suggestion)
			return err_hint(err, "did you mean '%s'?", suggestion);
		return err_hint(
			err,
			"'stoker help' lists the commands, 'stoker help topics' the other topics");
	}
	if (out_is_json())
		print_json(table, topic);
	else
		show(&doc);
	return EXIT_DONE;
}

int cmd_help(const struct args *args, struct err **err)
{
	AUTO(doc_release) struct doc doc = DOC_TERMINAL;
	AUTO(auto_free) char *both = NULL;

	if (args->given[OPT_HELP] && strcmp(args->cmd->name, "help") != 0)
		return help_on(args->table, args->cmd->name, err);
	if (args->operand_count == 0 && out_is_json()) {
		print_json(args->table, NULL);
		return EXIT_DONE;
	}
	if (args->operand_count == 0) {
		manual_overview(&doc, args->table);
		show(&doc);
		return EXIT_DONE;
	}
	if (args->operand_count == 1)
		return help_on(args->table, args->operands[0], err);
	both = mem_format("%s %s", args->operands[0], args->operands[1]);
	return help_on(args->table, both, err);
}

/* Converts "jansson=2.14 sqlite3=3.40.1 …" of the build to {"jansson":"2.14",…}. */
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
