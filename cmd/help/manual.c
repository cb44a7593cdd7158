/* Help, from the tables: see manual.h. */
#include "cmd/help/manual.h"

#include <ctype.h>
#include <string.h>

#include "cmd/args/words.h"
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/spec/fields/field.h"

#define OPTION_COLUMN 32
#define CODE_COLUMN   7
#define FIELD_COLUMN  34

/* ---- commands ------------------------------------------------------------------- */

void manual_options(struct doc *doc, opt_set options)
{
	doc->column = OPTION_COLUMN;
	for (int id = 0; id < OPT_COUNT; id++) {
		const struct opt_row *row = &args_opt_rows[id];
		AUTO(auto_free) char *letter = NULL;
		AUTO(auto_free) char *term = NULL;

		if (!(options >> id & 1) || !row->help)
			continue;
		letter = row->letter ? mem_format("-%c, ", row->letter)
				     : mem_copy(doc->roff ? "" : "    ");
		term = mem_format("%s--%s%s%s", letter, row->name, row->argument ? " " : "",
				  row->argument ? row->argument : "");
		doc_item(doc, term, row->help);
	}
}

static char *usage_of(const struct cmd *cmd)
{
	return mem_format("%s%s%s", cmd->name, cmd->operands[0] ? " " : "", cmd->operands);
}

static void command_rows(struct doc *doc, const struct cmd *table, const char *family)
{
	doc->column = 26;
	for (const struct cmd *cmd = table; cmd->name; cmd++) {
		AUTO(auto_free) char *usage = usage_of(cmd);

		if (!cmd_is_shown(cmd) || (family && cmd_in_family(cmd, family) != cmd))
			continue;
		doc_item(doc, usage, cmd->summary);
	}
}

/* Adds the words of the command's usage line, each once. */
static void command_words(struct doc *doc, const struct cmd *cmd)
{
	AUTO(auto_free) bool *told = mem_zero(word_row_count, sizeof *told);
	const char *usage = cmd->operands;
	const struct word_row *word = word_next(&usage);

	if (word)
		doc_heading(doc, "arguments");
	doc->column = OPTION_COLUMN;
	for (; word; word = word_next(&usage)) {
		if (!told[word - word_rows])
			doc_item(doc, word->name, word->help);
		told[word - word_rows] = true;
	}
}

static void exit_item(struct doc *doc, enum exit_code code)
{
	AUTO(auto_free) char *term = mem_format(doc->roff ? "%d" : "%3d", (int)code);

	doc_item(doc, term, exitcode_row_find((int)code)->meaning);
}

static bool may_give(const struct cmd *cmd, enum exit_code code)
{
	static const enum exit_code always[] = EXITS_OF_EVERY_COMMAND;

	for (size_t i = 0; i < STK_LENGTH(always); i++)
		if (always[i] == code)
			return true;
	for (const enum exit_code *own = cmd->exits; *own != EXIT_DONE; own++)
		if (*own == code)
			return true;
	return false;
}

static void command_exits(struct doc *doc, const struct cmd *cmd)
{
	AUTO(sb_release) struct sb list = SB_INIT;

	doc->column = CODE_COLUMN;
	for (size_t i = 0; i < exitcode_row_count; i++) {
		if (!may_give(cmd, exitcode_rows[i].code))
			continue;
		/* The manual has all commands, and explains the codes once. */
		if (doc->roff)
			sb_addf(&list, "%s%d",
				list.len ? ", " : "Exit status: ", (int)exitcode_rows[i].code);
		else
			exit_item(doc, exitcode_rows[i].code);
	}
	if (doc->roff)
		doc_paragraph(doc, list.text);
}

static void command_body(struct doc *doc, const struct cmd *cmd)
{
	AUTO(auto_free) char *sentence = mem_format("%s.", cmd->summary);

	/* Summaries begin in lower case, for lists. */
	sentence[0] = (char)toupper((unsigned char)sentence[0]);
	doc_paragraph(doc, sentence);
	if (cmd->detail)
		doc_paragraph(doc, cmd->detail);
}

static void command_examples(struct doc *doc, const struct cmd *cmd)
{
	if (!cmd->examples[0].line)
		return;
	if (doc->roff)
		doc_paragraph(doc, "Examples:");
	else
		doc_heading(doc, "examples");
	for (size_t i = 0; i < STK_LENGTH(cmd->examples) && cmd->examples[i].line; i++)
		doc_example(doc, cmd->examples[i].line, cmd->examples[i].what);
}

/* The options of every command in one line: 'stoker help' explains them. */
static void global_line(struct doc *doc)
{
	AUTO(sb_release) struct sb line = SB_INIT;

	for (int id = 0; id < OPT_COUNT; id++)
		if ((OPTS_GLOBAL >> id & 1) && args_opt_rows[id].letter)
			sb_addf(&line, "-%c ", args_opt_rows[id].letter);
		else if (OPTS_GLOBAL >> id & 1)
			sb_addf(&line, "--%s ", args_opt_rows[id].name);
	sb_adds(&line, "('stoker help')");
	doc_heading(doc, "options of every command");
	sb_addf(&doc->text, "  %s\n", line.text);
}

void manual_command(struct doc *doc, const struct cmd *cmd)
{
	AUTO(auto_free) char *usage = usage_of(cmd);
	AUTO(auto_free) char *line = mem_format("stoker %s", usage);

	doc_subheading(doc, line);
	command_body(doc, cmd);
	if (doc->roff) {
		manual_options(doc, cmd->options);
		command_exits(doc, cmd);
		command_examples(doc, cmd);
		return;
	}
	command_words(doc, cmd);
	if (cmd->options) {
		doc_heading(doc, "options");
		manual_options(doc, cmd->options);
	}
	global_line(doc);
	doc_heading(doc, "exit codes");
	command_exits(doc, cmd);
	command_examples(doc, cmd);
}

void manual_family(struct doc *doc, const struct cmd *table, const char *word)
{
	AUTO(auto_free) char *usage = mem_format("stoker %s COMMAND …", word);
	AUTO(auto_free)
	char *more = mem_format("'stoker help %s COMMAND' explains a command.", word);

	doc_subheading(doc, usage);
	sb_addc(&doc->text, '\n');
	command_rows(doc, table, word);
	doc_paragraph(doc, more);
}

void manual_overview(struct doc *doc, const struct cmd *table)
{
	doc_paragraph(doc, "stoker carries a training job through precompile, proof of the "
			   "cache and training.");
	doc_paragraph(doc, "usage: stoker [OPTION…] COMMAND …");
	sb_addc(&doc->text, '\n');
	command_rows(doc, table, NULL);
	doc_heading(doc, "options of every command");
	manual_options(doc, OPTS_GLOBAL);
	doc_heading(doc, "exit codes");
	manual_exit_codes(doc);
	doc_paragraph(doc, "'stoker help COMMAND' and 'stoker help FIELD' explain more; 'stoker "
			   "help topics' lists the other topics.");
}

/* ---- exit codes, environment ---------------------------------------------------- */

void manual_exit_codes(struct doc *doc)
{
	doc->column = CODE_COLUMN;
	for (size_t i = 0; i < exitcode_row_count; i++)
		exit_item(doc, exitcode_rows[i].code);
}

void manual_variables(struct doc *doc, unsigned uses)
{
	doc->column = OPTION_COLUMN;
	for (int i = 0; i < VAR_COUNT; i++)
		if (variable_rows[i].uses & uses)
			doc_item(doc, variable_rows[i].name, variable_rows[i].help);
}

/* ---- fields --------------------------------------------------------------------- */

static void add_fact(void *arg, const char *what, const char *text)
{
	AUTO(auto_free) char *term = mem_format("%s:", what);

	doc_item(arg, term, text);
}

bool manual_field(struct doc *doc, const char *path)
{
	field_id field = field_find(path);
	bool first = true;

	if (field == FIELD_NONE)
		return false;
	doc_subheading(doc, field_table[field].path);
	doc_paragraph(doc, field_table[field].help);
	sb_addc(&doc->text, '\n');
	doc->column = 13;
	help_field_facts(field, add_fact, doc);
	if (field_table[field].notes)
		doc_paragraph(doc, field_table[field].notes);
	if (field_table[field].type == FIELD_LIST &&
	    field_table[field_item(field)].type == FIELD_SECTION)
		field = field_item(field);
	for (field_id id = field + 1; id < SPEC_FIELD_COUNT; id++) {
		if (field_parent(id) != field)
			continue;
		if (first)
			doc_heading(doc, "fields in it");
		first = false;
		doc->column = FIELD_COLUMN;
		doc_item(doc, field_table[id].path, field_table[id].help);
	}
	return true;
}
