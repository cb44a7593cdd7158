/* Where a run that is forgotten is looked for, what is asked before anything is removed, and what
 * is counted and told: see jobs/run/journal/forget.h. */
#include "forget_fixture.h"

#include <errno.h>
#include <limits.h>

#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/lease_internal.h"

static const char *workspace; /* of the plan */

static void make_ended_run(const char *url)
{
	begin_run(workspace, url);
	end_run();
}

static void measure(const char *root, const char *path, uint64_t *files, uint64_t *bytes)
{
	AUTO(auto_free) char *whole = fs_join(root, path);
	uint64_t more_files = 0, more_bytes = 0;
	struct err *err = NULL;

	if (!fs_exists(whole))
		return;
	fs_measure(whole, &more_files, &more_bytes, &err);
	assert_no_error(err);
	*files += more_files;
	*bytes += more_bytes;
}

static int next_descriptor(void)
{
	int next = open("/", O_RDONLY | O_CLOEXEC);

	close(next);
	return next;
}

static void all_that_goes_is_counted_and_nothing_else(void **unused)
{
	int descriptor;
	uint64_t files = 0, bytes = 0;
	AUTO(auto_free) char *lock = fs_join(state, "runs/r/" LEASE_LOCK);
	AUTO(auto_free) char *lease = fs_join(state, "runs/r/" LEASE_OBJECT);

	(void)unused;
	workspace = work;
	make_ended_run(NULL);
	put_text(work, "runs/r/train-1/log", "12345");
	put_text(state, "runs/r/a/b", "123");
	descriptor = next_descriptor();
	measure(work, "runs/r", &files, &bytes);
	measure(state, "runs/r", &files, &bytes);
	for (int i = 0; i < 2; i++) {
		json_auto_t *ret = forget(i == 0 ? &dry : &plain);

		assert_int_equal(js_int(ret, "files", -1), files);
		assert_int_equal(js_int(ret, "size_bytes", -1), bytes);
		assert_int_equal(json_object_size(ret), 3);
		/* a look takes no lease */
		assert_false(fs_exists(lock));
		assert_false(fs_exists(lease));
		assert_int_equal(events(), i == 0 ? 2 : 0);
		assert_int_equal(next_descriptor(), descriptor);
	}
}

static void a_workspace_that_the_plan_does_not_name_is_beside_the_state(void **unused)
{
	AUTO(auto_free) char *usual = fs_join(state, "workspace");
	json_auto_t *ret = NULL;

	(void)unused;
	workspace = NULL;
	make_ended_run(NULL);
	put_text(usual, "runs/r/log", "1");
	put_text(usual, "runs/s/log", "1");
	put_text(work, "runs/r/log", "1");
	ret = forget(&plain);
	assert_false(there(usual, "runs/r"));
	assert_true(there(usual, "runs/s/log"));
	assert_true(there(work, "runs/r/log")); /* not the run's own, as far as is known */
}

/* The workspace is not counted twice, by whichever name. */
static void a_workspace_may_be_the_state(void **unused)
{
	AUTO(auto_free) char *link = fs_join(dir, "link");
	const char *const names[] = { state, link };

	(void)unused;
	assert_int_equal(symlink(state, link), 0);
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		uint64_t files = 0, bytes = 0;
		json_auto_t *counted = NULL, *ret = NULL;

		workspace = names[i];
		make_ended_run(NULL);
		put_text(state, "runs/r/train-1/log", "12345");
		measure(state, "runs/r", &files, &bytes);
		counted = forget(&dry);
		assert_int_equal(js_int(counted, "files", -1), files);
		assert_int_equal(js_int(counted, "size_bytes", -1), bytes);
		ret = forget(&plain);
		assert_true(json_equal(counted, ret));
		assert_false(there(state, "runs/r"));
	}
}

/* The run may have left nothing but its folders. */
static void a_run_that_the_journal_does_not_know_leaves_no_folder(void **unused)
{
	AUTO(auto_free) char *usual = fs_join(state, "workspace");
	json_auto_t *ret = NULL, *again = NULL;

	(void)unused;
	put_text(state, "runs/r/rest", "12");
	put_text(usual, "runs/r/train-1/log", "123");
	assert_true(run_has_rests(journal, "r"));
	ret = forget(&plain);
	assert_int_equal(js_int(ret, "files", -1), 2);
	assert_int_equal(js_int(ret, "size_bytes", -1), 5);
	assert_false(there(state, "runs/r"));
	assert_false(there(usual, "runs/r"));
	assert_false(run_has_rests(journal, "r"));
	again = forget(&plain);
	assert_int_equal(js_int(again, "files", -1), 0);
}

/* ---- checkpoint.url ---- */

static void checkpoints_beside_the_folder_of_the_run_are_no_part_of_it(void **unused)
{
	static const struct {
		const char *url; /* beneath the workspace */
		bool within;
	} rows[] = {
		{ "runs", true },      { "runs/r", true },  { "runs/r/x", true },
		{ "runs/r-x", false }, { "runs/s", false }, { "run", false },
	};

	(void)unused;
	workspace = work;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *url = fs_join(work, rows[i].url);
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *ret = NULL;

		make_ended_run(url);
		if (!rows[i].within) {
			ret = forget(&plain);
			assert_int_equal(events(), 0);
			continue;
		}
		assert_refused(&plain, EXIT_REFUSED, "lie in the folder of run r: '");
		assert_refused(&dry, EXIT_REFUSED, "lie in the folder of run r: '");
		assert_int_equal(events(), 2);
		assert_int_equal(journal_forget(journal, "r", &err), 0);
	}
}

/* ---- objects in the way ---- */

static void what_is_no_folder_is_left_where_it_is(void **unused)
{
	(void)unused;
	workspace = work;
	make_ended_run(NULL);
	put_text(work, "runs/r", "a file");
	assert_refused(&plain, EXIT_REFUSED, "is a link or not a folder; nothing is removed");
	drop(work, "runs");
	put_text(work, "runs", "a file");
	assert_refused(&plain, EXIT_REFUSED, "is a link or not a folder; nothing is removed");
	{
		AUTO(auto_free) char *url = mem_format("dir:%s", work); /* named otherwise */
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(journal_forget(journal, "r", &err), 0);
		workspace = url;
		make_ended_run(NULL);
		assert_refused(&plain, EXIT_REFUSED, "is a link or not a folder");
	}
	assert_true(there(work, "runs"));
	assert_int_equal(events(), 2);
}

static void a_path_that_is_too_long_is_an_error(void **unused)
{
	AUTO(auto_free) char *name = mem_zero(NAME_MAX + 2, 1);
	AUTO(auto_free) char *place = NULL;

	(void)unused;
	memset(name, 'x', NAME_MAX + 1);
	place = fs_join(dir, name);
	workspace = place;
	make_ended_run(NULL);
	assert_refused(&plain, EXIT_REFUSED, "cannot open '");
	assert_int_equal(events(), 2);
}

static void a_run_that_is_driven_is_left_alone(void **unused)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *ret = NULL;
	int64_t wait_ms;

	(void)unused;
	workspace = work;
	make_ended_run(NULL);
	put_text(work, "runs/r/log", "1");
	assert_int_equal(lease_try(journal, "r", NULL, &lease, &wait_ms, &err), 1);
	assert_refused(&plain, EXIT_BUSY, "run r is driven by pid ");
	assert_true(there(work, "runs/r/log"));
	assert_int_equal(events(), 2);
	ret = forget(&dry); /* but it may be looked at */
	assert_true(js_int(ret, "files", -1) > 0);
	assert_int_equal(lease_keep(lease, &err), 0);
}

/* The end of the run is not known, nor its plan, perhaps. */
static void a_damaged_run_can_be_forgotten(void **unused)
{
	(void)unused;
	begin_run(work, NULL);
	put_text(work, "runs/r/log", "1");
	assert_refused(&plain, EXIT_REFUSED, "run r has not ended");
	if (strcmp(scheme, "dir") == 0) {
		put_text(state, "runs/r/events/000000000002.json", "{");
	} else {
		end_run();
		put_text(state, "runs/r/" LEASE_LOCK "/x", "in the place of the lock");
	}
	json_decref(forget(&plain));
	assert_int_equal(events(), 0);
	assert_false(there(work, "runs/r")); /* its plan was there yet */
	assert_false(there(state, "runs/r"));
}

/* An event may be of a later version, but not the plan. */
static void a_run_of_a_later_version_can_be_forgotten(void **unused)
{
	static const char event[] =
		"{\"by\":\"0123456789abcdef0123456789abcdef\",\"event\":{\"v\":1,\"run\":\"r\","
		"\"seq\":2,\"at\":\"2026-11-21T11:36:00.123Z\",\"event\":\"moon.landed\"}}\n";
	struct event ev = { .kind = EV_RUN_ENDED };

	(void)unused;
	if (strcmp(scheme, "dir") != 0)
		return;
	begin_run(work, NULL);
	put_text(state, "runs/r/events/000000000002.json", event);
	put_text(work, "runs/r/log", "1");
	assert_refused(&plain, EXIT_REFUSED, "run r has not ended");
	EVENT_SET(&ev, state, OUTCOME_SUCCEEDED);
	EVENT_SET(&ev, exit_code, 0);
	append(&ev, 3);
	json_decref(forget(&plain));
	assert_int_equal(events(), 0);
	assert_false(there(work, "runs/r"));
}

/* ---- the list of what is kept ---- */

static void the_list_tells_where_it_is(void **unused)
{
	AUTO(auto_free) char *path = fs_join(state, "runs/r/kept.json");
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *ret = NULL, *list = NULL;
	const json_t *kept, *keys;
	struct stat st;
	size_t entries = 0;

	(void)unused;
	workspace = work;
	make_ended_run(copies);
	make_only_copies();
	json_decref(forget(&dry));
	assert_false(fs_exists(path));
	ret = forget(&plain);
	assert_int_equal(js_load(path, (size_t)1 << 20, &list, &err), 0);
	assert_int_equal(js_int(list, "v", -1), 1);
	assert_string_equal(js_str(list, "workspace"), work);
	assert_string_equal(js_str(json_object_get(list, "checkpoint"), "url"), copies);
	kept = json_object_get(list, "kept");
	assert_int_equal(json_array_size(kept), 4);
	keys = json_object_get(json_array_get(kept, 0), "keys");
	assert_true(json_array_size(keys) > 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* and nothing else of it is left in the state */
	{
		AUTO(auto_free) char *folder = fs_join(state, "runs/r");
		uint64_t files, bytes;

		assert_int_equal(fs_measure(folder, &files, &bytes, &err), 0);
		entries = files;
	}
	assert_int_equal(entries, 1);
}

static void a_list_has_room_for_much(void **unused)
{
	AUTO(auto_free) char *text = mem_zero(((size_t)1 << 20) + 2, 1);

	(void)unused;
	memset(text, ' ', ((size_t)1 << 20) + 1);
	memcpy(text, "{}", 2);
	put_text(state, "runs/r/kept.json", text);
	assert_refused(&plain, EXIT_REFUSED, "kept.json");
	assert_true(run_has_rests(journal, "r"));
	text[(size_t)1 << 20] = '\0';
	put_text(state, "runs/r/kept.json", text);
	assert_int_equal(find_kept("r"), 1);
	json_decref(forget(&plain));
	assert_int_equal(find_kept("r"), 0);
}

/* ---- a journal of objects elsewhere ---- */

/* The objects of the run are not in the folder of this machine that goes with it. */
static void make_remote(void)
{
	free(journal->dir);
	journal->dir = fs_join(dir, "local");
	journal->is_remote = true;
}

static void of_a_remote_journal_objects_and_folder_go(void **unused)
{
	AUTO(auto_free) char *local = fs_join(dir, "local");
	uint64_t files = 0, bytes = 0;
	json_auto_t *counted = NULL, *ret = NULL;

	(void)unused;
	if (strcmp(scheme, "dir") != 0)
		return;
	workspace = NULL; /* nor is there a usual one */
	make_ended_run(NULL);
	make_remote();
	put_text(local, "runs/r/driver.log", "123");
	put_text(local, "workspace/runs/r/log", "1");
	put_text(state, "runs/s/x", "1");
	measure(state, "runs/r", &files, &bytes);
	counted = forget(&dry);
	assert_int_equal(js_int(counted, "files", -1), files + 1);
	assert_int_equal(js_int(counted, "size_bytes", -1), bytes + 3);
	assert_int_equal(events(), 2);
	assert_true(there(local, "runs/r/driver.log"));
	ret = forget(&plain);
	assert_true(json_equal(counted, ret));
	assert_int_equal(events(), 0);
	assert_false(there(state, "runs/r/created.json"));
	assert_false(there(state, "runs/r/" LEASE_OBJECT));
	assert_false(there(local, "runs/r"));
	assert_true(there(local, "workspace/runs/r/log"));
	assert_true(there(state, "runs/s/x"));
	assert_false(run_has_rests(journal, "r"));
}

/* The list lies among the objects, where another machine finds it. */
static void of_a_remote_journal_the_list_is_an_object(void **unused)
{
	AUTO(auto_free) char *local = fs_join(dir, "local");
	json_auto_t *ret = NULL, *again = NULL, *last = NULL;

	(void)unused;
	if (strcmp(scheme, "dir") != 0)
		return;
	workspace = work;
	make_ended_run(NULL);
	make_only_copies();
	put_text(state, "runs/r/outputs/train-9/x", "12");
	make_remote();
	ret = forget(&plain);
	assert_int_equal(json_array_size(json_object_get(ret, "kept")), 5);
	assert_true(there(state, "runs/r/kept.json"));
	assert_true(there(state, "runs/r/outputs/train-9/x"));
	assert_false(there(state, "runs/r/events"));
	assert_false(there(local, "runs/r/kept.json"));
	assert_int_equal(find_kept("r"), 1);
	assert_true(run_has_rests(journal, "r"));
	again = forget(&plain);
	assert_true(json_equal(json_object_get(ret, "kept"), json_object_get(again, "kept")));
	last = forget(&all);
	assert_int_equal(json_array_size(json_object_get(last, "kept")), 0);
	assert_false(there(state, "runs/r/kept.json"));
	assert_false(there(state, "runs/r/outputs/train-9/x"));
	assert_false(there(work, "runs/r"));
	put_text(state, "runs/r/kept.json", "{");
	{
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(run_find_kept(journal, "r", &err), -1);
	}
	assert_true(run_has_rests(journal, "r")); /* it is not known to be gone */
}

/* A workspace of objects; here both are one folder. */
static void of_a_workspace_of_objects_all_but_the_only_copies_goes(void **unused)
{
	AUTO(auto_free) char *url = mem_format("dir:%s", work);
	json_auto_t *ret = NULL;

	(void)unused;
	workspace = url;
	make_ended_run(NULL);
	put_text(work, "runs/r/log", "123");
	put_text(work, "runs/s/log", "123");
	ret = forget(&dry);
	assert_true(there(work, "runs/r/log"));
	json_decref(ret);
	put_text(work, "runs/r/outputs/train-1/x", "1");
	ret = forget(&plain);
	assert_true(there(work, "runs/r/outputs/train-1/x"));
	assert_false(there(work, "runs/r/log"));
	assert_true(there(work, "runs/s/log"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(all_that_goes_is_counted_and_nothing_else),
		OF(a_workspace_that_the_plan_does_not_name_is_beside_the_state),
		OF(a_workspace_may_be_the_state),
		OF(a_run_that_the_journal_does_not_know_leaves_no_folder),
		OF(checkpoints_beside_the_folder_of_the_run_are_no_part_of_it),
		OF(what_is_no_folder_is_left_where_it_is),
		OF(a_path_that_is_too_long_is_an_error),
		OF(a_run_that_is_driven_is_left_alone),
		OF(a_damaged_run_can_be_forgotten),
		OF(a_run_of_a_later_version_can_be_forgotten),
		OF(the_list_tells_where_it_is),
		OF(a_list_has_room_for_much),
		OF(of_a_remote_journal_objects_and_folder_go),
		OF(of_a_remote_journal_the_list_is_an_object),
		OF(of_a_workspace_of_objects_all_but_the_only_copies_goes),
	};
	static const char *const schemes[] = { "sqlite", "dir" };
	int failed = 0;

	for (size_t i = 0; i < STK_LENGTH(schemes); i++) {
		scheme = schemes[i];
		failed += cmocka_run_group_tests_name(scheme, tests, NULL, NULL);
	}
	return failed;
}
