/*
 * Objects in a bucket, below a prefix: the second kind of store. Tags are ETags. The client is
 * made by the first call that needs it, so opening costs nothing.
 *
 * Keys of other programs' objects may be anything: a name that is not a valid key of store.h
 * is passed over and reported to the callback of store_on_unsafe_name().
 */
#include "jobs/store/store_s3.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aws/http/http.h"
#include "aws/s3/s3.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/store/transfer_backend.h"

_Static_assert(STORE_TAG >= S3_ETAG, "an ETag is a tag");

/* A multipart upload without a new part for this long is dead: its process was killed, since no
 * process takes so long for one part. */
#define LEFTOVER_IDLE_MS ((int64_t)10 * 60 * 1000)
/* Limit of a listing: a longer one is not a store of ours, but a server that does not end. */
#define OBJECTS_MAX ((uint64_t)50 * 1000 * 1000)

static struct store_s3 *as_s3(struct store *store)
{
	return (struct store_s3 *)store;
}

static char *whole_key(const struct store_s3 *store, const char *key)
{
	return mem_format("%s%s", store->prefix, key);
}

/* Object of a call. */
struct target {
	struct aws *aws;
	char *key; /* owned; with the store's prefix */
	struct s3_place place;
};

static void target_release(struct target *target)
{
	free(target->key);
}

static int target_init(struct store *base, const char *key, struct target *ret, struct err **err)
{
	struct store_s3 *store = as_s3(base);

	if (store_s3_client(store, err) < 0)
		return -1;
	ret->aws = store->aws;
	ret->key = whole_key(store, key);
	ret->place = (struct s3_place){ store->bucket, ret->key };
	return 0;
}

static void describe_object(const struct s3_object *from, const char *key, struct store_object *ret)
{
	ret->key = key;
	ret->size = from->size;
	ret->modified = from->modified;
	memcpy(ret->tag, from->etag, sizeof from->etag);
}

/* --- listing --- */

struct store_s3_listing {
	struct store_s3 *store;
	store_list_fn fn;
	store_folder_fn folder_fn;
	void *arg;
	size_t skip; /* length of the store's or the folder's prefix in each key */
	uint64_t count;
};

static void report_unsafe(const struct store_s3_listing *l, const char *name, const char *why)
{
	if (l->store->base.unsafe_name)
		l->store->base.unsafe_name(l->store->base.unsafe_name_arg, name, why);
}

static bool has_reserved_part(const char *key)
{
	for (const char *part = key; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (text_starts(part, STORE_RESERVED))
			return true;
	}
	return false;
}

static int list_object(void *arg, const struct s3_object *object, struct err **err)
{
	struct store_s3_listing *l = arg;
	struct store_object row;
	const char *key = object->key + l->skip;
	const char *why = object->unsafe_name;

	if (++l->count > OBJECTS_MAX)
		return err_set(err, EXIT_REFUSED, "'%s' holds more than %" PRIu64 " objects",
			       l->store->base.url, OBJECTS_MAX);
	if (!why)
		why = s3_key_unsafe(key, strlen(key));
	if (!why && has_reserved_part(key))
		why = "begins like a temporary file";
	if (why) {
		/* An object named like the prefix with a slash is a folder made by a console. */
		if (*key)
			report_unsafe(l, key, why);
		return 0;
	}
	describe_object(object, key, &row);
	return l->fn(l->arg, &row, err);
}

static int s3_store_list(struct store *base, const char *prefix, store_list_fn fn, void *arg,
			 struct err **err)
{
	struct store_s3 *store = as_s3(base);
	AUTO(auto_free) char *whole = whole_key(store, prefix);
	struct store_s3_listing l = { store, fn, NULL, arg, strlen(store->prefix), 0 };
	struct s3_list what = { .bucket = store->bucket, .prefix = whole };

	if (store_s3_client(store, err) < 0)
		return -1;
	return s3_list(store->aws, &what, list_object, NULL, &l, err);
}

static int list_prefix(void *arg, const char *prefix, struct err **err)
{
	struct store_s3_listing *l = arg;
	AUTO(auto_free) char *name = mem_copy(prefix + l->skip);
	size_t len = strlen(name);
	const char *why;

	if (++l->count > OBJECTS_MAX)
		return err_set(err, EXIT_REFUSED, "'%s' holds more than %" PRIu64 " folders",
			       l->store->base.url, OBJECTS_MAX);
	if (len > 0 && name[len - 1] == '/')
		name[len - 1] = '\0';
	why = s3_key_unsafe(name, strlen(name));
	if (!why && has_reserved_part(name))
		why = "begins like a temporary file";
	if (why) {
		report_unsafe(l, name, why);
		return 0;
	}
	return l->folder_fn(l->arg, name, err);
}

static int s3_store_folders(struct store *base, const char *prefix, store_folder_fn fn, void *arg,
			    struct err **err)
{
	struct store_s3 *store = as_s3(base);
	AUTO(auto_free) char *whole = whole_key(store, prefix);
	struct store_s3_listing l = { store, NULL, fn, arg, strlen(whole), 0 };
	struct s3_list what = { .bucket = store->bucket, .prefix = whole, .delimiter = "/" };

	if (store_s3_client(store, err) < 0)
		return -1;
	return s3_list(store->aws, &what, NULL, list_prefix, &l, err);
}

/* --- reading --- */

/* Returns the ETag as the tag. replace_if_same needs a tag, so an object without one is an error
 * if the caller asked for it. */
static int copy_tag(const struct store *base, const char *key, const struct s3_outcome *outcome,
		    char ret_tag[STORE_TAG], struct err **err)
{
	if (!ret_tag)
		return 1;
	if (outcome->object.etag[0] == '\0')
		return err_set(err, EXIT_UNREACHABLE, "'%s/%s' has no ETag that could be used",
			       base->url, key);
	memcpy(ret_tag, outcome->object.etag, sizeof outcome->object.etag);
	return 1;
}

static int s3_store_get(struct store *base, const char *key, size_t max, struct sb *ret,
			char ret_tag[STORE_TAG], struct err **err)
{
	AUTO(target_release) struct target target = { 0 };
	struct s3_outcome outcome = { 0 };
	int found;

	if (target_init(base, key, &target, err) < 0)
		return -1;
	found = s3_get(target.aws, &target.place, 0, 0, max, ret, &outcome, err);
	return found <= 0 ? found : copy_tag(base, key, &outcome, ret_tag, err);
}

static int s3_store_stat(struct store *base, const char *key, struct store_object *ret,
			 struct err **err)
{
	AUTO(target_release) struct target target = { 0 };
	struct s3_outcome outcome = { 0 };
	int found;

	if (target_init(base, key, &target, err) < 0)
		return -1;
	found = s3_head(target.aws, &target.place, &outcome, err);
	if (found > 0)
		describe_object(&outcome.object, key, ret);
	return found;
}

static int s3_store_read_range(struct store *base, const char *key, uint64_t offset, size_t len,
			       struct sb *ret, char ret_tag[STORE_TAG], struct err **err)
{
	AUTO(target_release) struct target target = { 0 };
	struct s3_outcome outcome = { 0 };
	int found = 0;

	if (target_init(base, key, &target, err) < 0)
		return -1;
	if (len > 0 && offset <= INT64_MAX)
		found = s3_get(target.aws, &target.place, offset, len, len, ret, &outcome, err);
	/* S3 returns no metadata for a range beyond the end. */
	if (found >= 0 && outcome.object.etag[0] == '\0')
		found = s3_head(target.aws, &target.place, &outcome, err);
	return found <= 0 ? found : copy_tag(base, key, &outcome, ret_tag, err);
}

/* Opens a new file beside `path`. If the file system supports O_TMPFILE, the file has no name
 * until it is whole, so that nothing stays behind when the process is killed. `ret_name` is a
 * path. */
static int temp_open(const char *path, const char *dir, char **ret_name, struct err **err)
{
	AUTO(auto_free) char *name = NULL;
	char chance[HASH_NAME_HEX];
	int fd;

	hash_random_hex(8, chance);
	name = mem_format("%s/" FS_TEMP_PREFIX "%s", dir, chance);
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && errno != ENOENT && errno != EACCES && errno != EROFS)
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	*ret_name = TAKE(name);
	return fd;
}

static int temp_name(int fd, const char *name, const char *path, const char *dir, struct err **err)
{
	AUTO(auto_free) char *self = mem_format("/proc/self/fd/%d", fd);
	struct stat st;

	if (fsync(fd) < 0 || fstat(fd, &st) < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	if (st.st_nlink == 0 && linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	if (rename(name, path) < 0) {
		int failed = errno;

		unlink(name);
		return fs_error(err, failed, "cannot write '%s'", path);
	}
	return fs_sync_dir(dir, err);
}

static int s3_store_download(struct store *base, const char *key, const char *path,
			     struct err **err)
{
	AUTO(target_release) struct target target = { 0 };
	AUTO(auto_free) char *dir = fs_dirname(path);
	AUTO(auto_free) char *name = NULL;
	AUTO(auto_close) int fd = -1;
	int found;

	if (target_init(base, key, &target, err) < 0)
		return -1;
	fd = temp_open(path, dir, &name, err);
	if (fd < 0)
		return -1;
	found = s3_download(target.aws, &target.place, fd, NULL, err);
	if (found > 0)
		return temp_name(fd, name, path, dir, err) < 0 ? -1 : 1;
	unlink(name);
	return found;
}

/* --- writing --- */

static int write_bytes(struct store *base, const char *key, const struct s3_body *body,
		       struct err **err)
{
	AUTO(target_release) struct target target = { 0 };

	if (target_init(base, key, &target, err) < 0)
		return -1;
	return s3_put(target.aws, &target.place, body, NULL, err);
}

static int s3_store_put(struct store *base, const char *key, const void *bytes, size_t len,
			struct err **err)
{
	struct s3_body body = { .bytes = bytes, .len = len, .fd = -1 };

	return write_bytes(base, key, &body, err) < 0 ? -1 : 0;
}

static int s3_store_put_if_absent(struct store *base, const char *key, const void *bytes,
				  size_t len, struct err **err)
{
	struct s3_body body = { .bytes = bytes, .len = len, .fd = -1, .condition = S3_IF_ABSENT };

	return write_bytes(base, key, &body, err);
}

static int s3_store_replace_if_same(struct store *base, const char *key, const char *tag,
				    const void *bytes, size_t len, struct err **err)
{
	struct s3_body body = {
		.bytes = bytes, .len = len, .fd = -1, .condition = S3_IF_SAME, .etag = tag
	};

	if (tag[0] != '"' && !text_starts(tag, "W/\""))
		return 0; /* no object has such a tag, and S3 would reject it as malformed */
	return write_bytes(base, key, &body, err);
}

static int s3_store_remove(struct store *base, const char *key, struct err **err)
{
	AUTO(target_release) struct target target = { 0 };

	if (target_init(base, key, &target, err) < 0)
		return -1;
	return s3_delete(target.aws, &target.place, err);
}

/* Aborts uploads to this key that a killed process left. A failure is ignored: the role may not
 * be allowed to do so. */
static void abort_leftovers(const struct target *target)
{
	AUTO(err_freep) struct err *ignored = NULL;

	s3_abort_leftovers(target->aws, &target->place, LEFTOVER_IDLE_MS, &ignored);
}

static int s3_store_upload(struct store *base, const struct store_upload *upload, const char *key,
			   struct err **err)
{
	AUTO(target_release) struct target target = { 0 };
	struct s3_body body = { .len = (uint64_t)upload->st.st_size,
				.fd = upload->fd,
				.condition = S3_IF_ABSENT };
	int done;

	if (target_init(base, key, &target, err) < 0)
		return -1;
	done = s3_head(target.aws, &target.place, NULL, err);
	if (done != 0)
		return done < 0 ? -1 : 0;
	if (body.len > S3_PART_BYTES)
		abort_leftovers(&target);
	done = s3_upload(target.aws, &target.place, &body, NULL, err);
	if (done > 0 && fs_has_changed(upload->fd, &upload->st)) {
		AUTO(err_freep) struct err *ignored = NULL;

		/* The object may mix two contents, which the key does not stand for. */
		s3_delete(target.aws, &target.place, &ignored);
		return err_set(err, EXIT_REFUSED, "'%s' changed while it was copied", upload->path);
	}
	return done;
}

/* The SHA-256 that S3 computed over a whole object; "" if it keeps none. */
static void whole_sha256(const struct s3_checksum *checksum, char ret[SHA256_HEX])
{
	ret[0] = '\0';
	if (checksum->algorithm == S3_SHA256 && checksum->of_part == 0)
		(void)hash_base64_hex(checksum->value, ret);
}

/* True if the key has this content already, as far as S3 keeps its SHA-256. */
static int has_content(const struct target *target, uint64_t size, const char *want,
		       struct err **err)
{
	struct s3_outcome outcome = { 0 };
	char sha256[SHA256_HEX];
	int found = want ? s3_head(target->aws, &target->place, &outcome, err) : 0;

	if (found <= 0)
		return found;
	whole_sha256(&outcome.checksum, sha256);
	return outcome.object.size == size && strcmp(sha256, want) == 0;
}

static int s3_store_copy(struct store *base, const char *key, struct store *from,
			 const struct store_object *object, const char *want,
			 char ret_sha256[SHA256_HEX], struct err **err)
{
	AUTO(target_release) struct target target = { 0 };
	AUTO(target_release) struct target origin = { 0 };
	struct s3_outcome outcome = { 0 };
	struct s3_source source;
	int done;

	if (target_init(base, key, &target, err) < 0 ||
	    target_init(from, object->key, &origin, err) < 0)
		return -1;
	source = (struct s3_source){ origin.place, object->size, object->tag };
	done = has_content(&target, object->size, want, err);
	if (done > 0)
		memcpy(ret_sha256, want, SHA256_HEX);
	if (done != 0)
		return done;
	if (object->size > S3_COPY_WHOLE_MAX)
		abort_leftovers(&target);
	done = s3_copy(target.aws, &source, &target.place, 0, &outcome, err);
	if (done > 0)
		whole_sha256(&outcome.checksum, ret_sha256);
	return done;
}

static void s3_store_free(struct store *base)
{
	struct store_s3 *store = as_s3(base);

	aws_freep(&store->aws);
	free(store->bucket);
	free(store->prefix);
	free(store->base.url);
	free(store);
}

static const struct store_backend backend = {
	.free = s3_store_free,
	.list = s3_store_list,
	.folders = s3_store_folders,
	.get = s3_store_get,
	.read_range = s3_store_read_range,
	.stat = s3_store_stat,
	.put = s3_store_put,
	.put_if_absent = s3_store_put_if_absent,
	.replace_if_same = s3_store_replace_if_same,
	.remove = s3_store_remove,
	.upload = s3_store_upload,
	.download = s3_store_download,
	.copy = s3_store_copy,
	.backend = transfer_backend_s3_open,
	.digests = store_s3_digests,
};

uint64_t store_traffic(void)
{
	return http_traffic();
}

int store_s3_open(const char *where, struct store **ret, struct err **err)
{
	AUTO(auto_free) char *bucket = NULL;
	AUTO(auto_free) char *prefix = NULL;
	struct store_s3 *store;

	if (s3_parse_url(where, &bucket, &prefix, err) < 0)
		return -1;
	if (*prefix && s3_key_unsafe(prefix, strlen(prefix)))
		return err_set(err, EXIT_REFUSED, "the prefix of '%s' %s", where,
			       s3_key_unsafe(prefix, strlen(prefix)));
	store = mem_zero(1, sizeof *store);
	store->base.backend = &backend;
	store->base.url = mem_format("s3://%s%s%s", bucket, *prefix ? "/" : "", prefix);
	store->bucket = TAKE(bucket);
	store->prefix = *prefix ? mem_format("%s/", prefix) : mem_copy("");
	*ret = &store->base;
	return 0;
}
