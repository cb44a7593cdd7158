/* One node's check-up with the programs of a folder as its tools: for tests of single checks. */
#ifndef STK_TESTS_UNIT_NODE_CLINIC_H
#define STK_TESTS_UNIT_NODE_CLINIC_H

#include "tests/unit/node/place.h"

#include "jobs/node/health/health_internal.h"

struct clinic {
	struct agent_config config;
	struct checkup c;
};

/* A check-up of a node whose programs are those in the place's bin. `left_ms`: of its
 * health.timeout. */
static UNUSED void clinic_open(struct place *place, struct clinic *clinic, int64_t timeout_ms,
			       int64_t left_ms)
{
	AUTO(auto_free) char *path = mem_format("%s/bin:/usr/bin:/bin", place->root);

	*clinic = (struct clinic){ 0 };
	clinic->config.order = mem_zero(1, sizeof *clinic->config.order);
	clinic->config.order->devices = 1;
	clinic->config.order->health = (struct order_health){
		.timeout_ms = timeout_ms, .size = 4096, .ops = json_pack("[s]", "all_reduce")
	};
	clinic->config.nodes = 1;
	clinic->c = (struct checkup){ .config = &clinic->config,
				      .order = &clinic->config.order->health,
				      .folder = mem_copy(place->root),
				      .begun = clock_mono_now(),
				      .cores = 2,
				      .told = json_object(),
				      .rows = json_array(),
				      .figures = json_object() };
	MESSAGE_SET_TEXT(clinic->config.order, accelerator, "neuron");
	health_find_kind(&clinic->c);
	clinic->c.end.ms = clinic->c.begun.ms + left_ms;
	command_env_put(&clinic->c.env, "PATH", path);
	command_env_put(&clinic->c.env, "HERE", place->root);
}

static UNUSED void clinic_close(struct clinic *clinic)
{
	command_env_release(&clinic->c.env);
	free(clinic->c.folder);
	json_decref(clinic->c.told);
	json_decref(clinic->c.rows);
	json_decref(clinic->c.figures);
	order_release(clinic->config.order);
	free(clinic->config.order);
}

static UNUSED void put_tool(const struct place *place, const char *name, const char *script)
{
	AUTO(auto_free) char *path = mem_format("%s/bin/%s", place->root, name);
	AUTO(auto_free) char *text = mem_format("#!/bin/sh\n%s\n", script);

	write_file(path, text, 0755);
}

/* The only row, which is of this check and has this verdict; its words. */
static UNUSED const char *row_of(const struct clinic *clinic, const char *check,
				 const char *verdict)
{
	const json_t *row = json_array_get(clinic->c.rows, 0);

	assert_int_equal(json_array_size(clinic->c.rows), 1);
	assert_string_equal(js_str(row, "check"), check);
	assert_string_equal(js_str(row, "verdict"), verdict);
	return js_str(row, "words");
}

#define TABLE "size(B) busbw(GB/s)\\n4096 7.5\\nAvg bus bandwidth: 7.5GB/s\\n"

#endif
