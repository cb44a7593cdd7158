/*
 * What this version cannot do yet is refused by name, field by field from the
 * table; what it can do, and what a default says, is not.
 */
#include "tests/unit/spec/spec_fixture.h"

#include "jobs/spec/fields/field.h"

/* Returns how often `field` is refused; *ret_all counts all refusals. */
static size_t refusals(const char *text, char *const *sets, const char *field, size_t *ret_all)
{
	AUTO(spec_freep) struct spec *spec = good_spec(text, sets);
	AUTO(problems_release) struct problems problems = { 0 };
	size_t found = 0;

	*ret_all = spec_not_yet(spec, &problems);
	assert_int_equal(*ret_all, problems.count);
	for (size_t i = 0; i < problems.count; i++) {
		assert_non_null(problems.list[i].hint);
		assert_false(problems.list[i].lint);
		found += strcmp(problems.list[i].field, field) == 0;
	}
	return found;
}

/* A value other than the default: the example, or another word. */
static char *other_value(const struct field *row)
{
	if (!row->fallback || strcmp(row->example, row->fallback) != 0)
		return mem_copy(row->example);
	for (const char *word = row->words; word && *word;) {
		size_t n = strcspn(word, " ");

		if (strncmp(word, row->fallback, n) != 0 || row->fallback[n])
			return mem_copy_n(word, n);
		word += n + (word[n] == ' ');
	}
	return mem_copy(row->type == FIELD_BOOL ? "true" : "5");
}

/* Fields of retraining that need others beside them, by the begin of their path. */
static const char *const beside[][2] = {
	{ "evaluate.direction", "evaluate.metric=m" },
	{ "evaluate.max_drop", "evaluate.metric=m" },
	{ "gate", "evaluate.command=[a]" },
	{ "infer.", "infer.input=./items" },
	{ "evaluate.compile", "compile.kind=jax" },
	{ "evaluate.compile", "compile.cache_url=./cache" },
	{ "infer.compile", "compile.kind=jax" },
	{ "infer.compile", "compile.cache_url=./cache" },
	{ "promote.", "promote.when=manual" },
	{ "schedule.", "promote.when=manual" },
};

/* "path=value" for a row and for what its sections require beside it. */
static char **sets_for(field_id id, const char *value)
{
	char **sets = mem_zero(16, sizeof *sets);
	size_t count = 0;

	sets[count++] = mem_format("%s=%s", field_table[id].path, value);
	for (field_id section = field_parent(id); section != FIELD_NONE;
	     section = field_parent(section))
		for (field_id other = 0; other < SPEC_FIELD_COUNT; other++)
			if (other != id && field_table[other].required &&
			    field_parent(other) == section)
				sets[count++] = mem_format("%s=%s", field_table[other].path,
							   field_table[other].example);
	for (size_t i = 0; i < STK_LENGTH(beside); i++) {
		size_t len = strcspn(beside[i][1], "=");

		if (strcmp(value, "[]") != 0 &&
		    strncmp(field_table[id].path, beside[i][0], strlen(beside[i][0])) == 0 &&
		    (strncmp(field_table[id].path, beside[i][1], len) != 0 ||
		     field_table[id].path[len]))
			sets[count++] = mem_copy(beside[i][1]);
	}
	/* A sweep has cells of one kind, and only steps of a ladder are on top of others. */
	if (strncmp(field_table[id].path, "sweep.", 6) == 0 && id != SPEC_SWEEP_LIST &&
	    id != SPEC_SWEEP_LADDER)
		sets[count++] =
			mem_format("sweep.%s=[{}]", id == SPEC_SWEEP_ON_TOP_OF ? "ladder" : "list");
	if (id == SPEC_LIMITS_COST || id == SPEC_SWEEP_STOP_WHEN_COST)
		sets[count++] = mem_copy("resources.price=1");
	return sets;
}

static bool is_leaf(field_id id)
{
	return field_table[id].type != FIELD_SECTION && field_table[id].type != FIELD_FREE &&
	       !strpbrk(field_table[id].path, "[*");
}

static void every_field_that_is_later_is_refused_by_name(void **state)
{
	size_t checked = 0;

	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const char *name = field_table[id].path;
		AUTO(auto_free) char *value = NULL;
		AUTO(auto_strv) char **sets = NULL;
		size_t all;

		if (!is_leaf(id) || field_table[id].ready)
			continue;
		for (field_id section = field_parent(id); section != FIELD_NONE;
		     section = field_parent(section))
			if (!field_table[section].ready)
				name = field_table[section].path;
		value = other_value(&field_table[id]);
		sets = sets_for(id, value);
		if (refusals(HEAD, sets, name, &all) != 1)
			fail_msg("%s is not refused", sets[0]);
		checked++;
	}
	assert_true(checked > 0);
}

static void every_field_that_is_ready_is_accepted(void **state)
{
	size_t checked = 0;

	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const struct field *row = &field_table[id];
		const char *example = row->example;
		AUTO(auto_strv) char **sets = NULL;
		size_t all;

		if (!is_leaf(id) || !row->ready || id == SPEC_EXTENDS) /* a layer cannot be set */
			continue;
		if (row->local_only)
			example = "./here";
		if (id == SPEC_ENV_FILE)
			example = "[]"; /* a file would be read */
		if (id == SPEC_GATE)
			example = "[]"; /* one that needs no evaluation names another run */
		sets = sets_for(id, example);
		if (id == SPEC_COMPILE_KIND)
			sets[1] = mem_copy("compile.cache_url=./c");
		if (id == SPEC_COMPILE_CACHE_URL)
			sets[1] = mem_copy("compile.kind=jax");
		if (id == SPEC_COMPILE_PARALLEL) {
			sets[1] = mem_copy("compile.kind=neuron");
			sets[2] = mem_copy("compile.cache_url=./c");
		}
		refusals(HEAD, sets, "", &all);
		if (all != 0)
			fail_msg("%s is refused", sets[0]);
		checked++;
	}
	assert_true(checked > 20);
}

static void a_default_written_out_asks_for_nothing(void **state)
{
	(void)state;
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		field_id section = field_parent(id);
		AUTO(auto_strv) char **sets = NULL;
		size_t all;

		/* Beside an optional section's defaults stand its required members. */
		if (!is_leaf(id) || !field_table[id].fallback ||
		    (section != FIELD_NONE && field_table[section].optional))
			continue;
		sets = sets_for(id, field_table[id].fallback);
		refusals(HEAD, sets, "", &all);
		if (all != 0)
			fail_msg("%s is refused", sets[0]);
	}
}

static void words_and_values_are_refused_one_by_one(void **state)
{
	static const struct {
		const char *text, *field;
		size_t all;
	} rows[] = {
		{ HEAD "engine: slurm\nworkspace: /w\n", "engine", 1 },
		{ HEAD "compile: {kind: jax, cache_url: s3://bucket/c}\n", "", 0 },
		{ HEAD "compile: {depends_on: [a, \"https://x/y\"]}\n", "compile.depends_on[1]",
		  1 },
		{ HEAD "source: {path: \"https://github.com/x/y\"}\n", "source.path", 1 },
		{ HEAD "source: {path: \"git@github.com:x/y\"}\n", "source.path", 1 },
		{ HEAD "workspace: s3://bucket/w\n", "", 0 },
		{ HEAD "resources: {nodes: 2}\n", "", 0 },
		{ HEAD "resources: {efa: true}\n", "", 0 },
		{ HEAD "resources: {efa: false, price: 3}\n", "", 0 },
		{ HEAD "health: {device: true, collectives: {size: 1MiB}}\n", "", 0 },
		{ HEAD "health: {device: false}\n", "", 0 },
		{ HEAD "secrets: {A: \"ssm:/x\", B: \"env:B\", C: \"file:/c\", "
		       "D: \"secretsmanager:d#k\"}\n",
		  "", 0 },
		{ HEAD "aws: {region: us-west-2, account: \"123456789012\"}\n", "", 0 },
		{ HEAD "limits: {unreachable: 1d, start: 1800s}\n", "", 0 },
		{ HEAD "limits: {unreachable: 2d}\n", "", 0 },
		{ HEAD "infer: {command: [a], input: /i, output: /o, overrides: {env: {A: b}}}\n"
		       "notify: []\nmounts:\n",
		  "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		size_t all, found = refusals(rows[i].text, NULL, rows[i].field, &all);

		if (all != rows[i].all || found != (rows[i].all > 0))
			fail_msg("%s: %zu refusals", rows[i].text, all);
	}
}

static void refusals_have_places_and_keep_secrets(void **state)
{
	AUTO(spec_freep)
	struct spec *spec = good_spec(HEAD "source: {path: \"https://me:hunter2@host/x\"}\n"
					   "compile: {depends_on: [\"https://hunter2/x\"]}\n",
				      NULL);
	AUTO(problems_release) struct problems problems = { 0 };

	(void)state;
	assert_int_equal(spec_not_yet(spec, &problems), 2);
	assert_true(problems.list[0].line == 4 && problems.list[0].column == 16);
	assert_true(problems.list[1].line == 5 && problems.list[1].column == 24);
	for (size_t i = 0; i < problems.count; i++)
		assert_null(strstr(problems.list[i].message, "hunter2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_that_is_later_is_refused_by_name),
		cmocka_unit_test(every_field_that_is_ready_is_accepted),
		cmocka_unit_test(a_default_written_out_asks_for_nothing),
		cmocka_unit_test(words_and_values_are_refused_one_by_one),
		cmocka_unit_test(refusals_have_places_and_keep_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
