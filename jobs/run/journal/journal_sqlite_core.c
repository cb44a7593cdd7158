/*
 * Shared by the parts of the journal in SQLite: errors, the end of a connection, single statements,
 * and the search for runs. Calls none of the other parts; see journal_sqlite_internal.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Finds the next run in the order of ids, with its first event. Returns 1, 0, -1. */
static int add_run_after(struct sqlite_store *store, char run[JOURNAL_RUN_MAX], struct begun *begun,
			 struct err **err)
{
	static const char sql[] =
		"SELECT run, body FROM event WHERE run>?1 ORDER BY run, seq LIMIT 1";
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	int found = stmt ? journal_sqlite_step(store, stmt, "read", err) : -1;
	const char *id = found > 0 ? (const char *)sqlite3_column_text(stmt, 0) : NULL;

	/* A damaged index may give the same run twice. */
	if (id && strcmp(id, run) <= 0)
		found = 0;
	else if (id) {
		begun_add(begun, id, (const char *)sqlite3_column_text(stmt, 1),
			  (size_t)sqlite3_column_bytes(stmt, 1));
		snprintf(run, JOURNAL_RUN_MAX, "%s", id);
	}
	sqlite3_finalize(stmt);
	return found;
}

struct journal_sqlite_lost {
	const struct sqlite_store *store;
	struct begun *begun;
	bool any; /* any folder of a run counts */
};

static void add_lost(void *arg, const char *run)
{
	const struct journal_sqlite_lost *lost = arg;

	if (lost->any || end_mark_read(lost->store->dir, run) > 0)
		begun_add(lost->begun, run, NULL, 0);
}

int journal_sqlite_find_runs(struct sqlite_store *store, struct begun *ret, struct err **err)
{
	struct journal_sqlite_lost lost = { .store = store, .begun = ret };
	char run[JOURNAL_RUN_MAX] = "";
	int found;

	while ((found = add_run_after(store, run, ret, err)) > 0)
		;
	if (found < 0 && !(*err)->damage)
		return -1;
	lost.any = found < 0;
	damage_each_run(store->dir, LEASE_LOCK, add_lost, &lost);
	return found;
}
