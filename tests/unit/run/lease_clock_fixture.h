/*
 * A lease on an object store, by a clock of the test's own, and objects of other holders. For one
 * file of tests each; its program is linked so that this clock takes the place of the real one
 * (tests/CMakeLists.txt).
 */
#ifndef TEST_RUN_LEASE_CLOCK_FIXTURE_H
#define TEST_RUN_LEASE_CLOCK_FIXTURE_H

#include "lease_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "jobs/base/text/js.h"

static int64_t clock_ms;

struct mono __wrap_clock_mono_now(void);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ clock_ms };
}

static const struct lease_rules rules = { .valid_ms = 6000, .renew_ms = 2000 };

static inline json_t *object(void)
{
	AUTO(auto_free) char *path = object_path();
	struct err *err = NULL;
	json_t *value = NULL;

	if (js_load(path, 65536, &value, &err) < 0)
		fail_msg("%s", err->message);
	return value;
}

static inline void put_object(const json_t *value)
{
	AUTO(auto_free) char *path = object_path();
	AUTO(auto_free) char *text = js_line(value);
	struct err *err = NULL;

	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

/* Returns the object of another process, which may be one of this machine (`place` as ours). */
static inline json_t *foreign(const char *place)
{
	json_t *value =
		json_pack("{s:b, s:s, s:i, s:s, s:i, s:i, s:s}", "held", 1, "host", "far-away",
			  "pid", 7, "place", place, "epoch", 4, "renewed", 3, "nonce", "another");

	put_object(value);
	return value;
}

/* Takes it and gives it up, and returns what its object said of us meanwhile. */
static inline json_t *our_object(void)
{
	struct lease *lease = take(&rules);
	json_t *value = object();

	lease_freep(&lease);
	return value;
}

static inline int try_once(struct lease **lease, int64_t *ret_wait_ms)
{
	AUTO(err_freep) struct err *err = NULL;
	int taken;

	*ret_wait_ms = -7;
	taken = lease_try(journal, "r", &rules, lease, ret_wait_ms, &err);
	if (taken < 0)
		assert_int_equal(err->code, EXIT_BUSY);
	return taken;
}

static inline int begin(void **state)
{
	clock_ms = 1000000;
	return set_up(state);
}

#define BY_CLOCK(test) cmocka_unit_test_setup_teardown(test, begin, tear_down)

#endif
