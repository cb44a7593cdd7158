/* Candidates for the next word of a command line, from the tables: see complete.h. */
#include "cmd/completion/complete.h"

#include <string.h>

#include "cmd/args/words.h"
#include "cmd/help/topics.h"
#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"
#include "jobs/report/printed/printed.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/schedule/schedule_record.h"
#include "jobs/spec/fields/field.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/template.h"

struct line {
	const struct cmd *table;
	const char *word;   /* the word being typed */
	const char *prefix; /* prefix of every candidate: "--color=" */
	const char *value;  /* the rest of the word */
	const char *state;  /* value of --state */
	const struct cmd *cmd;
	const char *family; /* "cache", until its second word is there */
	enum opt_id option; /* the option that needs a value next; OPT_COUNT: none */
	bool options_end;
	bool lost;    /* the line is not a known command: nothing can be offered */
	int operands; /* number after the command, without the word being typed */
	const char *first;
	complete_fn *fn;
	void *arg;
};

static void offer(const struct line *line, const char *candidate, const char *help)
{
	AUTO(auto_free) char *whole = NULL;

	if (!text_starts(candidate, line->value))
		return;
	whole = mem_format("%s%s", line->prefix, candidate);
	line->fn(line->arg, whole, help);
}

/* Offers the words of "auto|always|never" or "local slurm". */
static void offer_words(const struct line *line, const char *words, const char *before)
{
	while (words && *words) {
		size_t n = strcspn(words, "| ");
		AUTO(auto_free) char *one = mem_format("%s%.*s", before, (int)n, words);

		offer(line, one, NULL);
		words += n + (words[n] != '\0');
	}
}

/* ---- candidates for a word in capitals ------------------------------------------- */

static void offer_runs(const struct line *line)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *unread = NULL;
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;

	/* Nothing is offered if the state is absent or cannot be read. */
	if (journal_open(line->state, JOURNAL_READ, &journal, &unread) < 0)
		return;
	(void)!journal_runs(journal, runs, &unread);
	if (json_array_size(runs) > 0)
		offer(line, "@last", "the newest run");
	json_array_foreach (runs, i, run)
		offer(line, json_string_value(run), NULL);
}

static void offer_schedules(const struct line *line)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *unread = NULL;
	json_auto_t *entries = json_array();
	json_t *entry;
	size_t i;

	if (journal_open(line->state, JOURNAL_READ, &journal, &unread) < 0)
		return;
	(void)!schedule_entries(journal, entries, &unread);
	json_array_foreach (entries, i, entry)
		offer(line, js_str(entry, "name"), js_str(entry, "url"));
}

static void offer_machines(const struct line *line)
{
	json_auto_t *types = instance_types(NULL);
	json_t *type;
	size_t i;

	json_array_foreach (types, i, type)
		offer(line, json_string_value(type), NULL);
	offer_words(line, ACCELERATOR_NEURON "|" ACCELERATOR_NVIDIA, "");
}

static void offer_overlays(const struct line *line)
{
	json_auto_t *names = spec_profiles_of(*line->first ? line->first : "stoker.yaml");
	const json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		offer(line, json_string_value(name), NULL);
}

static bool can_be_set(field_id field)
{
	return field != SPEC_EXTENDS && field != SPEC_PROFILES &&
	       !strstr(field_table[field].path, "[]") && !strstr(field_table[field].path, ".*");
}

/* Offers "resources.nodes=", "env." for fields with free names, and after the equals sign the
 * values of the field. */
static void offer_fields(const struct line *line)
{
	const char *equals = strchr(line->value, '=');
	AUTO(auto_free)
	char *path = mem_copy_n(line->value, equals ? (size_t)(equals - line->value) : 0);
	field_id known = equals ? field_find(path) : FIELD_NONE;

	if (known != FIELD_NONE) {
		AUTO(auto_free) char *before = mem_format("%s=", path);

		offer_words(line, field_table[known].words, before);
		if (field_table[known].type == FIELD_BOOL)
			offer_words(line, "true|false", before);
		return;
	}
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		bool is_free = field_table[id].type == FIELD_FREE;
		AUTO(auto_free)
		char *text = mem_format("%s%s", field_table[id].path, is_free ? "." : "=");

		if (field_table[id].type != FIELD_SECTION && can_be_set(id))
			offer(line, text, field_table[id].help);
	}
}

static void offer_first_words(const struct line *line)
{
	AUTO(auto_free) char *last = mem_copy("");

	for (const struct cmd *cmd = line->table; cmd->name; cmd++) {
		size_t n = strcspn(cmd->name, " ");
		AUTO(auto_free) char *word = mem_copy_n(cmd->name, n);

		if (!cmd_is_shown(cmd) || strcmp(word, last) == 0)
			continue;
		offer(line, word, cmd->name[n] ? "and one of its commands" : cmd->summary);
		auto_free(&last);
		last = TAKE(word);
	}
}

static void offer_second_words(const struct line *line, const char *family)
{
	for (const struct cmd *cmd = line->table; (cmd = cmd_in_family(cmd, family)); cmd++)
		offer(line, cmd->name + strlen(family) + 1, cmd->summary);
}

static void offer_topics(const struct line *line)
{
	if (line->operands > 0) {
		offer_second_words(line, line->first);
		return;
	}
	offer_first_words(line);
	for (const struct topic *topic = topics; topic->name; topic++)
		offer(line, topic->name, topic->summary);
	/* Fields are many: offered only once the word is begun. */
	for (field_id id = 0; id < SPEC_FIELD_COUNT && *line->value; id++)
		if (can_be_set(id))
			offer(line, field_table[id].path, field_table[id].help);
}

static void offer_source(const struct line *line, enum word_source source)
{
	switch (source) {
	case WORD_NOTHING:
		break;
	case WORD_SPECS:
		line->fn(line->arg, COMPLETE_SPECS, line->prefix);
		break;
	case WORD_FILES:
		line->fn(line->arg, COMPLETE_FILES, line->prefix);
		break;
	case WORD_FOLDERS:
		line->fn(line->arg, COMPLETE_FOLDERS, line->prefix);
		break;
	case WORD_RUNS:
		offer_runs(line);
		break;
	case WORD_SCHEDULES:
		offer_schedules(line);
		break;
	case WORD_TOPICS:
		offer_topics(line);
		break;
	case WORD_FIELDS:
		offer_fields(line);
		break;
	case WORD_TEMPLATES:
		for (size_t i = 0; i < template_file_count; i++)
			offer(line, template_files[i].name, template_files[i].summary);
		break;
	case WORD_ENGINES:
		offer_words(line, field_table[SPEC_ENGINE].words, "");
		break;
	case WORD_SCHEMAS:
		offer_words(line, PRINTED_SPEC "|" PRINTED_NAMES, "");
		break;
	case WORD_OVERLAYS:
		offer_overlays(line);
		break;
	case WORD_SHELLS:
		offer_words(line, "bash|zsh|fish", "");
		break;
	case WORD_MACHINES:
		offer_machines(line);
		break;
	}
}

static void offer_usage(const struct line *line, const char *usage)
{
	const struct word_row *word;

	while ((word = word_next(&usage)))
		offer_source(line, word->source);
}

/* ---- the line ------------------------------------------------------------------- */

static void read_option(struct line *line, const char *word)
{
	const char *equals = strchr(word, '=');
	enum opt_id id = OPT_COUNT;

	if (text_starts(word, "--"))
		id = args_option_find(word + 2,
				      equals ? (size_t)(equals - word) - 2 : strlen(word + 2));
	if (id == OPT_COUNT || args_opt_rows[id].kind == OPT_KIND_FLAG)
		return;
	if (!equals)
		line->option = id;
	else if (id == OPT_STATE)
		line->state = equals + 1;
}

static void read_operand(struct line *line, const char *word)
{
	AUTO(auto_free) char *both = NULL;

	if (line->cmd) {
		if (line->operands++ == 0)
			line->first = word;
		return;
	}
	both = line->family ? mem_format("%s %s", line->family, word) : mem_copy(word);
	line->cmd = cmd_find(line->table, both);
	line->lost = !line->cmd && (line->family || !cmd_in_family(line->table, word));
	line->family = line->cmd || line->lost ? NULL : word;
}

static void read_word(struct line *line, const char *word)
{
	if (line->option != OPT_COUNT) {
		if (line->option == OPT_STATE)
			line->state = word;
		line->option = OPT_COUNT;
	} else if (!line->options_end && strcmp(word, "--") == 0) {
		line->options_end = true;
	} else if (!line->options_end && word[0] == '-' && word[1]) {
		read_option(line, word);
	} else {
		read_operand(line, word);
	}
}

static void offer_value(const struct line *line, enum opt_id id)
{
	if (args_opt_rows[id].kind == OPT_KIND_CHOICE)
		offer_words(line, args_opt_rows[id].argument, "");
	else if (args_opt_rows[id].argument)
		offer_usage(line, args_opt_rows[id].argument);
}

static void offer_options(const struct line *line)
{
	opt_set allowed = OPTS_GLOBAL | (line->cmd ? line->cmd->options : 0);

	for (int id = 0; id < OPT_COUNT; id++) {
		AUTO(auto_free) char *word = mem_format("--%s", args_opt_rows[id].name);

		if ((allowed >> id & 1) && args_opt_rows[id].help)
			offer(line, word, args_opt_rows[id].help);
	}
}

void complete_line(const struct cmd *table, const char *const *words, int count, complete_fn *fn,
		   void *arg)
{
	struct line line = {
		.table = table, .prefix = "", .option = OPT_COUNT, .first = "", .fn = fn, .arg = arg
	};
	AUTO(auto_free) char *prefix = NULL;
	const char *equals;

	line.word = count > 0 ? words[count - 1] : "";
	line.value = line.word;
	for (int i = 0; i + 1 < count; i++)
		read_word(&line, words[i]);
	equals = strchr(line.word, '=');
	if (line.lost)
		return;
	if (line.option != OPT_COUNT) {
		offer_value(&line, line.option);
	} else if (!line.options_end && text_starts(line.word, "--") && equals) {
		enum opt_id id = args_option_find(line.word + 2, (size_t)(equals - line.word) - 2);

		prefix = mem_copy_n(line.word, (size_t)(equals - line.word) + 1);
		line.prefix = prefix;
		line.value = equals + 1;
		if (id != OPT_COUNT)
			offer_value(&line, id);
	} else if (!line.options_end && line.word[0] == '-') {
		offer_options(&line);
	} else if (!line.cmd && line.family) {
		offer_second_words(&line, line.family);
	} else if (!line.cmd) {
		offer_first_words(&line);
	} else if (line.cmd->most < 0 || line.operands < line.cmd->most) {
		offer_usage(&line, line.cmd->operands);
	}
}
