/* Hints for words of other tools: see synonyms.h. */
#include "cmd/args/synonyms.h"

#include <string.h>

#include "jobs/base/sb.h"

struct synonym {
	const char *typed, *meant;
};

static const struct synonym synonyms[] = {
#define SYNONYM(typed, meant) { typed, meant },
#include "cmd/args/synonyms.def"
#undef SYNONYM
};

static const struct {
	const char *command, *option, *meant;
} option_synonyms[] = {
#define OPTION_SYNONYM(command, option, meant) { command, option, meant },
#include "cmd/args/synonyms.def"
#undef OPTION_SYNONYM
};

/* Returns the number of words of `typed` if the command line begins with them, else 0. */
static int words_matched(const char *typed, char *const *words, int count)
{
	int matched = 0;

	for (; typed[0] != '\0'; matched++) {
		size_t len = strcspn(typed, " ");

		if (matched == count || strlen(words[matched]) != len ||
		    memcmp(words[matched], typed, len) != 0)
			return 0;
		typed += len + strspn(typed + len, " ");
	}
	return matched;
}

/* True if a word can be typed into any shell as it is. */
static bool is_plain(const char *word)
{
	return word[0] != '\0' &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "._-/@=:,+%")] == '\0';
}

/* Returns the option of the command that a word is; NULL if it is none. */
static const struct opt_row *option_of(const struct cmd *cmd, const char *word)
{
	const char *name = word + strspn(word, "-");
	size_t len = strcspn(name, "=");

	for (int id = 0; id < OPT_COUNT; id++) {
		const struct opt_row *row = &args_opt_rows[id];

		if ((OPTS_GLOBAL | cmd->options) >> id & 1 && row->help &&
		    (word[1] == '-' ? strlen(row->name) == len && memcmp(row->name, name, len) == 0
				    : len == 1 && row->letter == name[0]))
			return row;
	}
	return NULL;
}

/* Adds the words that the command takes, as far as they are plain. */
static void add_words(struct sb *line, const struct cmd *cmd, char *const *words, int count)
{
	bool is_value = false;

	for (int i = 0, operands = 0; i < count && is_plain(words[i]); i++) {
		const struct opt_row *option =
			!is_value && words[i][0] == '-' ? option_of(cmd, words[i]) : NULL;

		if (!is_value && !option &&
		    (words[i][0] == '-' || (cmd->most >= 0 && operands++ >= cmd->most)))
			continue;
		is_value = option && option->kind != OPT_KIND_FLAG && !strchr(words[i], '=');
		sb_addf(line, " %s", words[i]);
	}
}

/* Finds the command that a meant line begins with, in one word or in two. */
static const struct cmd *command_of(const struct cmd *table, const char *meant)
{
	for (const struct cmd *cmd = table; cmd->name; cmd++) {
		size_t len = strlen(cmd->name);

		if (strncmp(meant, cmd->name, len) == 0 &&
		    (meant[len] == ' ' || meant[len] == '\0'))
			return cmd;
	}
	return NULL;
}

char *synonym_line(const struct cmd *table, char *const *words, int count, int least)
{
	const struct synonym *best = NULL;
	int matched = least - 1;
	const struct cmd *cmd;
	struct sb line = SB_INIT;

	for (size_t i = 0; i < STK_LENGTH(synonyms); i++) {
		int n = words_matched(synonyms[i].typed, words, count);

		if (n > matched) {
			best = &synonyms[i];
			matched = n;
		}
	}
	cmd = best ? command_of(table, best->meant) : NULL;
	if (!cmd)
		return NULL;
	sb_addf(&line, "stoker %s", best->meant);
	add_words(&line, cmd, words + matched, count - matched);
	return sb_take(&line);
}

/* Returns what takes the place of an option; NULL if nothing is known. */
static const char *option_meant(const struct cmd *cmd, const char *option, size_t len)
{
	for (size_t i = 0; i < STK_LENGTH(option_synonyms); i++) {
		const char *command = option_synonyms[i].command;

		if (strlen(option_synonyms[i].option) == len &&
		    memcmp(option_synonyms[i].option, option, len) == 0 &&
		    (command[0] == '\0' || strcmp(cmd->name, command) == 0))
			return option_synonyms[i].meant;
	}
	return NULL;
}

char *synonym_option_line(const struct cmd *cmd, char *const *argv, int argc, int at)
{
	size_t len = strcspn(argv[at], "="), end;
	const char *meant = option_meant(cmd, argv[at], len);
	const char *value = argv[at][len] ? argv[at] + len + 1 : NULL;
	struct sb line = SB_INIT;
	bool joins, drops;

	if (!meant)
		return NULL;
	if (strncmp(meant, "help ", 5) == 0)
		return mem_format("stoker %s", meant);
	end = strlen(meant);
	drops = end > 0 && meant[end - 1] == '*';
	joins = end > 0 && strchr("=.", meant[end - 1]);
	sb_adds(&line, "stoker");
	for (int i = 1; i < argc; i++) {
		const char *word = i != at ? argv[i] : value;
		bool belongs = !value && i == at + 1; /* to the option */

		if (i == at && end > 0)
			sb_addf(&line, " %.*s", (int)(drops ? end - 2 : end), meant);
		if (!word || (drops && (belongs || i == at)))
			continue;
		if (!is_plain(word)) {
			sb_release(&line);
			return NULL;
		}
		sb_addf(&line, "%s%s", joins && (belongs || i == at) ? "" : " ", word);
	}
	return sb_take(&line);
}
