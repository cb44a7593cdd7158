/* The lease of a driver on a run, and its kind for a local disk: see lease.h. */
#include "jobs/run/journal/lease.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/process/loop.h"
#include "jobs/run/journal/lease_internal.h"

#define LIMIT_MS ((int64_t)24 * 60 * 60 * 1000) /* for a run without limits.unreachable */
/* The path named another file each time it was opened: only a removal does that, once. */
#define LOCK_TRIES 100

/* True if the path still names the open file: a removal of the run unlinks it under its lock. */
static bool is_current(int fd, const char *path)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
	       opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static void read_holder(struct lease *lease, int fd)
{
	char text[300] = "";

	if (pread(fd, text, sizeof text - 1, 0) < 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	free(lease->holder);
	lease->holder = mem_copy(text);
}

static void write_holder(int fd)
{
	char text[300], host[128] = "?";
	int len;

	gethostname(host, sizeof host - 1);
	len = snprintf(text, sizeof text, "pid %ld on %s\n", (long)getpid(), host);
	/* A full disk must not keep a run from being driven; it has room for as many bytes as the
	 * file already has. */
	if (pwrite(fd, text, (size_t)len, 0) < 0 || ftruncate(fd, len) < 0)
		errno = 0;
}

/* Locks the whole file, tied to the open file like flock(2); but this kind can be queried without
 * being taken (fcntl(2), open file description locks): a look would turn away a process that wants
 * it at that moment. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

static int lock_try(struct lease *lease, const char *state_dir, struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", state_dir, lease->run);
	AUTO(auto_free) char *path = fs_join(folder, LEASE_LOCK);

	for (int i = 0; i < LOCK_TRIES; i++) {
		AUTO(auto_close) int fd = -1;
		struct flock lock = whole_file();

		if (fs_mkdirs(folder, err) < 0 ||
		    lease_pass_obstacle(lease, folder, LEASE_LOCK, lease->rules.over_damage, err) <
			    0)
			return -1;
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
			  0600);
		if (fd < 0 && errno == ENOENT)
			continue; /* the run is being removed right now */
		if (fd < 0)
			return fs_error(err, errno, "cannot open '%s'", path);
		if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
			if (errno != EAGAIN && errno != EACCES)
				return fs_error(err, errno, "cannot lock '%s'", path);
			read_holder(lease, fd);
			return lease_busy(lease, err);
		}
		if (!is_current(fd, path))
			continue;
		write_holder(fd);
		lease->fd = TAKE_FD(fd);
		lease->path = TAKE(path);
		lease->held = true;
		return 1;
	}
	err_set(err, EXIT_REFUSED, "cannot lock '%s': each open returns another file", path);
	return err_hint(err, "keep the state on a local file system, or use dir:DIRECTORY");
}

static struct lease *lease_new(struct journal *journal, const char *run,
			       const struct lease_rules *rules)
{
	struct lease *lease = mem_zero(1, sizeof *lease);

	snprintf(lease->run, sizeof lease->run, "%s", run);
	lease->fd = -1;
	lease->store = journal_store(journal);
	lease->rules = rules ? *rules : LEASE_RULES;
	lease->key = mem_format("runs/%s/" LEASE_OBJECT, run);
	hash_random_hex(sizeof lease->nonce / 2, lease->nonce);
	return lease;
}

int lease_try(struct journal *journal, const char *run, const struct lease_rules *rules,
	      struct lease **lease, int64_t *ret_wait_ms, struct err **err)
{
	if (!*lease)
		*lease = lease_new(journal, run, rules);
	*ret_wait_ms = 0;
	if ((*lease)->store)
		return lease_object_try(*lease, ret_wait_ms, err);
	return lock_try(*lease, journal_dir(journal), err);
}

static int lock_check(struct lease *lease, const char *state_dir, struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", state_dir, lease->run);
	AUTO(auto_free) char *path = fs_join(folder, LEASE_LOCK);
	/* Opening a pipe would wait for its other end. */
	AUTO(auto_close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct flock lock = whole_file();

	if (lease_pass_obstacle(lease, folder, LEASE_LOCK, false, err) < 0)
		return -1;
	if (fd < 0)
		return errno == ENOENT ? 1 : fs_error(err, errno, "cannot open '%s'", path);
	read_holder(lease, fd);
	if (!lease->path)
		lease->path = mem_copy(path);
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return fs_error(err, errno, "cannot look at the lock of '%s'", path);
	return lock.l_type == F_UNLCK;
}

int lease_check(struct journal *journal, const char *run, const struct lease_rules *rules,
		struct lease **lease, struct err **err)
{
	if (!*lease)
		*lease = lease_new(journal, run, rules);
	if ((*lease)->store)
		return lease_object_check(*lease, err);
	return lock_check(*lease, journal_dir(journal), err);
}

static int read_limit(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	if (ev && ev->kind == EV_RUN_CREATED)
		*(int64_t *)arg =
			js_int(json_object_get(ev->plan, "limits"), "unreachable_ms", LIMIT_MS);
	return 1;
}

/* Returns how long to try a lease that can be neither read nor won; 0 if without limit. */
static int64_t limit_of(struct journal *journal, const struct lease *lease)
{
	AUTO(err_freep) struct err *ignored = NULL;
	int64_t limit_ms = LIMIT_MS;

	(void)!journal_read(journal, lease->run, 1, read_limit, &limit_ms, &ignored);
	return limit_ms;
}

/* True if the process has the file open: so its process id was not reused by another process. */
static bool has_open(pid_t pid, const char *path)
{
	AUTO(auto_free) char *folder = mem_format("/proc/%ld/fd", (long)pid);
	DIR *dir = opendir(folder);
	struct stat named, opened;
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = fstatat(dirfd(dir), entry->d_name, &opened, 0) == 0 &&
			stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
			opened.st_dev == named.st_dev;
	if (dir)
		closedir(dir);
	return found;
}

static bool lock_signal(const struct lease *lease, int signo)
{
	char host[128] = "?", theirs[200] = "";
	long pid = 0;

	gethostname(host, sizeof host - 1);
	return lease->path && sscanf(lease_holder(lease), "pid %ld on %199s", &pid, theirs) == 2 &&
	       pid > 1 && strcmp(host, theirs) == 0 && has_open((pid_t)pid, lease->path) &&
	       kill((pid_t)pid, signo) == 0;
}

bool lease_signal(const struct lease *lease, int signo)
{
	return lease->store ? lease_object_signal(lease, signo) : lock_signal(lease, signo);
}

static void stop_waiting(void *arg)
{
	loop_quit(arg);
}

/* The wait of lease_take(), and what was reported already. */
struct waiting {
	struct journal *journal;
	lease_wait_fn fn;
	void *arg;
	bool holder_reported, trouble_reported;
};

static void report_wait(struct waiting *waiting, const struct lease *lease,
			const struct err *trouble, int64_t at_most_ms)
{
	bool *is_reported = trouble ? &waiting->trouble_reported : &waiting->holder_reported;

	if (waiting->fn && !*is_reported)
		waiting->fn(waiting->arg, lease_holder(lease), trouble, at_most_ms);
	*is_reported = true;
}

/* Returns the time to wait before the next try, or -1 with an error if another try is pointless. */
static int64_t time_to_wait(struct waiting *waiting, const struct lease *lease, int64_t wait_ms,
			    struct err **err)
{
	AUTO(err_freep) struct err *trouble = NULL;
	int64_t limit_ms, left_ms;

	if (lease->refusals == 0) {
		report_wait(waiting, lease, NULL, lease->rules.valid_ms);
		return wait_ms;
	}
	limit_ms = limit_of(waiting->journal, lease);
	lease_refused(lease, &trouble);
	left_ms = limit_ms - (clock_mono_now().ms - lease->refused_at.ms);
	if (limit_ms > 0 && left_ms <= 0) {
		*err = TAKE(trouble);
		return err_wrap(err, "given up after limits.unreachable, %lld s",
				(long long)(limit_ms / 1000));
	}
	report_wait(waiting, lease, trouble, limit_ms);
	return limit_ms > 0 && left_ms < wait_ms ? left_ms : wait_ms;
}

int lease_take(struct journal *journal, const char *run, const struct lease_rules *rules,
	       lease_wait_fn on_wait, void *arg, struct lease **lease, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = NULL;
	struct waiting waiting = { .journal = journal, .fn = on_wait, .arg = arg };
	int64_t wait_ms = 0;
	int taken;

	while ((taken = lease_try(journal, run, rules, lease, &wait_ms, err)) == 0) {
		if (!loop && loop_new(&loop, err) < 0)
			return -1;
		wait_ms = time_to_wait(&waiting, *lease, wait_ms, err);
		if (wait_ms < 0)
			return -1;
		loop_after(loop, wait_ms, stop_waiting, loop);
		if (loop_run(loop, err) < 0)
			return -1;
	}
	return taken < 0 ? -1 : 0;
}

int lease_keep(struct lease *lease, struct err **err)
{
	if (lease->store)
		return lease_object_keep(lease, err);
	return lease->held ? 0 : lease_busy(lease, err);
}

int64_t lease_due(const struct lease *lease)
{
	int64_t due;

	if (!lease->store)
		return -1;
	due = lease->next.ms - clock_mono_now().ms;
	return due > 0 ? due : 0;
}

int lease_remove(struct lease *lease, struct err **err)
{
	if (lease_keep(lease, err) < 0)
		return -1;
	/* Removed while it is held, so that no other process loses its lease. */
	if (lease->store && store_delete(lease->store, lease->key, err) < 0)
		return -1;
	if (!lease->store && unlink(lease->path) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", lease->path);
	lease->held = false;
	return 0;
}

void lease_freep(struct lease **lease)
{
	struct lease *l = *lease;

	if (!l)
		return;
	if (l->held && l->store)
		lease_object_release(l);
	auto_close(&l->fd);
	free(l->holder);
	free(l->path);
	free(l->key);
	free(l->seen);
	free(l);
	*lease = NULL;
}
