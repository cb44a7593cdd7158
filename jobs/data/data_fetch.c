/* The objects of a manifest, as files of a folder on this machine. See data.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"
#include "jobs/store/store_backend.h"
#include "jobs/store/transfer_backend.h"

#define AT_ONCE 16
#define TURN_MS 100

struct fetch;

struct data_flight {
	struct transfer transfer;
	struct fetch *fetch;
	char *key, *url;
	uint64_t size;
};

struct fetch {
	const char *prefix, *folder; /* prefix NULL: paths are whole urls */
	/* Rows come bucket by bucket; one is open. */
	char *bucket;
	struct store *store;
	struct transfer_backend *backend;
	size_t under_way;
	struct data_flight flights[AT_ONCE];
	struct err *err; /* the first failure of a transfer */
};

static int fail_changed(struct err **err, const char *url)
{
	err_set(err, EXIT_REFUSED, "'%s' is no longer what the manifest of this run lists", url);
	err_damage(err); /* no other attempt finds it as it was */
	return err_hint(err, "begin another run, which lists the data again");
}

/* The path of an object in the folder, whose folders are made. The caller frees it. */
static char *path_of(const struct fetch *fetch, const char *url, struct err **err)
{
	size_t prefix = fetch->prefix ? strlen(fetch->prefix) : 0;
	const char *name = url;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *dir = NULL;

	if (prefix > 0 && strncmp(url, fetch->prefix, prefix) == 0)
		name = url + prefix;
	else
		name += text_starts(url, "s3://") ? strlen("s3://") : url[0] == '/';
	/* The manifest is proved, but a name in it is still another's. */
	if (!store_key_fits(name, false)) {
		err_set(err, EXIT_REFUSED, "'%s' cannot be the name of a file", url);
		return NULL;
	}
	path = fs_join(fetch->folder, name);
	dir = fs_dirname(path);
	if (fs_mkdirs(dir, err) < 0) {
		err_wrap(err, "cannot fetch '%s'", url);
		return NULL;
	}
	return TAKE(path);
}

/* --- files --- */

/* Sets *ret if the file is as the manifest has it. The ETag of a list is its writer's own: nothing
 * in a file tells it, so there the size alone is compared. */
static int is_same_file(struct data_row *row, const struct stat *st, bool *ret, struct err **err)
{
	struct data_row known = *row;
	char sha[SHA256_HEX], mtime[UTC_TEXT];

	if (!known.mtime) {
		*ret = (uint64_t)st->st_size == known.size;
		return 0;
	}
	row->size = (uint64_t)st->st_size;
	row->mtime = clock_utc_format(
		(struct utc){ (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000 },
		mtime);
	row->sha256 = NULL;
	return data_turn_same(row, &known, sha, ret, err);
}

static int link_file(const struct fetch *fetch, struct data_row *row, struct err **err)
{
	AUTO(auto_free) char *path = path_of(fetch, row->url, err);
	struct stat st;
	bool same;

	if (!path)
		return -1;
	if (lstat(row->url, &st) < 0 || !S_ISREG(st.st_mode))
		return fail_changed(err, row->url);
	if (is_same_file(row, &st, &same, err) < 0)
		return -1;
	if (!same)
		return fail_changed(err, row->url);
	if (unlink(path) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot replace '%s'", path);
	return symlink(row->url, path) < 0 ? fs_error(err, errno, "cannot make the link '%s'", path)
					   : 0;
}

/* --- objects in a bucket --- */

static void flight_end(struct data_flight *flight)
{
	auto_close(&flight->transfer.fd);
	free(flight->key);
	free(flight->url);
	flight->fetch->under_way--;
	*flight = (struct data_flight){ 0 };
}

static void on_done(struct transfer *transfer, enum transfer_result result, struct err *err)
{
	struct data_flight *flight = transfer->owner;
	struct fetch *fetch = flight->fetch;
	struct err *why = err;

	if (result == TRANSFER_DONE && transfer->size == flight->size) {
		flight_end(flight);
		return;
	}
	if (result == TRANSFER_FAILED)
		err_wrap(&why, "cannot fetch '%s'", flight->url);
	else
		fail_changed(&why, flight->url);
	if (fetch->err)
		err_free(why);
	else
		fetch->err = why;
	flight_end(flight);
}

/* Goes on until so few transfers are under way. */
static int wait_for_room(struct fetch *fetch, size_t below, struct err **err)
{
	while (fetch->under_way > below && !fetch->err) {
		if (cancel_is_due())
			return err_set(err, EXIT_UNREACHABLE, "stopped while data was fetched");
		fetch->backend->kind->turn(fetch->backend, TURN_MS);
	}
	if (!fetch->err)
		return 0;
	*err = TAKE(fetch->err);
	return -1;
}

static void close_bucket(struct fetch *fetch)
{
	if (fetch->backend)
		fetch->backend->kind->free(fetch->backend);
	fetch->backend = NULL;
	for (size_t i = 0; i < AT_ONCE; i++)
		if (fetch->flights[i].fetch)
			flight_end(&fetch->flights[i]);
	store_freep(&fetch->store);
	free(fetch->bucket);
	fetch->bucket = NULL;
}

static int enter_bucket(struct fetch *fetch, const char *url, size_t len, struct err **err)
{
	if (fetch->bucket && strlen(fetch->bucket) == len && strncmp(fetch->bucket, url, len) == 0)
		return 0;
	if (fetch->bucket && wait_for_room(fetch, 0, err) < 0)
		return -1;
	close_bucket(fetch);
	fetch->bucket = mem_copy_n(url, len);
	return store_open(fetch->bucket, &fetch->store, err) < 0 ||
			       fetch->store->backend->backend(fetch->store, &fetch->backend, err) <
				       0
		       ? -1
		       : 0;
}

static int fetch_object(struct fetch *fetch, const struct data_row *row, struct err **err)
{
	const char *bucket = row->url + strlen("s3://");
	size_t bucket_len = strcspn(bucket, "/");
	AUTO(auto_free) char *path = path_of(fetch, row->url, err);
	struct data_flight *flight = fetch->flights;
	size_t url_len = strlen("s3://") + bucket_len;

	if (!path || enter_bucket(fetch, row->url, url_len, err) < 0 ||
	    wait_for_room(fetch, AT_ONCE - 1, err) < 0)
		return -1;
	while (flight->fetch)
		flight++;
	flight->transfer = (struct transfer){
		.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600),
		.size = row->size,
		.done = on_done,
		.owner = flight
	};
	if (flight->transfer.fd < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	flight->fetch = fetch;
	fetch->under_way++;
	flight->url = mem_copy(row->url);
	flight->key = mem_copy(bucket + bucket_len + 1);
	flight->size = row->size;
	flight->transfer.key = flight->key;
	snprintf(flight->transfer.tag, sizeof flight->transfer.tag, "\"%s\"", row->etag);
	return fetch->backend->kind->fetch(fetch->backend, &flight->transfer, err);
}

/* --- all rows --- */

static int fetch_row(struct fetch *fetch, struct data_row *row, struct err **err)
{
	if (row->url[0] == '/')
		return link_file(fetch, row, err);
	if (text_starts(row->url, "s3://") && strchr(row->url + strlen("s3://"), '/'))
		return fetch_object(fetch, row, err);
	err_set(err, EXIT_REFUSED, "'%s' of the manifest cannot be fetched", row->url);
	return err_hint(err, "set data.fetch to false, and have the command read it");
}

static void fetch_release(struct fetch *fetch)
{
	close_bucket(fetch);
	err_free(fetch->err);
}

int data_fetch_objects(const char *manifest, const char *base, const char *folder, struct err **err)
{
	const struct data_source source = { .url = base ? base : "" };
	AUTO(auto_free) char *prefix = NULL;
	AUTO(auto_close) int fd = fs_open_regular(manifest, err);
	AUTO(data_reader_freep) struct data_reader *reader = NULL;
	AUTO(fetch_release) struct fetch fetch = { .folder = folder };
	struct data_row row;
	int found;

	if (fd < 0 || (base && data_listing_prefix(&source, &prefix, err) < 0) ||
	    fs_mkdirs(folder, err) < 0)
		return -1;
	fetch.prefix = prefix;
	reader = data_reader_of_file(fd, manifest);
	while ((found = data_reader_next(reader, &row, err)) > 0)
		if (fetch_row(&fetch, &row, err) < 0)
			return -1;
	return found < 0 ? -1 : wait_for_room(&fetch, 0, err);
}

int data_fetch_manifest(const char *url, const char *path, char **ret_path, struct err **err)
{
	const char *name = fs_basename(url);
	AUTO(auto_free) char *folder = fs_dirname(url);
	AUTO(auto_free) char *where = mem_copy(url[0] == '/' ? url : path);
	AUTO(store_freep) struct store *store = NULL;
	char sha[SHA256_HEX];
	uint64_t size;
	int found = 1;

	if (url[0] != '/') {
		if (store_open(folder, &store, err) < 0)
			return -1;
		found = store_download(store, name, where, err);
	}
	if (found < 0 || (found > 0 && hash_sha256_file(where, sha, &size, err) < 0))
		return err_wrap(err, "cannot fetch the manifest of the data");
	if (found == 0)
		return err_set(err, EXIT_REFUSED, "the manifest '%s' is gone", url);
	if (strncmp(name, sha, strlen(sha)) != 0) {
		err_set(err, EXIT_REFUSED, "'%s' is not what was stored there: its SHA-256 is %s",
			url, sha);
		return err_damage(err);
	}
	*ret_path = TAKE(where);
	return 0;
}
