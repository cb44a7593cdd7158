/* Packing and unpacking of source bundles, over libarchive. See archive.h. */
#include "jobs/source/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/source/gzip_parallel.h"

#define READ_BYTES     ((size_t)128 << 10)
#define TAR_BYTES      ((size_t)64 << 10) /* written at once */
#define LINK_BYTES_MAX ((size_t)PATH_MAX)

struct archive_sink {
	struct archive *archive;
	const struct archive_member *member;
	struct sha256 *sha;
	struct sb target; /* target of a link, part of its header */
	uint64_t len;
};

/* Fails with libarchive's own words, or with the system's for what may pass: a full disk, a file
 * server that does not answer. */
static int archive_error(struct err **err, struct archive *archive, const char *what)
{
	const char *text = archive_error_string(archive);

	if (err_errno_passes(archive_errno(archive)))
		return fs_error(err, archive_errno(archive), "cannot %s the source bundle", what);
	return err_set(err, EXIT_REFUSED, "cannot %s the source bundle: %s", what,
		       text ? text : "unknown error");
}

static bool part_is(const char *part, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(part, text, len) == 0;
}

/* True if relative, with no part empty, "." or "..". */
static bool path_is_plain(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		if (len == 0 || len > NAME_MAX || part_is(path, len, ".") ||
		    part_is(path, len, ".."))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

bool archive_link_inside(const char *path, const char *target)
{
	size_t depth = 0;
	bool named = false; /* a part with a name was seen */

	if (target[0] == '/' || target[0] == '\0')
		return false;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	while (*target) {
		size_t len = strcspn(target, "/");

		if (part_is(target, len, "..")) {
			/* A ".." after a name leads to where a link of that name points. */
			if (named || depth == 0)
				return false;
			depth--;
		} else if (len > 0 && !part_is(target, len, ".")) {
			named = true;
		}
		target += len + (target[len] == '/');
	}
	return true;
}

/* --- packing --- */

int archive_sink_add(struct archive_sink *sink, const void *bytes, size_t len, struct err **err)
{
	const struct archive_member *member = sink->member;

	hash_sha256_add(sink->sha, bytes, len);
	sink->len += len;
	if (sink->len > member->size)
		return err_set(err, EXIT_REFUSED, "'%s' changed while packing", member->path);
	if (S_ISLNK(member->mode)) {
		sb_add(&sink->target, bytes, len);
		return 0;
	}
	while (len > 0) {
		ssize_t put = archive_write_data(sink->archive, bytes, len);

		if (put <= 0)
			return archive_error(err, sink->archive, "write");
		bytes = (const char *)bytes + put;
		len -= (size_t)put;
	}
	return 0;
}

int archive_sink_add_file(struct archive_sink *sink, int fd, const char *path, struct err **err)
{
	AUTO(auto_free) char *buffer = mem_alloc(READ_BYTES);
	ssize_t got;

	while ((got = fs_read_full(fd, buffer, READ_BYTES, -1)) > 0)
		if (archive_sink_add(sink, buffer, (size_t)got, err) < 0)
			return -1;
	return got < 0 ? fs_error(err, errno, "cannot read '%s'", path) : 0;
}

/* Everything that could differ between two machines is left out or zero. */
static int write_header(struct archive *archive, const struct archive_member *member,
			const char *target, struct err **err)
{
	struct archive_entry *entry = archive_entry_new();
	int result;

	if (!entry)
		return archive_error(err, archive, "write");
	archive_entry_copy_pathname(entry, member->path);
	archive_entry_set_mode(entry, (mode_t)member->mode);
	archive_entry_set_mtime(entry, 0, 0);
	if (target) {
		archive_entry_set_perm(entry, 0777);
		archive_entry_copy_symlink(entry, target);
		archive_entry_set_size(entry, 0);
	} else {
		archive_entry_set_size(entry, (int64_t)member->size);
	}
	result = archive_write_header(archive, entry);
	archive_entry_free(entry);
	return result < ARCHIVE_OK ? archive_error(err, archive, "write") : 0;
}

/* Content comes before the header for a link, after it for a file. */
static int pack_content(struct archive_sink *sink, archive_fill_fn fill, void *arg,
			struct err **err)
{
	const struct archive_member *member = sink->member;

	if (S_ISLNK(member->mode)) {
		if (fill(arg, member, sink, err) < 0)
			return -1;
		if (!archive_link_inside(member->path, sink->target.text))
			return err_set(err, EXIT_REFUSED, "the link '%s' leads out of the source",
				       member->path);
		return write_header(sink->archive, member, sink->target.text, err);
	}
	if (write_header(sink->archive, member, NULL, err) < 0)
		return -1;
	return fill(arg, member, sink, err);
}

static int pack_member(struct archive *archive, const struct archive_member *member,
		       archive_fill_fn fill, void *arg, struct err **err)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	struct archive_sink sink = { archive, member, sha, SB_INIT_MAX(LINK_BYTES_MAX), 0 };
	char hex[SHA256_HEX];
	int result;

	if (!path_is_plain(member->path) || !text_is_utf8(member->path, strlen(member->path)))
		return err_set(err, EXIT_REFUSED, "'%s' cannot be the name of a packed file",
			       member->path);
	result = pack_content(&sink, fill, arg, err);
	sb_release(&sink.target);
	if (result < 0)
		return -1;
	hash_sha256_end(TAKE(sha), hex);
	if (sink.len != member->size || (member->sha256 && strcmp(hex, member->sha256) != 0))
		return err_set(err, EXIT_REFUSED, "'%s' changed while packing", member->path);
	return 0;
}

static int check_limits(const struct archive_member *members, size_t count, struct err **err)
{
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++) {
		total += members[i].size;
		if (i > 0 && strcmp(members[i - 1].path, members[i].path) >= 0)
			return err_set(err, EXIT_DEFECT, "'%s' is packed out of order",
				       members[i].path);
		if (members[i].size > ARCHIVE_BYTES_MAX || total > ARCHIVE_BYTES_MAX)
			return err_set(err, EXIT_REFUSED, "a source bundle holds at most 1 GiB");
	}
	if (count > ARCHIVE_FILES_MAX)
		return err_set(err, EXIT_REFUSED, "a source bundle holds at most %d files",
			       ARCHIVE_FILES_MAX);
	return 0;
}

static void writer_freep(struct archive **archive)
{
	archive_write_free(*archive);
}

/* Destination of the bytes of the tar file. */
struct archive_outlet {
	struct gzip_parallel *gzip;
	struct err *why; /* set if it could not be written */
};

static ssize_t take_bytes(struct archive *archive, void *arg, const void *bytes, size_t len)
{
	struct archive_outlet *outlet = arg;

	if (gzip_parallel_add(outlet->gzip, bytes, len, &outlet->why) == 0)
		return (ssize_t)len;
	archive_set_error(archive, outlet->why->os_errno, "%s", outlet->why->message);
	return -1;
}

static int pack_all(struct archive *archive, const struct archive_member *members, size_t count,
		    archive_fill_fn fill, void *arg, struct err **err)
{
	for (size_t i = 0; i < count; i++)
		if (pack_member(archive, &members[i], fill, arg, err) < 0)
			return -1;
	if (archive_write_close(archive) < ARCHIVE_OK)
		return archive_error(err, archive, "write");
	return 0;
}

int archive_pack(int fd, const struct archive_member *members, size_t count, archive_fill_fn fill,
		 void *arg, struct err **err)
{
	AUTO(gzip_parallel_freep) struct gzip_parallel *gzip = NULL;
	AUTO(writer_freep) struct archive *archive = archive_write_new();
	struct archive_outlet outlet = { 0 };
	int result;

	if (check_limits(members, count, err) < 0)
		return -1;
	if (!archive)
		return err_set(err, EXIT_DEFECT, "libarchive cannot start");
	outlet.gzip = gzip = gzip_parallel_new(fd);
	/* GNU's format takes names as bytes; libarchive's pax converts them by the
	 * locale of the process (and 3.6 crashes on UTF-8 in the C locale). */
	if (archive_write_set_format_gnutar(archive) < ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(archive, (int)TAR_BYTES) < ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(archive, 1) < ARCHIVE_OK ||
	    archive_write_open(archive, &outlet, NULL, take_bytes, NULL) < ARCHIVE_OK)
		return archive_error(err, archive, "write");
	result = pack_all(archive, members, count, fill, arg, err);
	err_freep(&outlet.why); /* told already */
	return result < 0 ? -1 : gzip_parallel_end(gzip, err);
}

/* --- unpacking ---
 *
 * libarchive reads; stoker writes, because libarchive's own disk writer resolves names against the
 * working directory of the whole process, and because opening each folder on the way without
 * following links keeps a hostile archive inside, whatever its links say. */

struct unpack {
	const char *path; /* path of the archive, for errors */
	struct archive *archive;
	int dest;
	uint64_t bytes;
	size_t entries;
	char *buffer;
};

static int refuse_bundle(const struct unpack *u, const char *name, const char *why,
			 struct err **err)
{
	return err_set(err, EXIT_REFUSED, "the source bundle '%s' is not one of ours: '%s' %s",
		       u->path, name, why);
}

static int disk_error(const struct unpack *u, const char *name, int os_errno, struct err **err)
{
	if (os_errno == EEXIST)
		return refuse_bundle(u, name, "is there twice", err);
	if (os_errno == ELOOP || os_errno == ENOTDIR)
		return refuse_bundle(u, name, "lies behind something that is not a folder", err);
	return fs_error(err, os_errno, "cannot unpack '%s'", name);
}

/* Opens the folder that `name` belongs in, making what is missing. */
static int open_folder(const struct unpack *u, const char *name, int *ret_fd, struct err **err)
{
	AUTO(auto_close) int fd = fcntl(u->dest, F_DUPFD_CLOEXEC, 0);
	const char *part = name, *slash;

	if (fd < 0)
		return disk_error(u, name, errno, err);
	while ((slash = strchr(part, '/'))) {
		AUTO(auto_free) char *folder = mem_copy_n(part, (size_t)(slash - part));
		int next;

		if (mkdirat(fd, folder, 0777) < 0 && errno != EEXIST)
			return disk_error(u, name, errno, err);
		next = openat(fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return disk_error(u, name, errno, err);
		close(fd);
		fd = next;
		part = slash + 1;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int unpack_file(struct unpack *u, const char *name, int folder, struct archive_entry *entry,
		       struct err **err)
{
	mode_t mode = archive_entry_mode(entry) & 0100 ? 0777 : 0666;
	int64_t announced = archive_entry_size(entry);
	AUTO(auto_close)
	int fd = openat(folder, fs_basename(name),
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	ssize_t got;

	if (fd < 0)
		return disk_error(u, name, errno, err);
	/* Checked before anything is written, and again below: a header can lie. */
	if (announced < 0 || (uint64_t)announced > ARCHIVE_BYTES_MAX - u->bytes)
		return refuse_bundle(u, name, "takes it over 1 GiB", err);
	while ((got = archive_read_data(u->archive, u->buffer, READ_BYTES)) != 0) {
		int failed;

		if (got < 0)
			return archive_error(err, u->archive, "read");
		u->bytes += (uint64_t)got;
		if (u->bytes > ARCHIVE_BYTES_MAX)
			return refuse_bundle(u, name, "takes it over 1 GiB", err);
		failed = fs_write_full(fd, u->buffer, (size_t)got);
		if (failed)
			return disk_error(u, name, failed, err);
	}
	return 0;
}

static int unpack_entry(struct unpack *u, struct archive_entry *entry, struct err **err)
{
	AUTO(auto_close) int folder = -1;
	const char *name = archive_entry_pathname(entry), *target;
	mode_t mode = archive_entry_mode(entry);

	if (!name || !text_is_utf8(name, strlen(name)))
		return refuse_bundle(u, "?", "is not a name in UTF-8", err);
	if (++u->entries > ARCHIVE_FILES_MAX)
		return refuse_bundle(u, name, "is one file too many", err);
	if (!path_is_plain(name))
		return refuse_bundle(u, name, "is not a name within it", err);
	if (archive_entry_hardlink(entry))
		return refuse_bundle(u, name, "is a hard link", err);
	if (mode & (S_ISUID | S_ISGID | S_ISVTX))
		return refuse_bundle(u, name, "has set-id bits", err);
	if (!S_ISREG(mode) && !S_ISLNK(mode))
		return refuse_bundle(u, name, "is neither a file nor a link", err);
	if (open_folder(u, name, &folder, err) < 0)
		return -1;
	if (S_ISREG(mode))
		return unpack_file(u, name, folder, entry, err);
	target = archive_entry_symlink(entry);
	if (!target || !archive_link_inside(name, target))
		return refuse_bundle(u, name, "is a link that leads out of it", err);
	if (symlinkat(target, folder, fs_basename(name)) < 0)
		return disk_error(u, name, errno, err);
	return 0;
}

static int unpack_all(struct unpack *u, struct err **err)
{
	struct archive_entry *entry;
	int result;

	if (archive_read_support_format_tar(u->archive) < ARCHIVE_OK ||
	    archive_read_support_filter_gzip(u->archive) < ARCHIVE_OK ||
	    archive_read_open_filename(u->archive, u->path, READ_BYTES) < ARCHIVE_OK)
		return archive_error(err, u->archive, "read");
	while ((result = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK)
		if (unpack_entry(u, entry, err) < 0)
			return -1;
	if (result != ARCHIVE_EOF)
		return archive_error(err, u->archive, "read");
	if (u->entries == 0)
		return err_set(err, EXIT_REFUSED, "the source bundle '%s' is empty", u->path);
	return 0;
}

static void reader_freep(struct archive **archive)
{
	archive_read_free(*archive);
}

static int unpack_into(const char *path, const char *folder, struct err **err)
{
	AUTO(reader_freep) struct archive *archive = archive_read_new();
	AUTO(auto_close) int dest = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO(auto_free) char *buffer = mem_alloc(READ_BYTES);
	struct unpack u = { .path = path, .archive = archive, .dest = dest, .buffer = buffer };

	if (dest < 0)
		return fs_error(err, errno, "cannot open the folder '%s'", folder);
	if (!archive)
		return err_set(err, EXIT_DEFECT, "libarchive cannot start");
	return unpack_all(&u, err);
}

/* Gives the finished folder its name; nothing that has the name already is touched. */
static int give_name(const char *from, const char *dest, struct err **err)
{
	struct stat st;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, dest, RENAME_NOREPLACE) == 0)
		return 0;
	/* Network file systems do not know the exclusive rename. */
	if (errno == EINVAL || errno == ENOSYS) {
		errno = EEXIST;
		if (lstat(dest, &st) < 0 && rename(from, dest) == 0)
			return 0;
	}
	return fs_error(err, errno, "cannot unpack to '%s'", dest);
}

int archive_unpack(const char *path, const char *dest, struct err **err)
{
	AUTO(auto_free) char *parent = fs_dirname(dest);
	AUTO(auto_free) char *temp = NULL;
	struct err *ignored = NULL;
	struct stat st;
	char chance[HASH_NAME_HEX];
	int result;

	if (lstat(dest, &st) == 0)
		return fs_error(err, EEXIST, "cannot unpack to '%s'", dest);
	hash_random_hex(8, chance);
	temp = mem_format("%s/" FS_TEMP_PREFIX "%s", parent, chance);
	if (mkdir(temp, 0700) < 0)
		return fs_error(err, errno, "cannot unpack to '%s'", dest);
	result = unpack_into(path, temp, err);
	if (result == 0)
		result = give_name(temp, dest, err);
	if (result < 0 && fs_remove_tree(temp, &ignored) < 0)
		err_freep(&ignored); /* the first error is the one that counts */
	return result;
}
