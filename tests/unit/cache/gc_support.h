/*
 * What the tests of `cache gc` share, for whichever kind: entries of any age, and
 * the rows that it tells.
 */
#ifndef STK_TESTS_UNIT_CACHE_GC_SUPPORT_H
#define STK_TESTS_UNIT_CACHE_GC_SUPPORT_H

#include "tests/unit/cache/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "jobs/cache/gc.h"

#define HOUR ((int64_t)3600 * 1000)
#define DAY  (24 * HOUR)

/* Written `age` milliseconds ago. */
static void set_age(const char *dir, const char *name, int64_t age)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	int64_t ms = clock_utc_now().ms - age;
	struct timespec times[2] = { { 0, UTIME_OMIT },
				     { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* All that has been told: yours to free. */
static json_t *gc(struct store *store, bool remove, struct gc_sum *sum)
{
	struct gc_options options = { .now = clock_utc_now(), .older_ms = DAY, .remove = remove };
	json_t *rows = json_array();
	struct err *err = NULL;

	cache_gc(store, &options, keep_row, rows, sum, &err);
	assert_no_error(err);
	return rows;
}

#endif
