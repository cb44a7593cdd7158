/* Reading entries where they lie: see content.h. */
#include "jobs/cache/content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/base/hash.h"

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
	if (sha256_file(path, hex, &ret->size, &cause) < 0) {
		/* Gone since it was looked at? */
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

int content_inspect(struct store *store, const struct compile_kind *kind, const char *key,
		    enum entry_state *ret_state, const char **ret_why, struct err **err)
{
	AUTO(auto_free) char *path = file_of(store, key);
	AUTO(auto_close) int fd = -1;

	if (!path || !kind->inspect)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || kind->inspect(fd, ret_state, ret_why) < 0)
		return fs_error(err, errno, "cannot check '%s'", path);
	return 1;
}
