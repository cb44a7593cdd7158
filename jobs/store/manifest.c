/* The manifest of a sync as a stream of rows: see manifest.h. File format, in the byte order of
 * this machine: a head, then records, each followed by its tag and key, both NUL-terminated, and
 * padded to 8 bytes. */
#include "jobs/store/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/store/store_backend.h"

#define BUFFER     ((size_t)128 << 10)
#define NAME       STORE_RESERVED "manifest-"
#define NAME_BYTES (sizeof NAME + 16 + sizeof NEW)
#define NEW        "-new"
#define MIXED      "-mix"
#define KEY_BYTES  1024
#define ALIGNED(n) (((n) + 7) & ~(size_t)7)

struct manifest_head {
	char name[16];
	uint64_t form; /* identifies byte order and record size */
};

/* A row on disk. */
struct manifest_record {
	uint64_t sum; /* checksum of all bytes after this member */
	uint32_t len; /* length of the record with tag, key and padding */
	uint16_t key_len, tag_len;
	struct fs_stamp file;
};
#define RECORD_MAX ALIGNED(sizeof(struct manifest_record) + KEY_BYTES + 1 + STORE_TAG)

/* Reads one file from the front. */
struct manifest_reader {
	int fd; /* -1 if the file is absent */
	char *bytes;
	size_t at, have;
	uint64_t offset; /* file offset of the next record */
	struct manifest_row row;
	size_t row_len; /* length of the record in `row`; 0: no record has been read yet */
	bool ended;
	char last[KEY_BYTES + 1];
};

struct manifest {
	int dir;
	char name[NAME_BYTES];
	struct manifest_reader old;
	int lock; /* descriptor of the new file; -1: nothing is written */
	/* As long as the added rows equal the old ones, nothing need be written; `same_to` is
	 * the file offset up to which the old rows were added again. */
	bool same;
	uint64_t same_to;
	struct sb out;
	bool failed;
};

static struct manifest_head head_of_ours(void)
{
	return (struct manifest_head){ .name = "stoker manifest",
				       .form = UINT64_C(0x0102030405060000) +
					       sizeof(struct manifest_record) };
}

/* FNV-1a by words: detects a torn end and decay, not malice. */
static uint64_t sum_of(const char *bytes, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	return sum;
}

bool manifest_holds(const struct manifest_row *row, const struct stat *st, uint64_t size,
		    const char *tag)
{
	const struct fs_stamp now = fs_stamp_of(st);

	return memcmp(&now, &row->file, sizeof now) == 0 && row->file.size == size &&
	       tag[0] != '\0' && strcmp(tag, row->tag) == 0;
}

/* --- reading --- */

/* Makes `len` bytes available at `at`, or as many as there are. */
static size_t reader_fill(struct manifest_reader *r, size_t len)
{
	while (r->have - r->at < len) {
		ssize_t got;

		if (r->at > 0) {
			memmove(r->bytes, r->bytes + r->at, r->have - r->at);
			r->have -= r->at;
			r->at = 0;
		}
		got = read(r->fd, r->bytes + r->have, BUFFER - r->have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		r->have += (size_t)got;
	}
	return r->have - r->at;
}

static void reader_open(struct manifest_reader *r, int dir, const char *name)
{
	const struct manifest_head mine = head_of_ours();
	struct stat st;

	*r = (struct manifest_reader){ .fd = -1 };
	r->fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (r->fd < 0)
		return;
	r->bytes = mem_alloc(BUFFER);
	if (fstat(r->fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    reader_fill(r, sizeof mine) < sizeof mine ||
	    memcmp(r->bytes, &mine, sizeof mine) != 0) {
		auto_close(&r->fd);
		r->fd = -1;
		return;
	}
	r->at = r->offset = sizeof mine;
}

static void reader_close(struct manifest_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->bytes);
	*r = (struct manifest_reader){ .fd = -1, .ended = true };
}

/* Reads the next row into `row`. Returns false at the end, or if the next record is not valid. */
static bool reader_row(struct manifest_reader *r)
{
	struct manifest_record record;
	const char *text;

	if (r->row_len > 0)
		return true;
	if (r->ended || r->fd < 0 || reader_fill(r, sizeof record) < sizeof record) {
		r->ended = true;
		return false;
	}
	memcpy(&record, r->bytes + r->at, sizeof record);
	r->ended = true;
	if (record.len > RECORD_MAX || record.key_len > KEY_BYTES || record.tag_len >= STORE_TAG ||
	    record.len != ALIGNED(sizeof record + record.key_len + record.tag_len + 2u) ||
	    reader_fill(r, record.len) < record.len ||
	    sum_of(r->bytes + r->at + 8, record.len - 8) != record.sum)
		return false;
	text = r->bytes + r->at + sizeof record;
	if (memchr(text, '\0', record.tag_len + 1u) != text + record.tag_len)
		return false;
	memcpy(r->row.tag, text, record.tag_len + 1u);
	text += record.tag_len + 1;
	if (memchr(text, '\0', record.key_len + 1u) != text + record.key_len ||
	    strcmp(text, r->last) <= 0)
		return false;
	memcpy(r->last, text, record.key_len + 1u);
	r->row.key = r->last;
	r->row.file = record.file;
	r->row_len = record.len;
	r->ended = false;
	return true;
}

static void reader_skip(struct manifest_reader *r)
{
	r->at += r->row_len;
	r->offset += r->row_len;
	r->row_len = 0;
}

/* --- writing --- */

void manifest_flush(struct manifest *m)
{
	if (m->lock >= 0 && !m->failed && fs_write_full(m->lock, m->out.text, m->out.len))
		m->failed = true;
	sb_clear(&m->out);
}

static void out_row(struct sb *out, const struct manifest_row *row)
{
	static const char zeros[8];
	size_t key_len = strlen(row->key), tag_len = strlen(row->tag);
	size_t bare = sizeof(struct manifest_record) + key_len + tag_len + 2, before = out->len;
	struct manifest_record record = { .len = (uint32_t)ALIGNED(bare),
					  .key_len = (uint16_t)key_len,
					  .tag_len = (uint16_t)tag_len,
					  .file = row->file };

	sb_add(out, (const char *)&record, sizeof record);
	sb_add(out, row->tag, tag_len + 1);
	sb_add(out, row->key, key_len + 1);
	sb_add(out, zeros, ALIGNED(bare) - bare);
	record.sum = sum_of(out->text + before + 8, record.len - 8);
	memcpy(out->text + before, &record.sum, sizeof record.sum);
}

static void out_head(struct sb *out)
{
	const struct manifest_head head = head_of_ours();

	sb_add(out, (const char *)&head, sizeof head);
}

/* From here on the new manifest differs: it begins with the old rows that were added again. */
static void diverge(struct manifest *m)
{
	uint64_t left = m->same_to;
	off_t at = 0;

	m->same = false;
	if (left == 0)
		out_head(&m->out);
	while (left > 0 && !m->failed) {
		size_t want = left < BUFFER ? (size_t)left : BUFFER;
		char *chunk = mem_alloc(want);
		ssize_t got = pread(m->old.fd, chunk, want, at);

		if (got <= 0) {
			m->failed = true;
		} else {
			sb_add(&m->out, chunk, (size_t)got);
			manifest_flush(m);
			at += got;
			left -= (uint64_t)got;
		}
		free(chunk);
	}
}

static bool rows_equal(const struct manifest_row *a, const struct manifest_row *b)
{
	return strcmp(a->key, b->key) == 0 && strcmp(a->tag, b->tag) == 0 &&
	       memcmp(&a->file, &b->file, sizeof a->file) == 0;
}

void manifest_add(struct manifest *m, const struct manifest_row *row)
{
	if (m->lock < 0 || m->failed || strlen(row->key) > KEY_BYTES || row->tag[0] == '\0')
		return;
	/* The row that manifest_find() returned last is still in `old`. */
	if (m->same && m->old.row_len > 0 && m->same_to == m->old.offset &&
	    rows_equal(row, &m->old.row)) {
		m->same_to += m->old.row_len;
		return;
	}
	if (m->same)
		diverge(m);
	out_row(&m->out, row);
	if (m->out.len >= BUFFER)
		manifest_flush(m);
}

/* --- reading and writing --- */

static bool is_below(const char *key, const char *only)
{
	return !only || text_starts(key, only);
}

const struct manifest_row *manifest_find(struct manifest *m, const char *key, const char *only)
{
	while (reader_row(&m->old)) {
		int order = strcmp(m->old.row.key, key);

		if (order == 0)
			return &m->old.row;
		if (order > 0)
			return NULL;
		if (!is_below(m->old.row.key, only))
			manifest_add(m, &m->old.row);
		reader_skip(&m->old);
	}
	return NULL;
}

/* Merges the file of a killed sync with the old manifest: its rows, then the old rows behind the
 * last of them, replace the old manifest. `m->lock` is the killed sync's file, and is emptied. */
static void merge_killed(struct manifest *m, const char *new_name)
{
	AUTO(auto_close) int to = -1;
	struct manifest_reader newer, older;
	char mixed[NAME_BYTES + sizeof MIXED], last[KEY_BYTES + 1] = "";
	struct sb out = SB_INIT;
	bool good;

	snprintf(mixed, sizeof mixed, "%s" MIXED, m->name);
	reader_open(&newer, m->dir, new_name);
	reader_open(&older, m->dir, m->name);
	to = openat(m->dir, mixed, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	good = to >= 0;
	out_head(&out);
	for (struct manifest_reader *r = &newer; good && r; r = r == &newer ? &older : NULL)
		for (; good && reader_row(r); reader_skip(r)) {
			if (r == &older && strcmp(r->row.key, last) <= 0)
				continue;
			out_row(&out, &r->row);
			if (r == &newer)
				memcpy(last, r->last, sizeof last);
			if (out.len < BUFFER)
				continue;
			good = !fs_write_full(to, out.text, out.len);
			sb_clear(&out);
		}
	good = good && !fs_write_full(to, out.text, out.len) &&
	       renameat(m->dir, mixed, m->dir, m->name) == 0;
	if (!good && to >= 0)
		(void)!unlinkat(m->dir, mixed, 0);
	sb_release(&out);
	reader_close(&newer);
	reader_close(&older);
	(void)!ftruncate(m->lock, 0);
}

/* Opens and locks the file of the new manifest. Returns -1 if another sync holds it or it cannot
 * be opened. */
static int lock_new(int dir, const char *name)
{
	for (int tries = 0; tries < 10; tries++) {
		AUTO(auto_close)
		int fd = openat(dir, name, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
				0600);
		struct stat mine, named;

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			return -1;
		/* The previous holder may have renamed it to the final name meanwhile. */
		if (fstat(fd, &mine) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
			return S_ISREG(mine.st_mode) ? TAKE_FD(fd) : -1;
	}
	return -1;
}

struct manifest *manifest_open(int dir, const char *url, bool writes)
{
	struct manifest *m = mem_zero(1, sizeof *m);
	char sum[SHA256_HEX], new_name[NAME_BYTES + sizeof NEW];
	struct stat st;

	hash_sha256_hex(url, strlen(url), sum);
	m->dir = dir;
	m->lock = -1;
	m->out = SB_INIT;
	m->same = true;
	snprintf(m->name, sizeof m->name, NAME "%.16s", sum);
	if (writes) {
		snprintf(new_name, sizeof new_name, "%s" NEW, m->name);
		m->lock = lock_new(dir, new_name);
		if (m->lock >= 0 && fstat(m->lock, &st) == 0 && st.st_size > 0)
			merge_killed(m, new_name);
	}
	reader_open(&m->old, dir, m->name);
	m->same_to = m->old.offset;
	return m;
}

void manifest_close(struct manifest *m, const char *only)
{
	char new_name[NAME_BYTES + sizeof NEW];

	for (; reader_row(&m->old); reader_skip(&m->old))
		if (!is_below(m->old.row.key, only))
			manifest_add(m, &m->old.row);
	if (m->lock < 0)
		return;
	/* Old rows at the end that were not added again must go too. */
	if (m->same && m->old.fd >= 0 && m->same_to != m->old.offset)
		diverge(m);
	manifest_flush(m);
	snprintf(new_name, sizeof new_name, "%s" NEW, m->name);
	/* If a write failed, the whole rows written so far stay for the next sync. */
	if (m->same)
		(void)!unlinkat(m->dir, new_name, 0);
	else if (!m->failed && fsync(m->lock) == 0)
		(void)!renameat(m->dir, new_name, m->dir, m->name);
}

void manifest_freep(struct manifest **manifest)
{
	struct manifest *m = *manifest;

	if (!m)
		return;
	manifest_flush(m);
	auto_close(&m->lock);
	reader_close(&m->old);
	sb_release(&m->out);
	free(m);
	*manifest = NULL;
}
