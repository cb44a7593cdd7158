/* How often an uploader does what, by a clock that the test sets: it moves on by as long as the
 * uploader waits for orders. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/orders.h"
#include "jobs/node/report.h"
#include "jobs/node/upload/uploader.h"

#define BEGIN_MS  ((int64_t)1000 * 1000)
#define MINUTE_MS ((int64_t)60 * 1000)
#define TIMES_MAX 4096

/* ---- time, and what is done in it ---- */

struct times {
	int64_t at[TIMES_MAX]; /* since the beginning */
	size_t count;
};

static int64_t now_ms, until_ms;
static int pipe_fd; /* to the uploader */
static void (*on_wait)(void);
static struct agent_config *config;
static struct times logs, paces, looks, shows, reports, hears;
static int report_outcome;
static size_t waits;

struct mono __wrap_clock_mono_now(void);
void __wrap_orders_read(struct orders_reader *reader, int64_t wait_ms);
void __real_orders_read(struct orders_reader *reader, int64_t wait_ms);
int __wrap_store_put(struct store *store, const char *key, const void *bytes, size_t len,
		     struct err **err);
int __real_store_put(struct store *store, const char *key, const void *bytes, size_t len,
		     struct err **err);
int __wrap_store_get(struct store *store, const char *key, size_t max, struct sb *ret,
		     char ret_tag[STORE_TAG], struct err **err);
int __real_store_get(struct store *store, const char *key, size_t max, struct sb *ret,
		     char ret_tag[STORE_TAG], struct err **err);
bool __wrap_claim_holds(const struct claim *claim, const struct agent_config *of,
			struct store *store);
int __wrap_claim_show(const struct claim *claim, const struct agent_config *of,
		      struct store *store);
int __wrap_report_bring(const struct agent_config *of, struct store *store, struct err **err);

static void note(struct times *times)
{
	if (times->count < TIMES_MAX)
		times->at[times->count++] = now_ms - BEGIN_MS;
}

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

static void order(const char *kind)
{
	AUTO(auto_free) char *line = mem_format("{\"order\":\"%s\"}\n", kind);

	assert_int_equal(write(pipe_fd, line, strlen(line)), strlen(line));
}

/* The agent is gone. */
static void leave(void)
{
	if (pipe_fd >= 0)
		close(pipe_fd);
	pipe_fd = -1;
}

void __wrap_orders_read(struct orders_reader *reader, int64_t wait_ms)
{
	now_ms += wait_ms;
	waits++;
	if (on_wait)
		on_wait();
	if (now_ms - BEGIN_MS >= until_ms)
		leave();
	__real_orders_read(reader, 0);
}

int __wrap_store_put(struct store *store, const char *key, const void *bytes, size_t len,
		     struct err **err)
{
	if (strstr(key, "/log/"))
		note(&logs);
	if (strstr(key, "/" PACE_FILE))
		note(&paces);
	return __real_store_put(store, key, bytes, len, err);
}

int __wrap_store_get(struct store *store, const char *key, size_t max, struct sb *ret,
		     char ret_tag[STORE_TAG], struct err **err)
{
	if (strstr(key, "node-1/" PROGRESS_FILE))
		note(&hears);
	return __real_store_get(store, key, max, ret, ret_tag, err);
}

bool __wrap_claim_holds(const struct claim *claim, const struct agent_config *of,
			struct store *store)
{
	(void)claim, (void)of, (void)store;
	note(&looks);
	return true;
}

int __wrap_claim_show(const struct claim *claim, const struct agent_config *of, struct store *store)
{
	(void)claim, (void)of, (void)store;
	note(&shows);
	return 1;
}

int __wrap_report_bring(const struct agent_config *of, struct store *store, struct err **err)
{
	(void)of, (void)store;
	note(&reports);
	return report_outcome < 0 ? err_set(err, EXIT_UNREACHABLE, "away") : report_outcome;
}

/* ---- an uploader ---- */

struct wish {
	bool far;
	int nodes, node;
	int64_t heartbeat_ms, look_ms;
	bool unclaimed;
	int64_t restart; /* of the service; -1: it tells none */
};

static int reset(void **state)
{
	now_ms = BEGIN_MS;
	on_wait = NULL;
	report_outcome = 0;
	waits = 0;
	logs.count = paces.count = looks.count = shows.count = reports.count = hears.count = 0;
	return place_make(state);
}

/* Works for so long, and then loses its agent. */
static void work(struct place *place, struct wish wish, int64_t ms)
{
	AUTO(agent_config_release) struct agent_config own = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(auto_free) char *rank = mem_format("%d", wish.node);
	json_t *order_json = order_for(place, "true");
	int news[2], orders[2];
	pid_t reader;

	js_put(order_json, "nodes", json_integer(wish.nodes));
	js_put(order_json, "heartbeat_ms", json_integer(wish.heartbeat_ms));
	js_put(order_json, "look_ms", json_integer(wish.look_ms));
	load(&own, place, order_json, rank);
	own.object_workspace = wish.far;
	own.platform.restart = wish.restart;
	free(own.dir);
	own.dir = place_path(place, "machine");
	config = &own;
	claim_init(&claim, &own);
	claim.taken_ms = !wish.unclaimed;
	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	/* The uploader's news is taken, and of no interest. */
	reader = fork();
	assert_true(reader >= 0);
	if (reader == 0) {
		char buffer[4096];

		close(news[1]);
		while (read(news[0], buffer, sizeof buffer) > 0)
			;
		_exit(0);
	}
	close(news[0]);
	assert_int_equal(pipe2(orders, O_CLOEXEC), 0); /* which the reader has not */
	pipe_fd = orders[1];
	until_ms = ms;
	(void)uploader_work(&own, &claim, news[1], orders[0]);
	close(news[1]);
	close(orders[0]);
	leave();
	waitpid(reader, NULL, 0);
}

static void put_here(const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(config->dir, name);

	write_file(path, text, 0600);
}

/* The pause after the first of these that is not before `from`; each is late by a beat at most. */
static int64_t pause_at(const struct times *times, int64_t from)
{
	for (size_t i = 0; i + 1 < times->count; i++)
		if (times->at[i] >= from)
			return times->at[i + 1] - times->at[i];
	return -1;
}

/* ---- the log and the report of a far workspace ---- */

static void print_more(void)
{
	AUTO(auto_free) char *path = fs_join(config->dir, LOG_FILE);
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_close) int fd = -1;

	must(fs_mkdirs(folder, &err), &err);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "line\n", 5), 5);
}

/* A young log is read live; of an old one a minute is no loss. */
static void a_growing_log_is_brought_ever_more_seldom(void **state)
{
	on_wait = print_more;
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, 60 * MINUTE_MS);
	assert_int_equal(logs.at[0], 15000);
	assert_int_equal(pause_at(&logs, 0), 15000);
	assert_int_equal(pause_at(&logs, 9 * MINUTE_MS), 15000);
	assert_in_range(pause_at(&logs, 20 * MINUTE_MS), 30000, 31000);
	assert_in_range(pause_at(&logs, 30 * MINUTE_MS), 45000, 46000);
	assert_int_equal(pause_at(&logs, 41 * MINUTE_MS), 60000);
	assert_int_equal(pause_at(&logs, 55 * MINUTE_MS), 60000);
}

static void print_once(void)
{
	if (waits == 1)
		print_more();
}

static void a_log_that_does_not_grow_is_brought_once(void **state)
{
	on_wait = print_once;
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, 10 * MINUTE_MS);
	assert_int_equal(logs.count, 1);
}

static void report_twice(void)
{
	if (now_ms - BEGIN_MS == 60000 || now_ms - BEGIN_MS == 90000)
		order("report");
}

static void a_report_is_brought_at_the_beginning_and_when_it_is_new(void **state)
{
	on_wait = report_twice;
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, 5 * MINUTE_MS);
	assert_int_equal(reports.count, 3);
	assert_int_equal(reports.at[1], 60000);
	assert_int_equal(reports.at[2], 90000);
}

static void a_report_that_cannot_be_brought_is_tried_each_five_seconds(void **state)
{
	report_outcome = -1;
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, MINUTE_MS);
	assert_in_range(reports.count, 11, 12);
	assert_int_equal(pause_at(&reports, 0), 5000);
	assert_int_equal(pause_at(&reports, 30000), 5000);
}

static void who_reports_nothing_brings_no_log(void **state)
{
	on_wait = print_more;
	report_outcome = 1; /* another job's stands there */
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, 5 * MINUTE_MS);
	assert_int_equal(logs.count, 0);
}

static void pace_then(void)
{
	print_once();
	if (waits == 1)
		put_here(PACE_FILE, "{\"a\":1}");
	if (now_ms - BEGIN_MS == 100000)
		put_here(PACE_FILE, "{\"a\":2}");
}

static void the_pace_goes_with_the_log_when_it_is_new(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, PREFIX "node-0/" PACE_FILE);
	AUTO(auto_free) char *text = NULL;

	on_wait = pace_then;
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, 5 * MINUTE_MS);
	assert_int_equal(paces.count, 2);
	assert_int_equal(paces.at[0], 15000);
	assert_int_equal(paces.at[1], 105000);
	text = read_file(path, NULL);
	assert_string_equal(text, "{\"a\":2}");
}

/* ---- a log of many pieces ---- */

static size_t round_puts, most_puts;

static void flood(void)
{
	static size_t before;

	if (waits == 1) {
		AUTO(auto_free) char *text = mem_alloc(6 * LOG_PIECE_MAX + 1);

		before = 0;
		memset(text, 'x', 6 * LOG_PIECE_MAX);
		text[6 * LOG_PIECE_MAX] = '\0';
		put_here(LOG_FILE, text);
	}
	round_puts = logs.count - before;
	before = logs.count;
	if (round_puts > most_puts)
		most_puts = round_puts;
}

/* Between them it looks whether the claim holds. */
static void a_flood_is_brought_in_rounds_without_a_pause(void **state)
{
	most_puts = 0;
	on_wait = flood;
	work(*state, (struct wish){ true, 1, 0, 60000, 60000, false, 0 }, MINUTE_MS);
	assert_int_equal(most_puts, 4);
	assert_int_equal(logs.count, 6);
	assert_int_equal(logs.at[logs.count - 1], 15000); /* all of it at one time */
}

/* ---- looks ---- */

static void the_claim_is_looked_at_each_beat_or_as_seldom_as_a_request_allows(void **state)
{
	static const struct {
		struct wish wish;
		int64_t pause_ms; /* 0: never */
	} rows[] = {
		{ { false, 1, 0, 500, 60000, false, 0 }, 500 },
		{ { false, 1, 0, 2000, 60000, false, 0 }, 2000 },
		{ { true, 1, 0, 2000, 30000, false, 0 }, 30000 },
		{ { false, 1, 0, 500, 60000, true, 0 }, 0 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		now_ms = BEGIN_MS;
		looks.count = 0;
		work(*state, rows[i].wish, 5 * MINUTE_MS);
		if (rows[i].pause_ms) {
			assert_int_equal(pause_at(&looks, 0), rows[i].pause_ms);
			assert_int_equal(pause_at(&looks, 2 * MINUTE_MS), rows[i].pause_ms);
		} else {
			assert_int_equal(looks.count, 0);
		}
	}
}

static void look_then(void)
{
	if (now_ms - BEGIN_MS == 10000)
		order("look");
}

static void an_order_to_look_is_carried_out_at_once(void **state)
{
	on_wait = look_then;
	work(*state, (struct wish){ true, 1, 0, 2000, 60000, false, 0 }, MINUTE_MS / 2);
	assert_int_equal(looks.count, 2);
	assert_int_equal(looks.at[1], 10000);
}

static void node_0_shows_that_it_lives_each_three_seconds_for_twenty_minutes(void **state)
{
	static const struct {
		struct wish wish;
		bool shows;
	} rows[] = {
		{ { true, 2, 0, 60000, 60000, false, -1 }, true },
		{ { true, 1, 0, 60000, 60000, false, -1 }, false },
		{ { true, 2, 1, 60000, 60000, false, -1 }, false },
		{ { true, 2, 0, 60000, 60000, false, 0 }, false },
		{ { true, 2, 0, 60000, 60000, true, -1 }, false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		now_ms = BEGIN_MS;
		shows.count = 0;
		work(*state, rows[i].wish, 30 * MINUTE_MS);
		if (rows[i].shows) {
			assert_int_equal(pause_at(&shows, 0), 3000);
			assert_in_range(shows.at[shows.count - 1], 20 * MINUTE_MS - 3000,
					20 * MINUTE_MS - 1);
		} else {
			assert_int_equal(shows.count, 0);
		}
	}
}

static void node_0_hears_the_others_at_each_exchange(void **state)
{
	work(*state, (struct wish){ false, 2, 0, 2000, 60000, false, 0 }, MINUTE_MS);
	assert_in_range(pause_at(&hears, 0), 5000, 6000);
	hears.count = 0;
	now_ms = BEGIN_MS;
	work(*state, (struct wish){ false, 2, 1, 2000, 60000, false, 0 }, MINUTE_MS);
	assert_int_equal(hears.count, 0);
	now_ms = BEGIN_MS;
	work(*state, (struct wish){ false, 2, 0, 2000, 60000, true, 0 }, MINUTE_MS);
	assert_int_equal(hears.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_growing_log_is_brought_ever_more_seldom),
		TEST(a_log_that_does_not_grow_is_brought_once),
		TEST(a_report_is_brought_at_the_beginning_and_when_it_is_new),
		TEST(a_report_that_cannot_be_brought_is_tried_each_five_seconds),
		TEST(who_reports_nothing_brings_no_log),
		TEST(the_pace_goes_with_the_log_when_it_is_new),
		TEST(a_flood_is_brought_in_rounds_without_a_pause),
		TEST(the_claim_is_looked_at_each_beat_or_as_seldom_as_a_request_allows),
		TEST(an_order_to_look_is_carried_out_at_once),
		TEST(node_0_shows_that_it_lives_each_three_seconds_for_twenty_minutes),
		TEST(node_0_hears_the_others_at_each_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
