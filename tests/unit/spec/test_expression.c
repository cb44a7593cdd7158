/* The words of an expression: what is a name, and where it stands. */
#include "spec_fixture.h"

#include "jobs/base/sb.h"
#include "jobs/spec/derive/expression.h"
#include "jobs/spec/derive/known.h"

/* "name@place $variable@place …" of an expression. */
static void words_are(const char *text, const char *expected)
{
	struct expression expression = { .text = text };
	AUTO(sb_release) struct sb words = SB_INIT;

	for (;;) {
		struct expression_word word = expression_next(&expression);

		if (word.kind == EXPRESSION_END)
			break;
		if (word.kind == EXPRESSION_TOO_DEEP) {
			sb_addf(&words, " too deep@%zu", word.at);
			break;
		}
		sb_addf(&words, " %s%.*s@%zu", word.kind == EXPRESSION_VARIABLE ? "$" : "",
			(int)word.len, word.text, word.at);
	}
	assert_string_equal(words.len > 0 ? words.text + 1 : "", expected);
}

static void test_names(void **state)
{
	(void)state;
	words_are("5e-5/32*$global_batch", "$global_batch@8");
	words_are("1env+2e5*.5e3e", "env@1 e@13");
	words_are("..env|.env|. env|.[\"env\"]|.\"env\"", "env@2 env@13");
	words_are("$ env + $\n# now\n x", "$env@0 $x@8");
	words_are("# env\nnow", "now@6");
	words_are("@sh \"x\" | @json", "");
	words_are("a::b", "a@0 b@3");
}

static void test_keys(void **state)
{
	(void)state;
	words_are("{env: 1, now : $x, (input): 2, debug}", "$x@15 input@20 debug@31");
	words_are("{a: [1, env]}|.[0,env:3]", "env@8 env@18");
	words_are("{env::x}", "env@1 x@6");
	words_are("def env: 1; env", "def@0 env@4 env@12");
}

static void test_strings(void **state)
{
	(void)state;
	words_are("\"env \\\" now\" | input", "input@15");
	words_are("\"a\\(env)b\\(\"c\\(now)\") $x\" + debug", "env@4 now@15 debug@28");
	words_are("\"never \\(ended", "ended@9");
	words_are("\"ends \\", "");
	words_are("\"\\((1)+(now))\"", "now@8");
}

static void test_depth(void **state)
{
	char text[2 * EXPRESSION_DEPTH + 10];

	(void)state;
	memset(text, '[', EXPRESSION_DEPTH);
	strcpy(text + EXPRESSION_DEPTH, "now");
	words_are(text, "now@256");
	memset(text, '[', EXPRESSION_DEPTH + 1);
	strcpy(text + EXPRESSION_DEPTH + 1, "now");
	words_are(text, "too deep@256");
	words_are("]})now", "now@3");
}

static void test_refusals(void **state)
{
	static const char *const refused[] = {
		"env",
		"$ENV",
		"input",
		"inputs",
		"input_filename",
		"input_line_number",
		"now",
		"localtime",
		"strflocaltime",
		"debug",
		"stderr",
		"halt",
		"import",
		"halt_error",
		"include",
		"modulemeta",
		"get_search_list",
		"$__prog_args",
	};
	static const char *const taken[] = {
		"$env", "ENV", "$now", "inputx", "nown", "floor", "$x"
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(refused) + STK_LENGTH(taken); i++) {
		bool bad = i < STK_LENGTH(refused);
		const char *text = bad ? refused[i] : taken[i - STK_LENGTH(refused)];
		struct expression expression = { .text = text };
		struct expression_word word = expression_next(&expression);

		assert_true((expression_refusal(&word) != NULL) == bad);
	}
}

/* ---- values that are known ---- */

static void is_known(const char *text, const char *name, const char *expected)
{
	AUTO(auto_free) char *whole = mem_format("version: 1\nname: x\n%s", text);
	AUTO(spec_freep) struct spec *spec = good_spec(whole, NULL);
	AUTO(auto_free) char *why = NULL;
	AUTO(auto_free) char *hint = NULL;
	json_auto_t *value = known_value(spec, name, &why, &hint);
	AUTO(auto_free) char *line = value ? js_line(value) : NULL;

	assert_string_equal(why ? why : line ? line : "none", expected);
	assert_true((why != NULL) == (hint != NULL));
}

#define PLAIN "command: [python3, t.py]\n"

static void test_machines(void **state)
{
	static const char torchrun[] = "command: [torchrun, --nproc_per_node=8, t.py]\n"
				       "resources: {nodes: 4}\n";

	(void)state;
	is_known(PLAIN, "nodes", "1");
	is_known(PLAIN "resources: {nodes: 3}\n", "world_size", "3");
	is_known(PLAIN, "processes_per_node", "1");
	is_known(torchrun, "processes_per_node", "8");
	is_known(torchrun, "world_size", "32");
	is_known("command: [torchrun, --nproc_per_node=gpu, t.py]\n", "world_size",
		 "only the job will know how many workers the launcher starts on a node (as "
		 "--nproc_per_node says: gpu)");
}

static void test_global_batch(void **state)
{
	static const char torchrun[] = "command: [torchrun, --nproc_per_node=8, t.py]\n"
				       "resources: {nodes: 4}\nhyperparameters: ";
	static const struct {
		const char *hyperparameters, *expected;
	} rows[] = {
		{ "{batch_size: 16}", "512" },
		{ "{per_device_train_batch_size: 2, batch_size: 16}", "64" },
		{ "{batch_size: 16, gradient_accumulation_steps: 3}", "1536" },
		{ "{lr: 1}",
		  "the hyperparameters have neither batch_size nor per_device_train_batch_size" },
		{ "{batch_size: 1.5}", "hyperparameters.batch_size is no number of samples" },
		{ "{batch_size: 0}", "hyperparameters.batch_size is no number of samples" },
		{ "{batch_size: '8'}", "hyperparameters.batch_size is no number of samples" },
		{ "{batch_size: 9223372036854775807}", "it is too large" },
		{ "{batch_size: 8, tensor_model_parallel_size: 1}", "256" },
		{ "{batch_size: 8, tensor_model_parallel_size: 2}",
		  "by hyperparameters.tensor_model_parallel_size several processes share a batch" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *text = mem_format("%s%s\n", torchrun, rows[i].hyperparameters);

		is_known(text, "global_batch", rows[i].expected);
	}
	is_known(PLAIN "samples_per_step: 77\n", "global_batch", "77");
	is_known("command: [torchrun, --nproc_per_node=gpu, t.py]\nhyperparameters: {batch_size: "
		 "1}\n",
		 "global_batch",
		 "only the job will know how many workers the launcher starts on a node (as "
		 "--nproc_per_node says: gpu)");
}

static void test_hyperparameters(void **state)
{
	(void)state;
	is_known(PLAIN "hyperparameters: {a: [1, x]}\n", "a", "[1,\"x\"]");
	is_known(PLAIN "hyperparameters: {nodes: 7}\n", "nodes", "1");
	is_known(PLAIN, "a", "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),        cmocka_unit_test(test_keys),
		cmocka_unit_test(test_strings),      cmocka_unit_test(test_depth),
		cmocka_unit_test(test_refusals),     cmocka_unit_test(test_machines),
		cmocka_unit_test(test_global_batch), cmocka_unit_test(test_hyperparameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
