/* A command that is watched by a clock that the test sets. */
#ifndef STK_TESTS_UNIT_NODE_WATCHED_H
#define STK_TESTS_UNIT_NODE_WATCHED_H

#include "tests/unit/node/ticks.h"

#define LIMIT_MS 100000
#define BEAT_MS  1000 /* between two looks */

static UNUSED json_t *order_watched(const struct place *place, int nodes)
{
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "heartbeat_ms", json_integer(2000));
	js_put(order, "stall", json_pack("{s:s, s:i}", "mode", "fixed", "limit_ms", LIMIT_MS));
	js_put(order, "metrics",
	       json_pack("[{s:s, s:s}]", "name", "step", "regex", "step: ([0-9]+)"));
	return order;
}

/* Steals the order. The command runs, and is looked at from now on. */
static UNUSED void begin(struct agent *agent, const struct place *place, json_t *order,
			 const char *rank)
{
	AUTO(err_freep) struct err *err = NULL;

	scene_open(agent, place, order, rank, false);
	scene_command(agent);
	must(watchdog_init(agent, &err), &err);
	watchdog_start(agent);
	pass_time(agent, 0, NULL);
}

static UNUSED void print(struct agent *agent, const char *text)
{
	watchdog_pass(agent, text, strlen(text));
}

/* Steps, one each second, from that one on. */
static UNUSED void step(struct agent *agent, int from, int count)
{
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *line = mem_format("step: %d\n", from + i);

		print(agent, line);
		pass_time(agent, 1000, NULL);
	}
}

#endif
