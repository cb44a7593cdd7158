/* The promises of jobs/run/journal/lease.h: those of both kinds on both, and those of the
 * object with lost writes and with holders that are dead, late or far away. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lease_fixture.h"

/* --- leases of both kinds --- */

static void one_has_it_and_the_other_is_told_who(void **state)
{
	AUTO(lease_freep) struct lease *mine = take(&slow), *other = NULL;
	AUTO(auto_free) char *us = mem_format("pid %ld on ", (long)getpid());
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	assert_busy(&slow, us);
	assert_int_equal(lease_keep(mine, &err), 0);
	/* Another run is another lease. */
	assert_int_equal(lease_try(journal, "other", &slow, &other, &wait_ms, &err), 1);
}

static void what_is_given_up_can_be_had_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct lease *lease = take(&slow);

		lease_freep(&lease);
		assert_null(lease);
	}
}

/* The holder is a process that has ended, however it did. */
static void what_a_dead_process_held_can_be_had_at_once(void **state)
{
	struct mono start = clock_mono_now();
	pid_t child = fork();
	struct lease *lease;
	int status;

	(void)state;
	if (child == 0) {
		take(&slow);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	lease = take(&slow);
	assert_true(clock_mono_now().ms - start.ms < slow.renew_ms);
	lease_freep(&lease);
}

static void after_a_removal_nothing_is_left_and_it_can_be_had_again(void **state)
{
	AUTO(auto_free) char *lock = mem_format("%s/runs/r/" LEASE_LOCK, dir);
	AUTO(auto_free) char *object = mem_format("%s/runs/r/" LEASE_OBJECT, dir);
	AUTO(lease_freep) struct lease *lease = take(&slow);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(lease_remove(lease, &err), 0);
	assert_false(fs_exists(lock));
	assert_false(fs_exists(object));
	assert_false(lease_is_mine(lease));
	assert_int_equal(lease_keep(lease, &err), -1);
	{
		AUTO(lease_freep) struct lease *next = take(&slow);

		/* The late end of the first takes nothing from the second, nor does another
		 * removal. */
		err_freep(&err);
		assert_int_equal(lease_remove(lease, &err), -1);
		assert_int_equal(err->code, EXIT_BUSY);
		lease_freep(&lease);
		assert_busy(&slow, "is driven by");
		err_freep(&err);
		assert_int_equal(lease_keep(next, &err), 0);
	}
}

static bool is_free(void)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int free_now = lease_check(journal, "r", &slow, &lease, &err);

	assert_true(free_now >= 0);
	return free_now == 1;
}

/* Asking takes nothing away, and leaves nothing behind. */
static void whoever_asks_learns_whether_somebody_has_it(void **state)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs", dir);
	struct lease *lease;
	pid_t child;
	int status;

	(void)state;
	assert_true(is_free());
	assert_false(fs_exists(folder));
	lease = take(&slow);
	assert_false(is_free());
	assert_busy(&slow, "is driven by");
	lease_freep(&lease);
	assert_true(is_free());
	child = fork();
	if (child == 0) {
		take(&slow);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(is_free());
}

static bool signal_holder(int signo)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;

	assert_true(lease_check(journal, "r", &slow, &lease, &err) >= 0);
	return lease_signal(lease, signo);
}

static void its_holder_hears_a_signal_while_it_has_it(void **state)
{
	int ready[2], status;
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_false(signal_holder(SIGTERM)); /* there is none */
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take(&slow);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(signal_holder(SIGTERM));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_false(signal_holder(SIGTERM)); /* its words are still there */
	close(ready[0]);
	close(ready[1]);
}

static void ask_without_end(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (is_free() || true)
		;
}

static void whoever_asks_keeps_nobody_from_having_it(void **state)
{
	pid_t asking[2];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(asking); i++) {
		asking[i] = fork();
		if (asking[i] == 0)
			ask_without_end();
	}
	for (int i = 0; i < 100; i++) {
		struct lease *lease = take(&slow);

		lease_freep(&lease);
	}
	for (size_t i = 0; i < STK_LENGTH(asking); i++) {
		kill(asking[i], SIGKILL);
		waitpid(asking[i], NULL, 0);
	}
}

/* Takes part in a race of many: starts when `gate` is closed, tells how it went, and keeps what it
 * has until `done` is closed. */
static _Noreturn void race(const struct lease_rules *rules, int gate, int told, int done)
{
	struct lease *lease = NULL;
	struct err *err = NULL;
	char how = 'e', none;

	if (read(gate, &none, 1) != 0)
		_exit(9);
	if (lease_take(journal, "r", rules, NULL, NULL, &lease, &err) == 0)
		how = 'w';
	else if (err->code == EXIT_BUSY)
		how = 'l';
	_exit(write(told, &how, 1) == 1 && read(done, &none, 1) == 0 ? 0 : 9);
}

/* Many processes at once; one has it. */
static void assert_one_of_many(const struct lease_rules *rules)
{
	enum { MANY = 8 };
	pid_t pids[MANY];
	int gate[2] = { -1, -1 }, told[2] = { -1, -1 }, done[2] = { -1, -1 }, winners = 0;

	assert_true(pipe(gate) == 0 && pipe(told) == 0 && pipe(done) == 0);
	for (int i = 0; i < MANY; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(gate[1]);
			close(done[1]);
			race(rules, gate[0], told[1], done[0]);
		}
	}
	close(gate[1]);
	for (int i = 0; i < MANY; i++) {
		char how;

		assert_int_equal(read(told[0], &how, 1), 1);
		assert_true(how == 'w' || how == 'l');
		winners += how == 'w';
	}
	assert_int_equal(winners, 1);
	close(done[1]);
	for (int i = 0; i < MANY; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < 2; i++)
		close(told[i]);
	close(gate[0]);
	close(done[0]);
}

static void of_many_one_has_it(void **state)
{
	(void)state;
	assert_one_of_many(&slow);
}

/* --- lease on an object --- */

static json_t *read_object(void)
{
	AUTO(auto_free) char *path = object_path();
	struct err *err = NULL;
	json_t *object = NULL;

	assert_int_equal(js_load(path, 65536, &object, &err), 0);
	return object;
}

/* Writes the object as somebody else would have, on another machine. */
static void write_foreign(int64_t renewed)
{
	AUTO(auto_free) char *path = object_path();
	AUTO(auto_free) char *text = NULL;
	json_auto_t *object = json_object();
	struct err *err = NULL;

	js_put(object, "held", json_true());
	js_put_str(object, "host", "far-away");
	js_put(object, "pid", json_integer(getpid()));
	js_put_str(object, "place", "another boot");
	js_put(object, "epoch", json_integer(4));
	js_put(object, "renewed", json_integer(renewed));
	js_put_str(object, "nonce", "another");
	text = js_line(object);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

static void a_silent_holder_is_replaced_when_its_time_is_over(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct mono start = clock_mono_now();
	int64_t wait_ms;
	json_auto_t *object = NULL;
	int taken;

	(void)state;
	make_folder();
	write_foreign(1);
	while ((taken = lease_try(journal, "r", &fast, &lease, &wait_ms, &err)) == 0) {
		assert_true(wait_ms > 0 && wait_ms <= fast.valid_ms);
		assert_string_not_equal(lease_holder(lease), "");
		assert_false(lease_is_mine(lease));
		pause_ms(wait_ms);
	}
	assert_int_equal(taken, 1);
	assert_true(clock_mono_now().ms - start.ms >= fast.valid_ms);
	object = read_object();
	assert_int_equal(js_int(object, "epoch", 0), 5);
	assert_int_equal(js_int(object, "pid", 0), getpid());
}

static void a_holder_that_renews_is_never_replaced(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	write_foreign(1);
	assert_int_equal(lease_try(journal, "r", &fast, &lease, &wait_ms, &err), 0);
	pause_ms(fast.valid_ms * 2);
	write_foreign(2);
	/* However long nobody looked. */
	assert_int_equal(lease_try(journal, "r", &fast, &lease, &wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_non_null(strstr(err->message, "far-away"));
}

static void the_time_that_its_holder_counts_on_is_respected(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = object_path();
	const char *text = "{\"held\":true,\"nonce\":\"x\",\"place\":\"y\",\"valid_ms\":60000}";
	int64_t wait_ms;

	(void)state;
	make_folder();
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
	assert_int_equal(lease_try(journal, "r", &fast, &lease, &wait_ms, &err), 0);
	pause_ms(fast.valid_ms + 100);
	assert_int_equal(lease_try(journal, "r", &fast, &lease, &wait_ms, &err), 0);
}

static void it_is_renewed_when_due_and_not_before(void **state)
{
	AUTO(lease_freep) struct lease *lease = take(&brisk);
	AUTO(err_freep) struct err *err = NULL;
	int64_t last = 0;

	(void)state;
	assert_true(lease_due(lease) > 0 && lease_due(lease) <= brisk.renew_ms);
	for (int i = 0; i < 3; i++) {
		json_auto_t *object = read_object();
		int64_t renewed = js_int(object, "renewed", -1);

		assert_int_equal(renewed, last);
		assert_int_equal(lease_keep(lease, &err), 0); /* too early */
		pause_ms(lease_due(lease) + 1);
		assert_int_equal(lease_due(lease), 0);
		assert_int_equal(lease_keep(lease, &err), 0);
		last++;
	}
	assert_true(lease_is_mine(lease));
}

static void who_was_replaced_learns_it_before_the_next_effect(void **state)
{
	AUTO(lease_freep) struct lease *lease = take(&fast);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *object = NULL;

	(void)state;
	pause_ms(fast.valid_ms);
	assert_false(lease_is_mine(lease));
	write_foreign(7);
	assert_int_equal(lease_keep(lease, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_non_null(strstr(err->message, "far-away"));
	err_freep(&err);
	assert_int_equal(lease_keep(lease, &err), -1);
	/* A lease that was lost takes nothing away when it leaves. */
	lease_freep(&lease);
	object = read_object();
	assert_int_equal(js_int(object, "renewed", 0), 7);
}

static void who_was_late_and_not_replaced_has_it_anew(void **state)
{
	AUTO(lease_freep) struct lease *lease = take(&fast);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	pause_ms(fast.valid_ms * 2);
	assert_false(lease_is_mine(lease));
	assert_int_equal(lease_keep(lease, &err), 0);
	assert_true(lease_is_mine(lease));
}

static void a_renewal_whose_reply_is_lost_counts(void **state)
{
	static const enum fault faults[] = { FAULT_REPLY_LOST, FAULT_REPEATED, FAULT_REQUEST_LOST };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(faults); i++) {
		struct lease *lease = take(&brisk);
		struct faulty_store *store = put_faults(lease);
		AUTO(err_freep) struct err *err = NULL;

		store->faults[0] = faults[i];
		pause_ms(lease_due(lease) + 1);
		assert_int_equal(lease_keep(lease, &err), 0);
		assert_null(err);
		assert_true(lease_is_mine(lease));
		lease_freep(&lease);
		faulty_free(&store->base);
	}
}

static void taking_it_survives_a_lost_reply_too(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct lease *lease = take(&brisk);
	struct faulty_store *store = put_faults(lease);
	int64_t wait_ms;

	(void)state;
	lease_object_release(lease);
	lease->held = false;
	store->faults[store->next] = FAULT_REPLY_LOST;
	assert_int_equal(lease_object_try(lease, &wait_ms, &err), 1);
	assert_true(lease_is_mine(lease));
	lease_freep(&lease);
	faulty_free(&store->base);
}

static void without_its_store_it_is_kept_for_a_while_and_is_ours_again_with_it(void **state)
{
	static const struct lease_rules rules = { .valid_ms = 3000, .renew_ms = 1000 };
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);
	AUTO(err_freep) struct err *err = NULL;
	struct mono start = lease->since, before;
	int kept;

	(void)state;
	store->unreadable = true;
	for (;;) {
		for (size_t i = 0; i < STK_LENGTH(store->faults); i++)
			store->faults[i] = FAULT_REQUEST_LOST;
		store->next = 0;
		/* The renewal is tried again, or given up, before anybody else may begin. */
		before = clock_mono_now();
		assert_true(before.ms + lease_due(lease) - start.ms <= rules.valid_ms ||
			    lease_due(lease) == 0);
		pause_ms(lease_due(lease) + 1);
		before = clock_mono_now();
		kept = lease_keep(lease, &err);
		if (kept < 0)
			break;
		assert_true(before.ms - start.ms < rules.valid_ms);
	}
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_false(lease_is_mine(lease));
	/* Nobody took it meanwhile. */
	store->unreadable = false;
	memset(store->faults, 0, sizeof store->faults);
	store->next = 0;
	err_freep(&err);
	pause_ms(lease_due(lease) + 1);
	assert_int_equal(lease_keep(lease, &err), 0);
	assert_true(lease_is_mine(lease));
	lease_freep(&lease);
	faulty_free(&store->base);
}

static void of_many_one_has_what_a_silent_holder_left(void **state)
{
	/* Longer than a busy machine keeps one of them from its first look: who has it then
	 * does not renew it. */
	static const struct lease_rules rules = { .valid_ms = 5000, .renew_ms = 1000 };

	(void)state;
	make_folder();
	write_foreign(1);
	assert_one_of_many(&rules);
}

#define OF_BOTH_KINDS                                                                              \
	TEST(one_has_it_and_the_other_is_told_who), TEST(what_is_given_up_can_be_had_at_once),     \
		TEST(what_a_dead_process_held_can_be_had_at_once),                                 \
		TEST(after_a_removal_nothing_is_left_and_it_can_be_had_again),                     \
		TEST(of_many_one_has_it), TEST(whoever_asks_learns_whether_somebody_has_it),       \
		TEST(its_holder_hears_a_signal_while_it_has_it)

int main(void)
{
	const struct CMUnitTest lock[] = {
		OF_BOTH_KINDS,
		TEST(whoever_asks_keeps_nobody_from_having_it),
	};
	const struct CMUnitTest object[] = {
		OF_BOTH_KINDS,
		TEST(a_silent_holder_is_replaced_when_its_time_is_over),
		TEST(a_holder_that_renews_is_never_replaced),
		TEST(the_time_that_its_holder_counts_on_is_respected),
		TEST(it_is_renewed_when_due_and_not_before),
		TEST(who_was_replaced_learns_it_before_the_next_effect),
		TEST(who_was_late_and_not_replaced_has_it_anew),
		TEST(a_renewal_whose_reply_is_lost_counts),
		TEST(taking_it_survives_a_lost_reply_too),
		TEST(without_its_store_it_is_kept_for_a_while_and_is_ours_again_with_it),
		TEST(of_many_one_has_what_a_silent_holder_left),
	};
	int failed;

	scheme = "sqlite";
	failed = cmocka_run_group_tests_name("lock", lock, NULL, NULL);
	scheme = "dir";
	return failed + cmocka_run_group_tests_name("object", object, NULL, NULL);
}
