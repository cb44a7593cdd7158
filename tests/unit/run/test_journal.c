/* The promises of jobs/run/journal/journal.h and event_json.h, on every kind of store: each test
 * runs once a kind. Where STOKER_TEST_STORE names a bucket (tests/aws), there instead, less
 * what is about files. */
#include "jobs/run/journal/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

static const struct journal_ops *const kinds[] = { &journal_sqlite, &journal_objects };
static const struct journal_ops *now; /* the kind of this round */
static char dir[64];
static const char *bucket; /* NULL: journals lie in folders */

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-journal-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static struct journal *open_journal(enum journal_mode mode)
{
	AUTO(auto_free)
	char *url =
		bucket ? mem_format("%s%s", bucket, dir) : mem_format("%s:%s", now->scheme, dir);
	struct journal *journal = NULL;
	struct err *err = NULL;

	if (journal_open(url, mode, &journal, &err) < 0)
		fail_msg("%s", err->message);
	return journal;
}

/* An event of the kind with every field it allows. */
static struct event full_event(enum event_kind kind, json_t *json)
{
	struct event ev = { .kind = kind, .seq = 1, .at = { 1795000000123 } };

	for (int id = 0; id < EVF_COUNT; id++) {
		char *at = (char *)&ev + event_fields[id].offset;

		if (!(event_rows[kind].allowed >> id & 1))
			continue;
		ev.present |= FIELD_SET_OF(id);
		switch (event_fields[id].type) {
		case EVT_INT:
		case EVT_INSTANT:
		case EVT_DURATION:
			*(int64_t *)(void *)at = 1000 + id;
			break;
		case EVT_REAL:
			*(double *)(void *)at = 0.5 + id;
			break;
		case EVT_BOOL:
			*(bool *)(void *)at = true;
			break;
		case EVT_STR:
			*(const char **)(void *)at = "text with \"quotes\" and ü";
			break;
		case EVT_JSON:
			*(json_t **)(void *)at = json;
			break;
		case EVT_ENUM:
			*(int *)(void *)at = event_fields[id].name_count - 1;
			break;
		}
	}
	return ev;
}

static void every_event_comes_back_from_json_as_it_was(void **state)
{
	json_auto_t *json = json_pack("{s:[i,i]}", "list", 1, 2);

	(void)state;
	for (int kind = 0; kind < EV_COUNT; kind++) {
		struct event ev = full_event((enum event_kind)kind, json), back;
		json_auto_t *row = event_encode("r1", &ev);
		json_auto_t *again = NULL;
		struct err *err = NULL;

		assert_int_equal(event_decode(row, &back, &err), 1);
		assert_int_equal(back.kind, ev.kind);
		assert_true(back.present == ev.present);
		assert_int_equal(back.at.ms, ev.at.ms);
		again = event_encode("r1", &back);
		assert_true(json_equal(row, again));
	}
}

static void an_event_of_a_later_version_is_skipped_and_a_damaged_one_is_an_error(void **state)
{
	json_auto_t *later = json_pack("{s:i,s:s,s:i,s:s,s:s}", "v", 1, "run", "r", "seq", 1, "at",
				       "2026-11-21T11:36:00.123Z", "event", "moon.landed");
	json_auto_t *damaged = json_pack("{s:i,s:s,s:i,s:s,s:s}", "v", 1, "run", "r", "seq", 1,
					 "at", "2026-11-21T11:36:00.123Z", "event", "run.ended");
	AUTO(err_freep) struct err *err = NULL;
	struct event ev;

	(void)state;
	assert_int_equal(event_decode(later, &ev, &err), 0);
	assert_int_equal(event_decode(damaged, &ev, &err), -1);
	assert_non_null(err);
}

static void an_append_with_a_taken_number_does_not_happen(void **state)
{
	AUTO(journal_freep) struct journal *one = open_journal(JOURNAL_WRITE);
	AUTO(journal_freep) struct journal *two = open_journal(JOURNAL_WRITE);
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = 1, .at = { 1 } };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(journal_append(one, "r1", &ev, &err), 1);
	assert_int_equal(journal_append(two, "r1", &ev, &err), 0);
	assert_int_equal(journal_append(two, "r2", &ev, &err), 1);
	ev.seq = 2;
	assert_int_equal(journal_append(two, "r1", &ev, &err), 1);
	assert_null(err);
}

struct seen {
	int64_t last, count;
};

static int note_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct seen *seen = arg;

	(void)err;
	assert_non_null(ev);
	assert_int_equal(js_int(row, "seq", 0), seen->last + 1);
	seen->last = ev->seq;
	seen->count++;
	return 0;
}

/* Eight processes append to one run; each number is taken by exactly one. */
static void racing_writers_leave_one_gapless_sequence(void **state)
{
	enum { WRITERS = 8, EACH = 20 };
	pid_t pids[WRITERS];
	struct seen seen = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct journal *journal = open_journal(JOURNAL_WRITE);
			struct event ev = { .kind = EV_REQUEST_STOP, .seq = 1, .at = { 1 } };
			struct err *failed = NULL;

			for (int done = 0; done < EACH; ev.seq++) {
				int result = journal_append(journal, "race", &ev, &failed);

				if (result < 0)
					_exit(1);
				done += result;
			}
			_exit(0);
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_READ);
	assert_int_equal(journal_read(journal, "race", 1, note_event, &seen, &err), 0);
	assert_int_equal(seen.count, WRITERS * EACH);
}

static void reading_creates_nothing_and_an_absent_store_is_empty(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_READ);
	AUTO(err_freep) struct err *err = NULL;
	char run[JOURNAL_RUN_MAX];

	(void)state;
	assert_int_equal(journal_resolve(journal, "@last", run, &err), -1);
	assert_int_equal(err->code, EXIT_NOT_FOUND);
	err_freep(&err);
	assert_int_equal(journal_resolve(journal, "some-run", run, &err), -1);
	assert_int_equal(err->code, EXIT_NOT_FOUND);
	assert_int_equal(rmdir(dir), 0); /* it is empty */
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void a_run_is_found_by_id_prefix_or_last(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = 1, .at = { 1 } };
	static const char *const runs[] = { "zeta", "alpha", "alphabet" };
	AUTO(err_freep) struct err *err = NULL;
	char run[JOURNAL_RUN_MAX];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(runs); i++) {
		ev.at.ms += 1000;
		assert_int_equal(journal_append(journal, runs[i], &ev, &err), 1);
	}
	assert_int_equal(journal_resolve(journal, "@last", run, &err), 0);
	assert_string_equal(run, "alphabet");
	assert_int_equal(journal_resolve(journal, "ze", run, &err), 0);
	assert_string_equal(run, "zeta");
	assert_int_equal(journal_resolve(journal, "alpha", run, &err), 0);
	assert_string_equal(run, "alpha");
	assert_int_equal(journal_resolve(journal, "al", run, &err), -1);
	assert_non_null(strstr(err->message, "2 run ids"));
}

/* Appends `count` events to a run. */
static void fill(struct journal *journal, const char *run, int64_t from, int64_t to)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .at = { 5000 } };
	struct err *err = NULL;

	for (ev.seq = from; ev.seq <= to; ev.seq++)
		if (journal_append(journal, run, &ev, &err) != 1)
			fail_msg("%s", err ? err->message : "taken");
}

static void any_part_of_a_long_run_is_read_in_order(void **state)
{
	static const int64_t starts[] = { 1, 2, 63, 64, 65, 66, 128, 129, 200, 300, 301, 999 };
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	fill(journal, "long", 1, 300);
	for (size_t i = 0; i < STK_LENGTH(starts); i++) {
		struct seen seen = { .last = starts[i] - 1 };

		assert_int_equal(journal_read(journal, "long", starts[i], note_event, &seen, &err),
				 0);
		assert_int_equal(seen.count, starts[i] <= 300 ? 301 - starts[i] : 0);
	}
}

static int stop_at(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	int64_t *last = arg;

	(void)row;
	if (ev->seq == 150)
		return err_set(err, EXIT_GATE, "enough of it");
	*last = ev->seq;
	return ev->seq == 70;
}

static void a_reader_may_stop_and_may_fail(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	AUTO(err_freep) struct err *err = NULL;
	int64_t last = 0;

	(void)state;
	fill(journal, "long", 1, 200);
	assert_int_equal(journal_read(journal, "long", 1, stop_at, &last, &err), 0);
	assert_int_equal(last, 70);
	assert_int_equal(journal_read(journal, "long", 71, stop_at, &last, &err), -1);
	assert_int_equal(last, 149);
	assert_int_equal(err->code, EXIT_GATE);
	assert_string_equal(err->message, "enough of it");
}

static void what_one_appends_another_reads_at_once(void **state)
{
	AUTO(journal_freep) struct journal *writer = open_journal(JOURNAL_WRITE);
	AUTO(journal_freep) struct journal *reader = open_journal(JOURNAL_READ);
	AUTO(err_freep) struct err *err = NULL;
	struct seen seen = { 0 };

	(void)state;
	for (int64_t seq = 1; seq <= 130; seq++) {
		fill(writer, "r1", seq, seq);
		assert_int_equal(journal_read(reader, "r1", seq, note_event, &seen, &err), 0);
		assert_int_equal(seen.count, seq);
	}
}

static int take_row(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev;
	(void)err;
	*(json_t **)arg = json_incref(row);
	return 0;
}

/* A driver lives by what it appended, one that takes over by what it reads. */
static void what_was_appended_is_to_the_last_digit_what_is_read(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	struct event ev = { .kind = EV_TRAIN_PROGRESS, .seq = 1, .at = { 1795000000123 } };
	json_auto_t *read = NULL;
	struct err *err = NULL;

	(void)state;
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, eta, 1369.3860000000011);
	assert_int_equal(journal_append(journal, "digits", &ev, &err), 1);
	assert_int_equal(journal_read(journal, "digits", 1, take_row, &read, &err), 0);
	assert_true(json_equal(read, journal_appended(journal)));
}

static void a_run_that_is_forgotten_is_gone_and_its_id_is_free(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	AUTO(err_freep) struct err *err = NULL;
	struct seen seen = { 0 };
	char run[JOURNAL_RUN_MAX];
	json_auto_t *runs = json_array();

	(void)state;
	fill(journal, "gone", 1, 150);
	fill(journal, "stays", 1, 3);
	assert_int_equal(journal_forget(journal, "gone", &err), 0);
	assert_int_equal(journal_forget(journal, "gone", &err), 0); /* done is done */
	assert_int_equal(journal_runs(journal, runs, &err), 0);
	assert_int_equal(json_array_size(runs), 1);
	assert_int_equal(journal_read(journal, "gone", 1, note_event, &seen, &err), 0);
	assert_int_equal(seen.count, 0);
	assert_int_equal(journal_resolve(journal, "gone", run, &err), -1);
	err_freep(&err);
	/* The id is free also when the rests beneath its folder are still there. */
	fill(journal, "gone", 1, 5);
	assert_int_equal(journal_read(journal, "gone", 1, note_event, &seen, &err), 0);
	assert_int_equal(seen.count, 5);
}

static void what_was_derived_is_the_newest_and_goes_with_its_run(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	AUTO(sb_release) struct sb kept = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	const bool keeps = now == &journal_sqlite;
	int64_t seq = 0;

	(void)state;
	fill(journal, "r1", 1, 3);
	assert_int_equal(journal_kept(journal, "r1", &seq, &kept, &err), 0);
	assert_int_equal(journal_keep(journal, "r1", 2, "one\0two", 7, &err), keeps);
	assert_int_equal(journal_keep(journal, "r1", 3, "th\0ree", 6, &err), keeps);
	assert_int_equal(journal_keep(journal, "r2", 9, "other", 5, &err), keeps);
	assert_int_equal(journal_kept(journal, "r1", &seq, &kept, &err), keeps);
	if (keeps) {
		assert_int_equal(seq, 3);
		assert_int_equal(kept.len, 6);
		assert_memory_equal(kept.text, "th\0ree", 6);
	}
	assert_int_equal(journal_forget(journal, "r1", &err), 0);
	assert_int_equal(journal_kept(journal, "r1", &seq, &kept, &err), 0);
	assert_int_equal(journal_kept(journal, "r2", &seq, &kept, &err), keeps);
}

static void check_private(const char *path)
{
	AUTO(auto_free) char *command = mem_format("find '%s' -mindepth 1 -perm /077", path);
	FILE *find = popen(command, "r");
	char line[256] = "";

	assert_non_null(find);
	if (fgets(line, sizeof line, find))
		fail_msg("open to others: %s", line);
	assert_int_equal(pclose(find), 0);
}

static void the_files_are_private(void **state)
{
	AUTO(journal_freep) struct journal *journal = open_journal(JOURNAL_WRITE);
	mode_t before = umask(0);

	(void)state;
	fill(journal, "r1", 1, 70);
	umask(before);
	check_private(dir);
}

static void what_is_no_journal_of_ours_is_refused(void **state)
{
	const char *file = now == &journal_sqlite ? JOURNAL_SQLITE_FILE : JOURNAL_DIR_MARK;
	const char *newer = "{\"v\":2,\"kind\":\"dir\"}\n", *text = "no journal, surely\n";
	AUTO(auto_free) char *path = fs_join(dir, file);
	AUTO(err_freep) struct err *err = NULL;
	struct journal *journal = NULL;

	(void)state;
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
	assert_int_equal(journal_open(dir, JOURNAL_READ, &journal, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	if (now != &journal_objects)
		return;
	err_freep(&err);
	assert_int_equal(fs_write_atomic(path, newer, strlen(newer), 0600, &err), 0);
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &journal, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(err->hint);
}

static void a_folder_keeps_the_kind_of_journal_it_has(void **state)
{
	const struct journal_ops *other = now == kinds[0] ? kinds[1] : kinds[0];
	AUTO(auto_free) char *url = mem_format("%s:%s", other->scheme, dir);
	AUTO(journal_freep) struct journal *one = open_journal(JOURNAL_WRITE);
	AUTO(journal_freep) struct journal *two = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct journal *wrong = NULL;
	char run[JOURNAL_RUN_MAX];

	(void)state;
	fill(one, "r1", 1, 1);
	assert_int_equal(journal_open(dir, JOURNAL_READ, &two, &err), 0);
	assert_int_equal(journal_resolve(two, "@last", run, &err), 0);
	assert_true((journal_store(two) != NULL) == (now == &journal_objects));
	for (int mode = JOURNAL_READ; mode <= JOURNAL_WRITE; mode++) {
		assert_int_equal(journal_open(url, (enum journal_mode)mode, &wrong, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(strstr(err->message, now->scheme));
		assert_non_null(err->hint);
		err_freep(&err);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#define OF_ALL_KINDS                                                                               \
	TEST(every_event_comes_back_from_json_as_it_was),                                          \
		TEST(an_event_of_a_later_version_is_skipped_and_a_damaged_one_is_an_error),        \
		TEST(an_append_with_a_taken_number_does_not_happen),                               \
		TEST(racing_writers_leave_one_gapless_sequence),                                   \
		TEST(reading_creates_nothing_and_an_absent_store_is_empty),                        \
		TEST(a_run_is_found_by_id_prefix_or_last),                                         \
		TEST(any_part_of_a_long_run_is_read_in_order),                                     \
		TEST(a_reader_may_stop_and_may_fail),                                              \
		TEST(what_one_appends_another_reads_at_once),                                      \
		TEST(what_was_appended_is_to_the_last_digit_what_is_read),                         \
		TEST(a_run_that_is_forgotten_is_gone_and_its_id_is_free),                          \
		TEST(what_was_derived_is_the_newest_and_goes_with_its_run)

int main(void)
{
	const struct CMUnitTest in_bucket[] = { OF_ALL_KINDS };
	const struct CMUnitTest tests[] = {
		OF_ALL_KINDS,
		TEST(the_files_are_private),
		TEST(what_is_no_journal_of_ours_is_refused),
		TEST(a_folder_keeps_the_kind_of_journal_it_has),
	};
	int failed = 0;

	bucket = getenv("STOKER_TEST_STORE");
	now = &journal_objects;
	if (bucket)
		return cmocka_run_group_tests_name("s3", in_bucket, NULL, NULL);
	for (size_t i = 0; i < STK_LENGTH(kinds); i++) {
		now = kinds[i];
		failed += cmocka_run_group_tests_name(now->scheme, tests, NULL, NULL);
	}
	return failed;
}
