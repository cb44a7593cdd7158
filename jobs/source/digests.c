/* Remembered digests: see digests.h. In the file, in the order of this machine's bytes:
 * a head, rows each with its path and filled up to 8 bytes, SHA-256 of all before. */
#include "jobs/source/digests.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/err.h"
#include "jobs/base/fs.h"

#define SETTLED_MS 2000
#define NAME_LEN   32 /* of such a file: whoever names it takes digits of a digest */
#define ALIGNED(n) (((n) + 7) & ~(size_t)7)

struct head {
	char name[16];
	uint64_t order; /* of bytes, and the form of a row */
	char mark[DIGESTS_MARK];
};

static struct head head_of(const char *mark)
{
	struct head head = { .name = "stoker digests",
			     .order = UINT64_C(0x0102030405060000) + sizeof(struct digest_row) };

	snprintf(head.mark, sizeof head.mark, "%s", mark);
	return head;
}

void digests_load(struct digests *ret, const char *path)
{
	AUTO(err_freep) struct err *ignored = NULL;
	const struct head mine = head_of("");
	struct head head;
	char sum[SHA256_HEX];
	size_t end;

	*ret = (struct digests){ .bytes = SB_INIT_MAX(DIGESTS_BYTES) };
	if (!path || fs_read(path, DIGESTS_BYTES, &ret->bytes, &ignored) < 0 ||
	    ret->bytes.len < sizeof head + sizeof sum)
		return;
	memcpy(&head, ret->bytes.text, sizeof head);
	if (memcmp(&head, &mine, offsetof(struct head, mark)) != 0)
		return;
	end = ret->bytes.len - sizeof sum;
	sha256_hex(ret->bytes.text, end, sum);
	if (memcmp(ret->bytes.text + end, sum, sizeof sum) != 0)
		return;
	snprintf(ret->mark, sizeof ret->mark, "%.*s", DIGESTS_MARK - 1, head.mark);
	ret->at = sizeof head;
	ret->end = end;
}

void digests_release(struct digests *digests)
{
	sb_release(&digests->bytes);
	*digests = (struct digests){ 0 };
}

static const char *path_of(const struct digest_row *row)
{
	return (const char *)(row + 1);
}

const struct digest_row *digests_next(struct digests *digests, const char *path)
{
	while (digests->end - digests->at >= sizeof(struct digest_row)) {
		const struct digest_row *row = (const void *)(digests->bytes.text + digests->at);
		size_t left = digests->end - digests->at - sizeof *row;
		int order;

		if (row->path_len >= left || path_of(row)[row->path_len] != '\0')
			break; /* none of ours ends like that */
		order = strcmp(path_of(row), path);
		if (order > 0)
			return NULL;
		digests->at += sizeof *row + ALIGNED((size_t)row->path_len + 1);
		if (order == 0)
			return row;
	}
	return NULL;
}

static void describe(struct digest_row *row, const struct stat *st)
{
	row->dev = st->st_dev;
	row->ino = st->st_ino;
	row->size = (uint64_t)st->st_size;
	row->mode = st->st_mode;
	row->mtime_s = st->st_mtim.tv_sec;
	row->mtime_ns = st->st_mtim.tv_nsec;
	row->ctime_s = st->st_ctim.tv_sec;
	row->ctime_ns = st->st_ctim.tv_nsec;
}

bool digest_holds(const struct digest_row *row, const struct stat *st)
{
	struct digest_row now = *row;

	describe(&now, st);
	return memcmp(&now, row, sizeof now) == 0;
}

void digests_begin(struct sb *ret, const char *mark)
{
	const struct head head = head_of(mark);

	sb_clear(ret);
	sb_add(ret, (const char *)&head, sizeof head);
}

static bool is_settled(const struct timespec *changed, struct utc begun)
{
	return changed->tv_sec * 1000 + changed->tv_nsec / 1000000 < begun.ms - SETTLED_MS;
}

void digests_add(struct sb *ret, const char *path, const struct stat *st, const char *sha256,
		 struct utc begun)
{
	static const char zeros[8];
	struct digest_row row;
	size_t len = strlen(path);

	if (!is_settled(&st->st_ctim, begun) || !is_settled(&st->st_mtim, begun))
		return;
	memset(&row, 0, sizeof row);
	describe(&row, st);
	row.path_len = (uint32_t)len;
	memcpy(row.sha256, sha256, sizeof row.sha256 - 1);
	sb_add(ret, (const char *)&row, sizeof row);
	sb_add(ret, path, len);
	sb_add(ret, zeros, ALIGNED(len + 1) - len);
}

void digests_end(struct sb *ret)
{
	char sum[SHA256_HEX];

	sha256_hex(ret->text, ret->len, sum);
	sb_add(ret, sum, sizeof sum);
}

static bool is_old(int folder, const char *name, struct utc now)
{
	struct stat st;

	return strlen(name) == NAME_LEN && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) &&
	       now.ms / 1000 - st.st_mtim.tv_sec > (int64_t)DIGESTS_DAYS * 24 * 3600;
}

static void forget_old(const char *folder)
{
	DIR *stream = opendir(folder);
	struct utc now = utc_now();
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		if (is_old(dirfd(stream), entry->d_name, now))
			(void)!unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
}

void digests_keep(const char *path, const struct sb *bytes)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *folder = fs_dirname(path);

	if (fs_mkdirs(folder, &ignored) < 0 ||
	    fs_write_atomic(path, bytes->text, bytes->len, 0600, &ignored) < 0)
		return;
	forget_old(folder);
}
