/* A list as a stream of rows: from a store in ranges, or from a local file. See data.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/data/data_internal.h"

/* Bytes of one read. From a service each is a request, and most lists are read by one: a line has
 * about a hundred bytes. */
#define CHUNK_REMOTE ((size_t)12 << 20)
#define CHUNK_LOCAL  ((size_t)256 << 10)
#define CHUNK_PART   ((size_t)64 << 10) /* many parts are read side by side */

struct data_reader {
	struct store *store, *own_store; /* `store` NULL: a local file */
	char *key, *name;
	int fd;
	uint64_t at_byte, end; /* offset of the next read; where the list ends */
	size_t chunk;
	char *chunk_bytes;   /* of a local file: room for one read */
	char tag[STORE_TAG]; /* of a store's object at the first read */
	struct sb bytes;
	size_t at;
	bool read_all, foreign, unordered, over;
	struct sha256 *sha; /* NULL: the list is not stored by content */
	char digest[SHA256_HEX];
	uint64_t line;
	json_t *keep;
	struct sb last; /* the url before */
};

static struct data_reader *reader_new(const char *name)
{
	struct data_reader *reader = mem_zero(1, sizeof *reader);

	reader->name = mem_copy(name);
	reader->fd = -1;
	reader->end = UINT64_MAX;
	reader->chunk = CHUNK_LOCAL;
	reader->bytes = SB_INIT;
	reader->last = SB_INIT;
	return reader;
}

void data_reader_freep(struct data_reader **ret)
{
	struct data_reader *reader = *ret;

	if (!reader)
		return;
	store_freep(&reader->own_store);
	free(reader->key);
	free(reader->name);
	free(reader->chunk_bytes);
	sb_release(&reader->bytes);
	sb_release(&reader->last);
	hash_sha256_freep(&reader->sha);
	json_decref(reader->keep);
	free(reader);
	*ret = NULL;
}

static void reader_of_store(struct data_reader *reader, struct store *store, const char *key)
{
	reader->store = store;
	reader->key = mem_copy(key);
	if (data_reader_is_far(reader))
		reader->chunk = CHUNK_REMOTE;
}

int data_reader_open(const struct data_list *list, struct data_reader **ret, struct err **err)
{
	AUTO(data_reader_freep) struct data_reader *reader = reader_new(list->url);
	AUTO(auto_free) char *folder = fs_dirname(list->url);

	if (store_open(folder, &reader->own_store, err) < 0)
		return -1;
	reader_of_store(reader, reader->own_store, fs_basename(list->url));
	reader->sha = hash_sha256_new();
	memcpy(reader->digest, list->digest, sizeof reader->digest);
	*ret = TAKE(reader);
	return 0;
}

struct data_reader *data_reader_part(int fd, const char *name, uint64_t from, uint64_t to)
{
	struct data_reader *reader = reader_new(name);

	reader->fd = fd;
	reader->at_byte = from;
	reader->end = to;
	reader->chunk = CHUNK_PART;
	reader->unordered = true;
	return reader;
}

struct data_reader *data_reader_of_file(int fd, const char *name)
{
	struct data_reader *reader = reader_new(name);

	reader->fd = fd;
	return reader;
}

struct data_reader *data_reader_foreign(struct store *store, const char *key)
{
	AUTO(auto_free) char *name = mem_format("%s/%s", store_url(store), key);
	struct data_reader *reader = reader_new(name);

	reader_of_store(reader, store, key);
	reader->foreign = reader->unordered = true;
	return reader;
}

static int fill_from_file(struct data_reader *reader, size_t want, struct err **err)
{
	ssize_t got;

	if (!reader->chunk_bytes)
		reader->chunk_bytes = mem_alloc(reader->chunk);
	got = fs_read_full(reader->fd, reader->chunk_bytes, want, (int64_t)reader->at_byte);
	if (got < 0)
		return fs_error(err, errno, "cannot read '%s'", reader->name);
	sb_add(&reader->bytes, reader->chunk_bytes, (size_t)got);
	return 0;
}

static int fill_from_store(struct data_reader *reader, size_t want, struct err **err)
{
	char tag[STORE_TAG] = "";
	int found = store_read_range(reader->store, reader->key, reader->at_byte, want,
				     &reader->bytes, tag, err);

	if (found < 0)
		return err_wrap(err, "cannot read '%s'", reader->name);
	if (found == 0)
		return err_set(err, EXIT_REFUSED, "'%s' is gone", reader->name);
	if (reader->at_byte == 0)
		memcpy(reader->tag, tag, sizeof tag);
	if (strcmp(reader->tag, tag) == 0)
		return 0;
	return err_set(err, EXIT_REFUSED, "'%s' changed while it was read", reader->name);
}

/* Reads the next chunk behind what is left of the last one. */
static int fill(struct data_reader *reader, struct err **err)
{
	uint64_t left = reader->end - reader->at_byte;
	size_t want = left < reader->chunk ? (size_t)left : reader->chunk;
	size_t before, got;
	int result;

	sb_drop(&reader->bytes, reader->at);
	reader->at = 0;
	before = reader->bytes.len;
	result = reader->store ? fill_from_store(reader, want, err)
			       : fill_from_file(reader, want, err);
	if (result < 0)
		return -1;
	got = reader->bytes.len - before;
	if (reader->sha)
		hash_sha256_add(reader->sha, reader->bytes.text + before, got);
	reader->at_byte += got;
	reader->read_all = got < want || reader->at_byte == reader->end;
	return 0;
}

static int fail_line(const struct data_reader *reader, struct err **err)
{
	err_wrap(err, "'%s', line %" PRIu64, reader->name, reader->line);
	if (!reader->foreign)
		return err_damage(err);
	return err_hint(err, "write one {\"url\",\"size\",\"etag\"} a line, for each object once");
}

static int check_order(struct data_reader *reader, const struct data_row *row, struct err **err)
{
	if (reader->unordered)
		return 0;
	if (reader->last.len > 0 && strcmp(reader->last.text, row->url) >= 0) {
		err_set(err, EXIT_REFUSED, "not behind the line before");
		return fail_line(reader, err);
	}
	sb_clear(&reader->last);
	sb_adds(&reader->last, row->url);
	return 0;
}

static int at_end(struct data_reader *reader, struct err **err)
{
	char digest[SHA256_HEX];

	if (!reader->sha || reader->over)
		return 0;
	reader->over = true;
	hash_sha256_end(TAKE(reader->sha), digest);
	if (strcmp(digest, reader->digest) == 0)
		return 0;
	err_set(err, EXIT_REFUSED, "'%s' is not what was stored there: its SHA-256 is %s",
		reader->name, digest);
	err_damage(err);
	return err_hint(err, "restore the object of digest %s", reader->digest);
}

/* The next line: 1, 0 at the end, -1. Its newline is at `*ret + *ret_len`, or a NUL. */
static int next_line(struct data_reader *reader, char **ret, size_t *ret_len, struct err **err)
{
	for (;;) {
		char *line = reader->bytes.text + reader->at;
		size_t have = reader->bytes.len - reader->at;
		char *end = memchr(line, '\n', have);
		size_t len = end ? (size_t)(end - line) : have;

		if (len > DATA_LINE_MAX) {
			reader->line++;
			err_set(err, EXIT_REFUSED, "longer than %zu bytes", DATA_LINE_MAX);
			return fail_line(reader, err);
		}
		if (!end && !reader->read_all) {
			if (fill(reader, err) < 0)
				return -1;
			continue;
		}
		if (!end && have == 0)
			return 0;
		reader->at += len + (end ? 1 : 0);
		reader->line++;
		*ret = line;
		*ret_len = len;
		return 1;
	}
}

static bool is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

int data_reader_next(struct data_reader *reader, struct data_row *ret, struct err **err)
{
	char *line = NULL;
	size_t len = 0;
	int found;

	do {
		found = next_line(reader, &line, &len, err);
		if (found <= 0)
			return found < 0 || at_end(reader, err) < 0 ? -1 : 0;
	} while (reader->foreign && is_blank(line, len));
	if ((reader->foreign ? data_row_read_foreign(line, len, &reader->keep, ret, err)
			     : data_row_read(line, len, &reader->keep, ret, err)) < 0)
		return fail_line(reader, err);
	return check_order(reader, ret, err) < 0 ? -1 : 1;
}

bool data_reader_is_far(const struct data_reader *reader)
{
	return reader->store && !store_directory(reader->store);
}

int data_cursor_next(struct data_cursor *cursor, struct err **err)
{
	int found = cursor->reader ? data_reader_next(cursor->reader, &cursor->row, err) : 0;

	cursor->at = found > 0;
	return found < 0 ? -1 : 0;
}

int data_cursor_find(struct data_cursor *cursor, const char *url, bool *ret, struct err **err)
{
	int order = 1;

	while (cursor->at && (order = strcmp(cursor->row.url, url)) < 0)
		if (data_cursor_next(cursor, err) < 0)
			return -1;
	*ret = cursor->at && order == 0;
	return 0;
}

void data_cursor_release(struct data_cursor *cursor)
{
	data_reader_freep(&cursor->reader);
	cursor->at = false;
}
