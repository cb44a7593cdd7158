/* What a launcher in a command is told: see launch.h. */
#include "jobs/spec/machines/launch.h"

#include <stdio.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/machines/launch_words.h"

#define FRONT "neuron_parallel_compile"

static void copy_value(char ret[32], const char *value)
{
	snprintf(ret, 32, "%s", value ? value : "");
}

static void read_options(const struct words *words, const struct launch_place *place,
			 struct launch *ret)
{
	const struct launcher *launcher = place->launcher;
	struct option option;
	bool by_cpu = false, by_mpirun = false;

	for (size_t at = place->first; launch_option_next(words, place, &at, &option);) {
		const char *word = words->list[option.at];
		bool by_file = launcher->file && launch_option_is(word, launcher->file, NULL);

		by_cpu = by_cpu || (launcher->counts_all && launch_option_is(word, "cpu", NULL));
		by_mpirun = by_mpirun || by_file || launch_option_is(word, "mpirun-hostfile", NULL);
		ret->is_multi = ret->is_multi || launch_option_is(word, "multi-gpu", NULL);
		if (launch_option_is(word, launcher->nodes, NULL))
			copy_value(ret->nodes, option.value);
		if (!launch_option_is(word, launcher->count, launcher->least) &&
		    (!by_file || ret->given))
			continue;
		ret->follows = option.value && strstr(option.value, "STOKER_WORKERS");
		ret->given = !ret->follows;
		ret->by_env = false;
		ret->by_file = by_file;
		ret->at = launch_words_argument(words, option.value ? option.value_at : option.at);
		copy_value(ret->how, by_file ? "" : option.value);
	}
	ret->is_alone = by_cpu && !by_mpirun;
}

struct launch launch_find(const json_t *command)
{
	AUTO(launch_words_release) struct words words = { 0 };
	struct launch_place place = launch_words_read(command, &words);
	struct launch ret = { .launcher = place.launcher, .in_line = words.line.count > 0 };

	for (size_t i = 0; place.launcher && place.launcher->has_variable && i < place.first; i++) {
		if (!text_starts(words.list[i], LAUNCH_VARIABLE "="))
			continue;
		ret.given = ret.by_env = true;
		ret.at = launch_words_argument(&words, i);
		copy_value(ret.how, strchr(words.list[i], '=') + 1);
	}
	if (place.launcher)
		read_options(&words, &place, &ret);
	return ret;
}

bool launch_has_front(const json_t *command)
{
	const char *word = json_string_value(json_array_get(command, 0));
	size_t at = 0;

	if (word && strcmp(fs_basename(word), "env") == 0)
		for (at = 1; (word = json_string_value(json_array_get(command, at))); at++)
			if (!strchr(word, '=') && word[0] != '-')
				break;
	return word && strcmp(fs_basename(word), FRONT) == 0;
}
