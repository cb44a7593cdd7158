/* The journal on an object store whose network breaks off in the middle of what was asked: wherever
 * that is, nothing is lost, and it can be asked again. See jobs/run/journal/journal_dir.c. */
#include "jobs/run/journal/journal_dir_internal.h"

#include "tests/unit/checkpoint/trees.h"
#include "tests/unit/run/faulty_store.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-breaks-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static const struct journal_ops *const ops = &journal_objects;

static bool is_there(const char *key)
{
	AUTO(auto_free) char *path = fs_join(dir, key);

	return fs_exists(path);
}

static void append_many(void *journal, int64_t count)
{
	struct err *err = NULL;

	for (int64_t seq = 1; seq <= count; seq++) {
		AUTO(auto_free) char *body = mem_format("{\"n\":%lld}", (long long)seq);

		ops->append(journal, "r", seq, body, &err);
		assert_no_error(err);
	}
}

static enum rows check_number(void *arg, int64_t seq, const char *body, size_t len,
			      struct err **err)
{
	int64_t *next = arg;
	AUTO(auto_free) char *want = mem_format("{\"n\":%lld}", (long long)*next);

	(void)err;
	if (!body)
		return ROWS_DAMAGED;
	assert_int_equal(seq, *next);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(body, want, len);
	++*next;
	return ROWS_ON;
}

static void assert_reads(void *journal, int64_t count)
{
	struct err *err = NULL;
	int64_t next = 1;

	ops->rows(journal, "r", 1, check_number, &next, &err);
	assert_no_error(err);
	assert_int_equal(next, count + 1);
}

static int add_name(void *arg, const char *run, const char *head, struct err **err)
{
	(void)head;
	(void)err;
	sb_adds(arg, run);
	return 0;
}

#define CALLS_MAX 1000

static void is_gone(struct err **err)
{
	assert_non_null(*err);
	assert_contains((*err)->message, "the network is gone");
	err_freep(err);
}

/* Tries it with calls lost at each place: one of them, and all that follow. `try_at` says how many
 * were lost; 0: the place lies behind its last call. Returns the number of its calls. */
static int at_each_call(int (*try_at)(int after, int calls))
{
	int after = 0;

	while (try_at(after, 1) > 0 && after < CALLS_MAX)
		after++;
	while (after > 0)
		assert_true(try_at(--after, CALLS_MAX) > 0);
	while (try_at(after, 1) > 0)
		after++;
	return after;
}

static void clear(void)
{
	drop(dir, "runs/r");
}

static int remove_with_loss(int after, int calls)
{
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);
	int lost;

	append_many(journal, 10);
	faulty_lose(store, after, calls);
	if (ops->forget(journal, "r", &err) < 0) {
		is_gone(&err);
		store->calls_to_lose = 0;
		ops->forget(journal, "r", &err);
		assert_no_error(err);
	}
	assert_false(is_there("runs/r/events/000000000001.json"));
	assert_false(is_there("runs/r/events/000000000010.json"));
	assert_false(is_there("runs/r/chunks/000000000001.jsonl"));
	assert_true(!is_there("runs/r/removed") || after == 0);
	lost = store->calls_lost;
	ops->close(journal);
	clear();
	return lost;
}

static void a_removal_that_breaks_off_can_be_repeated(void **state)
{
	(void)state;
	assert_in_range(at_each_call(remove_with_loss), 10, CALLS_MAX - 1);
}

/* Over what a removal has left. */
static int begin_with_loss(int after, int calls)
{
	static const char *const rests[] = { "runs/r/removed", "runs/r/events/000000000002.json",
					     "runs/r/chunks/000000000001.jsonl" };
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);
	int lost;

	for (size_t i = 0; i < STK_LENGTH(rests); i++)
		put_text(dir, rests[i], "x");
	faulty_lose(store, after, calls);
	if (ops->append(journal, "r", 1, "{\"n\":1}", &err) < 0) {
		is_gone(&err);
		assert_false(is_there("runs/r/events/000000000001.json"));
		store->calls_to_lose = 0;
		ops->append(journal, "r", 1, "{\"n\":1}", &err);
		assert_no_error(err);
	}
	for (size_t i = 0; i < STK_LENGTH(rests); i++)
		assert_false(is_there(rests[i]));
	lost = store->calls_lost;
	ops->close(journal);
	clear();
	return lost;
}

static void a_run_begins_only_when_the_rest_of_another_is_cleared(void **state)
{
	(void)state;
	assert_in_range(at_each_call(begin_with_loss), 6, CALLS_MAX - 1);
}

/* ---- a salvage ---- */

static int64_t good; /* the event behind it is damaged */

static int salvage(void *journal, struct err **err)
{
	AUTO(auto_free) char *body = mem_format("{\"n\":%lld}", (long long)good + 1);
	int64_t count = 0;

	return ops->put_aside(journal, "r", good, &count, err) < 0
		       ? -1
		       : ops->restart(journal, "r", good, NULL, body, false, err);
}

static int salvage_with_loss(int after, int calls)
{
	AUTO(auto_free) char *bad = mem_format("runs/r/events/%012lld.json", (long long)good + 1);
	AUTO(err_freep) struct err *err = NULL;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);
	int64_t next = 1;
	int result, lost;

	append_many(journal, 10);
	put_text(dir, bad, "x");
	faulty_lose(store, after, calls);
	result = salvage(journal, &err);
	lost = store->calls_lost;
	ops->close(journal);
	journal = journal_objects_on(&faulty_new(dir)->base); /* nothing is remembered */
	if (result < 0) {
		is_gone(&err);
		if (good == 8) { /* else it has a copy in a chunk */
			assert_int_equal(ops->rows(journal, "r", 1, check_number, &next, &err), -1);
			assert_int_equal(next, good + 1);
			assert_true(err->damage);
			err_freep(&err);
		}
		salvage(journal, &err);
		assert_no_error(err);
	}
	assert_reads(journal, good + 1);
	ops->close(journal);
	clear();
	return lost;
}

/* The run is damaged until the last step; events behind the damage are not read any more, nor their
 * copies. */
static void a_salvage_that_breaks_off_can_be_repeated(void **state)
{
	(void)state;
	good = 8;
	assert_in_range(at_each_call(salvage_with_loss), 10, CALLS_MAX - 1);
	good = 5;
	assert_in_range(at_each_call(salvage_with_loss), 10, CALLS_MAX - 1);
}

/* An object in the place of the mark is kept before it is replaced. */
static int mend_with_loss(int after, int calls)
{
	static const char bad[] = "no mark", mark[] = "{}\n";
	/* printf 'no mark' | sha256sum */
	static const char kept[] = JOURNAL_DIR_MARK ".damaged-d78aa0f4b7e7";
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;
	struct faulty_store *store = faulty_new(dir);
	void *journal = journal_objects_on(&store->base);
	int lost;

	put_text(dir, JOURNAL_DIR_MARK, bad);
	drop(dir, kept);
	faulty_lose(store, after, calls);
	if (journal_dir_mend_mark(journal, mark, &err) < 0)
		is_gone(&err);
	lost = store->calls_lost;
	text = get_bytes(dir, JOURNAL_DIR_MARK);
	assert_string_equal(text.text, lost ? bad : mark);
	assert_true(lost || is_there(kept));
	ops->close(journal);
	return lost;
}

static void a_mark_is_not_replaced_before_it_is_kept(void **state)
{
	(void)state;
	assert_int_equal(at_each_call(mend_with_loss), 3);
}

/* A run of which nothing can be read is listed all the same, but a service that does not answer has
 * not said which runs there are. */
static void a_service_that_does_not_answer_has_no_list_of_runs(void **state)
{
	static const enum exit_code codes[] = { EXIT_REFUSED, EXIT_UNREACHABLE };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(codes); i++) {
		AUTO(sb_release) struct sb runs = SB_INIT;
		AUTO(err_freep) struct err *err = NULL;
		struct faulty_store *store = faulty_new(dir);
		void *journal = journal_objects_on(&store->base);

		store->code = codes[i];
		append_many(journal, 1);
		store->unreadable = true;
		assert_int_equal(ops->runs(journal, add_name, &runs, &err), i == 0 ? 0 : -1);
		if (i == 0)
			assert_string_equal(runs.text, "r");
		else
			is_gone(&err);
		store->unreadable = false;
		assert_int_equal(ops->forget(journal, "r", &err), 0);
		ops->close(journal);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_removal_that_breaks_off_can_be_repeated),
		TEST(a_run_begins_only_when_the_rest_of_another_is_cleared),
		TEST(a_salvage_that_breaks_off_can_be_repeated),
		TEST(a_mark_is_not_replaced_before_it_is_kept),
		TEST(a_service_that_does_not_answer_has_no_list_of_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
