/* How attempts end whose command runs once for each task: see jobs/run/attempt/tasks_record.c. */
#include "attempt_end_fixture.h"

#include "faulty_store.h"

/* The task that was at work when an attempt failed, with its objects, unless it is done since. */
static void the_task_that_failed_is_told(void **state)
{
	static const char body[] = "'started':5,'ended':9,'tasks':{'done':1,'of':3,'task':'%s',"
				   "'objects':['/d/1','/d/2']}";
	static const struct {
		const char *task;
		bool told;
	} rows[] = { { "shard-2", true }, { "shard-1", false }, { "shard-3", false } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *text = mem_format(body, rows[i].task);

		begin_end(PHASE_INFER, "{'nodes':1}", 3);
		driver.flow.policy.stages[PHASE_INFER].tasks = 3;
		driver.flow.tasks[0] = 1 << 1;
		driver.flow.tasks_done = 1;
		report(0, text);
		if (rows[i].told)
			ends_as("'class':'unknown','node':0,'exit':3,'evidence':'exit status 3',"
				"'signature':'unknown/nothing-known/"
				"65e3c9ba3a286a48','started':5,'finished':9,'by_driver':false,"
				"'task':'shard-2','objects':['/d/1','/d/2'],"
				"'hint':'look at the objects of shard-2: /d/1, /d/2'");
		else
			ends_as("'class':'unknown','node':0,'exit':3,'evidence':'exit status 3',"
				"'signature':'unknown/nothing-known/"
				"65e3c9ba3a286a48','started':5,'finished':9,'by_driver':false");
		end();
	}
}

static struct faulty_store *lose_workspace(void)
{
	AUTO(auto_free) char *work = mem_format("%s/ws", dir);
	struct faulty_store *store = faulty_new(work);

	store_freep(&driver.workspace);
	driver.workspace = &store->base;
	faulty_lose(store, 0, 1000);
	return store;
}

/* Tasks without a look at what is done; the report says what was at work. */
static void begin_unseen(int exit_status)
{
	begin_end(PHASE_INFER, "{'nodes':1}", exit_status);
	driver.flow.policy.stages[PHASE_INFER].tasks = 3;
	report(0, "'started':5,'ended':9,'tasks':{'done':2,'of':3,'task':'shard-2'}");
}

static void cannot_end(int times)
{
	for (int i = 0; i < times; i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(watch_turn(&driver, &err), -1);
		assert_string_equal(err->message, "the network is gone");
	}
	assert_int_equal(count_of("attempt.ended"), 0);
}

/* The verdict on a command that ended well rests on what it has done; that on one which failed does
 * not, nor does a run that is to stop wait for it. */
static void only_a_success_waits_for_its_tasks(void **state)
{
	struct faulty_store *store;

	(void)state;
	begin_unseen(0);
	store = lose_workspace();
	cannot_end(5 * END_TRIES);
	faulty_lose(store, 0, 0);
	ends_as("'class':'unknown','node':0,'exit':0,'started':5,'finished':9,'by_driver':false,"
		"'evidence':'the command ended well, and 3 of 3 tasks have no result',"
		"'signature':'unknown/tasks-missing/0000000000000000','task':'shard-2'");
	end();
	begin_unseen(3); /* no task is named: its result may be there */
	lose_workspace();
	cannot_end(END_TRIES - 1);
	ends_as("'class':'unknown','node':0,'exit':3,'evidence':'exit status 3',"
		"'signature':'unknown/nothing-known/65e3c9ba3a286a48','started':5,'finished':9,"
		"'by_driver':false");
	assert_string_equal(newest("chore.failed", "reason"),
			    "results of the last tasks: not journalled: the network is gone");
	end();
	begin_unseen(0);
	lose_workspace();
	driver.flow.stop_requested = true;
	cannot_end(END_TRIES - 1);
	ends_as("'class':'none','node':0,'exit':0,'started':5,'finished':9,'by_driver':true");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_task_that_failed_is_told),
		cmocka_unit_test(only_a_success_waits_for_its_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
