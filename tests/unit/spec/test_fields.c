/* The field table itself: complete, in order, and true to its own parser. */
#include "tests/unit/spec/spec_fixture.h"

#include "jobs/base/sb.h"
#include "jobs/spec/lint/habits.h"
#include "jobs/spec/resolved.h"

/* A text through all checks of its row, as the user's would go. */
static void assert_parses(field_id id, const char *text)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(bind_release) struct binder binder = { 0 };
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	struct spec spec = { 0 };
	struct path path = { NULL, field_table[id].path, 0 };
	struct node *node;
	json_auto_t *value = NULL;

	binder.spec = &spec;
	binder.reporter = (struct reporter){ "table", &problems };
	node = bind_text(arena, &binder.reporter, id, text, NULL);
	assert_non_null(node);
	if (node->kind == NODE_SCALAR)
		value = value_convert(&binder, field_table[id].single ? field_item(id) : id, node,
				      &path);
	for (size_t i = 0; field_table[id].type == FIELD_LIST && i < node->count; i++) {
		struct node *item = node->entries[i].value;
		json_auto_t *one = NULL;

		if (item->kind == NODE_SCALAR) {
			one = value_convert(&binder, field_item(id), item, &path);
			assert_non_null(one);
		}
	}
	if (problems.count > 0)
		fail_msg("%s: '%s': %s", field_table[id].path, text, problems.list[0].message);
	assert_true(value || node->kind == NODE_LIST || field_table[id].type == FIELD_OVERLAY);
}

static void paths_are_unique_and_members_follow_their_section(void **state)
{
	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		field_id parent = field_parent(id);

		assert_int_equal(field_find(field_table[id].path), id);
		if (!strpbrk(field_table[id].path, ".[")) {
			assert_int_equal(parent, FIELD_NONE);
			continue;
		}
		assert_true(parent >= 0 && parent < id);
		for (field_id between = parent; between <= id; between++)
			assert_true(strncmp(field_table[between].path, field_table[parent].path,
					    strlen(field_table[parent].path)) == 0);
	}
}

static void lists_and_free_maps_have_their_item_row_next(void **state)
{
	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const char *suffix = field_table[id].type == FIELD_LIST   ? "[]"
				     : field_table[id].type == FIELD_FREE ? ".*"
									  : NULL;
		AUTO(auto_free) char *item = NULL;

		if (!suffix)
			continue;
		item = mem_format("%s%s", field_table[id].path, suffix);
		assert_string_equal(field_table[field_item(id)].path, item);
	}
}

static void every_field_has_help_and_every_value_an_example(void **state)
{
	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const struct field *row = &field_table[id];

		assert_non_null(row->help);
		assert_true(strlen(row->help) >= 4 && strlen(row->help) <= 100);
		assert_null(strchr(row->help, '\n'));
		if (row->type == FIELD_SECTION || row->type == FIELD_FREE)
			assert_null(row->example);
		else
			assert_non_null(row->example);
	}
}

static void defaults_and_examples_parse_and_lie_in_range(void **state)
{
	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		json_auto_t *fallback = bind_default(id);

		if (field_table[id].example)
			assert_parses(id, field_table[id].example);
		if (!field_table[id].fallback)
			continue;
		assert_parses(id, field_table[id].fallback);
		assert_non_null(fallback);
	}
}

static void columns_fit_their_types(void **state)
{
	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const struct field *row = &field_table[id];

		assert_true(row->min <= row->max);
		assert_true(row->type != FIELD_CHOICE || row->words);
		assert_true(row->type != FIELD_FREE || row->key_shape != SHAPE_NONE);
		assert_true(!row->required || !row->fallback);
		assert_true(row->shape == SHAPE_NONE || row->type == FIELD_STRING);
		assert_true(row->min_items == 0 || row->type == FIELD_LIST);
		for (const char *word = row->ready_words; word && *word;) {
			AUTO(auto_free) char *one = mem_copy_n(word, strcspn(word, " "));

			assert_true(field_word_in(row->words, one) || row->type == FIELD_BOOL);
			word += strlen(one);
			word += *word == ' ';
		}
	}
}

static void patterns_compile_and_take_whole_texts_only(void **state)
{
	AUTO(bind_release) struct binder binder = { 0 };

	(void)state;
	for (int shape = 0; shape < SHAPE_COUNT; shape++) {
		value_has_shape(&binder, (enum field_shape)shape, "x");
		assert_true(shape == SHAPE_NONE || field_shape_rows[shape].what);
	}
	assert_true(value_has_shape(&binder, SHAPE_NAME, "a"));
	assert_false(value_has_shape(&binder, SHAPE_NAME, "a\n"));
	assert_false(value_has_shape(&binder, SHAPE_NAME, "-a"));
	assert_true(value_has_shape(&binder, SHAPE_CRON, "*/5 0-6,12 1 JAN-MAR SUN"));
	assert_false(value_has_shape(&binder, SHAPE_CRON, "0 24 * * *"));
	assert_false(value_has_shape(&binder, SHAPE_CRON, "0 3 32 * *"));
	assert_true(value_has_shape(&binder, SHAPE_RELATIVE, "a..b/c"));
	assert_false(value_has_shape(&binder, SHAPE_RELATIVE, "a/.."));
	assert_true(value_has_shape(&binder, SHAPE_LOCATION, "s3://bucket"));
	assert_false(value_has_shape(&binder, SHAPE_LOCATION, "s3:/bucket://x"));
}

static void indexed_and_free_names_are_found(void **state)
{
	(void)state;
	assert_int_equal(field_find("metrics[3].regex"), SPEC_METRICS_REGEX);
	assert_int_equal(field_find("env.HOME"), SPEC_ENV_ANY);
	assert_int_equal(field_find("hyperparameters.a.b"), SPEC_HYPERPARAMETERS_ANY);
	assert_int_equal(field_find("compile.overrides.env.X"), SPEC_COMPILE_OVERRIDES_ENV_ANY);
	assert_int_equal(field_find("retry.nothing"), FIELD_NONE);
	assert_int_equal(field_find("name.x"), FIELD_NONE);
	assert_int_equal(field_find("metrics.regex"), FIELD_NONE);
	assert_int_equal(field_find("nothing"), FIELD_NONE);
}

static void a_mistyped_path_finds_the_nearest(void **state)
{
	(void)state;
	assert_string_equal(spec_field_nearest("resource.node"), "resources.nodes");
	assert_string_equal(spec_field_nearest("atempts"), "retry.attempts");
	assert_null(spec_field_nearest("qqqqqqqqqqqqq"));
}

/* Walks properties of the schema along a row's path. */
static const json_t *schema_of_row(const json_t *schema, const char *path)
{
	while (schema && *path) {
		size_t len = strcspn(path, ".[");
		AUTO(auto_free) char *name = mem_copy_n(path, len);

		if (strncmp(path, "[]", 2) == 0) {
			const json_t *ways = json_object_get(schema, "anyOf");

			/* A list that may be a single item begins with the list. */
			schema = ways ? json_array_get(ways, 0) : schema;
			schema = json_object_get(schema, "items");
			len = 2;
		} else if (strcmp(path, "*") == 0) {
			schema = json_object_get(schema, "additionalProperties");
		} else {
			schema = json_object_get(json_object_get(schema, "properties"), name);
		}
		path += len + (path[len] == '.');
	}
	return schema;
}

static void the_schema_has_every_field(void **state)
{
	json_auto_t *schema = spec_schema();

	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const json_t *row = schema_of_row(schema, field_table[id].path);

		if (!row)
			fail_msg("%s is not in the schema", field_table[id].path);
		assert_string_equal(json_string_value(json_object_get(row, "description")),
				    field_table[id].help);
	}
	assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
}

static void a_habit_leads_to_a_field_and_hides_none(void **state)
{
	AUTO(sb_release) struct sb seen = SB_INIT;

	(void)state;
	for (size_t i = 0; i < habit_count; i++) {
		const struct habit *habit = &habits[i];
		AUTO(auto_free) char *names = mem_copy(habit->names);
		char *rest = NULL;

		assert_true(habit->meant || habit->how);
		if (habit->meant && strncmp(habit->meant, "hyperparameters.", 16) != 0 &&
		    field_find(habit->meant) == FIELD_NONE)
			fail_msg("%s: there is no %s", habit->names, habit->meant);
		for (char *name = strtok_r(names, " ", &rest); name;
		     name = strtok_r(NULL, " ", &rest)) {
			if (field_child(FIELD_NONE, name) != FIELD_NONE)
				fail_msg("%s is a field itself", name);
			if (field_word_in(seen.text, name))
				fail_msg("%s is there twice", name);
			sb_addf(&seen, "%s ", name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_habit_leads_to_a_field_and_hides_none),
		cmocka_unit_test(paths_are_unique_and_members_follow_their_section),
		cmocka_unit_test(lists_and_free_maps_have_their_item_row_next),
		cmocka_unit_test(every_field_has_help_and_every_value_an_example),
		cmocka_unit_test(defaults_and_examples_parse_and_lie_in_range),
		cmocka_unit_test(columns_fit_their_types),
		cmocka_unit_test(patterns_compile_and_take_whole_texts_only),
		cmocka_unit_test(indexed_and_free_names_are_found),
		cmocka_unit_test(a_mistyped_path_finds_the_nearest),
		cmocka_unit_test(the_schema_has_every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
