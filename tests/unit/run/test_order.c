/* The promises of jobs/run/attempt/order.h: what is asked of each phase, and in what the two
 * differ. */
#include "jobs/run/attempt/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"

static json_t *phase_of(const char *name, const char *front, const char *steps)
{
	json_t *phase = json_pack("{s:s, s:[s, s], s:{s:s, s:s}}", "phase", name, "command",
				  "train", steps, "env", "STEPS", steps, "API_KEY", "s3cr3t");

	js_put_str(phase, "front", front);
	return phase;
}

static json_t *plan_of(const char *front, const char *trial_steps)
{
	json_t *phases = json_array();

	json_array_append_new(phases, phase_of("precompile", front, trial_steps));
	json_array_append_new(phases, json_pack("{s:s}", "phase", "verify"));
	json_array_append_new(phases, phase_of("train", NULL, "20"));
	return json_pack("{s:i, s:s, s:o, s:{s:s, s:[]}, s:{s:s, s:s, s:i}, s:{s:s}, s:[], s:{s:s, "
			 "s:s, s:s, s:i, s:s}, s:{s:s}}",
			 "nodes", 2, "workspace", "/ws", "phases", phases, "source", "bundle",
			 "sources/x.tar.gz", "links", "compile", "kind", "neuron", "cache",
			 "/cache", "timeout_ms", 60000, "secrets", "TOKEN", "env:CALLERS",
			 "metrics", "checkpoint", "kind", "auto", "sync", "agent", "signal", "USR1",
			 "grace_ms", 1000, "on_mismatch", "stop", "stall", "mode", "auto");
}

static const json_t *row_of(const json_t *rows, const char *field)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row)
		if (strcmp(js_str(row, "field"), field) == 0)
			return row;
	return NULL;
}

static json_t *difference_of(const json_t *plan)
{
	json_auto_t *orders = order_planned(plan);

	assert_int_equal(json_array_size(orders), 2);
	return order_difference(json_array_get(orders, 0), json_array_get(orders, 1));
}

static void phases_without_overrides_differ_in_names_and_scratch_alone(void **state)
{
	json_auto_t *plan = plan_of(NULL, "20"), *rows = difference_of(plan);
	static const char *const wanted[] = { "checkpoint.grace_ms",
					      "checkpoint.kind",
					      "checkpoint.root",
					      "checkpoint.signal",
					      "checkpoint.sync",
					      "checkpoint_dir",
					      "compile.claim",
					      "job",
					      "outputs",
					      "phase",
					      "prefix",
					      "scratch",
					      "stall.mode",
					      "timeout_ms" };

	(void)state;
	assert_int_equal(json_array_size(rows), STK_LENGTH(wanted));
	for (size_t i = 0; i < STK_LENGTH(wanted); i++)
		assert_string_equal(js_str(json_array_get(rows, i), "field"), wanted[i]);
}

static void an_override_is_a_row_with_both_values(void **state)
{
	json_auto_t *plan = plan_of(NULL, "2"), *rows = difference_of(plan);
	const json_t *row = row_of(rows, "env.STEPS");

	(void)state;
	assert_int_equal(json_array_size(rows), 16);
	assert_string_equal(js_str(row, "precompile"), "2");
	assert_string_equal(js_str(row, "train"), "20");
	assert_non_null(row_of(rows, "command"));
}

static void the_front_end_is_in_front_of_the_command_of_phase_1(void **state)
{
	json_auto_t *plan = plan_of("front", "20"), *rows = difference_of(plan);
	const json_t *row = row_of(rows, "command"), *command = json_object_get(row, "precompile");

	(void)state;
	assert_int_equal(json_array_size(command), 3);
	assert_string_equal(json_string_value(json_array_get(command, 0)), "front");
	assert_int_equal(json_array_size(json_object_get(row, "train")), 2);
}

static void what_looks_like_a_secret_is_hidden_and_the_plan_is_untouched(void **state)
{
	json_auto_t *plan = plan_of("front", "20"), *before = json_deep_copy(plan);
	json_auto_t *orders = order_planned(plan);
	const json_t *order = json_array_get(orders, 1);

	(void)state;
	assert_memory_equal(js_str(json_object_get(order, "env"), "API_KEY"), "sha256:", 7);
	assert_string_equal(js_str(json_object_get(order, "agent_env"), "TOKEN"),
			    "(secret from env:CALLERS)");
	assert_true(json_equal(plan, before));
}

static void a_retry_goes_on_from_a_checkpoint_and_says_its_own_names(void **state)
{
	json_auto_t *plan = plan_of(NULL, "20"), *order = NULL;
	const struct order_of of = { .run = "r1",
				     .nonce = "n",
				     .job = "stk-r1-train-3",
				     .workspace = "/ws",
				     .phase = PHASE_TRAIN,
				     .attempt = 3,
				     .resumed_from = "/ws/c/500",
				     .resume_step = 500 };

	(void)state;
	order = order_make(plan, &of);
	assert_string_equal(js_str(order, "prefix"), "runs/r1/train-3/");
	assert_string_equal(js_str(order, "resume_from"), "/ws/c/500");
	assert_int_equal(js_int(order, "resume_step", 0), 500);
	assert_string_equal(js_str(order, "checkpoint_dir"), "/ws/runs/r1/train-3/checkpoints");
	assert_null(json_object_get(order, "timeout_ms"));
	assert_string_equal(js_str(json_object_get(order, "env"), "API_KEY"), "s3cr3t");
}

static void a_second_try_of_phase_1_compiles_again_what_is_stored_as_failed(void **state)
{
	json_auto_t *plan = plan_of("front", "20"), *order = NULL;
	const struct order_of of = { .run = "r1",
				     .nonce = "n",
				     .job = "stk-r1-precompile-2",
				     .workspace = "/ws",
				     .phase = PHASE_PRECOMPILE,
				     .attempt = 2,
				     .workers = 3 };
	const json_t *command;

	(void)state;
	order = order_make(plan, &of);
	command = json_object_get(order, "command");
	assert_string_equal(json_string_value(json_array_get(command, 1)), "--num_parallel");
	assert_string_equal(json_string_value(json_array_get(command, 2)), "3");
	assert_non_null(strstr(js_str(json_object_get(order, "env"), "NEURON_CC_FLAGS"),
			       "--retry_failed_compilation"));
	assert_int_equal(js_int(json_object_get(order, "compile"), "workers", 0), 3);
}

/* Reads a file that an earlier version wrote. */
static json_t *read_file(const char *name, struct sb *ret)
{
	AUTO(auto_free) char *path = mem_format(SOURCE_ROOT "/tests/unit/store/messages/%s", name);
	AUTO(err_freep) struct err *err = NULL;
	json_t *json = NULL;

	assert_int_equal(fs_read(path, (size_t)1 << 20, ret, &err), 0);
	assert_int_equal(js_parse(ret->text, ret->len, name, &json, &err), 0);
	return json;
}

static void an_order_is_what_an_earlier_version_made_of_the_same_plan(void **state)
{
	static const char *const files[][2] = {
		{ "plan-compile.json", "order-precompile.json" },
		{ "plan-compile.json", "order-train-compile.json" },
		{ "plan-health.json", "order-health.json" },
		{ "plan-resume.json", "order-resume.json" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(files); i++) {
		AUTO(sb_release) struct sb text = SB_INIT_MAX((size_t)1 << 20);
		AUTO(sb_release) struct sb ignored = SB_INIT_MAX((size_t)1 << 20);
		json_auto_t *plan = read_file(files[i][0], &ignored);
		json_auto_t *before = read_file(files[i][1], &text), *after = NULL;
		const json_t *compile = json_object_get(before, "compile");
		AUTO(auto_free) char *line = NULL;
		const struct order_of of = {
			.run = js_str(before, "run"),
			.nonce = js_str(before, "nonce"),
			.job = js_str(before, "job"),
			.workspace = js_str(before, "workspace"),
			.phase = (enum phase)flow_name_find(flow_phase_names, PHASE_COUNT,
							    js_str(before, "phase")),
			.attempt = js_int(before, "attempt", 0),
			.resumed_from = js_str(before, "resume_from"),
			.resume_step = js_int(before, "resume_step", 0),
			.compiler = json_object_get(compile, "compiler"),
			.lock = js_str(compile, "lock"),
			.claim = js_str(compile, "claim"),
		};

		after = order_make(plan, &of);
		line = js_line(after);
		assert_string_equal(line, text.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_without_overrides_differ_in_names_and_scratch_alone),
		cmocka_unit_test(an_override_is_a_row_with_both_values),
		cmocka_unit_test(the_front_end_is_in_front_of_the_command_of_phase_1),
		cmocka_unit_test(what_looks_like_a_secret_is_hidden_and_the_plan_is_untouched),
		cmocka_unit_test(a_retry_goes_on_from_a_checkpoint_and_says_its_own_names),
		cmocka_unit_test(a_second_try_of_phase_1_compiles_again_what_is_stored_as_failed),
		cmocka_unit_test(an_order_is_what_an_earlier_version_made_of_the_same_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
