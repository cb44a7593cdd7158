/* Sections of retraining as a plan asks for them: defaults, the gate, a stage as a spec, margins.
 */
#include "tests/unit/spec/spec_fixture.h"

#include "tests/unit/quoted.h"

static void assert_json(json_t *value, const char *want)
{
	AUTO(auto_free) char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	AUTO(auto_free) char *quotes = quoted(want);

	assert_non_null(text);
	assert_string_equal(text, quotes);
	json_decref(value);
}

static void an_absent_section_has_its_defaults(void **state)
{
	AUTO(spec_freep) struct spec *plain = good_spec(HEAD, NULL);
	AUTO(spec_freep) struct spec *spec = good_spec(HEAD "data: {url: /d}\n", NULL);

	(void)state;
	assert_false(spec_retrains(plain));
	assert_true(spec_retrains(spec));
	assert_null(spec_get(spec, SPEC_PARENT));
	assert_json(spec_section(spec, SPEC_PARENT),
		    "{'from':'auto','first':'none','kind':'auto','reshard':false}");
	assert_json(spec_section(spec, SPEC_PROMOTE),
		    "{'from':'checkpoint','when':'gate','keep':'all'}");
	assert_json(spec_section(spec, SPEC_DRIVER),
		    "{'image':'none','job_queue':'none','role':'none','scheduler_role':'none',"
		    "'instance':'ml.t3.medium'}");
	assert_json(spec_section(spec, SPEC_DATA),
		    "{'url':'/d','include':['**'],'incremental':true,'done_marker':'none','settle':"
		    "'5m','min_new':1,'fetch':false,'on_change':'warn','after_refusal':'offer'}");
	assert_json(spec_gate(spec), "[]");
}

static void the_gate_is_one_list_with_the_short_form_first(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(
		HEAD "metrics: [{name: m, regex: '(1)'}]\n"
		     "evaluate: {command: [a], metric: f1, max_drop: 0.10 %, direction: min}\n"
		     "gate:\n"
		     "- {metric: m, max_drop: 0.001, confidence: 99%}\n"
		     "- {metric: m, max_gap: 1%, against: \"run:gpu-7\"}\n"
		     "- {metric: m, at_least: 1}\n- {metric: m, at_most: -2.5}\n",
		(char *[]){ "evaluate.max_drop=0.1%", NULL });

	(void)state;
	assert_json(spec_gate(spec),
		    "[{'metric':'f1','direction':'min','against':'promoted','max_drop':'0.1%',"
		    "'confidence':'95%'},"
		    "{'metric':'m','max_drop':'0.001','confidence':'99%','direction':'max',"
		    "'against':'promoted'},"
		    "{'metric':'m','max_gap':'1%','against':'run:gpu-7'},"
		    "{'metric':'m','at_least':1.0},{'metric':'m','at_most':-2.5}]");
}

static void margins_are_shares_or_numbers(void **state)
{
	static const struct {
		const char *text;
		double value;
		bool relative, bad;
	} rows[] = {
		{ "0.1%", 0.001, true, false },   { "0%", 0, true, false },
		{ "100%", 1, true, false },       { "0.0999%", 0.000999, true, false },
		{ "0.001", 0.001, false, false }, { "0", 0, false, false },
		{ "1e-3", 1e-3, false, false },   { "250", 250, false, false },
		{ "1e-3%", 1e-5, true, false },   { "100.1%", 0, false, true },
		{ "-1%", 0, false, true },        { "-0.1", 0, false, true },
		{ "nan", 0, false, true },        { "inf", 0, false, true },
		{ "1e400", 0, false, true },      { "", 0, false, true },
		{ "%", 0, false, true },          { "1%%", 0, false, true },
		{ "0x1", 0, false, true },        { "1 %", 0, false, true },
		{ "1%x", 0, false, true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		bool relative = false;
		double value = -1;

		if (spec_margin(rows[i].text, &value, &relative) == rows[i].bad)
			fail_msg("%s", rows[i].text);
		if (rows[i].bad)
			continue;
		assert_true(relative == rows[i].relative);
		assert_true(value >= rows[i].value * (1 - 1e-15) &&
			    value <= rows[i].value * (1 + 1e-15));
	}
}

static struct spec *stage_of(const struct spec *spec, enum spec_field stage)
{
	AUTO(problems_release) struct problems problems = { 0 };
	struct spec *ret = NULL;

	assert_int_equal(spec_stage(spec, stage, &ret, &problems), 0);
	return ret;
}

static void assert_arguments(const struct spec *spec, bool overrides, const char *want)
{
	AUTO(auto_strv) char **argv = spec_arguments(spec, overrides);
	json_t *words = json_array();

	for (char **word = argv; *word; word++)
		json_array_append_new(words, json_string(*word));
	assert_json(words, want);
}

static void a_stage_is_a_spec_of_its_own(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(
		"version: 1\nname: x\nengine: batch\nworkspace: s3://bucket/w\nimage: train:1\n"
		"command: [python3, train.py]\nhyperparameters: {lr: 0.1, max_steps: 500}\n"
		"env: &env {A: \"1\", B: \"2\"}\nbatch: {job_queue: trn}\n"
		"resources: &res {instance: trn1.32xlarge, nodes: 4, price: 20, efa: true}\n"
		"x-keep: [*env, *res]\n"
		"compile: {kind: neuron, cache_url: s3://bucket/c, max_steps: 7}\n"
		"data: {url: s3://bucket/d}\n"
		"evaluate:\n  command: [python3, evaluate.py, \"${STOKER_MODEL}\"]\n"
		"  hyperparameters: {batch: 64}\n  env: {B: \"3\", C: \"4\"}\n  image: eval:1\n"
		"  job_queue: cpu\n  resources: {instance: trn1.2xlarge, nodes: 1}\n"
		"  compile: aot\n  overrides: {hyperparameters: {batch: 1}, env: {D: \"5\"}}\n"
		"infer: {command: [infer], output: s3://bucket/o, resources: {nodes: 2}}\n",
		NULL);
	AUTO(spec_freep) struct spec *evaluate = stage_of(spec, SPEC_EVALUATE);
	AUTO(spec_freep) struct spec *infer = stage_of(spec, SPEC_INFER);

	(void)state;
	assert_arguments(evaluate, false,
			 "['python3','evaluate.py','${STOKER_MODEL}','--batch','64']");
	assert_arguments(evaluate, true,
			 "['python3','evaluate.py','${STOKER_MODEL}','--batch','1']");
	assert_json(spec_env(evaluate, false), "{'A':'1','B':'3','C':'4'}");
	assert_json(spec_env(evaluate, true), "{'A':'1','B':'3','C':'4','D':'5'}");
	assert_string_equal(spec_str(evaluate, SPEC_IMAGE), "eval:1");
	assert_string_equal(spec_str(evaluate, SPEC_BATCH_JOB_QUEUE), "cpu");
	assert_string_equal(spec_str(evaluate, SPEC_RESOURCES_INSTANCE), "trn1.2xlarge");
	assert_int_equal(spec_int(evaluate, SPEC_RESOURCES_NODES), 1);
	/* The training's price is not that of another machine. */
	assert_true(spec_says(evaluate, SPEC_RESOURCES_PRICE, "auto"));
	assert_true(spec_says(evaluate, SPEC_RESOURCES_EFA, "auto"));
	assert_true(spec_says(evaluate, SPEC_COMPILE_MODE, "aot"));
	assert_arguments(infer, false, "['infer']");
	assert_arguments(infer, true, "['infer']");
	assert_string_equal(spec_str(infer, SPEC_IMAGE), "train:1");
	assert_string_equal(spec_str(infer, SPEC_BATCH_JOB_QUEUE), "trn");
	assert_int_equal(spec_int(infer, SPEC_RESOURCES_NODES), 2);
	assert_true(spec_price(infer) == 20);
	assert_true(spec_says(infer, SPEC_COMPILE_MODE, "jit"));
	/* The spec itself is as it was. */
	assert_arguments(spec, false, "['python3','train.py','--lr','0.1','--max_steps','500']");
	assert_int_equal(spec_int(spec, SPEC_RESOURCES_NODES), 4);
	assert_json(spec_env(spec, false), "{'A':'1','B':'2'}");
}

static void a_stage_keeps_what_it_does_not_say(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(HEAD "evaluate: {command: [a]}\n",
				      (char *[]){ "resources.nodes=3", "env.A=1", NULL });
	AUTO(spec_freep) struct spec *evaluate = stage_of(spec, SPEC_EVALUATE);

	(void)state;
	assert_arguments(evaluate, false, "['a']");
	assert_int_equal(spec_int(evaluate, SPEC_RESOURCES_NODES), 3);
	assert_json(spec_env(evaluate, false), "{'A':'1'}");
	assert_true(spec_says(evaluate, SPEC_COMPILE_KIND, "none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_absent_section_has_its_defaults),
		cmocka_unit_test(the_gate_is_one_list_with_the_short_form_first),
		cmocka_unit_test(margins_are_shares_or_numbers),
		cmocka_unit_test(a_stage_is_a_spec_of_its_own),
		cmocka_unit_test(a_stage_keeps_what_it_does_not_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
