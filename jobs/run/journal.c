/* The journal over its stores: see journal.h. */
#include "jobs/run/journal.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/base/text.h"

struct journal {
	const struct journal_ops *ops;
	void *store;
	char *dir;
};

static const struct journal_ops *const stores[] = { &journal_sqlite };

static char *default_dir(struct err **err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && state[0] == '/')
		return fs_join(state, "stoker");
	if (home && home[0] == '/')
		return fs_join(home, ".local/state/stoker");
	err_set(err, EXIT_REFUSED, "no place for state: neither XDG_STATE_HOME nor HOME is set");
	err_hint(err, "give one with --state DIR");
	return NULL;
}

int journal_open(const char *url, enum journal_mode mode, struct journal **ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = mem_zero(1, sizeof *journal);
	const char *colon = url ? strchr(url, ':') : NULL;
	const char *slash = url ? strchr(url, '/') : NULL;

	journal->ops = stores[0];
	if (!url)
		url = getenv("STOKER_STATE");
	if (url && url[0] == '\0') {
		err_set(err, EXIT_USAGE, "--state or STOKER_STATE is empty");
		return err_hint(err, "name a directory, or leave --state out");
	}
	if (!url) {
		journal->dir = default_dir(err);
		if (!journal->dir)
			return -1;
	} else if (colon && (!slash || colon < slash)) {
		journal->ops = NULL;
		for (size_t i = 0; i < STK_LENGTH(stores); i++)
			if (strlen(stores[i]->scheme) == (size_t)(colon - url) &&
			    text_starts(url, stores[i]->scheme))
				journal->ops = stores[i];
		if (!journal->ops || !colon[1]) {
			err_set(err, EXIT_USAGE, "no such kind of state: '%s'", url);
			return err_hint(err, "give a directory, or sqlite:DIRECTORY");
		}
		journal->dir = fs_absolute(colon + 1);
	} else {
		journal->dir = fs_absolute(url);
	}
	if (mode == JOURNAL_WRITE && fs_mkdirs(journal->dir, err) < 0) {
		if (!(*err)->hint)
			err_hint(err, "choose another directory with --state");
		return err_wrap(err, "cannot make the state directory");
	}
	if (journal->ops->open(journal->dir, mode, &journal->store, err) < 0)
		return -1;
	*ret = TAKE(journal);
	return 0;
}

void journal_freep(struct journal **journal)
{
	struct journal *j = *journal;

	if (!j)
		return;
	if (j->store)
		j->ops->close(j->store);
	free(j->dir);
	free(j);
	*journal = NULL;
}

const char *journal_dir(const struct journal *journal)
{
	return journal->dir;
}

struct store *journal_store(const struct journal *journal)
{
	return journal->ops->objects && journal->store ? journal->ops->objects(journal->store)
						       : NULL;
}

int journal_append(struct journal *journal, const char *run, const struct event *ev,
		   struct err **err)
{
	json_auto_t *row = event_encode(run, ev);
	AUTO(auto_free) char *body = js_line(row);

	return journal->ops->append(journal->store, run, ev->seq, body, err);
}

struct read_request {
	journal_fn fn;
	void *arg;
};

static int read_row(void *arg, const char *body, size_t len, struct err **err)
{
	const struct read_request *request = arg;
	json_auto_t *row = NULL;
	struct event ev;
	int known;

	if (js_parse(body, len, "a journal row", &row, err) < 0)
		return err_code(err, EXIT_DEFECT);
	known = event_decode(row, &ev, err);
	if (known < 0)
		return -1;
	return request->fn(request->arg, known ? &ev : NULL, row, err);
}

int journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn, void *arg,
		 struct err **err)
{
	struct read_request request = { fn, arg };

	if (!journal->store)
		return 0;
	return journal->ops->rows(journal->store, run, from, read_row, &request, err);
}

int journal_runs(struct journal *journal, journal_run_fn fn, void *arg, struct err **err)
{
	if (!journal->store)
		return 0;
	return journal->ops->runs(journal->store, fn, arg, err);
}

struct resolution {
	const char *ref;
	char found[JOURNAL_RUN_MAX], other[JOURNAL_RUN_MAX];
	int matches;
	bool exact;
};

static int consider_run(void *arg, const char *run, struct err **err)
{
	struct resolution *r = arg;
	bool last = strcmp(r->ref, "@last") == 0;

	(void)err;
	if (r->exact || (!last && !text_starts(run, r->ref)))
		return 0;
	if (!last)
		memcpy(r->other, r->found, sizeof r->other);
	snprintf(r->found, sizeof r->found, "%s", run);
	r->matches = last ? 1 : r->matches + 1;
	if (strcmp(run, r->ref) == 0) {
		r->exact = true;
		r->matches = 1;
	}
	return 0;
}

int journal_resolve(struct journal *journal, const char *ref, char run[JOURNAL_RUN_MAX],
		    struct err **err)
{
	struct resolution r = { .ref = ref };

	if (journal_runs(journal, consider_run, &r, err) < 0)
		return -1;
	if (ref[0] == '\0' || r.matches == 0) {
		err_set(err, EXIT_USAGE, "no run '%s' in '%s'", ref, journal->dir);
		return err_hint(err, "'stoker list' shows all runs");
	}
	if (r.matches > 1) {
		err_set(err, EXIT_USAGE, "'%s' is the beginning of %d runs, among them %s and %s",
			ref, r.matches, r.other, r.found);
		return err_hint(err, "write more of the id");
	}
	memcpy(run, r.found, JOURNAL_RUN_MAX);
	return 0;
}
