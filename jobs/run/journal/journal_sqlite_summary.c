/* Summaries in SQLite: a table beside the events. See journal_sqlite_internal.h. */
#include <string.h>

#include "jobs/run/journal/journal_sqlite_internal.h"

#define SUMMARY_TABLE                                                                              \
	"CREATE TABLE IF NOT EXISTS summary(run TEXT PRIMARY KEY, seq INTEGER NOT NULL,"           \
	" link TEXT NOT NULL, begun TEXT NOT NULL, line_sum TEXT NOT NULL,"                        \
	" rest_sum TEXT NOT NULL, sum TEXT NOT NULL, head TEXT NOT NULL, line TEXT NOT NULL,"      \
	" rest BLOB NOT NULL) WITHOUT ROWID"

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

void journal_sqlite_summary_head(sqlite3_stmt *stmt, struct summary *ret)
{
	ret->seq = sqlite3_column_int64(stmt, 0);
	copy_text(stmt, 1, ret->link, sizeof ret->link);
	copy_text(stmt, 2, ret->begun, sizeof ret->begun);
	copy_text(stmt, 3, ret->line_sum, sizeof ret->line_sum);
	copy_text(stmt, 4, ret->rest_sum, sizeof ret->rest_sum);
	copy_text(stmt, 5, ret->sum, sizeof ret->sum);
	copy_bytes(stmt, 6, &ret->head);
}

static void bind_text(sqlite3_stmt *stmt, int at, const char *text, size_t len)
{
	sqlite3_bind_text(stmt, at, text, (int)len, SQLITE_STATIC);
}

/* The table is made by the first call: a database of an earlier version lacks it. */
int journal_sqlite_summarise(void *opened, const char *run, const struct summary *summary,
			     struct err **err)
{
	static const char sql[] =
		"INSERT OR REPLACE INTO summary(run, seq, link, begun, line_sum, rest_sum, sum,"
		" head, line, rest) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
	struct sqlite_store *store = opened;
	const char *const texts[] = { summary->link, summary->begun, summary->line_sum,
				      summary->rest_sum, summary->sum };
	sqlite3_stmt *stmt;
	int done;

	if (sqlite3_exec(store->db, SUMMARY_TABLE, NULL, NULL, NULL) != SQLITE_OK)
		return journal_sqlite_fail(err, store, "write to");
	stmt = journal_sqlite_prepare(store, sql, run, "write to", err);
	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 2, summary->seq);
	for (int i = 0; i < (int)STK_LENGTH(texts); i++)
		bind_text(stmt, 3 + i, texts[i], strlen(texts[i]));
	bind_text(stmt, 8, summary->head.text, summary->head.len);
	bind_text(stmt, 9, summary->line.text, summary->line.len);
	sqlite3_bind_blob64(stmt, 10, summary->rest.text, summary->rest.len, SQLITE_STATIC);
	done = journal_sqlite_step(store, stmt, "write to", err);
	sqlite3_finalize(stmt);
	return done < 0 ? -1 : 1;
}

int journal_sqlite_summary(void *opened, const char *run, struct summary *ret, struct err **err)
{
	static const char sql[] =
		"SELECT seq, link, begun, line_sum, rest_sum, sum, head, line, rest FROM summary"
		" WHERE run=?1";
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt;
	int found;

	if (!journal_sqlite_has_summaries(store))
		return 0;
	stmt = journal_sqlite_prepare(store, sql, run, "read", err);
	found = stmt ? journal_sqlite_step(store, stmt, "read", err) : -1;
	if (found > 0) {
		journal_sqlite_summary_head(stmt, ret);
		copy_bytes(stmt, 7, &ret->line);
		copy_bytes(stmt, 8, &ret->rest);
	}
	sqlite3_finalize(stmt);
	return found;
}

int journal_sqlite_drop_summary(struct sqlite_store *store, const char *run, struct err **err)
{
	if (!journal_sqlite_has_summaries(store))
		return 0;
	return journal_sqlite_delete(store, "DELETE FROM summary WHERE run=?1", run, err);
}
