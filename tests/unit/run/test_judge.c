/* The gate over a run in words and JSON: which numbers, which limit, which hold-out. */
#include "jobs/run/judge.h"

#include <stdlib.h>

#include "jobs/base/fs/fs.h"
#include "tests/unit/quoted.h"

struct case_of {
	json_t *plan, *gates;
	struct judge *judge;
	char *reason;
	bool passed;
};

static struct case_of begin(const char *plan, bool has_baseline)
{
	struct case_of c = { .plan = quoted_json(plan) };

	judge_open(c.plan, has_baseline, &c.judge);
	return c;
}

static void tell(struct case_of *c, const char *role, int64_t repeat, const char *metrics)
{
	json_auto_t *values = quoted_json(metrics);

	judge_measure(c->judge, role, repeat, values);
}

static void end(struct case_of *c)
{
	judge_verdict(c->judge, &c->passed, &c->gates, &c->reason);
}

static void release(struct case_of *c)
{
	judge_freep(&c->judge);
	json_decref(c->plan);
	json_decref(c->gates);
	free(c->reason);
}

static const json_t *of(const struct case_of *c, size_t entry, const char *member)
{
	return json_object_get(json_array_get(c->gates, entry), member);
}

#define DROP                                                                                       \
	"{'evaluate':{'repeat':1,'data':'s3://b/holdout'},'gate':["                                \
	"{'metric':'accuracy','direction':'max','against':'promoted','max_drop':'0.1%',"           \
	"'confidence':'95%'},{'metric':'loss','at_most':2.5}]}"

static void a_no_tells_metric_values_limit_and_hold_out(void **state)
{
	struct case_of c = begin(DROP, true);

	(void)state;
	tell(&c, "candidate", 1, "{'accuracy':0.31,'loss':2.5,'other':7}");
	tell(&c, "baseline", 1, "{'accuracy':0.9583,'loss':9}");
	end(&c);
	assert_false(c.passed);
	assert_int_equal(json_array_size(c.gates), 2);
	assert_string_equal(c.reason,
			    "accuracy is 0.31, the baseline's 0.9583; it must be at least "
			    "0.9573417 (max_drop 0.1%); hold-out: s3://b/holdout");
	assert_string_equal(json_string_value(of(&c, 0, "verdict")), "beyond");
	assert_string_equal(json_string_value(of(&c, 0, "limit")), "max_drop 0.1%");
	assert_string_equal(json_string_value(of(&c, 0, "against")), "promoted");
	assert_string_equal(json_string_value(of(&c, 0, "hold_out")), "s3://b/holdout");
	assert_true(json_number_value(of(&c, 0, "candidate")) == 0.31);
	assert_true(json_number_value(of(&c, 0, "baseline")) == 0.9583);
	assert_true(json_is_false(of(&c, 0, "passed")));
	/* The other entry is judged too, without a baseline. */
	assert_true(json_is_true(of(&c, 1, "passed")));
	assert_string_equal(json_string_value(of(&c, 1, "reason")),
			    "loss is 2.5; it must be at most 2.5");
	assert_null(of(&c, 1, "baseline"));
	assert_true(json_number_value(of(&c, 1, "bound")) == 2.5);
	release(&c);
}

static void a_yes_tells_all_entries(void **state)
{
	struct case_of c = begin(DROP, true);

	(void)state;
	tell(&c, "candidate", 1, "{'accuracy':0.9573417,'loss':1}");
	tell(&c, "baseline", 1, "{'accuracy':0.9583}");
	end(&c);
	assert_true(c.passed);
	assert_string_equal(c.reason, "accuracy is 0.9573417, the baseline's 0.9583; it must be at "
				      "least 0.9573417 (max_drop 0.1%); loss is 1; it must be at "
				      "most 2.5; hold-out: s3://b/holdout");
	release(&c);
}

static void numbers_that_json_cannot_hold_are_read(void **state)
{
	static const char *const values[] = { "'nan'", "'inf'", "'-inf'", "null",  "'0.99'",
					      "true",  "[1]",   "{}",     "'NaN'", "''" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(values); i++) {
		AUTO(auto_free)
		char *metrics = mem_format("{'accuracy':%s,'loss':1}", values[i]);
		struct case_of c = begin(DROP, true);

		tell(&c, "candidate", 1, metrics);
		tell(&c, "baseline", 1, "{'accuracy':0.9583}");
		end(&c);
		assert_false(c.passed);
		assert_string_equal(json_string_value(of(&c, 0, "verdict")), "not_finite");
		assert_non_null(strstr(c.reason, "which is no number"));
		release(&c);
	}
}

static void what_is_no_number_is_told_without_a_baseline_that_is_not_there(void **state)
{
	struct case_of c = begin(DROP, false);

	(void)state;
	tell(&c, "candidate", 1, "{'accuracy':'nan','loss':1}");
	end(&c);
	assert_false(c.passed);
	assert_string_equal(c.reason, "accuracy is nan, which is no number to judge by (max_drop "
				      "0.1%); hold-out: s3://b/holdout");
	release(&c);
}

static void what_is_missing_is_counted(void **state)
{
	struct case_of c = begin(DROP, true);

	(void)state;
	tell(&c, "candidate", 1, "{'accuracy':0.99}");
	tell(&c, "candidate", 2, "{'loss':1}");
	end(&c);
	assert_false(c.passed);
	assert_string_equal(c.reason,
			    "accuracy: 1 of 2 values are missing (max_drop 0.1%); loss: 1 of 1 "
			    "value is missing; hold-out: s3://b/holdout");
	assert_int_equal(json_integer_value(of(&c, 0, "missing")), 1);
	assert_null(of(&c, 0, "candidate"));
	assert_null(of(&c, 0, "drop"));
	release(&c);
}

static void the_first_model_has_nothing_to_drop_from(void **state)
{
	struct case_of c = begin(DROP, false);

	(void)state;
	tell(&c, "candidate", 1, "{'accuracy':0.31,'loss':1}");
	end(&c);
	assert_true(c.passed);
	assert_string_equal(json_string_value(of(&c, 0, "verdict")), "no_baseline");
	assert_string_equal(json_string_value(of(&c, 0, "reason")),
			    "accuracy is 0.31; there is no baseline to compare with (max_drop "
			    "0.1%)");
	release(&c);
}

static void repeats_have_an_upper_end(void **state)
{
	struct case_of c = begin("{'evaluate':{'repeat':2},'gate':[{'metric':'m','direction':'min',"
				 "'against':'promoted','max_drop':'0.5','confidence':'95%'}]}",
				 true);

	(void)state;
	tell(&c, "candidate", 1, "{'m':1.2}");
	tell(&c, "baseline", 1, "{'m':1}");
	tell(&c, "candidate", 2, "{'m':1.4}");
	tell(&c, "baseline", 2, "{'m':1}");
	end(&c);
	/* t is 6.3137515 for one degree: 0.3 + 6.3137515 * 0.1 */
	assert_false(c.passed);
	assert_true(json_number_value(of(&c, 0, "drop")) > 0.2999 &&
		    json_number_value(of(&c, 0, "drop")) < 0.3001);
	assert_true(json_number_value(of(&c, 0, "upper")) > 0.9313 &&
		    json_number_value(of(&c, 0, "upper")) < 0.9314);
	assert_string_equal(c.reason, "m is 1.3 on average of 2, the baseline's 1; with 95% "
				      "confidence it is at most 1.93137515147; it must be at most "
				      "1.5 (max_drop 0.5)");
	release(&c);
}

static void a_gate_without_entries_says_so(void **state)
{
	struct case_of c = begin("{'gate':[]}", true);

	(void)state;
	end(&c);
	assert_false(c.passed);
	assert_string_equal(c.reason, "the plan has no gate");
	release(&c);
}

static void a_run_that_is_not_there_is_a_no(void **state)
{
	char dir[] = "/tmp/stoker-judge-XXXXXX";
	struct case_of c = begin("{'gate':[{'metric':'loss','against':'run:gpu-7','max_gap':'1%'},"
				 "{'metric':'f1','at_least':1}]}",
				 true);
	AUTO(err_freep) struct err *err = NULL;
	struct journal *journal = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &journal, &err), 0);
	assert_int_equal(judge_compare(c.judge, journal, "gpu-7", &err), 0);
	tell(&c, "candidate", 1, "{'f1':1}");
	end(&c);
	assert_false(c.passed);
	assert_string_equal(json_string_value(of(&c, 0, "verdict")), "missing");
	assert_non_null(strstr(c.reason, "loss against run gpu-7: "));
	assert_null(of(&c, 0, "gap"));
	assert_true(json_is_true(of(&c, 1, "passed")));
	journal_freep(&journal);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
	release(&c);
}

static void a_plan_tells_what_may_fall(void **state)
{
	json_auto_t *plan = quoted_json(
		"{'gate':[{'metric':'accuracy','max_drop':'0.1%'},{'metric':'loss','direction':"
		"'min','max_drop':'0.01'},{'metric':'f1','at_least':0.9},{'metric':'loss',"
		"'against':'run:gpu-7','max_gap':'1%'},{'metric':'zero','max_drop':'1%'}]}");
	json_auto_t *known = quoted_json("{'accuracy':0.9583,'loss':2.5,'zero':0}");
	json_auto_t *none = quoted_json(
		"['accuracy may fall by 0.1% of the baseline`s value','loss may rise by 0.01 from "
		"the baseline`s value','f1 must be at least 0.9','loss must stay within less than "
		"1% of run gpu-7 at every step','zero may fall by 1% of the baseline`s value']");
	json_auto_t *some = quoted_json(
		"['accuracy may fall from 0.9583 to 0.95734','loss may rise from 2.5 to 2.51','f1 "
		"must be at least 0.9','loss must stay within less than 1% of run gpu-7 at every "
		"step','zero may fall by 1% of the baseline`s value']");
	json_t *wants[] = { none, some }, *line;
	size_t i;

	(void)state;
	for (int told = 0; told < 2; told++) {
		json_auto_t *lines = judge_outlook(plan, told ? known : NULL);

		assert_int_equal(json_array_size(lines), json_array_size(wants[told]));
		json_array_foreach (lines, i, line) {
			AUTO(auto_free)
			char *want = mem_copy(json_string_value(json_array_get(wants[told], i)));

			for (char *c = want; *c; c++)
				if (*c == '`')
					*c = '\'';
			assert_string_equal(json_string_value(line), want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_no_tells_metric_values_limit_and_hold_out),
		cmocka_unit_test(a_yes_tells_all_entries),
		cmocka_unit_test(numbers_that_json_cannot_hold_are_read),
		cmocka_unit_test(what_is_no_number_is_told_without_a_baseline_that_is_not_there),
		cmocka_unit_test(what_is_missing_is_counted),
		cmocka_unit_test(the_first_model_has_nothing_to_drop_from),
		cmocka_unit_test(repeats_have_an_upper_end),
		cmocka_unit_test(a_gate_without_entries_says_so),
		cmocka_unit_test(a_run_that_is_not_there_is_a_no),
		cmocka_unit_test(a_plan_tells_what_may_fall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
