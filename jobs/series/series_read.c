/* Blocks from a workspace: see series_read.h. */
#include "jobs/series/series_read.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/store/order.h"

struct series_reading {
	const struct series_place *place;
	uint32_t metrics;
	uint64_t told; /* offset in the log */
	series_block_fn fn;
	void *arg;
};

/* Returns the length of the block, 0 if it is none of these; `*ret_answer` is that of the caller.
 */
static size_t take(struct series_reading *reading, const char *bytes, size_t len, int *ret_answer,
		   struct err **err)
{
	struct series_block block;
	size_t size = series_block_decode(bytes, len, &block);

	*ret_answer = 0;
	if (size == 0 || block.metrics != reading->metrics || block.to > reading->place->log_size)
		return 0;
	if (block.from < reading->told && !reading->place->is_stream)
		return size;
	reading->told = block.to;
	*ret_answer = reading->fn(reading->arg, &block, err);
	return size;
}

static int read_file(struct series_reading *reading, const char *path, struct err **err)
{
	AUTO(err_freep) struct err *none = NULL; /* the log has it all */
	AUTO(auto_close) int fd = fs_open_regular(path, &none);
	AUTO(auto_free) char *bytes = mem_alloc(SERIES_BLOCK_MAX);
	uint64_t at = 0;
	ssize_t len;

	while (fd >= 0 && (len = fs_read_full(fd, bytes, SERIES_BLOCK_MAX, (int64_t)at)) > 0) {
		int answer;
		size_t size = take(reading, bytes, (size_t)len, &answer, err);

		if (size == 0 || answer != 0)
			return answer;
		at += size;
	}
	return 0;
}

static int read_object(void *arg, const struct store_object *object, struct err **err)
{
	struct series_reading *reading = arg;
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_OBJECT_MAX);
	size_t at = 0, size;
	int answer;

	if (object->size > SERIES_OBJECT_MAX)
		return 0;
	/* An object that is gone is part of a larger one now. */
	answer =
		store_get(reading->place->store, object->key, SERIES_OBJECT_MAX, &bytes, NULL, err);
	if (answer <= 0)
		return answer;
	while ((size = take(reading, bytes.text + at, bytes.len - at, &answer, err)) > 0 &&
	       answer == 0)
		at += size;
	return answer;
}

int series_read(const struct series_place *place, series_block_fn fn, void *arg, struct err **err)
{
	struct series_reading reading = { place,
					  series_sum(place->specs, place->prefix, place->node), 0,
					  fn, arg };
	AUTO(auto_free)
	char *name = mem_format("%snode-%d/%s", place->prefix, place->node,
				place->file ? place->file : SERIES_FILE);
	const char *directory = place->is_stream ? NULL : store_directory(place->store);
	AUTO(auto_free)
	char *where = directory ? fs_join(directory, name) : mem_format("%s/", name);

	if (directory)
		return read_file(&reading, where, err);
	return store_list(place->store, where, read_object, &reading, err) < 0 ? -1 : 0;
}
