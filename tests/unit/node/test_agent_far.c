/* The agent in a workspace that is no directory, in a process of its own: what it makes of a
 * service that is away, of a stop meanwhile, and of an uploader that does not get through at the
 * end. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/agent_main.h"
#include "jobs/node/claim.h"
#include "jobs/node/report.h"
#include "jobs/node/upload/uploader.h"
#include "jobs/store/local_store_dir.h"

#define URL        "s3://bucket/" PREFIX ORDER_FILE
#define GRACE_MS   20000
#define FOR_EVER   INT64_MAX
#define LAST_MS    600000
#define LEAST_MS   2000
#define FINISH_MAX 4

/* ---- settings of the test, in the agent's process ---- */

static const struct place *here;
static int away_for;   /* so many looks at the claim are not answered; below 0: none ever is */
static bool stop_then; /* a signal to stop comes with the last of them */
static enum uploader_end ends[FINISH_MAX]; /* of the uploader; the rest are good ones */

/* Writes what the agent tells of itself to a file. */
static void tell(const char *fmt, ...) STK_PRINTF(1, 2);

static void tell(const char *fmt, ...)
{
	AUTO(auto_free) char *path = place_path(here, "told");
	AUTO(auto_fclose) FILE *file = fopen(path, "ae");
	va_list args;

	va_start(args, fmt);
	if (!file || vfprintf(file, fmt, args) < 0)
		_exit(90);
	va_end(args);
}

int __wrap_store_open(const char *url, struct store **ret, struct err **err);
int __real_store_open(const char *url, struct store **ret, struct err **err);
int __wrap_local_store_dir_make(const struct store *store, char **ret, struct err **err);
int __wrap_claim_take(struct claim *claim, const struct agent_config *config, struct store *store,
		      enum claim_state *ret, struct err **err);
int __real_claim_take(struct claim *claim, const struct agent_config *config, struct store *store,
		      enum claim_state *ret, struct err **err);
enum uploader_end __wrap_uploader_finish(struct uploader *uploader, struct mono *end,
					 int64_t grace_ms);
enum uploader_end __real_uploader_finish(struct uploader *uploader, struct mono *end,
					 int64_t grace_ms);
void __wrap_uploader_replace(struct uploader *uploader, const struct agent_config *config,
			     const struct claim *claim, struct store *store);

int __wrap_store_open(const char *url, struct store **ret, struct err **err)
{
	const char *path = strncmp(url, "s3://bucket", 11) == 0 ? url + 11 : NULL;
	AUTO(auto_free)
	char *bucket = path ? mem_format("dir:%s/bucket%s", here->root, path) : mem_copy(url);

	return __real_store_open(bucket, ret, err);
}

int __wrap_local_store_dir_make(const struct store *store, char **ret, struct err **err)
{
	(void)store, (void)err;
	*ret = place_path(here, "local");
	return 0;
}

int __wrap_claim_take(struct claim *claim, const struct agent_config *config, struct store *store,
		      enum claim_state *ret, struct err **err)
{
	if (away_for == 0)
		return __real_claim_take(claim, config, store, ret, err);
	away_for--;
	tell("away ");
	if (stop_then && away_for == 0)
		raise(SIGTERM);
	return err_set(err, EXIT_UNREACHABLE, "s3 does not answer");
}

enum uploader_end __wrap_uploader_finish(struct uploader *uploader, struct mono *end,
					 int64_t grace_ms)
{
	static int calls;
	enum uploader_end went = calls < FINISH_MAX ? ends[calls++] : UPLOADER_BROUGHT;
	int64_t left = end->ms == FOR_EVER ? FOR_EVER : end->ms - clock_mono_now().ms;
	struct mono soon = { clock_mono_now().ms + LAST_MS };

	tell("finish %s %lld ",
	     left == FOR_EVER         ? "ever"
	     : left > LAST_MS - 60000 ? "long"
	     : left > LEAST_MS        ? "some"
	     : left > 0               ? "least"
				      : "over",
	     (long long)grace_ms);
	/* The real one is over before it is said how it went. */
	(void)__real_uploader_finish(uploader, &soon, -1);
	return went;
}

void __wrap_uploader_replace(struct uploader *uploader, const struct agent_config *config,
			     const struct claim *claim, struct store *store)
{
	(void)uploader, (void)config, (void)claim, (void)store;
	tell("replaced ");
}

/* ---- an agent ---- */

static json_t *order_far(const struct place *place, const char *script)
{
	json_t *order = order_for(place, script);

	js_put_str(order, "workspace", "s3://bucket");
	js_put(order, "grace_ms", json_integer(GRACE_MS));
	js_put(order, "look_ms", json_integer(50));
	return order;
}

/* Runs it to its end; its exit status. Steals the order. */
static int run_far(struct place *place, json_t *order, bool far)
{
	AUTO(auto_free) char *bucket = mem_format("%s/bucket/" PREFIX ORDER_FILE, place->root);
	AUTO(auto_free) char *near = place_path(place, PREFIX ORDER_FILE);
	AUTO(auto_free) char *text = js_line(order);
	AUTO(auto_free) char *out = place_path(place, LOG);
	pid_t pid;

	here = place;
	json_decref(order);
	write_file(far ? bucket : near, text, 0600);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
			_exit(91);
		setenv(ORDER_TOKEN, "tok", 1);
		_exit(agent_main("stoker-node", far ? URL : near, "0"));
	}
	return end_of(pid);
}

/* The report that the agent has on its own machine. A new reference. */
static json_t *own_report(const struct place *place)
{
	AUTO(auto_free)
	char *path = mem_format("%s/local/" PREFIX "node-0/" REPORT_FILE, place->root);
	AUTO(err_freep) struct err *err = NULL;
	json_t *body = NULL;

	must(js_load(path, REPORT_MAX, &body, &err), &err);
	return body;
}

static char *told(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, "told");
	char *text = read_file(path, NULL);

	return text ? text : mem_copy("");
}

static int reset(void **state)
{
	away_for = 0;
	stop_then = false;
	for (int i = 0; i < FINISH_MAX; i++)
		ends[i] = UPLOADER_BROUGHT;
	return place_make(state);
}

/* ---- a service that is away ---- */

static void a_command_runs_where_a_service_is_there_again(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "bucket/" PREFIX "node-0/" REPORT_FILE);
	AUTO(auto_free) char *words = NULL;
	json_auto_t *own = NULL;

	away_for = 2;
	assert_int_equal(run_far(*state, order_far(*state, "exit 3"), true), 3);
	own = own_report(*state);
	assert_state(own, "ended", 3);
	assert_true(fs_exists(path));
	words = told(*state);
	assert_has(words, "away away finish long ");
}

static void without_an_answer_in_time_the_service_is_what_failed(void **state)
{
	AUTO(auto_free) char *ran = place_path(*state, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	json_t *order = order_far(*state, script);
	json_auto_t *own = NULL;

	away_for = -1;
	js_put(order, "claim_wait_ms", json_integer(1));
	assert_int_equal(run_far(*state, order, true), AGENT_EXIT_FAILED);
	own = own_report(*state);
	assert_state(own, "failed", AGENT_EXIT_FAILED);
	assert_has(json_string_value(js_path(own, "error.message")), "s3 does not answer");
	assert_string_equal(json_string_value(js_path(own, "error.class")), "transient-infra");
	assert_null(js_str(own, "stopped"));
	assert_false(fs_exists(ran));
}

/* An agent that gives up waiting because it is to stop has not failed. */
static void a_stop_meanwhile_is_a_stop(void **state)
{
	json_t *order = order_far(*state, "true");
	json_auto_t *own = NULL;

	away_for = 1;
	stop_then = true;
	js_put(order, "claim_wait_ms", json_integer(0));
	assert_int_equal(run_far(*state, order, true), 128 + SIGTERM);
	own = own_report(*state);
	assert_state(own, "ended", 128 + SIGTERM);
	assert_string_equal(js_str(own, "stopped"), STOPPED_SIGNAL);
	assert_null(json_object_get(own, "error"));
}

/* ---- the end ---- */

static void the_rest_has_ten_minutes_and_the_grace_after_a_signal(void **state)
{
	AUTO(auto_free) char *words = NULL;

	assert_int_equal(run_far(*state, order_far(*state, "true"), true), 0);
	words = told(*state);
	assert_string_equal(words, "finish long 20000 ");
}

static void after_a_signal_the_rest_has_what_is_left_and_a_little(void **state)
{
	static const struct {
		int grace_ms;
		const char *words;
	} rows[] = { { 20000, "away finish some 20000 " }, { 0, "away finish least 0 " } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *path = place_path(*state, "told");
		AUTO(auto_free) char *words = NULL;
		json_t *order = order_far(*state, "true");

		unlink(path);
		away_for = 1;
		stop_then = true;
		js_put(order, "claim_wait_ms", json_integer(0));
		js_put(order, "grace_ms", json_integer(rows[i].grace_ms));
		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		assert_int_equal(run_far(*state, order, true), 128 + SIGTERM);
		words = told(*state);
		assert_string_equal(words, rows[i].words);
	}
}

static void an_uploader_that_dies_at_the_end_is_started_once_more(void **state)
{
	static const struct {
		enum uploader_end first, second;
		const char *words;
		bool lost;
	} rows[] = {
		{ UPLOADER_DEAD, UPLOADER_BROUGHT, "finish long 20000 finish long 20000 ", false },
		{ UPLOADER_DEAD, UPLOADER_DEAD, "finish long 20000 finish long 20000 ", true },
		{ UPLOADER_TOO_LATE, UPLOADER_BROUGHT, "finish long 20000 ", true },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *path = place_path(*state, "told");
		AUTO(auto_free) char *out = place_path(*state, LOG);
		AUTO(auto_free) char *words = NULL;
		AUTO(auto_free) char *text = NULL;
		json_t *order = order_far(*state, "exit 4");

		unlink(path);
		unlink(out);
		ends[0] = rows[i].first;
		ends[1] = rows[i].second;
		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		assert_int_equal(run_far(*state, order, true), 4); /* it stays the command's */
		words = told(*state);
		assert_string_equal(words, rows[i].words);
		text = output(*state);
		assert_int_equal(strstr(text, "cannot upload the end of the log") != NULL,
				 rows[i].lost);
	}
}

/* A directory takes what it is given, or hangs; the agent itself writes what no uploader has. */
static void in_a_directory_the_rest_is_waited_for_and_then_written(void **state)
{
	for (int dead = 0; dead < 2; dead++) {
		AUTO(auto_free) char *path = place_path(*state, "told");
		AUTO(auto_free) char *words = NULL;
		json_t *order = order_for(*state, "true");

		unlink(path);
		ends[0] = ends[1] = dead ? UPLOADER_DEAD : UPLOADER_BROUGHT;
		js_put(order, "attempt", json_integer(dead + 1));
		assert_int_equal(run_far(*state, order, false), 0);
		words = told(*state);
		assert_string_equal(words, dead ? "finish ever -1 finish ever -1 replaced "
						: "finish ever -1 ");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_runs_where_a_service_is_there_again),
		TEST(without_an_answer_in_time_the_service_is_what_failed),
		TEST(a_stop_meanwhile_is_a_stop),
		TEST(the_rest_has_ten_minutes_and_the_grace_after_a_signal),
		TEST(after_a_signal_the_rest_has_what_is_left_and_a_little),
		TEST(an_uploader_that_dies_at_the_end_is_started_once_more),
		TEST(in_a_directory_the_rest_is_waited_for_and_then_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
