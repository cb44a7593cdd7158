/*
 * Warnings about flags: those of the Neuron compiler and its wrapper (Neuron
 * SDK: neuron-caching.rst, the neuronx-cc command-line reference), deprecated
 * switches, and redirects that hide the list of graphs from the log.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/text.h"
#include "jobs/spec/lint.h"

/* One word of NEURON_CC_FLAGS, with the word after it. */
static void look_flag(struct binder *binder, const char *field, struct mark at, const char *word,
		      const char *next)
{
	struct reporter *to = &binder->reporter;
	const char *value = strchr(word, '=');

	value = value ? value + 1 : next;
	if (text_starts(word, "--cache_dir"))
		problem_hint(problem_lint(to, at, field,
					  "'--cache_dir' in NEURON_CC_FLAGS beats "
					  "'compile.cache_url'"),
			     "remove it; compile.cache_url says where the cache is");
	else if (strcmp(word, "--no_cache") == 0)
		problem_hint(problem_lint(to, at, field,
					  "'--no_cache' in NEURON_CC_FLAGS turns the compile cache "
					  "off"),
			     "remove it, or nothing that phase 1 compiles is found again");
	else if (text_starts(word, "--log_level") && strcasecmp(value, "INFO") != 0)
		problem_hint(
			problem_lint(to, at, field,
				     "'--log_level' in NEURON_CC_FLAGS can hide the lines that "
				     "name the graphs"),
			"leave it at INFO: a cache is proved from those lines too");
	else if ((strcmp(word, "-O") == 0 || text_starts(word, "--optlevel")) &&
		 (*value == 'O' || *value == 'o'))
		problem_hint(problem_lint(to, at, field, "'--optlevel' is documented as 1, 2 or 3"),
			     "write --optlevel %s or -O%s", value + 1, value + 1);
}

static void look_compiler_flags(struct binder *binder, const char *field, const struct node *text)
{
	AUTO(auto_free) char *copy = NULL;
	char *rest = NULL, *word, *next;

	if (!strstr(field, "NEURON_CC_FLAGS"))
		return;
	copy = mem_copy(text->text);
	for (word = strtok_r(copy, " \t\n", &rest); word; word = next) {
		next = strtok_r(NULL, " \t\n", &rest);
		look_flag(binder, field, text->at, word, next ? next : "");
	}
}

static void look_deprecated(struct binder *binder, const char *field, const struct node *text)
{
	const char *name = strrchr(field, '.');

	if (!name ||
	    (strcmp(name, ".XLA_USE_BF16") != 0 && strcmp(name, ".XLA_DOWNCAST_BF16") != 0))
		return;
	problem_hint(problem_lint(&binder->reporter, text->at, field,
				  "the end of support for %s is announced", name + 1),
		     "convert the model itself (model.to(torch.bfloat16)), or use --auto-cast");
}

/* A '>' that sends output to a file, in a line for a shell. */
static bool redirects(const char *text)
{
	for (const char *at = strchr(text, '>'); at; at = strchr(at + 1, '>'))
		if (at[1] != '&' && at[1] != '(' && (at == text || at[-1] != '-') &&
		    (at == text || at[-1] != '='))
			return true;
	return false;
}

static bool is_shell(const char *program)
{
	const char *name = strrchr(program, '/');

	return word_in("sh bash dash zsh ksh", name ? name + 1 : program);
}

static void lint_redirects(struct binder *binder)
{
	static const char torchrun[] = "--redirects --redirects=3 --redirects=1 -r --tee -t";
	const struct node *command = node_of_field(binder->spec, SPEC_COMMAND);
	bool shell = false, launcher = false;

	if (!command || command->kind != NODE_LIST ||
	    spec_says(binder->spec, SPEC_COMPILE_KIND, "none"))
		return;
	for (size_t i = 0; i < command->count; i++) {
		const struct node *item = command->entries[i].value;
		AUTO(auto_free) char *field = mem_format("command[%zu]", i);

		if (item->kind != NODE_SCALAR)
			continue;
		if (shell ? redirects(item->text) : word_in("> >> 2> &> 1>", item->text)) {
			problem_hint(
				problem_lint(&binder->reporter, item->at, field,
					     shell ? "a redirect hides the list of graphs"
						   : "no shell reads this '%s'",
					     item->text),
				"leave the output alone: 'stoker logs' keeps it, and the cache "
				"is proved from it");
		} else if (launcher && word_in(torchrun, item->text)) {
			problem_hint(problem_lint(&binder->reporter, item->at, field,
						  "'%s' of torchrun sends the list of graphs into "
						  "files",
						  item->text),
				     "remove it: the cache is proved from what the ranks print");
		}
		shell = shell || is_shell(item->text);
		launcher =
			(launcher || strstr(item->text, "torchrun")) && !strstr(item->text, ".py");
	}
}

void lint_flags(struct binder *binder)
{
	lint_each_text(binder, SPEC_ENV, look_compiler_flags);
	lint_each_text(binder, SPEC_COMPILE_OVERRIDES_ENV, look_compiler_flags);
	lint_each_text(binder, SPEC_ENV, look_deprecated);
	lint_redirects(binder);
}
