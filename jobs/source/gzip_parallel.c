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

enum block_state { BLOCK_FREE, BLOCK_FULL, BLOCK_TAKEN, BLOCK_PRESSED };

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
static struct block *take_full(struct gzip_parallel *press)
{
	for (size_t i = press->written; i < press->filled; i++) {
		struct block *block = &press->ring[i % press->blocks];

		if (block->state != BLOCK_FULL)
			continue;
		block->state = BLOCK_TAKEN;
		return block;
	}
	return NULL;
}

/* Compresses a block. Called with the lock, which is released meanwhile. */
static void gzip_parallel_block(struct gzip_parallel *press, struct block *block,
				struct libdeflate_compressor *compressor)
{
	pthread_mutex_unlock(&press->lock);
	block->out_len = libdeflate_gzip_compress(compressor, block->in, block->in_len, block->out,
						  press->out_max);
	pthread_mutex_lock(&press->lock);
	block->state = BLOCK_PRESSED;
	pthread_cond_broadcast(&press->changed);
}

static void *work(void *arg)
{
	struct gzip_parallel *press = arg;
	struct libdeflate_compressor *compressor = new_compressor();

	pthread_mutex_lock(&press->lock);
	while (!press->over) {
		struct block *block = take_full(press);

		if (block)
			gzip_parallel_block(press, block, compressor);
		else
			pthread_cond_wait(&press->changed, &press->lock);
	}
	pthread_mutex_unlock(&press->lock);
	libdeflate_free_compressor(compressor);
	return NULL;
}

struct gzip_parallel *gzip_parallel_new(int fd)
{
	struct gzip_parallel *press = mem_zero(1, sizeof *press);
	size_t threads = 1;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		threads = (size_t)CPU_COUNT(&cpus);
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	press->fd = fd;
	press->blocks = threads + 2;
	press->compressor = new_compressor();
	press->out_max = libdeflate_gzip_compress_bound(press->compressor, BLOCK_BYTES);
	for (size_t i = 0; i < press->blocks; i++) {
		press->ring[i].in = mem_alloc(BLOCK_BYTES);
		press->ring[i].out = mem_alloc(press->out_max);
	}
	pthread_mutex_init(&press->lock, NULL);
	pthread_cond_init(&press->changed, NULL);
	/* The adding thread counts as one; without the others it does all of the work. */
	while (press->worker_count + 1 < threads &&
	       pthread_create(&press->workers[press->worker_count], NULL, work, press) == 0)
		press->worker_count++;
	return press;
}

void gzip_parallel_freep(struct gzip_parallel **ref)
{
	struct gzip_parallel *press = *ref;

	if (!press)
		return;
	pthread_mutex_lock(&press->lock);
	press->over = true;
	pthread_cond_broadcast(&press->changed);
	pthread_mutex_unlock(&press->lock);
	for (size_t i = 0; i < press->worker_count; i++)
		pthread_join(press->workers[i], NULL);
	for (size_t i = 0; i < press->blocks; i++) {
		free(press->ring[i].in);
		free(press->ring[i].out);
	}
	pthread_cond_destroy(&press->changed);
	pthread_mutex_destroy(&press->lock);
	libdeflate_free_compressor(press->compressor);
	free(press);
	*ref = NULL;
}

static int write_block(struct gzip_parallel *press, const struct block *block)
{
	const unsigned char *bytes = block->out;
	size_t len = block->out_len;

	while (len > 0) {
		ssize_t put = write(press->fd, bytes, len);

		if (put < 0 && errno != EINTR)
			return errno;
		bytes += put > 0 ? put : 0;
		len -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

/* Writes, compresses or waits until at most `left` full blocks are not written. */
static int settle(struct gzip_parallel *press, size_t left, struct err **err)
{
	pthread_mutex_lock(&press->lock);
	while (press->filled - press->written > left && !press->failed) {
		struct block *oldest = &press->ring[press->written % press->blocks], *full;

		if (oldest->state == BLOCK_PRESSED) {
			pthread_mutex_unlock(&press->lock);
			press->failed = write_block(press, oldest);
			pthread_mutex_lock(&press->lock);
			oldest->state = BLOCK_FREE;
			oldest->in_len = 0;
			press->written++;
		} else if ((full = take_full(press))) {
			gzip_parallel_block(press, full, press->compressor);
		} else {
			pthread_cond_wait(&press->changed, &press->lock);
		}
	}
	pthread_mutex_unlock(&press->lock);
	return press->failed ? fs_error(err, press->failed, "cannot write the source bundle") : 0;
}

/* Number of bytes that the block can still take. */
static size_t room_in(const struct gzip_parallel *press, const struct block *block)
{
	return BLOCK_BYTES - block->in_len - (press->filled == 0 ? SHIFT : 0);
}

/* Hands over the block being filled: it is full, or the last one. */
static void hand_over(struct gzip_parallel *press)
{
	pthread_mutex_lock(&press->lock);
	press->ring[press->filled++ % press->blocks].state = BLOCK_FULL;
	pthread_cond_broadcast(&press->changed);
	pthread_mutex_unlock(&press->lock);
}

int gzip_parallel_add(struct gzip_parallel *press, const void *bytes, size_t len, struct err **err)
{
	while (len > 0) {
		struct block *block = &press->ring[press->filled % press->blocks];
		size_t room = room_in(press, block), part = len < room ? len : room;

		memcpy(block->in + block->in_len, bytes, part);
		block->in_len += part;
		bytes = (const char *)bytes + part;
		len -= part;
		if (part < room)
			break;
		hand_over(press);
		if (settle(press, press->blocks - 1, err) < 0)
			return -1;
	}
	return press->failed ? fs_error(err, press->failed, "cannot write the source bundle") : 0;
}

int gzip_parallel_end(struct gzip_parallel *press, struct err **err)
{
	if (press->ring[press->filled % press->blocks].in_len > 0)
		hand_over(press);
	return settle(press, 0, err);
}
