/* Entry point of every store: selects the kind by URL and checks keys. See store.h. */
#include "jobs/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/store/store_backend.h"

/* S3 allows keys of 1,024 bytes; directories allow parts of 255. A key that one kind accepts
 * must be valid on the other. */
#define KEY_BYTES_MAX 1024

/* Kinds by URL scheme; a URL without one of these is a directory. */
static const struct {
	const char *scheme;
	int (*open)(const char *where, struct store **ret, struct err **err);
} kinds[] = {
	{ "dir:", store_dir_open },
	{ "s3:", store_s3_open },
};

int store_open(const char *url, struct store **ret, struct err **err)
{
	const char *colon = strstr(url, "://");

	for (size_t i = 0; i < STK_LENGTH(kinds); i++)
		if (text_starts(url, kinds[i].scheme))
			return kinds[i].open(url, ret, err);
	if (colon) {
		err_set(err, EXIT_REFUSED, "no store can be opened at '%s'", url);
		return err_hint(err, "use a directory; a '%.*s' store is not part of this version",
				(int)(colon - url), url);
	}
	return store_dir_open(url, ret, err);
}

void store_freep(struct store **store)
{
	if (*store)
		(*store)->backend->free(*store);
	*store = NULL;
}

const char *store_url(const struct store *store)
{
	return store->url;
}

const char *store_directory(const struct store *store)
{
	return store->directory;
}

void store_on_unsafe_name(struct store *store, store_unsafe_name_fn fn, void *arg)
{
	store->unsafe_name = fn;
	store->unsafe_name_arg = arg;
}

static bool part_is_good(const char *part, size_t len)
{
	return !fs_name_unsafe(part, len) && !text_starts(part, STORE_RESERVED);
}

/* Every part that ends in a slash must be valid; the last part only in a key, since a prefix may
 * end anywhere. */
bool store_key_fits(const char *key, bool is_prefix)
{
	if (strlen(key) > KEY_BYTES_MAX)
		return false;
	for (;;) {
		size_t len = strcspn(key, "/");

		if (key[len] == '\0')
			return is_prefix || part_is_good(key, len);
		if (!part_is_good(key, len))
			return false;
		key += len + 1;
	}
}

static int check_key(const struct store *store, const char *key, struct err **err)
{
	if (store_key_fits(key, false))
		return 0;
	return err_set(err, EXIT_DEFECT, "invalid object name '%s' in '%s'", key, store->url);
}

int store_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
	       struct err **err)
{
	if (!store_key_fits(prefix, true))
		return err_set(err, EXIT_DEFECT, "invalid prefix '%s' in '%s'", prefix, store->url);
	return store->backend->list(store, prefix, fn, arg, err);
}

int store_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
		  struct err **err)
{
	size_t len = strlen(prefix);

	if (!store_key_fits(prefix, true) || (len > 0 && prefix[len - 1] != '/'))
		return err_set(err, EXIT_DEFECT, "invalid folder '%s' in '%s'", prefix, store->url);
	return store->backend->folders(store, prefix, fn, arg, err);
}

int store_get(struct store *store, const char *key, size_t max, struct sb *ret,
	      char ret_tag[STORE_TAG], struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->get(store, key, max, ret, ret_tag, err);
}

int store_read_range(struct store *store, const char *key, uint64_t offset, size_t len,
		     struct sb *ret, char ret_tag[STORE_TAG], struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->read_range(store, key, offset, len, ret, ret_tag, err);
}

int store_stat(struct store *store, const char *key, struct store_object *ret_object,
	       struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->stat(store, key, ret_object, err);
}

int store_put(struct store *store, const char *key, const void *bytes, size_t len, struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->put(store, key, bytes, len, err);
}

int store_put_if_absent(struct store *store, const char *key, const void *bytes, size_t len,
			struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->put_if_absent(store, key, bytes, len, err);
}

int store_replace_if_same(struct store *store, const char *key, const char *tag, const void *bytes,
			  size_t len, struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->replace_if_same(store, key, tag, bytes, len, err);
}

int store_delete(struct store *store, const char *key, struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->remove(store, key, err);
}

static int upload_open_file(struct store *store, int fd, const char *name, const char *key,
			    struct err **err)
{
	struct store_upload upload = { .path = name, .fd = fd };

	if (check_key(store, key, err) < 0)
		return -1;
	if (fd < 0 || fstat(fd, &upload.st) < 0)
		return fs_error(err, errno, "cannot read '%s'", name);
	if (!S_ISREG(upload.st.st_mode))
		return err_set(err, EXIT_REFUSED, "cannot read '%s': not a regular file", name);
	return store->backend->upload(store, &upload, key, err);
}

int store_upload(struct store *store, const char *path, const char *key, struct err **err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return upload_open_file(store, fd, path, key, err);
}

int store_upload_file(struct store *store, int fd, const char *key, struct err **err)
{
	return upload_open_file(store, fd, "a temporary file", key, err);
}

int store_download(struct store *store, const char *key, const char *path, struct err **err)
{
	if (check_key(store, key, err) < 0)
		return -1;
	return store->backend->download(store, key, path, err);
}
