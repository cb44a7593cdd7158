/* Launchers, where they are in a command, and their options: see launch_words.h. */
#include "jobs/spec/machines/launch_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/resolved.h"

static const struct launcher launchers[] = {
	{ .name = "torchrun",
	  .count = "nproc-per-node",
	  /* Shorter ones, --n and --no, are also those of other options. */
	  .least = "np",
	  .has_variable = true,
	  .nodes = "nnodes",
	  .placing = "node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone "
		     "master-addr master-port local-addr",
	  .switches = "standalone module no-python run-path use-env help virtual-local-rank",
	  .letters = "-r -t" },
	{ .name = "accelerate",
	  .count = "num-processes",
	  .counts_all = true,
	  .nodes = "num-machines",
	  /* --multi_gpu only says that there is more than one. */
	  .placing = "machine-rank main-process-ip main-process-port rdzv-backend rdzv-conf "
		     "same-network multi-gpu",
	  .switches = "quiet cpu multi-gpu tpu ipex enable-cpu-affinity dynamo-use-fullgraph "
		      "dynamo-use-dynamic dynamo-use-regional-compilation use-deepspeed use-fsdp "
		      "use-megatron-lm use-parallelism-config use-xpu same-network module "
		      "no-python tpu-cluster no-tpu-cluster tpu-use-sudo downcast-bf16 debug help",
	  .letters = "-t",
	  .file = "config-file" },
};

#define TORCHRUN   (&launchers[0])
#define ACCELERATE (&launchers[1])

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

static bool is_program(const char *word, const char *name)
{
	return strcmp(fs_basename(word), name) == 0;
}

/* ---- options ----------------------------------------------------------------------- */

bool launch_option_is(const char *word, const char *name, const char *least)
{
	size_t len;

	if (!text_starts(word, "--"))
		return false;
	len = strcspn(word += 2, "=");
	if (len > strlen(name) || (least ? len < strlen(least) : len != strlen(name)))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((word[i] == '_' ? '-' : word[i]) != name[i])
			return false;
	return true;
}

bool launch_option_among(const char *word, const char *names)
{
	char name[40];

	if (!text_starts(word, "--"))
		return false;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return *name && field_word_in(names, name);
}

bool launch_option_next(const struct words *words, const struct launch_place *place, size_t *at,
			struct option *ret)
{
	const char *word = *at < place->end ? words->list[*at] : "";
	const char *equals = strchr(word, '=');

	if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0)
		return false;
	*ret = (struct option){ .at = *at, .count = 1 };
	if (text_starts(word, "--") && equals) {
		ret->value = equals + 1;
		ret->value_at = *at;
	} else if (text_starts(word, "--") ? !launch_option_among(word, place->launcher->switches)
					   : field_word_in(place->launcher->letters, word)) {
		ret->count = *at + 1 < place->end ? 2 : 1;
		ret->value = ret->count == 2 ? words->list[*at + 1] : NULL;
		ret->value_at = *at + 1;
	}
	*at += ret->count;
	return true;
}

/* ---- place of the launcher ----------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);

	return len >= tail && strcmp(text + len - tail, end) == 0;
}

static bool is_torch_file(const char *word)
{
	return ends_with(word, "torch/distributed/run.py") ||
	       ends_with(word, "torch/distributed/launch.py");
}

static struct launch_place found(const struct launcher *launcher, size_t first, size_t end)
{
	return (struct launch_place){ launcher, first, end };
}

/* Finds a launcher that is the program at `at`; of accelerate `launch` is the one. */
static struct launch_place program_at(const struct words *words, size_t at, size_t end)
{
	const char *next = at + 1 < end ? words->list[at + 1] : "";

	if (is_program(words->list[at], "torchrun"))
		return found(TORCHRUN, at + 1, end);
	if (is_program(words->list[at], "accelerate-launch"))
		return found(ACCELERATE, at + 1, end);
	if (is_program(words->list[at], "accelerate") && strcmp(next, "launch") == 0)
		return found(ACCELERATE, at + 2, end);
	return found(NULL, 0, 0);
}

static struct launch_place module_at(const struct words *words, const char *module, size_t next,
				     size_t end)
{
	if (field_word_in("torch.distributed.run torch.distributed.launch", module))
		return found(TORCHRUN, next, end);
	if (strcmp(module, "accelerate.commands.launch") == 0)
		return found(ACCELERATE, next, end);
	if (strcmp(module, "accelerate.commands.accelerate_cli") == 0 && next < end &&
	    strcmp(words->list[next], "launch") == 0)
		return found(ACCELERATE, next + 1, end);
	return found(NULL, 0, 0);
}

/* Skips Python's own options, then reads its program. Any other program than these hides what it
 * starts. */
static struct launch_place python_at(const struct words *words, size_t at, size_t end)
{
	const char *const *list = words->list;

	while (at < end && list[at][0] == '-' && list[at][1] != '\0') {
		const char *letters = list[at] + 1;
		const char *letter = letters + strcspn(letters, "cmWX");

		if (text_starts(list[at], "--")) { /* --check-hash-based-pycs MODE */
			at += strchr(list[at], '=') ? 1 : 2;
			continue;
		}
		if (*letter == 'c')
			return found(NULL, 0, 0);
		if (*letter == 'm' && letter[1])
			return module_at(words, letter + 1, at + 1, end);
		if (*letter == 'm')
			return module_at(words, at + 1 < end ? list[at + 1] : "", at + 2, end);
		at += *letter && !letter[1] ? 2 : 1;
	}
	if (at < end && is_torch_file(list[at]))
		return found(TORCHRUN, at + 1, end);
	return at < end ? program_at(words, at, end) : found(NULL, 0, 0);
}

/* Finds a launcher among the words from `at` to `end`, which are of one simple command. */
static struct launch_place place_in(const struct words *words, size_t at, size_t end)
{
	for (; at < end; at++) {
		struct launch_place place = program_at(words, at, end);

		if (!place.launcher && is_python(words->list[at]))
			return python_at(words, at + 1, end);
		if (place.launcher)
			return place;
	}
	return found(NULL, 0, 0);
}

/* Returns the index of the line that `sh -c`, `bash -lc` reads; 0 if it reads a file. */
static size_t shell_line(const char *const *words, size_t count, size_t shell)
{
	for (size_t i = shell + 1; i + 1 < count && words[i][0] == '-'; i++)
		if (words[i][1] != '-' && strchr(words[i], 'c'))
			return i + 1;
	return 0;
}

static size_t find_line(const char *const *words, size_t count)
{
	size_t line = 0;

	for (size_t i = 0; i < count && line == 0 && !is_python(words[i]); i++)
		line = launch_is_shell(words[i]) ? shell_line(words, count, i) : 0;
	return line;
}

/* Finds the launcher in the words of a line, one simple command after the other. */
static struct launch_place place_in_line(const struct words *words)
{
	const struct line_span *spans = words->line.spans;
	struct launch_place place = found(NULL, 0, 0);

	for (size_t at = 0, end; at < words->count && !place.launcher; at = end) {
		for (end = at; end < words->count && spans[end].command == spans[at].command;)
			end++;
		place = place_in(words, at, end);
	}
	return place;
}

void launch_words_release(struct words *words)
{
	if (words->line.count == 0)
		free((void *)(uintptr_t)words->list);
	line_release(&words->line);
}

struct launch_place launch_words_read(const json_t *command, struct words *ret)
{
	size_t count = json_array_size(command), line, i;
	const char **list = mem_zero(count + 1, sizeof *list);
	const json_t *word;
	struct launch_place place;

	json_array_foreach (command, i, word)
		list[i] = json_is_string(word) ? json_string_value(word) : "";
	*ret = (struct words){ .list = list, .count = count };
	line = find_line(list, count);
	place = place_in(ret, 0, line > 0 ? line : count);
	if (line == 0 || place.launcher)
		return place;
	line_split(list[line], &ret->line);
	if (ret->line.count == 0)
		return place;
	free(list);
	ret->list = (const char *const *)ret->line.words;
	ret->count = ret->line.count;
	ret->argument = line;
	return place_in_line(ret);
}

size_t launch_words_argument(const struct words *words, size_t at)
{
	return words->line.count > 0 ? words->argument : at;
}
