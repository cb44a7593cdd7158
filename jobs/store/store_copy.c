/* Copies of single objects between stores, and digests of them: see store_copy.h. */
#include "jobs/store/store_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "jobs/store/store_dir.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define RANGE_BYTES ((size_t)8 << 20) /* of one request */
/* Written data is brought to the disk in between, so that the last sync does not take minutes in
 * which nothing else can be done. */
#define SYNC_BYTES ((uint64_t)256 << 20)

/* The caller's function, and where the bytes go on their way. */
struct store_stream {
	store_moved_fn fn;
	void *arg;
	struct sha256 *sha;
};

static void stream_release(struct store_stream *stream)
{
	hash_sha256_freep(&stream->sha);
}

static int stream_add(struct store_stream *stream, const void *bytes, size_t len, struct err **err)
{
	hash_sha256_add(stream->sha, bytes, len);
	if (!stream->fn || stream->fn(stream->arg, len))
		return 0;
	return err_set(err, EXIT_UNREACHABLE, "interrupted while a file was copied");
}

/* --- digests --- */

static int hash_file(struct store_dir *store, const char *key, struct store_stream *stream,
		     uint64_t *ret_size, struct err **err)
{
	AUTO(auto_free) char *buffer = NULL;
	AUTO(auto_close) int fd = -1;
	struct stat st;
	int found = store_dir_object_open(store, key, &fd, &st, err);
	ssize_t got;

	if (found <= 0)
		return found;
	buffer = mem_alloc(CHUNK_BYTES);
	while ((got = fs_read_full(fd, buffer, CHUNK_BYTES, -1)) > 0) {
		*ret_size += (uint64_t)got;
		if (stream_add(stream, buffer, (size_t)got, err) < 0)
			return -1;
	}
	if (got < 0)
		return fs_error(err, errno, "cannot read '%s' in the store '%s'", key, store->root);
	return 1;
}

static int hash_object(struct store *store, const char *key, struct store_stream *stream,
		       uint64_t *ret_size, struct err **err)
{
	char first[STORE_TAG] = "", tag[STORE_TAG];
	size_t got = RANGE_BYTES;

	while (got == RANGE_BYTES) {
		AUTO(sb_release) struct sb bytes = SB_INIT_MAX(RANGE_BYTES + 1);
		int found = store_read_range(store, key, *ret_size, RANGE_BYTES, &bytes, tag, err);

		if (found <= 0)
			return found;
		if (*ret_size == 0)
			memcpy(first, tag, sizeof first);
		if (strcmp(first, tag) != 0)
			return err_set(err, EXIT_UNREACHABLE, "'%s/%s' changed while it was read",
				       store_url(store), key);
		got = bytes.len;
		*ret_size += got;
		if (stream_add(stream, bytes.text, got, err) < 0)
			return -1;
	}
	return 1;
}

int store_sha256(struct store *store, const char *key, store_moved_fn fn, void *arg,
		 char ret[SHA256_HEX], uint64_t *ret_size, struct err **err)
{
	AUTO(stream_release)
	struct store_stream stream = { .fn = fn, .arg = arg, .sha = hash_sha256_new() };
	uint64_t size = 0;
	int found = store_directory(store)
			    ? hash_file((struct store_dir *)store, key, &stream, &size, err)
			    : hash_object(store, key, &stream, &size, err);

	if (found > 0)
		hash_sha256_end(TAKE(stream.sha), ret);
	if (ret_size)
		*ret_size = size;
	return found;
}

/* --- copies --- */

static bool is_same_file(const struct stat *st, const struct store_object *object)
{
	char tag[STORE_TAG];

	store_dir_tag(st, tag);
	return (uint64_t)st->st_size == object->size &&
	       (object->tag[0] == '\0' || strcmp(tag, object->tag) == 0);
}

/* Copies the open file, and hashes what is written. */
static int pour(struct store_dir *to, const char *key, int from, struct dir_temp *temp,
		struct store_stream *stream, struct err **err)
{
	AUTO(auto_free) char *buffer = mem_alloc(CHUNK_BYTES);
	uint64_t unsynced = 0;
	ssize_t got;

	while ((got = fs_read_full(from, buffer, CHUNK_BYTES, -1)) > 0) {
		int failed = fs_write_full(temp->fd, buffer, (size_t)got);

		unsynced += (uint64_t)got;
		if (!failed && unsynced >= SYNC_BYTES) {
			failed = fsync(temp->fd) < 0 ? errno : 0;
			unsynced = 0;
		}
		if (failed)
			return store_dir_write_error(to, key, failed, err);
		if (stream_add(stream, buffer, (size_t)got, err) < 0)
			return -1;
	}
	if (got < 0)
		return fs_error(err, errno, "cannot read the file to be copied to '%s'", key);
	return store_dir_temp_sync(to, temp, err);
}

static int copy_file(struct store_dir *from, const struct store_object *object,
		     struct store_dir *to, const char *key, struct store_stream *stream,
		     struct err **err)
{
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(store_dir_temp_drop) struct dir_temp temp = { .fd = -1 };
	AUTO(auto_close) int fd = -1;
	struct stat st;
	int found = store_dir_object_open(from, object->key, &fd, &st, err);

	if (found <= 0)
		return found;
	if (!is_same_file(&st, object))
		return 0;
	if (store_dir_place_open(to, key, true, &place, err) < 0 ||
	    store_dir_temp_new(to, &place, &temp, err) < 0 ||
	    pour(to, key, fd, &temp, stream, err) < 0)
		return -1;
	if (fs_has_changed(fd, &st))
		return 0;
	found = store_dir_temp_link(to, &temp, err);
	/* Another process was faster: what it has written is not known here. */
	if (found == 0)
		hash_sha256_freep(&stream->sha);
	return found < 0 ? -1 : 1;
}

/* Copies to or from a service: the bytes go through a file of a directory store. */
static int copy_over(struct store *from, const struct store_object *object, struct store *to,
		     const char *key, struct err **err)
{
	const char *root = store_directory(from) ? store_directory(from) : store_directory(to);
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *folder = NULL;

	if (!root)
		return err_set(err, EXIT_DEFECT, "no way from '%s' to '%s'", store_url(from),
			       store_url(to));
	path = fs_join(root, store_directory(from) ? object->key : key);
	if (store_directory(from))
		return store_upload(to, path, key, err) < 0 ? -1 : 1;
	folder = fs_dirname(path);
	if (fs_mkdirs(folder, err) < 0)
		return -1;
	return store_download(from, object->key, path, err);
}

/* Returns 1 if the key has this content, 0 if it has none now, -1. */
static int make_room(struct store *to, const char *key, const char *want,
		     struct store_stream *stream, struct err **err)
{
	char sha256[SHA256_HEX];
	struct store_object there;
	int found = store_stat(to, key, &there, err);

	if (found > 0 && want) {
		found = store_sha256(to, key, stream->fn, stream->arg, sha256, NULL, err);
		if (found > 0 && strcmp(sha256, want) == 0)
			return 1;
	}
	return found > 0 ? store_delete(to, key, err) : found;
}

int store_copy(struct store *from, const struct store_object *object, struct store *to,
	       const char *key, const char *want, store_moved_fn fn, void *arg,
	       char ret_sha256[SHA256_HEX], struct err **err)
{
	AUTO(stream_release)
	struct store_stream stream = { .fn = fn, .arg = arg, .sha = hash_sha256_new() };
	int done;

	ret_sha256[0] = '\0';
	if (to->backend == from->backend && to->backend->copy && store_key_fits(key, false))
		return to->backend->copy(to, key, from, object, want, ret_sha256, err);
	done = make_room(to, key, want, &stream, err);
	if (done > 0)
		memcpy(ret_sha256, want, SHA256_HEX);
	if (done != 0)
		return done;
	if (!store_directory(from) || !store_directory(to))
		return copy_over(from, object, to, key, err);
	done = copy_file((struct store_dir *)from, object, (struct store_dir *)to, key, &stream,
			 err);
	if (done > 0 && stream.sha)
		hash_sha256_end(TAKE(stream.sha), ret_sha256);
	return done;
}
