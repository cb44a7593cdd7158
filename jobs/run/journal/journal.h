/*
 * The journal: the append-only list of each run's events, from which all other state is derived.
 *
 * (run, seq) is unique: an append with a taken number does not happen. An append that returned is
 * durable, also through a power cut. Readers never block writers. One store is one row of ops; all
 * pass the same tests.
 *
 * Each event carries a sum over itself and all before it (chain.h). An event that is not what was
 * written, or that is missing before another one, is damage of its run: it is reported (damage.h),
 * nothing behind it is handed out, and no other run is affected. The sums do not show events that
 * are missing at the end.
 *
 * run/journal: the durable record of a run: journals in SQLite and in objects, the lease, replay,
 * damage, and forgetting a run. No decision about a run is made here.
 */
#ifndef STK_RUN_JOURNAL_JOURNAL_H
#define STK_RUN_JOURNAL_JOURNAL_H

#include "jobs/base/sb.h"
#include "jobs/run/journal/damage.h"
#include "jobs/run/journal/event_json.h"

struct journal;

#define JOURNAL_RUN_MAX 41 /* bytes of a run id with its NUL */

enum journal_mode {
	JOURNAL_READ,  /* nothing is created or changed; an absent store reads as empty */
	JOURNAL_WRITE, /* created if absent (0700) */
	/* the same; and what cannot be the store of a journal any more (an empty database, no
	 * database beside folders of runs, no mark) is set aside under another name, unless a run
	 * in it is being driven (EXIT_BUSY) */
	JOURNAL_SALVAGE,
	/* as JOURNAL_WRITE, but of remote objects, where a look is a request, nothing is read or
	 * created before journal_begin(): until then they read as empty */
	JOURNAL_LATER,
};

/* Opens the journal at `url`: a path, `sqlite:PATH`, `dir:PATH` or `s3://BUCKET/PREFIX`. NULL means
 * $STOKER_STATE, else $XDG_STATE_HOME/stoker, else ~/.local/state/stoker.
 *
 * sqlite keeps all runs in one database and must lie on a local disk; dir and s3 keep one object an
 * event and may be shared by machines. A plain path has the kind that is there already, else dir on
 * a network file system, else sqlite. Asking for a kind other than the one present is an error
 * (EXIT_REFUSED). */
int journal_open(const char *url, enum journal_mode mode, struct journal **ret, struct err **err);
/* Opens a journal of JOURNAL_LATER for good; another one is open already. */
int journal_begin(struct journal *journal, struct err **err);
/* JOURNAL_READ for a caller that can continue without: remote objects that cannot be read, for want
 * of a network, credentials or rights, count as empty, and *ret_why says why. */
int journal_open_try(const char *url, struct journal **ret, struct err **ret_why, struct err **err);
void journal_freep(struct journal **journal);

/* The name that opens it, also in another process of this machine: the absolute directory, or the
 * URL of the prefix without a slash at its end. */
const char *journal_url(const struct journal *journal);
/* The absolute folder on this machine for files that belong to the journal (output of a background
 * driver, digests of source trees); for a directory journal the directory itself. May not exist
 * yet. */
const char *journal_dir(const struct journal *journal);
/* True if every look at it is a request to a service, so callers should look less often. */
bool journal_is_remote(const struct journal *journal);

/* The object store beneath the journal, where its leases are kept too; NULL if it lies on a local
 * disk. Borrowed. */
struct store;
struct store *journal_store(const struct journal *journal);

/* Appends ev with the number ev->seq. Returns 1 if appended, 0 if the number is taken, -1 with an
 * error. */
int journal_append(struct journal *journal, const char *run, const struct event *ev,
		   struct err **err);
/* The newest event appended here, as a reader would get it; borrowed until the next append. */
json_t *journal_appended(const struct journal *journal);

/* Sets the error for a contradiction: append says that the number is taken, and read shows no such
 * event. Returns -1. */
int journal_contradicts(const struct journal *journal, const char *run, int64_t seq,
			struct err **err);

/* Reads the events of a run from `from` on, in order. `row` is the event as JSON, also for kinds of
 * later versions (`ev` is NULL then). Both are borrowed until fn returns; fn returns 0 to go on, 1
 * to stop, -1 to fail. */
typedef int (*journal_fn)(void *arg, const struct event *ev, json_t *row, struct err **err);
int journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn, void *arg,
		 struct err **err);
/* Reads what is left of a damaged run, without proof. Unreadable events are skipped; only fn can
 * fail. */
int journal_salvage(struct journal *journal, const char *run, journal_fn fn, void *arg,
		    struct err **err);

/* Looks for damage of a run. Returns 1 with the number of the last good event (0: none) and the
 * error that a reader gets; 0 if the journal of the run is whole; -1. */
int journal_find_damage(struct journal *journal, const char *run, int64_t *ret_good,
			struct err **ret_damage, struct err **err);

/* True if the copy of a run's first event is there: all else of the run may be lost. */
bool journal_first_is_kept(struct journal *journal, const char *run);

/* Ends the damage: copies all that lies behind the last good event to `runs/<run>/damaged/` beside
 * the journal, one file or object for each, named by its number and the begin of its SHA-256; then
 * replaces it by `ev`, to which its number, the place (url) and the count (put_aside) are added. If
 * event 1 is lost, it is restored from its copy, EXIT_REFUSED if that is lost too. The caller holds
 * the lease. Until this returns 0 the run stays damaged, and the call can be repeated. */
int journal_set_aside(struct journal *journal, const char *run, int64_t good, struct event *ev,
		      struct err **err);

/* Keeps a snapshot derived from the events of a run up to `seq`, so that it need not be derived
 * again: one a run, the newest. It may be lost at any time, and is not checked here. Returns 1, or
 * 0 if the store keeps no snapshots (keep) or has none of the run (kept). */
int journal_keep(struct journal *journal, const char *run, int64_t seq, const void *bytes,
		 size_t len, struct err **err);
int journal_kept(struct journal *journal, const char *run, int64_t *ret_seq, struct sb *ret,
		 struct err **err);

/* Calls `fn` for all runs, oldest first. `head` is that of the run's summary (summary.h), if that
 * ends with the newest event of the run and has one; else NULL. -1 with err->damage: some runs
 * could not be found, and the others were handed out. */
typedef int (*journal_run_fn)(void *arg, const char *run, const char *head, struct err **err);
int journal_each(struct journal *journal, journal_run_fn fn, void *arg, struct err **err);
/* The same; appends the ids to an array. */
int journal_runs(struct journal *journal, json_t *ret, struct err **err);

/* Keeps a summary of the run's events up to summary->seq, which were read or written just now; it
 * takes the place of an earlier one, and its link, time and sums are set here. Returns 1, or 0 if
 * the store keeps none. The caller holds the lease, or the run has ended. */
struct run_summary;
int journal_summarise(struct journal *journal, const char *run, struct run_summary *summary,
		      struct err **err);
/* Returns 1 with the summary of the run if there is a whole one whose event is in the journal; 0 if
 * not; -1. The events before are not looked at. */
int journal_summary(struct journal *journal, const char *run, struct run_summary *ret,
		    struct err **err);
/* Returns 1 if all events up to `seq` are proved to be those that were written; 0 if their bytes
 * alone do not prove it: then journal_read() tells; -1. Parses nothing. */
int journal_prove(struct journal *journal, const char *run, int64_t seq, struct err **err);

/* Resolves what the user wrote (an id, a unique prefix of one, or @last) to an id. An unknown
 * reference is an error (EXIT_NOT_FOUND); an ambiguous one too (EXIT_USAGE), which names
 * candidates. */
int journal_resolve(struct journal *journal, const char *ref, char run[JOURNAL_RUN_MAX],
		    struct err **err);

/* Takes all events of a run out of the journal, which then has no such run. The caller holds the
 * lease, and removes the rest beneath `runs/<run>/` in journal_dir(). */
int journal_forget(struct journal *journal, const char *run, struct err **err);

/* Return value of a reader's row callback. */
enum rows {
	ROWS_FAIL = -1, /* with an error */
	ROWS_ON,
	ROWS_STOP,
	ROWS_DAMAGED, /* with an error; the store adds the place, or takes another copy */
};
/* `body` is the text of event `seq`; NULL if something else is in its place. */
typedef enum rows (*journal_row_fn)(void *arg, int64_t seq, const char *body, size_t len,
				    struct err **err);

/* The operations of a store. */
struct journal_ops {
	const char *scheme;
	/* Opens the store in `where`: the directory, or for objects the URL of the store. */
	int (*open)(const char *where, enum journal_mode mode, void **ret, struct err **err);
	void (*close)(void *store);
	int (*append)(void *store, const char *run, int64_t seq, const char *body,
		      struct err **err);
	int (*rows)(void *store, const char *run, int64_t from, journal_row_fn fn, void *arg,
		    struct err **err);
	/* Finds the first event number from `from` on. Returns 1, 0 if absent, -1. */
	int (*next)(void *store, const char *run, int64_t from, int64_t *ret, struct err **err);
	/* The file of an event, for error messages; the caller frees it. */
	char *(*file)(void *store, const char *run, int64_t seq);
	int (*runs)(void *store, journal_run_fn fn, void *arg, struct err **err);
	int (*forget)(void *store, const char *run, struct err **err);
	/* Copies every event behind `good` to the folder damaged/ of the run, and counts them. */
	int (*put_aside)(void *store, const char *run, int64_t good, int64_t *ret_count,
			 struct err **err);
	/* Removes every event behind `good` and appends `body` as the next one; `first`, unless
	 * NULL, takes the place of event 1. The run is whole only afterwards, whatever happens
	 * meanwhile. With `again` the events up to `good` cannot be read where they lie. */
	int (*restart)(void *store, const char *run, int64_t good, const char *first,
		       const char *body, bool again, struct err **err);
	/* Keep, and read, the copy of event 1: 1, 0 if absent, -1. */
	int (*first_keep)(void *store, const char *run, const char *body, struct err **err);
	int (*first_kept)(void *store, const char *run, struct sb *ret, struct err **err);
	/* Called when no event is expected after `last` for a while; may be NULL, may fail. */
	void (*compact)(void *store, const char *run, int64_t last);
	/* both set or both NULL */
	int (*keep)(void *store, const char *run, int64_t seq, const void *bytes, size_t len,
		    struct err **err);
	int (*kept)(void *store, const char *run, int64_t *ret_seq, struct sb *ret,
		    struct err **err);
	/* Write, and read, a sealed summary: 1, 0 if there is none, -1. Both set or both NULL. */
	int (*summarise)(void *store, const char *run, const struct run_summary *summary,
			 struct err **err);
	int (*summary)(void *store, const char *run, struct run_summary *ret, struct err **err);
	struct store *(*objects)(void *store); /* NULL: on no object store */
};

extern const struct journal_ops journal_sqlite, journal_objects;

/* The copy of a run's first event, in its folder. */
#define JOURNAL_FIRST     "created.json"
#define JOURNAL_FIRST_MAX ((size_t)64 << 20)

/* The files that show which kind of journal a folder holds. */
#define JOURNAL_SQLITE_FILE "journal.db"
#define JOURNAL_DIR_MARK    "journal.json"

/* Returns the store of journal_objects over an open `store`, and takes ownership of it. */
void *journal_objects_on(struct store *store);

#endif
