/* A run whose removal breaks off, because the service of its journal does not answer: wherever that
 * is, it says so, and the same call clears away the rest. See jobs/run/journal/forget.h. */
#include "forget_fixture.h"

#include "faulty_store.h"
#include "jobs/run/journal/journal_dir_internal.h"
#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/lease_internal.h"

static struct faulty_store *between;

/* The journal as if it lay far away, with faults on the way there. */
static void put_far_away(void)
{
	struct dir_journal *objects = journal->store;

	free(journal->dir);
	journal->dir = fs_join(dir, "local");
	journal->is_remote = true;
	store_freep(&objects->store);
	between = faulty_new(state);
	objects->store = &between->base;
}

static void make_run(void)
{
	begin_run(work, NULL);
	end_run();
	put_text(dir, "local/runs/r/driver.log", "123");
	put_text(work, "runs/r/train-1/output/model", "1234");
	put_text(work, "runs/r/log", "1");
	put_text(state, "runs/r/claims/x", "1");
}

static bool forget_with_loss(int after)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *ret = NULL;
	int lost = between->calls_lost, result;

	faulty_lose(between, after, 1);
	result = run_forget(journal, "r", &plain, NULL, NULL, NULL, &ret, &err);
	between->calls_to_lose = 0;
	if (result < 0)
		assert_contains(err->message, "the network is gone");
	else
		assert_no_error(err); /* it did not matter */
	if (result == 0)
		assert_int_equal(json_array_size(json_object_get(ret, "kept")), 1);
	else
		assert_true(between->calls_lost > lost);
	return between->calls_lost > lost;
}

static void assert_gone(void)
{
	assert_int_equal(events(), 0);
	assert_false(there(work, "runs/r/log"));
	assert_false(there(dir, "local/runs/r"));
	assert_false(there(state, "runs/r/claims/x"));
	assert_false(there(state, "runs/r/" LEASE_OBJECT));
}

static void a_removal_that_breaks_off_is_finished_by_the_next(void **unused)
{
	int after = 0;

	(void)unused;
	put_far_away();
	for (bool lost = true; lost; after++) {
		make_run();
		lost = forget_with_loss(after);
		drop(state, "runs/r/" LEASE_OBJECT); /* else its time has to pass first */
		json_decref(forget(&plain));
		assert_gone();
		assert_int_equal(find_kept("r"), 1);
		assert_true(there(work, "runs/r/train-1/output/model"));
		json_decref(forget(&all));
		assert_false(there(work, "runs/r"));
		assert_int_equal(find_kept("r"), 0);
	}
	assert_in_range(after, 15, 100);
}

/* A look that cannot see all does not tell of a part; and it changes nothing. */
static void a_look_that_breaks_off_tells_nothing(void **unused)
{
	int after = 0, failed = 0;

	(void)unused;
	put_far_away();
	make_run();
	for (;; after++) {
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *ret = NULL;
		int lost = between->calls_lost, result;

		faulty_lose(between, after, 1);
		result = run_forget(journal, "r", &dry, NULL, NULL, NULL, &ret, &err);
		if (between->calls_lost == lost)
			break;
		failed += result < 0;
		if (result == 0) {
			assert_no_error(err);
			continue;
		}
		assert_contains(err->message, "the network is gone");
		assert_null(ret);
	}
	between->calls_to_lose = 0;
	assert_true(failed >= after - 2);
	assert_int_equal(between->writes, 2); /* of its events */
	assert_int_equal(events(), 2);
}

/* Data that was not counted is not removed: the list of what is kept would be gone. */
static void without_its_list_nothing_is_removed(void **unused)
{
	(void)unused;
	make_run();
	put_text(dir, "state/runs/r/kept.json/x", "in the way");
	assert_refused(&plain, EXIT_REFUSED, "kept.json");
	assert_int_equal(events(), 2);
	assert_true(there(work, "runs/r/log"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_removal_that_breaks_off_is_finished_by_the_next),
		OF(a_look_that_breaks_off_tells_nothing),
		OF(without_its_list_nothing_is_removed),
	};

	scheme = "dir";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
