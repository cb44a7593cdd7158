/* The promises of jobs/series/series_stream.h: whenever a writer dies, and whatever happens to what
 * it has kept, the next ones keep each reading of a service's log once, and what is kept says where
 * to read on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/series/series_mark.h"
#include "jobs/series/series_stream.h"

#define PREFIX    "runs/one/train-1/"
#define TIME      INT64_C(1764400000000)
#define LINES_MAX 9000

static json_t *specs;
static char folder[] = "/tmp/series_stream_XXXXXX";
static struct store *store;
static struct series_place place;
static uint64_t chance_state;

/* The service's log: lines with or without readings, in the order of reading. */
static struct line {
	uint64_t id;
	int64_t at_ms;
	size_t count; /* 0, or the loss with the step (2) or without (1) */
	int64_t step;
	double loss;
} lines[LINES_MAX];
static size_t line_count;

/* The kept readings, as they were told. */
static uint64_t told, marked;
static struct series_mark mark;
static bool is_ended, is_lost;
static double losses[LINES_MAX];
static int64_t steps[LINES_MAX];
static size_t loss_count;

static uint64_t chance(uint64_t below)
{
	chance_state ^= chance_state << 13;
	chance_state ^= chance_state >> 7;
	chance_state ^= chance_state << 17;
	return chance_state % below;
}

static void make_log(size_t count)
{
	int64_t at = TIME, step = 0;

	line_count = count;
	for (size_t i = 0; i < count; i++) {
		at += (int64_t)chance(30);
		lines[i] = (struct line){ .id = i + 1, .at_ms = at, .count = chance(3) };
		step += lines[i].count == 2;
		lines[i].step = step;
		lines[i].loss = 1.0 / (double)(i + 1);
		/* Some come late: they are read behind newer ones. */
		if (chance(10) == 0)
			lines[i].at_ms -= (int64_t)chance(2000);
	}
}

static void feed(struct series_stream *stream, const struct line *line)
{
	const struct metric_reading readings[] = { { 1, line->step, (double)line->step },
						   { 0, line->step, line->loss } };

	series_stream_add(stream, &(struct series_stream_line){ line->id,
								{ line->at_ms },
								readings + (2 - line->count),
								line->count });
}

static struct series_stream *open_stream(int64_t writer)
{
	AUTO(err_freep) struct err *err = NULL;
	struct series_stream *stream = NULL;

	assert_int_equal(series_stream_open(&place, writer, &stream, &err), 0);
	return stream;
}

static void write_stream(struct series_stream *stream)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(series_stream_write(stream, &err), 0);
}

static void end_stream(struct series_stream *stream, bool lost)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(series_stream_end(stream, lost, &err), 0);
}

static int on_block(void *arg, struct series_block *block, struct err **err)
{
	struct series_point point = { 0 };

	(void)arg;
	(void)err;
	if (block->from > told)
		return 0;
	is_lost |= (block->flags & SERIES_LOST) && !(block->flags & SERIES_MARK);
	if (block->to >= told && series_mark_decode(block, &mark)) {
		marked = block->to;
		is_ended = block->flags & SERIES_END;
		return 0;
	}
	for (uint64_t at = block->from;
	     !(block->flags & SERIES_MARK) && series_block_next(block, &point); at++) {
		if (at < told || point.metric != 0)
			continue;
		losses[loss_count] = point.value;
		steps[loss_count++] = point.step;
	}
	told = block->to > told ? block->to : told;
	return 0;
}

static void tell(void)
{
	AUTO(err_freep) struct err *err = NULL;
	struct series_place own = place;

	told = marked = loss_count = 0;
	is_ended = is_lost = false;
	series_mark_release(&mark);
	own.is_stream = true;
	own.log_size = UINT64_MAX;
	assert_int_equal(series_read(&own, on_block, NULL, &err), 0);
}

/* Checks that the begin of the log is kept; returns the number of its losses. */
static size_t check_begin(void)
{
	size_t i = 0;

	tell();
	for (size_t k = 0; k < line_count && i < loss_count; k++) {
		if (lines[k].count == 0)
			continue;
		assert_true(losses[i] == lines[k].loss);
		assert_true(steps[i] == (lines[k].step > 0 ? lines[k].step : -1) ||
			    (lines[k].count == 1 && lines[k].step == 0));
		i++;
	}
	assert_int_equal(i, loss_count);
	return i;
}

static size_t losses_in_log(void)
{
	size_t count = 0;

	for (size_t k = 0; k < line_count; k++)
		count += lines[k].count > 0;
	return count;
}

static int tear_one(void *arg, const struct store_object *object, struct err **err)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", folder, object->key);

	(void)arg;
	(void)err;
	if (chance(4) == 0)
		assert_int_equal(truncate(path, (off_t)chance(object->size + 1)), 0);
	return 0;
}

static void tear_some(void)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(store_list(store, "", tear_one, NULL, &err), 0);
}

static void clear(void)
{
	AUTO(auto_free) char *runs = mem_format("%s/runs", folder);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_remove_tree(runs, &err), 0);
}

static void each_reading_is_kept_once_whenever_a_writer_dies(void **state)
{
	const char *seed = getenv("STOKER_TEST_SEED");

	(void)state;
	chance_state = 88172645463325252u + (seed ? strtoull(seed, NULL, 10) : 1);
	for (int round = 0; round < 30; round++) {
		int64_t writer = 0;

		clear();
		make_log(200 + chance(round % 5 == 0 ? LINES_MAX - 200 : 800));
		for (uint64_t deaths = chance(6); deaths > 0; deaths--) {
			AUTO(series_stream_freep)
			struct series_stream *stream = open_stream(++writer);
			size_t end = chance(line_count + 1);

			for (size_t k = 0; k < end; k++) {
				feed(stream, &lines[k]);
				if (chance(200) == 0)
					write_stream(stream);
			}
			series_stream_freep(&stream);
			if (round % 3 == 2)
				tear_some();
			check_begin();
		}
		AUTO(series_stream_freep) struct series_stream *last = open_stream(++writer);
		for (size_t k = 0; k < line_count; k++)
			feed(last, &lines[k]);
		end_stream(last, false);
		assert_int_equal(check_begin(), losses_in_log());
		assert_true(is_ended && !is_lost && marked == told);
	}
}

static void a_log_that_has_lost_the_last_line_is_marked(void **state)
{
	(void)state;
	clear();
	make_log(600);
	for (int64_t writer = 1; writer < 3; writer++) {
		AUTO(series_stream_freep) struct series_stream *stream = open_stream(writer);

		for (size_t k = writer == 1 ? 0 : 400; k < (writer == 1 ? 300u : 600u); k++)
			feed(stream, &lines[k]);
		if (writer == 1)
			write_stream(stream);
		else
			end_stream(stream, true);
	}
	tell();
	assert_true(is_lost && is_ended);
}

/* A bookmark vouches for what lies between. */
static void a_log_that_is_read_on_elsewhere_has_lost_nothing(void **state)
{
	(void)state;
	clear();
	make_log(600);
	for (int64_t writer = 1; writer < 3; writer++) {
		AUTO(series_stream_freep) struct series_stream *stream = open_stream(writer);

		if (writer == 2)
			series_stream_go_on(stream);
		for (size_t k = writer == 1 ? 0 : 400; k < (writer == 1 ? 300u : 600u); k++)
			feed(stream, &lines[k]);
		write_stream(stream);
	}
	tell();
	assert_false(is_lost || is_ended);
}

static void a_writer_that_was_thought_dead_takes_nothing_away(void **state)
{
	struct series_stream *dead, *next;

	(void)state;
	clear();
	make_log(900);
	dead = open_stream(1);
	for (size_t k = 0; k < 300; k++)
		feed(dead, &lines[k]);
	write_stream(dead);
	next = open_stream(2);
	for (size_t k = 0; k < 900; k++)
		feed(next, &lines[k]);
	end_stream(next, false);
	for (size_t k = 300; k < 500; k++)
		feed(dead, &lines[k]);
	write_stream(dead);
	assert_int_equal(check_begin(), losses_in_log());
	assert_true(is_ended);
	series_stream_freep(&dead);
	series_stream_freep(&next);
}

static void objects_are_few_and_memory_is_bounded(void **state)
{
	AUTO(series_stream_freep) struct series_stream *stream = NULL;
	AUTO(auto_free) char *path = mem_format("%s/" PREFIX, folder);
	AUTO(auto_free) char *node = mem_format("%snode-0", path);
	AUTO(err_freep) struct err *err = NULL;
	FILE *in_the_way;

	(void)state;
	clear();
	stream = open_stream(1);
	for (int64_t i = 1; i <= 200000; i++)
		feed(stream, &(struct line){ (uint64_t)i, TIME + i, 2, i, 1.0 / (double)i });
	end_stream(stream, false);
	assert_true(series_stream_is_on(stream));
	series_stream_freep(&stream);
	/* If nothing can be written, the series ends: the log has all. */
	clear();
	stream = open_stream(1);
	assert_int_equal(fs_mkdirs(path, &err), 0);
	in_the_way = fopen(node, "we");
	assert_non_null(in_the_way);
	assert_int_equal(fclose(in_the_way), 0);
	for (int64_t i = 1; i <= 200000; i++)
		feed(stream, &(struct line){ (uint64_t)i, TIME + i, 2, i, 1.0 / (double)i });
	assert_false(series_stream_is_on(stream));
}

static int set_up(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	specs = json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "loss", "regex", "loss (.*)", "name",
			  "step", "regex", "step (.*)");
	if (!mkdtemp(folder) || store_open(folder, &store, &err) < 0)
		return -1;
	place = (struct series_place){ .store = store, .prefix = PREFIX, .specs = specs };
	return 0;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	store_freep(&store);
	series_mark_release(&mark);
	json_decref(specs);
	return fs_remove_tree(folder, &err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reading_is_kept_once_whenever_a_writer_dies),
		cmocka_unit_test(a_log_that_has_lost_the_last_line_is_marked),
		cmocka_unit_test(a_log_that_is_read_on_elsewhere_has_lost_nothing),
		cmocka_unit_test(a_writer_that_was_thought_dead_takes_nothing_away),
		cmocka_unit_test(objects_are_few_and_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
