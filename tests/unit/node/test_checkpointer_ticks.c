/* A last pass while a service is away, refuses or is slow: what is tried again, for how long, and
 * what is said of it; by a clock that the test sets. */
#include "tests/unit/node/checkpointer_bench.h"

#include "jobs/checkpoint/checkpoint.h"

#define BEGIN_MS ((int64_t)1000 * 1000)
#define AGAIN_MS 5000
#define LAST_MS  600000

/* ---- the clock, and the copy ---- */

static int64_t now_ms, back_at_ms; /* the service is there again; since the beginning */
static enum exit_code code;        /* of what goes wrong until then */
static int os_errno, copies;
static const int64_t *moves; /* bytes that have moved, each 400 ms later; ends with -1 */

struct mono __wrap_clock_mono_now(void);
bool __wrap_cancel_pause(int64_t ms);
int __wrap_checkpoint_copy(const struct ckpt *ckpt, const struct ckpt_root *root, ckpt_copy_fn fn,
			   void *arg, struct err **err);
int __real_checkpoint_copy(const struct ckpt *ckpt, const struct ckpt_root *root, ckpt_copy_fn fn,
			   void *arg, struct err **err);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

bool __wrap_cancel_pause(int64_t ms)
{
	if (ms != AGAIN_MS)
		_exit(77);
	now_ms += ms;
	return true;
}

int __wrap_checkpoint_copy(const struct ckpt *ckpt, const struct ckpt_root *root, ckpt_copy_fn fn,
			   void *arg, struct err **err)
{
	copies++;
	if (now_ms - BEGIN_MS < back_at_ms) {
		err_set(err, code, "s3 says no");
		(*err)->os_errno = os_errno;
		return -1;
	}
	for (; moves && *moves >= 0; moves++) {
		now_ms += 400;
		if (!fn(arg, (uint64_t)*moves, 1000))
			_exit(78);
	}
	return __real_checkpoint_copy(ckpt, root, NULL, NULL, err);
}

static int reset(void **state)
{
	now_ms = BEGIN_MS;
	back_at_ms = 0;
	code = EXIT_UNREACHABLE;
	os_errno = copies = 0;
	moves = NULL;
	return place_make(state);
}

/* The last pass over one checkpoint. */
static void pass_last(struct bench *bench, struct place *place, const char *root)
{
	bench_load(bench, place, order_saving(place, root, NEVER_MS), "0");
	save(bench, 10);
	start_checkpointer(bench);
	tell(bench, "\"last\"");
}

/* Returns how often news of `kind` comes from now on, up to the news `end`, which `ret` gets. */
static int count_until(struct bench *bench, const char *kind, const char *end, json_t **ret)
{
	json_t *line;
	int count = 0;

	while ((line = next(bench))) {
		if (js_is(line, "news", end)) {
			*ret = line;
			return count;
		}
		count += js_is(line, "news", kind);
		json_decref(line);
	}
	fail_msg("no news of '%s'", end);
	return 0;
}

/* ---- */

static void what_a_service_that_is_away_does_not_take_is_tried_each_five_seconds(void **state)
{
	AUTO(auto_free) char *root = store_of(*state);
	json_auto_t *marked = NULL;
	struct bench bench;

	back_at_ms = 10 * AGAIN_MS;
	pass_last(&bench, *state, root);
	assert_int_equal(count_until(&bench, "copying", "marked", &marked), 10);
	json_decref(hear(&bench, "kept"));
	close_checkpointer(&bench);
	assert_true(is_there(&bench, "far/marks/step-10" MARK_SUFFIX));
}

static void after_ten_minutes_it_is_lost_by_the_service(void **state)
{
	AUTO(auto_free) char *root = store_of(*state);
	json_auto_t *lost = NULL;
	struct bench bench;

	back_at_ms = 10 * LAST_MS;
	pass_last(&bench, *state, root);
	assert_int_equal(count_until(&bench, "copying", "lost", &lost), LAST_MS / AGAIN_MS);
	assert_string_equal(js_str(lost, "name"), "step-10");
	assert_has(js_str(lost, "why"), "s3 says no");
	assert_string_equal(js_str(lost, "class"), "transient-infra");
	assert_int_equal(js_int(lost, "errno", -1), 0);
	close_checkpointer(&bench);
}

static void what_is_refused_is_not_asked_for_again(void **state)
{
	static const struct {
		bool store;
		int os_errno;
		const char *class;
	} rows[] = { { true, 0, "quota-permission" }, { true, 28, NULL }, { false, 0, NULL } };

	code = EXIT_REFUSED;
	back_at_ms = 10 * LAST_MS;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *root = rows[i].store ? store_of(*state) : far_of(*state);
		json_auto_t *lost = NULL;
		struct bench bench;

		os_errno = rows[i].os_errno;
		pass_last(&bench, *state, root);
		assert_int_equal(count_until(&bench, "copying", "lost", &lost), 0);
		if (rows[i].class)
			assert_string_equal(js_str(lost, "class"), rows[i].class);
		else
			assert_null(js_str(lost, "class"));
		assert_int_equal(js_int(lost, "errno", -1), rows[i].os_errno);
		close_checkpointer(&bench);
	}
}

/* Waiting for a service that says nothing is no progress. */
static void bytes_that_move_are_told_at_most_once_a_second(void **state)
{
	static const struct {
		int64_t moves[12];
		int told;
	} rows[] = {
		{ { 1, 2, 3, 4, 5, 6, 7, 8, 9, -1 }, 3 }, /* at 0.4, 1.6 and 2.8 s */
		{ { 1, 1, 1, 1, 1, 1, 1, 1, 1, -1 }, 1 },
		{ { 0, 0, 0, 0, 0, 0, 0, 0, 0, -1 }, 0 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *root = far_of(*state);
		AUTO(auto_free) char *saved = NULL;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *marked = NULL;
		struct bench bench;

		moves = rows[i].moves;
		pass_last(&bench, *state, root);
		if (count_until(&bench, "copying", "marked", &marked) != rows[i].told)
			fail_msg("row %zu", i);
		saved = mem_copy(bench.config.checkpoint);
		close_checkpointer(&bench);
		must(fs_remove_tree(saved, &err), &err);
		must(fs_remove_tree(root, &err), &err);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_service_that_is_away_does_not_take_is_tried_each_five_seconds),
		TEST(after_ten_minutes_it_is_lost_by_the_service),
		TEST(what_is_refused_is_not_asked_for_again),
		TEST(bytes_that_move_are_told_at_most_once_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
