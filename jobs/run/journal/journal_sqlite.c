/*
 * The journal in SQLite: `journal.db` in the state directory, the default on a
 * local disk.
 *
 * One table, one row an event, its body as JSON text. WAL with
 * synchronous=FULL, read back after it was set: with SQLite's defaults the last
 * acknowledged commit was lost in 39 % of simulated power cuts, with these in
 * none of 664. `user_version` is the format; a newer one is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/end_mark.h"
#include "jobs/run/journal/journal_sqlite_internal.h"

/* A text that only that event has: the quotes of any other text are escaped. */
#define SALVAGED "\"event\":\"journal.salvaged\""

static int sqlite_append(void *opened, const char *run, int64_t seq, const char *body,
			 struct err **err)
{
	struct sqlite_store *store = opened;
	int code;

	if (journal_sqlite_heal(store, err) < 0)
		return -1;
	if (!store->append &&
	    sqlite3_prepare_v3(store->db, "INSERT INTO event(run, seq, body) VALUES(?1, ?2, ?3)",
			       -1, SQLITE_PREPARE_PERSISTENT, &store->append, NULL) != SQLITE_OK)
		return journal_sqlite_fail(err, store, "write to");
	sqlite3_bind_text(store->append, 1, run, -1, SQLITE_STATIC);
	sqlite3_bind_int64(store->append, 2, seq);
	sqlite3_bind_text(store->append, 3, body, -1, SQLITE_STATIC);
	code = sqlite3_step(store->append);
	if (code != SQLITE_DONE && (code & 0xff) != SQLITE_CONSTRAINT)
		journal_sqlite_fail(err, store, "write to");
	store->was_busy = (code & 0xff) == SQLITE_BUSY;
	sqlite3_reset(store->append);
	sqlite3_clear_bindings(store->append);
	if (code == SQLITE_DONE) {
		end_mark_write(store->dir, run, seq);
		return 1;
	}
	return (code & 0xff) == SQLITE_CONSTRAINT ? 0 : -1;
}

/* Says in the error of a file where in the run it cannot be read. Returns -1. */
static int fail_at(const char *run, int64_t after, struct err **err)
{
	bool damage;

	damage = (*err)->damage;
	err_wrap(err, "cannot read the journal of run %s behind event %lld", run, (long long)after);
	return damage ? damage_hint(err, "the file", run) : -1;
}

/* Reads rows from `*seq` + 1 on; `*seq` is then the last one read. */
static enum rows read_rows(struct sqlite_store *store, const char *run, int64_t *seq,
			   journal_row_fn fn, void *arg, struct err **err)
{
	static const char sql[] =
		"SELECT seq, body FROM event WHERE run=?1 AND seq>?2 ORDER BY seq";
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	enum rows answer = ROWS_ON;
	int found = stmt ? 0 : -1;

	if (stmt)
		sqlite3_bind_int64(stmt, 2, *seq);
	while (stmt && answer == ROWS_ON &&
	       (found = journal_sqlite_step(store, stmt, "read", err)) > 0) {
		*seq = sqlite3_column_int64(stmt, 0);
		answer = fn(arg, *seq, (const char *)sqlite3_column_text(stmt, 1),
			    (size_t)sqlite3_column_bytes(stmt, 1), err);
	}
	if (answer == ROWS_ON && found < 0)
		answer = (enum rows)fail_at(run, *seq, err);
	sqlite3_finalize(stmt);
	return answer;
}

/* Sets the error for rows that end at `seq` although more were written. Returns -1. */
static int fail_cut(const struct sqlite_store *store, const char *run, int64_t seq, int64_t end,
		    struct err **err)
{
	err_set(err, EXIT_REFUSED, "missing, like all later events, although %lld were written",
		(long long)end);
	damage_of_event(err, store->path, run, seq + 1);
	return damage_hint(err, "the file and its '-wal'", run);
}

/* True if the run ends with journal.salvaged: the mark of its end may then be of before that. A
 * driver that goes on from there asks engine and workspace in any case, so nothing depends on the
 * mark. */
static bool ends_salvaged(struct sqlite_store *store, const char *run, int64_t seq)
{
	static const char sql[] = "SELECT body FROM event WHERE run=?1 AND seq=?2";
	AUTO(err_freep) struct err *ignored = NULL;
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", &ignored);
	const char *body = NULL;
	bool found;

	if (stmt)
		sqlite3_bind_int64(stmt, 2, seq);
	if (stmt && journal_sqlite_step(store, stmt, "read", &ignored) > 0)
		body = (const char *)sqlite3_column_text(stmt, 0);
	found = body && strstr(body, SALVAGED);
	sqlite3_finalize(stmt);
	return found;
}

static int sqlite_rows(void *opened, const char *run, int64_t from, journal_row_fn fn, void *arg,
		       struct err **err)
{
	struct sqlite_store *store = opened;
	int64_t seq = from - 1, end = 0, before;
	enum rows answer;

	if (journal_sqlite_heal(store, err) < 0)
		return -1;
	/* Events that were written while the rows were read are read, too: only what the mark knew
	 * of before can be missing. */
	do {
		before = end;
		answer = read_rows(store, run, &seq, fn, arg, err);
		if (answer != ROWS_ON || (store->is_copy && from > 1))
			break;
		if (before > seq)
			return ends_salvaged(store, run, seq)
				       ? 0
				       : fail_cut(store, run, seq, before, err);
		end = end_mark_read(store->dir, run);
	} while (end > seq);
	if (answer == ROWS_DAMAGED)
		damage_of_event(err, store->path, run, seq);
	return answer == ROWS_DAMAGED || answer == ROWS_FAIL ? -1 : 0;
}

static int sqlite_next(void *opened, const char *run, int64_t from, int64_t *ret, struct err **err)
{
	struct sqlite_store *store = opened;
	static const char sql[] =
		"SELECT seq FROM event WHERE run=?1 AND seq>=?2 ORDER BY seq LIMIT 1";
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	int found = -1;

	if (stmt) {
		sqlite3_bind_int64(stmt, 2, from);
		found = journal_sqlite_step(store, stmt, "read", err);
	}
	if (found > 0)
		*ret = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return found < 0 ? fail_at(run, from - 1, err) : found;
}

static char *sqlite_file(void *opened, const char *run, int64_t seq)
{
	(void)run;
	(void)seq;
	return mem_copy(((struct sqlite_store *)opened)->path);
}

static int sqlite_runs(void *opened, journal_run_fn fn, void *arg, struct err **err)
{
	AUTO(begun_release) struct begun begun = { 0 };
	AUTO(err_freep) struct err *damage = NULL;

	if (journal_sqlite_find_runs(opened, &begun, &damage) < 0 && !damage->damage) {
		*err = TAKE(damage);
		return -1;
	}
	if (begun_hand_out(&begun, fn, arg, err) < 0)
		return -1;
	*err = TAKE(damage);
	return *err ? -1 : 0;
}

#define KEPT_TABLE                                                                                 \
	"CREATE TABLE IF NOT EXISTS kept(run TEXT PRIMARY KEY, seq INTEGER NOT NULL,"              \
	" state BLOB NOT NULL) WITHOUT ROWID"

/* The table is made by the first call: a database of an earlier version lacks it. */
static int sqlite_keep(void *opened, const char *run, int64_t seq, const void *bytes, size_t len,
		       struct err **err)
{
	struct sqlite_store *store = opened;
	const struct sqlite_row row = { .run = run, .seq = seq, .bytes = bytes, .len = len };

	if (sqlite3_exec(store->db, KEPT_TABLE, NULL, NULL, NULL) != SQLITE_OK)
		return journal_sqlite_fail(err, store, "write to");
	return journal_sqlite_put(store,
				  "INSERT OR REPLACE INTO kept(run, seq, state) VALUES(?1, ?2, ?3)",
				  &row, err) < 0
		       ? -1
		       : 1;
}

static bool has_kept(struct sqlite_store *store)
{
	char tables[8];

	journal_sqlite_query(store->db, "SELECT count(*) FROM sqlite_master WHERE name='kept'",
			     tables, sizeof tables);
	return strcmp(tables, "1") == 0;
}

static int sqlite_kept(void *opened, const char *run, int64_t *ret_seq, struct sb *ret,
		       struct err **err)
{
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt;
	int found;

	if (!has_kept(store))
		return 0;
	stmt = journal_sqlite_prepare(store, "SELECT seq, state FROM kept WHERE run=?1", run,
				      "read", err);
	found = stmt ? journal_sqlite_step(store, stmt, "read", err) : -1;
	if (found > 0) {
		*ret_seq = sqlite3_column_int64(stmt, 0);
		sb_add(ret, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1));
	}
	sqlite3_finalize(stmt);
	return found;
}

/* True if rows of the run are left: a lookup by id misses rows in the wrong place of a damaged
 * table. */
static bool is_left(struct sqlite_store *store, const char *run)
{
	AUTO(begun_release) struct begun runs = { 0 };
	AUTO(err_freep) struct err *damage = NULL;

	(void)!journal_sqlite_find_runs(store, &runs, &damage);
	for (size_t i = 0; i < runs.count; i++)
		if (strcmp(runs.list[i].run, run) == 0)
			return true;
	return false;
}

/* True if all events up to the mark of the end are there. */
static bool is_whole(struct sqlite_store *store, const char *run)
{
	static const char sql[] = "SELECT max(seq) FROM event WHERE run=?1";
	AUTO(err_freep) struct err *ignored = NULL;
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", &ignored);
	bool whole = stmt && journal_sqlite_step(store, stmt, "read", &ignored) > 0 &&
		     sqlite3_column_int64(stmt, 0) >= end_mark_read(store->dir, run);

	sqlite3_finalize(stmt);
	return whole;
}

/* The derived state goes first: it is worthless without the events, so a failure to delete it
 * matters less. The mark of the end goes before the events if they are whole: without them it would
 * tell of damage. Else it goes last: without it a run that lacks its last events looks whole, and
 * one that has not ended cannot be removed. No row can be deleted from damaged pages. */
static int sqlite_forget(void *opened, const char *run, struct err **err)
{
	struct sqlite_store *store = opened;

	if (has_kept(store) &&
	    journal_sqlite_delete(store, "DELETE FROM kept WHERE run=?1", run, err) < 0 &&
	    !(*err)->damage)
		return -1;
	err_freep(err);
	if (journal_sqlite_drop_summary(store, run, err) < 0 && !(*err)->damage)
		return -1;
	err_freep(err);
	if (is_whole(store, run) && end_mark_remove(store->dir, run, err) < 0)
		return -1;
	if (journal_sqlite_delete(store, "DELETE FROM event WHERE run=?1", run, err) == 0 &&
	    !is_left(store, run))
		return end_mark_remove(store->dir, run, err);
	if (*err && !(*err)->damage)
		return -1;
	err_freep(err);
	return journal_sqlite_set_aside(store, run, err) < 0
		       ? -1
		       : end_mark_remove(store->dir, run, err);
}

static int sqlite_first_keep(void *opened, const char *run, const char *body, struct err **err)
{
	const struct sqlite_store *store = opened;
	AUTO(auto_free) char *path = mem_format("%s/runs/%s/" JOURNAL_FIRST, store->dir, run);

	return fs_write_atomic(path, body, strlen(body), 0600, err);
}

static int sqlite_first_kept(void *opened, const char *run, struct sb *ret, struct err **err)
{
	const struct sqlite_store *store = opened;
	AUTO(auto_free) char *path = mem_format("%s/runs/%s/" JOURNAL_FIRST, store->dir, run);

	if (!fs_exists(path))
		return 0;
	return fs_read(path, JOURNAL_FIRST_MAX, ret, err) < 0 ? -1 : 1;
}

const struct journal_ops journal_sqlite = {
	.scheme = "sqlite",
	.open = journal_sqlite_open,
	.close = journal_sqlite_close,
	.append = sqlite_append,
	.rows = sqlite_rows,
	.next = sqlite_next,
	.file = sqlite_file,
	.runs = sqlite_runs,
	.forget = sqlite_forget,
	.put_aside = journal_sqlite_put_aside,
	.restart = journal_sqlite_restart,
	.first_keep = sqlite_first_keep,
	.first_kept = sqlite_first_kept,
	.summarise = journal_sqlite_summarise,
	.summary = journal_sqlite_summary,
	.keep = sqlite_keep,
	.kept = sqlite_kept,
};
