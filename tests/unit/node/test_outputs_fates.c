/* What becomes of outputs in a bucket that takes some of them, is slow or away: with a bucket and a
 * clock that the test is. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/upload/outputs.h"
#include "jobs/store/sync.h"

#define BEGIN_MS ((int64_t)1000 * 1000)
#define PAUSE_MS 5000
#define LAST_MS  600000
#define ABOVE    "pre/runs/r1/outputs/train/node-0/" /* of a key in the bucket */

/* ---- the bucket ---- */

struct fate {
	enum sync_fate fate;
	const char *key, *why;
	uint64_t size;
};

static const struct place *here;
static int64_t now_ms, back_at_ms; /* it answers again; since the beginning */
static enum exit_code code;
static int os_errno;
static bool lists; /* the listing goes well all the same */
static const struct fate *fates;
static size_t fate_count;
static int passes;
static uint64_t traffic;
static void (*while_moving)(const struct sync_options *options);
static json_t *uploaded; /* names; owned */

struct mono __wrap_clock_mono_now(void);
bool __wrap_cancel_pause(int64_t ms);
int __wrap_store_open(const char *url, struct store **ret, struct err **err);
int __real_store_open(const char *url, struct store **ret, struct err **err);
int __wrap_sync_run(struct store *from, struct store *to, const struct sync_options *options,
		    struct sync_sum *ret, struct err **err);
int __wrap_store_upload(struct store *store, const char *path, const char *key, struct err **err);
uint64_t __wrap_store_traffic(void);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

bool __wrap_cancel_pause(int64_t ms)
{
	assert_int_equal(ms, PAUSE_MS);
	now_ms += ms;
	return true;
}

uint64_t __wrap_store_traffic(void)
{
	return traffic;
}

int __wrap_store_open(const char *url, struct store **ret, struct err **err)
{
	AUTO(auto_free) char *bucket = mem_format("dir:%s/bucket", here->root);

	return __real_store_open(strncmp(url, "s3://", 5) == 0 ? bucket : url, ret, err);
}

static int refuse(struct err **err)
{
	err_set(err, code, "no answer");
	err_hint(err, "wait");
	(*err)->os_errno = os_errno;
	return -1;
}

int __wrap_sync_run(struct store *from, struct store *to, const struct sync_options *options,
		    struct sync_sum *ret, struct err **err)
{
	(void)from, (void)to;
	passes++;
	*ret = (struct sync_sum){ 0 };
	for (size_t i = 0; i < fate_count; i++) {
		const struct fate *one = &fates[i];

		if (options->stage(options->arg, one->key) == SYNC_AT_ONCE)
			options->on_object(options->arg, one->fate, one->key, one->size, one->why);
	}
	if (while_moving)
		while_moving(options);
	return !lists && now_ms - BEGIN_MS < back_at_ms ? refuse(err) : 0;
}

int __wrap_store_upload(struct store *store, const char *path, const char *key, struct err **err)
{
	(void)store;
	assert_true(fs_exists(path));
	if (now_ms - BEGIN_MS < back_at_ms)
		return refuse(err);
	json_array_append_new(uploaded, json_string(key));
	return 0;
}

/* ---- an upload ---- */

static json_t *done;
static size_t moving; /* how often that was said */

static int reset(void **state)
{
	now_ms = BEGIN_MS;
	back_at_ms = 0;
	code = EXIT_UNREACHABLE;
	os_errno = passes = 0;
	lists = false;
	fate_count = 0;
	traffic = 0;
	while_moving = NULL;
	if (place_make(state) < 0)
		return -1;
	here = *state;
	return 0;
}

static int forget(void **state)
{
	json_decref(done);
	json_decref(uploaded);
	done = uploaded = NULL;
	return place_remove(state);
}

static void make(const char *name, const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/made/%s", here->root, name);

	write_file(path, text, 0600);
}

static void bring(const struct fate *rows, size_t count)
{
	AUTO(auto_free) char *made = place_path(here, "made");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = order_for(here, "true");
	char buffer[4096];
	int news[2];
	ssize_t len;

	js_put_str(order, "outputs", "runs/r1/outputs/train/");
	js_put_str(order, "output_dir", made);
	load(&config, here, order, "0");
	config.workspace = "s3://bucket/pre";
	fates = rows;
	fate_count = count;
	json_decref(done);
	json_decref(uploaded);
	done = NULL;
	uploaded = json_array();
	moving = 0;
	passes = 0;
	must(fs_mkdirs(made, &err), &err);
	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	assert_int_equal(outputs_work(&config, news[1]), 0);
	close(news[1]);
	while ((len = read(news[0], buffer, sizeof buffer)) > 0)
		sb_add(&text, buffer, (size_t)len);
	close(news[0]);
	for (char *line = strtok(text.text, "\n"); line; line = strtok(NULL, "\n")) {
		json_t *one = NULL;

		must(js_parse(line, strlen(line), "news", &one, &err), &err);
		json_decref(done);
		done = one;
		moving += js_is(one, "news", "moving");
	}
	assert_true(js_is(done, "news", "done"));
}

/* Returns why the n-th entry was left. */
static const char *why_left(size_t n, const char *name)
{
	const json_t *row = json_array_get(json_object_get(done, "names"), n);

	assert_string_equal(js_str(row, "name"), name);
	return js_str(row, "why");
}

/* ---- entries ---- */

static void what_is_there_or_arrives_is_counted(void **state)
{
	static const struct fate rows[] = {
		{ SYNC_SAME, "a", NULL, 3 },
		{ SYNC_MOVED, "b", NULL, 40 },
		{ SYNC_FAILED, "c", "was changed while it was copied", 500 },
	};

	(void)state;
	bring(rows, STK_LENGTH(rows));
	assert_int_equal(js_int(done, "files", -1), 2);
	assert_int_equal(js_int(done, "bytes", -1), 43);
	assert_int_equal(js_int(done, "left", -1), 1);
	assert_string_equal(why_left(0, "c"), "was changed while it was copied");
	assert_null(json_object_get(done, "renamed"));
	assert_null(js_str(done, "why"));
}

static void what_is_no_file_is_left_with_what_it_is(void **state)
{
	static const struct fate rows[] = {
		{ SYNC_REFUSED, "plain", "a case", 0 },
		{ SYNC_REFUSED, "gone", "refused", 0 },
		{ SYNC_REFUSED, "fifo", "refused", 0 },
		{ SYNC_REFUSED, "dangling", "refused", 0 },
		{ SYNC_REFUSED, "out", "refused", 0 },
		{ SYNC_REFUSED, "beside", "refused", 0 },
		{ SYNC_REFUSED, "inside", "refused", 0 },
		{ SYNC_REFUSED, "itself", "refused", 0 },
	};
	static const char *const links[][2] = {
		{ "dangling", "/nowhere/else" }, { "out", "/tmp" }, { "beside", "../made-too" },
		{ "inside", "plain" },           { "itself", "." },
	};
	AUTO(auto_free) char *fifo = place_path(*state, "made/fifo");
	AUTO(auto_free) char *beside = place_path(*state, "made-too");

	make("plain", "x");
	write_file(beside, "x", 0600);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t i = 0; i < STK_LENGTH(links); i++) {
		AUTO(auto_free) char *path = mem_format("%s/made/%s", here->root, links[i][0]);

		assert_int_equal(symlink(links[i][1], path), 0);
	}
	bring(rows, STK_LENGTH(rows));
	assert_int_equal(js_int(done, "left", -1), 6); /* the last two are uploaded anyway */
	assert_string_equal(why_left(0, "plain"), "a case");
	assert_string_equal(why_left(1, "gone"), "refused");
	assert_string_equal(why_left(2, "fifo"), "is not a file");
	assert_string_equal(why_left(3, "dangling"), "is a dangling link");
	assert_has(why_left(4, "out"), "is a link out of the folder");
	assert_has(why_left(5, "beside"), "is a link out of the folder");
}

static void at_most_sixteen_are_named_and_all_are_counted(void **state)
{
	struct fate rows[17];

	(void)state;
	for (size_t count = 16; count <= 17; count++) {
		for (size_t i = 0; i < count; i++)
			rows[i] = (struct fate){ SYNC_FAILED, "x", "why", 0 };
		bring(rows, count);
		assert_int_equal(js_int(done, "left", -1), count);
		assert_int_equal(json_array_size(json_object_get(done, "names")), 16);
	}
}

/* A key has 1,024 bytes at most, with all that is above it. */
static void a_name_that_no_key_can_have_is_left(void **state)
{
	size_t most = 1024 - strlen(ABOVE);
	AUTO(auto_free) char *fits = mem_alloc(most + 1);
	AUTO(auto_free) char *longer = mem_alloc(most + 2);
	struct fate rows[] = { { SYNC_MOVED, NULL, NULL, 1 }, { SYNC_MOVED, NULL, NULL, 1 } };

	(void)state;
	memset(fits, 'a', most);
	fits[most] = '\0';
	memset(longer, 'b', most + 1);
	longer[most + 1] = '\0';
	rows[0].key = fits;
	rows[1].key = longer;
	bring(rows, 2);
	assert_int_equal(js_int(done, "files", -1), 1);
	assert_string_equal(why_left(0, longer), "has a name too long for an object");
}

/* ---- names that a bucket does not take ---- */

static void odd_names_are_spelled_so_that_they_can_be_read_back(void **state)
{
	static const char *const names[][2] = {
		{ "a\nb", "a%0Ab" },
		{ "del\x7f", "del%7F" },
		{ "\x1f", "%1F" },
		{ "bad\xff"
		  "e",
		  "bad%FFe" },
		{ "50%\n", "50%25%0A" },
		{ "\xc3\xa4\t", "\xc3\xa4%09" },
	};
	struct fate rows[STK_LENGTH(names)];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		make(names[i][0], "four");
		rows[i] = (struct fate){ SYNC_REFUSED, names[i][0], "refused", 4 };
	}
	bring(rows, STK_LENGTH(names));
	assert_int_equal(json_array_size(uploaded), STK_LENGTH(names));
	for (size_t i = 0; i < STK_LENGTH(names); i++)
		assert_string_equal(json_string_value(json_array_get(uploaded, i)), names[i][1]);
	assert_int_equal(js_int(done, "files", -1), STK_LENGTH(names));
	assert_int_equal(js_int(done, "renamed", -1), STK_LENGTH(names));
	assert_int_equal(js_int(done, "bytes", -1), 4 * STK_LENGTH(names));
	assert_null(json_object_get(done, "left"));
}

static void remove_odd(const struct sync_options *options)
{
	AUTO(auto_free) char *path = place_path(here, "made/odd\n");

	(void)options;
	unlink(path);
}

static void an_odd_name_is_left_if_its_file_goes_or_its_spelling_does_not_fit(void **state)
{
	enum { LONG = 240 };
	static const struct fate gone[] = { { SYNC_REFUSED, "odd\n", "refused", 1 } };
	AUTO(auto_free) char *folder = mem_alloc(LONG + 1);
	AUTO(auto_free) char *name = NULL;
	struct fate wide[] = { { SYNC_REFUSED, NULL, "refused", 1 } };

	(void)state;
	make("odd\n", "x");
	while_moving = remove_odd;
	bring(gone, 1);
	assert_string_equal(why_left(0, "odd\n"), "was changed meanwhile");
	while_moving = NULL;
	/* Three bytes for each of its own. */
	memset(folder, '\n', LONG);
	folder[LONG] = '\0';
	name = mem_format("%s/%s/x", folder, folder);
	make(name, "x");
	wide[0].key = name;
	bring(wide, 1);
	assert_string_equal(why_left(0, name), "has an invalid name for an object");
	assert_int_equal(js_int(done, "files", -1), 0);
	assert_int_equal(json_array_size(uploaded), 0);
}

/* ---- a bucket that is away or refuses ---- */

static void a_bucket_that_is_away_is_tried_each_five_seconds(void **state)
{
	static const struct fate rows[] = { { SYNC_MOVED, "a", NULL, 3 } };

	(void)state;
	back_at_ms = 4 * PAUSE_MS;
	bring(rows, 1);
	assert_int_equal(passes, 5);
	assert_int_equal(moving, 4);                    /* its agent sees that it is at work */
	assert_int_equal(js_int(done, "files", -1), 1); /* of the last pass alone */
	assert_null(js_str(done, "why"));
}

static void after_ten_minutes_it_is_given_up(void **state)
{
	(void)state;
	back_at_ms = 10 * LAST_MS;
	bring(NULL, 0);
	assert_int_equal(passes, LAST_MS / PAUSE_MS + 1);
	assert_string_equal(js_str(done, "why"), "no answer");
	assert_string_equal(js_str(done, "hint"), "wait");
	assert_string_equal(js_str(done, "class"), "transient-infra");
}

static void what_it_refuses_is_not_tried_again(void **state)
{
	(void)state;
	code = EXIT_REFUSED;
	back_at_ms = LAST_MS;
	bring(NULL, 0);
	assert_int_equal(passes, 1);
	assert_string_equal(js_str(done, "class"), "quota-permission");
	/* A file that cannot be read is no matter of the bucket. */
	os_errno = 5;
	code = EXIT_UNREACHABLE;
	bring(NULL, 0);
	assert_int_equal(passes, 1);
	assert_null(js_str(done, "why"));
	assert_int_equal(js_int(done, "left", -1), 1);
	assert_has(why_left(0, ""), "no answer");
}

static void an_odd_name_that_fails_fails_the_pass(void **state)
{
	static const struct fate rows[] = { { SYNC_REFUSED, "odd\n", "refused", 1 } };

	(void)state;
	make("odd\n", "x");
	code = EXIT_REFUSED;
	lists = true;
	back_at_ms = LAST_MS;
	bring(rows, 1);
	assert_int_equal(js_int(done, "renamed", 0), 0);
	assert_string_equal(js_str(done, "class"), "quota-permission");
}

/* ---- messages meanwhile ---- */

static int64_t last_move_ms;

static void move_on(const struct sync_options *options)
{
	const struct sync_sum sum = { 0 };

	for (int i = 0; i < 10; i++) {
		now_ms += 400;
		traffic += now_ms - BEGIN_MS <= last_move_ms;
		assert_true(options->progress(options->arg, &sum));
	}
}

/* Waiting for a bucket that takes nothing is no progress. */
static void bytes_that_move_are_told_at_most_once_a_second(void **state)
{
	(void)state;
	while_moving = move_on;
	last_move_ms = 100000;
	bring(NULL, 0);
	assert_int_equal(moving, 4); /* at 0.4, 1.6, 2.8 and 4 s */
	now_ms = BEGIN_MS;
	last_move_ms = 400;
	bring(NULL, 0);
	assert_int_equal(moving, 1);
	now_ms = BEGIN_MS;
	last_move_ms = 0;
	traffic = 0;
	bring(NULL, 0);
	assert_int_equal(moving, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_there_or_arrives_is_counted),
		TEST(what_is_no_file_is_left_with_what_it_is),
		TEST(at_most_sixteen_are_named_and_all_are_counted),
		TEST(a_name_that_no_key_can_have_is_left),
		TEST(odd_names_are_spelled_so_that_they_can_be_read_back),
		TEST(an_odd_name_is_left_if_its_file_goes_or_its_spelling_does_not_fit),
		TEST(a_bucket_that_is_away_is_tried_each_five_seconds),
		TEST(after_ten_minutes_it_is_given_up),
		TEST(what_it_refuses_is_not_tried_again),
		TEST(an_odd_name_that_fails_fails_the_pass),
		TEST(bytes_that_move_are_told_at_most_once_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
