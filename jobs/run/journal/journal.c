/* The journal over its stores: see journal.h. */
#include "jobs/run/journal/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "aws/credentials/settings.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/state_dir.h"
#include "jobs/store/local_store_dir.h"
#include "jobs/store/store.h"

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

/* The scheme of "scheme:PATH"; NULL for a plain path. The caller frees it. */
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

/* Returns 1 if this file of a journal exists, 0 if not, -1 if that cannot be found out: a file that
 * cannot be seen must not count as absent. */
static int is_in(const char *dir, const char *name, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	struct stat st;

	if (stat(path, &st) == 0)
		return 1;
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno == ELOOP) /* a link to itself: opening it reports the error */
		return 1;
	return fs_error(err, errno, "cannot look into the state directory '%s'", dir);
}

/* Finds the kind of journal in the folder; NULL if it holds no journal yet. */
static int kind_there(const char *dir, const struct journal_ops **ret, struct err **err)
{
	/* The database first: it would exist before a mark is written beside it. */
	int database = is_in(dir, JOURNAL_SQLITE_FILE, err);
	int mark = database == 0 ? is_in(dir, JOURNAL_DIR_MARK, err) : 0;

	*ret = database > 0 ? &journal_sqlite : mark > 0 ? &journal_objects : NULL;
	return database < 0 || mark < 0 ? -1 : 0;
}

/* Chooses the kind of journal for a folder; `scheme` NULL: free choice. */
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
		return err_hint(err, "omit '%s:', or give another directory", asked->scheme);
	}
	if (asked == &journal_sqlite && !there && state_dir_on_network(journal->dir)) {
		err_set(err, EXIT_REFUSED,
			"'%s' is on a network file system, where SQLite is not "
			"safe",
			journal->dir);
		return err_hint(err, "use dir:%s, or a directory on a local disk", journal->dir);
	}
	journal->ops = asked ? asked : there;
	if (!journal->ops)
		journal->ops =
			state_dir_on_network(journal->dir) ? &journal_objects : &journal_sqlite;
	return 0;
}

/* Opens a state directory, given as a path or with its kind in front. */
static int open_dir(struct journal *journal, const char *url, enum journal_mode mode,
		    struct err **err)
{
	AUTO(auto_free) char *scheme = url ? scheme_of(url) : NULL;
	AUTO(auto_free) char *where = NULL;

	journal->dir = url ? fs_of_user(scheme ? strchr(url, ':') + 1 : url) : default_dir(err);
	if (!journal->dir || choose_kind(journal, url, scheme, err) < 0)
		return -1;
	if (mode != JOURNAL_READ && fs_mkdirs(journal->dir, err) < 0) {
		if (!(*err)->hint)
			err_hint(err, "choose another directory with --state");
		return err_wrap(err, "cannot make the state directory");
	}
	if (mode != JOURNAL_READ && journal->ops == &journal_sqlite)
		state_dir_tighten(journal->dir);
	journal->url = mem_copy(journal->dir);
	where = journal->ops == &journal_objects ? mem_format("dir:%s", journal->dir)
						 : mem_copy(journal->dir);
	return journal->ops->open(where, mode, &journal->store, err);
}

/* The state is opened before the spec is read: a region in the spec comes too late. */
static int hint_at_region(struct err **err)
{
	AUTO(err_freep) struct err *unset = NULL;

	if ((*err)->code == EXIT_REFUSED && !aws_region(&unset))
		err_hint(err, "give --region, or set AWS_REGION, or region in the profile: the "
			      "state is opened before the spec is read");
	return -1;
}

/* Opens remote objects; files that belong to them have a folder on this machine. */
static int open_remote(struct journal *journal, const char *url, enum journal_mode mode,
		       struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	if (store_open(url, &store, err) < 0)
		return -1;
	journal->is_remote = true;
	journal->url = mem_copy(store_url(store));
	journal->dir = local_store_dir(store);
	journal->ops = &journal_objects;
	if (mode != JOURNAL_READ) {
		AUTO(auto_free) char *made = NULL;

		if (local_store_dir_make(store, &made, err) < 0)
			return -1;
	}
	if (mode == JOURNAL_LATER)
		return 0;
	return journal->ops->open(url, mode, &journal->store, err) < 0 ? hint_at_region(err) : 0;
}

static int journal_open_at(const char *url, enum journal_mode mode, struct journal **ret,
			   struct err **ret_why, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = mem_zero(1, sizeof *journal);
	bool is_open, is_remote;

	if (!url)
		url = getenv("STOKER_STATE");
	if (url && url[0] == '\0') {
		err_set(err, EXIT_USAGE, "--state or STOKER_STATE is empty");
		return err_hint(err, "name a directory, or omit --state");
	}
	is_remote = url && text_starts(url, "s3://");
	if (mode == JOURNAL_LATER && !is_remote)
		mode = JOURNAL_WRITE;
	is_open = (is_remote ? open_remote(journal, url, mode, err)
			     : open_dir(journal, url, mode, err)) == 0;
	if (!is_open && ret_why && journal->is_remote && journal->dir &&
	    ((*err)->code == EXIT_REFUSED || (*err)->code == EXIT_UNREACHABLE))
		*ret_why = TAKE(*err);
	else if (!is_open)
		return -1;
	*ret = TAKE(journal);
	return 0;
}

int journal_open(const char *url, enum journal_mode mode, struct journal **ret, struct err **err)
{
	return journal_open_at(url, mode, ret, NULL, err);
}

int journal_begin(struct journal *journal, struct err **err)
{
	if (journal->store)
		return 0;
	return journal->ops->open(journal->url, JOURNAL_WRITE, &journal->store, err);
}

int journal_open_try(const char *url, struct journal **ret, struct err **ret_why, struct err **err)
{
	return journal_open_at(url, JOURNAL_READ, ret, ret_why, err);
}

void journal_freep(struct journal **journal)
{
	struct journal *j = *journal;

	if (!j)
		return;
	if (j->store)
		j->ops->close(j->store);
	json_decref(j->appended);
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

bool journal_is_remote(const struct journal *journal)
{
	return journal->is_remote;
}

struct store *journal_store(const struct journal *journal)
{
	return journal->ops->objects && journal->store ? journal->ops->objects(journal->store)
						       : NULL;
}

/* Sets the error for an event that is absent although a later one is there. Returns -1. */
static int fail_missing(const struct journal *journal, const char *run, int64_t seq, int64_t next,
			struct err **err)
{
	AUTO(auto_free) char *file = journal->ops->file(journal->store, run, seq);

	err_set(err, EXIT_REFUSED, "missing, although event %lld exists", (long long)next);
	return damage_of_event(err, file, run, seq);
}

struct journal_position *journal_position_in(struct journal *journal, const char *run)
{
	if (strcmp(journal->at.run, run) != 0) {
		journal->at = (struct journal_position){ 0 };
		snprintf(journal->at.run, sizeof journal->at.run, "%s", run);
	}
	return &journal->at;
}

static enum rows take_link(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct chain *chain = arg;
	json_auto_t *row = NULL;

	(void)seq;
	if (js_parse(body ? body : "", len, "it", &row, err) < 0)
		return ROWS_DAMAGED;
	chain_begin(chain, row, body, len);
	return ROWS_STOP;
}

int journal_find_link(struct journal *journal, const char *run, int64_t seq, struct chain *ret,
		      struct err **err)
{
	*ret = journal_position_in(journal, run)->chain;
	if (seq == 1)
		*ret = (struct chain){ 0 };
	if (ret->seq == seq - 1)
		return 0;
	*ret = (struct chain){ 0 };
	if (journal->ops->rows(journal->store, run, seq - 1, take_link, ret, err) < 0)
		return -1;
	return ret->seq == seq - 1 ? 0 : fail_missing(journal, run, seq - 1, seq, err);
}

/* Keeps a copy of a run's first event, which alone holds its plan, before it is appended. Without
 * the copy a run that loses the event cannot be salvaged, so a failure is ignored. */
static void keep_first(struct journal *journal, const char *run, const char *body)
{
	AUTO(err_freep) struct err *ignored = NULL;

	(void)!journal->ops->first_keep(journal->store, run, body, &ignored);
}

int journal_append(struct journal *journal, const char *run, const struct event *ev,
		   struct err **err)
{
	json_auto_t *row = event_encode(run, ev);
	AUTO(auto_free) char *body = NULL;
	struct chain chain;
	int appended;

	if (journal_find_link(journal, run, ev->seq, &chain, err) < 0)
		return -1;
	body = chain_seal(&chain, row);
	if (ev->seq == 1)
		keep_first(journal, run, body);
	appended = journal->ops->append(journal->store, run, ev->seq, body, err);
	if (appended <= 0)
		return appended;
	journal_position_in(journal, run)->whole |= ev->seq == 1;
	chain_begin(&journal->at.chain, row, body, strlen(body));
	json_decref(journal->appended);
	/* A number is written with 15 digits, so it reads as another one than was given. */
	journal->appended = json_loads(body, 0, NULL);
	if (journal->ops->compact && (ev->kind == EV_RUN_ENDED || ev->kind == EV_DRIVER_LEFT))
		journal->ops->compact(journal->store, run, ev->seq);
	return 1;
}

json_t *journal_appended(const struct journal *journal)
{
	return journal->appended;
}

int journal_contradicts(const struct journal *journal, const char *run, int64_t seq,
			struct err **err)
{
	err_set(err, EXIT_REFUSED,
		"event %lld of run %s in '%s' can be neither written nor read: the store reports "
		"that the event exists, but does not return it",
		(long long)seq, run, journal_url(journal));
	return err_hint(
		err, "keep the state in another place with --state; this store cannot be trusted");
}

/* ---- reading ---------------------------------------------------------------------- */

struct journal_reading {
	struct journal *journal;
	journal_fn fn;
	void *arg;
	const char *run;
	int64_t from; /* number of the first event that fn gets */
	struct chain chain;
	bool anchored; /* the position in the chain is known; else the first row gives it */
	bool stopped;  /* by fn, with 1 */
};

/* Checks the next event and hands it on; the reading is behind it then. */
static enum rows pass_event(struct journal_reading *reading, json_t *row, const char *body,
			    size_t len, struct err **err)
{
	struct chain chain = reading->chain;
	struct event ev;
	int known = chain_go_on(&chain, reading->run, row, body, len, err);
	int answer;

	if (known == 0)
		known = event_decode(row, &ev, err);
	if (known < 0)
		return ROWS_DAMAGED;
	reading->chain = chain;
	answer = reading->fn(reading->arg, known ? &ev : NULL, row, err);
	reading->stopped = answer > 0;
	return (enum rows)answer;
}

/* Takes the event before the first, which gives the position in the chain. */
static enum rows take_anchor(struct journal_reading *reading, int64_t seq, const json_t *row,
			     const char *body, size_t len, struct err **err)
{
	chain_begin(&reading->chain, row, body, len);
	reading->anchored = reading->chain.seq == reading->from - 1 && seq == reading->from - 1;
	if (reading->anchored)
		return ROWS_ON;
	fail_missing(reading->journal, reading->run, reading->from - 1, seq, err);
	return ROWS_FAIL;
}

static enum rows read_row(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct journal_reading *reading = arg;
	json_auto_t *row = NULL;

	if (reading->anchored && seq > reading->chain.seq + 1) {
		fail_missing(reading->journal, reading->run, reading->chain.seq + 1, seq, err);
		return ROWS_FAIL;
	}
	if (!body || len == 0) {
		err_set(err, EXIT_REFUSED, body ? "empty" : "not an event");
		return ROWS_DAMAGED;
	}
	if (js_parse(body, len, "it", &row, err) < 0)
		return ROWS_DAMAGED;
	return reading->anchored ? pass_event(reading, row, body, len, err)
				 : take_anchor(reading, seq, row, body, len, err);
}

/* Looks for events behind the end. Rows may have been appended since it was read: then they are
 * read, too. Done once, because it can cost a listing. */
static int read_behind_end(struct journal *journal, struct journal_reading *reading,
			   struct err **err)
{
	for (;;) {
		int64_t end = reading->chain.seq + 1, next = 0;
		int found = journal->ops->next(journal->store, reading->run, end, &next, err);

		if (found <= 0)
			return found;
		if (journal->ops->rows(journal->store, reading->run, end, read_row, reading, err) <
		    0)
			return -1;
		if (reading->stopped)
			return 0;
		if (reading->chain.seq + 1 == end)
			return fail_missing(journal, reading->run, end, next, err);
	}
}

int journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn, void *arg,
		 struct err **err)
{
	struct journal_reading reading = {
		.journal = journal, .fn = fn, .arg = arg, .run = run, .from = from
	};
	struct journal_position *at;

	if (!journal->store)
		return 0;
	at = journal_position_in(journal, run);
	if (from <= 1)
		reading.anchored = true;
	else if (at->chain.seq == from - 1) {
		reading.chain = at->chain;
		reading.anchored = true;
	}
	if (journal->ops->rows(journal->store, run, reading.anchored ? from : from - 1, read_row,
			       &reading, err) < 0)
		return -1;
	if (!reading.anchored) /* all rows come before `from` */
		return 0;
	if (!reading.stopped && !at->whole && read_behind_end(journal, &reading, err) < 0)
		return -1;
	/* `fn` may have asked for another run. */
	at = journal_position_in(journal, run);
	at->whole |= !reading.stopped;
	if (reading.chain.seq > at->chain.seq)
		at->chain = reading.chain;
	return 0;
}

int journal_forget(struct journal *journal, const char *run, struct err **err)
{
	journal->at = (struct journal_position){ 0 };
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

int journal_each(struct journal *journal, journal_run_fn fn, void *arg, struct err **err)
{
	return journal->store ? journal->ops->runs(journal->store, fn, arg, err) : 0;
}

static int add_run(void *arg, const char *run, const char *head, struct err **err)
{
	(void)head;
	(void)err;
	json_array_append_new(arg, json_string(run));
	return 0;
}

int journal_runs(struct journal *journal, json_t *ret, struct err **err)
{
	return journal_each(journal, add_run, ret, err);
}

struct resolution {
	const char *ref;
	char found[JOURNAL_RUN_MAX], other[JOURNAL_RUN_MAX];
	int matches;
	bool exact; /* the reference was a whole id */
};

static int consider_runs(struct journal *journal, struct resolution *r, struct err **err)
{
	bool last = strcmp(r->ref, "@last") == 0;
	json_auto_t *runs = json_array();
	int result = journal_runs(journal, runs, err);

	for (size_t i = 0; i < json_array_size(runs); i++) {
		const char *run = json_string_value(json_array_get(runs, i));

		r->exact |= strcmp(r->ref, run) == 0;
		if (!last && !text_starts(run, r->ref))
			continue;
		memcpy(r->other, r->found, sizeof r->other);
		snprintf(r->found, sizeof r->found, "%s", run);
		r->matches = last ? 1 : r->matches + 1;
	}
	return result;
}

static enum rows set_found(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	(void)seq;
	(void)body;
	(void)len;
	(void)err;
	*(bool *)arg = true;
	return ROWS_STOP;
}

/* Looks the reference up as a whole id, which needs no listing of the runs. */
static int find_exactly(struct journal *journal, const char *ref, bool *ret, struct err **err)
{
	*ret = false;
	if (!journal->store || !text_run_id_valid(ref))
		return 0;
	return journal->ops->rows(journal->store, ref, 1, set_found, ret, err);
}

int journal_resolve(struct journal *journal, const char *ref, char run[JOURNAL_RUN_MAX],
		    struct err **err)
{
	struct resolution r = { .ref = ref };

	if (find_exactly(journal, ref, &r.exact, err) < 0)
		return -1;
	/* In a damaged journal some runs may be unknown: that matters if the wanted run is not
	 * found, or is the newest. */
	if (!r.exact && consider_runs(journal, &r, err) < 0) {
		if (!(*err)->damage || strcmp(ref, "@last") == 0 || (!r.exact && r.matches != 1))
			return -1;
		err_freep(err);
	}
	if (r.exact) {
		snprintf(run, JOURNAL_RUN_MAX, "%s", ref);
		return 0;
	}
	if (ref[0] == '\0' || r.matches == 0) {
		err_set(err, EXIT_NOT_FOUND, "no run '%s' in '%s'", ref, journal->url);
		return err_hint(err, "'stoker list' shows all runs");
	}
	if (r.matches > 1) {
		err_set(err, EXIT_USAGE,
			"'%s' is the beginning of %d run ids, among them %s and %s", ref, r.matches,
			r.other, r.found);
		return err_hint(err, "give more characters of the id");
	}
	memcpy(run, r.found, JOURNAL_RUN_MAX);
	return 0;
}
