/*
 * The times of a log that lies in a file, as the node's agent wrote them down beside it
 * (jobs/store/order.h, TIMES_FILE).
 */
#ifndef STK_ENGINE_LOG_TIMES_H
#define STK_ENGINE_LOG_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"

struct log_times {
	char *path;
	struct log_time {
		uint64_t offset;
		struct utc at;
	} * list; /* in rising order of offset */
	size_t count;
	struct mono read_at;
};

void log_times_release(struct log_times *times);

/* Returns when the line at this offset of the log was written, to a second; ms 0: not known. The
 * file at `path` is read again where it may have grown. */
struct utc log_times_find(struct log_times *times, const char *path, uint64_t offset);

#endif
