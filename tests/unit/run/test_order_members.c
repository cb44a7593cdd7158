/* Each member of an order, and what of the plan and the attempt it comes from. See
 * jobs/run/attempt/order.h. */
#include "jobs/run/attempt/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../quoted.h"

#define PLAN                                                                                       \
	"{'engine':'local','nodes':1,'workspace':'/ws','source':{'bundle':'s/x.tar.gz','links':[]" \
	"},'secrets':{},'metrics':[],'checkpoint':{'kind':'auto','sync':'none'},'phases':[{"       \
	"'phase':'precompile','command':['aot'],'env':{}},{'phase':'train','command':['train'],"   \
	"'env':{'A':'1'}}]}"

static json_t *plan_with(const char *members)
{
	AUTO(auto_free) char *more = mem_format("{%s}", members);
	json_auto_t *other = quoted_json(more);
	json_t *plan = quoted_json(PLAN);

	json_object_update(plan, other);
	return plan;
}

static struct order_of attempt_of(const json_t *plan, enum phase phase, int64_t attempt)
{
	return (struct order_of){ .run = "r1",
				  .nonce = "n",
				  .job = "j",
				  .workspace = js_str(plan, "workspace"),
				  .phase = phase,
				  .attempt = attempt };
}

/* Members that are the same in all orders of these tests. */
static void drop_common(json_t *order)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{ "v", "1" },
		{ "run", "'r1'" },
		{ "job", "'j'" },
		{ "nonce", "'n'" },
		{ "source", "'s/x.tar.gz'" },
		{ "links", "[]" },
		{ "metrics", "[]" },
		{ "run_prefix", "'runs/r1/'" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *text = mem_format("[%s]", rows[i].value);
		json_auto_t *want = quoted_json(text);

		if (!json_equal(json_array_get(want, 0), json_object_get(order, rows[i].name)))
			fail_msg("%s", rows[i].name);
		json_object_del(order, rows[i].name);
	}
}

static void is_order(const json_t *plan, const struct order_of *of, const char *members)
{
	AUTO(auto_free) char *text = mem_format("{%s}", members);
	json_auto_t *order = order_make(plan, of);
	json_auto_t *want = NULL;
	AUTO(auto_free) char *shown = NULL;

	drop_common(order);
	shown = js_line(order);
	want = quoted_json(text);
	if (!json_equal(want, order))
		fail_msg("%s", shown);
}

static void a_training_saves_and_leaves_its_outputs(void **state)
{
	json_auto_t *plan = plan_with("");
	struct order_of of = attempt_of(plan, PHASE_TRAIN, 2);

	(void)state;
	is_order(plan, &of,
		 "'phase':'train','attempt':2,'nodes':1,'workspace':'/ws',"
		 "'prefix':'runs/r1/train-2/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'scratch':false,'outputs':'runs/r1/outputs/train-2/',"
		 "'checkpoint_dir':'/ws/runs/r1/train-2/checkpoints',"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'/ws/runs/r1/train-2/checkpoints'},'grace_ms':60000");
	json_decref(plan);
	plan = plan_with(
		"'grace_ms':5,'nodes':3,'checkpoint':{'kind':'hf','sync':'agent','keep':{'n':2},"
		"'signal':'USR1','grace_ms':7,'url':'/ckpt'},'stall':{'mode':'auto',"
		"'limit_ms':9},'spec':{'resources':{'core_dumps':true}}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	of.resumed_from = "/ckpt/x";
	of.resume_step = 12;
	of.agent = "digest";
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':3,'workspace':'/ws',"
		 "'prefix':'runs/r1/train-1/','agent':'digest','command':['train'],"
		 "'env':{'A':'1'},'secrets':[],'core_dumps':true,'scratch':false,"
		 "'outputs':'runs/r1/outputs/train-1/',"
		 "'checkpoint_dir':'/ws/runs/r1/train-1/checkpoints',"
		 "'checkpoint':{'kind':'hf','sync':'agent','keep':{'n':2},'signal':'USR1',"
		 "'grace_ms':7,'root':'/ckpt/r1/attempt-1'},'stall':{'mode':'auto',"
		 "'limit_ms':9},'resume_from':'/ckpt/x','resume_step':12,'grace_ms':5");
	json_decref(plan);
	plan = plan_with("'stall':{'mode':'off'},'spec':{'resources':{'core_dumps':false}}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':1,'workspace':'/ws',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'scratch':false,'outputs':'runs/r1/outputs/train-1/',"
		 "'checkpoint_dir':'/ws/runs/r1/train-1/checkpoints',"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'/ws/runs/r1/train-1/checkpoints'},'stall':{'mode':'off'},"
		 "'grace_ms':60000");
}

static void phase_1_has_a_limit_and_saves_nothing(void **state)
{
	json_auto_t *plan = plan_with("'compile':{'kind':'neuron','cache':'/cache','timeout_ms':6,"
				      "'graph_key':'k'},'stall':{'mode':'auto'}");
	struct order_of of = attempt_of(plan, PHASE_PRECOMPILE, 1);
	json_auto_t *compiler = quoted_json("{'neuronx-cc':'2.1'}");

	(void)state;
	of.claim = "c";
	of.lock = NULL;
	is_order(plan, &of,
		 "'phase':'precompile','attempt':1,'nodes':1,'workspace':'/ws',"
		 "'prefix':'runs/r1/precompile-1/','command':['aot'],'env':{},'secrets':[],"
		 "'compile':{'kind':'neuron','cache':'/cache','program':'train',"
		 "'graph_key':'k','claim':'c'},'scratch':true,'timeout_ms':6,'grace_ms':60000");
	/* which compiler filled the cache is of no use there */
	of.compiler = compiler;
	of.workers = 3;
	is_order(plan, &of,
		 "'phase':'precompile','attempt':1,'nodes':1,'workspace':'/ws',"
		 "'prefix':'runs/r1/precompile-1/','command':['aot'],'env':{},'secrets':[],"
		 "'compile':{'kind':'neuron','cache':'/cache','workers':3,'program':'train',"
		 "'graph_key':'k','claim':'c'},'scratch':true,'timeout_ms':6,'grace_ms':60000");
	of.phase = PHASE_TRAIN;
	of.workers = 0;
	of.lock = "l";
	of.tolerated = "t";
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':1,'workspace':'/ws',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'compile':{'kind':'neuron','cache':'/cache','program':'train',"
		 "'compiler':{'neuronx-cc':'2.1'},'tolerated':'t','lock':'l'},'scratch':false,"
		 "'outputs':'runs/r1/outputs/train-1/',"
		 "'checkpoint_dir':'/ws/runs/r1/train-1/checkpoints',"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'/ws/runs/r1/train-1/checkpoints'},'stall':{'mode':'auto'},"
		 "'grace_ms':60000");
}

static const char *arg(const json_t *order, size_t i)
{
	const char *text = json_string_value(json_array_get(json_object_get(order, "command"), i));

	return text ? text : "";
}

static void the_number_of_compilers_is_that_of_the_attempt_else_of_the_plan(void **state)
{
	static const struct {
		const char *kind, *front, *width;
		int64_t workers;
		const char *number; /* NULL: none is given */
	} rows[] = {
		{ "neuron", "front", "{'workers':4}", 0, "4" },
		{ "neuron", "front", "{'workers':4}", 2, "2" },
		{ "neuron", "front", "{'workers':1}", 0, "1" },
		{ "neuron", "front", "{'workers':4}", 1, "1" },
		{ "neuron", "front", "{'workers':0}", 0, NULL },
		{ "neuron", "front", "{}", 0, NULL },
		{ "neuron", NULL, "{'workers':4}", 2, NULL },
		{ "jax", "front", "{'workers':4}", 2, NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *members = mem_format("'compile':{'kind':'%s','cache':'/c'},'width':%s",
					   rows[i].kind, rows[i].width);
		json_auto_t *plan = plan_with(members);
		struct order_of of = attempt_of(plan, PHASE_PRECOMPILE, 1);
		json_auto_t *order = NULL;
		json_t *phase = json_array_get(json_object_get(plan, "phases"), 0);

		js_put_str(phase, "front", rows[i].front);
		of.workers = rows[i].workers;
		order = order_make(plan, &of);
		if (rows[i].number) {
			assert_string_equal(arg(order, 0), "front");
			assert_string_equal(arg(order, 1), "--num_parallel");
			assert_string_equal(arg(order, 2), rows[i].number);
			assert_string_equal(arg(order, 3), "aot");
		} else {
			assert_string_equal(arg(order, 0), rows[i].front ? "front" : "aot");
			assert_string_equal(arg(order, 1), rows[i].front ? "aot" : "");
		}
	}
}

static void a_repeated_phase_1_compiles_again_what_failed(void **state)
{
	static const struct {
		const char *kind, *flags; /* of the plan; NULL: none */
		enum phase phase;
		int64_t attempt;
		const char *want;
	} rows[] = {
		{ "neuron", NULL, PHASE_PRECOMPILE, 1, "" },
		{ "neuron", NULL, PHASE_PRECOMPILE, 2, "--retry_failed_compilation" },
		{ "neuron", "", PHASE_PRECOMPILE, 2, "--retry_failed_compilation" },
		{ "neuron", "-O1", PHASE_PRECOMPILE, 2, "-O1 --retry_failed_compilation" },
		{ "neuron", "-O1", PHASE_PRECOMPILE, 1, "-O1" },
		{ "neuron", "-O1", PHASE_TRAIN, 2, "-O1" },
		{ "neuron", "-a --retry_failed_compilation -b", PHASE_PRECOMPILE, 2,
		  "-a --retry_failed_compilation -b" },
		{ "jax", "-O1", PHASE_PRECOMPILE, 2, "-O1" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *members = mem_format("'compile':{'kind':'%s','cache':'/c'}", rows[i].kind);
		json_auto_t *plan = plan_with(members);
		struct order_of of = attempt_of(plan, rows[i].phase, rows[i].attempt);
		json_auto_t *order = NULL;
		const char *flags;

		for (size_t phase = 0; phase < 2; phase++)
			js_put_str(json_object_get(
					   json_array_get(json_object_get(plan, "phases"), phase),
					   "env"),
				   "NEURON_CC_FLAGS", rows[i].flags);
		order = order_make(plan, &of);
		flags = js_str(json_object_get(order, "env"), "NEURON_CC_FLAGS");
		assert_string_equal(flags ? flags : "", rows[i].want);
	}
}

/* ---- place of checkpoints ---- */

static void nodes_save_where_all_of_them_reach(void **state)
{
	static const struct {
		const char *engine, *workspace, *url;
		int nodes;
		const char *folder; /* NULL: none */
		bool shared;
		const char *root;
	} rows[] = {
		{ "local", "/ws", NULL, 1, "/ws/runs/r1/train-1/checkpoints", false,
		  "/ws/runs/r1/train-1/checkpoints" },
		{ "local", "/ws", "/ckpt", 2, "/ws/runs/r1/train-1/checkpoints", false,
		  "/ckpt/r1/attempt-1" },
		{ "local", "s3://b/w", NULL, 2, NULL, true,
		  "s3://b/w/runs/r1/train-1/checkpoints" },
		{ "batch", "s3://b/w", NULL, 1, NULL, true,
		  "s3://b/w/runs/r1/train-1/checkpoints" },
		{ "batch", "s3://b/w", NULL, 2, NULL, false,
		  "s3://b/w/runs/r1/train-1/checkpoints" },
		{ "batch", "s3://b/w", "/fsx", 2, "/fsx/r1/attempt-1", false, "/fsx/r1/attempt-1" },
		{ "batch", "s3://b/w", "/fsx", 1, NULL, true, "/fsx/r1/attempt-1" },
		{ "batch", "s3://b/w", "s3://c", 2, NULL, false, "s3://c/r1/attempt-1" },
		{ "batch", "/ws", "s3://c", 2, "/ws/runs/r1/train-1/checkpoints", false,
		  "s3://c/r1/attempt-1" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = plan_with("");
		struct order_of of;
		json_auto_t *order = NULL;
		const char *folder;

		js_put_str(plan, "engine", rows[i].engine);
		js_put_str(plan, "workspace", rows[i].workspace);
		js_put(plan, "nodes", json_integer(rows[i].nodes));
		if (rows[i].url)
			js_put_str(json_object_get(plan, "checkpoint"), "url", rows[i].url);
		of = attempt_of(plan, PHASE_TRAIN, 1);
		order = order_make(plan, &of);
		folder = js_str(order, "checkpoint_dir");
		if (rows[i].folder)
			assert_string_equal(folder ? folder : "", rows[i].folder);
		else
			assert_null(folder);
		assert_int_equal(js_bool(order, "shared_checkpoints", false), rows[i].shared);
		assert_string_equal(js_str(json_object_get(order, "checkpoint"), "root"),
				    rows[i].root);
	}
}

/* ---- orders for a service ---- */

static void an_agent_out_of_reach_is_told_what_its_machine_is(void **state)
{
	json_auto_t *plan = plan_with(
		"'engine':'batch','nodes':2,'workspace':'s3://b/w','secrets':{'TOKEN':'env:MINE'},"
		"'image':{'env':{'NEURON_X':'1'}},'instance':{'cores':32,'efa':8},'spec':{'batch':{"
		"'agent':'/opt/stoker'}}");
	struct order_of of = attempt_of(plan, PHASE_TRAIN, 1);

	(void)state;
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':2,'workspace':'s3://b/w',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':['TOKEN'],'secret_from':{'TOKEN':'env:MINE'},"
		 "'image_env':{'NEURON_X':'1'},'cores':32,'efa':true,'stop_ms':30000,"
		 "'scratch':false,'outputs':'runs/r1/outputs/train-1/',"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'s3://b/w/runs/r1/train-1/checkpoints'},'grace_ms':60000");
	/* nothing of which is known or needed */
	json_decref(plan);
	plan = plan_with("'engine':'batch','nodes':1,'workspace':'s3://b/w','instance':{'cores':0,"
			 "'efa':8},'spec':{'batch':{'agent':'/opt/stoker'}}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':1,'workspace':'s3://b/w',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'stop_ms':30000,'scratch':false,"
		 "'outputs':'runs/r1/outputs/train-1/','shared_checkpoints':true,"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'s3://b/w/runs/r1/train-1/checkpoints'},'grace_ms':60000");
	json_decref(plan);
	plan = plan_with("'engine':'batch','nodes':2,'workspace':'s3://b/w','instance':{'cores':1,"
			 "'efa':1},'spec':{'batch':{'agent':'/opt/stoker'},'resources':{'efa':false"
			 "}}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':2,'workspace':'s3://b/w',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'cores':1,'stop_ms':30000,'scratch':false,"
		 "'outputs':'runs/r1/outputs/train-1/','checkpoint':{'kind':'auto',"
		 "'sync':'none','root':'s3://b/w/runs/r1/train-1/checkpoints'},"
		 "'grace_ms':60000");
	json_decref(plan);
	plan = plan_with("'engine':'batch','nodes':2,'workspace':'s3://b/w','instance':{'cores':1,"
			 "'efa':1},'spec':{'batch':{'agent':'/opt/stoker'},'resources':{'efa':true"
			 "}}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':2,'workspace':'s3://b/w',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'cores':1,'efa':true,'stop_ms':30000,'scratch':false,"
		 "'outputs':'runs/r1/outputs/train-1/','checkpoint':{'kind':'auto',"
		 "'sync':'none','root':'s3://b/w/runs/r1/train-1/checkpoints'},"
		 "'grace_ms':60000");
	/* one of this machine finds that out by itself */
	json_decref(plan);
	plan = plan_with(
		"'nodes':2,'secrets':{'TOKEN':'env:MINE'},'image':{'env':{'NEURON_X':'1'}},"
		"'instance':{'cores':32,'efa':8}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':2,'workspace':'/ws',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':['TOKEN'],'scratch':false,'outputs':'runs/r1/outputs/train-1/',"
		 "'checkpoint_dir':'/ws/runs/r1/train-1/checkpoints',"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'/ws/runs/r1/train-1/checkpoints'},'grace_ms':60000");
	json_decref(plan);
	plan = plan_with(
		"'engine':'sagemaker','nodes':1,'workspace':'s3://b/w','spec':{'sagemaker':"
		"{}}");
	of = attempt_of(plan, PHASE_TRAIN, 1);
	is_order(plan, &of,
		 "'phase':'train','attempt':1,'nodes':1,'workspace':'s3://b/w',"
		 "'prefix':'runs/r1/train-1/','command':['train'],'env':{'A':'1'},"
		 "'secrets':[],'stop_ms':120000,'scratch':false,"
		 "'outputs':'runs/r1/outputs/train-1/','shared_checkpoints':true,"
		 "'checkpoint':{'kind':'auto','sync':'none',"
		 "'root':'s3://b/w/runs/r1/train-1/checkpoints'},'grace_ms':60000");
}

/* ---- orders before there is a run ---- */

static void what_is_planned_names_what_only_a_run_knows(void **state)
{
	json_auto_t *plan = plan_with("'compile':{'kind':'neuron','cache':'/cache','timeout_ms':6,"
				      "'graph_key':'k'},'secrets':{'TOKEN':'env:MINE'}");
	json_auto_t *orders = NULL;
	const json_t *order;

	(void)state;
	setenv("LANG", "C.UTF-8", 1);
	orders = order_planned(plan);
	assert_int_equal(json_array_size(orders), 2);
	order = json_array_get(orders, 0);
	assert_string_equal(js_str(order, "phase"), "precompile");
	assert_string_equal(js_str(order, "job"), "stk-<id>-precompile-1");
	assert_string_equal(js_str(json_object_get(order, "compile"), "claim"), "<claim>");
	assert_null(json_object_get(json_object_get(order, "compile"), "lock"));
	order = json_array_get(orders, 1);
	assert_string_equal(js_str(order, "run"), "<id>");
	assert_string_equal(js_str(order, "nonce"), "<nonce>");
	assert_string_equal(js_str(order, "job"), "stk-<id>-train-1");
	assert_string_equal(js_str(order, "workspace"), "/ws");
	assert_int_equal(js_int(order, "attempt", 0), 1);
	assert_string_equal(js_str(json_object_get(order, "compile"), "lock"), "k");
	assert_null(json_object_get(json_object_get(order, "compile"), "claim"));
	assert_string_equal(js_str(json_object_get(order, "agent_env"), "LANG"), "C.UTF-8");
	assert_string_equal(js_str(json_object_get(order, "agent_env"), "TOKEN"),
			    "(secret from env:MINE)");
	assert_null(json_object_get(json_object_get(order, "agent_env"), "STOKER_TEST_SEED"));
	assert_string_equal(json_string_value(json_array_get(json_object_get(order, "secrets"), 0)),
			    "TOKEN");
	assert_int_equal(json_array_size(json_object_get(order, "secrets")), 1);
	json_decref(orders);
	/* without a phase 1 nothing is held to a manifest; a service has its own environment */
	json_array_remove(json_object_get(plan, "phases"), 0);
	js_put_str(plan, "engine", "batch");
	json_object_set_new(plan, "spec", quoted_json("{'batch':{'agent':'/opt/stoker'}}"));
	orders = order_planned(plan);
	assert_int_equal(json_array_size(orders), 1);
	order = json_array_get(orders, 0);
	assert_null(json_object_get(json_object_get(order, "compile"), "lock"));
	assert_null(json_object_get(json_object_get(order, "agent_env"), "LANG"));
	assert_int_equal(json_object_size(json_object_get(order, "agent_env")), 1);
}

static void the_places_of_an_attempt_have_its_names(void **state)
{
	AUTO(auto_free) char *prefix = order_attempt_prefix("r1", PHASE_PRECOMPILE, 12);
	AUTO(auto_free) char *job = order_job_name("r1", PHASE_TRAIN, 3);
	AUTO(auto_free) char *outputs = order_outputs("r1", PHASE_TRAIN, 4);

	(void)state;
	assert_string_equal(prefix, "runs/r1/precompile-12/");
	assert_string_equal(job, "stk-r1-train-3");
	assert_string_equal(outputs, "runs/r1/outputs/train-4/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_training_saves_and_leaves_its_outputs),
		cmocka_unit_test(phase_1_has_a_limit_and_saves_nothing),
		cmocka_unit_test(the_number_of_compilers_is_that_of_the_attempt_else_of_the_plan),
		cmocka_unit_test(a_repeated_phase_1_compiles_again_what_failed),
		cmocka_unit_test(nodes_save_where_all_of_them_reach),
		cmocka_unit_test(an_agent_out_of_reach_is_told_what_its_machine_is),
		cmocka_unit_test(what_is_planned_names_what_only_a_run_knows),
		cmocka_unit_test(the_places_of_an_attempt_have_its_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
