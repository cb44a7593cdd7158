/* The journal over its stores: see journal.h. */
#include "jobs/run/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs.h"
#include "jobs/base/text.h"
#include "jobs/run/place.h"
#include "jobs/store/store.h"
#include "jobs/store/work.h"

struct journal {
	const struct journal_ops *ops;
	void *store;
	char *url, *dir;
	bool far;
};

static const struct journal_ops *const stores[] = { &journal_sqlite, &journal_objects };

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

/* The scheme of "scheme:PATH"; NULL: a plain path. Yours to free. */
static char *scheme_of(const char *url)
{
	const char *colon = strchr(url, ':'), *slash = strchr(url, '/');

	return colon && (!slash || colon < slash) ? mem_copy_n(url, (size_t)(colon - url)) : NULL;
}

static const struct journal_ops *find_kind(const char *scheme)
{
	for (size_t i = 0; i < STK_LENGTH(stores); i++)
		if (strcmp(stores[i]->scheme, scheme) == 0)
			return stores[i];
	return NULL;
}

/* Is this file of a journal there: 1, 0, -1 we may not know. What cannot be seen
 * is not nothing. */
static int is_in(const char *dir, const char *name, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	struct stat st;

	if (stat(path, &st) == 0)
		return 1;
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	return fs_error(err, errno, "cannot look into the state directory '%s'", dir);
}

/* The kind of journal that lies in the folder; NULL: none yet. */
static int kind_there(const char *dir, const struct journal_ops **ret, struct err **err)
{
	/* A database first: it would be there before anybody wrote a mark beside it. */
	int database = is_in(dir, JOURNAL_SQLITE_FILE, err);
	int mark = database == 0 ? is_in(dir, JOURNAL_DIR_MARK, err) : 0;

	*ret = database > 0 ? &journal_sqlite : mark > 0 ? &journal_objects : NULL;
	return database < 0 || mark < 0 ? -1 : 0;
}

/* Which kind a folder is to have; `scheme` NULL: it is free to be chosen. */
static int choose_kind(struct journal *journal, const char *url, const char *scheme,
		       struct err **err)
{
	const struct journal_ops *asked = scheme ? find_kind(scheme) : NULL;
	const struct journal_ops *there;

	if (scheme && (!asked || !strchr(url, ':')[1])) {
		err_set(err, EXIT_USAGE, "no such kind of state: '%s'", url);
		return err_hint(err, "give a directory, sqlite:DIRECTORY, dir:DIRECTORY or "
				     "s3://BUCKET/PREFIX");
	}
	if (kind_there(journal->dir, &there, err) < 0)
		return -1;
	if (asked && there && asked != there) {
		err_set(err, EXIT_REFUSED, "'%s' holds a journal of the kind %s, not %s",
			journal->dir, there->scheme, asked->scheme);
		return err_hint(err, "leave '%s:' out, or give another directory", asked->scheme);
	}
	if (asked == &journal_sqlite && !there && place_on_network(journal->dir)) {
		err_set(err, EXIT_REFUSED,
			"'%s' is on a network file system, where SQLite is not "
			"safe",
			journal->dir);
		return err_hint(err, "use dir:%s, or a directory on a local disk", journal->dir);
	}
	journal->ops = asked ? asked : there;
	if (!journal->ops)
		journal->ops = place_on_network(journal->dir) ? &journal_objects : &journal_sqlite;
	return 0;
}

/* A state directory, as a path or with its kind in front. */
static int open_dir(struct journal *journal, const char *url, enum journal_mode mode,
		    struct err **err)
{
	AUTO(auto_free) char *scheme = url ? scheme_of(url) : NULL;
	AUTO(auto_free) char *where = NULL;

	journal->dir = url ? fs_absolute(scheme ? strchr(url, ':') + 1 : url) : default_dir(err);
	if (!journal->dir || choose_kind(journal, url, scheme, err) < 0)
		return -1;
	if (mode == JOURNAL_WRITE && fs_mkdirs(journal->dir, err) < 0) {
		if (!(*err)->hint)
			err_hint(err, "choose another directory with --state");
		return err_wrap(err, "cannot make the state directory");
	}
	if (mode == JOURNAL_WRITE && journal->ops == &journal_sqlite)
		place_tighten(journal->dir);
	journal->url = mem_copy(journal->dir);
	where = journal->ops == &journal_objects ? mem_format("dir:%s", journal->dir)
						 : mem_copy(journal->dir);
	return journal->ops->open(where, mode, &journal->store, err);
}

/* Objects somewhere else; what needs files has a folder here. */
static int open_far(struct journal *journal, const char *url, enum journal_mode mode,
		    struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	if (store_open(url, &store, err) < 0)
		return -1;
	journal->far = true;
	journal->url = mem_copy(store_url(store));
	journal->dir = work_folder(store);
	journal->ops = &journal_objects;
	if (mode == JOURNAL_WRITE) {
		AUTO(auto_free) char *made = NULL;

		if (work_folder_make(store, &made, err) < 0)
			return -1;
	}
	return journal->ops->open(url, mode, &journal->store, err);
}

int journal_open(const char *url, enum journal_mode mode, struct journal **ret, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = mem_zero(1, sizeof *journal);

	if (!url)
		url = getenv("STOKER_STATE");
	if (url && url[0] == '\0') {
		err_set(err, EXIT_USAGE, "--state or STOKER_STATE is empty");
		return err_hint(err, "name a directory, or leave --state out");
	}
	if ((url && text_starts(url, "s3://") ? open_far(journal, url, mode, err)
					      : open_dir(journal, url, mode, err)) < 0)
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
	free(j->url);
	free(j->dir);
	free(j);
	*journal = NULL;
}

const char *journal_dir(const struct journal *journal)
{
	return journal->dir;
}

const char *journal_url(const struct journal *journal)
{
	return journal->url;
}

bool journal_is_far(const struct journal *journal)
{
	return journal->far;
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
	int appended = journal->ops->append(journal->store, run, ev->seq, body, err);

	if (appended > 0 && journal->ops->settle &&
	    (ev->kind == EV_RUN_ENDED || ev->kind == EV_DRIVER_LEFT))
		journal->ops->settle(journal->store, run, ev->seq);
	return appended;
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

int journal_forget(struct journal *journal, const char *run, struct err **err)
{
	return journal->store ? journal->ops->forget(journal->store, run, err) : 0;
}

int journal_keep(struct journal *journal, const char *run, int64_t seq, const void *bytes,
		 size_t len, struct err **err)
{
	if (!journal->store || !journal->ops->keep)
		return 0;
	return journal->ops->keep(journal->store, run, seq, bytes, len, err);
}

int journal_kept(struct journal *journal, const char *run, int64_t *ret_seq, struct sb *ret,
		 struct err **err)
{
	if (!journal->store || !journal->ops->kept)
		return 0;
	return journal->ops->kept(journal->store, run, ret_seq, ret, err);
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
	bool exact; /* it was a whole id */
};

static int consider_run(void *arg, const char *run, struct err **err)
{
	struct resolution *r = arg;
	bool last = strcmp(r->ref, "@last") == 0;

	(void)err;
	if (!last && !text_starts(run, r->ref))
		return 0;
	if (!last)
		memcpy(r->other, r->found, sizeof r->other);
	snprintf(r->found, sizeof r->found, "%s", run);
	r->matches = last ? 1 : r->matches + 1;
	return 0;
}

static int is_there(void *arg, const char *body, size_t len, struct err **err)
{
	(void)body;
	(void)len;
	(void)err;
	*(bool *)arg = true;
	return 1;
}

/* A whole id needs no look at the other runs. */
static int find_exactly(struct journal *journal, const char *ref, bool *ret, struct err **err)
{
	*ret = false;
	if (!journal->store || !run_id_valid(ref))
		return 0;
	return journal->ops->rows(journal->store, ref, 1, is_there, ret, err);
}

int journal_resolve(struct journal *journal, const char *ref, char run[JOURNAL_RUN_MAX],
		    struct err **err)
{
	struct resolution r = { .ref = ref };

	if (find_exactly(journal, ref, &r.exact, err) < 0)
		return -1;
	if (r.exact) {
		snprintf(run, JOURNAL_RUN_MAX, "%s", ref);
		return 0;
	}
	if (journal_runs(journal, consider_run, &r, err) < 0)
		return -1;
	if (ref[0] == '\0' || r.matches == 0) {
		err_set(err, EXIT_USAGE, "no run '%s' in '%s'", ref, journal->url);
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
