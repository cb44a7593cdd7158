/* stats: success, goodput, failures and costs over all runs of a state. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/run_head.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/view/stats_view.h"

struct stats_run {
	char run[JOURNAL_RUN_MAX];
	char *head; /* owned; NULL: the events are read */
};

/* All runs, while they are counted. */
struct stats_reading {
	struct journal *journal;
	struct utc since; /* ms 0: all */
	struct stats *stats;
	struct stats_run *runs;
	size_t count, counted;
	int worst; /* exit code of the last run that could not be read; 0: none */
};

static void reading_release(struct stats_reading *reading)
{
	for (size_t i = 0; i < reading->count; i++)
		free(reading->runs[i].head);
	free(reading->runs);
	stats_freep(&reading->stats);
}

/* Events are read when all runs are known: not from within the search for them. */
static int note_run(void *arg, const char *run, const char *head, struct err **err)
{
	struct stats_reading *reading = arg;
	struct stats_run *row;

	(void)err;
	reading->runs = mem_room(reading->runs, reading->count, sizeof *reading->runs);
	row = &reading->runs[reading->count++];
	*row = (struct stats_run){ .head = head ? mem_copy(head) : NULL };
	snprintf(row->run, sizeof row->run, "%s", run);
	return 0;
}

static bool is_wanted(const struct stats_reading *reading, const char *created)
{
	struct utc at;

	return reading->since.ms == 0 ||
	       (created && clock_utc_parse(created, &at) && at.ms >= reading->since.ms);
}

/* Takes what the summary of an ended run tells. False if it tells nothing. */
static bool count_summary(struct stats_reading *reading, struct stats_run *row)
{
	AUTO(err_freep) struct err *unreadable = NULL;
	json_auto_t *tally = NULL;
	struct run_head head;

	if (!row->head || !run_head_read(row->head, &head) || !head.tally)
		return false;
	if (!is_wanted(reading, head.created))
		return true;
	if (js_parse(head.tally, strlen(head.tally), "the summary", &tally, &unreadable) < 0)
		return false;
	stats_add(reading->stats, tally);
	reading->counted++;
	return true;
}

/* A run that cannot be read is told, and the others are counted all the same. */
static int count_run(struct stats_reading *reading, struct stats_run *row, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *tally = NULL;

	if (count_summary(reading, row))
		return 0;
	if (cmd_run_tally(reading->journal, row->run, &tally, &why) == 0 &&
	    cmd_run_check_begun(reading->journal, row->run, tally, &why) == 0) {
		if (is_wanted(reading, js_str(tally, "created"))) {
			stats_add(reading->stats, tally);
			reading->counted++;
		}
		return 0;
	}
	if (why->code == EXIT_NOT_FOUND) /* removed just now */
		return 0;
	if (why->code == EXIT_UNREACHABLE) {
		*err = TAKE(why);
		return -1;
	}
	reading->worst = (int)why->code;
	out_error(why);
	return 0;
}

static int find_by(const struct args *args, enum stats_by *ret, struct err **err)
{
	const char *word = args->value[OPT_BY];

	*ret = STATS_ALL;
	for (int by = STATS_ALL + 1; word && by < STATS_BY_COUNT; by++)
		if (strcmp(word, stats_by_names[by]) == 0)
			*ret = (enum stats_by)by;
	if (args->given[OPT_CSV] && out_is_json()) {
		err_set(err, EXIT_USAGE, "--csv and --json exclude each other");
		return err_hint(err, "give one of them");
	}
	return 0;
}

static void print(const struct args *args, enum stats_by by, const json_t *stats)
{
	const json_t *row;
	size_t i;

	out_bulk(true);
	if (args->given[OPT_CSV])
		stats_view_print_csv(by, stats);
	else if (!out_is_json())
		stats_view_print(by, stats);
	else
		json_array_foreach (stats, i, row)
			out_json(row);
	out_bulk(false);
}

int cmd_stats(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(reading_release) struct stats_reading reading = { 0 };
	AUTO(err_freep) struct err *unfound = NULL;
	json_auto_t *stats = NULL;
	enum stats_by by;

	if (find_by(args, &by, err) < 0 ||
	    args_moment(args, OPT_SINCE, clock_utc_now(), &reading.since, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0)
		return -1;
	reading.journal = journal;
	reading.stats = stats_new(by);
	if (journal_each(journal, note_run, &reading, &unfound) < 0 && !unfound->damage) {
		*err = TAKE(unfound);
		return -1;
	}
	for (size_t i = 0; i < reading.count; i++)
		if (count_run(&reading, &reading.runs[i], err) < 0)
			return -1;
	stats = stats_json(reading.stats);
	print(args, by, stats);
	if (reading.count == 0 && !unfound)
		out_note("no runs in %s", journal_url(journal));
	else if (reading.counted == 0 && reading.worst == 0 && !unfound)
		out_note("none of the %zu runs is that new", reading.count);
	else if (by == STATS_BY_NODE && json_array_size(stats) == 0)
		out_note("no attempt has told the name of its machine");
	*err = TAKE(unfound);
	return *err ? -1 : reading.worst;
}
