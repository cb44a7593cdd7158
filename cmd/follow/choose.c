/* A question for a run: see choose.h. */
#include "cmd/follow/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"

/* Adds the unfinished runs, newest first; those that cannot be read are left out. */
static int find_unfinished(struct journal *journal, json_t *ret, struct err **err)
{
	json_auto_t *runs = json_array();

	if (journal_runs(journal, runs, err) < 0)
		return -1;
	for (size_t i = json_array_size(runs); i-- > 0;) {
		const char *run = json_string_value(json_array_get(runs, i));
		AUTO(err_freep) struct err *unread = NULL;
		json_t *status = NULL;

		if (cmd_run_view(journal, run, false, &status, &unread) == 0 &&
		    !json_object_get(status, "exit_code"))
			json_array_append(ret, status);
		json_decref(status);
	}
	return 0;
}

static void show(const json_t *runs)
{
	const json_t *status;
	size_t i;

	json_array_foreach (runs, i, status)
		out_note("%3zu  %s  %s, %s%s%s", i + 1, js_str(status, "run"),
			 js_str(status, "name"),
			 js_str(status, "phase") ? js_str(status, "phase") : "",
			 js_str(status, "phase") ? " " : "", js_str(status, "state"));
}

/* Reads a number of the list, or an id; NULL if the line is neither. */
static const char *read_answer(const json_t *runs)
{
	char line[128] = "", *end;
	const json_t *status;
	size_t i;
	long number;

	if (!fgets(line, sizeof line, stdin))
		return NULL;
	line[strcspn(line, "\r\n")] = '\0';
	number = strtol(line, &end, 10);
	json_array_foreach (runs, i, status)
		if (js_is(status, "run", line) ||
		    (line[0] != '\0' && *end == '\0' && number == (long)i + 1))
			return js_str(status, "run");
	return NULL;
}

int choose_run(const char *state, const char *verb, char run[JOURNAL_RUN_MAX], struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	json_auto_t *runs = json_array();
	const char *chosen;

	if (out_is_json() || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		err_set(err, EXIT_USAGE, "%s needs RUN", verb);
		return err_hint(err, "'stoker list' shows all runs; @last is the newest");
	}
	if (journal_open(state, JOURNAL_READ, &journal, err) < 0 ||
	    find_unfinished(journal, runs, err) < 0)
		return -1;
	if (json_array_size(runs) == 0) {
		err_set(err, EXIT_NOT_FOUND, "no run goes on in '%s'", journal_url(journal));
		return err_hint(err, "'stoker list' shows all runs");
	}
	show(runs);
	out_note("which run is to %s? its number or id, or nothing for none:", verb);
	chosen = read_answer(runs);
	if (!chosen) {
		err_set(err, EXIT_USAGE, "no run is chosen");
		return err_hint(err, "nothing is changed");
	}
	snprintf(run, JOURNAL_RUN_MAX, "%s", chosen);
	return 0;
}
