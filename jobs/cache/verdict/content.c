/* Reads the entries of a cache: see content.h. */
#include "jobs/cache/verdict/content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/store/content_match.h"

#define PIECE ((size_t)8 << 20) /* bytes of an object in memory at a time */

/* The file of an object of a directory store; NULL in other stores. */
static char *file_of(struct store *store, const char *key)
{
	const char *directory = store_directory(store);

	return directory ? fs_join(directory, key) : NULL;
}

int content_digest(struct store *store, const char *key, struct content *ret, struct err **err)
{
	AUTO(auto_free) char *path = file_of(store, key);
	AUTO(err_freep) struct err *cause = NULL;
	struct store_object object;
	char hex[SHA256_HEX];
	int found = store_stat(store, key, &object, err);

	if (found <= 0)
		return found;
	if (!path) {
		ret->size = object.size;
		ret->tagged = true;
		memcpy(ret->digest, object.tag, sizeof ret->digest);
		return 1;
	}
	if (hash_sha256_file(path, hex, &ret->size, &cause) < 0) {
		/* The object may have gone since the stat. */
		found = store_stat(store, key, &object, err);
		if (found > 0) {
			*err = TAKE(cause);
			return err_wrap(err, "cannot check the cache");
		}
		return found;
	}
	ret->tagged = false;
	memcpy(ret->digest, hex, sizeof hex);
	return 1;
}

/* SHA-256 of an object in a bucket. Returns 1; 0 if it is gone or being written; -1 with an
 * error. */
static int digest_pieces(struct store *store, const char *key, uint64_t size, char hex[SHA256_HEX],
			 struct err **err)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	AUTO(sb_release) struct sb piece = SB_INIT;
	char first[STORE_TAG] = "", tag[STORE_TAG];

	for (uint64_t at = 0; at < size; at += piece.len) {
		int found;

		sb_clear(&piece);
		found = store_read_range(store, key, at, PIECE, &piece, tag, err);
		if (found <= 0)
			return found;
		if (at == 0)
			memcpy(first, tag, sizeof first);
		if (piece.len == 0 || strcmp(first, tag) != 0)
			return 0;
		hash_sha256_add(sha, piece.text, piece.len);
	}
	hash_sha256_end(TAKE(sha), hex);
	return 1;
}

int content_is_elsewhere(struct store *store, const char *key, const struct content *pin,
			 struct err **err)
{
	AUTO(auto_free) char *path = file_of(store, key);
	AUTO(auto_close) int fd = -1;
	char hex[SHA256_HEX];
	int found;

	if (path && pin->tagged) {
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		return fd < 0 ? 0 : content_match_tag(fd, key, pin->size, pin->digest, err);
	}
	if (path || pin->tagged)
		return 0; /* same kind of store: the caller compares them directly */
	found = digest_pieces(store, key, pin->size, hex, err);
	return found > 0 ? strcmp(hex, pin->digest) == 0 : found;
}

/* Copies the object into an unnamed memory file. Returns its descriptor; -1 if the object is absent
 * or too large; -2 with an error. */
static int fetch(struct store *store, const char *key, struct err **err)
{
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(CONTENT_FETCH_MAX + 1);
	AUTO(auto_close) int fd = -1;
	int found = store_read_range(store, key, 0, CONTENT_FETCH_MAX + 1, &bytes, NULL, err);

	if (found <= 0 || bytes.len > CONTENT_FETCH_MAX)
		return found < 0 ? -2 : -1;
	fd = memfd_create("entry", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes.text, bytes.len) != (ssize_t)bytes.len ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		fs_error(err, errno, "cannot look into '%s'", key);
		return -2;
	}
	return TAKE_FD(fd);
}

static int inspect_fetched(struct store *store, const struct compile_kind *kind, const char *key,
			   enum entry_state *ret_state, const char **ret_why, struct err **err)
{
	AUTO(auto_close) int fd = fetch(store, key, err);

	if (fd < 0)
		return fd == -2 ? -1 : 0;
	return kind->inspect(fd, ret_state, ret_why) < 0
		       ? fs_error(err, errno, "cannot look into '%s'", key)
		       : 1;
}

int content_inspect(struct store *store, const struct compile_kind *kind, const char *key,
		    enum entry_state *ret_state, const char **ret_why, struct err **err)
{
	AUTO(auto_free) char *path = file_of(store, key);
	AUTO(auto_close) int fd = -1;

	if (!kind->inspect)
		return 0;
	if (!path)
		return inspect_fetched(store, kind, key, ret_state, ret_why, err);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || kind->inspect(fd, ret_state, ret_why) < 0)
		return fs_error(err, errno, "cannot check '%s'", path);
	return 1;
}
