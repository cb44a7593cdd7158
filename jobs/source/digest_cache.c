/* Remembered digests: see digest_cache.h. File format, in this machine's byte order: a head, rows
 * each with its path and padded to 8 bytes, SHA-256 of all before. */
#include "jobs/source/digest_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/err.h"
#include "jobs/base/fs/fs.h"

#define FORM       UINT64_C(7) /* to change with the rows, or the rule of python_text.h */
#define NAME_LEN   32          /* length of such a file's name: digits of a digest */
#define ALIGNED(n) (((n) + 7) & ~(size_t)7)

struct digest_cache_head {
	char name[16];
	uint64_t order; /* byte order and form of a row */
	char mark[DIGEST_CACHE_MARK];
};

static struct digest_cache_head head_of(const char *mark)
{
	struct digest_cache_head head = { .name = "stoker digests",
					  .order = UINT64_C(0x0102030405000000) + (FORM << 16) +
						   sizeof(struct digest_row) };

	snprintf(head.mark, sizeof head.mark, "%s", mark);
	return head;
}

void digest_cache_load(struct digest_cache *ret, const char *path)
{
	AUTO(err_freep) struct err *ignored = NULL;
	const struct digest_cache_head mine = head_of("");
	struct digest_cache_head head;
	char sum[SHA256_HEX];
	size_t end;

	*ret = (struct digest_cache){ .bytes = SB_INIT_MAX(DIGEST_CACHE_BYTES) };
	if (!path || fs_read(path, DIGEST_CACHE_BYTES, &ret->bytes, &ignored) < 0 ||
	    ret->bytes.len < sizeof head + sizeof sum)
		return;
	memcpy(&head, ret->bytes.text, sizeof head);
	if (memcmp(&head, &mine, offsetof(struct digest_cache_head, mark)) != 0)
		return;
	end = ret->bytes.len - sizeof sum;
	hash_sha256_hex(ret->bytes.text, end, sum);
	if (memcmp(ret->bytes.text + end, sum, sizeof sum) != 0)
		return;
	snprintf(ret->mark, sizeof ret->mark, "%.*s", DIGEST_CACHE_MARK - 1, head.mark);
	ret->at = sizeof head;
	ret->end = end;
}

void digest_cache_release(struct digest_cache *digests)
{
	sb_release(&digests->bytes);
	*digests = (struct digest_cache){ 0 };
}

static const char *path_of(const struct digest_row *row)
{
	return (const char *)(row + 1);
}

/* Size of the data behind a row, padded. */
static size_t behind(const struct digest_row *row)
{
	return ALIGNED((size_t)row->path_len + 1 + (row->is_reduced ? SHA256_HEX : 0));
}

const char *digest_reduced(const struct digest_row *row)
{
	return row->is_reduced ? path_of(row) + row->path_len + 1 : "";
}

const struct digest_row *digest_cache_next(struct digest_cache *digests, const char *path)
{
	while (digests->end - digests->at >= sizeof(struct digest_row)) {
		const struct digest_row *row = (const void *)(digests->bytes.text + digests->at);
		size_t left = digests->end - digests->at - sizeof *row;
		int order;

		if (row->path_len >= left || behind(row) > left ||
		    path_of(row)[row->path_len] != '\0')
			break; /* no valid row ends like that */
		order = strcmp(path_of(row), path);
		if (order > 0)
			return NULL;
		digests->at += sizeof *row + behind(row);
		if (order == 0)
			return row;
	}
	return NULL;
}

bool digest_holds(const struct digest_row *row, const struct stat *st)
{
	const struct fs_stamp now = fs_stamp_of(st);

	return memcmp(&now, &row->stamp, sizeof now) == 0 && row->mode == st->st_mode;
}

void digest_cache_begin(struct sb *ret, const char *mark)
{
	const struct digest_cache_head head = head_of(mark);

	sb_clear(ret);
	sb_add(ret, (const char *)&head, sizeof head);
}

void digest_cache_add(struct sb *ret, const char *path, const struct stat *st, const char *sha256,
		      const char *reduced, struct utc begun)
{
	static const char zeros[8];
	struct digest_row row;
	size_t len = strlen(path), more = *reduced ? SHA256_HEX : 0;

	if (!fs_is_settled(st, begun))
		return;
	memset(&row, 0, sizeof row);
	row.stamp = fs_stamp_of(st);
	row.mode = st->st_mode;
	row.path_len = (uint32_t)len;
	memcpy(row.sha256, sha256, sizeof row.sha256 - 1);
	row.is_reduced = more > 0;
	sb_add(ret, (const char *)&row, sizeof row);
	sb_add(ret, path, len + 1);
	sb_add(ret, reduced, more);
	sb_add(ret, zeros, behind(&row) - (len + 1 + more));
}

void digest_cache_end(struct sb *ret)
{
	char sum[SHA256_HEX];

	hash_sha256_hex(ret->text, ret->len, sum);
	sb_add(ret, sum, sizeof sum);
}

static bool is_old(int folder, const char *name, struct utc now)
{
	struct stat st;

	return strlen(name) == NAME_LEN && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) &&
	       now.ms / 1000 - st.st_mtim.tv_sec > (int64_t)DIGEST_CACHE_DAYS * 24 * 3600;
}

static void forget_old(const char *folder)
{
	DIR *stream = opendir(folder);
	struct utc now = clock_utc_now();
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		if (is_old(dirfd(stream), entry->d_name, now))
			(void)!unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
}

void digest_cache_keep(const char *path, const struct sb *bytes)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *folder = fs_dirname(path);

	if (fs_mkdirs(folder, &ignored) < 0 ||
	    fs_write_atomic(path, bytes->text, bytes->len, 0600, &ignored) < 0)
		return;
	forget_old(folder);
}
