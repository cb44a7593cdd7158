/* Promotions whose calls get lost, and two at once: one promotion, and an unbroken chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/model/model_fixture.h"

#define ROUNDS 25 /* of two processes that promote at once; tests/soak plays more */

/* Each call of a promotion to its store gets lost once, before or after it took effect; it is
 * repeated, and then there is one promotion. */
static void lose_each_call(bool replies, int calls)
{
	int after = 0, tries = 2;

	for (; tries > 1; after++) {
		struct fixture f = { 0 };
		struct promotion p = { .run = "run-3", .nonce = "n3", .generation = 3, .keep = 2 };

		begin(&f);
		promote_some(&f, 2, 2);
		head_of(f.model, 2, p.before);
		f.faulty->replies = replies;
		faulty_lose(f.faulty, after, calls);
		assert_int_equal(promote(&f, &p, &tries), MODEL_PROMOTED);
		if (f.faulty->calls_lost == 0)
			tries = 1;
		else if (tries == 1)
			tries = 2; /* it was looked up, or did not matter */
		f.faulty->calls_to_lose = 0;
		assert_chain(&f, 3);
		end(&f);
	}
	assert_true(after > 15); /* calls of a promotion */
}

static void test_each_call_is_lost(void **state)
{
	(void)state;
	lose_each_call(false, 1);
	lose_each_call(true, 1);
	lose_each_call(true, 2);
}

static int race_one(const char *folder, const char *url, const char *run)
{
	AUTO(auto_free) char *nonce = mem_format("%s-%ld", run, (long)getpid());
	const struct promotion p = { .run = run, .nonce = nonce, .generation = 1 };
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	struct store *store = NULL;
	struct err *err = NULL;
	struct model *model;
	int fate;

	must(store_open(folder, &store, &err), err);
	model = over(store);
	fate = promote_once(model, url, &p, &entry, &err);
	model_freep(&model);
	err_freep(&err);
	return fate;
}

static void test_two_processes_promote_at_once(void **state)
{
	const char *rounds = getenv("STOKER_TEST_PROMOTIONS");

	(void)state;
	for (int i = rounds ? atoi(rounds) : ROUNDS; i > 0; i--) {
		struct fixture f = { 0 };
		AUTO(auto_free) char *url_a = NULL;
		AUTO(auto_free) char *url_b = NULL;
		int status, fates = 0;
		pid_t pids[2];

		begin(&f);
		url_a = checkpoint(&f, "a");
		url_b = checkpoint(&f, "b");
		for (int side = 0; side < 2; side++) {
			pids[side] = fork();
			if (pids[side] == 0)
				_exit(10 +
				      race_one(f.folder, side ? url_b : url_a, side ? "b" : "a"));
		}
		for (int side = 0; side < 2; side++) {
			assert_int_equal(waitpid(pids[side], &status, 0), pids[side]);
			assert_true(WIFEXITED(status));
			fates += WEXITSTATUS(status);
		}
		assert_int_equal(fates, 20 + MODEL_PROMOTED + MODEL_OVERTAKEN);
		assert_chain(&f, 1);
		end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_call_is_lost),
		cmocka_unit_test(test_two_processes_promote_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
