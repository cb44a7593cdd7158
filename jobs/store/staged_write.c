/* Staged writes, many files at once: see staged_write.h. */
#include "jobs/store/staged_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"

#define TEMP_PREFIX      STORE_RESERVED "pull-"
#define STAGED_WRITE_KEY 1024

/* Files are locked right after they are made; a younger file may not be locked yet. */
#define SWEEP_AGE_S 60

struct staged_write_folder {
	int fd;
	size_t refs;
	size_t len;  /* length of `path` */
	char path[]; /* with its slash, or "" */
};

struct staged_write {
	struct store_dir *store;
	int root;
	bool case_blind; /* "A" and "a" are the same name here */
	struct staged_write_folder *current;
	/* Folders with new names that are not yet durable. */
	struct staged_write_folder **named;
	size_t named_count;
};

static const char *const in_the_way = "has a file or a link where a folder must be";
static const char *const other_case =
	"differs by upper and lower case only from another name, which the file system takes "
	"for the same";

static void folder_unref(struct staged_write_folder *folder)
{
	if (!folder || --folder->refs > 0)
		return;
	close(folder->fd);
	free(folder);
}

/* True if the file system treats names that differ only by case as the same. */
static bool is_case_blind(int root)
{
	char name[sizeof TEMP_PREFIX + HASH_NAME_HEX], other[sizeof name];
	char chance[HASH_NAME_HEX];
	AUTO(auto_close) int fd = -1;
	struct stat mine, found;
	bool blind;

	hash_random_hex(8, chance);
	snprintf(name, sizeof name, TEMP_PREFIX "%s", chance);
	fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	memcpy(other, name, sizeof other);
	memcpy(strstr(other, "pull"), "PULL", strlen("PULL"));
	blind = fstat(fd, &mine) == 0 && fstatat(root, other, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
		mine.st_ino == found.st_ino;
	(void)!unlinkat(root, name, 0);
	return blind;
}

int staged_write_open(struct store_dir *store, struct staged_write **ret, struct err **err)
{
	struct staged_write *staged = mem_zero(1, sizeof *staged);

	staged->store = store;
	staged->root = -1;
	if (store_dir_root_open(store, true, &staged->root, err) < 0) {
		staged_write_freep(&staged);
		return -1;
	}
	staged->case_blind = is_case_blind(staged->root);
	*ret = staged;
	return 0;
}

void staged_write_freep(struct staged_write **staged)
{
	if (!*staged)
		return;
	folder_unref((*staged)->current);
	for (size_t i = 0; i < (*staged)->named_count; i++)
		folder_unref((*staged)->named[i]);
	free((*staged)->named);
	auto_close(&(*staged)->root);
	free(*staged);
	*staged = NULL;
}

int staged_write_root(const struct staged_write *staged)
{
	return staged->root;
}

static const char *part_unsafe(const char *part, size_t len)
{
	if (text_starts(part, STORE_RESERVED))
		return "has a part that begins like a temporary file of stoker";
	return fs_name_unsafe(part, len);
}

static const char *key_unsafe(const char *key)
{
	if (key[0] == '/')
		return "is an absolute path";
	if (strlen(key) > STAGED_WRITE_KEY)
		return "is longer than 1024 bytes";
	for (;;) {
		size_t len = strcspn(key, "/");
		const char *why = part_unsafe(key, len);

		if (why || key[len] == '\0')
			return why;
		key += len + 1;
	}
}

/* Returns a refusal if the errno concerns the name and not the machine, else NULL. */
static const char *refusal_of(int os_errno)
{
	switch (os_errno) {
	case ENOTDIR:
	case ELOOP:
		return in_the_way;
	case EISDIR:
	case ENOTEMPTY:
		return "is the name of a folder here";
	case ENAMETOOLONG:
		return "is too long for the file system";
	case EILSEQ:
	case EINVAL:
		return "is an invalid name for the file system";
	default:
		return NULL;
	}
}

/* Returns 0 with the reason of a refusal, or -1 with an error. */
static int classify_error(const struct staged_write *staged, const char *key, int os_errno,
			  const char **ret_why, struct err **err)
{
	*ret_why = refusal_of(os_errno);
	if (*ret_why)
		return 0;
	return fs_error(err, os_errno, "cannot write '%s' in '%s'", key, staged->store->root);
}

/* True if the folder has a name of exactly these bytes. */
static bool has_exactly(int dir, const char *name)
{
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	bool found = false;

	while (stream && !found && (entry = readdir(stream)))
		found = strcmp(entry->d_name, name) == 0;
	if (stream)
		closedir(stream);
	return found;
}

/* Opens the folder `part`, making it if it is absent (*ret_made). Returns false with errno set
 * on failure. */
static bool step_down(int dir, const char *part, int *ret_fd, bool *ret_made)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, part, flags);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir, part, 0700) < 0 && errno != EEXIST)
			return false;
		*ret_made = true;
		fd = openat(dir, part, flags);
	}
	*ret_fd = fd;
	return fd >= 0;
}

/* Opens the folder of a key, made if need be. Returns 1, 0 if refused, -1 with an error. */
static int folder_of(struct staged_write *staged, const char *key, const char **ret_why,
		     struct err **err)
{
	const char *slash = strrchr(key, '/'), *part = key;
	size_t len = slash ? (size_t)(slash - key) + 1 : 0;
	struct staged_write_folder *folder = staged->current;
	AUTO(auto_close) int fd = -1;

	if (folder && folder->len == len && memcmp(folder->path, key, len) == 0)
		return 1;
	fd = fcntl(staged->root, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return classify_error(staged, key, errno, ret_why, err);
	while (part < key + len) {
		char name[NAME_MAX + 1];
		int next = -1;
		bool made_this = false;

		slash = strchr(part, '/');
		snprintf(name, sizeof name, "%.*s", (int)(slash - part), part);
		if (!step_down(fd, name, &next, &made_this))
			return classify_error(staged, key, errno, ret_why, err);
		close(fd);
		fd = next;
		if (staged->case_blind && !made_this) {
			AUTO(auto_close)
			int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			if (above >= 0 && !has_exactly(above, name)) {
				*ret_why = other_case;
				return 0;
			}
		}
		part = slash + 1;
	}
	folder_unref(staged->current);
	folder = mem_alloc(sizeof *folder + len + 1);
	*folder = (struct staged_write_folder){ TAKE_FD(fd), 1, len };
	memcpy(folder->path, key, len);
	folder->path[len] = '\0';
	staged->current = folder;
	return 1;
}

int staged_write_begin(struct staged_write *staged, const char *key, bool known,
		       struct staged_write_file *ret, struct err **err)
{
	const char *slash = strrchr(key, '/');
	char chance[HASH_NAME_HEX];
	int done;

	*ret = STAGED_WRITE_FILE_INIT;
	ret->why = key_unsafe(key);
	if (ret->why)
		return 0;
	done = folder_of(staged, key, &ret->why, err);
	if (done <= 0)
		return done;
	ret->name = slash ? slash + 1 : key;
	ret->known = known;
	hash_random_hex(8, chance);
	snprintf(ret->temp, sizeof ret->temp, TEMP_PREFIX "%s", chance);
	ret->fd = openat(staged->current->fd, ret->temp,
			 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (ret->fd < 0)
		return classify_error(staged, key, errno, &ret->why, err);
	/* If the file system does not support locks, staged_write_sweep() removes nothing. */
	(void)!flock(ret->fd, LOCK_EX | LOCK_NB);
	ret->folder = staged->current;
	ret->folder->refs++;
	return 1;
}

void staged_write_drop(struct staged_write_file *file)
{
	if (file->fd >= 0) {
		if (!file->named)
			(void)!unlinkat(file->folder->fd, file->temp, 0);
		close(file->fd);
	}
	file->fd = -1;
	folder_unref(file->folder);
	file->folder = NULL;
}

static int write_error(const struct staged_write *staged, const struct staged_write_file *file,
		       int os_errno, struct err **err)
{
	return fs_error(err, os_errno, "cannot write '%s%s' in '%s'", file->folder->path,
			file->name, staged->store->root);
}

/* Gives the file its final times. */
static int set_times(const struct staged_write *staged, struct staged_write_file *file,
		     struct err **err)
{
	struct timespec times[2];

	/* The exact time is set: no later write in the same tick of the kernel's clock can give
	 * the file the same one. */
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[1] = times[0];
	if (futimens(file->fd, times) < 0)
		return write_error(staged, file, errno, err);
	return 0;
}

static int give_name(const struct staged_write *staged, struct staged_write_file *file,
		     struct err **err)
{
	int dir = file->folder->fd;
	int done;

	if ((staged->case_blind || file->if_taken) && !file->known) {
		done = renameat2(dir, file->temp, dir, file->name, RENAME_NOREPLACE);
		if (done < 0 && errno == EEXIST) {
			file->why = file->if_taken ? file->if_taken : other_case;
			return 0;
		}
	} else {
		done = renameat(dir, file->temp, dir, file->name);
	}
	if (done < 0) {
		int failed = errno;

		file->why = refusal_of(failed);
		return file->why ? 0 : write_error(staged, file, failed, err);
	}
	file->named = true;
	/* The time is read after the rename, which changes the ctime. */
	return fstat(file->fd, &file->st) < 0 ? write_error(staged, file, errno, err) : 0;
}

static void remember_named(struct staged_write *staged, struct staged_write_folder *folder)
{
	size_t count = staged->named_count;

	if (count > 0 && staged->named[count - 1] == folder)
		return;
	staged->named = mem_grow(staged->named, count + 1, sizeof(struct staged_write_folder *));
	staged->named[staged->named_count++] = folder;
	folder->refs++;
}

/* After everything was flushed, checks that the names given before are durable. */
static int check_named(struct staged_write *staged, struct err **err)
{
	int failed = 0;

	for (size_t i = 0; i < staged->named_count; i++) {
		/* Some network and FUSE file systems do not support fsync on folders. */
		if (!failed && fsync(staged->named[i]->fd) < 0 && errno != EINVAL &&
		    errno != ENOTSUP) {
			failed = errno;
			fs_error(err, failed, "cannot make '%s' durable in '%s'",
				 staged->named[i]->path, staged->store->root);
		}
		folder_unref(staged->named[i]);
	}
	staged->named_count = 0;
	return failed ? -1 : 0;
}

int staged_write_commit(struct staged_write *staged, struct staged_write_file *const *files,
			size_t count, struct err **err)
{
	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (set_times(staged, files[i], err) < 0)
			return -1;
	/* A single syncfs() for all is far cheaper than one fsync() each; the fsync() calls that
	 * follow only report whether it worked, and cost next to nothing. The syncfs() also
	 * makes earlier names durable, so that files which may only come after them do. */
	if (count > 1 || staged->named_count > 0)
		(void)!syncfs(staged->root);
	for (size_t i = 0; i < count; i++)
		if (fsync(files[i]->fd) < 0)
			return write_error(staged, files[i], errno, err);
	if (check_named(staged, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (give_name(staged, files[i], err) < 0)
			return -1;
		remember_named(staged, files[i]->folder);
	}
	return 0;
}

int staged_write_finish(struct staged_write *staged, struct err **err)
{
	if (staged->named_count == 0)
		return 0;
	(void)!syncfs(staged->root);
	return check_named(staged, err);
}

bool staged_write_sweep(int dir, const char *name, bool remove)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;

	if (!text_starts(name, STORE_RESERVED))
		return false;
	if (!remove || !text_starts(name, TEMP_PREFIX) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    time(NULL) - st.st_ctim.tv_sec < SWEEP_AGE_S)
		return true;
	fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)!unlinkat(dir, name, 0);
	return true;
}
