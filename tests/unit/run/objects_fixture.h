/*
 * A journal of objects, twice on the same folder: as it lies on this disk, and as if each call were
 * a request to a service. For one file of tests each.
 */
#ifndef TEST_RUN_OBJECTS_FIXTURE_H
#define TEST_RUN_OBJECTS_FIXTURE_H

#include "jobs/run/journal/journal_dir_internal.h"

#include <sys/stat.h>

#include "tests/unit/checkpoint/trees.h"
#include "tests/unit/run/faulty_store.h"

#define MANY 100000 /* calls that are not made */

static char dir[64];
static struct faulty_store *between; /* of the journal that looks remote */
static void *far, *near;             /* two journals on the same folder; near is on this disk */

static const struct journal_ops *const ops = &journal_objects;

static inline void open_far(void)
{
	if (far)
		ops->close(far);
	between = faulty_new(dir);
	far = journal_objects_on(&between->base);
}

static inline void open_near(void)
{
	struct err *err = NULL;

	if (near)
		ops->close(near);
	ops->open(dir, JOURNAL_WRITE, &near, &err);
	assert_no_error(err);
}

static inline int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-objects-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	far = near = NULL;
	open_far();
	open_near();
	return 0;
}

static inline int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	ops->close(far);
	ops->close(near);
	return fs_remove_tree(dir, &err);
}

static char *body_of(const char *run, int64_t seq)
{
	return mem_format("{\"v\":1,\"run\":\"%s\",\"seq\":%lld}", run, (long long)seq);
}

static inline void append_to(void *journal, const char *run, int64_t first, int64_t last)
{
	struct err *err = NULL;

	for (int64_t seq = first; seq <= last; seq++) {
		AUTO(auto_free) char *body = body_of(run, seq);

		assert_int_equal(ops->append(journal, run, seq, body, &err), 1);
		assert_no_error(err);
	}
}

struct seen {
	const char *run;
	int64_t first, last;
	int64_t stop_at, fail_at;
};

static inline enum rows see(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	struct seen *seen = arg;
	AUTO(auto_free) char *want = body_of(seen->run, seq);

	if (!body || len != strlen(want) || memcmp(body, want, len) != 0)
		return ROWS_DAMAGED;
	if (seen->first == 0)
		seen->first = seq;
	else
		assert_int_equal(seq, seen->last + 1);
	seen->last = seq;
	if (seq == seen->fail_at) {
		err_set(err, EXIT_GATE, "enough of it");
		return ROWS_FAIL;
	}
	return seq == seen->stop_at ? ROWS_STOP : ROWS_ON;
}

static inline struct seen read_from(void *journal, const char *run, int64_t from)
{
	struct seen seen = { .run = run };
	struct err *err = NULL;

	assert_int_equal(ops->rows(journal, run, from, see, &seen, &err), 0);
	assert_no_error(err);
	return seen;
}

/* Returns how many requests it takes to read up to this event. */
static inline int cost(const char *run, int64_t from, int64_t last)
{
	int calls;

	faulty_lose(between, MANY, 1);
	assert_int_equal(read_from(far, run, from).last, last);
	calls = MANY - between->calls_left;
	between->calls_to_lose = 0;
	return calls;
}

static char *path_of(const char *run, const char *kind, int64_t seq)
{
	return mem_format("runs/%s/%s/%012lld.%s", run, kind, (long long)seq,
			  kind[0] == 'c' ? "jsonl" : "json");
}

static inline bool is_there(const char *path)
{
	AUTO(auto_free) char *whole = fs_join(dir, path);

	return fs_exists(whole);
}

/* The events of a chunk as they lie in their own objects, with what follows them. */
static inline void assert_chunk(const char *run, int64_t first, int64_t last, const char *end)
{
	AUTO(auto_free) char *path = path_of(run, "chunks", first);
	AUTO(sb_release) struct sb want = SB_INIT, got = SB_INIT;

	for (int64_t seq = first; seq <= last; seq++) {
		AUTO(auto_free) char *event = path_of(run, "events", seq);
		AUTO(sb_release) struct sb text = get_bytes(dir, event);

		sb_add(&want, text.text, text.len);
	}
	sb_adds(&want, end);
	got = get_bytes(dir, path);
	assert_string_equal(got.text, want.text);
}

static inline void assert_no_chunk(const char *run, int64_t first)
{
	AUTO(auto_free) char *path = path_of(run, "chunks", first);

	assert_false(is_there(path));
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
