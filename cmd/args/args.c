/* Parser of the command line, by the tables of options and commands: see args.h. */
#include "cmd/args/args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/args/synonyms.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"

const struct opt_row args_opt_rows[OPT_COUNT] = {
#define OPTION(id, name, letter, kind, argument, help)                                             \
	[OPT_##id] = { name, letter, OPT_KIND_##kind, argument, help },
#include "cmd/args/options.def"
#undef OPTION
};

bool cmd_is_shown(const struct cmd *cmd)
{
	return cmd->summary != NULL;
}

const struct cmd *cmd_in_family(const struct cmd *from, const char *word)
{
	size_t len = strlen(word);

	for (; from->name; from++)
		if (strncmp(from->name, word, len) == 0 && from->name[len] == ' ')
			return from;
	return NULL;
}

const struct cmd *cmd_find(const struct cmd *table, const char *name)
{
	for (const struct cmd *cmd = table; cmd->name; cmd++)
		if (strcmp(cmd->name, name) == 0)
			return cmd;
	return NULL;
}

/* Returns the dash that the text begins with, if an editor or chat program substituted it for a
 * typed one; NULL otherwise. */
static const char *typographic_dash(const char *text)
{
	static const char *const dashes[] = { "\u2010", "\u2011", "\u2012", "\u2013",
					      "\u2014", "\u2015", "\u2212" };

	for (size_t i = 0; i < STK_LENGTH(dashes); i++)
		if (text_starts(text, dashes[i]))
			return dashes[i];
	return NULL;
}

/* Returns the nearest option that the command takes, OPT_COUNT if none is near. */
static enum opt_id nearest_option(const char *name, size_t len, opt_set allowed)
{
	AUTO(auto_free) char *written = mem_copy_n(name, len);
	enum opt_id best = OPT_COUNT;
	size_t best_distance = 3;

	for (int id = 0; id < OPT_COUNT; id++) {
		size_t distance = text_distance(written, args_opt_rows[id].name, 2);

		if ((allowed >> id & 1) && args_opt_rows[id].help && distance < best_distance) {
			best = (enum opt_id)id;
			best_distance = distance;
		}
	}
	return best;
}

enum opt_id args_option_find(const char *name, size_t len)
{
	for (int id = 0; id < OPT_COUNT; id++)
		if (strlen(args_opt_rows[id].name) == len &&
		    memcmp(args_opt_rows[id].name, name, len) == 0)
			return (enum opt_id)id;
	return OPT_COUNT;
}

/* A letter may stand for several options, of which a command takes one. */
static enum opt_id find_letter(char letter, opt_set allowed)
{
	enum opt_id found = OPT_COUNT;

	for (int id = OPT_COUNT - 1; id >= 0; id--)
		if (args_opt_rows[id].letter == letter && (found == OPT_COUNT || allowed >> id & 1))
			found = (enum opt_id)id;
	return found;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t len = strlen(value);

	for (const char *at = choices; len > 0 && at; at = strchr(at, '|')) {
		at += *at == '|';
		if (strncmp(at, value, len) == 0 && (at[len] == '|' || at[len] == '\0'))
			return true;
	}
	return false;
}

static void add_text(char ***texts, char *text)
{
	size_t count = 0;

	while ((*texts)[count])
		count++;
	*texts = mem_grow(*texts, count + 2, sizeof **texts);
	(*texts)[count] = text;
	(*texts)[count + 1] = NULL;
}

static int set_value(struct args *args, enum opt_id id, const char *value, struct err **err)
{
	const struct opt_row *row = &args_opt_rows[id];

	if (row->kind == OPT_KIND_CHOICE && !is_choice(row->argument, value)) {
		err_set(err, EXIT_USAGE, "--%s cannot be '%s'", row->name, value);
		return err_hint(err, "choose one of %s", row->argument);
	}
	/* An alias may already give a global option: for those the last one counts. */
	if (args->given[id] && row->kind != OPT_KIND_LIST && !(OPTS_GLOBAL >> id & 1) &&
	    strcmp(args->value[id], value) != 0) {
		err_set(err, EXIT_USAGE, "--%s is given twice: '%s' and '%s'", row->name,
			args->value[id], value);
		return err_hint(err, "give it once");
	}
	if (id == OPT_SET) {
		const char *equals = strchr(value, '=');

		if (!equals || equals == value) {
			err_set(err, EXIT_USAGE, "--set needs FIELD=VALUE, not '%s'", value);
			return err_hint(err, "write, for instance, --set resources.nodes=2");
		}
		add_text(&args->sets, mem_copy(value));
	} else if (id == OPT_ENGINE) {
		add_text(&args->sets, mem_format("engine=%s", value));
	} else if (id == OPT_USE) {
		add_text(&args->uses, mem_copy(value));
	}
	args->given[id] = true;
	args->value[id] = value;
	return 0;
}

static int unknown_option(const struct args *args, const char *word, size_t len, struct err **err)
{
	opt_set allowed = OPTS_GLOBAL | (args->cmd ? args->cmd->options : 0);
	enum opt_id suggestion =
		word[1] == '-' && len > 2 ? nearest_option(word + 2, len - 2, allowed) : OPT_COUNT;

	err_set(err, EXIT_USAGE, "unknown option '%.*s'%s%s", (int)len, word,
		args->cmd ? " of " : "", args->cmd ? args->cmd->name : "");
	if (suggestion != OPT_COUNT)
		return err_hint(err, "did you mean --%s?", args_opt_rows[suggestion].name);
	return err_hint(err, "'stoker help%s%s' shows the options", args->cmd ? " " : "",
			args->cmd ? args->cmd->name : "");
}

/* Parses one option word; `*ret_used` is 2 if the next word was its value. */
static int parse_option(struct args *args, const char *word, const char *next, int *ret_used,
			struct err **err)
{
	bool is_long = word[1] == '-';
	const char *equals = is_long ? strchr(word, '=') : NULL;
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	opt_set allowed = OPTS_GLOBAL | (args->cmd ? args->cmd->options : ~(opt_set)0);
	enum opt_id id = is_long ? args_option_find(word + 2, len - 2)
				 : (len == 2 ? find_letter(word[1], allowed) : OPT_COUNT);

	*ret_used = 1;
	if (id == OPT_COUNT || !(allowed >> id & 1))
		return unknown_option(args, word, len, err);
	if (args_opt_rows[id].kind == OPT_KIND_FLAG) {
		if (equals) {
			err_set(err, EXIT_USAGE, "--%s takes no value", args_opt_rows[id].name);
			return err_hint(err, "write --%s alone", args_opt_rows[id].name);
		}
		args->given[id] = true;
		return 0;
	}
	if (equals)
		return set_value(args, id, equals + 1, err);
	if (!next) {
		err_set(err, EXIT_USAGE, "--%s needs a value", args_opt_rows[id].name);
		return err_hint(err, "write --%s %s", args_opt_rows[id].name,
				args_opt_rows[id].argument);
	}
	*ret_used = 2;
	return set_value(args, id, next, err);
}

static int unknown_command(const struct cmd *table, char *const *words, int count, int least,
			   struct err **err)
{
	const char *word = words[0], *second = words[1];
	AUTO(auto_free) char *meant = synonym_line(table, words, count, least);
	const struct cmd *best = NULL;
	size_t best_distance = 3;

	if (meant) {
		err_set(err, EXIT_USAGE, "unknown command '%s%s%s'", word, least > 1 ? " " : "",
			least > 1 ? second : "");
		return err_hint(err, "did you mean '%s'?", meant);
	}

	for (const struct cmd *cmd = table; cmd->name; cmd++) {
		AUTO(auto_free)
		char *both = second ? mem_format("%s %s", word, second) : mem_copy(word);
		size_t one = text_distance(word, cmd->name, 2);
		size_t two = text_distance(both, cmd->name, 2);
		size_t distance = one < two ? one : two;

		/* A name that differs in every letter is not suggested. */
		if (cmd_is_shown(cmd) && distance < best_distance && distance < strlen(cmd->name)) {
			best = cmd;
			best_distance = distance;
		}
	}
	if (cmd_in_family(table, word)) {
		AUTO(sb_release) struct sb all = SB_INIT;

		for (const struct cmd *cmd = table; (cmd = cmd_in_family(cmd, word)); cmd++)
			sb_addf(&all, "%s%s", all.len ? ", " : "", cmd->name);
		if (second)
			err_set(err, EXIT_USAGE, "unknown command '%s %s'", word, second);
		else
			err_set(err, EXIT_USAGE, "%s does what?", word);
		return err_hint(err, "one of: %s", all.text);
	}
	err_set(err, EXIT_USAGE, "unknown command '%s'", word);
	if (best)
		return err_hint(err, "did you mean '%s'?", best->name);
	return err_hint(err, "'stoker help' lists the commands");
}

/* Finds the command at the start of the words; returns the number of its words, 0 if not found. */
static int find_command(const struct cmd *table, char **words, int count, const struct cmd **ret)
{
	if (count > 1) {
		AUTO(auto_free) char *two = mem_format("%s %s", words[0], words[1]);

		*ret = cmd_find(table, two);
		if (*ret)
			return 2;
	}
	*ret = cmd_find(table, words[0]);
	return *ret ? 1 : 0;
}

/* True for words that are one command elsewhere, as `run list` is, though the first is a command
 * here and the second would be a file. */
static bool is_foreign(const struct cmd *table, char *const *words, int count)
{
	AUTO(auto_free) char *meant = synonym_line(table, words, count, 2);

	return meant && access(words[1], F_OK) != 0;
}

/* True if help on a whole family is wanted: `cache --help`. */
static bool asks_for_help(const struct args *args, char **words)
{
	bool asked = args->given[OPT_HELP];

	for (; *words && strcmp(*words, "--") != 0 && !asked; words++)
		asked = strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0;
	return asked;
}

static int check_operands(const struct args *args, struct err **err)
{
	const struct cmd *cmd = args->cmd;

	if (args->given[OPT_HELP])
		return 0;
	if (args->operand_count < cmd->least)
		err_set(err, EXIT_USAGE, "%s needs %s", cmd->name, cmd->operands);
	else if (cmd->most >= 0 && args->operand_count > cmd->most)
		err_set(err, EXIT_USAGE, "%s does not take '%s'", cmd->name,
			args->operands[cmd->most]);
	else
		return 0;
	return err_hint(err, "usage: stoker %s%s%s", cmd->name, cmd->operands[0] ? " " : "",
			cmd->operands);
}

/* Names the line that was meant, if the option is one of another tool. */
static int hint_option(const struct args *args, char *const *argv, int argc, int at,
		       struct err **err)
{
	AUTO(auto_free)
	char *meant = args->cmd && text_starts((*err)->message, "unknown option")
			      ? synonym_option_line(args->cmd, argv, argc, at)
			      : NULL;

	return meant ? err_hint(err, "did you mean '%s'?", meant) : -1;
}

int args_parse(const struct cmd *table, int argc, char **argv, struct args *ret, struct err **err)
{
	AUTO(args_release)
	struct args args = { .table = table,
			     .before_dashes = -1,
			     .operands = mem_zero((size_t)argc + 1, sizeof(char *)),
			     .sets = mem_zero(1, sizeof(char *)),
			     .uses = mem_zero(1, sizeof(char *)) };
	bool options_end = false;

	for (int i = 1, used = 1; i < argc; i += used) {
		char *word = argv[i];
		const char *dash = typographic_dash(word);

		used = 1;
		if (!options_end && strcmp(word, "--") == 0) {
			options_end = true;
			args.before_dashes = args.operand_count;
		} else if (!options_end && word[0] == '-' && word[1] != '\0') {
			if (!args.cmd &&
			    (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0))
				args.cmd = cmd_find(table, "version");
			else if (parse_option(&args, word, argv[i + 1], &used, err) < 0)
				return hint_option(&args, argv, argc, i, err);
		} else if (!options_end && dash) {
			err_set(err, EXIT_USAGE,
				"'%s' begins with a typographic dash, not a hyphen", word);
			return err_hint(err, "type it with plain hyphens: --%s",
					word + strlen(dash));
		} else if (!args.cmd) {
			used = find_command(table, argv + i, argc - i, &args.cmd);
			if (used == 0 && cmd_in_family(table, word) &&
			    asks_for_help(&args, argv + i)) {
				args.cmd = cmd_find(table, "help");
				args.operands[args.operand_count++] = word;
				used = 1;
			}
			if (used == 0)
				return unknown_command(table, argv + i, argc - i, 1, err);
			if (used == 1 && is_foreign(table, argv + i, argc - i))
				return unknown_command(table, argv + i, argc - i, 2, err);
		} else {
			args.operands[args.operand_count++] = word;
		}
	}
	if (!args.cmd)
		args.cmd = cmd_find(table, "help");
	for (int id = 0; id < OPT_COUNT; id++)
		if (args.given[id] && !((OPTS_GLOBAL | args.cmd->options) >> id & 1)) {
			AUTO(auto_free) char *word = mem_format("--%s", args_opt_rows[id].name);

			return unknown_option(&args, word, strlen(word), err);
		}
	if (args.operand_count == 0 && args.cmd->fallback)
		args.operands[args.operand_count++] = args.cmd->fallback;
	if (check_operands(&args, err) < 0)
		return -1;
	*ret = args;
	args.operands = NULL;
	args.sets = NULL;
	args.uses = NULL;
	return 0;
}

void args_release(struct args *args)
{
	free(args->operands);
	auto_strv(&args->sets);
	auto_strv(&args->uses);
}

bool args_is(const struct args *args, enum opt_id id, const char *value)
{
	return args->given[id] && strcmp(args->value[id], value) == 0;
}

int args_number(const struct args *args, enum opt_id id, int64_t fallback, int64_t *ret,
		struct err **err)
{
	const char *text = args->value[id];
	char *end;

	*ret = fallback;
	if (!args->given[id])
		return 0;
	*ret = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || *ret > 1000000) {
		err_set(err, EXIT_USAGE, "--%s needs an integer, not '%s'", args_opt_rows[id].name,
			text);
		return err_hint(err, "write, for instance, --%s 1", args_opt_rows[id].name);
	}
	return 0;
}

int args_duration(const struct args *args, enum opt_id id, int64_t *ret_ms, struct err **err)
{
	*ret_ms = 0;
	if (!args->given[id] || (text_duration(args->value[id], ret_ms) && *ret_ms > 0))
		return 0;
	err_set(err, EXIT_USAGE, "--%s needs a duration, not '%s'", args_opt_rows[id].name,
		args->value[id]);
	return err_hint(err, "write, for instance, --%s 90s, or 12h", args_opt_rows[id].name);
}

int args_moment(const struct args *args, enum opt_id id, struct utc now, struct utc *ret,
		struct err **err)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
					     "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d" };
	const char *text = args->value[id], *end;
	int64_t age;
	int day;

	*ret = (struct utc){ 0 };
	if (!args->given[id])
		return 0;
	if (text_duration(text, &age)) {
		ret->ms = now.ms > age ? now.ms - age : 1;
		return 0;
	}
	if (clock_utc_parse(text, ret))
		return 0;
	for (size_t i = 0; i < STK_LENGTH(forms); i++) {
		struct tm parts = { .tm_isdst = -1 };

		end = strptime(text, forms[i], &parts);
		if (!end || (end[0] != '\0' && strcmp(end, "Z") != 0))
			continue;
		day = parts.tm_mday;
		ret->ms = (int64_t)(end[0] == 'Z' ? timegm(&parts) : mktime(&parts)) * 1000;
		if (ret->ms < 1)
			ret->ms = 1;
		if (parts.tm_mday == day) /* else the month is shorter */
			return 0;
	}
	err_set(err, EXIT_USAGE, "--%s needs an age or a moment, not '%s'", args_opt_rows[id].name,
		text);
	return err_hint(err, "write, for instance, --%s 10m, or --%s 2026-11-29T12:30",
			args_opt_rows[id].name, args_opt_rows[id].name);
}
