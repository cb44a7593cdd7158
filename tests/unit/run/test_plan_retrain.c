/* The sections of retraining in a plan, and the plan as the jobs of a stage see it. */
#include "plan_fixture.h"

#include <math.h>

#include "jobs/run/plan/stage.h"

static json_t *sections_of(const char *lines, const char *section)
{
	struct plan *plan = good_plan(lines);
	json_t *ret = json_incref(json_object_get(plan->json, section));

	plan_freep(&plan);
	return ret;
}

/* A section as JSON, with the test's folder as DIR; the member "job" is left out. */
static void assert_section(const char *lines, const char *section, const char *want)
{
	json_auto_t *found = sections_of(lines, section), *shown = NULL;
	AUTO(auto_free) char *quotes = quoted(want);
	AUTO(auto_free) char *text = NULL;
	AUTO(sb_release) struct sb plain = SB_INIT;

	assert_non_null(found);
	shown = json_copy(found);
	json_object_del(shown, "job");
	text = json_dumps(shown, JSON_COMPACT | JSON_REAL_PRECISION(6));
	for (const char *at = text; *at;) {
		bool here = strncmp(at, dir, strlen(dir)) == 0;

		sb_adds(&plain, here ? "DIR" : (char[]){ *at, '\0' });
		at += here ? strlen(dir) : 1;
	}
	assert_string_equal(plain.text, quotes);
}

#define SOME                                                                                       \
	"command: [python3, train.py]\nworkspace: ../space\nenv: {A: '1'}\n"                       \
	"hyperparameters: {lr: 0.1}\nresources: {nodes: 2, price: 3}\n"                            \
	"metrics: [{name: loss, regex: '(1)'}]\n"                                                  \
	"data: {url: ../data/, include: '*.csv', done_marker: _SUCCESS, settle: 1m, min_new: 3}\n" \
	"evaluate: {command: [python3, evaluate.py], hyperparameters: {k: 5}, data: ../held,\n"    \
	"  env: {B: '2'}, repeat: 4, timeout: 90s, resources: {nodes: 1}}\n"                       \
	"gate: [{metric: loss, max_drop: 0.1%, direction: min}]\n"                                 \
	"infer: {command: [python3, infer.py], output: ../out, shards: 8}\n"

static void sections_have_their_defaults_and_absolute_places(void **state)
{
	(void)state;
	assert_section(SOME, "data",
		       "{'url':'DIR/data','include':['*.csv'],'incremental':true,'min_new':3,"
		       "'fetch':false,'on_change':'warn','after_refusal':'offer','done_marker':"
		       "'_SUCCESS','settle_ms':60000}");
	assert_section(SOME, "parent", "{'from':'auto','kind':'auto','reshard':false}");
	assert_section(SOME, "evaluate",
		       "{'data':'DIR/held','repeat':4,'baseline':'promoted','nodes':1,'price':3.0,"
		       "'timeout_ms':90000,'compile':'jit'}");
	assert_section(SOME, "infer",
		       "{'input':'DIR/data','output':'DIR/out','shards':8,'together':false,'nodes':"
		       "2,'price':3.0,'timeout_ms':21600000,'compile':'jit'}");
	assert_section(
		SOME, "promote",
		"{'url':'DIR/space/models/n','from':'checkpoint','when':'gate','keep':'all'}");
	assert_section(SOME "parent: {from: ../p/, first: none, kind: hf}\n"
			    "promote: {url: ../models, from: 'output:m', keep: 3}\n",
		       "parent", "{'from':'DIR/p','kind':'hf','reshard':false}");
	assert_section(SOME "promote: {url: ../models/, from: 'output:m', keep: 3}\n", "promote",
		       "{'url':'DIR/models','from':'output:m','when':'gate','keep':3}");
	assert_section("command: [a]\nparent: {from: promoted, first: base.pt}\n", "parent",
		       "{'from':'promoted','first':'DIR/job/base.pt','kind':'auto','reshard':"
		       "false}");
}

static void a_training_has_none_of_them(void **state)
{
	static const char *const members[] = { "data", "parent", "evaluate",
					       "gate", "infer",  "promote" };
	AUTO(plan_freep) struct plan *plan = good_plan("command: [a]\n");

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		assert_null(json_object_get(plan->json, members[i]));
	assert_int_equal(json_array_size(json_object_get(plan->json, "phases")), 1);
}

static void assert_is(const json_t *plan, const char *path, const char *want)
{
	AUTO(auto_free) char *quotes = quoted(want);
	AUTO(auto_free)
	char *text = json_dumps(js_path(plan, path),
				JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));

	if (!text || strcmp(text, quotes) != 0)
		fail_msg("%s is %s, not %s", path, text ? text : "absent", quotes);
}

static void assert_command(const json_t *plan, const char *phase, const char *want)
{
	json_t *found = plan_phase(plan, phase);

	if (want)
		assert_is(found, "command", want);
	else
		assert_null(found);
}

static void a_stage_has_a_plan_of_its_own(void **state)
{
	AUTO(plan_freep) struct plan *plan = good_plan(SOME);
	json_auto_t *evaluate = plan_of_phase(plan->json, PHASE_EVALUATE);
	json_auto_t *infer = plan_of_phase(plan->json, PHASE_INFER);
	json_auto_t *train = plan_of_phase(plan->json, PHASE_TRAIN);

	(void)state;
	assert_ptr_equal(train, plan->json);
	assert_command(train, "train", "['python3','train.py','--lr','0.1']");
	assert_command(train, "evaluate", "['python3','evaluate.py','--k','5']");
	assert_command(train, "infer", "['python3','infer.py']");
	assert_is(evaluate, "stage", "'evaluate'");
	assert_is(evaluate, "nodes", "1");
	assert_is(evaluate, "spec.resources.nodes", "1");
	assert_is(evaluate, "spec.name", "'n'");
	assert_command(evaluate, "evaluate", "['python3','evaluate.py','--k','5']");
	assert_command(evaluate, "train", NULL);
	assert_is(plan_phase(evaluate, "evaluate"), "env.A", "'1'");
	assert_is(plan_phase(evaluate, "evaluate"), "env.B", "'2'");
	assert_is(plan_phase(evaluate, "evaluate"), "env.STOKER_HP_K", "'5'");
	assert_is(infer, "nodes", "2");
	assert_is(infer, "checkpoint.kind", "'auto'"); /* all else is the run's */
	assert_is(plan->json, "nodes", "2");
	assert_is(plan->json, "spec.resources.nodes", "2");
}

static void a_stage_compiled_ahead_has_a_graph_key_of_its_own(void **state)
{
	AUTO(plan_freep)
	struct plan *plan =
		good_plan(SOME "compile: {kind: jax, cache_url: ../cache, max_steps: 9}\n"
			       "promote: {when: gate}\n");
	AUTO(plan_freep) struct plan *ahead = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *jit = plan_of_phase(plan->json, PHASE_INFER), *aot = NULL;

	(void)state;
	assert_command(jit, "precompile", NULL);
	assert_is(jit, "compile.mode", "'jit'");
	assert_is(jit, "compile.kind", "'jax'");
	assert_null(json_object_get(jit, "length"));
	ahead = plan_of(
		SOME "compile: {kind: jax, cache_url: ../cache, max_steps: 9}\n",
		(char *[]){ "infer.compile=aot", "infer.overrides.hyperparameters.n=1", NULL },
		&err);
	assert_non_null(ahead);
	aot = plan_of_phase(ahead->json, PHASE_INFER);
	assert_is(ahead->json, "infer.compile", "'aot'");
	assert_is(ahead->json, "evaluate.compile", "'jit'");
	assert_command(aot, "precompile", "['python3','infer.py','--n','1']");
	assert_command(aot, "infer", "['python3','infer.py']");
	assert_non_null(plan_graph_key(aot));
	assert_string_not_equal(plan_graph_key(aot), plan_graph_key(ahead->json));
	/* The key of the training does not depend on what follows it. */
	assert_string_equal(plan_graph_key(plan->json), plan_graph_key(ahead->json));
	assert_true(json_equal(js_path(aot, "compile.ingredients.source"),
			       js_path(ahead->json, "compile.ingredients.source")));
	assert_null(js_path(ahead->json, "infer.job.compile.ingredients.source"));
}

/* The costs are at the price of now: an evaluation on one machine, an inference on two. Figures
 * that cannot be true say nothing. */
static void a_forecast_expects_what_the_last_turn_took(void **state)
{
	static const struct {
		const char *took;
		int64_t ms;
		double usd;
	} rows[] = {
		{ "{'evaluate':{'seconds':90.5,'machine_seconds':60},"
		  "'infer':{'seconds':3600,'machine_seconds':1800}}",
		  3690500, 60 * 3.0 / 3600 + 1800 * 2 * 3.0 / 3600 },
		{ "{'infer':{'seconds':10}}", 10000, 0 },
		{ "{'evaluate':{'seconds':-1,'machine_seconds':1e300},'infer':7,'train':{'seconds':"
		  "5}}",
		  0, 0 },
		{ "{}", 0, 0 },
	};
	struct plan *plan = good_plan(SOME);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *text = quoted(rows[i].took);
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *inputs = json_object();
		struct flow_policy policy = { .later_ms = 5, .later_usd = 5 };
		json_t *took = NULL;

		assert_int_equal(js_parse(text, strlen(text), "took", &took, &err), 0);
		js_put(inputs, "took", took);
		stage_policy(plan->json, inputs, &policy);
		assert_int_equal(policy.later_ms, rows[i].ms);
		assert_true(fabs(policy.later_usd - rows[i].usd) < 1e-9);
	}
	plan_freep(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forecast_expects_what_the_last_turn_took),
		TEST(sections_have_their_defaults_and_absolute_places),
		TEST(a_training_has_none_of_them),
		TEST(a_stage_has_a_plan_of_its_own),
		TEST(a_stage_compiled_ahead_has_a_graph_key_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
