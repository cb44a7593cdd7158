/*
 * Variables for want of which an attempt may have failed: those that its words name come first, and
 * a healthy word of capitals is none of them.
 */
#include "tests/unit/flow/classify.h"

struct told {
	char names[1024];
};

static void add(void *arg, const char *name, size_t len)
{
	struct told *told = arg;
	size_t end = strlen(told->names);

	assert_true(len > 0);
	snprintf(told->names + end, sizeof told->names - end, "%s%.*s", end > 0 ? " " : "",
		 (int)len, name);
}

static struct told variables_of(enum failure_class class, const char *evidence)
{
	struct failure_classification classification = { .class = class, .rule = "x" };
	struct told told = { "" };

	snprintf(classification.evidence, sizeof classification.evidence, "%s", evidence);
	failure_variables(&classification, add, &told);
	return told;
}

static void names_in_the_evidence_are_told(void **state)
{
	static const struct {
		const char *evidence, *names;
	} rows[] = {
		{ "KeyError: 'HF_TOKEN'", "HF_TOKEN" },
		{ "  x = os.environ['ABC']\nKeyError: 'lower_case'", "ABC lower_case" },
		{ "Environment variable MY_KEY is not set", "MY_KEY" },
		{ "ValueError: required: MY_KEY and OTHER_2, missing in .env", "MY_KEY OTHER_2" },
		{ "train.sh: line 3: DATA_HOME: unbound variable", "DATA_HOME" },
		{ "train.sh: line 3: DATA_HOME: parameter null or not set", "DATA_HOME" },
		{ "please set WANDB_API_KEY=key", "WANDB_API_KEY" },
		{ "AB is not set, nor xMY_KEY, MY_KEYx, 1ABC", "" },
		{ "MY_KEY is wrong", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(variables_of(CLASS_USER_CODE, rows[i].evidence).names,
				    rows[i].names);
}

static void a_service_has_its_own(void **state)
{
	struct told told;

	(void)state;
	told = variables_of(CLASS_QUOTA_PERMISSION,
			    "401 Client Error for url: https://huggingface.co");
	assert_string_equal(told.names, "HF_TOKEN HUGGING_FACE_HUB_TOKEN");
	told = variables_of(CLASS_TRANSIENT_INFRA, "Could not resolve host: huggingface.co");
	assert_non_null(strstr(told.names, "HF_HUB_OFFLINE"));
	assert_null(strstr(told.names, "HF_TOKEN"));
	told = variables_of(CLASS_QUOTA_PERMISSION, "HTTP Error 403: Forbidden");
	assert_string_equal(told.names, "HF_TOKEN HUGGING_FACE_HUB_TOKEN WANDB_API_KEY");
	assert_string_equal(variables_of(CLASS_USER_CODE, "code 403").names, "");
	assert_string_equal(variables_of(CLASS_UNKNOWN, "KeyError: 'A'\nhuggingface.co: 401").names,
			    "A");
}

static void other_failures_want_nothing(void **state)
{
	static const enum failure_class classes[] = { CLASS_NONE,         CLASS_SPOT,
						      CLASS_CAPACITY,     CLASS_COMM,
						      CLASS_COMPILE,      CLASS_STOPPED,
						      CLASS_HARDWARE_NODE };

	(void)state;
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		assert_string_equal(variables_of(classes[i], "KeyError: 'HF_TOKEN'").names, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_in_the_evidence_are_told),
		cmocka_unit_test(a_service_has_its_own),
		cmocka_unit_test(other_failures_want_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
