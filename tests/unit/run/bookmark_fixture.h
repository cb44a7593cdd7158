/*
 * Logs of an attempt that are read so far that it is worth keeping how far, a clock that a test
 * sets, and what is kept. For one file of tests each; its program is linked so that its clock takes
 * the place of the real one (tests/CMakeLists.txt).
 */
#ifndef TEST_RUN_BOOKMARK_FIXTURE_H
#define TEST_RUN_BOOKMARK_FIXTURE_H

#include "attempt_fixture.h"

#include <sys/stat.h>

#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/journal/journal_internal.h"

#define KIB   ((size_t)1 << 10)
#define MIB   ((size_t)1 << 20)
#define LEAST (256 * KIB) /* a smaller amount is read again as quickly */

#define PLAN                                                                                       \
	"{'nodes':2,'steps':{'train':100},'compile':{'kind':'neuron'},"                            \
	"'metrics':[{'name':'step','regex':'step ([0-9]+)'},"                                      \
	"{'name':'loss','regex':'loss ([0-9.]+)'}]}"
#define MODULE "MODULE_10290217891379219021+3cc9a3cb"
#define MISS                                                                                       \
	"Call compiler with cmd: neuronx-cc compile --target=trn1 --framework=XLA "                \
	"/tmp/model." MODULE ".hlo_module.pb --output /tmp/model." MODULE ".neff\n"

/* ---- the clock ---- */

static int64_t clock_ms;   /* 0: the real one */
static int64_t clock_adds; /* at each look */

struct mono __wrap_clock_mono_now(void);
struct mono __real_clock_mono_now(void);

struct mono __wrap_clock_mono_now(void)
{
	struct mono now = { clock_ms };

	clock_ms += clock_adds;
	return now.ms ? now : __real_clock_mono_now();
}

static inline void stop_clock(int64_t at_ms)
{
	clock_ms = at_ms;
	clock_adds = 0;
}

/* ---- the bookmark ---- */

static inline char *bookmark(void)
{
	return fs_join(dir, "state/runs/r1/reading.json");
}

static inline bool is_kept(void)
{
	AUTO(auto_free) char *path = bookmark();

	return fs_exists(path);
}

static inline size_t kept_bytes(void)
{
	AUTO(auto_free) char *path = bookmark();
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

static inline json_t *kept(void)
{
	AUTO(auto_free) char *path = bookmark();
	AUTO(err_freep) struct err *err = NULL;
	json_t *value = NULL;

	if (js_load(path, 64 * MIB, &value, &err) < 0)
		fail_msg("%s", err->message);
	return value;
}

static inline void put(const char *text)
{
	AUTO(auto_free) char *path = bookmark();
	AUTO(err_freep) struct err *err = NULL;

	if (fs_write_atomic(path, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err->message);
}

static inline void put_json(const json_t *value)
{
	AUTO(auto_free) char *text = js_line(value);

	put(text);
}

static inline void forget(void)
{
	AUTO(auto_free) char *path = bookmark();
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_remove_tree(path, &err), 0);
}

static inline struct attempt_watch *another_driver(void)
{
	AUTO(err_freep) struct err *err = NULL;

	driver.left = false; /* it does not leave a bookmark of its own */
	assert_int_equal(watch_open(&driver, driver.flow.phase, 1, "stk-r1-1", &err), 0);
	return driver.watch;
}

/* Lines of 1 KiB. */
static inline void say_much(int node, size_t bytes)
{
	char line[KIB];

	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	for (size_t len = 0; len < bytes; len += sizeof line)
		sb_add(&said.logs[node], line, sizeof line);
}

/* The first of two nodes shows steps, a graph, a failure and half a line. */
static inline struct attempt_watch *read_much(void)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	say(0, "step 3 loss 1.5\n" MISS "step 7 loss 0.25\n");
	say(0, "RuntimeError: it went wrong here\n");
	say_much(0, LEAST);
	say(0, "half of");
	say(1, "one\ntwo\rthree\r");
	read_all(watch);
	watch->hits_recorded = 5;
	watch->graphs_at.ms = 1;
	return watch;
}

#endif
