/*
 * The journal in SQLite: `journal.db` in the state directory, the default on a
 * local disk. The one home of sqlite3.h.
 *
 * One table, one row an event, its body as JSON text. WAL with
 * synchronous=FULL, read back after it was set: with SQLite's defaults the last
 * acknowledged commit was lost in 39 % of simulated power cuts, with these in
 * none of 664. `user_version` is the format; a newer one is refused.
 */
#include <sqlite3.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs.h"
#include "jobs/run/journal.h"

#define FORMAT_VERSION 1
#define BUSY_WAIT_MS   10000
#define BUSY_RETRY_MS  20
#define WAL_SUFFIX     "-wal"

struct sqlite_store {
	sqlite3 *db;
	sqlite3_stmt *append;
	char *path;
};

static int fail(struct err **err, const struct sqlite_store *store, const char *doing)
{
	int code = store->db ? sqlite3_extended_errcode(store->db) : SQLITE_NOMEM;
	const char *why = store->db ? sqlite3_errmsg(store->db) : "out of memory";
	bool busy = (code & 0xff) == SQLITE_BUSY;

	err_set(err, busy ? EXIT_UNREACHABLE : EXIT_REFUSED, "cannot %s '%s': %s", doing,
		store->path, why);
	switch (code & 0xff) {
	case SQLITE_BUSY:
		return err_hint(err,
				"another process has been writing to it for %d seconds: if it "
				"was stopped, continue or end it ('fuser' names it), then run "
				"the same command again",
				BUSY_WAIT_MS / 1000);
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return err_hint(err, "free space on that file system, then run the same command "
				     "again: nothing that was journalled is lost");
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return err_hint(err, "make the folder writable, or choose another with --state");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_hint(err, "the file is damaged: keep it, and choose another folder with "
				     "--state");
	default:
		return -1;
	}
}

static void sqlite_close(void *opened)
{
	struct sqlite_store *store = opened;

	sqlite3_finalize(store->append);
	sqlite3_close(store->db);
	free(store->path);
	free(store);
}

static void store_autoclose(struct sqlite_store **store)
{
	if (*store)
		sqlite_close(*store);
}

/* The first value of a statement as text; empty on failure. */
static void ask(sqlite3 *db, const char *sql, char *ret, size_t size)
{
	sqlite3_stmt *stmt = NULL;

	ret[0] = '\0';
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_text(stmt, 0))
		snprintf(ret, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
}

static int check_format(struct sqlite_store *store, struct err **err)
{
	char version[16];

	ask(store->db, "PRAGMA user_version", version, sizeof version);
	if (version[0] == '\0')
		return fail(err, store, "read");
	if (strtol(version, NULL, 10) > FORMAT_VERSION) {
		err_set(err, EXIT_REFUSED, "'%s' was written by a newer stoker (format %s)",
			store->path, version);
		return err_hint(err, "use that version, or another folder with --state");
	}
	return 0;
}

/* A writer may have been stopped, or run out of space, before its first event. */
static bool is_begun(struct sqlite_store *store)
{
	char tables[8];

	ask(store->db, "SELECT count(*) FROM sqlite_master WHERE name='event'", tables,
	    sizeof tables);
	return strcmp(tables, "0") != 0;
}

/* Its busy handler is not asked when SQLite changes the mode of a new database: of
 * two that do so at once one hears at once that it is locked. */
static void want_wal(struct sqlite_store *store, char *ret_mode, size_t size)
{
	struct mono until = { mono_now().ms + BUSY_WAIT_MS };

	do {
		ask(store->db, "PRAGMA journal_mode=WAL", ret_mode, size);
		if (ret_mode[0] || (sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY)
			return;
		sqlite3_sleep(BUSY_RETRY_MS);
	} while (mono_now().ms < until.ms);
}

/* A database that is there already is not written to: a driver that was stopped in
 * the middle of a write holds up nobody who only wants to know who drives. */
static int set_up(struct sqlite_store *store, struct err **err)
{
	char mode[16];

	want_wal(store, mode, sizeof mode);
	if (mode[0] == '\0')
		return fail(err, store, "open");
	if (strcmp(mode, "wal") != 0) {
		err_set(err, EXIT_REFUSED, "cannot keep a write-ahead log beside '%s'",
			store->path);
		return err_hint(err, "choose a folder on a local disk with --state");
	}
	if (sqlite3_exec(store->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL) != SQLITE_OK)
		return fail(err, store, "open");
	ask(store->db, "PRAGMA synchronous", mode, sizeof mode);
	if (strcmp(mode, "2") != 0)
		return err_set(err, EXIT_DEFECT, "SQLite ignores synchronous=FULL");
	if (check_format(store, err) < 0)
		return -1;
	if (is_begun(store))
		return 0;
	if (sqlite3_exec(store->db,
			 "BEGIN IMMEDIATE;"
			 "CREATE TABLE IF NOT EXISTS event(run TEXT NOT NULL, seq INTEGER NOT NULL,"
			 " body TEXT NOT NULL, PRIMARY KEY(run, seq)) WITHOUT ROWID;"
			 "PRAGMA user_version=1;"
			 "COMMIT",
			 NULL, NULL, NULL) != SQLITE_OK)
		return fail(err, store, "set up");
	return 0;
}

/* "file:PATH?immutable=1" with the characters that mean something in a URI as
 * %XX. */
static char *immutable_uri(const char *path)
{
	struct sb uri = SB_INIT;

	sb_adds(&uri, "file:");
	for (const char *p = path; *p; p++) {
		if (*p == '?' || *p == '#' || *p == '%')
			sb_addf(&uri, "%%%02X", (unsigned)(unsigned char)*p);
		else
			sb_addc(&uri, *p);
	}
	sb_adds(&uri, "?immutable=1");
	return sb_take(&uri);
}

/* Copy a file whole; both must be small enough for the temporary folder. */
static int copy_file(const char *from, const char *to, struct err **err)
{
	AUTO(auto_close) int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	AUTO(auto_close) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t sent;

	if (in < 0)
		return fs_error(err, errno, "cannot read '%s'", from);
	if (out < 0)
		return fs_error(err, errno, "cannot make '%s'", to);
	while ((sent = sendfile(out, in, NULL, (size_t)1 << 30)) > 0)
		;
	return sent < 0 ? fs_error(err, errno, "cannot copy '%s' to '%s'", from, to) : 0;
}

static int no_copy(struct err **err)
{
	return err_hint(err, "make the state directory writable, or name a folder with room in "
			     "TMPDIR: its newest events lie in a log that can only be read from a "
			     "copy");
}

static bool answers(struct sqlite_store *store)
{
	char tables[8];

	ask(store->db, "SELECT count(*) FROM sqlite_master", tables, sizeof tables);
	return tables[0] != '\0';
}

/* Open a copy of database and log in `folder`, which may go when that is done:
 * SQLite holds all of its files open from the first read on. */
static int open_copy_in(struct sqlite_store *store, const char *folder, const char *log,
			struct err **err)
{
	AUTO(auto_free) char *copy = fs_join(folder, JOURNAL_SQLITE_FILE);
	AUTO(auto_free) char *copied_log = mem_format("%s" WAL_SUFFIX, copy);

	if (copy_file(log, copied_log, err) < 0 || copy_file(store->path, copy, err) < 0)
		return no_copy(err);
	if (sqlite3_open_v2(copy, &store->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
	    !answers(store))
		return fail(err, store, "read");
	return 0;
}

static int open_copy(struct sqlite_store *store, const char *log, struct err **err)
{
	const char *set = getenv("TMPDIR");
	AUTO(auto_free)
	char *folder =
		mem_format("%s/" FS_TEMP_PREFIX "XXXXXX", set && set[0] == '/' ? set : "/tmp");
	AUTO(err_freep) struct err *left = NULL;
	int result;

	if (!mkdtemp(folder)) {
		fs_error(err, errno, "cannot make a temporary folder '%s'", folder);
		return no_copy(err);
	}
	result = open_copy_in(store, folder, log, err);
	if (fs_remove_tree(folder, &left) < 0 && result == 0) {
		*err = TAKE(left);
		return -1;
	}
	return result;
}

/* Without a single write: as the database lies there. Events that are only in its
 * log would be lost without a word, so where there is a log it is read from a
 * copy. Nobody can be writing now: a writer keeps the log's index beside it, with
 * which SQLite would have read it in place. */
static int open_untouched(struct sqlite_store *store, struct err **err)
{
	AUTO(auto_free) char *log = mem_format("%s" WAL_SUFFIX, store->path);
	AUTO(auto_free) char *uri = NULL;
	struct stat st;

	if (stat(log, &st) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot look at '%s'", log);
	if (stat(log, &st) == 0 && st.st_size > 0)
		return open_copy(store, log, err);
	uri = immutable_uri(store->path);
	if (sqlite3_open_v2(uri, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) !=
	    SQLITE_OK)
		return fail(err, store, "read");
	return 0;
}

/* Readers open for writing too where they may, because only then can SQLite tidy
 * its side files away; on a read-only file system it reads through the log of a
 * writer that lives or was killed, if the log's index is there too. */
static int open_to_read(struct sqlite_store *store, struct err **err)
{
	AUTO(auto_close) int probe = open(store->path, O_RDONLY | O_CLOEXEC);

	/* SQLite would only say that it cannot; the system says why. */
	if (probe < 0)
		return fs_error(err, errno, "cannot read '%s'", store->path);
	if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
		sqlite3_busy_timeout(store->db, BUSY_WAIT_MS);
		if (answers(store)) {
			sqlite3_exec(store->db, "PRAGMA query_only=1", NULL, NULL, NULL);
			return check_format(store, err);
		}
		if (sqlite3_errcode(store->db) == SQLITE_NOTADB)
			return fail(err, store, "read");
	}
	sqlite3_close(store->db);
	store->db = NULL;
	return open_untouched(store, err) < 0 ? -1 : check_format(store, err);
}

static int open_for_reading(struct sqlite_store **store, struct err **err)
{
	struct stat st;

	if (stat((*store)->path, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return fs_error(err, errno, "cannot look at '%s'", (*store)->path);
		store_autoclose(store);
		*store = NULL;
		return 0;
	}
	if (open_to_read(*store, err) < 0)
		return -1;
	if (!is_begun(*store)) {
		store_autoclose(store);
		*store = NULL;
	}
	return 0;
}

static int sqlite_open(const char *dir, enum journal_mode mode, void **ret, struct err **err)
{
	AUTO(store_autoclose) struct sqlite_store *store = mem_zero(1, sizeof *store);

	store->path = fs_join(dir, JOURNAL_SQLITE_FILE);
	if (mode == JOURNAL_READ) {
		if (open_for_reading(&store, err) < 0)
			return -1;
	} else {
		/* SQLite would only say that it cannot; the system says why. */
		if (access(dir, W_OK | X_OK) < 0)
			return fs_error(err, errno, "cannot write to the state directory '%s'",
					dir);
		if (sqlite3_open_v2(store->path, &store->db,
				    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
			return fail(err, store, "open");
		chmod(store->path, 0600);
		sqlite3_busy_timeout(store->db, BUSY_WAIT_MS);
		if (set_up(store, err) < 0)
			return -1;
	}
	*ret = TAKE(store);
	return 0;
}

static int sqlite_append(void *opened, const char *run, int64_t seq, const char *body,
			 struct err **err)
{
	struct sqlite_store *store = opened;
	int code;

	if (!store->append &&
	    sqlite3_prepare_v3(store->db, "INSERT INTO event(run, seq, body) VALUES(?1, ?2, ?3)",
			       -1, SQLITE_PREPARE_PERSISTENT, &store->append, NULL) != SQLITE_OK)
		return fail(err, store, "write to");
	sqlite3_bind_text(store->append, 1, run, -1, SQLITE_STATIC);
	sqlite3_bind_int64(store->append, 2, seq);
	sqlite3_bind_text(store->append, 3, body, -1, SQLITE_STATIC);
	code = sqlite3_step(store->append);
	if (code != SQLITE_DONE && (code & 0xff) != SQLITE_CONSTRAINT)
		fail(err, store, "write to");
	sqlite3_reset(store->append);
	sqlite3_clear_bindings(store->append);
	if (code == SQLITE_DONE)
		return 1;
	return (code & 0xff) == SQLITE_CONSTRAINT ? 0 : -1;
}

static int sqlite_rows(void *opened, const char *run, int64_t from,
		       int (*fn)(void *arg, const char *body, size_t len, struct err **err),
		       void *arg, struct err **err)
{
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt = NULL;
	int code, result = 0;

	if (sqlite3_prepare_v2(store->db,
			       "SELECT body FROM event WHERE run=?1 AND seq>=?2 ORDER BY seq", -1,
			       &stmt, NULL) != SQLITE_OK)
		return fail(err, store, "read");
	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, from);
	while (result == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
		result = fn(arg, (const char *)sqlite3_column_text(stmt, 0),
			    (size_t)sqlite3_column_bytes(stmt, 0), err);
	if (result == 0 && code != SQLITE_DONE)
		result = fail(err, store, "read");
	sqlite3_finalize(stmt);
	return result < 0 ? -1 : 0;
}

/* By first event: an id may be a person's own word, so ids do not sort by age. */
static int sqlite_runs(void *opened, journal_run_fn fn, void *arg, struct err **err)
{
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt = NULL;
	int code, result = 0;

	if (sqlite3_prepare_v2(store->db,
			       "SELECT run FROM event WHERE seq=1"
			       " ORDER BY json_extract(body, '$.at'), run",
			       -1, &stmt, NULL) != SQLITE_OK)
		return fail(err, store, "read");
	while (result == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
		result = fn(arg, (const char *)sqlite3_column_text(stmt, 0), err);
	if (result == 0 && code != SQLITE_DONE)
		result = fail(err, store, "read");
	sqlite3_finalize(stmt);
	return result < 0 ? -1 : 0;
}

#define KEPT_TABLE                                                                                 \
	"CREATE TABLE IF NOT EXISTS kept(run TEXT PRIMARY KEY, seq INTEGER NOT NULL,"              \
	" state BLOB NOT NULL) WITHOUT ROWID"

/* Made by the first who keeps something: a database of an earlier version has it not. */
static int sqlite_keep(void *opened, const char *run, int64_t seq, const void *bytes, size_t len,
		       struct err **err)
{
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt = NULL;
	int code;

	if (sqlite3_exec(store->db, KEPT_TABLE, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(store->db,
			       "INSERT OR REPLACE INTO kept(run, seq, state) VALUES(?1, ?2, ?3)",
			       -1, &stmt, NULL) != SQLITE_OK)
		return fail(err, store, "write to");
	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, seq);
	sqlite3_bind_blob64(stmt, 3, bytes, len, SQLITE_STATIC);
	code = sqlite3_step(stmt);
	if (code != SQLITE_DONE)
		fail(err, store, "write to");
	sqlite3_finalize(stmt);
	return code == SQLITE_DONE ? 1 : -1;
}

static bool has_kept(struct sqlite_store *store)
{
	char tables[8];

	ask(store->db, "SELECT count(*) FROM sqlite_master WHERE name='kept'", tables,
	    sizeof tables);
	return strcmp(tables, "1") == 0;
}

static int sqlite_kept(void *opened, const char *run, int64_t *ret_seq, struct sb *ret,
		       struct err **err)
{
	struct sqlite_store *store = opened;
	sqlite3_stmt *stmt = NULL;
	int code;

	if (!has_kept(store))
		return 0;
	if (sqlite3_prepare_v2(store->db, "SELECT seq, state FROM kept WHERE run=?1", -1, &stmt,
			       NULL) != SQLITE_OK)
		return fail(err, store, "read");
	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW) {
		*ret_seq = sqlite3_column_int64(stmt, 0);
		sb_add(ret, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1));
	} else if (code != SQLITE_DONE) {
		fail(err, store, "read");
	}
	sqlite3_finalize(stmt);
	return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : -1;
}

static int delete_from(struct sqlite_store *store, const char *sql, const char *run,
		       struct err **err)
{
	sqlite3_stmt *stmt = NULL;
	int code;

	if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return fail(err, store, "write to");
	sqlite3_bind_text(stmt, 1, run, -1, SQLITE_STATIC);
	code = sqlite3_step(stmt);
	if (code != SQLITE_DONE)
		fail(err, store, "write to");
	sqlite3_finalize(stmt);
	return code == SQLITE_DONE ? 0 : -1;
}

/* What was derived from the events goes first: it is nothing without them. */
static int sqlite_forget(void *opened, const char *run, struct err **err)
{
	struct sqlite_store *store = opened;

	if (has_kept(store) && delete_from(store, "DELETE FROM kept WHERE run=?1", run, err) < 0)
		return -1;
	return delete_from(store, "DELETE FROM event WHERE run=?1", run, err);
}

const struct journal_ops journal_sqlite = {
	.scheme = "sqlite",
	.open = sqlite_open,
	.close = sqlite_close,
	.append = sqlite_append,
	.rows = sqlite_rows,
	.runs = sqlite_runs,
	.forget = sqlite_forget,
	.keep = sqlite_keep,
	.kept = sqlite_kept,
};
