/* Orders to a helper: none is lost to a pipe that is full, or to a helper that dies. */
#include "tests/unit/node/place.h"

#include "jobs/node/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#define LONG ((size_t)200 << 10) /* more than a pipe takes */

static struct helper start(int ends[2])
{
	assert_int_equal(pipe(ends), 0);
	return (struct helper){ .pid = getpid(), .news_fd = -1, .orders_fd = ends[1] };
}

static void stop(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static struct orders_reader reader_of(const int ends[2])
{
	return (struct orders_reader){ .fd = ends[0], .text = SB_INIT };
}

static json_t *next(struct orders_reader *reader, const char **ret_bytes, size_t *ret_len)
{
	json_t *order = orders_take(reader, ret_bytes, ret_len);

	if (!order) {
		orders_read(reader, 0);
		order = orders_take(reader, ret_bytes, ret_len);
	}
	return order;
}

static void assert_next(struct orders_reader *reader, const char *kind)
{
	json_auto_t *order = orders_wait(reader, 0);

	assert_non_null(order);
	assert_true(js_is(order, "order", kind));
}

static void orders_come_one_by_one(void **state)
{
	AUTO(orders_release) struct orders orders;
	int ends[2];
	struct helper helper = start(ends);
	struct orders_reader reader = reader_of(ends);
	const char *bytes;
	size_t len;
	json_auto_t *log = NULL;

	(void)state;
	orders_init(&orders, NULL);
	orders_give(&orders, orders_new("early")); /* waits for the helper */
	orders_begin(&orders, &helper);
	orders_give_bytes(&orders, "log", "two\nlines", 9);
	orders_give(&orders, orders_new("late"));

	assert_next(&reader, "early");
	log = next(&reader, &bytes, &len);
	assert_true(js_is(log, "order", "log"));
	assert_int_equal(len, 9);
	assert_memory_equal(bytes, "two\nlines", 9);
	assert_next(&reader, "late");
	assert_null(orders_wait(&reader, 0));
	assert_false(reader.over);

	assert_true(orders_taken(&reader) == orders.queue.len);
	assert_int_equal(orders_taken(&reader), 0);
	stop(ends);
	sb_release(&reader.text);
}

static void an_order_that_a_full_pipe_does_not_take_is_sent_later(void **state)
{
	AUTO(orders_release) struct orders orders;
	AUTO(auto_free) char *text = mem_alloc(LONG);
	int ends[2];
	struct helper helper = start(ends);
	struct orders_reader reader = reader_of(ends);
	json_auto_t *log = NULL;
	const char *bytes;
	size_t len;

	(void)state;
	memset(text, 'x', LONG);
	orders_init(&orders, NULL);
	orders_begin(&orders, &helper);
	orders_give_bytes(&orders, "log", text, LONG);
	orders_give(&orders, orders_new("last"));
	assert_true(orders.sent < LONG); /* the rest waits, and the agent does not */

	for (log = next(&reader, &bytes, &len); !log; log = next(&reader, &bytes, &len))
		orders_push(&orders);
	assert_int_equal(len, LONG);
	assert_memory_equal(bytes, text, LONG);
	orders_push(&orders);
	assert_next(&reader, "last");
	stop(ends);
	sb_release(&reader.text);
}

static void the_next_helper_gets_what_was_not_carried_out(void **state)
{
	AUTO(orders_release) struct orders orders;
	int first[2], second[2];
	struct helper helper = start(first);
	struct orders_reader reader = reader_of(first);

	(void)state;
	orders_init(&orders, NULL);
	orders_begin(&orders, &helper);
	orders_give(&orders, orders_new("one"));
	orders_give(&orders, orders_new("two"));
	assert_next(&reader, "one");
	orders_done(&orders, orders_taken(&reader));
	assert_next(&reader, "two"); /* and dies before it says so */
	orders_end(&orders);
	stop(first);
	sb_release(&reader.text);

	orders_give(&orders, orders_new("three"));
	helper = start(second);
	reader = reader_of(second);
	orders_begin(&orders, &helper);
	assert_next(&reader, "two");
	assert_next(&reader, "three");
	assert_null(orders_wait(&reader, 0));
	orders_done(&orders, orders_taken(&reader));
	assert_int_equal(orders.queue.len, 0);
	assert_int_equal(orders_wait_ms(&orders), 0);
	stop(second);
	sb_release(&reader.text);
}

/* A helper counts no more as done than it was given. */
static void a_helper_cannot_say_that_more_is_done_than_was_sent(void **state)
{
	AUTO(orders_release) struct orders orders;
	int ends[2];
	struct helper helper = start(ends);

	(void)state;
	orders_init(&orders, NULL);
	orders_give(&orders, orders_new("one"));
	orders_done(&orders, 1000);
	assert_true(orders.queue.len > 0);
	orders_begin(&orders, &helper);
	orders_done(&orders, 1000);
	assert_int_equal(orders.queue.len, 0);
	stop(ends);
}

static void a_dead_helper_and_a_dead_agent_are_noticed(void **state)
{
	AUTO(orders_release) struct orders orders;
	int ends[2];
	struct helper helper = start(ends);
	struct orders_reader reader = reader_of(ends);

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* as the agent has it */
	orders_init(&orders, NULL);
	orders_begin(&orders, &helper);
	orders_give(&orders, orders_new("one"));
	close(ends[1]);
	assert_next(&reader, "one");
	assert_null(orders_wait(&reader, 0));
	assert_true(reader.over);
	close(ends[0]);
	sb_release(&reader.text);

	helper = start(ends);
	close(ends[0]);
	orders_end(&orders);
	orders_begin(&orders, &helper); /* nobody reads: the order stays */
	assert_int_equal(orders.sent, 0);
	assert_true(orders.queue.len > 0);
	close(ends[1]);
}

/* A line that is no order, for instance the rest of one, says nothing. */
static void what_is_no_order_is_passed_over(void **state)
{
	static const char text[] = "{\"order\":\"la\n\n{\"order\":\"last\"}\n{\"order\":";
	int ends[2];
	struct helper helper = start(ends);
	struct orders_reader reader = reader_of(ends);

	(void)state;
	assert_int_equal(write(helper.orders_fd, text, sizeof text - 1), sizeof text - 1);
	assert_next(&reader, "last");
	assert_null(orders_wait(&reader, 0));
	stop(ends);
	sb_release(&reader.text);
}

/* The helper would turn without a pause if it could not wait. poll(2) refuses more descriptors than
 * may be open. */
static void a_helper_that_cannot_wait_ends(void **state)
{
	int ends[2];
	struct helper helper = start(ends);
	struct orders_reader reader = reader_of(ends);
	struct rlimit before, none;

	(void)state;
	(void)helper;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < ERR_FAILURES; i++)
		orders_read(&reader, 1000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(reader.over);
	stop(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_come_one_by_one),
		cmocka_unit_test(an_order_that_a_full_pipe_does_not_take_is_sent_later),
		cmocka_unit_test(the_next_helper_gets_what_was_not_carried_out),
		cmocka_unit_test(a_helper_cannot_say_that_more_is_done_than_was_sent),
		cmocka_unit_test(a_dead_helper_and_a_dead_agent_are_noticed),
		cmocka_unit_test(what_is_no_order_is_passed_over),
		cmocka_unit_test(a_helper_that_cannot_wait_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
