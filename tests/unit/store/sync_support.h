/* What the tests of a sync between two directories have in common. */
#ifndef STK_TESTS_SYNC_SUPPORT_H
#define STK_TESTS_SYNC_SUPPORT_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/store/staged_write.h"
#include "jobs/store/sync.h"

struct fixture {
	char scratch[64];
	char *from, *to;
	struct store *source, *target;
	struct sync_options options;
	struct sync_sum sum;
	struct sb told; /* "fate key[: why]\n" */
	int calls_left; /* of progress until it says stop; -1: never */
};

static inline void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static inline void tell(void *arg, enum sync_fate fate, const char *key, uint64_t size,
			const char *why)
{
	static const char *const names[] = { "same", "moved", "refused", "failed" };
	struct fixture *f = arg;

	(void)size;
	sb_addf(&f->told, "%s %s%s%s\n", names[fate], key, why ? ": " : "", why ? why : "");
}

static inline int setup(void **state)
{
	struct fixture *f = mem_zero(1, sizeof *f);
	struct err *err = NULL;

	snprintf(f->scratch, sizeof f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	f->from = mem_format("%s/from", f->scratch);
	f->to = mem_format("%s/to", f->scratch);
	must(store_open(f->from, &f->source, &err), err);
	must(store_open(f->to, &f->target, &err), err);
	f->told = SB_INIT;
	f->options.on_object = tell;
	f->options.arg = f;
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	store_freep(&f->source);
	store_freep(&f->target);
	must(fs_remove_tree(f->scratch, &err), err);
	sb_release(&f->told);
	free(f->from);
	free(f->to);
	free(f);
	return 0;
}

static inline void write_at(const char *root, const char *key, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);
	AUTO(auto_free) char *dir = fs_dirname(path);
	FILE *file;

	must(fs_mkdirs(dir, &err), err);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

/* Dates a file so far back that its times speak for it. */
static inline void age(const char *root, const char *key)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);
	struct timespec times[2] = { { .tv_sec = 1700000000, .tv_nsec = 5 },
				     { .tv_sec = 1700000000, .tv_nsec = 5 } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static inline void assert_file(const char *root, const char *key, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);

	must(fs_read(path, 1 << 20, &got, &err), err);
	assert_string_equal(got.text, text);
}

static inline bool is_there(const char *root, const char *key)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);

	return fs_exists(path);
}

static inline void run(struct fixture *f)
{
	AUTO(err_freep) struct err *err = NULL;

	sb_clear(&f->told);
	must(sync_run(f->source, f->target, &f->options, &f->sum, &err), err);
}

static inline void assert_counts(struct fixture *f, int64_t same, int64_t moved, int64_t refused,
				 int64_t failed)
{
	assert_int_equal(f->sum.objects[SYNC_SAME], same);
	assert_int_equal(f->sum.objects[SYNC_MOVED], moved);
	assert_int_equal(f->sum.objects[SYNC_REFUSED], refused);
	assert_int_equal(f->sum.objects[SYNC_FAILED], failed);
}

static inline ino_t inode_of(const char *root, const char *key)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* Waits until a new file is old enough to be remembered. */
static inline void settle(void)
{
	nanosleep(&(struct timespec){ .tv_sec = 2, .tv_nsec = 100000000 }, NULL);
}

#endif
