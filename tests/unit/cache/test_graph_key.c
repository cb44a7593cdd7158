/* The graph key: stable, blind to order, never a carrier of secrets; and the
 * words for what changed. */
#include "tests/unit/cache/support.h"

#include "jobs/cache/graphs/graph_key.h"

static json_t *json(const char *text)
{
	struct err *err = NULL;
	json_t *value = NULL;

	js_parse(text, strlen(text), "test", &value, &err);
	assert_no_error(err);
	return value;
}

static void key_of(const char *text, char hex[SHA256_HEX])
{
	json_auto_t *value = json(text);

	graph_key_of(value, hex);
}

static void assert_diff(const char *before, const char *after, const char *expected)
{
	json_auto_t *old_value = json(before), *new_value = json(after);
	json_auto_t *diff = graph_key_ingredients_diff(old_value, new_value);
	AUTO(auto_free) char *line = js_line(diff);

	assert_string_equal(line, expected);
}

static void equal_ingredients_give_one_key_in_any_order(void **state)
{
	char a[SHA256_HEX], b[SHA256_HEX], c[SHA256_HEX];

	(void)state;
	key_of("{\"command\":[\"python\",\"t.py\"],\"env\":{\"A\":\"1\",\"B\":\"2\"}}", a);
	key_of("{\"env\":{\"B\":\"2\",\"A\":\"1\"}, \"command\":[\"python\",\"t.py\"]}", b);
	key_of("{\"command\":[\"t.py\",\"python\"],\"env\":{\"A\":\"1\",\"B\":\"2\"}}", c);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
	assert_int_equal(strlen(a), 64);
}

static void a_number_and_its_text_are_different_ingredients(void **state)
{
	char a[SHA256_HEX], b[SHA256_HEX];

	(void)state;
	key_of("{\"hyperparameters\":{\"batch_size\":32}}", a);
	key_of("{\"hyperparameters\":{\"batch_size\":\"32\"}}", b);
	assert_string_not_equal(a, b);
}

static void changes_are_named_with_old_value_and_new(void **state)
{
	(void)state;
	assert_diff("{\"hyperparameters\":{\"batch_size\":32,\"seq_len\":512},\"world_size\":4,"
		    "\"source\":{\"train.py\":\"aa\",\"a/b.py\":\"bb\",\"gone.py\":\"cc\"}}",
		    "{\"hyperparameters\":{\"batch_size\":64,\"seq_len\":512},\"world_size\":4,"
		    "\"source\":{\"train.py\":\"dd\",\"a/b.py\":\"bb\"},\"kind\":\"jax\"}",
		    "[{\"field\":\"hyperparameters.batch_size\",\"old\":32,\"new\":64},"
		    "{\"field\":\"kind\",\"old\":null,\"new\":\"jax\"},"
		    "{\"field\":\"source:gone.py\",\"old\":\"cc\",\"new\":null},"
		    "{\"field\":\"source:train.py\",\"old\":\"aa\",\"new\":\"dd\"}]");
	assert_diff("{\"a\":{\"b\":[1,2]}}", "{\"a\":{\"b\":[1,2]}}", "[]");
	assert_diff("{}", "{}", "[]");
	assert_diff("{\"env\":{}}", "{\"env\":{\"A\":\"1\"}}",
		    "[{\"field\":\"env\",\"old\":{},\"new\":null},"
		    "{\"field\":\"env.A\",\"old\":null,\"new\":\"1\"}]");
}

static bool is_hidden(const char *name)
{
	json_auto_t *value = json_pack("{s:s}", name, "hunter2");

	graph_key_ingredients_hide_secrets(value);
	return !js_is(value, name, "hunter2");
}

static void names_of_secrets_are_known_and_words_in_them_are_not(void **state)
{
	static const char *const secret[] = { "HF_TOKEN",  "token",         "DB_PASSWORD",
					      "api-key",   "WANDB_API_KEY", "aws.secret_access_key",
					      "secret",    "AUTH",          "webhook",
					      "PGPASSWORD" };
	static const char *const open[] = { "max_tokens", "tokenizer", "key",
					    "n_keys",     "author",    "monkey",
					    "batch_size", "keyboard",  "secretary" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(secret); i++)
		if (!is_hidden(secret[i]))
			fail_msg("'%s' was not taken for a secret", secret[i]);
	for (size_t i = 0; i < STK_LENGTH(open); i++)
		if (is_hidden(open[i]))
			fail_msg("'%s' was taken for a secret", open[i]);
}

static void secrets_are_hidden_wherever_they_stand(void **state)
{
	json_auto_t *value =
		json("{\"env\":{\"HF_TOKEN\":\"hunter2\",\"A\":\"b\"},"
		     "\"command\":[\"t.py\",\"--api-key\",\"hunter2\",\"--lr\",\"1\",\"--password="
		     "hunter2\"],"
		     "\"x\":{\"credentials\":{\"deep\":[\"hunter2\"]}},"
		     "\"notify\":[{\"webhook\":\"hunter2\"}],"
		     "\"source\":{\"token.py\":\"aa\"},\"hyperparameters\":{\"token\":7}}");
	AUTO(auto_free) char *once = NULL;
	AUTO(auto_free) char *twice = NULL;

	(void)state;
	graph_key_ingredients_hide_secrets(value);
	once = js_line(value);
	assert_null(strstr(once, "hunter2"));
	assert_contains(once, "\"A\":\"b\"");
	assert_contains(once, "\"--lr\",\"1\"");
	assert_contains(once, "\"token.py\":\"aa\"");
	assert_contains(once, "\"token\":7");
	assert_contains(once, "--password=sha256:");
	graph_key_ingredients_hide_secrets(value);
	twice = js_line(value);
	assert_string_equal(once, twice);
}

static void a_changed_secret_changes_the_key_and_shows_as_hashes(void **state)
{
	json_auto_t *before = json("{\"env\":{\"HF_TOKEN\":\"one\"}}");
	json_auto_t *after = json("{\"env\":{\"HF_TOKEN\":\"two\"}}");
	json_auto_t *hidden = json_deep_copy(before);
	json_auto_t *diff = graph_key_ingredients_diff(before, after);
	json_t *row = json_array_get(diff, 0);
	char a[SHA256_HEX], b[SHA256_HEX], c[SHA256_HEX];

	(void)state;
	graph_key_ingredients_hide_secrets(hidden);
	graph_key_of(before, a);
	graph_key_of(after, b);
	graph_key_of(hidden, c);
	assert_string_not_equal(a, b);
	assert_string_equal(a, c);
	assert_int_equal(json_array_size(diff), 1);
	assert_string_equal(js_str(row, "field"), "env.HF_TOKEN");
	assert_int_equal(strncmp(js_str(row, "old"), "sha256:", 7), 0);
	assert_string_not_equal(js_str(row, "old"), js_str(row, "new"));
	assert_string_equal(js_str(json_object_get(before, "env"), "HF_TOKEN"), "one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_ingredients_give_one_key_in_any_order),
		cmocka_unit_test(a_number_and_its_text_are_different_ingredients),
		cmocka_unit_test(changes_are_named_with_old_value_and_new),
		cmocka_unit_test(names_of_secrets_are_known_and_words_in_them_are_not),
		cmocka_unit_test(secrets_are_hidden_wherever_they_stand),
		cmocka_unit_test(a_changed_secret_changes_the_key_and_shows_as_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
