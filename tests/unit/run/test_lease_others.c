/* A lease on an object store and what others do to it: they replace its holder, come first, write
 * garbage or do not answer. See jobs/run/journal/lease.h. */
#include "lease_clock_fixture.h"

/* ---- others ---- */

static void who_was_replaced_has_it_no_more(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);
	json_auto_t *value = foreign("elsewhere"), *left = NULL;

	(void)state;
	clock_ms += 2000;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lease_keep(lease, &err), -1);
		assert_int_equal(err->code, EXIT_BUSY);
		assert_non_null(strstr(err->message, "run r is driven by pid 7 on far-away"));
		assert_false(lease_is_held(lease));
		assert_false(lease_is_mine(lease));
		assert_int_equal(store->writes, 1); /* it is not tried again */
		err_freep(&err);
	}
	lease_freep(&lease);
	left = object();
	assert_true(json_equal(left, value));
	faulty_free(&store->base);
}

/* A write of others between a look and the write that follows it. */
static const struct store_backend *real;
static bool takes_away;

static int come_first(struct store *store, const char *key, const void *bytes, size_t len,
		      struct err **err)
{
	json_decref(foreign("elsewhere"));
	return real->put_if_absent(store, key, bytes, len, err);
}

static int change_first(struct store *store, const char *key, const char *tag, const void *bytes,
			size_t len, struct err **err)
{
	AUTO(auto_free) char *path = object_path();

	if (takes_away)
		assert_int_equal(unlink(path), 0);
	else
		json_decref(foreign("elsewhere"));
	return real->replace_if_same(store, key, tag, bytes, len, err);
}

static void who_comes_second_looks_again_at_once(void **state)
{
	struct store *store = journal_store(journal);
	struct store_backend racing = *store->backend;

	(void)state;
	real = store->backend;
	racing.put_if_absent = come_first;
	racing.replace_if_same = change_first;
	for (int row = 0; row < 3; row++) {
		AUTO(auto_free) char *path = object_path();
		AUTO(lease_freep) struct lease *lease = NULL;
		int64_t wait_ms;

		make_folder();
		unlink(path);
		if (row > 0) {
			json_auto_t *value = foreign("elsewhere");

			js_put(value, "held", json_false());
			put_object(value);
		}
		takes_away = row == 2;
		store->backend = &racing;
		assert_int_equal(try_once(&lease, &wait_ms), 0);
		store->backend = real;
		assert_int_equal(wait_ms, 1);
		assert_false(lease_is_held(lease));
		assert_null(lease->seen);
		assert_int_equal(lease->refusals, 0);
		assert_string_equal(lease_holder(lease), "pid 7 on far-away");
		assert_int_equal(try_once(&lease, &wait_ms), takes_away ? 1 : 0);
	}
}

static void what_cannot_be_written_is_an_error(void **state)
{
	struct lease *lease = take(&rules);
	struct faulty_store *store = put_faults(lease);
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	lease_object_release(lease);
	lease->held = false;
	store->code = EXIT_UNREACHABLE;
	store->faults[0] = FAULT_REQUEST_LOST;
	store->next = 0;
	assert_int_equal(lease_object_try(lease, &wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "the network is gone"));
	assert_false(lease_is_held(lease));
	err_freep(&err);
	/* nor what cannot be read before */
	faulty_lose(store, 0, 1);
	assert_int_equal(lease_object_try(lease, &wait_ms, &err), -1);
	err_freep(&err);
	/* or after it was written, as far as is known; the next look tells */
	faulty_lose(store, 2, 1);
	assert_int_equal(lease_object_try(lease, &wait_ms, &err), -1);
	assert_non_null(strstr(err->message, "the network is gone"));
	assert_false(lease_is_held(lease));
	err_freep(&err);
	assert_int_equal(lease_object_try(lease, &wait_ms, &err), 1);
	lease_freep(&lease);
	faulty_free(&store->base);
}

/* ---- garbage ---- */

static const char *const garbage[] = { "", "\"x", "{\"v\":1,\"no", "[1]", "{}", "{\"nonce\":1}" };

static void put_garbage(size_t i)
{
	AUTO(auto_free) char *path = object_path();
	struct err *err = NULL;

	make_folder();
	assert_int_equal(fs_write_atomic(path, garbage[i], strlen(garbage[i]), 0600, &err), 0);
}

static void garbage_shows_neither_a_holder_nor_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL, *over = NULL;
		struct lease_rules takes = rules;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *taken = NULL;
		int64_t wait_ms;

		put_garbage(i);
		assert_int_equal(lease_try(journal, "r", &rules, &lease, &wait_ms, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_true(err->damage);
		assert_non_null(strstr(err->message, "the lease of run r is damaged: "
						     "'runs/r/lease.json' in '"));
		assert_non_null(strstr(err->hint, "delete 'runs/r/lease.json' in '"));
		err_freep(&err);
		assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), -1);
		assert_true(err->damage);
		err_freep(&err);
		/* where that is wanted it is watched like a holder that does not renew */
		takes.over_damage = true;
		assert_int_equal(lease_try(journal, "r", &takes, &over, &wait_ms, &err), 0);
		assert_int_equal(wait_ms, 500);
		clock_ms += 6000;
		assert_int_equal(lease_try(journal, "r", &takes, &over, &wait_ms, &err), 1);
		taken = object();
		assert_int_equal(js_int(taken, "epoch", -1), 1);
	}
}

static void a_live_holder_writes_it_anew(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		struct lease *lease = take(&rules);
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *value = NULL;

		put_garbage(i);
		clock_ms += 2000;
		assert_int_equal(lease_keep(lease, &err), 0);
		assert_null(err);
		assert_true(lease_is_mine(lease));
		assert_int_equal(lease_due(lease), 2000);
		value = object();
		assert_int_equal(js_int(value, "pid", -1), getpid());
		lease_freep(&lease);
	}
}

static void what_is_no_object_is_in_the_way_of_one(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL, *over = NULL;
	AUTO(auto_free) char *path = object_path();
	struct lease_rules takes = rules;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(lease_try(journal, "r", &rules, &lease, &wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, "cannot read the lease of run r: '"));
	assert_non_null(strstr(err->message, "lease.json' is a folder"));
	err_freep(&err);
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), -1);
	assert_non_null(strstr(err->message, "lease.json' is a folder"));
	err_freep(&err);
	takes.over_damage = true;
	assert_int_equal(lease_try(journal, "r", &takes, &over, &wait_ms, &err), 1);
	assert_true(lease_is_held(over));
}

/* Process 1 is everybody's. */
static void the_first_process_is_sent_no_signal(void **state)
{
	AUTO(lease_freep) struct lease *looked = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *value = our_object();
	struct proc_id first;

	(void)state;
	assert_int_equal(proc_identify(1, &first), 0);
	js_put_str(value, "nonce", "another");
	js_put(value, "held", json_true());
	js_put(value, "pid", json_integer(1));
	js_put(value, "started", json_integer((json_int_t)first.start_ticks));
	put_object(value);
	assert_int_equal(lease_check(journal, "r", &rules, &looked, &err), 0);
	assert_false(lease_signal(looked, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BY_CLOCK(who_was_replaced_has_it_no_more),
		BY_CLOCK(who_comes_second_looks_again_at_once),
		BY_CLOCK(what_cannot_be_written_is_an_error),
		BY_CLOCK(garbage_shows_neither_a_holder_nor_none),
		BY_CLOCK(a_live_holder_writes_it_anew),
		BY_CLOCK(what_is_no_object_is_in_the_way_of_one),
		BY_CLOCK(the_first_process_is_sent_no_signal),
	};

	scheme = "dir";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
