/*
 * Shared by the parts of the journal in SQLite: errors, the end of a connection, single statements,
 * and the search for runs. Calls none of the other parts; see journal_sqlite_internal.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/run/journal/end_mark.h"
#include "jobs/run/journal/journal_sqlite_internal.h"
#include "jobs/run/journal/lease_internal.h"

/* SQLite keeps no errno of a commit that failed. */
static int errno_of(sqlite3 *db, int code)
{
	int os_errno = sqlite3_system_errno(db);

	switch (code & 0xff) {
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_IOERR:
		return os_errno ? os_errno : EIO;
	default:
		return os_errno;
	}
}

/* The cure of a file that cannot be read, written or opened. */
static const char *io_hint(int os_errno)
{
	switch (os_errno) {
	case ENOSPC:
	case EDQUOT:
		return "free space on that file system, then run the command again; "
		       "journalled events are not lost";
	case EMFILE:
	case ENFILE:
		return "close programs or raise the limit of open files ('ulimit -n'), then run "
		       "the command again";
	case EACCES:
	case EPERM:
	case EROFS:
		return "make the folder writable, or choose another with --state";
	default:
		return "see to that disk or its server (the kernel's log tells), then run the "
		       "command again; journalled events are not lost";
	}
}

int journal_sqlite_fail(struct err **err, struct sqlite_store *store, const char *doing)
{
	int code = store->db ? sqlite3_extended_errcode(store->db) : SQLITE_NOMEM;
	const char *why = store->db ? sqlite3_errmsg(store->db) : "out of memory";
	bool busy = (code & 0xff) == SQLITE_BUSY;
	int os_errno = store->db ? errno_of(store->db, code) : 0;

	store->sick = !busy && (code & 0xff) != SQLITE_FULL;
	err_set(err, busy ? EXIT_UNREACHABLE : EXIT_REFUSED, "cannot %s '%s': %s", doing,
		store->path, why);
	if (!busy)
		(*err)->os_errno = os_errno;
	switch (code & 0xff) {
	case SQLITE_BUSY:
		return err_hint(
			err,
			"another process has been writing to the journal for %d seconds; continue "
			"or end that process ('fuser' names it), then run the command again",
			SQLITE_BUSY_WAIT_MS / 1000);
	case SQLITE_FULL:
		return err_hint(err, "%s", io_hint(ENOSPC));
	case SQLITE_IOERR:
		return err_hint(err, "%s", io_hint(os_errno));
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return err_hint(err, "%s", io_hint(EACCES));
	case SQLITE_CANTOPEN:
		if (os_errno != EMFILE && os_errno != ENFILE)
			os_errno = EACCES;
		return err_hint(err, "%s", io_hint(os_errno));
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		err_damage(err);
		return err_hint(err, "restore the damaged file from a copy, or continue a run from "
				     "what is left with 'stoker resume RUN --salvage', or keep it "
				     "and choose another folder with --state");
	default:
		return -1;
	}
}

void journal_sqlite_close(void *opened)
{
	struct sqlite_store *store = opened;

	sqlite3_finalize(store->append);
	/* A close waits for nobody: the next one to open the database brings in what is in its log.
	 */
	if (store->db)
		sqlite3_busy_handler(store->db, NULL, NULL);
	sqlite3_close(store->db);
	free(store->dir);
	free(store->path);
	free(store);
}

void journal_sqlite_autoclose(struct sqlite_store **store)
{
	if (*store)
		journal_sqlite_close(*store);
}

/* --- statements --- */

void journal_sqlite_query(sqlite3 *db, const char *sql, char *ret, size_t size)
{
	sqlite3_stmt *stmt = NULL;

	ret[0] = '\0';
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_text(stmt, 0))
		snprintf(ret, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
}

sqlite3_stmt *journal_sqlite_prepare(struct sqlite_store *store, const char *sql, const char *run,
				     const char *doing, struct err **err)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
		journal_sqlite_fail(err, store, doing);
		return NULL;
	}
	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	return stmt;
}

int journal_sqlite_step(struct sqlite_store *store, sqlite3_stmt *stmt, const char *doing,
			struct err **err)
{
	int code = sqlite3_step(stmt);

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return journal_sqlite_fail(err, store, doing);
	return code == SQLITE_ROW;
}

static int change_rows(struct sqlite_store *store, sqlite3_stmt *stmt, struct err **err)
{
	int done = journal_sqlite_step(store, stmt, "write to", err);

	sqlite3_finalize(stmt);
	return done;
}

int journal_sqlite_put(struct sqlite_store *store, const char *sql, const struct sqlite_row *row,
		       struct err **err)
{
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, row->run, "write to", err);

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 2, row->seq);
	if (row->is_text)
		sqlite3_bind_text(stmt, 3, row->bytes, (int)row->len, SQLITE_STATIC);
	else
		sqlite3_bind_blob64(stmt, 3, row->bytes, row->len, SQLITE_STATIC);
	return change_rows(store, stmt, err);
}

int journal_sqlite_delete(struct sqlite_store *store, const char *sql, const char *run,
			  struct err **err)
{
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "write to", err);

	return stmt ? change_rows(store, stmt, err) : -1;
}

/* --- runs --- */

/* The statements of a search, each prepared once for all runs. */
struct journal_sqlite_search {
	struct sqlite_store *store;
	struct begun *begun;
	sqlite3_stmt *next, *first, *from;
	sqlite3_stmt *summary; /* at the next summary in the order of ids; NULL: none is left */
	struct begun lost;     /* runs that only their folders show */
	bool any;              /* any folder of a run counts */
	struct sb at;          /* the newest id, whole: a foreign row may have any */
	char following[JOURNAL_RUN_MAX]; /* the run after the one just added; "": not known */
};

static void search_release(struct journal_sqlite_search *search)
{
	sqlite3_finalize(search->next);
	sqlite3_finalize(search->first);
	sqlite3_finalize(search->from);
	sqlite3_finalize(search->summary);
	begun_release(&search->lost);
	sb_release(&search->at);
}

/* Summaries that cannot be read are none: whoever reads their runs is told. */
static void next_summary(struct journal_sqlite_search *search)
{
	AUTO(err_freep) struct err *unreadable = NULL;

	if (journal_sqlite_step(search->store, search->summary, "read", &unreadable) > 0)
		return;
	sqlite3_finalize(search->summary);
	search->summary = NULL;
}

/* Goes on to the summary of the run; false if it has none. */
static bool find_summary(struct journal_sqlite_search *search, const char *run)
{
	for (; search->summary; next_summary(search)) {
		const char *of = (const char *)sqlite3_column_text(search->summary, 0);
		int order = strcmp(of ? of : "", run);

		if (order >= 0)
			return order == 0;
	}
	return false;
}

static int search_open(struct journal_sqlite_search *search, struct err **err)
{
	static const char next[] = "SELECT run FROM event WHERE run>?1 ORDER BY run LIMIT 1";
	static const char first[] = "SELECT body FROM event WHERE run=?1 ORDER BY seq LIMIT 1";
	static const char from[] = "SELECT run, seq, body FROM event WHERE (run, seq)>=(?1, ?2)"
				   " ORDER BY run, seq LIMIT 2";

	search->next = journal_sqlite_prepare(search->store, next, "", "read", err);
	search->first =
		search->next ? journal_sqlite_prepare(search->store, first, "", "read", err) : NULL;
	search->from =
		search->first ? journal_sqlite_prepare(search->store, from, "", "read", err) : NULL;
	if (search->from && journal_sqlite_has_summaries(search->store))
		search->summary = journal_sqlite_prepare(
			search->store, SQLITE_SUMMARY_HEAD " ORDER BY run", "", "read", err);
	if (search->summary)
		next_summary(search);
	return *err ? -1 : 0;
}

/* Steps to the first row of a statement about a run. Returns 1, 0, -1. */
static int look_up(struct journal_sqlite_search *search, sqlite3_stmt *stmt, const char *run,
		   struct err **err)
{
	sqlite3_reset(stmt);
	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	return journal_sqlite_step(search->store, stmt, "read", err);
}

/* Notes the run of the row behind the last event of this one. False if the row is of this run. */
static bool note_following(struct journal_sqlite_search *search, const char *run, struct err **err)
{
	int found = journal_sqlite_step(search->store, search->from, "read", err);
	const char *id = found > 0 ? (const char *)sqlite3_column_text(search->from, 0) : NULL;

	if (!id || strcmp(id, run) <= 0)
		return found == 0;
	if (strlen(id) < sizeof search->following)
		snprintf(search->following, sizeof search->following, "%s", id);
	return true;
}

/* Adds the run by its summary, if that ends with its newest event. */
static bool add_summarised(struct journal_sqlite_search *search, const char *run)
{
	AUTO(err_freep) struct err *unreadable = NULL;
	AUTO(summary_release) struct run_summary summary = SUMMARY_INIT;

	if (!find_summary(search, run))
		return false;
	journal_sqlite_summary_head(search->summary, &summary);
	if (summary.head.len == 0 || !summary_is_whole(&summary, run))
		return false;
	sqlite3_reset(search->from);
	sqlite3_bind_int64(search->from, 2, summary.seq);
	if (look_up(search, search->from, run, &unreadable) <= 0 ||
	    strcmp(run, (const char *)sqlite3_column_text(search->from, 0)) != 0 ||
	    !summary_ends_with(&summary, sqlite3_column_int64(search->from, 1),
			       (const char *)sqlite3_column_text(search->from, 2),
			       (size_t)sqlite3_column_bytes(search->from, 2)) ||
	    !note_following(search, run, &unreadable))
		return false;
	begun_add_at(search->begun, run, summary.begun, summary.head.text);
	return true;
}

/* Goes on to the next run in the order of ids; "" is one whose id is too long. Returns 1, 0, -1. */
static int next_run(struct journal_sqlite_search *search, char run[JOURNAL_RUN_MAX],
		    struct err **err)
{
	const char *id = search->following;
	int found = 1;

	if (!*id) {
		found = look_up(search, search->next, search->at.len ? search->at.text : "", err);
		id = found > 0 ? (const char *)sqlite3_column_text(search->next, 0) : NULL;
	}
	/* A damaged index may give the same run twice. */
	if (!id || (search->at.len > 0 && strcmp(id, search->at.text) <= 0))
		return found < 0 ? -1 : 0;
	sb_clear(&search->at);
	sb_adds(&search->at, id);
	snprintf(run, JOURNAL_RUN_MAX, "%s", strlen(id) < JOURNAL_RUN_MAX ? id : "");
	search->following[0] = '\0';
	return 1;
}

/* Adds the next run in the order of ids. Returns 1, 0, -1. */
static int add_run_after(struct journal_sqlite_search *search, char run[JOURNAL_RUN_MAX],
			 struct err **err)
{
	int found = next_run(search, run, err);
	char at[UTC_TEXT];

	if (found <= 0)
		return found;
	if (!text_run_id_valid(run) || add_summarised(search, run))
		return 1;
	found = look_up(search, search->first, run, err);
	if (found > 0) {
		begun_time_of((const char *)sqlite3_column_text(search->first, 0),
			      (size_t)sqlite3_column_bytes(search->first, 0), at);
		begun_add_at(search->begun, run, at, NULL);
	}
	return found;
}

/* Most folders are those of runs that were found: they cost no look into them. */
static void add_lost(void *arg, const char *run)
{
	struct journal_sqlite_search *search = arg;
	const char *dir = search->store->dir;
	AUTO(auto_free) char *lock = NULL;

	if (begun_has(search->begun, run))
		return;
	lock = mem_format("%s/runs/%s/" LEASE_LOCK, dir, run);
	if (fs_exists(lock) && (search->any || end_mark_read(dir, run) > 0))
		begun_add_at(&search->lost, run, "", NULL);
}

int journal_sqlite_find_runs(struct sqlite_store *store, struct begun *ret, struct err **err)
{
	AUTO(search_release)
	struct journal_sqlite_search search = { .store = store, .begun = ret, .at = SB_INIT };
	char run[JOURNAL_RUN_MAX] = "";
	int found = search_open(&search, err);

	while (found >= 0 && (found = add_run_after(&search, run, err)) > 0)
		;
	if (found < 0 && !(*err)->damage)
		return -1;
	search.any = found < 0;
	damage_each_run(store->dir, NULL, add_lost, &search);
	for (size_t i = 0; i < search.lost.count; i++)
		begun_add_at(ret, search.lost.list[i].run, "", NULL);
	return found;
}
