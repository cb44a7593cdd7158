/* Helpers of agents that stay down, and the figures of a check-up, at their limits. The clock is
 * the test's. See jobs/run/attempt/workers.c and health_record.c. */
#include "attempt_clock.h"
#include "attempt_fixture.h"

#include "jobs/store/order.h"

static struct attempt_watch *begin_nodes(void)
{
	struct attempt_watch *watch;

	now.ms = 0;
	watch = begin(PHASE_TRAIN, "{'nodes':2,'metrics':[],'health':{'ops':['all_reduce']}}");
	now.ms = 1000000;
	return watch;
}

static void end_nodes(void)
{
	now.ms = 0;
	end();
}

static void drain(const char *text)
{
	AUTO(auto_free) char *json = quoted(text);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(store_put(driver.workspace, "runs/r1/train-1/" DRAIN_FILE, json,
				   strlen(json), &err),
			 0);
}

static void a_drain_that_an_agent_asked_for_names_its_worker(void **state)
{
	static const struct {
		const char *drain;
		int64_t node; /* -1: none is named */
		const char *hint;
	} rows[] = {
		{ "{'node':1,'worker':{'why':'it died','hint':'mend it'}}", 1, "mend it" },
		{ "{'node':0,'worker':{'why':'it died'}}", 0, "" },
		{ "{'node':2,'worker':{'why':'it died'}}", 0, "" },
		{ "{'node':-1,'worker':{'why':'it died'}}", 0, "" },
		{ "{'worker':{'why':'it died'}}", 0, "" },
		{ "{'reason':'enough'}", -1, "" },
		{ "{'worker':{'hint':'mend it'}}", -1, "" },
		{ "{", -1, "" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin_nodes();

		drain(rows[i].drain);
		workers_record(watch, false);
		if (rows[i].node < 0) {
			assert_recorded(0);
			assert_null(watch->worker);
		} else {
			assert_string_equal(newest("worker.lost", "reason"), "it died");
			assert_string_equal(newest("worker.lost", "hint"), rows[i].hint);
			assert_int_equal(newest_int("worker.lost", "node"), rows[i].node);
			assert_int_equal(watch->worker_node, rows[i].node);
			workers_record(watch, false);
			workers_record(watch, true);
			assert_recorded(1); /* once */
		}
		end_nodes();
	}
}

static void workers_are_looked_for_every_second(void **state)
{
	struct attempt_watch *watch = begin_nodes();

	(void)state;
	workers_record(watch, false);
	assert_int_equal(watch->workers_at.ms, 1000000);
	drain("{'node':1,'worker':{'why':'it died'}}");
	now.ms += 999;
	workers_record(watch, false);
	assert_recorded(0);
	now.ms++;
	workers_record(watch, false);
	assert_recorded(1);
	assert_int_equal(watch->workers_at.ms, 1001000);
	end_nodes();
	/* at the end at once */
	watch = begin_nodes();
	workers_record(watch, false);
	drain("{'node':1,'worker':{'why':'it died'}}");
	workers_record(watch, true);
	assert_recorded(1);
	end_nodes();
}

static void at_the_end_the_reports_name_it_too(void **state)
{
	struct attempt_watch *watch = begin_nodes();

	(void)state;
	report(1, "'worker':{'name':'uploader','why':'it died','hint':'mend it','at':5}");
	workers_record(watch, false);
	assert_recorded(0);
	workers_record(watch, true);
	assert_string_equal(newest("worker.lost", "reason"), "it died");
	assert_string_equal(newest("worker.lost", "hint"), "mend it");
	assert_int_equal(newest_int("worker.lost", "node"), 1);
	end_nodes();
	/* the drain's word comes first, and the first node's */
	watch = begin_nodes();
	report(0, "'worker':{'name':'uploader','why':'that of node 0','at':5}");
	report(1, "'worker':{'name':'uploader','why':'that of node 1','at':5}");
	workers_record(watch, true);
	assert_string_equal(newest("worker.lost", "reason"), "that of node 0");
	end_nodes();
	watch = begin_nodes();
	report(0, "'worker':{'name':'uploader','why':'that of node 0','at':5}");
	drain("{'node':1,'worker':{'why':'it died'}}");
	workers_record(watch, true);
	assert_string_equal(newest("worker.lost", "reason"), "it died");
	end_nodes();
	/* none at all */
	watch = begin_nodes();
	said.away = true;
	workers_record(watch, true);
	assert_recorded(0);
	end_nodes();
}

/* ---- figures ---- */

static void figures(const char *first, const char *second, const char *words)
{
	struct attempt_watch *watch = begin_nodes();
	AUTO(auto_free) char *want = mem_format("all 2 nodes are fit%s", words);
	AUTO(auto_free)
	char *members = mem_format("'health':{'verdict':'healthy','began':1,'ended':2,'nodes':["
				   "{'node':0,'checks':[],'figures':%s},{'node':1,'checks':[],"
				   "'figures':%s}]}",
				   first, second);
	AUTO(err_freep) struct err *err = NULL;

	report(0, members);
	assert_int_equal(health_record(watch, &err), 0);
	assert_string_equal(newest("health.checked", "reason"), want);
	assert_int_equal(newest_int("health.checked", "since"), 1);
	assert_int_equal(newest_int("health.checked", "finished"), 2);
	assert_string_equal(newest("health.checked", "phase"), "train");
	end_nodes();
}

static void figures_that_differ_are_a_range(void **state)
{
	(void)state;
	figures("{'a':{'busbw':5}}", "{'a':{'busbw':3}}", "; a 3.0 to 5.0 GB/s");
	figures("{'a':{'busbw':3}}", "{'a':{'busbw':5}}", "; a 3.0 to 5.0 GB/s");
	figures("{'a':{'busbw':3}}", "{'a':{'busbw':3}}", "; a 3.0 GB/s");
	figures("{'a':{'busbw':0}}", "{'a':{'busbw':0.05}}", "; a 0.0 to 0.1 GB/s");
	figures("{'a':{'busbw':0}}", "{'a':{'busbw':0.04}}", "; a 0.0 GB/s");
	figures("{'a':{'busbw':2}}", "{}", "; a 2.0 GB/s");
	figures("{'a':{}}", "{'a':{'busbw':2}}", "; a 2.0 GB/s");
	figures("{'a':{},'b':{'busbw':1}}", "{}", "; b 1.0 GB/s");
	figures("{'across':{'busbw':1}}", "{}", "");
	figures("{}", "{'a':{'busbw':2}}", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drain_that_an_agent_asked_for_names_its_worker),
		cmocka_unit_test(workers_are_looked_for_every_second),
		cmocka_unit_test(at_the_end_the_reports_name_it_too),
		cmocka_unit_test(figures_that_differ_are_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
