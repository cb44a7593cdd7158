/* What the journal on an object store does when writes get lost, chunks are
 * damaged and the place decides its kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "faulty_store.h"
#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/journal_dir_internal.h"
#include "jobs/run/journal/state_dir.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-journal-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static const struct journal_ops *const ops = &journal_objects;

static enum rows join_body(void *arg, int64_t seq, const char *body, size_t len, struct err **err)
{
	(void)seq;
	(void)err;
	if (!body)
		return ROWS_DAMAGED;
	sb_add(arg, body, len);
	sb_addc(arg, ' ');
	return ROWS_ON;
}

static int join_run(void *arg, const char *run, const char *head, struct err **err)
{
	(void)head;
	return (int)join_body(arg, 0, run, strlen(run), err);
}

static void assert_rows(void *journal, const char *want)
{
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(ops->rows(journal, "r", 1, join_body, &got, &err), 0);
	assert_string_equal(got.text, want);
}

/* Each order of faults has its result of one append, and its rows afterwards. */
static void a_lost_reply_is_cleared_up_by_reading_back(void **state)
{
	static const struct {
		enum fault faults[8];
		const char *there; /* by somebody else, before */
		int want;
		const char *rows;
	} cases[] = {
		{ { FAULT_REPLY_LOST }, NULL, 1, "{\"a\":1} " },
		{ { FAULT_REQUEST_LOST }, NULL, 1, "{\"a\":1} " },
		{ { FAULT_REPEATED }, NULL, 1, "{\"a\":1} " },
		{ { FAULT_LATE }, NULL, 1, "{\"a\":1} " },
		{ { FAULT_REPLY_LOST, FAULT_REPLY_LOST }, NULL, 1, "{\"a\":1} " },
		{ { FAULT_REPLY_LOST, FAULT_REPLY_LOST, FAULT_REPLY_LOST, FAULT_REPLY_LOST,
		    FAULT_REPLY_LOST, FAULT_REPLY_LOST },
		  NULL,
		  -1,
		  "{\"a\":1} " },
		{ { FAULT_REQUEST_LOST, FAULT_REQUEST_LOST, FAULT_REQUEST_LOST }, NULL, -1, "" },
		{ { FAULT_REPLY_LOST }, "{\"a\":1}", 0, "{\"a\":1} " },
		{ { FAULT_REQUEST_LOST }, "{\"a\":1}", 0, "{\"a\":1} " },
		{ { FAULT_NONE }, "{\"a\":1}", 0, "{\"a\":1} " },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		AUTO(err_freep) struct err *err = NULL;
		AUTO(auto_free) char *folder = mem_format("%s/%zu", dir, i);
		struct faulty_store *store = faulty_new(folder);
		void *journal = journal_objects_on(&store->base);

		memset(store->faults, 0, sizeof store->faults);
		/* The other's event is equal to ours to the last byte. */
		if (cases[i].there)
			assert_int_equal(ops->append(journal, "r", 1, cases[i].there, &err), 1);
		memcpy(store->faults, cases[i].faults, sizeof store->faults);
		store->next = 0;
		assert_int_equal(ops->append(journal, "r", 1, "{\"a\":1}", &err), cases[i].want);
		assert_true((cases[i].want < 0) == (err != NULL));
		assert_rows(journal, cases[i].rows);
		ops->close(journal);
	}
}

static void what_arrived_without_a_confirmation_is_written_again_before_it_counts(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);

	(void)state;
	store->faults[0] = FAULT_REPLY_LOST;
	assert_int_equal(ops->append(journal, "r", 1, "{}", &err), 1);
	assert_int_equal(store->writes, 2);
	ops->close(journal);
}

static void an_append_whose_outcome_stays_unknown_is_an_error(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);

	(void)state;
	assert_int_equal(ops->append(journal, "r", 1, "{}", &err), 1);
	store->faults[1] = FAULT_REPLY_LOST;
	store->unreadable = true;
	assert_int_equal(ops->append(journal, "r", 2, "{}", &err), -1);
	assert_non_null(strstr(err->message, "network"));
	ops->close(journal);
}

static void *open_plain(void)
{
	struct err *err = NULL;
	void *journal = NULL;

	assert_int_equal(ops->open(dir, JOURNAL_WRITE, &journal, &err), 0);
	return journal;
}

static void append_many(void *journal, int64_t count)
{
	struct err *err = NULL;

	for (int64_t seq = 1; seq <= count; seq++) {
		AUTO(auto_free) char *body = mem_format("{\"n\":%lld}", (long long)seq);

		assert_int_equal(ops->append(journal, "r", seq, body, &err), 1);
	}
}

static enum rows check_number(void *arg, int64_t seq, const char *body, size_t len,
			      struct err **err)
{
	int64_t *next = arg;
	AUTO(auto_free) char *want = mem_format("{\"n\":%lld}", (long long)*next);

	(void)err;
	assert_int_equal(seq, *next);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(body, want, len);
	++*next;
	return ROWS_ON;
}

static void assert_reads_all(void *journal, int64_t count)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t next = 1;

	assert_int_equal(ops->rows(journal, "r", 1, check_number, &next, &err), 0);
	assert_int_equal(next, count + 1);
}

static void chunks_spare_reading_and_nothing_rests_on_them(void **state)
{
	AUTO(auto_free) char *one = fs_join(dir, "runs/r/chunks/000000000001.jsonl");
	AUTO(auto_free) char *two = fs_join(dir, "runs/r/chunks/000000000065.jsonl");
	AUTO(auto_free) char *event = fs_join(dir, "runs/r/events/000000000007.json");
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	void *journal = open_plain();

	(void)state;
	append_many(journal, 150);
	/* Read from the chunk: one event's own object may even be missing. */
	assert_int_equal(fs_remove_tree(event, &err), 0);
	assert_reads_all(journal, 150);
	/* Cut short, garbage in the middle, gone: the events themselves are read. */
	assert_int_equal(fs_read(two, 1 << 20, &text, &err), 0);
	assert_int_equal(fs_write_atomic(two, text.text, text.len - 30, 0600, &err), 0);
	assert_reads_all(journal, 150);
	{
		const char *line = strchr(text.text, '\n') + 1; /* whole lines, too few */

		assert_int_equal(fs_write_atomic(two, line, strlen(line), 0600, &err), 0);
		assert_reads_all(journal, 150);
	}
	memcpy(text.text + text.len / 2, "\n\n\n\n", 4);
	assert_int_equal(fs_write_atomic(two, text.text, text.len, 0600, &err), 0);
	assert_reads_all(journal, 150);
	assert_int_equal(fs_remove_tree(two, &err), 0);
	assert_reads_all(journal, 150);
	assert_int_equal(fs_remove_tree(one, &err), 0);
	{
		int64_t next = 1;

		assert_int_equal(ops->rows(journal, "r", 1, check_number, &next, &err), 0);
		assert_int_equal(next, 7);
	}
	ops->close(journal);
}

static void a_damaged_event_is_named_with_a_cure(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = { { "{}", "not a line" }, { "{}\n", "unreadable" }, { "", "empty" } };
	AUTO(auto_free) char *event = fs_join(dir, "runs/r/events/000000000002.json");
	void *journal = open_plain();

	(void)state;
	append_many(journal, 3);
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		AUTO(sb_release) struct sb rows = SB_INIT;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(
			fs_write_atomic(event, cases[i].text, strlen(cases[i].text), 0600, &err),
			0);
		assert_int_equal(ops->rows(journal, "r", 1, join_body, &rows, &err), -1);
		assert_non_null(strstr(err->message, "event 2 of run r"));
		assert_non_null(strstr(err->message, cases[i].why));
		assert_non_null(err->hint);
	}
	ops->close(journal);
}

static void an_event_that_is_too_large_is_refused_before_it_is_written(void **state)
{
	AUTO(auto_free) char *body = mem_zero(EVENT_BYTES_MAX + 2, 1);
	AUTO(err_freep) struct err *err = NULL;
	void *journal = open_plain();

	(void)state;
	append_many(journal, 3);
	memset(body, 'x', EVENT_BYTES_MAX + 1);
	assert_int_equal(ops->append(journal, "r", 4, body, &err), -1);
	assert_string_equal(err->message, "an event of run r is too large");
	err_freep(&err);
	assert_int_equal(ops->restart(journal, "r", 2, NULL, body, false, &err), -1);
	assert_string_equal(err->message, "an event of run r is too large");
	ops->close(journal);
}

/* ---- objects in the place of an event ---- */

static char *place_of(const char *key)
{
	AUTO(auto_free) char *below = mem_format("runs/r/%s", key);

	return fs_join(dir, below);
}

static void make(const char *key, bool is_folder)
{
	AUTO(auto_free) char *path = place_of(key);
	AUTO(auto_free) char *folder = is_folder ? mem_copy(path) : fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(folder, &err), 0);
	if (!is_folder)
		assert_int_equal(fs_write_atomic(path, "x", 1, 0600, &err), 0);
}

static bool is_there(const char *key)
{
	AUTO(auto_free) char *path = place_of(key);

	return fs_exists(path);
}

#define PLACE_OF_3    "events/000000000003.json"
#define OBSTACLE_OF_3 "damaged/000000000003-obstacle"

static void a_folder_in_the_place_of_the_next_event_is_damage(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	void *journal = open_plain();

	(void)state;
	append_many(journal, 2);
	make(PLACE_OF_3 "/x", false);
	assert_int_equal(ops->append(journal, "r", 3, "{}", &err), -1);
	assert_true(err->damage);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, "event 3 of run r"));
	assert_non_null(strstr(err->message, PLACE_OF_3 "' is a folder"));
	assert_non_null(strstr(err->hint, "--salvage"));
	ops->close(journal);
}

static void put_aside_fails(void *journal, const char *words)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t count = 0;

	assert_int_equal(ops->put_aside(journal, "r", 2, &count, &err), -1);
	if (!strstr(err->message, words))
		fail_msg("%s", err->message);
}

/* The object stays where it is. */
static void what_cannot_be_moved_aside_is_named(void **state)
{
	AUTO(auto_free) char *damaged = place_of("damaged");
	AUTO(auto_free) char *words = mem_format("cannot make the folder '%s'", damaged);
	AUTO(auto_free) char *there = place_of(OBSTACLE_OF_3);
	AUTO(err_freep) struct err *err = NULL;
	void *journal = open_plain();
	int64_t count = 0;

	(void)state;
	append_many(journal, 2);
	make(PLACE_OF_3 "/x", false);
	make("damaged", false);
	put_aside_fails(journal, words);
	assert_true(is_there(PLACE_OF_3 "/x"));
	assert_int_equal(fs_remove_tree(damaged, &err), 0);
	make(OBSTACLE_OF_3 "/before", false);
	put_aside_fails(journal, "cannot move '");
	assert_true(is_there(PLACE_OF_3 "/x"));
	assert_int_equal(fs_remove_tree(there, &err), 0);
	assert_int_equal(ops->put_aside(journal, "r", 2, &count, &err), 0);
	assert_int_equal(count, 2); /* the empty object in its place, too */
	assert_true(is_there(OBSTACLE_OF_3 "/x"));
	ops->close(journal);
}

/* A run with a free place behind its good events would seem whole, and its job would be
 * forgotten. */
static void what_has_no_mark_in_its_place_is_moved_back(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);
	int64_t count = 0;

	(void)state;
	append_many(journal, 2);
	make(PLACE_OF_3 "/x", false);
	store->base.directory = dir;
	store->faults[0] = FAULT_REQUEST_LOST;
	store->next = 0;
	put_aside_fails(journal, "the network is gone");
	assert_true(is_there(PLACE_OF_3 "/x"));
	assert_int_equal(ops->put_aside(journal, "r", 2, &count, &err), 0);
	assert_true(is_there(OBSTACLE_OF_3 "/x"));
	assert_false(is_there(PLACE_OF_3 "/x"));
	ops->close(journal);
}

static void an_event_that_is_never_seen_and_always_in_the_way_is_an_error(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);

	(void)state;
	for (int i = 0; i < 3; i++)
		store->faults[i] = FAULT_REFUSED;
	assert_int_equal(ops->append(journal, "r", 1, "{}", &err), -1);
	assert_non_null(strstr(err->message, "events/000000000001.json' appears and disappears"));
	assert_int_equal(store->writes, 3);
	ops->close(journal);
}

static void a_place_that_cannot_be_opened_is_no_empty_journal(void **state)
{
	(void)state;
	for (int mode = JOURNAL_READ; mode <= JOURNAL_SALVAGE; mode++) {
		AUTO(err_freep) struct err *err = NULL;
		void *journal = NULL;

		assert_int_equal(ops->open("s3://b", (enum journal_mode)mode, &journal, &err), -1);
		assert_string_equal(err->message, "'s3://b' names no bucket");
	}
}

static void foreign_folders_are_no_runs(void **state)
{
	static const char *const others[] = { "runs/Not-An-Id/x", "runs/no-events/claim/train",
					      "runs/file" };
	AUTO(sb_release) struct sb runs = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = NULL;
	void *journal = open_plain();

	(void)state;
	append_many(journal, 1);
	store = faulty_new(dir);
	for (size_t i = 0; i < STK_LENGTH(others); i++)
		assert_int_equal(store_put(store->real, others[i], "x", 1, &err), 0);
	assert_int_equal(ops->runs(journal, join_run, &runs, &err), 0);
	assert_string_equal(runs.text, "r ");
	faulty_free(&store->base);
	ops->close(journal);
}

static void network_file_systems_are_told_by_their_type(void **state)
{
	static const unsigned long local[] = { 0xEF53 /* ext4 */,        0x58465342 /* xfs */,
					       0x9123683E /* btrfs */,   0x01021994 /* tmpfs */,
					       0x794C7630 /* overlay */, 0x2FC12FC1 /* zfs */ };
	static const unsigned long network[] = { 0x6969 /* nfs */, 0x0BD00BD0 /* lustre */,
						 0x65735546 /* fuse */,
						 /* as a signed field of 32 bits gives it */
						 0xFFFFFFFFFF534D42 /* cifs */ };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(local); i++)
		assert_false(state_dir_type_is_network(local[i]));
	for (size_t i = 0; i < STK_LENGTH(network); i++)
		assert_true(state_dir_type_is_network(network[i]));
	assert_false(state_dir_on_network(dir));
	assert_false(state_dir_on_network("/proc/none/such/folder"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lost_reply_is_cleared_up_by_reading_back),
		TEST(what_arrived_without_a_confirmation_is_written_again_before_it_counts),
		TEST(an_append_whose_outcome_stays_unknown_is_an_error),
		TEST(chunks_spare_reading_and_nothing_rests_on_them),
		TEST(a_damaged_event_is_named_with_a_cure),
		TEST(an_event_that_is_too_large_is_refused_before_it_is_written),
		TEST(a_folder_in_the_place_of_the_next_event_is_damage),
		TEST(what_cannot_be_moved_aside_is_named),
		TEST(what_has_no_mark_in_its_place_is_moved_back),
		TEST(an_event_that_is_never_seen_and_always_in_the_way_is_an_error),
		TEST(a_place_that_cannot_be_opened_is_no_empty_journal),
		TEST(foreign_folders_are_no_runs),
		TEST(network_file_systems_are_told_by_their_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
