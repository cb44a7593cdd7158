/*
 * Compression on all cores: see gzip_parallel.h. Blocks form a ring: the adding thread fills one
 * after the other, workers compress full ones, and the adding thread writes compressed ones, in
 * order. If the ring is full of work, the adding thread compresses a block itself.
 */
#include "jobs/source/gzip_parallel.h"

#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

/* Larger blocks compress hardly better: 1 % from here to one piece. */
#define BLOCK_BYTES ((size_t)512 << 10)
/* The first block is half a record of a tar file shorter. So no block ends at the end of a record,
 * and a file that was cut between two members is not a valid tar file either. */
#define SHIFT       ((size_t)256)
#define LEVEL       5 /* output as small as that of gzip -6 */
#define THREADS_MAX 8
#define RING_MAX    (THREADS_MAX + 2)

enum block_state { BLOCK_FREE, BLOCK_FULL, BLOCK_TAKEN, BLOCK_COMPRESSED };

struct block {
	enum block_state state;
	unsigned char *in, *out;
	size_t in_len, out_len;
};

struct gzip_parallel {
	int fd;
	struct block ring[RING_MAX];
	size_t blocks, out_max;
	size_t filled, written; /* blocks so far; the one being filled is ring[filled % blocks] */
	struct libdeflate_compressor *compressor; /* used by the adding thread */
	int failed;                               /* errno of writing */
	pthread_mutex_t lock;                     /* guards states, `filled`, `written`, `over` */
	pthread_cond_t changed;
	bool over;
	pthread_t workers[THREADS_MAX];
	size_t worker_count;
};

static struct libdeflate_compressor *new_compressor(void)
{
	struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);

	if (!compressor)
		abort(); /* as mem_alloc() does */
	return compressor;
}

/* Takes the oldest block that waits for compression; NULL if none waits. */
static struct block *next_full(struct gzip_parallel *gzip)
{
	for (size_t i = gzip->written; i < gzip->filled; i++) {
		struct block *block = &gzip->ring[i % gzip->blocks];

		if (block->state != BLOCK_FULL)
			continue;
		block->state = BLOCK_TAKEN;
		return block;
	}
	return NULL;
}

/* Compresses a block. Called with the lock, which is released meanwhile. */
static void compress_block(struct gzip_parallel *gzip, struct block *block,
			   struct libdeflate_compressor *compressor)
{
	pthread_mutex_unlock(&gzip->lock);
	block->out_len = libdeflate_gzip_compress(compressor, block->in, block->in_len, block->out,
						  gzip->out_max);
	pthread_mutex_lock(&gzip->lock);
	block->state = BLOCK_COMPRESSED;
	pthread_cond_broadcast(&gzip->changed);
}

static void *compress_blocks(void *arg)
{
	struct gzip_parallel *gzip = arg;
	struct libdeflate_compressor *compressor = new_compressor();

	pthread_mutex_lock(&gzip->lock);
	while (!gzip->over) {
		struct block *block = next_full(gzip);

		if (block)
			compress_block(gzip, block, compressor);
		else
			pthread_cond_wait(&gzip->changed, &gzip->lock);
	}
	pthread_mutex_unlock(&gzip->lock);
	libdeflate_free_compressor(compressor);
	return NULL;
}

struct gzip_parallel *gzip_parallel_new(int fd)
{
	struct gzip_parallel *gzip = mem_zero(1, sizeof *gzip);
	size_t threads = 1;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		threads = (size_t)CPU_COUNT(&cpus);
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	gzip->fd = fd;
	gzip->blocks = threads + 2;
	gzip->compressor = new_compressor();
	gzip->out_max = libdeflate_gzip_compress_bound(gzip->compressor, BLOCK_BYTES);
	for (size_t i = 0; i < gzip->blocks; i++) {
		gzip->ring[i].in = mem_alloc(BLOCK_BYTES);
		gzip->ring[i].out = mem_alloc(gzip->out_max);
	}
	pthread_mutex_init(&gzip->lock, NULL);
	pthread_cond_init(&gzip->changed, NULL);
	/* The adding thread counts as one; without the others it does all of the work. */
	while (gzip->worker_count + 1 < threads &&
	       pthread_create(&gzip->workers[gzip->worker_count], NULL, compress_blocks, gzip) == 0)
		gzip->worker_count++;
	return gzip;
}

void gzip_parallel_freep(struct gzip_parallel **ref)
{
	struct gzip_parallel *gzip = *ref;

	if (!gzip)
		return;
	pthread_mutex_lock(&gzip->lock);
	gzip->over = true;
	pthread_cond_broadcast(&gzip->changed);
	pthread_mutex_unlock(&gzip->lock);
	for (size_t i = 0; i < gzip->worker_count; i++)
		pthread_join(gzip->workers[i], NULL);
	for (size_t i = 0; i < gzip->blocks; i++) {
		free(gzip->ring[i].in);
		free(gzip->ring[i].out);
	}
	pthread_cond_destroy(&gzip->changed);
	pthread_mutex_destroy(&gzip->lock);
	libdeflate_free_compressor(gzip->compressor);
	free(gzip);
	*ref = NULL;
}

static int write_block(struct gzip_parallel *gzip, const struct block *block)
{
	const unsigned char *bytes = block->out;
	size_t len = block->out_len;

	while (len > 0) {
		ssize_t put = write(gzip->fd, bytes, len);

		if (put < 0 && errno != EINTR)
			return errno;
		bytes += put > 0 ? put : 0;
		len -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

/* Writes, compresses or waits until at most `left` full blocks are not written. */
static int write_until(struct gzip_parallel *gzip, size_t left, struct err **err)
{
	pthread_mutex_lock(&gzip->lock);
	while (gzip->filled - gzip->written > left && !gzip->failed) {
		struct block *oldest = &gzip->ring[gzip->written % gzip->blocks], *full;

		if (oldest->state == BLOCK_COMPRESSED) {
			pthread_mutex_unlock(&gzip->lock);
			gzip->failed = write_block(gzip, oldest);
			pthread_mutex_lock(&gzip->lock);
			oldest->state = BLOCK_FREE;
			oldest->in_len = 0;
			gzip->written++;
		} else if ((full = next_full(gzip))) {
			compress_block(gzip, full, gzip->compressor);
		} else {
			pthread_cond_wait(&gzip->changed, &gzip->lock);
		}
	}
	pthread_mutex_unlock(&gzip->lock);
	return gzip->failed ? fs_error(err, gzip->failed, "cannot write the source bundle") : 0;
}

/* Number of bytes that the block can still take. */
static size_t room_in(const struct gzip_parallel *gzip, const struct block *block)
{
	return BLOCK_BYTES - block->in_len - (gzip->filled == 0 ? SHIFT : 0);
}

/* Hands over the block being filled: it is full, or the last one. */
static void hand_over_block(struct gzip_parallel *gzip)
{
	pthread_mutex_lock(&gzip->lock);
	gzip->ring[gzip->filled++ % gzip->blocks].state = BLOCK_FULL;
	pthread_cond_broadcast(&gzip->changed);
	pthread_mutex_unlock(&gzip->lock);
}

int gzip_parallel_add(struct gzip_parallel *gzip, const void *bytes, size_t len, struct err **err)
{
	while (len > 0) {
		struct block *block = &gzip->ring[gzip->filled % gzip->blocks];
		size_t room = room_in(gzip, block), chunk_len = len < room ? len : room;

		memcpy(block->in + block->in_len, bytes, chunk_len);
		block->in_len += chunk_len;
		bytes = (const char *)bytes + chunk_len;
		len -= chunk_len;
		if (chunk_len < room)
			break;
		hand_over_block(gzip);
		if (write_until(gzip, gzip->blocks - 1, err) < 0)
			return -1;
	}
	return gzip->failed ? fs_error(err, gzip->failed, "cannot write the source bundle") : 0;
}

int gzip_parallel_end(struct gzip_parallel *gzip, struct err **err)
{
	if (gzip->ring[gzip->filled % gzip->blocks].in_len > 0)
		hand_over_block(gzip);
	return write_until(gzip, 0, err);
}
