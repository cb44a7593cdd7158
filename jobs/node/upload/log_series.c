/* Keeps the readings of this node's log: see log_series.h. */
#include "jobs/node/upload/log_series.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

#define CHUNK       ((size_t)64 << 10)
#define FOUND_BYTES ((uint64_t)16 << 20)

void log_series_release(struct log_series *series)
{
	series_writer_freep(&series->writer);
}

static bool has_series(const struct agent_config *config)
{
	return strcmp(config->phase, "train") == 0 && json_array_size(config->order->metrics) > 0;
}

/* Opens the series of a log of this size; false if there is none. */
static bool is_open(struct log_series *series, const struct agent_config *config, uint64_t size)
{
	const struct series_log log = { config->order->metrics, config->prefix, config->node,
					config->restart, size };
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *ignored = NULL; /* readers find all in the log */

	if (series->writer || series->off)
		return series->writer != NULL;
	if (has_series(config)) {
		path = fs_join(config->dir, SERIES_FILE);
		(void)!series_writer_open(path, &log, &series->writer, &ignored);
	}
	series->off = !series->writer;
	return !series->off;
}

/* Reads the file of the log up to this size. */
static void read_up_to(struct log_series *series, const struct agent_config *config, uint64_t size,
		       struct utc at, bool late)
{
	AUTO(auto_free) char *path = fs_join(config->dir, LOG_FILE);
	AUTO(auto_free) char *bytes = mem_alloc(CHUNK);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t from;

	while (fd >= 0 && (from = series_writer_offset(series->writer)) < size) {
		size_t most = size - from < CHUNK ? (size_t)(size - from) : CHUNK;
		ssize_t len = fs_read_full(fd, bytes, most, (int64_t)from);

		if (len <= 0)
			return;
		series_writer_feed(series->writer, bytes, (size_t)len, at, late);
	}
}

void log_series_grow(struct log_series *series, const struct agent_config *config, uint64_t size,
		     const struct log_growth *growth)
{
	bool was_open = series->writer;
	size_t len = growth->len;

	if (size < len || !is_open(series, config, size))
		return;
	/* The file may have lines after a start, or a pause, that nobody has read. The log and the
	 * claim wait for this, so of many some are left out. */
	if (series_writer_offset(series->writer) + FOUND_BYTES < size - len)
		series_writer_skip(series->writer, size - len);
	else if (series_writer_offset(series->writer) < size - len)
		read_up_to(series, config, size - len, growth->at,
			   growth->late || growth->bytes || !was_open);
	if (growth->bytes && series_writer_offset(series->writer) == size - len)
		series_writer_feed(series->writer, growth->bytes, len, growth->at, false);
	else
		read_up_to(series, config, size, growth->at, growth->late || growth->bytes);
}

void log_series_tick(struct log_series *series)
{
	if (series->writer)
		series_writer_tick(series->writer);
}

void log_series_end(struct log_series *series, const struct agent_config *config)
{
	AUTO(auto_free) char *path = fs_join(config->dir, LOG_FILE);
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > 0)
		log_series_grow(series, config, (uint64_t)st.st_size,
				&(struct log_growth){ .at = clock_utc_now(), .late = true });
	series_writer_freep(&series->writer);
	series->off = true;
}
