/* Times of a log, read from its file: see log_times.h. */
#include "jobs/engine/log_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"

#define FILE_MAX ((size_t)64 << 20) /* of a month and more */
#define AGAIN_MS 500

void log_times_release(struct log_times *times)
{
	free(TAKE(times->path));
	free(TAKE(times->list));
	times->count = 0;
}

/* Adds the entry in a line; one that a full disk or a kill has spoilt is passed over. */
static void add_entry(struct log_times *times, const char *line, size_t len)
{
	AUTO(auto_free) char *text = mem_copy_n(line, len);
	uint64_t offset;
	int64_t ms;
	int end = 0;

	if (sscanf(text, "%" SCNu64 " %" SCNd64 "%n", &offset, &ms, &end) < 2 ||
	    (size_t)end != len || ms <= 0 ||
	    (times->count > 0 && offset < times->list[times->count - 1].offset))
		return;
	times->list = mem_grow(times->list, times->count + 1, sizeof *times->list);
	times->list[times->count++] = (struct log_time){ offset, { ms } };
}

static void load(struct log_times *times, const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(FILE_MAX);
	AUTO(err_freep) struct err *absent = NULL;
	const char *at, *end;

	log_times_release(times);
	times->path = mem_copy(path);
	times->read_at = clock_mono_now();
	if (fs_read(path, FILE_MAX, &text, &absent) < 0)
		return;
	for (at = text.text; (end = memchr(at, '\n', text.len - (size_t)(at - text.text)));
	     at = end + 1)
		add_entry(times, at, (size_t)(end - at));
}

struct utc log_times_find(struct log_times *times, const char *path, uint64_t offset)
{
	size_t low = 0, high;

	if (!times->path || strcmp(times->path, path) != 0 ||
	    ((times->count == 0 || offset >= times->list[times->count - 1].offset) &&
	     clock_mono_now().ms - times->read_at.ms >= AGAIN_MS))
		load(times, path);
	for (high = times->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (times->list[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? times->list[low - 1].at : (struct utc){ 0 };
}
