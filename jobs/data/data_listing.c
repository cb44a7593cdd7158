/* The objects of a source that count, in order: those of a store as it lists them, or those that a
 * JSON Lines file names. See data_internal.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/pattern.h"
#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"

#define DAY_MS INT64_C(86400000)

/* A folder that a walk through the keys is in. All keys below it come one behind the other. */
struct data_folder {
	size_t len;    /* of its key, with the slash; 0: the root */
	size_t number; /* among all folders, in the order of the keys */
};

struct folders {
	struct data_folder *path; /* from the root on; NULL before the first key */
	size_t depth, count;
	struct sb key; /* the last one */
};

struct listing {
	const struct data_source *source;
	struct utc at;
	struct data_counts *counts;
	data_listed_fn fn;
	void *arg;
	bool takes_all, is_dir;
	struct sb url;        /* of the row */
	size_t prefix;        /* length of what all urls begin with: the key is behind it */
	char mtime[UTC_TEXT]; /* of the last row; its day, in days since 1970 */
	int64_t day;
	/* A folder that holds the marker is known only when all of it has been listed. All rows
	 * wait in a file, in which "new" says that an object is young. */
	struct data_writer *waiting;
	struct folders folders;
	uint8_t *marked; /* a bit for each folder */
};

/* --- choice of objects --- */

bool data_url_is_list(const char *url)
{
	size_t len = strlen(url);

	return (len > 6 && strcmp(url + len - 6, ".jsonl") == 0) ||
	       (len > 7 && strcmp(url + len - 7, ".ndjson") == 0);
}

static bool takes_all(const json_t *include)
{
	const json_t *pattern;
	size_t i;

	json_array_foreach (include, i, pattern)
		if (strcmp(json_string_value(pattern), "**") == 0)
			return true;
	return !include;
}

static bool is_included(const struct listing *listing, const char *key)
{
	const json_t *pattern;
	size_t i;

	if (listing->takes_all)
		return true;
	json_array_foreach (listing->source->include, i, pattern)
		if (pattern_match(json_string_value(pattern), key, false))
			return true;
	return false;
}

/* The part of a url that `include` and folders are about. */
static const char *key_of(const struct listing *listing, const char *url)
{
	if (listing->prefix > 0)
		return url + listing->prefix;
	return url + (url[0] == '/' ? 1 : strlen("s3://"));
}

static bool is_marker(const struct listing *listing, const char *key)
{
	const char *marker = listing->source->done_marker;

	return marker && strcmp(fs_basename(key), marker) == 0;
}

/* --- folders --- */

static void folders_push(struct folders *folders, size_t len)
{
	folders->path = mem_grow(folders->path, folders->depth + 1, sizeof *folders->path);
	folders->path[folders->depth++] = (struct data_folder){ len, folders->count++ };
}

/* Moves on to the folder of the key. */
static void folders_enter(struct folders *folders, const char *key)
{
	size_t len;

	if (folders->depth == 0)
		folders_push(folders, 0);
	for (len = folders->path[folders->depth - 1].len;
	     len > 0 && strncmp(key, folders->key.text, len) != 0;
	     len = folders->path[folders->depth - 1].len)
		folders->depth--;
	for (const char *slash = key + len; (slash = strchr(slash, '/'));)
		folders_push(folders, (size_t)(++slash - key));
	sb_clear(&folders->key);
	sb_adds(&folders->key, key);
}

static void folders_release(struct folders *folders)
{
	free(folders->path);
	sb_release(&folders->key);
	*folders = (struct folders){ .key = SB_INIT };
}

static void mark_folder(struct listing *listing)
{
	const struct folders *folders = &listing->folders;
	size_t number = folders->path[folders->depth - 1].number;

	listing->marked[number / 8] |= (uint8_t)(1u << (number % 8));
}

static bool is_marked(const struct listing *listing)
{
	const struct folders *folders = &listing->folders;

	for (size_t i = 0; i < folders->depth; i++) {
		size_t number = folders->path[i].number;

		if (listing->marked[number / 8] & (1u << (number % 8)))
			return true;
	}
	return false;
}

/* --- rows --- */

static int pass_row(struct listing *listing, struct data_row *row, bool young, struct err **err)
{
	listing->counts->listed++;
	if (!is_included(listing, key_of(listing, row->url))) {
		listing->counts->excluded++;
		return 0;
	}
	return listing->fn(listing->arg, row, young, err);
}

/* Has the row wait until the markers are known. */
static int hold_row(struct listing *listing, struct data_row *row, bool young, struct err **err)
{
	const char *key = key_of(listing, row->url);
	size_t before = listing->folders.count / 8 + 1, after;

	folders_enter(&listing->folders, key);
	after = listing->folders.count / 8 + 1;
	if (!listing->marked || after > before) {
		if (!listing->marked)
			before = 0;
		listing->marked = mem_grow(listing->marked, after, 1);
		memset(listing->marked + before, 0, after - before);
	}
	if (is_marker(listing, key))
		mark_folder(listing);
	row->is_new = young;
	return data_writer_add(listing->waiting, row, err);
}

static int take_row(struct listing *listing, struct data_row *row, bool young, struct err **err)
{
	return listing->waiting ? hold_row(listing, row, young, err)
				: pass_row(listing, row, young, err);
}

/* Passes on the rows that waited: the folders come in the same order again. */
static int pass_held(struct listing *listing, struct err **err)
{
	AUTO(data_reader_freep) struct data_reader *reader = NULL;
	struct data_row row;
	int found;

	if (data_writer_flush(listing->waiting, err) < 0)
		return -1;
	reader = data_reader_of_file(listing->waiting->fd, listing->source->url);
	folders_release(&listing->folders);
	while ((found = data_reader_next(reader, &row, err)) > 0) {
		const char *key = key_of(listing, row.url);
		bool young = row.is_new;

		folders_enter(&listing->folders, key);
		if (is_marker(listing, key))
			continue;
		row.is_new = false;
		if (!is_marked(listing)) {
			listing->counts->listed++;
			listing->counts->unmarked++;
		} else if (pass_row(listing, &row, young, err) < 0) {
			return -1;
		}
	}
	return found;
}

/* --- sources of objects --- */

static void put_digits(char *text, int64_t number, int count)
{
	for (; count > 0; number /= 10)
		text[--count] = (char)('0' + number % 10);
}

/* Writes a time like clock_utc_format(), which takes longer than all else about a file: most files
 * of a folder are of one day. */
static const char *format_time(struct listing *listing, struct utc at)
{
	int64_t day = at.ms / DAY_MS, ms = at.ms % DAY_MS;
	char *text = listing->mtime;

	if (ms < 0 || day != listing->day || text[0] == '\0') {
		listing->day = ms < 0 ? -1 : day;
		return clock_utc_format(at, text);
	}
	put_digits(text + 11, ms / 3600000, 2);
	put_digits(text + 14, ms / 60000 % 60, 2);
	put_digits(text + 17, ms / 1000 % 60, 2);
	put_digits(text + 20, ms % 1000, 3);
	return text;
}

static bool is_text(const char *key)
{
	const char *at = key;

	while (*at && !((unsigned char)*at & 0x80))
		at++;
	return *at == '\0' || text_is_utf8(key, strlen(key));
}

static int list_object(void *arg, const struct store_object *object, struct err **err)
{
	struct listing *listing = arg;
	char etag[STORE_TAG];
	struct data_row row = { .size = object->size };
	bool young = listing->source->settle_ms > 0 &&
		     object->modified.ms > listing->at.ms - listing->source->settle_ms;
	size_t len = strlen(object->tag);

	if (!is_text(object->key)) {
		listing->counts->unsafe++;
		return 0;
	}
	listing->url.len = listing->prefix;
	sb_adds(&listing->url, object->key);
	row.url = listing->url.text;
	if (listing->is_dir) {
		row.mtime = format_time(listing, object->modified);
	} else {
		bool quoted = len >= 2 && object->tag[0] == '"' && object->tag[len - 1] == '"';

		snprintf(etag, sizeof etag, "%.*s", (int)(quoted ? len - 2 : len),
			 object->tag + quoted);
		row.etag = etag;
	}
	return take_row(listing, &row, young, err);
}

static void count_unsafe(void *arg, const char *name, const char *why)
{
	struct data_counts *counts = arg;

	(void)name;
	(void)why;
	counts->unsafe++;
}

static int list_store(struct listing *listing, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *prefix = NULL;

	if (data_listing_prefix(listing->source, &prefix, err) < 0 || !prefix ||
	    store_open(listing->source->url, &store, err) < 0)
		return -1;
	listing->is_dir = store_directory(store) != NULL;
	listing->prefix = strlen(prefix);
	sb_adds(&listing->url, prefix);
	store_on_unsafe_name(store, count_unsafe, listing->counts);
	return store_list(store, "", list_object, listing, err);
}

static int list_foreign_row(void *arg, struct data_row *row, struct err **err)
{
	return take_row(arg, row, false, err);
}

static int list_foreign(struct listing *listing, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(data_reader_freep) struct data_reader *reader = NULL;
	const char *url = listing->source->url;
	AUTO(auto_free) char *folder = fs_dirname(url);

	if (store_open(folder, &store, err) < 0)
		return -1;
	reader = data_reader_foreign(store, fs_basename(url));
	return data_sort_rows(reader, url, list_foreign_row, listing, err);
}

int data_listing_prefix(const struct data_source *source, char **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	*ret = NULL;
	if (data_url_is_list(source->url))
		return 0;
	if (store_open(source->url, &store, err) < 0)
		return -1;
	*ret = mem_format("%s/", strcmp(store_url(store), "/") == 0 ? "" : store_url(store));
	return 0;
}

static void listing_release(struct listing *listing)
{
	sb_release(&listing->url);
	folders_release(&listing->folders);
	free(listing->marked);
}

int data_listing_run(const struct data_source *source, struct utc at, struct data_counts *counts,
		     data_listed_fn fn, void *arg, struct err **err)
{
	AUTO(data_writer_release) struct data_writer waiting = { .fd = -1, .out = SB_INIT };
	AUTO(listing_release)
	struct listing listing = { .source = source,
				   .at = at,
				   .counts = counts,
				   .fn = fn,
				   .arg = arg,
				   .takes_all = takes_all(source->include),
				   .url = SB_INIT,
				   .folders = { .key = SB_INIT } };
	int result;

	if (source->done_marker) {
		if (data_writer_open(&waiting, DATA_LINE_SPOOL, err) < 0)
			return -1;
		listing.waiting = &waiting;
	}
	result = data_url_is_list(source->url) ? list_foreign(&listing, err)
					       : list_store(&listing, err);
	if (result < 0)
		return err_wrap(err, "cannot list the data of '%s'", source->url);
	return source->done_marker ? pass_held(&listing, err) : 0;
}
