/*
 * Leases in a state directory of a test's own, and what comes between one and its store.
 * For one file of tests each.
 */
#ifndef TEST_RUN_LEASE_FIXTURE_H
#define TEST_RUN_LEASE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "faulty_store.h"
#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/lease_internal.h"

/* Long enough that nothing expires by itself; short enough to wait for; that, where a
 * busy machine must not make it late. */
static const struct lease_rules slow = { .valid_ms = 60000, .renew_ms = 20000 };
static const struct lease_rules fast = { .valid_ms = 900, .renew_ms = 300 };
static const struct lease_rules brisk = { .valid_ms = 30000, .renew_ms = 2000 };

static char dir[64];
static const char *scheme;
static struct journal *journal;

static int set_up(void **state)
{
	AUTO(auto_free) char *url = NULL;
	struct err *err = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-lease-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	url = mem_format("%s:%s", scheme, dir);
	return journal_open(url, JOURNAL_WRITE, &journal, &err);
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	journal_freep(&journal);
	return fs_remove_tree(dir, &err);
}

static inline void pause_ms(int64_t ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static inline struct lease *take(const struct lease_rules *rules)
{
	struct lease *lease = NULL;
	struct err *err = NULL;

	if (lease_take(journal, "r", rules, NULL, NULL, &lease, &err) < 0)
		fail_msg("%s", err->message);
	assert_true(lease_is_mine(lease));
	return lease;
}

static inline void assert_busy(const struct lease_rules *rules, const char *words)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	assert_int_equal(lease_try(journal, "r", rules, &lease, &wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_non_null(err->hint);
	if (!strstr(err->message, words))
		fail_msg("'%s' not in '%s'", words, err->message);
}

static inline char *object_path(void)
{
	return mem_format("%s/runs/r/" LEASE_OBJECT, dir);
}

static inline void make_folder(void)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/r", dir);
	struct err *err = NULL;

	assert_int_equal(fs_mkdirs(folder, &err), 0);
}

/* Put faults between a lease and its store. */
static inline struct faulty_store *put_faults(struct lease *lease)
{
	struct faulty_store *store = faulty_new(dir);

	lease->store = &store->base;
	return store;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
