/* A file of blocks: see series_file.h. */
#include "jobs/series/series_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

int series_file_open(const char *path, struct series_file *ret, struct err **err)
{
	*ret = (struct series_file){ .fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
						0600) };
	return ret->fd < 0 ? fs_error(err, errno, "cannot open '%s'", path) : 0;
}

bool series_file_restore(struct series_file *file, uint32_t metrics, uint64_t size)
{
	AUTO(auto_free) char *bytes = mem_alloc(SERIES_BLOCK_MAX);
	struct series_block found, last = { 0 };
	uint64_t at = 0;
	ssize_t len;
	size_t taken;

	while ((len = fs_read_full(file->fd, bytes, SERIES_BLOCK_MAX, (int64_t)at)) > 0 &&
	       (taken = series_block_decode(bytes, (size_t)len, &found)) > 0 &&
	       found.metrics == metrics && found.from >= last.to && found.to <= size) {
		series_block_release(&last);
		series_block_reopen(&found);
		last = found;
		file->block_at = at;
		at += taken;
	}
	if (at == 0)
		series_block_begin(&file->block, 0, -1);
	else
		file->block = last;
	file->block.metrics = metrics;
	if (ftruncate(file->fd, (off_t)at) < 0)
		auto_close(&file->fd);
	return at > 0;
}

void series_file_write(struct series_file *file)
{
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_BLOCK_MAX);
	size_t done = 0;
	int failures = 0;

	series_block_encode(&file->block, &bytes);
	while (file->fd >= 0 && done < bytes.len) {
		ssize_t len = pwrite(file->fd, bytes.text + done, bytes.len - done,
				     (off_t)(file->block_at + done));

		if (len >= 0)
			done += (size_t)len;
		else if (!err_try_again(&failures))
			auto_close(&file->fd);
	}
}

void series_file_next(struct series_file *file, uint64_t from, int64_t step)
{
	file->block_at += SERIES_HEADER_BYTES + file->block.payload.len;
	series_block_begin(&file->block, from, step);
}

void series_file_release(struct series_file *file)
{
	series_block_release(&file->block);
	auto_close(&file->fd);
	file->fd = -1;
}
