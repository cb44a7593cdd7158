/* How the end of an attempt is recorded: every member of attempt.ended, and what it comes from. See
 * jobs/run/attempt/attempt_end.c. */
#include "attempt_end_fixture.h"

#include "jobs/cache/verdict/cache_verdict.h"

#define TRAINS(members)                                                                            \
	"{'nodes':1,'steps':{'train':10},'metrics':[{'name':'step','regex':'step "                 \
	"([0-9]+)'}]" members "}"
#define CAUSE "ValueError: x is not 3\n"

static int waits_asked;
static const char *wait_words; /* of a lock that was waited for; NULL: none */
static bool wait_fails;

int __wrap_cache_find_wait(const struct verify_request *request, char **ret_words, char **ret_hint,
			   struct err **err);

int __wrap_cache_find_wait(const struct verify_request *request, char **ret_words, char **ret_hint,
			   struct err **err)
{
	assert_ptr_equal(request->store, driver.cache);
	assert_ptr_equal(request->tally, driver.watch->tally);
	waits_asked++;
	*ret_words = wait_words ? mem_copy(wait_words) : NULL;
	*ret_hint = wait_words ? mem_copy("remove the lock") : NULL;
	return wait_fails ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : 0;
}

static void an_end_without_failure_tells_its_exit_and_its_times(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(""), 0);
	the_end.last_seen.ms = 77;
	say(0, CAUSE); /* is no cause of anything */
	ends_as("'class':'none','node':0,'exit':0,'finished':77,'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 0);
	the_end.last_seen.ms = 77;
	the_end.released.ms = 99;
	the_end.billable_ms = 1;
	report(0, "'started':1,'ended':88,'exit':0");
	ends_as("'class':'none','node':0,'exit':0,'started':1,'finished':88,'released':99,"
		"'billable':1,'by_driver':false");
	end();
	/* at the beginning of time */
	begin_end(PHASE_TRAIN, TRAINS(""), 0);
	the_end.last_seen.ms = 1;
	ends_as("'class':'none','node':0,'exit':0,'finished':1,'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 0);
	the_end.last_seen.ms = 77;
	report(0, "'ended':0,'signal':0");
	ends_as("'class':'none','node':0,'exit':0,'by_driver':false");
	end();
}

static void a_failure_is_told_with_its_cause_and_its_cure(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(""), 1);
	say(0, "step 1\nTraceback (most recent call last):\n" CAUSE);
	ends_as("'node':0,'exit':1,'class':'user-code','evidence':'ValueError: x is not 3',"
		"'hint':'~stoker logs r1 --phase train --attempt 1~ shows all of its output',"
		"'signature':'user-code/py-mistake/85c7817e0441521e','by_driver':false");
	end();
	/* in a row of the user */
	begin_end(PHASE_TRAIN,
		  TRAINS(",'failures':[{'regex':'x is not ([0-9]+)','class':'data','hint':'mend "
			 "{}'}]"),
		  1);
	say(0, CAUSE);
	ends_as("'node':0,'exit':1,'class':'data','evidence':'ValueError: x is not 3',"
		"'hint':'mend 3','signature':'data/own-1/85c7817e0441521e','by_driver':false");
	end();
	/* in the engine's words */
	begin_end(PHASE_TRAIN, TRAINS(""), -1);
	snprintf(the_end.reason, sizeof the_end.reason, "the machine is gone");
	ends_as("'node':0,'class':'unknown','evidence':'no exit status is known\\nthe "
		"machine is gone','signature':'unknown/nothing-known/e7df21a0063882a8',"
		"'by_driver':false");
	end();
	/* by a flag, which one of these may be */
	begin_end(PHASE_TRAIN,
		  TRAINS(",'spec':{'hyperparameters':{'bf16':true,'x':3,'resume':false}}"), 2);
	say(0, "train.py: error: unrecognized arguments: True\n");
	ends_as("'node':0,'exit':2,'class':'user-config','evidence':'train.py: error: "
		"unrecognized arguments: True','hint':'bf16, resume: the script takes a flag "
		"without a value: write hyperparameter_style: {booleans: flag}',"
		"'signature':'user-config/arg-flag/f7b5667190d03665','by_driver':false");
	end();
}

static void the_signal_and_the_place_without_room_are_told(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(""), 137);
	say(0, "step 1\n");
	report(0, "'started':5,'ended':9,'signal':9,'oom':true");
	ends_as("'node':0,'exit':137,'signal':9,'class':'user-config','evidence':'the kernel "
		"killed a process for lack of memory\\nkilled by signal 9 (SIGKILL)\\nstep "
		"1','hint':'the machine ran out of memory: use a smaller batch, fewer "
		"workers or a larger instance',"
		"'signature':'user-config/oom/1952718a45a90ad7','started':5,'finished':9,"
		"'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 1);
	report(0, "'started':5,'ended':9,'signal':1,'mount':'/ckpt','error':{'class':'data',"
		  "'message':'no space','hint':'make room'}");
	ends_as("'node':0,'exit':1,'signal':1,'class':'data','evidence':'no space',"
		"'hint':'make room','signature':'data/agent/6902c05a9b48cd58',"
		"'mount':'/ckpt','started':5,'finished':9,'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 1);
	report(0, "'error':{'class':'none','message':'no space'}");
	ends_as("'node':0,'exit':1,'class':'unknown','evidence':'exit status 1',"
		"'signature':'unknown/nothing-known/65e3cbba3a286dae','by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 1);
	report(0, "'error':{'class':'odd','message':'no space'}");
	ends_as("'node':0,'exit':1,'class':'unknown','evidence':'exit status 1',"
		"'signature':'unknown/nothing-known/65e3cbba3a286dae','by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 1);
	report(0, "'error':{'class':'transient-infra','message':'no network'}");
	ends_as("'node':0,'exit':1,'class':'transient-infra','evidence':'no network',"
		"'signature':'transient-infra/agent/27f82fba8eab4f8c','by_driver':false");
	end();
}

static void why_the_command_was_stopped_is_told(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(""), 143);
	say(0, "step 9\n");
	report(0, "'signal':15,'stopped':'stall','stall':{'doing':'step','silent_ms':61000,"
		  "'limit_ms':60000}");
	ends_as("'node':0,'exit':143,'signal':15,'class':'timeout-hang','evidence':'no "
		"progress for 1m 01s (limit 1m 00s), last seen at: step','hint':'raise "
		"limits.stall, or print the step more often, if the command did not hang',"
		"'signature':'','stopped':'stall','hang':61000,'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 143);
	report(0, "'signal':15,'stopped':'stall','stall':{'silent_ms':61000,'limit_ms':60000}");
	ends_as("'node':0,'exit':143,'signal':15,'class':'timeout-hang','evidence':'no "
		"progress for 1m 01s (limit 1m 00s), last seen at: ?','hint':'raise "
		"limits.stall, or print the step more often, if the command did not hang',"
		"'signature':'','stopped':'stall','hang':61000,'by_driver':false");
	end();
	begin_end(PHASE_PRECOMPILE, TRAINS(""), 143);
	report(0, "'signal':15,'stopped':'timeout'");
	ends_as("'node':0,'exit':143,'signal':15,'class':'timeout-hang',"
		"'evidence':'compile.timeout is exceeded','hint':'raise compile.timeout, or "
		"lower compile.max_steps','signature':'','stopped':'timeout',"
		"'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 143);
	report(0, "'signal':15,'stopped':'drain'");
	driver.flow.stop_requested = true;
	ends_as("'node':0,'exit':143,'signal':15,'class':'stopped','evidence':'killed by "
		"signal 15 (SIGTERM)','signature':'','stopped':'drain','by_driver':true");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 143);
	report(0, "'signal':15,'stopped':'worker'");
	driver.watch->worker = quoted_json("{'why':'uploader died','hint':'mend it'}");
	ends_as("'node':0,'exit':143,'signal':15,'class':'hardware-node',"
		"'evidence':'uploader died','hint':'mend it',"
		"'signature':'hardware-node/worker-lost/855967087341e983','stopped':'worker',"
		"'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 143);
	report(0, "'signal':15,'stopped':'signal'");
	ends_as("'node':0,'exit':143,'signal':15,'class':'unknown','evidence':'killed by "
		"signal 15 (SIGTERM)','signature':'','stopped':'signal','by_driver':false");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 143);
	the_end.taken_down = true;
	ends_as("'node':0,'exit':143,'class':'stopped','evidence':'no exit status is known',"
		"'signature':'stopped/nothing-known/f7981356baa7a843','by_driver':false");
	end();
}

/* A drain that came after the last step stopped nothing. */
static void a_training_that_made_its_last_step_was_not_stopped(void **state)
{
	static const struct {
		const char *plan, *log;
	} rows[] = {
		{ TRAINS(""), "step 10\n" },
		{ TRAINS(""), "step 11\n" },
		{ TRAINS(""), "step 9\n" },
		{ TRAINS(""), "" },
		{ "{'nodes':1,'metrics':[{'name':'step','regex':'step ([0-9]+)'}]}", "step 10\n" },
		{ "{'nodes':1,'steps':{'train':0},'metrics':[{'name':'step','regex':'step "
		  "([0-9]+)'}]}",
		  "step 10\n" },
		{ "{'nodes':1,'steps':{'train':1},'metrics':[{'name':'step','regex':'step "
		  "([0-9]+)'}]}",
		  "step 1\n" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		bool finished = i < 2 || i == 6;

		begin_end(PHASE_TRAIN, rows[i].plan, 0);
		report(0, "'exit':0,'stopped':'drain'");
		say(0, rows[i].log);
		{
			AUTO(err_freep) struct err *err = NULL;

			assert_int_equal(watch_turn(&driver, &err), 0);
		}
		assert_string_equal(newest("attempt.ended", "class"),
				    finished ? "none" : "stopped");
		end();
	}
}

static void of_several_nodes_the_first_cause_is_told_with_its_node(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, "{'nodes':2,'metrics':[{'name':'step','regex':'step ([0-9]+)'}]}",
		  1);
	the_end.node = 1;
	report(0, "'ended':50,'signal':15,'stopped':'peer'");
	report(1, "'ended':40,'exit':1");
	say(0, "waiting\n");
	say(1, CAUSE);
	ends_as("'node':1,'nodes':2,'exit':1,'class':'user-code','evidence':'ValueError: x "
		"is not 3','hint':'~stoker logs r1 --phase train --attempt 1 --node 1~ shows "
		"all of its output','signature':'user-code/py-mistake/85c7817e0441521e',"
		"'finished':40,'by_driver':false");
	end();
	/* the one that ended first */
	begin_end(PHASE_TRAIN, "{'nodes':2,'metrics':[]}", 139);
	report(0, "'ended':50,'signal':6");
	report(1, "'ended':40,'signal':11");
	ends_as("'node':0,'nodes':2,'exit':139,'signal':6,'class':'unknown',"
		"'evidence':'killed by signal 6 (SIGABRT)','hint':'the program crashed: run "
		"it under a debugger, or with PYTHONFAULTHANDLER=1 in `env`',"
		"'signature':'unknown/crash/f7b613a1afa7bb76','finished':50,'by_driver':false");
	end();
}

static int refuse_log(struct engine *of, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)offset, (void)max, (void)ret;
	err_set(err, EXIT_REFUSED, "the log is not yours");
	return err_hint(err, "ask for it");
}

static void a_log_that_cannot_be_read_is_told_even_of_a_success(void **state)
{
	(void)state;
	for (int failed = 0; failed < 2; failed++) {
		begin_end(PHASE_TRAIN, TRAINS(""), failed);
		ops.logs = refuse_log;
		ends_as(failed ? "'node':0,'exit':1,'class':'unknown','evidence':'exit status 1; "
				 "cannot read "
				 "the log: the log is not yours','hint':'ask for it',"
				 "'signature':'unknown/nothing-known/"
				 "65e3cbba3a286dae','by_driver':false"
			       : "'node':0,'exit':0,'class':'none','evidence':'cannot read the "
				 "log: the log "
				 "is not yours','hint':'ask for it','by_driver':false");
		end();
	}
}

#define FAILED_GRAPH                                                                               \
	"Failed compilation with ['neuronx-cc', 'compile', '--target=trn1', '/tmp/model."          \
	"MODULE_10290217891379219021+3cc9a3cb.hlo_module.pb', '--output', '/tmp/x.neff']: "        \
	"ERROR: why\n"
#define COMPILES "{'nodes':1,'compile':{'kind':'neuron'},'metrics':[]}"

static void graphs_that_failed_are_counted_in_phase_1(void **state)
{
	(void)state;
	begin_end(PHASE_PRECOMPILE, COMPILES, 1);
	say(0, FAILED_GRAPH);
	ends_as("'node':0,'failed':1,'exit':1,'class':'compile','evidence':'Failed "
		"compilation with [~neuronx-cc~, ~compile~, ~--target=trn1~, "
		"~/tmp/model.MODULE_10290217891379219021+3cc9a3cb.hlo_module.pb~, ~--output~,"
		" ~/tmp/x.neff~]: ERROR: why','hint':'the compiler~s own words are above "
		"this line','signature':'compile/ncc-command/3928dfa9e3e2193e',"
		"'by_driver':false");
	end();
	begin_end(PHASE_TRAIN, COMPILES, 1);
	say(0, FAILED_GRAPH);
	ends_as("'node':0,'exit':1,'class':'compile','evidence':'Failed compilation with "
		"[~neuronx-cc~, ~compile~, ~--target=trn1~, "
		"~/tmp/model.MODULE_10290217891379219021+3cc9a3cb.hlo_module.pb~, ~--output~,"
		" ~/tmp/x.neff~]: ERROR: why','hint':'the compiler~s own words are above "
		"this line','signature':'compile/ncc-command/3928dfa9e3e2193e',"
		"'by_driver':false");
	end();
	begin_end(PHASE_PRECOMPILE, COMPILES, 0);
	say(0, FAILED_GRAPH);
	ends_as("'node':0,'exit':0,'class':'none','by_driver':false");
	end();
}

#define OTHER                                                                                      \
	"'error':{'class':'compile','message':'another compiler'},'compiler':{'changed':[{"        \
	"'field':'jax','old':'1','new':'2'}],'pair':'p'}"

static void when_a_benchmark_saved_is_told(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(",'benchmark':true"), 0);
	report(0, "'checkpoint':{'saves':[[1000,3500],[9000,9000]]}");
	ends_as("'node':0,'exit':0,'class':'none','by_driver':false,'saves':["
		"{'from':'1970-01-01T00:00:01.000Z','to':'1970-01-01T00:00:03.500Z'},"
		"{'from':'1970-01-01T00:00:09.000Z','to':'1970-01-01T00:00:09.000Z'}]");
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 0);
	report(0, "'checkpoint':{'saves':[[1000,3500]]}");
	ends_as("'node':0,'exit':0,'class':'none','by_driver':false");
	end();
}

static void a_training_with_another_compiler_tells_the_difference(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, COMPILES, 1);
	report(0, OTHER);
	ends_as("'node':0,'changed':[{'field':'jax','old':'1','new':'2'}],'exit':1,"
		"'class':'compile','evidence':'another compiler','signature':'p',"
		"'by_driver':false");
	end();
	/* not one that began, of phase 1, or for another reason */
	begin_end(PHASE_TRAIN, COMPILES, 1);
	report(0, "'started':1," OTHER);
	ends_as("'node':0,'exit':1,'class':'compile','evidence':'another compiler',"
		"'signature':'compile/agent/8234235b8126fab1','started':1,'by_driver':false");
	end();
	begin_end(PHASE_PRECOMPILE, COMPILES, 1);
	report(0, OTHER);
	ends_as("'node':0,'exit':1,'class':'compile','evidence':'another compiler',"
		"'signature':'compile/agent/8234235b8126fab1','by_driver':false");
	end();
	begin_end(PHASE_TRAIN, COMPILES, 1);
	report(0, "'error':{'class':'compile','message':'x'}");
	ends_as("'node':0,'exit':1,'class':'compile','evidence':'x',"
		"'signature':'compile/agent/af63f54c86021707','by_driver':false");
	end();
}

static void ends_stopped(bool timeout)
{
	AUTO(auto_free) char *cache = NULL;
	AUTO(err_freep) struct err *err = NULL;

	begin_end(PHASE_PRECOMPILE, TRAINS(""), timeout ? 143 : 1);
	cache = mem_format("%s/cache", dir);
	assert_int_equal(store_open(cache, &driver.cache, &err), 0);
	if (timeout)
		report(0, "'signal':15,'stopped':'timeout'");
	if (watch_turn(&driver, &err) < 0)
		fail_msg("%s", err->message);
}

/* The cache is asked only about a hang. */
static void a_hang_may_be_a_wait_for_a_lock(void **state)
{
	(void)state;
	wait_words = "waited for a lock";
	waits_asked = 0;
	ends_stopped(true);
	assert_int_equal(waits_asked, 1);
	assert_string_equal(newest("attempt.ended", "class"), "timeout-hang");
	assert_non_null(strstr(newest("attempt.ended", "evidence"), "waited for a lock"));
	assert_non_null(strstr(newest("attempt.ended", "hint"), "remove the lock"));
	end();
	ends_stopped(false);
	assert_int_equal(waits_asked, 1);
	assert_null(strstr(newest("attempt.ended", "evidence"), "waited for a lock"));
	end();
	wait_words = NULL;
	ends_stopped(true);
	assert_string_equal(newest("attempt.ended", "evidence"), "compile.timeout is exceeded");
	end();
	wait_fails = true; /* an explanation and no more */
	ends_stopped(true);
	assert_string_equal(newest("attempt.ended", "evidence"), "compile.timeout is exceeded");
	assert_int_equal(waits_asked, 3);
	wait_fails = false;
	end();
}

static void the_least_of_words_are_words(void **state)
{
	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(",'spec':{'hyperparameters':{'a':true,'b':false,'c':1}}"), 2);
	say(0, "train.py: error: unrecognized arguments: True\n");
	{
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(watch_turn(&driver, &err), 0);
	}
	assert_memory_equal(newest("attempt.ended", "hint"), "a, b: ", 6);
	end();
	begin_end(PHASE_TRAIN, TRAINS(""), 1);
	report(0, "'error':{'class':'unknown','message':'odd'}");
	{
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(watch_turn(&driver, &err), 0);
	}
	assert_string_equal(newest("attempt.ended", "evidence"), "odd");
	end();
}

/* The lines are quoted also after their ring has turned round. */
static void the_newest_lines_are_quoted_where_none_is_a_cause(void **state)
{
	static const int counts[] = { 5, 59, 60, 61, 119, 120, 200 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(counts); i++) {
		int last = counts[i] - 1;
		AUTO(auto_free)
		char *want = mem_format("exit status 1\nl%d\nl%d\nl%d\nl%d\nl%d", last - 4,
					last - 3, last - 2, last - 1, last);
		AUTO(err_freep) struct err *err = NULL;

		begin_end(PHASE_TRAIN, TRAINS(""), 1);
		for (int line = 0; line < counts[i]; line++) {
			AUTO(auto_free) char *text = mem_format("l%d\n", line);

			say(0, text);
		}
		assert_int_equal(watch_turn(&driver, &err), 0);
		assert_string_equal(newest("attempt.ended", "evidence"), want);
		end();
	}
}

/* The sixtieth line from the end is looked at, and one before it if it bears on a failure. */
static void a_cause_is_found_far_before_the_end(void **state)
{
	static const int behind[] = { 0, 59, 60, 300 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(behind); i++) {
		AUTO(err_freep) struct err *err = NULL;

		begin_end(PHASE_TRAIN, TRAINS(""), 1);
		say(0, "NRT: Uncorrectable memory error is detected, metadata: 0x1\n");
		for (int line = 0; line < behind[i]; line++)
			say(0, "bye\n");
		assert_int_equal(watch_turn(&driver, &err), 0);
		assert_string_equal(newest("attempt.ended", "class"), "hardware-node");
		end();
	}
}

static void outputs_and_machines_are_told(void **state)
{
	AUTO(auto_free) char *want = NULL;

	(void)state;
	begin_end(PHASE_TRAIN, TRAINS(""), 0);
	driver.flow.claimed = false;
	the_end.held.ms = 3;
	report(0, "'outputs':{'url':'/o','files':2,'bytes':30,'left':1,'names':[{'name':'x','why':"
		  "'is a link'}]}");
	want = mem_format(
		"'class':'none','node':0,'exit':0,'held':3,'by_driver':false,'outputs':{"
		"'url':'%s/ws/runs/r1/outputs/train-1','files':2,'size_bytes':30,'left':1,"
		"'why':'node 0: ~x~ is a link'}",
		dir);
	ends_as(want);
	assert_string_equal(newest("outputs.left", "reason"), "node 0: 'x' is a link");
	end();
}

static void an_end_that_cannot_be_journalled_is_not_told(void **state)
{
	struct attempt_watch *watch = begin_end(PHASE_TRAIN, TRAINS(""), 0);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.stood_down = true;
	assert_taken_over(attempt_end_record(watch, &the_end, &err), &err);
	said.away = true;
	assert_away(attempt_end_record(watch, &the_end, &err), &err);
	assert_recorded(0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_without_failure_tells_its_exit_and_its_times),
		cmocka_unit_test(a_failure_is_told_with_its_cause_and_its_cure),
		cmocka_unit_test(the_signal_and_the_place_without_room_are_told),
		cmocka_unit_test(why_the_command_was_stopped_is_told),
		cmocka_unit_test(a_training_that_made_its_last_step_was_not_stopped),
		cmocka_unit_test(of_several_nodes_the_first_cause_is_told_with_its_node),
		cmocka_unit_test(a_log_that_cannot_be_read_is_told_even_of_a_success),
		cmocka_unit_test(graphs_that_failed_are_counted_in_phase_1),
		cmocka_unit_test(when_a_benchmark_saved_is_told),
		cmocka_unit_test(a_training_with_another_compiler_tells_the_difference),
		cmocka_unit_test(a_hang_may_be_a_wait_for_a_lock),
		cmocka_unit_test(the_least_of_words_are_words),
		cmocka_unit_test(the_newest_lines_are_quoted_where_none_is_a_cause),
		cmocka_unit_test(a_cause_is_found_far_before_the_end),
		cmocka_unit_test(outputs_and_machines_are_told),
		cmocka_unit_test(an_end_that_cannot_be_journalled_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
