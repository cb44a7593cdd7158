/* Taking a run out of a damaged database: see journal_sqlite_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/run/journal/journal_sqlite_internal.h"

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
	/* Also if no row of the run was found. */
	if (result == 0 && (code != SQLITE_DONE || last == 0))
		result = put_row(store, run, last + 1, "", 0, err);
	return result;
}

static int copy_others(struct sqlite_store *store, const struct begun *runs, const char *run,
		       struct err **err)
{
	AUTO(auto_free) char *old = NULL;

	if (rename_table(store, &old, err) < 0 || execute(store, SQLITE_EVENT_TABLE, err) < 0)
		return -1;
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

	sqlite3_finalize(store->append);
	store->append = NULL;
	if (execute(store, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	(void)!journal_sqlite_find_runs(store, &runs, &damage);
	if (copy_others(store, &runs, run, err) == 0 && execute(store, "COMMIT", err) == 0)
		return 0;
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}
