/* A log, the series beside it, and what both say together: see jobs/series. */
#ifndef STK_TESTS_UNIT_SERIES_SCENE_H
#define STK_TESTS_UNIT_SERIES_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/tail.h"
#include "jobs/series/series_read.h"
#include "jobs/series/series_writer.h"
#include "jobs/store/order.h"

#define PREFIX   "runs/one/train-1/"
#define TOLD_MAX 200000
#define WITH_STEP                                                                                  \
	"[{'name':'step','regex':'step ([0-9]+)'},{'name':'loss','regex':'loss ([-+.a-z0-9]+)'}]"
#define NO_STEP "[{'name':'loss','regex':'loss ([-+.a-z0-9]+)'}]"

/* A reading, as a reader is told it. */
struct told {
	size_t metric;
	int64_t step;
	uint64_t bits;
	int64_t at_ms; /* 0: read from the log */
	bool late;
	uint32_t start;
};

static char root[64], folder[128], path[160];
static struct sb text; /* the log */
static struct err *failure;
static json_t *specs;
static struct series_writer *writer;
static struct told told[TOLD_MAX], from_log[TOLD_MAX];
static size_t told_count, log_count;
static size_t blocks, from_blocks; /* of the newest tell() */

static inline int scene_begin(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/stoker-series-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof folder, "%s/" PREFIX "node-0", root);
	snprintf(path, sizeof path, "%s/" SERIES_FILE, folder);
	assert_int_equal(fs_mkdirs(folder, &failure), 0);
	text = SB_INIT_MAX((size_t)256 << 20);
	return 0;
}

static inline int scene_end(void **state)
{
	(void)state;
	series_writer_freep(&writer);
	json_decref(specs);
	specs = NULL;
	sb_release(&text);
	err_freep(&failure);
	return fs_remove_tree(root, &failure);
}

#define test_in_scene(f) cmocka_unit_test_setup_teardown(f, scene_begin, scene_end)

static inline void use(const char *quoted)
{
	AUTO(auto_free) char *json = mem_copy(quoted);

	for (char *at = json; (at = strchr(at, '\''));)
		*at = '"';
	json_decref(specs);
	specs = NULL;
	assert_int_equal(js_parse(json, strlen(json), "metrics", &specs, &failure), 0);
}

/* ---- writing ---- */

static inline void open_writer(int64_t start)
{
	const struct series_log log = { specs, PREFIX, 0, start, text.len };

	assert_int_equal(series_writer_open(path, &log, &writer, &failure), 0);
}

/* Goes on in the log from where the writer is. */
static inline void feed_all(int64_t at_ms, bool late)
{
	uint64_t from = series_writer_offset(writer);

	assert_true(from <= text.len);
	if (from < text.len)
		series_writer_feed(writer, text.text + from, text.len - from, (struct utc){ at_ms },
				   late);
}

static inline void add_line(const char *line)
{
	sb_adds(&text, line);
	sb_addc(&text, '\n');
}

/* The agent tells which start it is of. */
static inline void add_start(int64_t start)
{
	sb_addf(&text, "::stoker:n:: {\"v\":1,\"restart\":%lld}\n", (long long)start);
}

/* ---- reading ---- */

static struct metric_reader *reader;
static struct metric_reading readings[8];
static int64_t step;
static uint32_t start_of_step;
static struct told *into;
static size_t *into_count;

static inline void note_start(uint32_t start)
{
	if (start != start_of_step)
		step = -1;
	start_of_step = start;
}

static inline void note_line(void *arg, const char *line, size_t len)
{
	size_t count;

	(void)arg;
	if (is_agent_line(line, len))
		note_start(metric_reader_start(line, len, start_of_step));
	if (len == 0 || is_agent_line(line, len))
		return;
	count = metric_reader_line(reader, &step, line, len, readings);
	for (size_t i = 0; i < count; i++) {
		struct told *reading = &into[(*into_count)++];

		*reading = (struct told){ .metric = readings[i].metric,
					  .step = readings[i].step,
					  .start = start_of_step };
		memcpy(&reading->bits, &readings[i].value, sizeof reading->bits);
	}
}

static inline void read_log(uint64_t from, uint64_t to, bool ended)
{
	struct tail tail;

	tail_init(&tail);
	tail.offset = from;
	if (to > from)
		tail_feed(&tail, text.text + from, to - from, note_line, NULL);
	if (ended)
		tail_end(&tail, note_line, NULL);
	tail_release(&tail);
}

static uint64_t told_to;

static inline int note_block(void *arg, struct series_block *block, struct err **err)
{
	struct series_point point = { 0 };

	(void)arg, (void)err;
	assert_true(block->from >= told_to && block->to <= text.len);
	assert_true(block->from == 0 || text.text[block->from - 1] == '\n' ||
		    text.text[block->from - 1] == '\r');
	read_log(told_to, block->from, false);
	note_start(block->start);
	if (told_to == block->from)
		assert_int_equal(block->step_before, step);
	while (series_block_next(block, &point)) {
		struct told *reading = &told[told_count++];

		*reading = (struct told){
			point.metric, point.step, 0, point.at.ms, block->flags & SERIES_LATE,
			block->start
		};
		memcpy(&reading->bits, &point.value, sizeof reading->bits);
		from_blocks++;
	}
	blocks++;
	step = block->step_after;
	told_to = block->to;
	return 0;
}

/* Reads the series, and the log where the series lacks a part; and the log alone, from its begin.
 * Both must say the same. */
static inline void tell(void)
{
	struct store *store = NULL;
	struct series_place place = { NULL, PREFIX, 0, specs, SERIES_FILE, text.len, false };

	assert_int_equal(metric_reader_new(specs, &reader, &failure), 0);
	assert_int_equal(store_open(root, &store, &failure), 0);
	place.store = store;
	told_count = log_count = blocks = from_blocks = 0;
	told_to = 0;
	step = -1;
	start_of_step = 0;
	into = told;
	into_count = &told_count;
	assert_int_equal(series_read(&place, note_block, NULL, &failure), 0);
	read_log(told_to, text.len, true);
	step = -1;
	start_of_step = 0;
	into = from_log;
	into_count = &log_count;
	read_log(0, text.len, true);
	assert_int_equal(told_count, log_count);
	for (size_t i = 0; i < log_count; i++) {
		assert_int_equal(told[i].metric, from_log[i].metric);
		assert_int_equal(told[i].step, from_log[i].step);
		assert_int_equal(told[i].bits, from_log[i].bits);
		assert_int_equal(told[i].start, from_log[i].start);
	}
	metric_reader_freep(&reader);
	store_freep(&store);
}

static inline uint64_t size_of_file(void)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- chance ---- */

static uint64_t chance_state;

static inline uint64_t chance(uint64_t below)
{
	chance_state ^= chance_state << 13;
	chance_state ^= chance_state >> 7;
	chance_state ^= chance_state << 17;
	return chance_state % below;
}

/* Adds a line such as trainings print, and such as they should not. */
static inline void add_any_line(int64_t *at_step)
{
	static const char *const values[] = { "0.5", "6.25e-05", "-0.1", "nan",
					      "inf", "-inf",     "x",    "" };
	const char *value = values[chance(STK_LENGTH(values))];
	char line[200];

	switch (chance(8)) {
	case 0:
		snprintf(line, sizeof line, "::stoker:n:: {\"v\":1,\"loss 1\":2}\n");
		break;
	case 1:
		snprintf(line, sizeof line, "loss %s\r", value);
		break;
	case 2:
		snprintf(line, sizeof line, "loss %.17g\r\n", (double)chance(1u << 30) / 7);
		break;
	case 3:
		*at_step = (int64_t)chance(1000);
		snprintf(line, sizeof line, "step %lld again\n", (long long)*at_step);
		break;
	default:
		*at_step += 1 + (int64_t)chance(3);
		snprintf(line, sizeof line, "step %lld: loss %s\n", (long long)*at_step, value);
		break;
	}
	sb_adds(&text, line);
	if (chance(200) == 0)
		for (size_t left = TAIL_LINE_MAX + chance(100); left > 0; left--)
			sb_addc(&text, 'x');
}

#endif
