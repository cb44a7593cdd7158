/* What a plan says to people: the remedy for new files in the graph key, what a command inherits
 * from its container, what is checked of a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/mem.h"
#include "jobs/run/plan/health.h"
#include "jobs/run/plan/plan.h"
#include "tests/unit/quoted.h"

/* ---- new files in the key ---- */

static char *hint_of(const char *source, const char *changed)
{
	json_auto_t *ingredients = json_object(), *rows = quoted_json(changed);

	json_object_set_new(ingredients, "source", quoted_json(source));
	return key_hint(ingredients, rows);
}

static void no_remedy_where_new_files_may_decide_about_graphs(void **state)
{
	static const char *const rows[] = {
		"[]",
		"[{'field':'hyperparameters.width','old':1,'new':2}]",
		"[{'field':'source:train.py','old':null,'new':'00'}]",
		"[{'field':'source:conf/a.YAML','old':null,'new':'00'}]",
		"[{'field':'source:requirements-dev.txt','old':null,'new':'00'}]",
		"[{'field':'source:vocab.txt','old':null,'new':'00'}]",
		"[{'field':'source:merges.txt','old':null,'new':'00'}]",
		"[{'field':'source:notes.txt','old':'11','new':'00'}]", /* it was there before */
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *hint = hint_of("{'train.py':'00'}", rows[i]);

		if (hint)
			fail_msg("'%s' for %s", hint, rows[i]);
	}
}

static void the_remedy_is_the_line_of_the_spec_that_keeps_new_files_out(void **state)
{
	static const struct {
		const char *source, *changed, *hint;
	} rows[] = {
		{ "{'train.py':'1','lib/a.py':'2','notes.txt':'3'}",
		  "[{'field':'source:notes.txt','old':null,'new':'3'}]",
		  "if no graph depends on notes.txt, keep it out of the key: "
		  "source: {include: [\"**/*.py\"]}" },
		/* Files without a suffix, and those that share it with a new one, by their names.
		 */
		{ "{'train.py':'1','Makefile':'2','vocab[1].txt':'2','notes.txt':'3'}",
		  "[{'field':'source:notes.txt','old':null,'new':'3'}]",
		  "if no graph depends on notes.txt, keep it out of the key: source: {include: "
		  "[\"**/*.py\",\"Makefile\",\"vocab\\\\[1].txt\"]}" },
		{ "{'train.py':'1','LICENSE':'2','a.png':'3'}",
		  "[{'field':'source:LICENSE','old':null,'new':'2'},"
		  "{'field':'source:a.png','old':null,'new':'3'}]",
		  "if no graph depends on LICENSE and 1 more new files, keep them out of the key: "
		  "source: {include: [\"**/*.py\"]}" },
		/* Nothing would be left. */
		{ "{'notes.txt':'3'}", "[{'field':'source:notes.txt','old':null,'new':'3'}]",
		  "if no graph depends on notes.txt, list the needed files in source.include, "
		  "to keep this file out of the key" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *hint = hint_of(rows[i].source, rows[i].changed);

		assert_non_null(hint);
		assert_string_equal(hint, rows[i].hint);
	}
}

static void a_remedy_that_would_be_too_long_is_put_in_words(void **state)
{
	AUTO(sb_release) struct sb source = SB_INIT;
	AUTO(auto_free) char *hint = NULL;

	(void)state;
	sb_adds(&source, "{'notes.txt':'3'");
	for (int i = 0; i < 17; i++)
		sb_addf(&source, ",'f.x%d':'1'", i);
	sb_adds(&source, "}");
	hint = hint_of(source.text, "[{'field':'source:notes.txt','old':null,'new':'3'}]");
	assert_string_equal(hint, "if no graph depends on notes.txt, list the needed files in "
				  "source.include, to keep this file out of the key");
}

/* ---- variables that a command inherits ---- */

static void a_command_inherits_from_its_container_all_but_what_is_ours(void **state)
{
	static const char *const without[] = {
		"{'engine':'local','compile':{'kind':'neuron'}}",
		"{'engine':'sagemaker','spec':{'sagemaker':{'launcher':'toolkit'}}}",
	};
	json_auto_t *compiles = quoted_json("{'engine':'batch','compile':{'kind':'neuron'}}");
	json_auto_t *plain = quoted_json("{'engine':'batch'}");
	json_auto_t *names = inherited_of_plan(compiles);
	AUTO(auto_free) char *words = inherited_words(compiles);
	AUTO(auto_free) char *few = inherited_words(plain);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(without); i++) {
		json_auto_t *plan = quoted_json(without[i]);

		assert_null(inherited_of_plan(plan));
		assert_null(inherited_words(plan));
	}
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(names, "left_out"), 0)),
		"STOKER_*");
	assert_non_null(strstr(words, "the container's own, less STOKER_*, "));
	assert_non_null(strstr(words, "NEURON_*, "));
	assert_non_null(strstr(words, " only if the spec or the image sets them"));
	assert_null(strstr(few, "only if"));
}

/* ---- the check-up ---- */

static void the_check_of_nodes_is_told_with_its_limits(void **state)
{
	static const struct {
		const char *plan, *words;
		int64_t ms;
	} rows[] = {
		{ "{'nodes':2}", NULL, 0 },
		{ "{'nodes':1,'health':{'device':false,'ops':['all_reduce','all_gather'],"
		  "'size':1048576,'timeout_ms':600000}}",
		  "disk, memory, clock; all_reduce, all_gather of 1.0 MiB on each node; within 10m "
		  "00s",
		  600000 },
		{ "{'nodes':2,'instance':{'devices':16},'health':{'device':true,"
		  "'ops':['all_reduce'],'size':1048576,'timeout_ms':60000}}",
		  "disk, memory, clock, devices (16), error counters, a tensor operation on each "
		  "core; all_reduce of 1.0 MiB on each node, an all_reduce between them; within 1m "
		  "00s",
		  ORDER_CLAIM_WAIT_MS + 120000 },
		{ "{'nodes':1,'health':{'device':true,'ops':[],'timeout_ms':60000}}",
		  "disk, memory, clock, devices, error counters, a tensor operation on each core; "
		  "within 1m 00s",
		  60000 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = quoted_json(rows[i].plan);
		AUTO(auto_free) char *words = health_plan_words(plan);

		assert_int_equal(health_plan_ms(plan), rows[i].ms);
		if (!rows[i].words)
			assert_null(words);
		else
			assert_string_equal(words, rows[i].words);
	}
}

static void only_a_training_is_checked_in_full(void **state)
{
	json_auto_t *plan =
		quoted_json("{'nodes':1,'instance':{'type':'trn1.32xlarge','devices':16},"
			    "'health':{'device':true,'ops':['all_reduce'],'size':1048576,"
			    "'timeout_ms':60000}}");
	json_auto_t *none = quoted_json("{'nodes':1}");

	(void)state;
	for (int train = 0; train < 2; train++) {
		struct order order = { 0 };

		health_order(&order, plan, train ? PHASE_TRAIN : PHASE_PRECOMPILE);
		assert_string_equal(order.instance, "trn1.32xlarge");
		assert_int_equal(order.devices, 16);
		assert_true(order.health.device);
		assert_int_equal(order.health.full, train);
		assert_int_equal(order.health.size, 1048576);
		assert_int_equal(json_array_size(order.health.ops), 1);
		order_release(&order);
	}
	{
		struct order order = { 0 };

		health_order(&order, none, PHASE_TRAIN);
		assert_null(order.instance);
		assert_int_equal(order.health.timeout_ms, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_remedy_where_new_files_may_decide_about_graphs),
		cmocka_unit_test(the_remedy_is_the_line_of_the_spec_that_keeps_new_files_out),
		cmocka_unit_test(a_remedy_that_would_be_too_long_is_put_in_words),
		cmocka_unit_test(a_command_inherits_from_its_container_all_but_what_is_ours),
		cmocka_unit_test(the_check_of_nodes_is_told_with_its_limits),
		cmocka_unit_test(only_a_training_is_checked_in_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
