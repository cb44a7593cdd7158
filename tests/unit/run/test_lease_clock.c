/* When a lease on an object store is renewed, watched, taken and lost, by a clock of the test's
 * own, and what its object says. See jobs/run/journal/lease.h. */
#include "lease_clock_fixture.h"

/* ---- content of the object ---- */

static void the_object_says_who_has_it_since_when_and_for_how_long(void **state)
{
	struct lease *lease = take(&rules);
	json_auto_t *one = object(), *given_up = NULL, *next = NULL;
	char host[256] = "?", pids[64] = "", times[64] = "";
	AUTO(auto_free) char *place = NULL;
	struct proc_id self;

	(void)state;
	gethostname(host, sizeof host - 1);
	assert_int_equal(proc_identify(getpid(), &self), 0);
	assert_true(readlink("/proc/self/ns/pid", pids, sizeof pids - 1) > 0);
	if (readlink("/proc/self/ns/time", times, sizeof times - 1) < 0)
		times[0] = '\0';
	place = mem_format("%s %s %s", self.boot_id, pids, times);
	assert_int_equal(js_int(one, "v", -1), 1);
	assert_string_equal(js_str(one, "run"), "r");
	assert_true(js_bool(one, "held", false));
	assert_string_equal(js_str(one, "host"), host);
	assert_int_equal(js_int(one, "pid", -1), getpid());
	assert_int_equal(js_int(one, "started", -1), self.start_ticks);
	assert_string_equal(js_str(one, "place"), place);
	assert_int_equal(js_int(one, "valid_ms", -1), 6000);
	assert_int_equal(js_int(one, "clock", -1), clock_ms);
	assert_int_equal(js_int(one, "epoch", -1), 1);
	assert_int_equal(js_int(one, "renewed", -1), 0);
	assert_int_equal(strspn(js_str(one, "nonce"), "0123456789abcdef"), 32);
	assert_int_equal(strlen(js_str(one, "nonce")), 32);
	clock_ms += 77;
	lease_freep(&lease);
	given_up = object();
	assert_false(js_bool(given_up, "held", true));
	assert_int_equal(js_int(given_up, "clock", -1), clock_ms);
	assert_string_equal(js_str(given_up, "nonce"), js_str(one, "nonce"));
	lease = take(&rules);
	next = object();
	assert_int_equal(js_int(next, "epoch", -1), 2);
	assert_string_not_equal(js_str(next, "nonce"), js_str(one, "nonce"));
	lease_freep(&lease);
}

static void without_rules_there_are_usual_ones(void **state)
{
	struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *value = NULL;
	int64_t wait_ms;

	(void)state;
	assert_int_equal(lease_try(journal, "r", NULL, &lease, &wait_ms, &err), 1);
	value = object();
	assert_int_equal(js_int(value, "valid_ms", -1), 60000);
	assert_int_equal(lease_due(lease), 20000);
	lease_freep(&lease);
}

/* ---- holder of the lease ---- */

static void who_gave_it_up_need_not_be_waited_for(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	json_auto_t *value = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	value = foreign("elsewhere");
	js_put(value, "held", json_false());
	put_object(value);
	assert_int_equal(try_once(&lease, &wait_ms), 1);
}

static void a_holder_of_this_machine_is_known_by_its_process(void **state)
{
	const struct {
		bool other_start; /* the id is another process's by now */
		int64_t age;
		int taken;
	} rows[] = {
		{ false, 0, -1 },     { false, 1999, -1 }, { false, 2000, 0 },
		{ false, 100000, 0 }, { false, -1, 0 },    { true, 0, 1 },
	};
	json_auto_t *ours = NULL;

	(void)state;
	ours = our_object();
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *value = json_deep_copy(ours);
		int64_t wait_ms;

		js_put_str(value, "nonce", "another");
		js_put(value, "clock", json_integer(clock_ms - rows[i].age));
		if (rows[i].other_start)
			js_put(value, "started", json_integer(js_int(value, "started", 0) + 1));
		put_object(value);
		assert_int_equal(lease_check(journal, "r", &rules, &looked, &err),
				 rows[i].taken == 1);
		assert_int_equal(lease_signal(looked, 0), !rows[i].other_start);
		if (try_once(&lease, &wait_ms) != rows[i].taken)
			fail_msg("row %zu", i);
	}
}

/* The same, where another scope has its process ids. */
static void a_holder_of_another_place_is_watched(void **state)
{
	json_auto_t *value = NULL;
	AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	value = foreign("elsewhere");
	js_put(value, "pid", json_integer(getpid()));
	put_object(value);
	assert_int_equal(try_once(&lease, &wait_ms), 0);
	assert_string_not_equal(lease_holder(lease), "");
	assert_false(lease_signal(lease, 0));
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 0);
	json_object_del(value, "place");
	json_object_del(value, "host");
	put_object(value);
	lease_freep(&lease);
	assert_int_equal(try_once(&lease, &wait_ms), 0);
	assert_string_equal(lease_holder(lease), "");
}

/* ---- watching ---- */

static void a_silent_holder_is_replaced_when_its_time_is_over(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	json_auto_t *value = NULL, *taken = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	value = foreign("elsewhere");
	assert_int_equal(try_once(&lease, &wait_ms), 0);
	assert_int_equal(wait_ms, 500); /* a quarter of the pause between renewals */
	clock_ms += 5501;
	assert_int_equal(try_once(&lease, &wait_ms), 0);
	assert_int_equal(wait_ms, 499);
	clock_ms += 498;
	assert_int_equal(try_once(&lease, &wait_ms), 0);
	assert_int_equal(wait_ms, 1);
	clock_ms += 1;
	assert_int_equal(try_once(&lease, &wait_ms), 1);
	taken = object();
	assert_int_equal(js_int(taken, "epoch", -1), 5);
	assert_int_equal(js_int(taken, "renewed", -1), 0);
	assert_true(lease_is_held(lease));
	assert_false(lease_is_held(NULL));
}

/* The longer time counts: its own or that of the rules; but no object asks for more than ten
 * minutes. */
static void the_time_of_the_holder_counts_too(void **state)
{
	static const int64_t rows[][2] = { { 0, 6000 },    { 5999, 6000 },     { 6000, 6000 },
					   { 6001, 6001 }, { 600000, 600000 }, { 600001, 6000 },
					   { -1, 6000 } };

	(void)state;
	make_folder();
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(lease_freep) struct lease *lease = NULL;
		json_auto_t *value = foreign("elsewhere");
		int64_t wait_ms;

		js_put(value, "valid_ms", json_integer(rows[i][0]));
		put_object(value);
		assert_int_equal(try_once(&lease, &wait_ms), 0);
		clock_ms += rows[i][1] - 1;
		assert_int_equal(try_once(&lease, &wait_ms), 0);
		clock_ms++;
		if (try_once(&lease, &wait_ms) != 1)
			fail_msg("row %zu", i);
	}
}

static void a_renewal_ends_the_watch(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *value = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	value = foreign("elsewhere");
	assert_int_equal(try_once(&lease, &wait_ms), 0);
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 0);
	clock_ms += 5999;
	js_put(value, "renewed", json_integer(4));
	put_object(value);
	assert_int_equal(try_once(&lease, &wait_ms), -1);
	/* A look goes on from there. */
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 0);
	clock_ms += 10;
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 0);
	clock_ms += 5999;
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 0);
	clock_ms += 1;
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 1);
}

/* ---- renewing ---- */

static void it_is_renewed_when_that_is_due(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);
	json_auto_t *value = NULL;

	(void)state;
	assert_int_equal(lease_due(lease), 2000);
	clock_ms += 1999;
	assert_int_equal(lease_due(lease), 1);
	assert_int_equal(lease_keep(lease, &err), 0);
	assert_int_equal(store->writes, 0);
	clock_ms += 1;
	assert_int_equal(lease_due(lease), 0);
	assert_int_equal(lease_keep(lease, &err), 0);
	assert_int_equal(store->writes, 1);
	assert_int_equal(lease_due(lease), 2000);
	value = object();
	assert_int_equal(js_int(value, "renewed", -1), 1);
	assert_int_equal(js_int(value, "clock", -1), clock_ms);
	clock_ms += 9000;
	assert_int_equal(lease_due(lease), 0);
	lease_freep(&lease);
	faulty_free(&store->base);
}

/* The holder stops a sixth before anybody else may begin. */
static void its_time_is_over_before_that_of_the_rules(void **state)
{
	AUTO(lease_freep) struct lease *lease = take(&rules);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	clock_ms += 4999;
	assert_true(lease_is_mine(lease));
	clock_ms += 1;
	assert_false(lease_is_mine(lease));
	assert_true(lease_is_held(lease)); /* nobody else is known to have it */
	lease->next.ms = clock_ms + 1;
	assert_int_equal(lease_keep(lease, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "could not renew the lease on run r in time: '"));
	assert_non_null(strstr(err->message, "has not answered"));
	err_freep(&err);
	lease->next.ms = clock_ms;
	assert_int_equal(lease_keep(lease, &err), 0);
	assert_true(lease_is_mine(lease));
}

static void without_an_answer_it_is_tried_again_soon(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);

	(void)state;
	store->unreadable = true;
	memset(store->faults, 0, sizeof store->faults);
	for (size_t i = 0; i < STK_LENGTH(store->faults); i++)
		store->faults[i] = FAULT_REQUEST_LOST;
	clock_ms += 2000;
	assert_int_equal(lease_keep(lease, &err), 0);
	assert_null(err);
	assert_int_equal(store->writes, 2); /* the first may only have found out how it stands */
	assert_int_equal(lease_due(lease), 500);
	clock_ms += 3000;
	assert_int_equal(lease_keep(lease, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "could not renew the lease on run r in time"));
	assert_non_null(strstr(err->message, "the network is gone"));
	assert_int_equal(store->writes, 3); /* it is over: once is enough */
	assert_int_equal(lease_due(lease), 500);
	store->unreadable = false;
	store->next = STK_LENGTH(store->faults);
	lease_freep(&lease);
	faulty_free(&store->base);
}

/* The pauses double up to five seconds. */
static void right_conditions_that_are_refused_are_tried_ever_more_rarely(void **state)
{
	static const int64_t pauses[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	lease_object_release(lease);
	lease->held = false;
	for (size_t i = 0; i < STK_LENGTH(pauses); i++) {
		int64_t wait_ms = -7;

		store->faults[0] = FAULT_REFUSED;
		store->next = 0;
		clock_ms += 10;
		assert_int_equal(lease_object_try(lease, &wait_ms, &err), 0);
		assert_int_equal(wait_ms, pauses[i]);
		assert_int_equal(lease->refused_at.ms, 1000010);
		assert_false(lease_is_held(lease));
	}
	lease_freep(&lease);
	faulty_free(&store->base);
}

/* ---- size of the object ---- */

static void an_object_that_is_too_large_is_an_error(void **state)
{
	AUTO(auto_free) char *path = object_path();
	AUTO(auto_free) char *text = mem_zero(((size_t)64 << 10) + 2, 1);

	(void)state;
	make_folder();
	memset(text, ' ', ((size_t)64 << 10) + 1);
	memcpy(text, "{\"nonce\":\"x\",\"held\":false}", 26);
	for (size_t more = 2; more-- > 0;) {
		AUTO(lease_freep) struct lease *lease = NULL;
		AUTO(err_freep) struct err *err = NULL;
		int64_t wait_ms;

		assert_int_equal(fs_write_atomic(path, text, ((size_t)64 << 10) + more, 0600, &err),
				 0);
		assert_int_equal(lease_try(journal, "r", &rules, &lease, &wait_ms, &err),
				 more ? -1 : 1);
		if (more)
			assert_int_equal(err->code, EXIT_REFUSED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BY_CLOCK(the_object_says_who_has_it_since_when_and_for_how_long),
		BY_CLOCK(without_rules_there_are_usual_ones),
		BY_CLOCK(who_gave_it_up_need_not_be_waited_for),
		BY_CLOCK(a_holder_of_this_machine_is_known_by_its_process),
		BY_CLOCK(a_holder_of_another_place_is_watched),
		BY_CLOCK(a_silent_holder_is_replaced_when_its_time_is_over),
		BY_CLOCK(the_time_of_the_holder_counts_too),
		BY_CLOCK(a_renewal_ends_the_watch),
		BY_CLOCK(it_is_renewed_when_that_is_due),
		BY_CLOCK(its_time_is_over_before_that_of_the_rules),
		BY_CLOCK(without_an_answer_it_is_tried_again_soon),
		BY_CLOCK(right_conditions_that_are_refused_are_tried_ever_more_rarely),
		BY_CLOCK(an_object_that_is_too_large_is_an_error),
	};

	scheme = "dir";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
