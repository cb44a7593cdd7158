/* The promises of jobs/series/series_writer.h and series_read.h: whatever happens to the file, it
 * and the log together say what the log says. */
#include "scene.h"

#define TIME INT64_C(1764400000000)

static void a_log_in_any_pieces_gives_the_same_readings(void **state)
{
	const char *seed = getenv("STOKER_TEST_SEED");

	(void)state;
	chance_state = 88172645463325252u + (seed ? strtoull(seed, NULL, 10) : 1);
	for (int round = 0; round < 40; round++) {
		int64_t at_step = 0;

		sb_clear(&text);
		unlink(path);
		use(round % 4 == 0 ? NO_STEP : WITH_STEP);
		for (int64_t start = 0; start < 4; start++) {
			open_writer(start / 2);
			if (start == 2)
				add_start(1);
			for (uint64_t lines = chance(400); lines > 0; lines--) {
				size_t before = text.len;

				add_any_line(&at_step);
				/* The rest of the line comes later, or with the next start. */
				if (chance(3) > 0)
					continue;
				if (chance(4) == 0) {
					char held[64] = "";
					size_t cut = text.len - before;

					cut = cut < sizeof held ? chance(cut) : 0;
					memcpy(held, text.text + text.len - cut, cut);
					text.len -= cut;
					feed_all(TIME, chance(9) == 0);
					sb_add(&text, held, cut);
				} else if (chance(20) == 0) {
					series_writer_skip(writer,
							   text.len - chance(text.len - before));
				} else {
					feed_all(TIME, chance(9) == 0);
				}
			}
			series_writer_freep(&writer);
			if (chance(3) == 0 && size_of_file() > 0)
				assert_int_equal(truncate(path, (off_t)chance(size_of_file())), 0);
			tell();
		}
	}
}

/* A log of a few blocks. */
static void write_some(int64_t count)
{
	char line[100];

	use(WITH_STEP);
	for (int64_t i = 1; i <= count; i++) {
		snprintf(line, sizeof line, "step %lld loss %.9g", (long long)i, 1.0 / (double)i);
		add_line(line);
	}
	open_writer(0);
	feed_all(TIME, false);
	series_writer_freep(&writer);
}

static void a_file_is_read_without_the_log(void **state)
{
	(void)state;
	write_some(5000);
	tell();
	assert_int_equal(from_blocks, 10000);
	assert_true(blocks >= 3);
	assert_int_equal(told[0].at_ms, TIME);
	assert_true(size_of_file() < (uint64_t)10000 * 13);
}

static void a_torn_file_loses_nothing(void **state)
{
	AUTO(sb_release) struct sb whole = SB_INIT_MAX((size_t)1 << 20);
	size_t last;

	(void)state;
	write_some(5000);
	assert_int_equal(fs_read(path, whole.max, &whole, &failure), 0);
	tell();
	last = from_blocks;
	for (uint64_t size = whole.len; size > 0; size -= size > 4001 ? 4001 : size) {
		assert_int_equal(truncate(path, (off_t)size), 0);
		tell();
		assert_true(from_blocks <= last);
		last = from_blocks;
	}
	for (size_t i = 0; i < whole.len; i += 997) {
		whole.text[i] ^= 1;
		assert_int_equal(fs_write_passing(path, whole.text, whole.len, 0600, &failure), 0);
		tell();
		assert_true(from_blocks < 10000);
		/* The next writer mends it. */
		open_writer(0);
		feed_all(TIME + 5, true);
		series_writer_freep(&writer);
		tell();
		assert_int_equal(from_blocks, 10000);
		whole.text[i] ^= 1;
	}
}

static void other_metrics_begin_anew(void **state)
{
	(void)state;
	write_some(3000);
	use(NO_STEP);
	tell();
	assert_int_equal(from_blocks, 0);
	open_writer(0);
	assert_int_equal(series_writer_offset(writer), 0);
	feed_all(TIME, true);
	series_writer_freep(&writer);
	tell();
	assert_int_equal(from_blocks, 3000);
	assert_true(told[0].late);
}

static void another_logs_file_is_foreign(void **state)
{
	const struct series_log other = { NULL, PREFIX, 1, 0, 1000000 };
	struct series_log log = other;

	(void)state;
	write_some(2000);
	unlink(path);
	log.specs = specs;
	assert_int_equal(series_writer_open(path, &log, &writer, &failure), 0);
	series_writer_feed(writer, "step 999 loss 9\n", 16, (struct utc){ TIME }, false);
	series_writer_freep(&writer);
	tell();
	assert_int_equal(from_blocks, 0);
	assert_int_equal(fs_write_passing(path, "no series\n", 10, 0600, &failure), 0);
	tell();
	open_writer(0);
	feed_all(TIME, false);
	series_writer_freep(&writer);
	tell();
	assert_int_equal(from_blocks, 4000);
}

static void what_is_no_file_is_passed_over(void **state)
{
	const struct series_log log = { NULL, PREFIX, 0, 0, 0 };

	(void)state;
	write_some(100);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	tell();
	assert_int_equal(from_blocks, 0);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	tell();
	assert_int_equal(series_writer_open(path, &log, &writer, &failure), -1);
	err_freep(&failure);
	assert_int_equal(rmdir(path), 0);
}

/* A power cut may leave a log that has lost what the file beside it has kept. */
static void a_file_longer_than_the_log_is_cut(void **state)
{
	(void)state;
	write_some(5000);
	text.len = text.len / 3 - 5;
	tell();
	assert_true(from_blocks > 0);
	open_writer(1);
	assert_true(series_writer_offset(writer) <= text.len);
	add_line("");
	add_start(1);
	add_line("step 7 loss 0.25");
	feed_all(TIME, false);
	series_writer_freep(&writer);
	tell();
	assert_int_equal(told[told_count - 1].step, 7);
	assert_int_equal(told[told_count - 1].start, 1);
	assert_int_equal(from_blocks, told_count);
}

static void a_part_that_is_left_out_is_in_the_log(void **state)
{
	(void)state;
	write_some(100);
	open_writer(0);
	for (int i = 101; i <= 200; i++)
		add_line("step 150 loss 3");
	series_writer_skip(writer, text.len - 4);
	/* Readings go on with a step, so that no later one has the step of before the gap. */
	add_line("loss 4");
	add_line("step 201 loss 5");
	add_line("loss 6");
	feed_all(TIME, false);
	series_writer_freep(&writer);
	tell();
	assert_int_equal(from_blocks, 203);
	assert_int_equal(told_count, 200 + 200 + 1 + 3);
	assert_int_equal(told[told_count - 1].at_ms, TIME);
	assert_int_equal(told[told_count - 4].at_ms, 0);
	assert_int_equal(told[told_count - 4].step, 150);
}

static void late_readings_have_blocks_of_their_own(void **state)
{
	(void)state;
	use(WITH_STEP);
	open_writer(0);
	add_line("step 1 loss 1");
	feed_all(TIME, true);
	add_line("step 2 loss 2");
	feed_all(TIME + 1, false);
	series_writer_freep(&writer);
	tell();
	assert_int_equal(blocks, 2);
	assert_true(told[0].late && told[1].late && !told[2].late && !told[3].late);
}

static void each_start_has_its_blocks(void **state)
{
	(void)state;
	use(WITH_STEP);
	for (int start = 0; start < 3; start++) {
		open_writer(start);
		add_start(start);
		add_line("loss 2");
		add_line("step 1 loss 1");
		sb_adds(&text, "step 2 lo");
		feed_all(TIME, false);
		series_writer_freep(&writer);
		add_line("");
	}
	tell();
	/* The line that the second writer has read is of the first start all the same. */
	assert_int_equal(told_count, 12);
	assert_int_equal(told[3].start, 0);
	assert_int_equal(told[4].start, 1);
	assert_int_equal(told[4].step, -1);
	assert_int_equal(told[8].start, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scene(a_log_in_any_pieces_gives_the_same_readings),
		test_in_scene(a_file_is_read_without_the_log),
		test_in_scene(a_torn_file_loses_nothing),
		test_in_scene(other_metrics_begin_anew),
		test_in_scene(another_logs_file_is_foreign),
		test_in_scene(what_is_no_file_is_passed_over),
		test_in_scene(a_file_longer_than_the_log_is_cut),
		test_in_scene(a_part_that_is_left_out_is_in_the_log),
		test_in_scene(late_readings_have_blocks_of_their_own),
		test_in_scene(each_start_has_its_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
