/* Leases that are damaged, and stores that refuse conditions that hold: see
 * jobs/run/journal/lease.h. */
#include <sys/stat.h>

#include "lease_fixture.h"

static const struct {
	const char *text;
	size_t len;
} garbage[] = { { "", 0 },    { "\"\xff", 2 }, { "{\"v\":1,\"no", 10 },
		{ "[1]", 3 }, { "{}", 2 },     { "\0\0", 2 } };

static void garbage_is_an_error_with_a_cure(void **state)
{
	AUTO(auto_free) char *path = object_path();

	(void)state;
	make_folder();
	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL;
		AUTO(err_freep) struct err *err = NULL;
		int64_t wait_ms;

		assert_int_equal(fs_write_atomic(path, garbage[i].text, garbage[i].len, 0600, &err),
				 0);
		assert_int_equal(lease_try(journal, "r", &fast, &lease, &wait_ms, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(strstr(err->message, LEASE_OBJECT));
		assert_non_null(strstr(err->hint, LEASE_OBJECT));
		err_freep(&err);
		assert_int_equal(lease_check(journal, "r", &fast, &looked, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
	}
}

/* Somebody may write there yet. */
static void garbage_is_taken_over_where_that_is_wanted_after_its_time(void **state)
{
	struct lease_rules rules = fast;
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = object_path();
	int64_t wait_ms;

	(void)state;
	rules.over_damage = true;
	make_folder();
	assert_int_equal(fs_write_atomic(path, "\"\xff", 2, 0600, &err), 0);
	assert_int_equal(lease_try(journal, "r", &rules, &lease, &wait_ms, &err), 0);
	lease_freep(&lease);
	lease = take(&rules);
}

static void its_holder_writes_it_anew_over_garbage(void **state)
{
	AUTO(auto_free) char *path = object_path();

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		struct lease *lease = take(&brisk);
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(fs_write_atomic(path, garbage[i].text, garbage[i].len, 0600, &err),
				 0);
		pause_ms(lease_due(lease) + 1);
		assert_int_equal(lease_keep(lease, &err), 0);
		assert_true(lease_is_mine(lease));
		assert_busy(&brisk, "is driven by");
		lease_freep(&lease);
	}
}

static void refuse_all(struct faulty_store *store)
{
	for (size_t i = 0; i < STK_LENGTH(store->faults); i++)
		store->faults[i] = FAULT_REFUSED;
	store->next = 0;
}

static void what_refuses_right_conditions_is_tried_ever_more_rarely(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct lease *lease = take(&brisk);
	struct faulty_store *store = put_faults(lease);
	int64_t wait_ms, before = 0;

	(void)state;
	lease_object_release(lease);
	lease->held = false;
	for (int i = 0; i < 6; i++) {
		refuse_all(store);
		assert_int_equal(lease_object_try(lease, &wait_ms, &err), 0);
		assert_int_equal(lease->refusals, i + 1);
		assert_true(wait_ms > before);
		before = wait_ms;
	}
	store->next = STK_LENGTH(store->faults);
	assert_int_equal(lease_object_try(lease, &wait_ms, &err), 1);
	assert_int_equal(lease->refusals, 0);
	lease_freep(&lease);
	faulty_free(&store->base);
}

static void a_holder_whose_right_conditions_are_refused_has_no_lease_in_the_end(void **state)
{
	static const struct lease_rules rules = { .valid_ms = 1200, .renew_ms = 400 };
	AUTO(err_freep) struct err *err = NULL;
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);
	int kept;

	(void)state;
	do {
		refuse_all(store);
		pause_ms(lease_due(lease) + 1);
		kept = lease_keep(lease, &err);
	} while (kept == 0);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "neither read nor acquired"));
	assert_false(lease_is_mine(lease));
	lease_freep(&lease);
	faulty_free(&store->base);
}

static int refuse_replace(struct store *store, const char *key, const char *tag, const void *bytes,
			  size_t len, struct err **err)
{
	(void)store, (void)key, (void)tag, (void)bytes, (void)len, (void)err;
	return 0;
}

struct told {
	int holders, troubles;
	int64_t at_most_ms;
};

static void note_wait(void *arg, const char *holder, const struct err *trouble, int64_t at_most_ms)
{
	struct told *told = arg;

	(void)holder;
	if (!trouble) {
		told->holders++;
		return;
	}
	assert_non_null(strstr(trouble->message, "a conditional write to it is refused"));
	told->troubles++;
	told->at_most_ms = at_most_ms;
}

static int fail_get(struct store *store, const char *key, size_t max, struct sb *ret,
		    char ret_tag[STORE_TAG], struct err **err)
{
	(void)store, (void)key, (void)max, (void)ret, (void)ret_tag;
	return err_set(err, EXIT_UNREACHABLE, "no answer");
}

static struct store_backend silent;
static const struct store_backend *answering;

/* Done, and from then on nothing answers. */
static int put_and_be_silent(struct store *store, const char *key, const char *tag,
			     const void *bytes, size_t len, struct err **err)
{
	assert_int_equal(answering->replace_if_same(store, key, tag, bytes, len, err), 1);
	store->backend = &silent;
	return err_set(err, EXIT_UNREACHABLE, "no answer");
}

static void a_write_whose_answer_was_lost_is_known_as_our_own_at_the_next_try(void **state)
{
	struct lease *before = take(&slow);
	AUTO(lease_freep) struct lease *lease = NULL;
	struct store *store = journal_store(journal);
	struct store_backend losing = *store->backend;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	lease_freep(&before);
	answering = store->backend;
	silent = losing;
	silent.get = fail_get;
	losing.replace_if_same = put_and_be_silent;
	store->backend = &losing;
	assert_int_equal(lease_take(journal, "r", &slow, NULL, NULL, &lease, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_false(lease_is_held(lease));
	err_freep(&err);
	store->backend = answering;
	/* The lease is taken without waiting a minute for our own to expire. */
	assert_int_equal(lease_take(journal, "r", &slow, NULL, NULL, &lease, &err), 0);
	assert_true(lease_is_held(lease));
}

/* Says once what it waits for. */
static void who_waits_for_right_conditions_gives_up_when_the_run_says_so(void **state)
{
	struct event ev = { .kind = EV_RUN_CREATED, .seq = 1, .at = { 1 } };
	json_auto_t *plan = json_pack("{s:{s:i}}", "limits", "unreachable_ms", 2000);
	struct lease *before = take(&fast), *lease = NULL;
	struct store *store = journal_store(journal);
	const struct store_backend *real = store->backend;
	struct store_backend refusing = *real;
	AUTO(err_freep) struct err *err = NULL;
	struct told told = { 0 };

	(void)state;
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	assert_int_equal(journal_append(journal, "r", &ev, &err), 1);
	lease_freep(&before);
	refusing.replace_if_same = refuse_replace;
	store->backend = &refusing;
	assert_int_equal(lease_take(journal, "r", &fast, note_wait, &told, &lease, &err), -1);
	store->backend = real;
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "given up after limits.unreachable, 2 s"));
	assert_int_equal(told.troubles, 1);
	assert_int_equal(told.at_most_ms, 2000);
	lease_freep(&lease);
	lease = take(&fast);
	lease_freep(&lease);
}

/* An obstacle in the way of a lock is named, and taken away where damage is wanted out of the way.
 */
static void what_is_no_file_is_an_obstacle_with_a_cure(void **state)
{
	AUTO(auto_free) char *path = mem_format("%s/runs/r/" LEASE_LOCK, dir);
	struct lease_rules rules = fast;
	AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	for (int i = 0; i < 3; i++) {
		static const char *const words[] = { "a pipe", "a socket", "a folder" };

		assert_int_equal(i < 2 ? mknod(path, (i ? S_IFSOCK : S_IFIFO) | 0600, 0)
				       : mkdir(path, 0700),
				 0);
		assert_int_equal(lease_check(journal, "r", &fast, &looked, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(strstr(err->message, LEASE_LOCK));
		assert_non_null(strstr(err->message, words[i]));
		assert_non_null(err->hint);
		err_freep(&err);
		if (i < 2)
			assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(lease_try(journal, "r", &fast, &lease, &wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, LEASE_LOCK));
	err_freep(&err);
	lease_freep(&lease);
	rules.over_damage = true;
	lease = take(&rules);
}

int main(void)
{
	const struct CMUnitTest lock[] = {
		TEST(what_is_no_file_is_an_obstacle_with_a_cure),
	};
	const struct CMUnitTest object[] = {
		TEST(garbage_is_an_error_with_a_cure),
		TEST(garbage_is_taken_over_where_that_is_wanted_after_its_time),
		TEST(its_holder_writes_it_anew_over_garbage),
		TEST(what_refuses_right_conditions_is_tried_ever_more_rarely),
		TEST(a_holder_whose_right_conditions_are_refused_has_no_lease_in_the_end),
		TEST(who_waits_for_right_conditions_gives_up_when_the_run_says_so),
		TEST(a_write_whose_answer_was_lost_is_known_as_our_own_at_the_next_try),
	};
	int failed;

	scheme = "sqlite";
	failed = cmocka_run_group_tests_name("lock", lock, NULL, NULL);
	scheme = "dir";
	return failed + cmocka_run_group_tests_name("object", object, NULL, NULL);
}
