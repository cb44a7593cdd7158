/* Summaries in SQLite: a table beside the events. See journal_sqlite_internal.h. */
#include <string.h>

#include "jobs/run/journal/journal_sqlite_internal.h"

/* The members that a list needs lie close together, in a table of their own. */
#define SUMMARY_TABLES                                                                             \
	"CREATE TABLE IF NOT EXISTS summary(run TEXT PRIMARY KEY, seq INTEGER NOT NULL,"           \
	" link TEXT NOT NULL, begun TEXT NOT NULL, line_sum TEXT NOT NULL,"                        \
	" rest_sum TEXT NOT NULL, sum TEXT NOT NULL, head TEXT NOT NULL) WITHOUT ROWID;"           \
	"CREATE TABLE IF NOT EXISTS summary_rest(run TEXT PRIMARY KEY, line TEXT NOT NULL,"        \
	" rest BLOB NOT NULL) WITHOUT ROWID;"

bool journal_sqlite_has_summaries(struct sqlite_store *store)
{
	char tables[8];

	journal_sqlite_query(store->db, "SELECT count(*) FROM sqlite_master WHERE name='summary'",
			     tables, sizeof tables);
	return strcmp(tables, "1") == 0;
}

static void copy_text(sqlite3_stmt *stmt, int column, char *ret, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	snprintf(ret, size, "%s", text ? text : "");
}

static void copy_bytes(sqlite3_stmt *stmt, int column, struct sb *ret)
{
	sb_add(ret, sqlite3_column_blob(stmt, column), (size_t)sqlite3_column_bytes(stmt, column));
}

void journal_sqlite_summary_head(sqlite3_stmt *stmt, struct run_summary *ret)
{
	ret->seq = sqlite3_column_int64(stmt, 1);
	copy_text(stmt, 2, ret->link, sizeof ret->link);
	copy_text(stmt, 3, ret->begun, sizeof ret->begun);
	copy_text(stmt, 4, ret->line_sum, sizeof ret->line_sum);
	copy_text(stmt, 5, ret->rest_sum, sizeof ret->rest_sum);
	copy_text(stmt, 6, ret->sum, sizeof ret->sum);
	copy_bytes(stmt, 7, &ret->head);
}

static void bind_text(sqlite3_stmt *stmt, int at, const char *text, size_t len)
{
	sqlite3_bind_text(stmt, at, text, (int)len, SQLITE_STATIC);
}

static int put_head(struct sqlite_store *store, const char *run, const struct run_summary *summary,
		    struct err **err)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO summary(run, seq, link, begun, line_sum, rest_sum, sum,"
		" head) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
	const char *const texts[] = { summary->link, summary->begun, summary->line_sum,
				      summary->rest_sum, summary->sum };
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "write to", err);
	int done;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 2, summary->seq);
	for (int i = 0; i < (int)STK_LENGTH(texts); i++)
		bind_text(stmt, 3 + i, texts[i], strlen(texts[i]));
	bind_text(stmt, 8, summary->head.text, summary->head.len);
	done = journal_sqlite_step(store, stmt, "write to", err);
	sqlite3_finalize(stmt);
	return done;
}

static int put_rest(struct sqlite_store *store, const char *run, const struct run_summary *summary,
		    struct err **err)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO summary_rest(run, line, rest) VALUES(?1, ?2, ?3)";
	sqlite3_stmt *stmt = journal_sqlite_prepare(store, sql, run, "write to", err);
	int done;

	if (!stmt)
		return -1;
	bind_text(stmt, 2, summary->line.text, summary->line.len);
	sqlite3_bind_blob64(stmt, 3, summary->rest.text, summary->rest.len, SQLITE_STATIC);
	done = journal_sqlite_step(store, stmt, "write to", err);
	sqlite3_finalize(stmt);
	return done;
}

/* The tables are made by the first call: a database of an earlier version lacks them. Both rows are
 * written at once; if one were written alone, its sums would not fit. */
int journal_sqlite_summarise(void *opened, const char *run, const struct run_summary *summary,
			     struct err **err)
{
	struct sqlite_store *store = opened;
	bool begun = sqlite3_exec(store->db, "SAVEPOINT summary", NULL, NULL, NULL) == SQLITE_OK;
	int result = -1;

	if (!begun || sqlite3_exec(store->db, SUMMARY_TABLES, NULL, NULL, NULL) != SQLITE_OK)
		journal_sqlite_fail(err, store, "write to");
	else if (put_rest(store, run, summary, err) >= 0 && put_head(store, run, summary, err) >= 0)
		result = 1;
	if (begun && result < 0)
		sqlite3_exec(store->db, "ROLLBACK TO summary", NULL, NULL, NULL);
	if (begun && sqlite3_exec(store->db, "RELEASE summary", NULL, NULL, NULL) != SQLITE_OK &&
	    result > 0)
		result = journal_sqlite_fail(err, store, "write to");
	return result;
}

int journal_sqlite_summary(void *opened, const char *run, struct run_summary *ret, struct err **err)
{
	static const char sql[] = SQLITE_SUMMARY_HEAD " WHERE run=?1";
	static const char rest[] = "SELECT line, rest FROM summary_rest WHERE run=?1";
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt;
	int found;

	if (!journal_sqlite_has_summaries(store))
		return 0;
	stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	found = stmt ? journal_sqlite_step(store, stmt, "read", err) : -1;
	if (found > 0)
		journal_sqlite_summary_head(stmt, ret);
	sqlite3_finalize(stmt);
	if (found <= 0)
		return found;
	stmt = journal_sqlite_prepare(store, rest, run, "read", err);
	found = stmt ? journal_sqlite_step(store, stmt, "read", err) : -1;
	if (found > 0) {
		copy_bytes(stmt, 0, &ret->line);
		copy_bytes(stmt, 1, &ret->rest);
	}
	sqlite3_finalize(stmt);
	return found;
}

int journal_sqlite_drop_summary(struct sqlite_store *store, const char *run, struct err **err)
{
	if (!journal_sqlite_has_summaries(store))
		return 0;
	if (journal_sqlite_delete(store, "DELETE FROM summary WHERE run=?1", run, err) < 0)
		return -1;
	return journal_sqlite_delete(store, "DELETE FROM summary_rest WHERE run=?1", run, err);
}
