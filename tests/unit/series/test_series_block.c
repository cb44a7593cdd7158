/* The promises of jobs/series/series_block.h: what was added comes back bit for bit; a block that
 * is not whole, byte for byte, is none. */
#include "scene.h"

#include <math.h>

static const double values[] = { 0.0,   -0.0,   1.0, 6.25e-05, -0.1,
				 1e308, 5e-324, NAN, INFINITY, -INFINITY };

static struct series_block made;
static struct sb bytes;

static void make(size_t count)
{
	made = (struct series_block){ .metrics = 7, .start = 2, .flags = 0 };
	series_block_begin(&made, 1000, 41);
	made.flags = SERIES_LATE;
	for (size_t i = 0; i < count; i++)
		series_block_add(
			&made, &(struct series_point){ i % 3,
						       i % 5 == 4 ? -1 : (int64_t)(i * i) - 50,
						       { 1700000000000 - (int64_t)(i % 7) * 1000 },
						       values[i % STK_LENGTH(values)] });
	made.to = 5000;
	made.step_after = 77;
	bytes = SB_INIT_MAX(SERIES_BLOCK_MAX);
	series_block_encode(&made, &bytes);
}

static void forget(void)
{
	series_block_release(&made);
	sb_release(&bytes);
}

static void comes_back(const struct series_block *given, size_t count)
{
	struct series_block block = *given;
	struct series_point point = { 0 };

	for (size_t i = 0; i < count; i++) {
		double value = values[i % STK_LENGTH(values)];

		assert_true(series_block_next(&block, &point));
		assert_int_equal(point.metric, i % 3);
		assert_int_equal(point.step, i % 5 == 4 ? -1 : (int64_t)(i * i) - 50);
		assert_int_equal(point.at.ms, 1700000000000 - (int64_t)(i % 7) * 1000);
		assert_memory_equal(&point.value, &value, sizeof value);
	}
	assert_false(series_block_next(&block, &point));
}

static void what_was_added_comes_back(void **state)
{
	struct series_block block;

	(void)state;
	make(500);
	assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), bytes.len);
	assert_int_equal(block.from, 1000);
	assert_int_equal(block.to, 5000);
	assert_int_equal(block.step_before, 41);
	assert_int_equal(block.step_after, 77);
	assert_int_equal(block.metrics, 7);
	assert_int_equal(block.start, 2);
	assert_int_equal(block.count, 500);
	assert_int_equal(block.flags, SERIES_LATE);
	comes_back(&block, 500);
	forget();
	make(0);
	assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), SERIES_HEADER_BYTES);
	comes_back(&block, 0);
	forget();
}

static void a_block_that_is_not_whole_is_none(void **state)
{
	struct series_block block;

	(void)state;
	make(20);
	for (size_t len = 0; len < bytes.len; len++)
		assert_int_equal(series_block_decode(bytes.text, len, &block), 0);
	for (size_t i = 0; i < bytes.len; i++) {
		bytes.text[i] ^= 0x10;
		assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), 0);
		bytes.text[i] ^= 0x10;
	}
	/* A block that ends before it begins is whole, and nonsense. */
	sb_clear(&bytes);
	made.to = 999;
	series_block_encode(&made, &bytes);
	assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), 0);
	forget();
}

/* A sum can be made for any bytes, by whoever may write into the workspace. */
static void nonsense_of_a_right_sum_is_read_to_its_end(void **state)
{
	unsigned char most[10], reading[1 + 2 * sizeof most + 8] = { 0 };
	struct series_point point = { 0 };
	struct series_block block;

	(void)state;
	memset(most, 0xff, sizeof most - 1);
	most[sizeof most - 1] = 1;
	most[0] = 0xfe; /* the largest of all numbers */
	memcpy(reading + 1, most, sizeof most);
	memcpy(reading + 1 + sizeof most, most, sizeof most);
	make(0);
	for (int i = 0; i < 3; i++)
		sb_add(&made.payload, (const char *)reading, sizeof reading);
	sb_add(&made.payload, (const char *)reading, sizeof most + 5);
	sb_clear(&bytes);
	series_block_encode(&made, &bytes);
	assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), bytes.len);
	assert_true(series_block_next(&block, &point));
	assert_int_equal(point.step, INT64_MAX);
	assert_int_equal(point.at.ms, INT64_MAX);
	assert_true(series_block_next(&block, &point) && series_block_next(&block, &point));
	assert_false(series_block_next(&block, &point));
	forget();
}

static void a_block_is_written_on(void **state)
{
	struct series_block block;

	(void)state;
	make(30);
	assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), bytes.len);
	series_block_reopen(&block);
	for (size_t i = 30; i < 60; i++)
		series_block_add(
			&block, &(struct series_point){ i % 3,
							i % 5 == 4 ? -1 : (int64_t)(i * i) - 50,
							{ 1700000000000 - (int64_t)(i % 7) * 1000 },
							values[i % STK_LENGTH(values)] });
	sb_clear(&bytes);
	series_block_encode(&block, &bytes);
	series_block_release(&block);
	assert_int_equal(series_block_decode(bytes.text, bytes.len, &block), bytes.len);
	assert_int_equal(block.count, 60);
	comes_back(&block, 60);
	forget();
}

static void there_is_room_until_there_is_none(void **state)
{
	size_t added = 0;

	(void)state;
	make(0);
	while (series_block_has_room(&made, 1)) {
		series_block_add(&made, &(struct series_point){
						SIZE_MAX,
						added % 2 ? INT64_MIN / 4 : INT64_MAX / 4,
						{ added % 2 ? INT64_MIN / 4 : INT64_MAX / 4 },
						1 });
		added++;
	}
	assert_true(made.payload.len <= SERIES_PAYLOAD_MAX && !made.payload.truncated);
	assert_true(added > 800);
	forget();
}

/* A reading takes at most 40 bytes; in fact 12. */
static void a_reading_is_small(void **state)
{
	(void)state;
	made = (struct series_block){ 0 };
	series_block_begin(&made, 0, -1);
	for (int i = 0; i < 1000; i++)
		series_block_add(&made, &(struct series_point){ (size_t)(i % 2),
								i / 2 * 10,
								{ 1764400000000 + i * 40 },
								1.0 / (i + 1) });
	assert_true(made.payload.len < (size_t)1000 * 13);
	series_block_release(&made);
}

static void a_sum_is_of_one_log_and_its_metrics(void **state)
{
	uint32_t sum;

	(void)state;
	use(WITH_STEP);
	sum = series_sum(specs, PREFIX, 0);
	assert_int_equal(sum, series_sum(specs, PREFIX, 0));
	assert_int_not_equal(sum, series_sum(specs, PREFIX, 1));
	assert_int_not_equal(sum, series_sum(specs, "runs/two/train-1/", 0));
	use(NO_STEP);
	assert_int_not_equal(sum, series_sum(specs, PREFIX, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_comes_back),
		cmocka_unit_test(a_block_that_is_not_whole_is_none),
		cmocka_unit_test(nonsense_of_a_right_sum_is_read_to_its_end),
		cmocka_unit_test(a_block_is_written_on),
		cmocka_unit_test(there_is_room_until_there_is_none),
		cmocka_unit_test(a_reading_is_small),
		test_in_scene(a_sum_is_of_one_log_and_its_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
