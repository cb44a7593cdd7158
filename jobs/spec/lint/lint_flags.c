/*
 * Flags: every place where those of the Neuron compiler can stand, those of its wrapper (Neuron
 * SDK: neuron-caching.rst), deprecated switches, and redirects that hide the list of graphs from
 * the log. Warnings, but for a flag that makes the compiler use another cache than the spec's,
 * which is an error. What the compiler itself takes: lint_compiler.c.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/text/shell_words.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/lint/lint.h"
#include "jobs/spec/lint/lint_compiler.h"

/* True for the flag of this name, also in the spelling with '-' for '_', which is common
 * although no tool knows it. */
static bool is_flag(const char *word, const char *name)
{
	for (; *name; word++, name++)
		if (*word != *name && !(*name == '_' && *word == '-'))
			return false;
	return *word == '\0' || *word == '=';
}

/* The compile cache of the spec is the one that is filled, proved and paid for: nothing may make
 * the compiler use another. A spec without one is not checked. */
static struct problem *beats_cache(struct binder *binder, struct mark at, const char *field,
				   const char *message)
{
	const struct spec *spec = binder->spec;
	bool named = spec_says(spec, SPEC_COMPILE_KIND, "neuron") &&
		     spec_is_set(spec, SPEC_COMPILE_CACHE_URL);

	return named ? problem_error(&binder->reporter, at, field, "%s", message)
		     : problem_lint(&binder->reporter, at, field, "%s", message);
}

/* Checks a word of NEURON_CC_FLAGS, with the word after it. */
static void check_flag(struct binder *binder, const char *field, struct mark at, const char *word,
		       const char *next)
{
	struct reporter *to = &binder->reporter;
	const char *value = strchr(word, '=');

	value = value ? value + 1 : next;
	if (is_flag(word, "--cache_dir"))
		problem_hint(beats_cache(binder, at, field,
					 "'--cache_dir' in " COMPILER_FLAGS
					 " overrides 'compile.cache_url'"),
			     "remove the option; compile.cache_url names the cache");
	else if (is_flag(word, "--no_cache"))
		problem_hint(beats_cache(binder, at, field,
					 "'--no_cache' in " COMPILER_FLAGS
					 " turns the compile cache off"),
			     "remove the option, or no graph of phase 1 is found again");
	else if (text_starts(word, "--log_level") && strcasecmp(value, "INFO") != 0)
		problem_hint(problem_lint(to, at, field,
					  "'--log_level' in " COMPILER_FLAGS
					  " can hide the lines that name the graphs"),
			     "leave the level at INFO; these lines also verify a cache");
}

/* Returns the type of machine that a field is about, if that is a stage's own; NULL if not. */
static const char *type_of_stage(const struct spec *spec, const char *field)
{
	if (text_starts(field, "evaluate."))
		return spec_str(spec, SPEC_EVALUATE_RESOURCES_INSTANCE);
	return text_starts(field, "infer.") ? spec_str(spec, SPEC_INFER_RESOURCES_INSTANCE) : NULL;
}

static void check_flags(struct binder *binder, const char *field, struct mark at, const char *flags)
{
	AUTO(auto_strv) char **words = shell_words_seen(flags, "");
	struct flags_text text = { field, at, words, type_of_stage(binder->spec, field),
				   strchr(flags, '$') != NULL };

	for (char **word = words; *word; word++)
		check_flag(binder, field, at, *word, word[1] ? word[1] : "");
	lint_compiler_flags(binder, &text);
}

/* Checks the text of a field whose path ends with the variable: "env.NEURON_CC_FLAGS", in a list
 * of a sweep "sweep.grid.env.NEURON_CC_FLAGS[1]". */
static void check_compiler_flags(struct binder *binder, const char *field, const struct node *text)
{
	const char *name = strrchr(field, '.');
	size_t len = strlen(COMPILER_FLAGS);

	if (name && strncmp(name + 1, COMPILER_FLAGS, len) == 0 &&
	    (name[1 + len] == '\0' || name[1 + len] == '['))
		check_flags(binder, field, text->at, text->text);
}

/* Returns the value in a word that sets the variable, as a shell, env and launchers write it
 * ("NEURON_CC_FLAGS=…", "NEURON_CC_FLAGS+=…", "--env=NEURON_CC_FLAGS=…"); NULL if it sets none. */
static const char *value_set(const char *word)
{
	const char *at = strstr(word, COMPILER_FLAGS);

	for (; at; at = strstr(at + 1, COMPILER_FLAGS)) {
		const char *after = at + strlen(COMPILER_FLAGS);

		after += after[0] == '+' && after[1] == '=';
		if (*after == '=' &&
		    (at == word || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')))
			return after + 1;
	}
	return NULL;
}

static void check_assignments(struct binder *binder, const char *field, const struct node *text,
			      bool line)
{
	AUTO(auto_strv) char **words = line ? shell_words_seen(text->text, ";&|()") : NULL;
	const char *value = line ? NULL : value_set(text->text);

	if (value)
		check_flags(binder, field, text->at, value);
	for (char **word = words; word && *word; word++)
		if ((value = value_set(*word)))
			check_flags(binder, field, text->at, value);
}

static void check_deprecated(struct binder *binder, const char *field, const struct node *text)
{
	const char *name = strrchr(field, '.');

	if (!name ||
	    (strcmp(name, ".XLA_USE_BF16") != 0 && strcmp(name, ".XLA_DOWNCAST_BF16") != 0))
		return;
	problem_hint(problem_lint(&binder->reporter, text->at, field,
				  "the end of support for %s is announced", name + 1),
		     "convert the model itself (model.to(torch.bfloat16)), or use --auto-cast");
}

/* True for a '>' that sends output to a file, in a line for a shell. */
static bool redirects(const char *text)
{
	for (const char *at = strchr(text, '>'); at; at = strchr(at + 1, '>'))
		if (at[1] != '&' && at[1] != '(' && (at == text || at[-1] != '-') &&
		    (at == text || at[-1] != '='))
			return true;
	return false;
}

/* Checks the compiler's flags that the command itself sets: in a line for a shell, or for env. */
static void lint_assignments(struct binder *binder)
{
	const struct node *command = access_node_of_field(binder->spec, SPEC_COMMAND);
	bool line = false;

	for (size_t i = 0; command && command->kind == NODE_LIST && i < command->count; i++) {
		const struct node *item = command->entries[i].value;
		AUTO(auto_free) char *field = mem_format("command[%zu]", i);

		if (item->kind != NODE_SCALAR)
			continue;
		check_assignments(binder, field, item, line);
		line = line || launch_is_shell(item->text) ||
		       field_word_in("-S --split-string", item->text);
	}
}

static void lint_redirects(struct binder *binder)
{
	static const char torchrun[] = "--redirects --redirects=3 --redirects=1 -r --tee -t";
	const struct node *command = access_node_of_field(binder->spec, SPEC_COMMAND);
	bool shell = false, launcher = false;

	if (!command || command->kind != NODE_LIST ||
	    spec_says(binder->spec, SPEC_COMPILE_KIND, "none"))
		return;
	for (size_t i = 0; i < command->count; i++) {
		const struct node *item = command->entries[i].value;
		AUTO(auto_free) char *field = mem_format("command[%zu]", i);

		if (item->kind != NODE_SCALAR)
			continue;
		if (shell ? redirects(item->text) : field_word_in("> >> 2> &> 1>", item->text)) {
			problem_hint(problem_lint(&binder->reporter, item->at, field,
						  shell ? "a redirect hides the list of graphs"
							: "no shell interprets this '%s'",
						  item->text),
				     "do not redirect the output; 'stoker logs' keeps it, and it "
				     "verifies the cache");
		} else if (launcher && field_word_in(torchrun, item->text)) {
			problem_hint(
				problem_lint(&binder->reporter, item->at, field,
					     "'%s' of torchrun sends the list of graphs into "
					     "files",
					     item->text),
				"remove the option; the output of the ranks verifies the cache");
		}
		shell = shell || launch_is_shell(item->text);
		launcher =
			(launcher || strstr(item->text, "torchrun")) && !strstr(item->text, ".py");
	}
}

/* The same of the caller's shell, by pass_env. */
static void lint_passed(struct binder *binder)
{
	const json_t *names = spec_get(binder->spec, SPEC_PASS_ENV), *name;
	const char *flags = js_str(binder->spec->passed, COMPILER_FLAGS);
	struct mark at = access_mark_of_field(binder->spec, SPEC_PASS_ENV);
	size_t i;

	json_array_foreach (names, i, name) {
		AUTO(auto_free)
		char *field = mem_format("%s[%zu]", field_table[SPEC_PASS_ENV].path, i);

		if (flags && strcmp(json_string_value(name), COMPILER_FLAGS) == 0)
			check_flags(binder, field, at, flags);
	}
}

void lint_flags(struct binder *binder)
{
	static const enum spec_field places[] = {
		SPEC_ENV,          SPEC_COMPILE_OVERRIDES_ENV,
		SPEC_EVALUATE_ENV, SPEC_EVALUATE_OVERRIDES_ENV,
		SPEC_INFER_ENV,    SPEC_INFER_OVERRIDES_ENV,
		SPEC_SWEEP_GRID,   SPEC_SWEEP_ONE,
		SPEC_SWEEP_LIST,   SPEC_SWEEP_LADDER,
	};

	lint_passed(binder);
	for (size_t i = 0; i < STK_LENGTH(places); i++)
		lint_each_text(binder, places[i], check_compiler_flags);
	lint_assignments(binder);
	lint_each_text(binder, SPEC_ENV, check_deprecated);
	lint_redirects(binder);
}
