/* Compression on all cores: see gzip_parallel.h. The input is collected until it is as long as a
 * batch of blocks; these are compressed together and then written in order. */
#include "jobs/source/gzip_parallel.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/parallel_for.h"

/* Larger blocks compress hardly better: 1 % from here to one piece. */
#define BLOCK_BYTES ((size_t)512 << 10)
#define BATCH       16 /* blocks */
/* The first block is half a record of a tar file shorter. So no block ends at the end of a record,
 * and a file that was cut between two members is not a valid tar file either. */
#define SHIFT ((size_t)256)
#define LEVEL 5 /* output as small as that of gzip -6 */

struct gzip_parallel {
	int fd;
	unsigned char *in;
	size_t in_len;
	size_t shift;       /* SHIFT in the first batch, then 0 */
	unsigned char *out; /* BATCH blocks of out_max bytes */
	size_t out_len[BATCH], out_max;
	int failed; /* errno of writing */
};

struct gzip_parallel *gzip_parallel_new(int fd)
{
	struct gzip_parallel *gzip = mem_zero(1, sizeof *gzip);

	gzip->fd = fd;
	gzip->shift = SHIFT;
	gzip->in = mem_alloc(BATCH * BLOCK_BYTES);
	gzip->out_max = libdeflate_gzip_compress_bound(NULL, BLOCK_BYTES);
	gzip->out = mem_alloc(BATCH * gzip->out_max);
	return gzip;
}

void gzip_parallel_freep(struct gzip_parallel **gzip)
{
	if (!*gzip)
		return;
	free((*gzip)->in);
	free((*gzip)->out);
	free(*gzip);
	*gzip = NULL;
}

/* Returns the offset of a block of the batch; the end of the input for the one behind the last. */
static size_t block_at(const struct gzip_parallel *gzip, size_t block)
{
	size_t at = block > 0 ? block * BLOCK_BYTES - gzip->shift : 0;

	return at < gzip->in_len ? at : gzip->in_len;
}

static void compress_blocks(struct parallel_for *loop, void *arg)
{
	struct gzip_parallel *gzip = arg;
	struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
	size_t i, end;

	if (!compressor)
		abort(); /* as mem_alloc() does */
	while (parallel_for_take(loop, &i, &end))
		for (; i < end; i++) {
			size_t from = block_at(gzip, i), to = block_at(gzip, i + 1);

			gzip->out_len[i] = libdeflate_gzip_compress(
				compressor, gzip->in + from, to - from,
				gzip->out + i * gzip->out_max, gzip->out_max);
		}
	libdeflate_free_compressor(compressor);
}

/* Compresses and writes what was collected. */
static int write_batch(struct gzip_parallel *gzip, struct err **err)
{
	size_t blocks = (gzip->in_len + gzip->shift + BLOCK_BYTES - 1) / BLOCK_BYTES;

	parallel_for(blocks, 1, compress_blocks, gzip);
	for (size_t i = 0; i < blocks && !gzip->failed; i++)
		gzip->failed =
			fs_write_full(gzip->fd, gzip->out + i * gzip->out_max, gzip->out_len[i]);
	gzip->in_len = gzip->shift = 0;
	return gzip->failed ? fs_error(err, gzip->failed, "cannot write the source bundle") : 0;
}

int gzip_parallel_add(struct gzip_parallel *gzip, const void *bytes, size_t len, struct err **err)
{
	for (const char *at = bytes; len > 0;) {
		size_t room = BATCH * BLOCK_BYTES - gzip->shift - gzip->in_len;
		size_t taken = len < room ? len : room;

		memcpy(gzip->in + gzip->in_len, at, taken);
		gzip->in_len += taken;
		at += taken;
		len -= taken;
		if (taken == room && write_batch(gzip, err) < 0)
			return -1;
	}
	return 0;
}

int gzip_parallel_end(struct gzip_parallel *gzip, struct err **err)
{
	return gzip->in_len > 0 || gzip->failed ? write_batch(gzip, err) : 0;
}
