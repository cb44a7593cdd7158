/* Blocks of a series on their way to a bucket: see series_upload.h. */
#include "jobs/node/upload/series_upload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/series/series_block.h"

/* Uploads a block with its place in the log of the workspace. The starts of a job have files of
 * their own, so the number of the start comes first. */
static bool put(const struct series_upload *upload, const struct agent_config *config,
		struct store *store, struct series_block *block, uint64_t base)
{
	AUTO(auto_free)
	char *name = mem_format(SERIES_FILE "/%06lld-%012llu", (long long)config->restart,
				(unsigned long long)upload->at);
	AUTO(auto_free) char *key = agent_config_node_key(config, name);
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_BLOCK_MAX);
	AUTO(err_freep) struct err *ignored = NULL; /* it is tried again */

	series_block_reopen(block);
	block->from += base;
	block->to += base;
	series_block_encode(block, &bytes);
	series_block_release(block);
	return store_put(store, key, bytes.text, bytes.len, &ignored) == 0;
}

bool series_upload(struct series_upload *upload, const struct agent_config *config,
		   struct store *store, uint64_t base)
{
	AUTO(auto_free) char *path = fs_join(config->dir, SERIES_FILE);
	AUTO(auto_free) char *bytes = mem_alloc(SERIES_BLOCK_MAX);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	while (fd >= 0) {
		ssize_t len = fs_read_full(fd, bytes, SERIES_BLOCK_MAX, (int64_t)upload->at);
		struct series_block block;
		size_t size = len > 0 ? series_block_decode(bytes, (size_t)len, &block) : 0;
		uint64_t to;
		char next;

		if (size == 0)
			return true;
		to = block.to;
		if (to != upload->to && !put(upload, config, store, &block, base))
			return false;
		upload->to = to;
		/* A block that another follows stays as it is. */
		if (pread(fd, &next, 1, (off_t)(upload->at + size)) != 1)
			return true;
		upload->at += size;
		upload->to = 0;
	}
	return true;
}
