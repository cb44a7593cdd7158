/*
 * Shared by the parts of the journal in SQLite: journal_sqlite.c (the store's operations) calls
 * journal_sqlite_open.c and journal_sqlite_damage.c (taking a run out of a damaged file), and all
 * call journal_sqlite_core.c and journal_sqlite_summary.c. Included by these alone; sqlite3.h is
 * included nowhere else.
 */
#ifndef STK_RUN_JOURNAL_JOURNAL_SQLITE_INTERNAL_H
#define STK_RUN_JOURNAL_JOURNAL_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "jobs/run/journal/begun.h"
#include "jobs/run/journal/summary.h"

#define SQLITE_BUSY_WAIT_MS 10000

#define SQLITE_EVENT_TABLE                                                                         \
	"CREATE TABLE IF NOT EXISTS event(run TEXT NOT NULL, seq INTEGER NOT NULL,"                \
	" body TEXT NOT NULL, PRIMARY KEY(run, seq)) WITHOUT ROWID"

struct sqlite_store {
	sqlite3 *db;
	bool was_busy; /* the previous write timed out waiting for the lock */
	bool writes;   /* opened for writing */
	/* A connection that met a disk error may go on failing from cached state: the next call
	 * opens a new one. */
	bool sick;
	bool renewed;       /* made anew beside folders of runs, on request */
	bool pages_damaged; /* not every row could be read */
	bool is_copy; /* or the file opened as immutable: writes of other processes are not seen */
	sqlite3_stmt *append;
	char *dir, *path;
};

/* --- journal_sqlite_core.c --- */

void journal_sqlite_close(void *opened); /* as journal_ops.close */
void journal_sqlite_autoclose(struct sqlite_store **store);

/* Sets an error with SQLite's message. Returns -1. */
int journal_sqlite_fail(struct err **err, struct sqlite_store *store, const char *doing);

/* Returns in `ret` the first value of a statement as text; empty on failure. */
void journal_sqlite_query(sqlite3 *db, const char *sql, char *ret, size_t size);

/* Prepares a statement about a run, which is ?1 in it. NULL with an error. */
sqlite3_stmt *journal_sqlite_prepare(struct sqlite_store *store, const char *sql, const char *run,
				     const char *doing, struct err **err);
/* Returns 1 with a row, 0 if the statement is done, -1 with an error. */
int journal_sqlite_step(struct sqlite_store *store, sqlite3_stmt *stmt, const char *doing,
			struct err **err);

struct sqlite_row {
	const char *run;
	int64_t seq;
	const void *bytes;
	size_t len;
	bool is_text; /* stored as text, else as a blob */
};

/* Carries out a statement that writes a row: ?1 is its run, ?2 the number, ?3 the bytes. */
int journal_sqlite_put(struct sqlite_store *store, const char *sql, const struct sqlite_row *row,
		       struct err **err);
/* Carries out a statement that deletes rows of a run: ?1. */
int journal_sqlite_delete(struct sqlite_store *store, const char *sql, const char *run,
			  struct err **err);

/* Finds all runs. -1 with err->damage: `ret` has the readable ones, and those that have a
 * folder. */
int journal_sqlite_find_runs(struct sqlite_store *store, struct begun *ret, struct err **err);

/* --- journal_sqlite_summary.c --- */

/* The members of all summaries but line and rest. */
#define SQLITE_SUMMARY_HEAD                                                                        \
	"SELECT run, seq, link, begun, line_sum, rest_sum, sum, head FROM summary"
bool journal_sqlite_has_summaries(struct sqlite_store *store);
/* Reads these members from a row. */
void journal_sqlite_summary_head(sqlite3_stmt *stmt, struct run_summary *ret);
/* Functions for journal_ops.summarise and .summary. */
int journal_sqlite_summarise(void *opened, const char *run, const struct run_summary *summary,
			     struct err **err);
int journal_sqlite_summary(void *opened, const char *run, struct run_summary *ret,
			   struct err **err);
/* Nothing is done if there are none. */
int journal_sqlite_drop_summary(struct sqlite_store *store, const char *run, struct err **err);

/* --- journal_sqlite_open.c --- */

/* The function for journal_ops.open; `*ret` is NULL if there is nothing to read. */
int journal_sqlite_open(const char *dir, enum journal_mode mode, void **ret, struct err **err);
/* Opens a new connection if the old one is sick. */
int journal_sqlite_heal(struct sqlite_store *store, struct err **err);

/* --- journal_sqlite_damage.c --- */

/* Copies, where no row of the run can be deleted for damaged pages, the readable rows of all other
 * runs into a new table, in one transaction; the old table stays in the file under another name. If
 * a run cannot be read to its end, its first missing event is inserted as an empty one, so that it
 * stays damaged. */
int journal_sqlite_set_aside(struct sqlite_store *store, const char *run, struct err **err);

/* Functions for journal_ops.put_aside and .restart. With damaged pages the run's good events go
 * into the new table, too. */
int journal_sqlite_put_aside(void *opened, const char *run, int64_t good, int64_t *ret_count,
			     struct err **err);
int journal_sqlite_restart(void *opened, const char *run, int64_t good, const char *first,
			   const char *body, bool again, struct err **err);

/* Gives a file that is no database any more, and its log, the first free name
 * "journal.db.damaged-<n>", under a lock of the folder. `lost` says whether it still is one.
 * EXIT_BUSY while a run of the folder is driven. Returns 1 if it was renamed, 0 if not, -1. */
int journal_sqlite_move_aside(struct sqlite_store *store, bool (*lost)(struct sqlite_store *store),
			      struct err **err);

#endif
