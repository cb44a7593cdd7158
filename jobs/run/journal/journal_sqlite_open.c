/* Opening and creating the journal in SQLite: see journal_sqlite_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/run/journal/journal_sqlite_internal.h"
#include "jobs/run/journal/lease_internal.h"

#define FORMAT_VERSION 1
#define BUSY_AGAIN_MS  1000 /* after a write that timed out */
#define BUSY_RETRY_MS  20
#define WAL_SUFFIX     "-wal"

/* A waiting driver hears no signal, so a pending one ends the wait; and it waits long only once: a
 * lock that is held for good must not keep it from everything else. */
static int on_busy(void *arg, int times)
{
	const struct sqlite_store *store = arg;
	int most = (store->was_busy ? BUSY_AGAIN_MS : SQLITE_BUSY_WAIT_MS) / BUSY_RETRY_MS;

	return times < most && cancel_pause(BUSY_RETRY_MS);
}

static int check_format(struct sqlite_store *store, struct err **err)
{
	char version[16];

	journal_sqlite_query(store->db, "PRAGMA user_version", version, sizeof version);
	if (version[0] == '\0')
		return journal_sqlite_fail(err, store, "read");
	if (strtol(version, NULL, 10) > FORMAT_VERSION) {
		err_set(err, EXIT_REFUSED, "'%s' was written by a newer stoker (format %s)",
			store->path, version);
		return err_hint(err, "use that version, or another folder with --state");
	}
	return 0;
}

/* Looks for the table: 1, 0 if it is absent, -1. A writer may have been stopped, or run out of
 * space, before its first event. */
static int find_table(struct sqlite_store *store, struct err **err)
{
	char tables[8];

	journal_sqlite_query(store->db, "SELECT count(*) FROM sqlite_master WHERE name='event'",
			     tables, sizeof tables);
	if (tables[0] == '\0')
		return journal_sqlite_fail(err, store, "read");
	return strcmp(tables, "0") != 0;
}

/* SQLite does not call the busy handler when it changes the mode of a new database: if two
 * processes do so at once, one of them gets SQLITE_BUSY immediately. */
static void set_wal(struct sqlite_store *store, char *ret_mode, size_t size)
{
	struct mono until = { clock_mono_now().ms + SQLITE_BUSY_WAIT_MS };

	do {
		journal_sqlite_query(store->db, "PRAGMA journal_mode=WAL", ret_mode, size);
		if (ret_mode[0] || (sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY)
			return;
	} while (clock_mono_now().ms < until.ms && cancel_pause(BUSY_RETRY_MS));
}

/* Refuses if there are folders of runs that the database does not know, because it is `what`. */
static int refuse_lost(const struct sqlite_store *store, const char *what, struct err **err)
{
	AUTO(auto_free) char *why = NULL;
	AUTO(sb_release) struct sb names = SB_INIT;
	size_t count = damage_lost_runs(store->dir, LEASE_LOCK, &names);

	if (count == 0)
		return 0;
	why = mem_format("the file is %s, although folders of %zu run%s lie beside it (%s)", what,
			 count, count > 1 ? "s" : "", names.text);
	damage_of_file(err, store->path, why);
	return -1;
}

/* An existing database is not written to: a driver that was stopped in the middle of a write must
 * not hold up a reader that only asks for the holder of the lease. */
static int set_up(struct sqlite_store *store, struct err **err)
{
	char mode[16];
	int begun;

	set_wal(store, mode, sizeof mode);
	if (mode[0] == '\0')
		return journal_sqlite_fail(err, store, "open");
	if (strcmp(mode, "wal") != 0) {
		err_set(err, EXIT_REFUSED, "cannot keep a write-ahead log beside '%s'",
			store->path);
		return err_hint(err, "choose a folder on a local disk with --state");
	}
	if (sqlite3_exec(store->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL) != SQLITE_OK)
		return journal_sqlite_fail(err, store, "open");
	journal_sqlite_query(store->db, "PRAGMA synchronous", mode, sizeof mode);
	if (strcmp(mode, "2") != 0)
		return err_set(err, EXIT_DEFECT, "SQLite ignores synchronous=FULL");
	if (check_format(store, err) < 0)
		return -1;
	begun = find_table(store, err);
	if (begun != 0)
		return begun < 0 ? -1 : 0;
	if (!store->renewed && refuse_lost(store, "without events", err) < 0)
		return -1;
	if (sqlite3_exec(store->db,
			 "BEGIN IMMEDIATE;" SQLITE_EVENT_TABLE ";"
			 "PRAGMA user_version=1;"
			 "COMMIT",
			 NULL, NULL, NULL) != SQLITE_OK)
		return journal_sqlite_fail(err, store, "set up");
	return 0;
}

/* "file:PATH?immutable=1" with the special characters of a URI as %XX. */
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

/* Copies a whole file; database and log must both fit into the temporary folder. */
static int copy_file(const char *from, const char *to, struct err **err)
{
	AUTO(auto_close)
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
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

static int fail_copy(struct err **err)
{
	return err_hint(err, "make the state directory writable, or set TMPDIR to a folder with "
			     "free space; the newest events can only be read from a copy");
}

static bool answers(struct sqlite_store *store)
{
	char tables[8];

	journal_sqlite_query(store->db, "SELECT count(*) FROM sqlite_master", tables,
			     sizeof tables);
	return tables[0] != '\0';
}

/* Opens a copy of database and log in `folder`, which may be removed afterwards: SQLite holds all
 * of its files open from the first read on. */
static int open_copy_in(struct sqlite_store *store, const char *folder, const char *log,
			struct err **err)
{
	AUTO(auto_free) char *copy = fs_join(folder, JOURNAL_SQLITE_FILE);
	AUTO(auto_free) char *copied_log = mem_format("%s" WAL_SUFFIX, copy);

	if (copy_file(log, copied_log, err) < 0 || copy_file(store->path, copy, err) < 0)
		return fail_copy(err);
	if (sqlite3_open_v2(copy, &store->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
	    !answers(store))
		return journal_sqlite_fail(err, store, "read");
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
		return fail_copy(err);
	}
	result = open_copy_in(store, folder, log, err);
	if (fs_remove_tree(folder, &left) < 0 && result == 0) {
		*err = TAKE(left);
		return -1;
	}
	return result;
}

/* Opens the database as it is, without a single write. Events that are only in its log would be
 * lost silently, so if there is a log, a copy is read. No process can be writing now: a writer
 * keeps the log's index beside it, and SQLite would have read the database in place with it. */
static int open_untouched(struct sqlite_store *store, struct err **err)
{
	AUTO(auto_free) char *log = mem_format("%s" WAL_SUFFIX, store->path);
	AUTO(auto_free) char *uri = NULL;
	struct stat st;

	store->is_copy = true;
	if (stat(log, &st) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot look at '%s'", log);
	if (stat(log, &st) == 0 && st.st_size > 0)
		return open_copy(store, log, err);
	uri = immutable_uri(store->path);
	if (sqlite3_open_v2(uri, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) !=
	    SQLITE_OK)
		return journal_sqlite_fail(err, store, "read");
	return 0;
}

/* Readers open for writing too if they may, because only then can SQLite remove its side files; on
 * a read-only file system SQLite reads through the log of a writer that lives or was killed, if the
 * log's index is there too. */
static int open_to_read(struct sqlite_store *store, struct err **err)
{
	AUTO(auto_close) int probe = open(store->path, O_PATH | O_CLOEXEC);

	/* SQLite would only say that it cannot open the file; access(2) and open(2) say why. A
	 * plain descriptor of the file would, when it is closed, drop the locks of SQLite
	 * (fcntl(2)), and the last writer would remove the log that this reader goes on reading:
	 * O_PATH has no locks. */
	if (probe < 0 || access(store->path, R_OK) < 0)
		return fs_error(err, errno, "cannot read '%s'", store->path);
	if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
		sqlite3_busy_handler(store->db, on_busy, store);
		if (answers(store)) {
			sqlite3_exec(store->db, "PRAGMA query_only=1", NULL, NULL, NULL);
			return check_format(store, err);
		}
		if (sqlite3_errcode(store->db) == SQLITE_NOTADB)
			return journal_sqlite_fail(err, store, "read");
	}
	sqlite3_close(store->db);
	store->db = NULL;
	return open_untouched(store, err) < 0 ? -1 : check_format(store, err);
}

/* SQLite creates its side files itself, and follows no link to one. Anything but a regular file
 * would block it, or look like a transient error. */
static int check_side_files(const struct sqlite_store *store, struct err **err)
{
	static const char *const ends[] = { WAL_SUFFIX, "-shm" };

	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		AUTO(auto_free) char *path = mem_format("%s%s", store->path, ends[i]);
		struct stat st;

		if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
			continue;
		damage_of_file(err, path, "not a regular file");
		return err_hint(err, "move '%s' away", path);
	}
	return 0;
}

/* Checks that the file can be a database. Returns 1, 0 if absent, -1. */
static int check_file(const struct sqlite_store *store, struct err **err)
{
	AUTO(auto_free) char *log = mem_format("%s" WAL_SUFFIX, store->path);
	struct stat st, of_log;

	if (stat(store->path, &st) < 0) {
		if (errno == ELOOP)
			return damage_of_file(err, store->path, "a link to itself");
		if (errno != ENOENT && errno != ENOTDIR)
			return fs_error(err, errno, "cannot look at '%s'", store->path);
		return refuse_lost(store, "not there", err);
	}
	if (!S_ISREG(st.st_mode))
		return damage_of_file(err, store->path, "not a regular file");
	if (check_side_files(store, err) < 0)
		return -1;
	/* SQLite would discard the log. */
	if (st.st_size == 0 && stat(log, &of_log) == 0 && of_log.st_size > 0)
		return damage_of_file(err, store->path, "empty, although its log is not");
	return st.st_size == 0 && refuse_lost(store, "empty", err) < 0 ? -1 : 1;
}

static int open_for_reading(struct sqlite_store **store, struct err **err)
{
	int there = check_file(*store, err), begun = 0;

	if (there < 0 || (there > 0 && open_to_read(*store, err) < 0))
		return -1;
	if (there > 0)
		begun = find_table(*store, err);
	if (begun != 0)
		return begun < 0 ? -1 : 0;
	if (there > 0 && refuse_lost(*store, "without events", err) < 0)
		return -1;
	journal_sqlite_autoclose(store);
	*store = NULL;
	return 0;
}

static int connect_to_write(struct sqlite_store *store, struct err **err)
{
	if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			    NULL) != SQLITE_OK)
		return journal_sqlite_fail(err, store, "open");
	chmod(store->path, 0600);
	sqlite3_busy_handler(store->db, on_busy, store);
	return set_up(store, err);
}

/* A log that was written and could not be synced is read back from memory, by us and by others, and
 * a system that has failed to write it may think no more of it. Its content goes into the database,
 * which is synced, before anybody is told that it is there. */
static int write_log_back(struct sqlite_store *store, struct err **err)
{
	return sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL) ==
			       SQLITE_OK
		       ? 0
		       : journal_sqlite_fail(err, store, "write to");
}

/* The same at an opening, for whatever the processes before have left in the log. It waits for
 * nobody: a process that does it at this moment (SQLITE_BUSY) does it for all. */
static int bring_log_in(struct sqlite_store *store, struct err **err)
{
	int code =
		sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	return code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY
		       ? 0
		       : journal_sqlite_fail(err, store, "write to");
}

int journal_sqlite_heal(struct sqlite_store *store, struct err **err)
{
	struct stat st;

	if (!store->sick || !store->writes)
		return 0;
	sqlite3_finalize(store->append);
	sqlite3_close(store->db);
	store->append = NULL;
	store->db = NULL;
	/* A database that has disappeared is not created again, empty. */
	if (stat(store->path, &st) < 0)
		return fs_error(err, errno, "cannot look at '%s'", store->path);
	if (connect_to_write(store, err) < 0 || write_log_back(store, err) < 0) {
		store->sick = true;
		return -1;
	}
	store->sick = false;
	return 0;
}

/* True if it cannot be opened for what it holds, or for what it lacks. */
static bool is_lost(struct sqlite_store *store)
{
	AUTO(err_freep) struct err *why = NULL;

	if (check_file(store, &why) >= 0 && connect_to_write(store, &why) == 0)
		return false;
	sqlite3_close(TAKE(store->db));
	return why->damage;
}

static int open_to_salvage(struct sqlite_store *store, struct err **err)
{
	store->writes = true;
	if (access(store->dir, W_OK | X_OK) < 0)
		return fs_error(err, errno, "cannot write to the state directory '%s'", store->dir);
	if (check_side_files(store, err) < 0)
		return -1;
	if (check_file(store, err) >= 0 && connect_to_write(store, err) == 0)
		return 0;
	sqlite3_close(TAKE(store->db));
	if (!(*err)->damage)
		return -1;
	err_freep(err);
	if (journal_sqlite_move_aside(store, is_lost, err) < 0)
		return -1;
	if (store->db)
		return 0;
	store->renewed = true;
	return connect_to_write(store, err);
}

int journal_sqlite_open(const char *dir, enum journal_mode mode, void **ret, struct err **err)
{
	AUTO(journal_sqlite_autoclose) struct sqlite_store *store = mem_zero(1, sizeof *store);

	store->dir = mem_copy(dir);
	store->path = fs_join(dir, JOURNAL_SQLITE_FILE);
	if (mode == JOURNAL_SALVAGE) {
		if (open_to_salvage(store, err) < 0)
			return -1;
	} else if (mode == JOURNAL_READ) {
		if (open_for_reading(&store, err) < 0)
			return -1;
	} else {
		/* SQLite would only say that it cannot open the file; access(2) says why. */
		if (access(dir, W_OK | X_OK) < 0)
			return fs_error(err, errno, "cannot write to the state directory '%s'",
					dir);
		store->writes = true;
		if (check_file(store, err) < 0 || connect_to_write(store, err) < 0 ||
		    bring_log_in(store, err) < 0)
			return -1;
	}
	*ret = TAKE(store);
	return 0;
}
