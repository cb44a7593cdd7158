/* A checkpointer between an agent and a checkpoint folder, both of which the test is. */
#ifndef STK_TESTS_UNIT_NODE_CHECKPOINTER_BENCH_H
#define STK_TESTS_UNIT_NODE_CHECKPOINTER_BENCH_H

#include "tests/unit/node/helper_bench.h"

#include "jobs/node/checkpoints/checkpointer.h"

/* Put aside is what could not be copied for 15 of these. */
#define LONG_BEAT_MS ((int64_t)600 * 1000)

static UNUSED json_t *order_saving(const struct place *place, const char *root, int64_t beat_ms)
{
	json_t *order = order_for(place, "true");

	js_put(order, "heartbeat_ms", json_integer(beat_ms));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "files", "root", root, "sync",
			 "agent", "keep", "all", "signal", "USR1"));
	return order;
}

static UNUSED void hear_marked(struct bench *bench, int64_t step)
{
	json_auto_t *line = hear(bench, "marked");

	assert_int_equal(js_int(line, "step", -1), step);
}

static UNUSED void start_checkpointer(struct bench *bench)
{
	bench_start(bench, checkpointer_work);
}

/* Steals the order. */
static UNUSED void open_checkpointer(struct bench *bench, struct place *place, json_t *order)
{
	bench_load(bench, place, order, "0");
	start_checkpointer(bench);
}

static UNUSED void close_checkpointer(struct bench *bench)
{
	bench_end(bench, 0);
}

static UNUSED void save_file(const struct bench *bench, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(bench->config.checkpoint, name);

	write_file(path, text, 0600);
}

/* A checkpoint that says itself that it is whole. */
static UNUSED void save(const struct bench *bench, int step)
{
	AUTO(auto_free) char *state = mem_format("step-%d/state.bin", step);
	AUTO(auto_free) char *meta = mem_format("step-%d/meta.json", step);

	save_file(bench, state, "hello");
	save_file(bench, meta, "{\"state_bytes\":5}");
}

static UNUSED char *far_of(const struct place *place)
{
	return place_path(place, "far");
}

static UNUSED char *store_of(const struct place *place)
{
	return mem_format("dir:%s/far", place->root);
}

/* A file in the root is in the way of that checkpoint. */
static UNUSED void block(const struct place *place, int step)
{
	AUTO(auto_free) char *path = mem_format("%s/far/step-%d", place->root, step);

	write_file(path, "in the way", 0600);
}

#endif
