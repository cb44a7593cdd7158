/*
 * The journal beside bare SQLite, as durable as it: `own` appends events one by one,
 * `bare` inserts the same texts into the same table, `scan` reads all events of a run
 * and does nothing with them.
 */
#include <sqlite3.h>

#include "jobs/run/journal/journal.h"
#include "tests/bench/bench.h"

#define RUN "bench"

struct texts {
	char **list;
	long count;
};

/* Makes the event that is journalled most often. */
static void make_event(struct event *ev, json_t *metrics, int64_t seq)
{
	*ev = (struct event){ .kind = EV_TRAIN_PROGRESS };
	EVENT_SET(ev, attempt, 1);
	EVENT_SET(ev, step, seq * 10);
	EVENT_SET(ev, since, clock_utc_now().ms);
	EVENT_SET(ev, of, 1000000);
	EVENT_SET(ev, rate, 12.5);
	EVENT_SET(ev, eta, 4711.0);
	EVENT_SET(ev, metrics, metrics);
	ev->seq = seq;
	ev->at = clock_utc_now();
}

static json_t *make_metrics(void)
{
	return json_pack("{s:f, s:f, s:I}", "loss", 0.25, "accuracy", 0.975, "step",
			 (json_int_t)10);
}

static double append_own(const char *dir, long count)
{
	json_auto_t *metrics = make_metrics();
	struct journal *journal = NULL;
	struct err *err = NULL;
	double begin;

	if (journal_open(dir, JOURNAL_WRITE, &journal, &err) < 0)
		give_up("journal_open", err);
	begin = wall_seconds();
	for (long i = 1; i <= count; i++) {
		struct event ev;

		make_event(&ev, metrics, i);
		if (journal_append(journal, RUN, &ev, &err) != 1)
			give_up("journal_append", err);
	}
	begin = wall_seconds() - begin;
	journal_freep(&journal);
	return begin;
}

static sqlite3 *open_database(const char *dir)
{
	AUTO(auto_free) char *path = mem_format("%s/" JOURNAL_SQLITE_FILE, dir);
	sqlite3 *db = NULL;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		give_up(sqlite3_errmsg(db), NULL);
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		give_up(sqlite3_errmsg(db), NULL);
	return stmt;
}

static double insert_bare(const char *dir, long count)
{
	json_auto_t *metrics = make_metrics();
	sqlite3 *db = open_database(dir);
	char **texts = mem_zero((size_t)count, sizeof *texts);
	sqlite3_stmt *stmt;
	double begin;

	for (long i = 1; i <= count; i++) {
		struct event ev;
		json_auto_t *row = NULL;

		make_event(&ev, metrics, i);
		row = event_encode(RUN, &ev);
		texts[i - 1] = js_line(row);
	}
	sqlite3_exec(db,
		     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
		     "CREATE TABLE event(run TEXT NOT NULL, seq INTEGER NOT NULL,"
		     " body TEXT NOT NULL, PRIMARY KEY(run, seq)) WITHOUT ROWID",
		     NULL, NULL, NULL);
	stmt = prepare(db, "INSERT INTO event VALUES(?1, ?2, ?3)");
	begin = wall_seconds();
	for (long i = 1; i <= count; i++) {
		sqlite3_bind_text(stmt, 1, RUN, -1, SQLITE_STATIC);
		sqlite3_bind_int64(stmt, 2, i);
		sqlite3_bind_text(stmt, 3, texts[i - 1], -1, SQLITE_STATIC);
		if (sqlite3_step(stmt) != SQLITE_DONE)
			give_up(sqlite3_errmsg(db), NULL);
		sqlite3_reset(stmt);
	}
	begin = wall_seconds() - begin;
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	for (long i = 0; i < count; i++)
		free(texts[i]);
	free(texts);
	return begin;
}

static void scan(const char *dir, const char *run)
{
	sqlite3 *db = open_database(dir);
	sqlite3_stmt *stmt = prepare(db, "SELECT body FROM event WHERE run=?1 ORDER BY seq");
	long rows = 0, bytes = 0;

	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		rows++;
		bytes += (long)strlen((const char *)sqlite3_column_text(stmt, 0));
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	printf("{\"rows\": %ld, \"bytes\": %ld}\n", rows, bytes);
}

int main(int argc, char **argv)
{
	double seconds;
	long count;

	if (argc != 4)
		give_up("usage: bench_journal own|bare DIR COUNT | scan DIR RUN", NULL);
	if (strcmp(argv[1], "scan") == 0) {
		scan(argv[2], argv[3]);
		return 0;
	}
	count = number_of(argv[3]);
	seconds = strcmp(argv[1], "own") == 0 ? append_own(argv[2], count)
					      : insert_bare(argv[2], count);
	printf("{\"seconds\": %.6f}\n", seconds);
	return 0;
}
