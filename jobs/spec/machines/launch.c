/* Finds torchrun in the spec's command: see launch.h. */
#include "jobs/spec/machines/launch.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/resolved.h"

#define FRONT "neuron_parallel_compile"

/* Options of torchrun that take no value, in one spelling. */
static const char *const switches[] = { "standalone", "module", "no-python",         "run-path",
					"use-env",    "help",   "virtual-local-rank" };

bool launch_is_shell(const char *word)
{
	return field_word_in("sh bash dash zsh ksh", fs_basename(word));
}

/* python, python3, python3.11, /opt/venv/bin/python */
static bool is_python(const char *word)
{
	const char *name = fs_basename(word);

	return text_starts(name, "python") && name[strspn(name + 6, "0123456789.") + 6] == '\0';
}

/* True for the module, or a file of it. */
static bool is_module(const char *text)
{
	static const char *const files[] = { "torch/distributed/run.py",
					     "torch/distributed/launch.py" };

	for (size_t i = 0; i < STK_LENGTH(files); i++) {
		size_t len = strlen(text), tail = strlen(files[i]);

		if (len >= tail && strcmp(text + len - tail, files[i]) == 0)
			return true;
	}
	return field_word_in("torch.distributed.run torch.distributed.launch", text);
}

static bool is_torchrun(const char *word)
{
	return strcmp(fs_basename(word), "torchrun") == 0;
}

/* True if the option `word` means `name`, written out or shortened, in either spelling. */
static bool means(const char *word, const char *name)
{
	size_t len = strcspn(word + 2, "=");

	if (len == 0 || len > strlen(name))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((word[2 + i] == '_' ? '-' : word[2 + i]) != name[i])
			return false;
	return true;
}

static bool takes_value(const char *word)
{
	if (!text_starts(word, "--"))
		return field_word_in("-r -t", word);
	for (size_t i = 0; i < STK_LENGTH(switches); i++)
		if (means(word, switches[i]))
			return false;
	return !strchr(word, '=');
}

static void put_given(struct launch *ret, const char *how, size_t at, bool by_env)
{
	ret->given = true;
	ret->by_env = by_env;
	ret->how = how;
	ret->at = at;
}

/* Reads torchrun's own words from `at` on, up to its script. */
static void read_options(const char *const *words, size_t count, size_t at, struct launch *ret)
{
	ret->torchrun = true;
	while (at < count && words[at][0] == '-' && strcmp(words[at], "--") != 0) {
		const char *equals = strchr(words[at], '=');

		/* Shorter ones, --n and --no, are also those of other options. */
		if (text_starts(words[at], "--np") && means(words[at], "nproc-per-node")) {
			bool here = equals || at + 1 >= count;

			put_given(ret,
				  equals ? equals + 1
				  : here ? NULL
					 : words[at + 1],
				  here ? at : at + 1, false);
			return;
		}
		at += takes_value(words[at]) ? 2 : 1;
	}
}

/* Reads a line for a shell, split at the characters that end a word there. */
static void read_shell(const char *line, size_t at, struct launch *ret)
{
	AUTO(auto_free) char *copy = mem_copy(line);
	char *rest = NULL;

	for (char *word = strtok_r(copy, " \t\n;&|()\"'`", &rest); word;
	     word = strtok_r(NULL, " \t\n;&|()\"'`", &rest)) {
		if (text_starts(word, LAUNCH_VARIABLE "="))
			put_given(ret, NULL, at, true);
		else if (is_torchrun(word) || is_module(word))
			ret->torchrun = true;
		else if (ret->torchrun && text_starts(word, "--np") &&
			 means(word, "nproc-per-node"))
			put_given(ret, NULL, at, false);
	}
}

/* Skips Python's own options, then reads its program. Any other program than torchrun hides what
 * it starts. */
static void read_python(const char *const *words, size_t count, size_t at, struct launch *ret)
{
	while (at < count && words[at][0] == '-' && words[at][1] != '\0') {
		const char *letters = words[at] + 1;
		const char *end = letters + strcspn(letters, "cmWX");

		if (text_starts(words[at], "--")) { /* --check-hash-based-pycs MODE */
			at += strchr(words[at], '=') ? 1 : 2;
			continue;
		}
		if (*end == 'c')
			return;
		if (*end == 'm') {
			const char *module = end[1] ? end + 1 : at + 1 < count ? words[at + 1] : "";

			if (is_module(module))
				read_options(words, count, at + (end[1] ? 1 : 2), ret);
			return;
		}
		at += *end && !end[1] ? 2 : 1;
	}
	if (at < count && (is_torchrun(words[at]) || is_module(words[at])))
		read_options(words, count, at + 1, ret);
}

/* Returns the index of the line that `sh -c`, `bash -lc` reads; 0 if it reads a file. */
static size_t shell_line(const char *const *words, size_t count, size_t shell)
{
	for (size_t i = shell + 1; i + 1 < count && words[i][0] == '-'; i++)
		if (words[i][1] != '-' && strchr(words[i], 'c'))
			return i + 1;
	return 0;
}

static struct launch find_in(const char *const *words, size_t count)
{
	struct launch ret = { 0 };

	for (size_t i = 0; i < count && !ret.torchrun; i++) {
		size_t line = launch_is_shell(words[i]) ? shell_line(words, count, i) : 0;

		if (text_starts(words[i], LAUNCH_VARIABLE "="))
			put_given(&ret, strchr(words[i], '=') + 1, i, true);
		else if (is_torchrun(words[i]))
			read_options(words, count, i + 1, &ret);
		else if (is_python(words[i]))
			read_python(words, count, i + 1, &ret);
		else if (line > 0)
			read_shell(words[line], line, &ret);
		if (is_python(words[i]) || line > 0)
			break;
	}
	return ret;
}

static bool has_front(const char *const *words, size_t count)
{
	size_t at = 0;

	if (count > 0 && strcmp(fs_basename(words[0]), "env") == 0)
		for (at = 1; at < count && (strchr(words[at], '=') || words[at][0] == '-'); at++)
			;
	return at < count && strcmp(fs_basename(words[at]), FRONT) == 0;
}

/* Returns the words of the command, ending with NULL. The caller frees the array. */
static const char **words_of(const struct spec *spec)
{
	const json_t *command = spec_get(spec, SPEC_COMMAND), *word;
	const char **words = mem_zero(json_array_size(command) + 1, sizeof *words);
	size_t i;

	json_array_foreach (command, i, word)
		words[i] = json_is_string(word) ? json_string_value(word) : "";
	return words;
}

struct launch launch_find(const struct spec *spec)
{
	AUTO(auto_free) const char **words = words_of(spec);

	return find_in(words, json_array_size(spec_get(spec, SPEC_COMMAND)));
}

bool spec_has_front(const struct spec *spec)
{
	AUTO(auto_free) const char **words = words_of(spec);

	return has_front(words, json_array_size(spec_get(spec, SPEC_COMMAND)));
}
