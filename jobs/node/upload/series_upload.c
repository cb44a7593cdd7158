/* Blocks of a series on their way to a bucket: see series_upload.h. */
#include "jobs/node/upload/series_upload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

/* A file of blocks, on its way. */
struct series_source {
	int fd;
	const char *file;
	const struct agent_config *config;
	struct store *store;
	uint64_t base;
};

/* Reads the block at that place of the file. Returns its length, 0 if there is none. */
static size_t read_block(const struct series_source *source, uint64_t at, char *buffer,
			 struct series_block *ret)
{
	ssize_t len = fs_read_full(source->fd, buffer, SERIES_BLOCK_MAX, (int64_t)at);

	return len > 0 ? series_block_decode(buffer, (size_t)len, ret) : 0;
}

/* Appends the block with its place in the log of the workspace. */
static void add_block(const struct series_source *source, struct series_block *block,
		      struct sb *ret)
{
	series_block_reopen(block);
	block->from += source->base;
	block->to += source->base;
	series_block_encode(block, ret);
	series_block_release(block);
}

/* The starts of a job have files of their own, so the number of the start comes first. */
static char *key_of(const struct series_source *source, uint64_t at)
{
	AUTO(auto_free)
	char *name = mem_format("%s/%06lld-%012llu", source->file,
				(long long)source->config->restart, (unsigned long long)at);

	return agent_config_node_key(source->config, name);
}

static bool put(const struct series_source *source, uint64_t at, const struct sb *bytes)
{
	AUTO(auto_free) char *key = key_of(source, at);
	AUTO(err_freep) struct err *ignored = NULL; /* it is tried again */

	return store_put(source->store, key, bytes->text, bytes->len, &ignored) == 0;
}

/* Takes the single blocks away, which are in a joined object now. A reader that still finds one
 * passes over it, so nothing depends on this. */
static void remove_singles(struct series_upload *upload, const struct series_source *source)
{
	for (size_t i = 1; i < upload->singles; i++) {
		AUTO(auto_free) char *key = key_of(source, upload->single[i]);
		AUTO(err_freep) struct err *ignored = NULL;

		(void)!store_delete(source->store, key, &ignored);
	}
	upload->singles = 0;
}

/* Joins the next blocks, if so many are there that stay as they are. Returns 1 if they are joined
 * and uploaded, 0 if there are too few, -1 if they could not be uploaded. */
static int join(struct series_upload *upload, const struct series_source *source, char *buffer)
{
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_OBJECT_MAX);
	uint64_t at = upload->joined;
	struct series_block block, next;
	size_t size;

	for (int i = 0; i < SERIES_JOINED; i++) {
		size = read_block(source, at, buffer, &block);
		if (size == 0)
			return 0;
		add_block(source, &block, &bytes);
		at += size;
	}
	/* A block that another follows stays as it is. */
	if (read_block(source, at, buffer, &next) == 0)
		return 0;
	if (!put(source, upload->joined, &bytes))
		return -1;
	remove_singles(upload, source);
	upload->joined = at;
	if (upload->at < at) {
		upload->at = at;
		upload->to = 0;
	}
	return 1;
}

/* Uploads the next block, if it has news. Returns 1 if another may follow, 0 if none does, -1 if it
 * could not be uploaded. */
static int upload_block(struct series_upload *upload, const struct series_source *source,
			char *buffer)
{
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_BLOCK_MAX);
	struct series_block block = { 0 };
	size_t size = read_block(source, upload->at, buffer, &block);
	uint64_t to = block.to;
	char next;

	if (size == 0)
		return 0;
	if (to != upload->to) {
		add_block(source, &block, &bytes);
		if (!put(source, upload->at, &bytes))
			return -1;
		if (upload->to == 0 && upload->singles < SERIES_JOINED)
			upload->single[upload->singles++] = upload->at;
	}
	upload->to = to;
	if (pread(source->fd, &next, 1, (off_t)(upload->at + size)) != 1)
		return 0;
	upload->at += size;
	upload->to = 0;
	return 1;
}

bool series_upload(struct series_upload *upload, const struct agent_config *config,
		   struct store *store, uint64_t base)
{
	const char *file = upload->file ? upload->file : SERIES_FILE;
	AUTO(auto_free) char *path = fs_join(config->dir, file);
	AUTO(auto_free) char *buffer = mem_alloc(SERIES_BLOCK_MAX);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const struct series_source source = { fd, file, config, store, base };
	int more = fd >= 0;

	while (more > 0) {
		more = join(upload, &source, buffer);
		if (more == 0)
			more = upload_block(upload, &source, buffer);
	}
	return more == 0;
}
