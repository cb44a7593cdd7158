/* Files: limited reads, writes that a crash cannot tear, trees: see fs.h. */
#include "jobs/base/fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/hash.h"

#define READ_SIZE ((size_t)64 << 10)

/* Name in parentheses as in err.c. */
int(fs_error)(struct err **err, int os_errno, const char *fmt, ...)
{
	AUTO(sb_release) struct sb what = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&what, fmt, args);
	va_end(args);
	err_system(err, EXIT_REFUSED, os_errno, "%s", what.text);
	switch (os_errno) {
	case ENOSPC:
	case EDQUOT:
		return err_hint(err, "free space on that file system or choose another folder");
	case EROFS:
		return err_hint(err, "choose a folder on a writable file system");
	case EACCES:
	case EPERM:
		return err_hint(err, "check the owner and the rights of it and of its folders");
	default:
		return -1;
	}
}

char *fs_join(const char *a, const char *b)
{
	size_t len = strlen(a);

	if (b[0] == '/' || len == 0)
		return mem_copy(b);
	if (b[0] == '\0')
		return mem_copy(a);
	return mem_format("%s%s%s", a, a[len - 1] == '/' ? "" : "/", b);
}

char *fs_dirname(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_copy(".");
	while (slash > path && slash[-1] == '/')
		slash--;
	return slash == path ? mem_copy("/") : mem_copy_n(path, (size_t)(slash - path));
}

const char *fs_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *fs_name_unsafe(const char *name, size_t len)
{
	if (len == 0)
		return "has an empty part";
	if (len == 1 && name[0] == '.')
		return "has a part '.'";
	if (len == 2 && name[0] == '.' && name[1] == '.')
		return "has a part '..'";
	if (len > FS_NAME_MAX)
		return "has a part of more than 255 bytes";
	return NULL;
}

ssize_t fs_read_full(int fd, void *bytes, size_t len, int64_t at)
{
	char *to = bytes;
	size_t have = 0;

	while (have < len) {
		ssize_t got = at < 0 ? read(fd, to + have, len - have)
				     : pread(fd, to + have, len - have, at + (off_t)have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

int fs_write_full(int fd, const void *bytes, size_t len)
{
	for (const char *at = bytes, *end = at + len; at < end;) {
		ssize_t put = write(fd, at, (size_t)(end - at));

		if (put < 0 && errno != EINTR)
			return errno;
		at += put > 0 ? put : 0;
	}
	return 0;
}

struct fs_stamp fs_stamp_of(const struct stat *st)
{
	return (struct fs_stamp){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec,
		.ctime_s = st->st_ctim.tv_sec,
		.ctime_ns = st->st_ctim.tv_nsec,
	};
}

/* No file system has coarser times than this. */
#define SETTLED_MS 2000

bool fs_is_settled(const struct stat *st, struct utc at)
{
	const struct timespec *last = &st->st_mtim;

	if (st->st_ctim.tv_sec > last->tv_sec ||
	    (st->st_ctim.tv_sec == last->tv_sec && st->st_ctim.tv_nsec > last->tv_nsec))
		last = &st->st_ctim;
	return last->tv_sec * 1000 + last->tv_nsec / 1000000 < at.ms - SETTLED_MS;
}

bool fs_has_changed(int fd, const struct stat *before)
{
	struct stat now;
	int failures = 0;

	while (fstat(fd, &now) < 0)
		if (!err_try_again(&failures))
			return true;
	return now.st_size != before->st_size || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

/* A look that failed once says nothing. */
static bool look_at(const char *path, struct stat *ret)
{
	int failures = 0;

	while (stat(path, ret) < 0)
		if (!err_try_again(&failures))
			return false;
	return true;
}

bool fs_exists(const char *path)
{
	struct stat st;

	return look_at(path, &st);
}

int fs_look(const char *path, struct err **err)
{
	if (fs_exists(path))
		return 1;
	if (!err_errno_passes(errno) || errno == EACCES)
		return 0;
	return fs_error(err, errno, "cannot look for '%s'", path);
}

bool fs_is_dir(const char *path)
{
	struct stat st;

	return look_at(path, &st) && S_ISDIR(st.st_mode);
}

/* Append `part` to the normalised path in `out`: "." is dropped, ".." removes the last part. */
static void append_normal(struct sb *out, const char *part, size_t len)
{
	if (len == 0 || (len == 1 && part[0] == '.'))
		return;
	if (len == 2 && part[0] == '.' && part[1] == '.') {
		while (out->len > 0 && out->text[--out->len] != '/')
			;
		if (out->cap)
			out->text[out->len] = '\0';
		return;
	}
	sb_addc(out, '/');
	sb_add(out, part, len);
}

char *fs_absolute(const char *path)
{
	AUTO(auto_free) char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
	AUTO(auto_free) char *whole = fs_join(cwd ? cwd : "/", path);
	struct sb out = SB_INIT;

	for (const char *part = whole; *part;) {
		const char *end = strchrnul(part, '/');

		append_normal(&out, part, (size_t)(end - part));
		part = *end ? end + 1 : end;
	}
	if (out.len == 0)
		sb_addc(&out, '/');
	return sb_take(&out);
}

char *fs_of_user(const char *path)
{
	bool at_home = path[0] == '~' && (path[1] == '/' || path[1] == '\0');
	const char *home = at_home ? getenv("HOME") : NULL;
	AUTO(auto_free) char *there = NULL;

	if (!home || home[0] != '/')
		return fs_absolute(path);
	there = mem_format("%s%s", home, path + 1);
	return fs_absolute(there);
}

/* Append the rest of `fd`; stops with EFBIG once it passes `max` or the builder. */
static int read_all(int fd, size_t max, struct sb *text)
{
	AUTO(auto_free) char *buffer = mem_alloc(READ_SIZE);
	size_t left = max;
	ssize_t got;

	while ((got = read(fd, buffer, READ_SIZE)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if ((size_t)got > left)
			return EFBIG;
		left -= (size_t)got;
		sb_add(text, buffer, (size_t)got);
		if (text->truncated)
			return EFBIG;
	}
	return 0;
}

int fs_open_regular(const char *path, struct err **err)
{
	/* Opening a pipe would wait for its other end. */
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int failures = 0;

	if (fd < 0)
		return fs_error(err, errno, "cannot read '%s'", path);
	while (fstat(fd, &st) < 0)
		if (!err_try_again(&failures))
			return fs_error(err, errno, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return fs_error(err, EISDIR, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EXIT_REFUSED, "cannot read '%s': not a regular file", path);
	return TAKE_FD(fd);
}

int fs_read(const char *path, size_t max, struct sb *text, struct err **err)
{
	size_t len_before = text->len;
	AUTO(auto_close) int fd = fs_open_regular(path, err);
	int failed;

	if (fd < 0)
		return -1;
	failed = read_all(fd, max, text);
	if (!failed)
		return 0;
	if (text->len > len_before) {
		text->len = len_before;
		text->text[len_before] = '\0';
	}
	if (failed == EFBIG)
		return err_set(err, EXIT_REFUSED, "cannot read '%s': larger than %zu bytes", path,
			       max);
	return fs_error(err, failed, "cannot read '%s'", path);
}

static int sync_dir(const char *path)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	/* Some network and FUSE file systems do not support fsync on folders. */
	if (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP)
		return errno;
	return 0;
}

int fs_sync_dir(const char *path, struct err **err)
{
	int failed = sync_dir(path);

	return failed ? fs_error(err, failed, "cannot sync the folder '%s'", path) : 0;
}

static int sync_parent(const char *path, struct err **err)
{
	AUTO(auto_free) char *dir = fs_dirname(path);

	return fs_sync_dir(dir, err);
}

/* Write, sync if `durable`, and close; returns an errno or 0. Closing reports the late errors of
 * network file systems, so it is part of the write. */
static int fill_and_close(int fd, const void *bytes, size_t len, mode_t mode, bool durable)
{
	int failed = fs_write_full(fd, bytes, len);

	if (!failed && (fchmod(fd, mode) < 0 || (durable && fsync(fd) < 0)))
		failed = errno;
	if (close(fd) < 0 && !failed && errno != EINTR)
		failed = errno;
	return failed;
}

/* A name beside `path` that no other process and no earlier call has used. */
static char *temp_name(const char *path)
{
	static unsigned counter;
	AUTO(auto_free) char *dir = fs_dirname(path);
	AUTO(auto_free) char *name = NULL;
	char chance[HASH_NAME_HEX];

	hash_random_hex(8, chance);
	name = mem_format(FS_TEMP_PREFIX "%ld-%u-%s", (long)getpid(), counter++, chance);
	return fs_join(dir, name);
}

/* A complete file beside `path`; nothing is left after a failure. */
static int write_temp(const char *path, const void *bytes, size_t len, mode_t mode, bool durable,
		      char **ret_temp, struct err **err)
{
	AUTO(auto_free) char *temp = temp_name(path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int failed;

	if (fd < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	failed = fill_and_close(fd, bytes, len, mode, durable);
	if (failed) {
		unlink(temp);
		return fs_error(err, failed, "cannot write '%s'", path);
	}
	*ret_temp = TAKE(temp);
	return 0;
}

static int replace(const char *path, const void *bytes, size_t len, mode_t mode, bool durable,
		   struct err **err)
{
	AUTO(auto_free) char *temp = NULL;

	if (write_temp(path, bytes, len, mode, durable, &temp, err) < 0)
		return -1;
	if (rename(temp, path) < 0) {
		int failed = errno;

		unlink(temp);
		return fs_error(err, failed, "cannot write '%s'", path);
	}
	return durable ? sync_parent(path, err) : 0;
}

int fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, struct err **err)
{
	return replace(path, bytes, len, mode, true, err);
}

int fs_write_passing(const char *path, const void *bytes, size_t len, mode_t mode, struct err **err)
{
	return replace(path, bytes, len, mode, false, err);
}

int fs_mkdirs_open(const char *path, mode_t mode, struct err **err)
{
	AUTO(auto_free) char *parent = NULL;
	struct stat st;
	int failed;

	if (fs_is_dir(path))
		return 0;
	parent = fs_dirname(path);
	if (strlen(parent) < strlen(path) && fs_mkdirs_open(parent, mode, err) < 0)
		return -1;
	if (mkdir(path, mode) < 0) {
		bool seen;

		failed = errno;
		/* Another process may have been faster. */
		seen = look_at(path, &st);
		if (seen && S_ISDIR(st.st_mode))
			return 0;
		/* A path that cannot be looked at may be a folder. */
		if (failed == EEXIST)
			failed = seen || errno == ENOENT ? ENOTDIR : errno;
		return fs_error(err, failed, "cannot make the folder '%s'", path);
	}
	failed = sync_dir(parent);
	/* A parent that we may write to but not read cannot be synced. */
	return failed && failed != EACCES
		       ? fs_error(err, failed, "cannot sync the folder '%s'", parent)
		       : 0;
}

int fs_mkdirs(const char *path, struct err **err)
{
	return fs_mkdirs_open(path, 0700, err);
}

int fs_scratch(struct err **err)
{
	const char *set = getenv("TMPDIR");
	const char *dir = set && set[0] == '/' ? set : "/tmp";
	AUTO(auto_free) char *name = NULL;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* Not every file system supports O_TMPFILE. */
	name = mem_format("%s/" FS_TEMP_PREFIX "XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return fs_error(err, errno, "cannot make a temporary file in '%s'", dir);
	unlink(name);
	return fd;
}
