/* Taking a run, or the damaged part of one, out of a database: see journal_sqlite_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/end_mark.h"
#include "jobs/run/journal/journal_sqlite_internal.h"
#include "jobs/run/journal/lease.h"

#define NAMES_MAX 1000 /* highest number of a table that was set aside */

static int execute(struct sqlite_store *store, const char *sql, struct err **err)
{
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return journal_sqlite_fail(err, store, "write to");
}

/* Renames the table to the first free name. */
static int rename_table(struct sqlite_store *store, char **ret, struct err **err)
{
	for (int i = 1; i <= NAMES_MAX; i++) {
		AUTO(auto_free) char *name = mem_format("damaged_%d", i);
		AUTO(auto_free) char *sql = mem_format("ALTER TABLE event RENAME TO %s", name);

		if (sqlite3_table_column_metadata(store->db, NULL, name, NULL, NULL, NULL, NULL,
						  NULL, NULL) == SQLITE_OK)
			continue;
		*ret = TAKE(name);
		return execute(store, sql, err);
	}
	return err_set(err, EXIT_REFUSED, "'%s' has been damaged too often", store->path);
}

static int put_row(struct sqlite_store *store, const char *run, int64_t seq, const char *body,
		   size_t len, struct err **err)
{
	const struct sqlite_row row = { run, seq, body, len, .is_text = true };

	return journal_sqlite_put(
		store, "INSERT OR IGNORE INTO event(run, seq, body) VALUES(?1, ?2, ?3)", &row, err);
}

static int copy_run(struct sqlite_store *store, const char *from, const char *run, struct err **err)
{
	AUTO(auto_free)
	char *sql = mem_format("SELECT seq, body FROM %s WHERE run=?1 ORDER BY seq", from);
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	int64_t last = 0;
	int code = SQLITE_ROW, result = 0;

	if (!stmt)
		return -1;
	while (result == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *body = (const char *)sqlite3_column_text(stmt, 1);

		last = sqlite3_column_int64(stmt, 0);
		result = put_row(store, run, last, body ? body : "",
				 body ? (size_t)sqlite3_column_bytes(stmt, 1) : 0, err);
	}
	sqlite3_finalize(stmt);
	/* An empty event is put there also if no row of the run was found. */
	if (result == 0 && (code != SQLITE_DONE || last == 0))
		result = put_row(store, run, last + 1, "", 0, err);
	return result;
}

/* Copies all runs but one into a new table; `ret_old` is the name of the old one, which the caller
 * frees. */
static int copy_others(struct sqlite_store *store, const struct begun *runs, const char *run,
		       char **ret_old, struct err **err)
{
	char *old;

	if (rename_table(store, ret_old, err) < 0 || execute(store, SQLITE_EVENT_TABLE, err) < 0)
		return -1;
	old = *ret_old;
	for (size_t i = 0; i < runs->count; i++)
		if (strcmp(runs->list[i].run, run) != 0 &&
		    copy_run(store, old, runs->list[i].run, err) < 0)
			return -1;
	return 0;
}

int journal_sqlite_set_aside(struct sqlite_store *store, const char *run, struct err **err)
{
	AUTO(begun_release) struct begun runs = { 0 };
	AUTO(err_freep) struct err *damage = NULL;
	AUTO(auto_free) char *old = NULL;

	sqlite3_finalize(store->append);
	store->append = NULL;
	if (execute(store, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	(void)!journal_sqlite_find_runs(store, &runs, &damage);
	if (copy_others(store, &runs, run, &old, err) == 0 && execute(store, "COMMIT", err) == 0)
		return 0;
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}

/* ---- salvage ---- */

static int keep_aside(const struct sqlite_store *store, const char *run, int64_t seq,
		      const char *body, size_t len, struct err **err)
{
	AUTO(auto_free) char *name = damage_aside_name(seq, body, len);
	AUTO(auto_free) char *path = mem_format("%s/runs/%s/%s", store->dir, run, name);
	AUTO(auto_free) char *folder = fs_dirname(path);

	if (fs_mkdirs(folder, err) < 0)
		return -1;
	return fs_write_atomic(path, body, len, 0600, err);
}

/* Rows in unreadable pages stay in the file: the table is renamed by the restart. */
int journal_sqlite_put_aside(void *opened, const char *run, int64_t good, int64_t *ret_count,
			     struct err **err)
{
	static const char sql[] =
		"SELECT seq, body FROM event WHERE run=?1 AND seq>?2 ORDER BY seq";
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	int code = SQLITE_DONE, result = stmt ? 0 : -1;

	*ret_count = 0;
	if (stmt)
		sqlite3_bind_int64(stmt, 2, good);
	while (stmt && result == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *body = (const char *)sqlite3_column_text(stmt, 1);

		++*ret_count;
		result = keep_aside(store, run, sqlite3_column_int64(stmt, 0), body ? body : "",
				    body ? (size_t)sqlite3_column_bytes(stmt, 1) : 0, err);
	}
	if (result == 0 && code != SQLITE_DONE) {
		result = journal_sqlite_fail(err, store, "read");
		store->pages_damaged = (*err)->damage;
	}
	sqlite3_finalize(stmt);
	if (!store->pages_damaged)
		return result;
	err_freep(err);
	return 0;
}

/* Copies the run's events up to `good` from the table that was set aside. They have the numbers
 * from 1 on, and a look behind the last of them may meet an unreadable page. */
static int copy_good(struct sqlite_store *store, const char *from, const char *run, int64_t good,
		     struct err **err)
{
	AUTO(auto_free)
	char *sql = mem_format("INSERT INTO event(run, seq, body) SELECT run, seq, body FROM %s "
			       "WHERE run=?1 ORDER BY seq LIMIT %lld",
			       from, (long long)good);

	return journal_sqlite_delete(store, sql, run, err);
}

/* The rows go into a new table, because the old one has unreadable pages. */
static int renew_table(struct sqlite_store *store, const char *run, int64_t good, struct err **err)
{
	AUTO(begun_release) struct begun runs = { 0 };
	AUTO(err_freep) struct err *damage = NULL;
	AUTO(auto_free) char *old = NULL;

	(void)!journal_sqlite_find_runs(store, &runs, &damage);
	return copy_others(store, &runs, run, &old, err) < 0
		       ? -1
		       : copy_good(store, old, run, good, err);
}

static int delete_rest(struct sqlite_store *store, const char *run, int64_t good, struct err **err)
{
	AUTO(auto_free)
	char *sql = mem_format("DELETE FROM event WHERE run=?1 AND seq>%lld", (long long)good);

	return journal_sqlite_delete(store, sql, run, err);
}

/* A snapshot or a summary may be of a state behind the damage. */
static int drop_kept(struct sqlite_store *store, const char *run, struct err **err)
{
	char tables[8];

	journal_sqlite_query(store->db, "SELECT count(*) FROM sqlite_master WHERE name='kept'",
			     tables, sizeof tables);
	if (strcmp(tables, "1") == 0 &&
	    journal_sqlite_delete(store, "DELETE FROM kept WHERE run=?1", run, err) < 0)
		return -1;
	return journal_sqlite_drop_summary(store, run, err);
}

static int change_table(struct sqlite_store *store, const char *run, int64_t good,
			const char *first, const char *body, bool again, struct err **err)
{
	int64_t seq = good;

	if ((again || store->pages_damaged ? renew_table(store, run, good, err)
					   : delete_rest(store, run, good, err)) < 0)
		return -1;
	if (first && put_row(store, run, ++seq, first, strlen(first), err) < 0)
		return -1;
	return put_row(store, run, seq + 1, body, strlen(body), err) < 0
		       ? -1
		       : drop_kept(store, run, err);
}

/* The changes are one transaction. The mark of the end, which may be far behind it now, follows. */
int journal_sqlite_restart(void *opened, const char *run, int64_t good, const char *first,
			   const char *body, bool again, struct err **err)
{
	struct sqlite_store *store = opened;

	sqlite3_finalize(store->append);
	store->append = NULL;
	for (;; again = true) {
		if (execute(store, "BEGIN IMMEDIATE", err) < 0)
			return -1;
		if (change_table(store, run, good, first, body, again, err) == 0 &&
		    execute(store, "COMMIT", err) == 0)
			break;
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
		if (again || !(*err)->damage)
			return -1;
		err_freep(err);
	}
	end_mark_write(store->dir, run, (first ? 1 : good) + 1);
	return 0;
}

static int rename_aside(const struct sqlite_store *store, int number, const char *suffix,
			struct err **err)
{
	AUTO(auto_free) char *from = mem_format("%s%s", store->path, suffix);
	AUTO(auto_free) char *to = mem_format("%s.damaged-%d%s", store->path, number, suffix);

	if (rename(from, to) == 0 || errno == ENOENT)
		return 0;
	return fs_error(err, errno, "cannot rename '%s' to '%s'", from, to);
}

static bool is_free(const struct sqlite_store *store, int number)
{
	AUTO(auto_free) char *path = mem_format("%s.damaged-%d", store->path, number);
	AUTO(auto_free) char *log = mem_format("%s-wal", path);

	return !fs_exists(path) && !fs_exists(log);
}

int journal_sqlite_move_aside(struct sqlite_store *store, bool (*lost)(struct sqlite_store *store),
			      struct err **err)
{
	AUTO(auto_close) int folder = open(store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_free) char *driven = NULL;
	int number = 1;

	if (folder < 0 || flock(folder, LOCK_EX) < 0)
		return fs_error(err, errno, "cannot lock '%s'", store->dir);
	if (!lost(store)) /* another process was first */
		return 0;
	driven = lease_find_lock(store->dir);
	if (driven) {
		err_set(err, EXIT_BUSY,
			"the damaged '%s' cannot be set aside while run %s is being driven",
			store->path, driven);
		return err_hint(err, "run the command again when that driver has ended");
	}
	while (number < NAMES_MAX && !is_free(store, number))
		number++;
	/* Without its log the database lacks its last events, not the reverse. */
	if (rename_aside(store, number, "", err) < 0 ||
	    rename_aside(store, number, "-wal", err) < 0 ||
	    rename_aside(store, number, "-shm", err) < 0 || fs_sync_dir(store->dir, err) < 0)
		return -1;
	return 1;
}
