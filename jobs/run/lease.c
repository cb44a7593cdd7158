/* The lease of a driver on a run, and its kind for a local disk: see lease.h. */
#include "jobs/run/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/loop.h"
#include "jobs/run/lease_inside.h"

int lease_busy(const struct lease *lease, struct err **err)
{
	err_set(err, EXIT_BUSY, "run %s is driven by %s", lease->run,
		*lease_holder(lease) ? lease_holder(lease) : "someone else");
	return err_hint(err, "'stoker events %s -f' follows it; only one process drives a run",
			lease->run);
}

/* The open file is still the one that the name means: whoever removed the run
 * took the file away under its lock. */
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
	/* Only for people: a full disk must not keep a run from being driven. */
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0)
		errno = 0;
}

/* The whole file, and tied to the open file like flock(2), but this kind can be
 * asked about without being taken (fcntl(2), open file description locks): a look
 * would turn away who wants it at that moment. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

static int lock_try(struct lease *lease, const char *state_dir, struct err **err)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", state_dir, lease->run);
	AUTO(auto_free) char *path = fs_join(folder, LEASE_LOCK);

	for (;;) {
		AUTO(auto_close) int fd = -1;
		struct flock lock = whole_file();

		if (fs_mkdirs(folder, err) < 0)
			return -1;
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == ENOENT)
			continue; /* the run is just being removed */
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
}

static struct lease *lease_new(struct journal *journal, const char *run,
			       const struct lease_rules *rules)
{
	struct lease *lease = mem_zero(1, sizeof *lease);
	unsigned char chance[16];

	snprintf(lease->run, sizeof lease->run, "%s", run);
	lease->fd = -1;
	lease->store = journal_store(journal);
	lease->rules = rules ? *rules : LEASE_RULES;
	lease->key = mem_format("runs/%s/" LEASE_OBJECT, run);
	random_bytes(chance, sizeof chance);
	for (size_t i = 0; i < sizeof chance; i++)
		snprintf(lease->nonce + 2 * i, 3, "%02x", chance[i]);
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

static int lock_look(struct lease *lease, const char *state_dir, struct err **err)
{
	AUTO(auto_free) char *path = mem_format("%s/runs/%s/" LEASE_LOCK, state_dir, lease->run);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct flock lock = whole_file();

	if (fd < 0)
		return errno == ENOENT ? 1 : fs_error(err, errno, "cannot open '%s'", path);
	read_holder(lease, fd);
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return fs_error(err, errno, "cannot look at the lock of '%s'", path);
	return lock.l_type == F_UNLCK;
}

int lease_look(struct journal *journal, const char *run, const struct lease_rules *rules,
	       struct lease **lease, struct err **err)
{
	if (!*lease)
		*lease = lease_new(journal, run, rules);
	if ((*lease)->store)
		return lease_object_look(*lease, err);
	return lock_look(*lease, journal_dir(journal), err);
}

const char *lease_holder(const struct lease *lease)
{
	return lease->holder ? lease->holder : "";
}

static void stop_waiting(void *arg)
{
	loop_quit(arg);
}

int lease_take(struct journal *journal, const char *run, const struct lease_rules *rules,
	       lease_wait_fn on_wait, void *arg, struct lease **ret, struct err **err)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(loop_freep) struct loop *loop = NULL;
	int64_t wait_ms = 0;
	int taken;

	while ((taken = lease_try(journal, run, rules, &lease, &wait_ms, err)) == 0) {
		if (!loop && loop_new(&loop, err) < 0)
			return -1;
		if (on_wait)
			on_wait(arg, lease_holder(lease), lease->rules.valid_ms);
		on_wait = NULL; /* once is enough */
		loop_after(loop, wait_ms, stop_waiting, loop);
		if (loop_run(loop, err) < 0)
			return -1;
	}
	if (taken < 0)
		return -1;
	*ret = TAKE(lease);
	return 0;
}

int lease_keep(struct lease *lease, struct err **err)
{
	if (lease->store)
		return lease_object_keep(lease, err);
	return lease->held ? 0 : lease_busy(lease, err);
}

/* Rates of clocks differ, and an effect takes its time: the holder stops before
 * anybody may begin. */
static int64_t own_limit(const struct lease *lease)
{
	return lease->rules.valid_ms - lease->rules.valid_ms / 6;
}

bool lease_is_mine(const struct lease *lease)
{
	return lease->held && (!lease->store || mono_now().ms - lease->since.ms < own_limit(lease));
}

int64_t lease_due(const struct lease *lease)
{
	int64_t due;

	if (!lease->store)
		return -1;
	due = lease->next.ms - mono_now().ms;
	return due > 0 ? due : 0;
}

int lease_remove(struct lease *lease, struct err **err)
{
	if (lease_keep(lease, err) < 0)
		return -1;
	/* While it is held, so that nobody loses one that is his. */
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
