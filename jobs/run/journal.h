/*
 * The journal: the append-only list of each run's events, from which all other
 * state is derived.
 *
 * (run, seq) is unique: an append with a taken number does not happen. An
 * append that returned is durable, also through a power cut. Readers never
 * block writers. One store is one row of ops and one file; all pass the same
 * tests.
 */
#ifndef STK_RUN_JOURNAL_H
#define STK_RUN_JOURNAL_H

#include "jobs/base/sb.h"
#include "jobs/run/event_json.h"

struct journal;

#define JOURNAL_RUN_MAX 41 /* bytes of a run id with its NUL */

enum journal_mode {
	JOURNAL_READ,  /* nothing is created or changed; an absent store reads as empty */
	JOURNAL_WRITE, /* created if need be (0700) */
};

/* `url` says where: a path, `sqlite:PATH`, `dir:PATH` or `s3://BUCKET/PREFIX`. NULL
 * means $STOKER_STATE, else $XDG_STATE_HOME/stoker, else ~/.local/state/stoker.
 *
 * sqlite keeps all runs in one database and must lie on a local disk; dir and s3 keep
 * one object an event and may be shared by machines. A plain path has the kind
 * that is there already, else dir on a network file system, else sqlite. Asking
 * for the kind that is not there is an error (EXIT_REFUSED). */
int journal_open(const char *url, enum journal_mode mode, struct journal **ret, struct err **err);
void journal_freep(struct journal **journal);

/* What it is opened by, also by another process here: the directory, absolute, or the
 * URL of the prefix, without a slash at its end. */
const char *journal_url(const struct journal *journal);
/* The folder on this machine for what goes with it (a background driver's words, digests
 * of source trees), absolute: of a directory that directory. May not be there yet. */
const char *journal_dir(const struct journal *journal);
/* Is every look at it a request to a service? Then look now and then only. */
bool journal_is_far(const struct journal *journal);

/* The object store beneath the journal, which is where its leases are kept too;
 * NULL: it lies on a local disk. Borrowed. */
struct store;
struct store *journal_store(const struct journal *journal);

/* Append ev with the number ev->seq: 1 appended, 0 the number is taken. */
int journal_append(struct journal *journal, const char *run, const struct event *ev,
		   struct err **err);

/* Events of a run from `from` on, in order. `row` is the event as JSON, with
 * the kinds of later versions too (`ev` is NULL then). Both are borrowed until
 * fn returns; fn returns 0 to go on, 1 to stop, -1 to fail. */
typedef int (*journal_fn)(void *arg, const struct event *ev, json_t *row, struct err **err);
int journal_read(struct journal *journal, const char *run, int64_t from, journal_fn fn, void *arg,
		 struct err **err);

/* What somebody derived from the events of a run up to `seq`, so that it need not be
 * derived again: one piece a run, the newest. It may be lost at any time, and is not
 * checked here. Stores that keep none say so by 0 (keep: it was not kept; kept: there
 * is none), else 1. */
int journal_keep(struct journal *journal, const char *run, int64_t seq, const void *bytes,
		 size_t len, struct err **err);
int journal_kept(struct journal *journal, const char *run, int64_t *ret_seq, struct sb *ret,
		 struct err **err);

/* Ids of all runs, oldest first. */
typedef int (*journal_run_fn)(void *arg, const char *run, struct err **err);
int journal_runs(struct journal *journal, journal_run_fn fn, void *arg, struct err **err);

/* What a person wrote (an id, a unique prefix of one, or @last) → id. An
 * unknown or ambiguous one is an error (EXIT_USAGE) that names candidates. */
int journal_resolve(struct journal *journal, const char *ref, char run[JOURNAL_RUN_MAX],
		    struct err **err);

/* Take all events of a run out of the journal, which then knows no such run. The
 * caller has its lease, and removes what else is left beneath `runs/<run>/` in
 * journal_dir(). */
int journal_forget(struct journal *journal, const char *run, struct err **err);

/* What a store implements. `rows` hands out the bodies as text. */
struct journal_ops {
	const char *scheme;
	/* `where`: the directory, or of objects the URL of the store. */
	int (*open)(const char *where, enum journal_mode mode, void **ret, struct err **err);
	void (*close)(void *store);
	int (*append)(void *store, const char *run, int64_t seq, const char *body,
		      struct err **err);
	int (*rows)(void *store, const char *run, int64_t from,
		    int (*fn)(void *arg, const char *body, size_t len, struct err **err), void *arg,
		    struct err **err);
	int (*runs)(void *store, journal_run_fn fn, void *arg, struct err **err);
	int (*forget)(void *store, const char *run, struct err **err);
	/* Nothing is expected behind `last` for a while; may be NULL, may fail. */
	void (*settle)(void *store, const char *run, int64_t last);
	/* both or none */
	int (*keep)(void *store, const char *run, int64_t seq, const void *bytes, size_t len,
		    struct err **err);
	int (*kept)(void *store, const char *run, int64_t *ret_seq, struct sb *ret,
		    struct err **err);
	struct store *(*objects)(void *store); /* NULL: on no object store */
};

extern const struct journal_ops journal_sqlite, journal_objects;

/* The files by which a folder is known to hold a journal of each kind. */
#define JOURNAL_SQLITE_FILE "journal.db"
#define JOURNAL_DIR_MARK    "journal.json"

/* What journal_objects works on: over a store that is open, which it owns then. */
void *journal_objects_on(struct store *store);

#endif
