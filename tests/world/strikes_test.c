/* What stoker is asked to do beside driving a run, with each of its calls failing in turn: see
 * strikes.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/hash.h"
#include "jobs/base/mem.h"
#include "jobs/run/journal/forget.h"
#include "tests/world/operators.h"
#include "tests/world/programs.h"
#include "tests/world/sqlite.h"
#include "tests/world/strikes.h"

/* ---- removal ---- */

static int remove_run(const char *run, bool with_checkpoints, bool dry_run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	const struct forget_options options = { with_checkpoints, dry_run };
	json_auto_t *removal = NULL;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	return run_forget(journal, run, &options, NULL, NULL, NULL, &removal, err);
}

static int remove_all(const char *run, struct err **err)
{
	return remove_run(run, true, false, err);
}

static int remove_but_checkpoints(const char *run, struct err **err)
{
	return remove_run(run, false, false, err);
}

static int would_remove(const char *run, struct err **err)
{
	return remove_run(run, false, true, err);
}

static int count_run(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev, (void)row, (void)err;
	++*(int *)arg;
	return 0;
}

static int check_removed(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	int events = 0;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_read(journal, run, 1, count_run, &events, err) < 0)
		return -1;
	if (events > 0)
		return err_set(err, EXIT_REFUSED, "%d events are left", events);
	if (run_has_rests(journal, run) && !run_is_kept(journal, run))
		return err_set(err, EXIT_REFUSED, "a folder is left");
	return 0;
}

/* ---- reading ---- */

static int read_run(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *runs = json_array();
	char found[JOURNAL_RUN_MAX];
	int64_t good;
	int events = 0;

	if (journal_open(NULL, JOURNAL_READ, &journal, err) < 0 ||
	    journal_runs(journal, runs, err) < 0 ||
	    journal_resolve(journal, "@last", found, err) < 0 ||
	    journal_resolve(journal, run, found, err) < 0 ||
	    journal_read(journal, found, 1, count_run, &events, err) < 0)
		return -1;
	if (strcmp(found, run) != 0 || json_array_size(runs) != 1 || events < 10)
		return err_set(err, EXIT_DEFECT, "the journal shows %zu runs, the last is %s, with %d events",
			       json_array_size(runs), found, events);
	if (journal_find_damage(journal, run, &good, &damage, err) < 0)
		return -1;
	if (damage)
		return err_set(err, EXIT_DEFECT, "a whole run is called damaged: %s", damage->message);
	return 0;
}

static const struct {
	const char *name;
	struct strike_action action;
} actions[] = {
	{ "read sqlite", { "sqlite", strikes_run_to_end, read_run, NULL, NULL, false } },
	{ "read folder", { "two-nodes", strikes_run_to_end, read_run, NULL, NULL, false } },
	{ "read bucket", { "far", strikes_run_to_end, read_run, NULL, NULL, false } },
	{ "rm sqlite", { "sqlite", strikes_run_to_end, remove_all, NULL, check_removed, false } },
	{ "rm folder", { "two-nodes", strikes_run_to_end, remove_but_checkpoints, NULL, check_removed, false } },
	{ "rm bucket", { "far", strikes_run_to_end, remove_but_checkpoints, NULL, check_removed, false } },
	{ "rm dry", { "sqlite", strikes_run_to_end, would_remove, NULL, read_run, false } },
};

int main(int argc, char **argv)
{
	char hex[SHA256_HEX];
	bool good = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	operators_register();
	programs_register();
	sqlite_register();
	hash_sha256_hex("", 0, hex);
	for (size_t i = 0; i < STK_LENGTH(actions); i++)
		if (argc < 2 || strstr(actions[i].name, argv[1]))
			good &= strikes_play_apart(actions[i].name, &actions[i].action);
	return good ? 0 : 1;
}
