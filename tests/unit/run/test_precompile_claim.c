/* The driver's part in the claim on a graph key: what it records, when it renews the claim and when
 * it gives it up. See jobs/run/precompile_claim.c. */
#include "faulty_store.h"

#include "attempt_fixture.h"

#include "jobs/base/process/loop.h"
#include "jobs/run/journal/lease.h"

#define PLAN "{'nodes':1,'metrics':[],'compile':{'kind':'jax','graph_key':'k'}}"

static int try_result, tries;
static const char *holder, *host, *taken_from;
static int64_t since_ms;
static int renewals, releases, probes, rechecks;
static bool probe_fails, recheck_fails, finds_warm, recheck_mine;
static int64_t newest_wait;

int __wrap_key_claim_try(struct key_claim *claim, struct err **err);
int __wrap_key_claim_renew(const struct key_claim *claim, struct err **err);
int __wrap_key_claim_release(const struct key_claim *claim, struct err **err);
int __wrap_cache_gate_probe(const struct driver *of, struct err **err);
int __wrap_cache_gate_recheck(struct driver *of, bool mine, bool *ret_warm, struct err **err);
struct watch *__real_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);
struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);

int __wrap_key_claim_try(struct key_claim *claim, struct err **err)
{
	tries++;
	assert_string_equal(claim->key, "k");
	assert_string_equal(claim->run, "r1");
	free(claim->holder);
	free(claim->host);
	free(claim->taken);
	claim->holder = holder ? mem_copy(holder) : NULL;
	claim->host = host ? mem_copy(host) : NULL;
	claim->taken = taken_from ? mem_copy(taken_from) : NULL;
	claim->since_ms = since_ms;
	return try_result < 0 ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : try_result;
}

int __wrap_key_claim_renew(const struct key_claim *claim, struct err **err)
{
	(void)err;
	assert_string_equal(claim->key, "k");
	renewals++;
	return 1;
}

int __wrap_key_claim_release(const struct key_claim *claim, struct err **err)
{
	(void)err;
	assert_string_equal(claim->key, "k");
	releases++;
	return 0;
}

int __wrap_cache_gate_probe(const struct driver *of, struct err **err)
{
	(void)of;
	probes++;
	return probe_fails ? err_set(err, EXIT_REFUSED, "not writable") : 0;
}

int __wrap_cache_gate_recheck(struct driver *of, bool mine, bool *ret_warm, struct err **err)
{
	(void)of;
	rechecks++;
	recheck_mine = mine;
	*ret_warm = finds_warm;
	return recheck_fails ? err_set(err, EXIT_REFUSED, "not readable") : 0;
}

struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg)
{
	newest_wait = delay_ms;
	return __real_loop_after(loop, 1, fn, arg);
}

static void begin_claim(void)
{
	AUTO(auto_free) char *cache = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)begin(PHASE_PRECOMPILE, PLAN);
	cache = mem_format("%s/cache", dir);
	assert_int_equal(store_open(cache, &driver.cache, &err), 0);
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
	driver.flow.state = FLOW_PRECOMPILE;
	driver.flow.policy.compiles = true;
	try_result = 1;
	tries = renewals = releases = probes = rechecks = 0;
	holder = host = taken_from = NULL;
	since_ms = 0;
	probe_fails = recheck_fails = finds_warm = recheck_mine = false;
}

static void end_claim(void)
{
	loop_freep(&driver.loop);
	driver.stood_down = true; /* it gives up nothing */
	precompile_claim_leave(&driver);
	lease_freep(&driver.lease);
	end();
}

static int64_t take(bool recheck)
{
	const struct effect effect = { .kind = EFFECT_CLAIM_KEY, .recheck = recheck };
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = -1;

	if (precompile_claim_take(&driver, &effect, &wait_ms, &err) < 0)
		fail_msg("%s", err->message);
	return wait_ms;
}

static void take_fails(bool recheck, const char *words)
{
	const struct effect effect = { .kind = EFFECT_CLAIM_KEY, .recheck = recheck };
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	assert_int_equal(precompile_claim_take(&driver, &effect, &wait_ms, &err), -1);
	assert_string_equal(err->message, words);
	assert_recorded(0);
}

static void a_claim_that_is_taken_is_recorded(void **state)
{
	(void)state;
	begin_claim();
	assert_int_equal(take(false), 0);
	assert_string_equal(newest("cache.claimed", "graph_key"), "k");
	assert_null(newest_value("cache.claimed", "reason"));
	assert_int_equal(probes, 1);
	assert_int_equal(rechecks, 0);
	taken_from = "run r0 is dead";
	take(true);
	assert_string_equal(newest("cache.claimed", "reason"), "run r0 is dead");
	assert_int_equal(rechecks, 1);
	assert_true(recheck_mine);
	end_claim();
}

static void a_claim_that_cannot_be_tried_is_not_taken(void **state)
{
	(void)state;
	begin_claim();
	try_result = -1;
	take_fails(true, "the network is gone");
	assert_int_equal(rechecks, 0);
	try_result = 1;
	probe_fails = true;
	take_fails(false, "not writable");
	recheck_fails = true;
	take_fails(true, "not readable");
	assert_int_equal(probes, 1);
	end_claim();
}

static void another_holder_is_recorded_whenever_it_changes(void **state)
{
	(void)state;
	begin_claim();
	try_result = 0;
	holder = "r2";
	host = "h";
	since_ms = 1;
	assert_int_equal(take(true), 1000);
	assert_false(recheck_mine);
	assert_int_equal(probes, 0);
	assert_string_equal(newest("cache.waiting", "graph_key"), "k");
	assert_string_equal(newest("cache.waiting", "holder"), "r2");
	assert_string_equal(newest("cache.waiting", "host"), "h");
	assert_int_equal(newest_int("cache.waiting", "since"), 1);
	assert_int_equal(take(false), 1000);
	assert_recorded(1);
	since_ms = 2;
	take(false);
	assert_recorded(2);
	holder = "r3";
	take(false);
	assert_recorded(3);
	host = NULL;
	take(false);
	assert_recorded(4);
	assert_null(newest_value("cache.waiting", "host"));
	holder = NULL;
	since_ms = 0;
	take(false);
	assert_recorded(5);
	assert_string_equal(newest("cache.waiting", "holder"), "?");
	assert_null(newest_value("cache.waiting", "since"));
	/* also after it was ours */
	try_result = 1;
	take(false);
	try_result = 0;
	take(false);
	assert_recorded(7);
	end_claim();
}

static void a_cache_that_others_have_filled_needs_no_claim(void **state)
{
	(void)state;
	for (int ours = 0; ours < 2; ours++) {
		begin_claim();
		try_result = ours;
		finds_warm = true;
		assert_int_equal(take(true), 0);
		assert_recorded(0);
		assert_int_equal(probes, 0);
		end_claim();
	}
}

static void a_claim_in_a_bucket_is_looked_at_more_rarely(void **state)
{
	AUTO(auto_free) char *folder = NULL;

	(void)state;
	begin_claim();
	folder = mem_format("%s/far", dir);
	store_freep(&driver.cache);
	driver.cache = &faulty_new(folder)->base;
	try_result = 0;
	assert_int_equal(take(false), 10000);
	end_claim();
}

static void quit(void *arg)
{
	loop_quit(arg);
}

static void it_is_renewed_while_the_run_needs_it(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_claim();
	assert_int_equal(loop_new(&driver.loop, &err), 0);
	driver.flow.key_held = true;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	assert_true(flow_keeps_key(&driver.flow));
	precompile_claim_keep(&driver);
	assert_int_equal(newest_wait, 20000);
	assert_int_equal(renewals, 1);
	__real_loop_after(driver.loop, 30, quit, driver.loop);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_true(renewals > 1); /* again and again */
	renewals = 0;
	driver.flow.state = FLOW_TRAIN;
	assert_false(flow_keeps_key(&driver.flow));
	precompile_claim_keep(&driver);
	assert_int_equal(renewals, 0);
	end_claim();
}

static void what_compiles_nothing_renews_nothing(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct store *cache;

		begin_claim();
		assert_int_equal(loop_new(&driver.loop, &err), 0);
		driver.flow.key_held = true;
		driver.flow.attempt_state = ATTEMPT_RUNNING;
		cache = driver.cache;
		if (i == 0)
			driver.cache = NULL;
		else
			driver.flow.policy.compiles = false;
		precompile_claim_keep(&driver);
		assert_int_equal(renewals, 0);
		assert_null(driver.key.key);
		driver.cache = cache;
		end_claim();
	}
}

static void it_is_given_up_once_the_run_does_not_need_it(void **state)
{
	(void)state;
	begin_claim();
	precompile_claim_drop_unneeded(&driver); /* there is none */
	assert_int_equal(releases, 0);
	take(false);
	driver.flow.key_held = true;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	precompile_claim_drop_unneeded(&driver);
	assert_int_equal(releases, 0);
	driver.flow.state = FLOW_TRAIN;
	precompile_claim_drop_unneeded(&driver);
	assert_int_equal(releases, 1);
	assert_null(driver.key.key);
	precompile_claim_drop_unneeded(&driver);
	assert_int_equal(releases, 1);
	end_claim();
}

/* A running attempt renews the claim itself. */
static void who_leaves_gives_it_up_unless_an_attempt_has_it(void **state)
{
	static const struct {
		enum flow_state flow;
		enum attempt_state attempt;
		bool stood_down, released;
	} rows[] = {
		{ FLOW_PRECOMPILE, ATTEMPT_NONE, false, true },
		{ FLOW_PRECOMPILE, ATTEMPT_FAILED, false, true },
		{ FLOW_PRECOMPILE, ATTEMPT_BACKOFF, false, true },
		{ FLOW_PRECOMPILE, ATTEMPT_INTENDED, false, false },
		{ FLOW_PRECOMPILE, ATTEMPT_RUNNING, false, false },
		{ FLOW_VERIFY, ATTEMPT_RUNNING, false, true },
		{ FLOW_PRECOMPILE, ATTEMPT_NONE, true, false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_claim();
		try_result = 0;
		take(false);
		driver.flow.state = rows[i].flow;
		driver.flow.attempt_state = rows[i].attempt;
		driver.stood_down = rows[i].stood_down;
		precompile_claim_leave(&driver);
		assert_int_equal(releases, rows[i].released);
		assert_null(driver.key.key);
		assert_null(driver.waited_for);
		end_claim();
	}
	/* nor without a lease, or a claim */
	begin_claim();
	take(false);
	lease_freep(&driver.lease);
	precompile_claim_leave(&driver);
	assert_int_equal(releases, 0);
	precompile_claim_leave(&driver);
	end_claim();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_that_is_taken_is_recorded),
		cmocka_unit_test(a_claim_that_cannot_be_tried_is_not_taken),
		cmocka_unit_test(another_holder_is_recorded_whenever_it_changes),
		cmocka_unit_test(a_cache_that_others_have_filled_needs_no_claim),
		cmocka_unit_test(a_claim_in_a_bucket_is_looked_at_more_rarely),
		cmocka_unit_test(it_is_renewed_while_the_run_needs_it),
		cmocka_unit_test(what_compiles_nothing_renews_nothing),
		cmocka_unit_test(it_is_given_up_once_the_run_does_not_need_it),
		cmocka_unit_test(who_leaves_gives_it_up_unless_an_attempt_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
