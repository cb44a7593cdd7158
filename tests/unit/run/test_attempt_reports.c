/* What the agents of an attempt report, and the events that come of it: check-ups, compilers,
 * variables, checkpoints that are passed over, silence, outputs, lost helpers. */
#include "attempt_fixture.h"

#include "jobs/run/attempt/outputs.h"
#include "jobs/store/order.h"

/* ---- place of a report ---- */

static void an_engine_that_keeps_no_reports_leaves_them_in_the_workspace(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{'nodes':2}");
	AUTO(auto_free) char *key = mem_format("%snode-1/report.json", watch->prefix);
	AUTO(node_report_release) struct node_report report = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	ops.report = NULL;
	assert_int_equal(attempt_report(watch, 1, &report, &err), 0);
	assert_int_equal(store_put(driver.workspace, key, "{\"host\":\"b\"}", 12, &err), 0);
	assert_int_equal(attempt_report(watch, 1, &report, &err), 1);
	assert_string_equal(report.host, "b");
	node_report_release(&report);
	assert_int_equal(store_put(driver.workspace, key, "{\"host\":1}", 10, &err), 0);
	report = (struct node_report){ 0 };
	assert_int_equal(attempt_report(watch, 1, &report, &err), -1);
	assert_non_null(strstr(err->message, "host"));
	end();
}

/* ---- check-ups ---- */

#define CHECKED_PLAN "{'health':{'ops':['all_reduce']},'nodes':2}"

static void is_health(struct attempt_watch *watch, const char *health, bool healthy,
		      const char *words)
{
	AUTO(auto_free) char *members = mem_format("'health':%s", health);
	AUTO(err_freep) struct err *err = NULL;

	report(0, members);
	driver.flow.checked = false;
	assert_int_equal(health_record(watch, &err), 0);
	assert_string_equal(newest("health.checked", "reason"), words);
	assert_int_equal(json_is_true(newest_value("health.checked", "healthy")), healthy);
}

static void a_check_up_is_told_in_words(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, CHECKED_PLAN);

	(void)state;
	is_health(watch,
		  "{'verdict':'healthy','began':1,'ended':2,'nodes':[{'node':0,'host':'a',"
		  "'checks':[{'check':'devices','verdict':'ok','words':'16'}]}]}",
		  true, "the node is fit");
	is_health(watch,
		  "{'verdict':'healthy','began':1,'ended':2,'nodes':["
		  "{'node':0,'host':'a','checks':[{'check':'dmesg','verdict':'unchecked'},"
		  "{'check':'disk','verdict':'unchecked'},"
		  "{'check':'efa','verdict':'warned','words':'one link is slow'}],"
		  "'figures':{'all_reduce':{'busbw':40.1},'all_gather':{'busbw':20},"
		  "'across':{'busbw':1},'other':{}}},"
		  "{'node':1,'host':'b','checks':[],"
		  "'figures':{'all_reduce':{'busbw':39.8},'all_gather':{'busbw':20.01}}}],"
		  "'across':{'how':'mpi','figures':{'all_reduce':{'busbw':12.5}}},"
		  "'warned':['both are slow']}",
		  true,
		  "all 2 nodes are fit; all_reduce 39.8 to 40.1 GB/s; all_gather 20.0 GB/s; "
		  "all_reduce between them 12.50 GB/s (mpi); warning: both are slow; "
		  "node 0: one link is slow; not checked: dmesg, disk");
	is_health(watch,
		  "{'verdict':'healthy','nodes':[{'node':0}],'across':{'unchecked':'one node'}}",
		  true, "the node is fit; not checked: one node");
	is_health(watch, "{'verdict':'sick','words':'node 1 is sick','nodes':[{'node':0}]}", false,
		  "node 1 is sick");
	assert_recorded(4);
	end();
}

static void a_check_up_is_recorded_once_and_when_all_nodes_are_in(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, CHECKED_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	report(0, "'health':{'verdict':'healthy'}");
	assert_int_equal(health_record(watch, &err), 0);
	report(0, "'host':'a'");
	assert_int_equal(health_record(watch, &err), 0);
	report(0, "'health':{'verdict':'healthy','nodes':[{'node':0}]}");
	driver.flow.claimed = false;
	assert_int_equal(health_record(watch, &err), 0);
	driver.flow.claimed = driver.flow.checked = true;
	assert_int_equal(health_record(watch, &err), 0);
	driver.flow.checked = false;
	assert_recorded(0);
	said.away = true;
	assert_away(health_record(watch, &err), &err);
	driver.stood_down = true;
	assert_taken_over(health_record(watch, &err), &err);
	assert_recorded(0);
	end();
}

/* ---- the claim ---- */

static void claim(struct attempt_watch *watch, const char *build, const char *words)
{
	const struct engine_status status = { .held = { 5 } };
	AUTO(auto_free) char *members = mem_format("'claimed':7,'host':'a','nonce':'n'%s", build);
	AUTO(err_freep) struct err *err = NULL;

	report(0, members);
	assert_int_equal(attempt_start_record_claim(watch, &status, &err), 0);
	assert_string_equal(newest("attempt.claimed", "reason"), words);
	assert_string_equal(newest("attempt.claimed", "host"), "a");
	assert_int_equal(newest_int("attempt.claimed", "held"), 5);
}

static void an_agent_of_another_build_is_named_with_the_claim(void **state)
{
	struct attempt_watch *watch =
		begin(PHASE_TRAIN, "{'engine':'batch','spec':{'batch':{'agent':'/opt/stoker'}}}");
	const struct engine_status status = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	claim(watch, ",'build':{'version':'1.2','same':true}", "");
	claim(watch, ",'build':{'version':'1.2','same':false}",
	      "the agent in the image of batch.agent is of another build than this stoker (version "
	      "1.2) and ignores orders that it does not know; put this stoker's agent into the "
	      "image");
	claim(watch, "",
	      "the agent in the image of batch.agent is of another build than this stoker (an "
	      "older one) and ignores orders that it does not know; put this stoker's agent into "
	      "the image");
	json_decref(driver.plan);
	driver.plan = quoted_json("{'engine':'batch','spec':{'batch':{'helper_image':'helper'}}}");
	claim(watch, ",'build':{'version':'3','same':false}",
	      "the agent in the image of batch.helper_image is of another build than this stoker "
	      "(version 3) and ignores orders that it does not know; put this stoker's agent into "
	      "the image");
	assert_recorded(4);
	report(0, "'host':'a'"); /* it has no claim yet */
	assert_int_equal(attempt_start_record_claim(watch, &status, &err), 0);
	said.away = true;
	assert_away(attempt_start_record_claim(watch, &status, &err), &err);
	assert_recorded(4);
	end();
}

static int tell_nothing_yet(struct engine *of, const char *name, const char *prefix,
			    int64_t *ret_seconds, struct err **err)
{
	(void)of, (void)name, (void)prefix;
	*ret_seconds = 90;
	return no_answer(err);
}

static void a_claim_waits_for_what_is_known_of_the_machines_kept_before(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{}");
	const struct engine_status status = { .held = { 5 } };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	ops.release = tell_nothing_yet;
	driver.flow.ledger.ended_phase = PHASE_PRECOMPILE;
	driver.flow.ledger.ended_attempt = 1;
	report(0, "'claimed':7");
	assert_away(attempt_start_record_claim(watch, &status, &err), &err);
	assert_recorded(0);
	end();
}

/* ---- the compiler, and variables ---- */

#define KEYED_PLAN                                                                                 \
	"{'compile':{'kind':'neuron'},'nodes':2,'image':{'env_unknown':'the registry is away',"    \
	"'env_hint':'ask for it'}}"

static int start(struct attempt_watch *watch, struct err **err)
{
	driver.flow.started = false;
	return attempt_start_record(watch, (struct utc){ 9 }, err);
}

static void another_compiler_is_named_by_the_first_node_that_has_it(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, KEYED_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.flow.attempts[PHASE_TRAIN] = 2;
	driver.flow.policy.compiles = true;
	report(0, "'host':'a'");
	report(1, "'compiler':{'changed':[{'field':'neuronx-cc','old':'2.25','new':'2.26'}]}");
	assert_int_equal(start(watch, &err), 0);
	assert_recorded(2);
	assert_int_equal(newest_int("attempt.started", "started"), 9);
	assert_string_equal(newest("compiler.checked", "reason"),
			    "neuronx-cc 2.26 in place of 2.25, for which phase 1 has run again "
			    "already");
	assert_int_equal(newest_int("compiler.checked", "node"), 1);
	assert_int_equal(json_array_size(newest_value("compiler.checked", "changed")), 1);
	report(0, "'compiler':{'unknown':'no file says which version it has'}");
	assert_int_equal(start(watch, &err), 0);
	assert_string_equal(newest("compiler.checked", "reason"),
			    "the compiler cannot be compared with that of the compile manifest: no "
			    "file says which version it has");
	driver.stood_down = true;
	assert_taken_over(start(watch, &err), &err);
	said.away = true;
	assert_away(start(watch, &err), &err);
	assert_recorded(4);
	end();
}

#define NAME_IT                                                                                    \
	"a variable that steers graphs is part of the graph key only if the spec sets it; name "   \
	"it in 'env'"

static void is_environment(struct attempt_watch *watch, const char *members, const char *words,
			   const char *cure)
{
	AUTO(auto_free) char *all = mem_format("'environment':%s", members);
	AUTO(err_freep) struct err *err = NULL;
	size_t before = json_array_size(recorded);

	report(0, all);
	assert_int_equal(start(watch, &err), 0);
	assert_recorded(before + 2);
	assert_string_equal(newest("environment.checked", "reason"), words);
	assert_string_equal(newest("environment.checked", "hint"), cure);
}

static void variables_that_the_command_does_not_get_are_named(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, KEYED_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.flow.attempts[PHASE_TRAIN] = 2;
	is_environment(watch, "{'withheld':['A','B\\u001b'],'image_known':true}",
		       "the command does not get A, B\\x1b, which neither the spec nor the image "
		       "sets",
		       NAME_IT);
	assert_int_equal(json_array_size(newest_value("environment.checked", "names")), 2);
	is_environment(watch, "{'withheld':['A'],'image_known':false}",
		       "the command does not get A, which the spec does not set; the image's value "
		       "is not known: the registry is away",
		       NAME_IT ", or ask for it");
	is_environment(watch, "{'withheld':['A'],'set_back':['C'],'image_known':true}",
		       "the command does not get A, which neither the spec nor the image sets; it "
		       "gets C as the image sets it, not as the container has it",
		       NAME_IT);
	is_environment(watch, "{'set_back':['C'],'image_known':true}",
		       "the command gets C as the image sets it, not as the container has it",
		       NAME_IT);
	driver.stood_down = true;
	assert_taken_over(start(watch, &err), &err);
	assert_recorded(8);
	end();
}

/* ---- while the command runs ---- */

static void is_silence(struct attempt_watch *watch, const char *doing, int64_t until,
		       const char *words)
{
	AUTO(auto_free)
	char *members = mem_format("'silence':{'doing':'%s','since':1000,'until':%lld}", doing,
				   (long long)until);
	AUTO(err_freep) struct err *err = NULL;

	report(0, members);
	assert_int_equal(agent_news_record(watch, false, &err), 0);
	assert_string_equal(newest("attempt.stalled", "reason"), words);
	assert_int_equal(newest_int("attempt.stalled", "until"), until);
}

static void a_silence_is_told_once_and_its_end(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{}");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	is_silence(watch, "start", 2000, "no output");
	is_silence(watch, "compile", 3000, "nothing from the compiler");
	is_silence(watch, "a word of a newer agent", 4000, "no progress");
	assert_int_equal(agent_news_record(watch, false, &err), 0);
	assert_recorded(3);
	report(0, "'host':'a'");
	assert_int_equal(agent_news_record(watch, true, &err), 0); /* the end says it all */
	assert_recorded(3);
	assert_int_equal(agent_news_record(watch, false, &err), 0);
	(void)newest("attempt.went_on", "reason");
	report(0, "'silence':{'doing':'step','since':1,'until':2}");
	driver.stood_down = true;
	assert_taken_over(agent_news_record(watch, false, &err), &err);
	said.away = true; /* it is read later */
	assert_int_equal(agent_news_record(watch, false, &err), 0);
	assert_recorded(4);
	end();
}

static void a_checkpoint_that_is_passed_over_is_told_once(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{}");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	report(0, "'checkpoint':{'passed':[{'name':'a','path':'/c/a','why':'it is empty','at':5,"
		  "'hint':'save it whole','step':0},{'name':'b','at':6}]}");
	assert_int_equal(agent_news_record(watch, false, &err), 0);
	assert_recorded(2);
	assert_string_equal(newest("checkpoint.rejected", "url"), "");
	assert_null(newest_value("checkpoint.rejected", "step"));
	json_array_remove(recorded, 1); /* and the one before */
	assert_string_equal(newest("checkpoint.rejected", "url"), "/c/a");
	assert_string_equal(newest("checkpoint.rejected", "reason"), "it is empty");
	assert_string_equal(newest("checkpoint.rejected", "hint"), "save it whole");
	assert_int_equal(newest_int("checkpoint.rejected", "step"), 0);
	assert_int_equal(agent_news_record(watch, true, &err), 0);
	assert_recorded(1);
	/* The list of an agent that was started again begins anew. */
	report(0, "'checkpoint':{'passed':[{'name':'c','path':'/c/c','at':7}]}");
	driver.stood_down = true;
	assert_taken_over(agent_news_record(watch, true, &err), &err);
	assert_int_equal(agent_news_record(watch, true, &err), 0);
	assert_string_equal(newest("checkpoint.rejected", "url"), "/c/c");
	end();
}

static void a_helper_that_stays_down_is_told_once(void **state)
{
	static const char drain[] = "{\"node\":7,\"worker\":{\"why\":\"it was killed\","
				    "\"hint\":\"give it memory\"}}";
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{'nodes':2}");
	AUTO(auto_free) char *key = mem_format("%s" DRAIN_FILE, watch->prefix);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	workers_record(watch, false);
	assert_recorded(0);
	assert_int_equal(store_put(driver.workspace, key, drain, strlen(drain), &err), 0);
	watch->workers_at.ms += 3600 * 1000; /* it is not looked for yet */
	workers_record(watch, false);
	assert_recorded(0);
	workers_record(watch, true);
	assert_string_equal(newest("worker.lost", "reason"), "it was killed");
	assert_string_equal(newest("worker.lost", "hint"), "give it memory");
	/* The attempt has no node 7. */
	assert_int_equal(newest_int("worker.lost", "node"), 0);
	workers_record(watch, true);
	assert_recorded(1);
	end();
}

static void a_helper_is_named_by_the_report_of_its_node(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{'nodes':2}");

	(void)state;
	report(0, "'host':'a'");
	report(1, "'worker':{'name':'uploader','why':'it dies','at':1}");
	workers_record(watch, true);
	assert_string_equal(newest("worker.lost", "reason"), "it dies");
	assert_int_equal(newest_int("worker.lost", "node"), 1);
	end();
}

/* ---- outputs ---- */

static void what_is_missing_of_the_outputs_is_told_by_node(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{'nodes':2}");
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *outputs = NULL;
	json_auto_t *none = NULL;

	(void)state;
	assert_int_equal(outputs_gather(watch, &none, &err), 0);
	assert_null(none);
	report(0, "'outputs':{'url':'/w/o/node-0','files':3,'bytes':30,'left':6,'names':["
		  "{'name':'x','why':'is a link'},{'name':'y'},{'why':'cannot be read'},"
		  "{'name':'z','why':'is a pipe'},{'name':'5','why':'is five'}]}");
	report(1, "'outputs':{'url':'/w/o/node-1','files':1,'bytes':4,'why':'the disk is full'}");
	assert_int_equal(outputs_gather(watch, &outputs, &err), 0);
	assert_int_equal(js_int(outputs, "files", 0), 4);
	assert_int_equal(js_int(outputs, "size_bytes", 0), 34);
	assert_int_equal(js_int(outputs, "left", 0), 6);
	assert_string_equal(js_str(outputs, "why"),
			    "node 0: 'x' is a link; node 0: 'y' is not there; node 0: cannot be "
			    "read; node 0: 'z' is a pipe, and 2 more; node 1: the disk is full");
	assert_non_null(strstr(js_str(outputs, "url"), "/ws/runs/r1/outputs/train-1"));
	outputs_record(watch, outputs);
	assert_string_equal(newest("outputs.left", "reason"), js_str(outputs, "why"));
	json_object_del(outputs, "why");
	outputs_record(watch, outputs);
	assert_recorded(1);
	said.away = true;
	assert_away(outputs_gather(watch, &none, &err), &err);
	assert_null(none);
	end();
}

static void outputs_that_had_not_to_be_copied_are_not_counted(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{}");
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *outputs = NULL;

	(void)state;
	report(0, "'outputs':{'url':'/w/o/node-0'}");
	assert_int_equal(outputs_gather(watch, &outputs, &err), 0);
	assert_int_equal(json_object_size(outputs), 1);
	assert_non_null(js_str(outputs, "url"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_engine_that_keeps_no_reports_leaves_them_in_the_workspace),
		cmocka_unit_test(a_check_up_is_told_in_words),
		cmocka_unit_test(a_check_up_is_recorded_once_and_when_all_nodes_are_in),
		cmocka_unit_test(an_agent_of_another_build_is_named_with_the_claim),
		cmocka_unit_test(a_claim_waits_for_what_is_known_of_the_machines_kept_before),
		cmocka_unit_test(another_compiler_is_named_by_the_first_node_that_has_it),
		cmocka_unit_test(variables_that_the_command_does_not_get_are_named),
		cmocka_unit_test(a_silence_is_told_once_and_its_end),
		cmocka_unit_test(a_checkpoint_that_is_passed_over_is_told_once),
		cmocka_unit_test(a_helper_that_stays_down_is_told_once),
		cmocka_unit_test(a_helper_is_named_by_the_report_of_its_node),
		cmocka_unit_test(what_is_missing_of_the_outputs_is_told_by_node),
		cmocka_unit_test(outputs_that_had_not_to_be_copied_are_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
