/* A command with other options of its launcher: see launch.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/launch_words.h"

/* ---- commands without places --------------------------------------------------------- */

/* Marks the words that are left out. */
static void mark_places(const struct words *words, const struct launch_place *place, bool counted,
			bool *gone)
{
	const struct launcher *launcher = place->launcher;
	struct option option;

	for (size_t i = 0; counted && launcher->has_variable && i < place->first; i++)
		gone[i] = text_starts(words->list[i], LAUNCH_VARIABLE "=");
	for (size_t at = place->first; launch_option_next(words, place, &at, &option);) {
		const char *word = words->list[option.at];

		if (!launch_option_among(word, launcher->placing) &&
		    !(counted && (launch_option_is(word, launcher->nodes, NULL) ||
				  launch_option_is(word, launcher->count, launcher->least))))
			continue;
		for (size_t i = 0; i < option.count; i++)
			gone[option.at + i] = true;
	}
}

/* Returns the line without the words that are gone, and without the blanks before them. */
static char *line_without(const char *text, const struct split_line *line, const bool *gone)
{
	struct sb ret = SB_INIT;
	size_t from = 0;

	for (size_t i = 0; i < line->count; i++) {
		size_t to = line->spans[i].from;

		if (!gone[i])
			continue;
		while (to > from && strchr(" \t", text[to - 1]))
			to--;
		sb_add(&ret, text + from, to - from);
		from = line->spans[i].to;
	}
	sb_adds(&ret, text + from);
	return sb_take(&ret);
}

json_t *launch_without_places(const json_t *command, bool counted)
{
	AUTO(launch_words_release) struct words words = { 0 };
	struct launch_place place = launch_words_read(command, &words);
	AUTO(auto_free) bool *gone = mem_zero(words.count + 1, sizeof *gone);
	json_t *ret;

	if (!place.launcher)
		return json_deep_copy(command);
	mark_places(&words, &place, counted, gone);
	if (words.line.count > 0) {
		AUTO(auto_free)
		char *line =
			line_without(json_string_value(json_array_get(command, words.argument)),
				     &words.line, gone);

		ret = json_deep_copy(command);
		json_array_set_new(ret, words.argument, json_string_nocheck(line));
		return ret;
	}
	ret = json_array();
	for (size_t i = 0; i < words.count; i++)
		if (!gone[i])
			json_array_append(ret, json_array_get(command, i));
	return ret;
}

/* ---- commands with workers ----------------------------------------------------------- */

/* Options that the launcher's own words set already. */
struct said {
	size_t count, count_at; /* the option's words and their place; 0: it is not there */
	bool several;           /* its value is a number above 1 */
	bool nodes, rank, address, port, distributed;
};

static struct said what_is_said(const struct words *words, const struct launch_place *place)
{
	/* Each makes accelerate start workers that know each other, or says that there is one. */
	static const char distributed[] = "multi-gpu use-deepspeed use-fsdp use-megatron-lm tpu "
					  "cpu config-file";
	struct said ret = { 0 };
	struct option option;

	for (size_t at = place->first; launch_option_next(words, place, &at, &option);) {
		const char *word = words->list[option.at];

		if (launch_option_is(word, place->launcher->count, place->launcher->least)) {
			ret.count = option.count;
			ret.count_at = option.at;
			ret.several = option.value && strtoll(option.value, NULL, 10) > 1;
		}
		ret.nodes = ret.nodes || launch_option_is(word, place->launcher->nodes, NULL);
		ret.rank = ret.rank || launch_option_is(word, "machine-rank", NULL);
		ret.address = ret.address || launch_option_is(word, "main-process-ip", NULL);
		ret.port = ret.port || launch_option_is(word, "main-process-port", NULL);
		ret.distributed = ret.distributed || launch_option_among(word, distributed);
	}
	return ret;
}

static void add_text(json_t *to, const char *text)
{
	json_array_append_new(to, js_text(text, strlen(text)));
}

static void add_option(json_t *to, const char *option, const char *value)
{
	add_text(to, option);
	add_text(to, value);
}

static void add_number(json_t *to, const char *option, int64_t number)
{
	AUTO(auto_free) char *text = mem_format("%lld", (long long)number);

	add_option(to, option, text);
}

/* Adds what accelerate cannot find by itself. */
static void add_accelerate(json_t *to, const struct said *said, int64_t world, int64_t nodes)
{
	if (world > 0 && said->count == 0)
		add_number(to, "--num_processes", world);
	if ((world > 0 ? world > 1 : said->several) && !said->distributed)
		add_text(to, "--multi_gpu");
	if (nodes < 2)
		return;
	if (!said->nodes)
		add_number(to, "--num_machines", nodes);
	if (!said->rank)
		add_option(to, "--machine_rank", "${STOKER_NODE_RANK}");
	if (!said->address)
		add_option(to, "--main_process_ip", "${STOKER_MASTER_ADDR}");
	if (!said->port)
		add_option(to, "--main_process_port", "${STOKER_MASTER_PORT}");
}

/* Adds the option for the number as it is spelled, with another value. */
static void add_count(json_t *to, const char *word, size_t words, int64_t count)
{
	AUTO(auto_free)
	char *joined = mem_format("%.*s=%lld", (int)strcspn(word, "="), word, (long long)count);

	if (words == 1)
		add_text(to, joined);
	else
		add_number(to, word, count);
}

json_t *launch_with_workers(const json_t *command, int64_t per_node, int64_t nodes)
{
	AUTO(launch_words_release) struct words words = { 0 };
	struct launch_place place = launch_words_read(command, &words);
	const struct launcher *launcher = place.launcher;
	int64_t count;
	struct said said;
	json_t *ret;

	if (!launcher || words.line.count > 0)
		return json_deep_copy(command);
	count = launcher->counts_all ? per_node * nodes : per_node;
	said = what_is_said(&words, &place);
	ret = json_array();
	for (size_t i = 0; i < words.count; i++) {
		if (i == place.first && !launcher->has_variable)
			add_accelerate(ret, &said, count, nodes);
		else if (i == place.first && per_node > 0 && said.count == 0)
			add_number(ret, "--nproc_per_node", per_node);
		if (said.count > 0 && i == said.count_at && per_node > 0) {
			add_count(ret, words.list[i], said.count, count);
			i += said.count - 1;
			continue;
		}
		json_array_append(ret, json_array_get(command, i));
	}
	return ret;
}
