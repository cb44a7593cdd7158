/* Damaged runs: what is left of one is read, and what is damaged is set aside. See journal.h. */
#include <string.h>

#include "jobs/run/journal/journal_internal.h"

/* ---- events that are left ---- */

struct salvage {
	journal_fn fn;
	void *arg;
	int64_t last; /* number of the newest event seen */
	bool stopped; /* by fn, with 1 */
	bool failed;  /* fn did */
};

static enum rows salvage_row(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct salvage *salvage = arg;
	AUTO(err_freep) struct err *damage = NULL;
	json_auto_t *row = NULL;
	struct event ev;
	int known, answer;

	salvage->last = seq;
	if (!body || js_parse(body, len, "it", &row, &damage) < 0)
		return ROWS_ON;
	known = event_decode(row, &ev, &damage);
	if (known < 0)
		return ROWS_ON;
	answer = salvage->fn(salvage->arg, known ? &ev : NULL, row, err);
	salvage->failed = answer < 0;
	salvage->stopped = answer > 0;
	return (enum rows)answer;
}

int journal_salvage(struct journal *journal, const char *run, journal_fn fn, void *arg,
		    struct err **err)
{
	struct salvage salvage = { .fn = fn, .arg = arg };
	int64_t next = 1;
	int found = journal->store ? 1 : 0;

	while (found > 0 && !salvage.stopped) {
		AUTO(err_freep) struct err *damage = NULL;

		if (journal->ops->rows(journal->store, run, next, salvage_row, &salvage, &damage) <
			    0 &&
		    salvage.failed) {
			*err = TAKE(damage);
			return -1;
		}
		err_freep(&damage);
		if (salvage.last < next)
			salvage.last = next; /* unreadable */
		found = journal->ops->next(journal->store, run, salvage.last + 1, &next, &damage);
	}
	return 0;
}

/* ---- the copy of event 1 ---- */

bool journal_first_is_kept(struct journal *journal, const char *run)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(JOURNAL_FIRST_MAX);
	AUTO(err_freep) struct err *ignored = NULL;

	return journal->store && journal->ops->first_kept(journal->store, run, &text, &ignored) > 0;
}

/* Restores event 1 from its copy, as its stored bytes; the caller frees them. */
static int restore_first(struct journal *journal, const char *run, struct chain *chain, char **ret,
			 struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(JOURNAL_FIRST_MAX);
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *row = NULL;
	int found = journal->ops->first_kept(journal->store, run, &text, err);

	if (found < 0)
		return -1;
	if (found > 0 && js_parse(text.text, text.len, "it", &row, &why) == 0 &&
	    chain_go_on(chain, run, row, text.text, text.len, &why) == 0) {
		*ret = sb_take(&text);
		return 0;
	}
	err_set(err, EXIT_REFUSED,
		"event 1 of run %s, which holds its plan, is lost, and so is the copy of it", run);
	err_damage(err);
	return err_hint(err,
			"restore the journal from a copy, or end the job on its engine and forget "
			"the run with 'stoker rm %s'",
			run);
}

/* ---- looking for damage, and setting it aside ---- */

static int note_good(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	int64_t *good = arg;

	(void)ev;
	(void)err;
	*good = js_int(row, "seq", *good);
	return 0;
}

/* Reads all events, whatever was read before, up to the last good one. */
static int read_good(struct journal *journal, const char *run, int64_t *ret, struct err **err)
{
	journal->at = (struct journal_position){ 0 };
	*ret = 0;
	return journal_read(journal, run, 1, note_good, ret, err);
}

int journal_find_damage(struct journal *journal, const char *run, int64_t *ret_good,
			struct err **ret_damage, struct err **err)
{
	AUTO(sb_release) struct sb first = SB_INIT_MAX(JOURNAL_FIRST_MAX);
	AUTO(auto_free) char *file = NULL;
	int kept;

	if (!journal->store)
		return 0;
	if (read_good(journal, run, ret_good, err) < 0) {
		if (!(*err)->damage)
			return -1;
		*ret_damage = TAKE(*err);
		return 1;
	}
	if (*ret_good > 0)
		return 0;
	kept = journal->ops->first_kept(journal->store, run, &first, err);
	if (kept <= 0)
		return kept;
	file = journal->ops->file(journal->store, run, 1);
	err_set(ret_damage, EXIT_REFUSED, "missing, although '" JOURNAL_FIRST "' is there");
	damage_of_event(ret_damage, file, run, 1);
	return 1;
}

static char *aside_place(const struct journal *journal, const char *run)
{
	const char *root = journal_is_remote(journal) ? journal->url : journal->dir;

	return mem_format("%s/runs/%s/" DAMAGE_ASIDE, root, run);
}

/* Replaces what lies behind the good events, and proves that the run is whole then. */
static int restart(struct journal *journal, const char *run, int64_t good, const char *first,
		   const char *body, struct err **err)
{
	int64_t last = first ? 1 : good, now;

	for (int again = 0; again < 2; again++) {
		err_freep(err);
		if (journal->ops->restart(journal->store, run, good, first, body, again > 0, err) <
		    0)
			return -1;
		if (read_good(journal, run, &now, err) == 0 && now == last + 1)
			return 0;
		if (*err && !(*err)->damage)
			return -1;
	}
	return *err ? -1
		    : err_set(err, EXIT_REFUSED, "the journal of run %s cannot be mended", run);
}

int journal_set_aside(struct journal *journal, const char *run, int64_t good, struct event *ev,
		      struct err **err)
{
	AUTO(auto_free) char *place = aside_place(journal, run);
	AUTO(auto_free) char *first = NULL;
	AUTO(auto_free) char *body = NULL;
	json_auto_t *row = NULL;
	struct chain chain = { 0 };
	int64_t count = 0;

	if (good == 0 && restore_first(journal, run, &chain, &first, err) < 0)
		return -1;
	if (good > 0 && journal_find_link(journal, run, good + 1, &chain, err) < 0)
		return -1;
	if (journal->ops->put_aside(journal->store, run, good, &count, err) < 0)
		return err_wrap(err, "cannot set aside what is damaged of run %s", run);
	ev->seq = (first ? 1 : good) + 1;
	EVENT_SET_STR(ev, url, place);
	EVENT_SET(ev, put_aside, count);
	row = event_encode(run, ev);
	body = chain_seal(&chain, row);
	if (restart(journal, run, good, first, body, err) < 0)
		return -1;
	json_decref(journal->appended);
	journal->appended = json_loads(body, 0, NULL);
	return 0;
}
