/* Which files of the source are in the graph key, and the line of the spec that keeps new ones out
 * of it. See jobs/run/plan/plan.h. */
#include "plan_fixture.h"

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/spec/fields/names.h"

static const char packing[] = "command: [python3, train.py]\n"
			      "workspace: ws\ncheckpoint: {url: saved}\n"
			      "compile: {kind: jax, cache_url: cache}\n";

/* The names of the files in the key, in their order. */
static char *files_in_key(void)
{
	AUTO(auto_free) char *file = fs_join(dir, "job/job.yaml");
	AUTO(auto_free) char *state = fs_join(dir, "state");
	AUTO(auto_free)
	char *text = mem_format("version: 1\nname: n\nsource: {path: .}\n%s", packing);
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	struct err *err = NULL;
	struct sb names = SB_INIT;
	const char *name;
	json_t *value;

	put_text("job/job.yaml", text);
	assert_int_equal(spec_load(file, NULL, NULL, &spec, &problems, &err), 0);
	assert_int_equal(journal_open(state, JOURNAL_WRITE, &journal, &err), 0);
	if (plan_make(spec, journal, &plan, &err) < 0)
		fail_msg("%s", err->message);
	json_object_foreach (js_path(plan->json, "compile.ingredients.source"), name, value) {
		assert_int_equal(strlen(json_string_value(value)), 64);
		sb_addf(&names, "%s ", name);
	}
	return sb_take(&names);
}

static void assert_in_key(const char *want)
{
	AUTO(auto_free) char *names = files_in_key();

	assert_string_equal(names, want);
}

#define SPEC "version: 1\nname: other\ncommand: [true]\n"

/* The spec's own file is an ingredient already, less what the spec ignores; others beside it decide
 * about their own graphs. */
static void specs_beside_the_spec_are_not_in_the_key(void **state)
{
	(void)state;
	put_text("job/train.py", "train()\n");
	assert_in_key("train.py ");
	put_text("job/other.yaml", SPEC);
	put_text("job/another.yml", SPEC);
	assert_in_key("train.py ");
	/* what only looks like one is */
	put_text("job/model.yaml", "layers: 3\n");
	put_text("job/spec.txt", SPEC);
	put_text("job/yaml", SPEC);
	put_text("job/sub/other.yaml", SPEC);
	assert_in_key("model.yaml spec.txt sub/other.yaml train.py yaml ");
}

/* Files that stoker writes change with each run. */
static void what_stoker_writes_is_no_source(void **state)
{
	static const char *const own[] = { "job/ws/x", "job/cache/x", "job/saved/x" };

	(void)state;
	put_text("job/train.py", "train()\n");
	for (size_t i = 0; i < STK_LENGTH(own); i++)
		put_text(own[i], "1");
	put_text("job/wsx/x", "1");
	assert_in_key("train.py wsx/x ");
	/* nor is what it wrote for earlier specs */
	{
		AUTO(auto_free) char *places = mem_format("%s/job/wsx\n", dir);

		put_text("state/places", places);
	}
	assert_in_key("train.py ");
}

/* ---- rules for new files ---- */

static char *hint_of(const char *source, const char *changed)
{
	json_auto_t *ingredients = json_object();
	json_auto_t *rows = quoted_json(changed);

	js_put(ingredients, "source", quoted_json(source));
	return key_hint(ingredients, rows);
}

static void assert_hint(const char *source, const char *changed, const char *want)
{
	AUTO(auto_free) char *hint = hint_of(source, changed);
	AUTO(auto_free) char *quotes = want ? quoted(want) : NULL;

	if (!want) {
		assert_null(hint);
		return;
	}
	if (!hint || !strstr(hint, quotes))
		fail_msg("'%s', not '%s'", hint ? hint : "none", quotes);
}

#define NEW(name) "{'field':'source:" name "','new':'0'}"

static void programs_and_their_configuration_may_decide(void **state)
{
	static const struct {
		const char *name;
		bool decides;
	} rows[] = {
		{ "a.py", true },
		{ "a.PY", true },
		{ "a.json", true },
		{ "a.model", true },
		{ "a.j2", true },
		{ "a", true },
		{ ".hidden", true },
		{ "sub/a", true },
		{ "requirements-dev.txt", true },
		{ "requirement.txt", false },
		{ "vocab.txt", true },
		{ "merges.txt", true },
		{ "sub/vocab.txt", true },
		{ "vocab.csv", false },
		{ "LICENSE", false },
		{ "sub/README", false },
		{ "README.py", true },
		{ ".gitignore", false },
		{ ".gitattributes", false },
		{ "a.txt", false },
		{ "a.md", false },
		{ "a.py.bak", false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *changed = mem_format("[{'field':'source:%s','new':'0'}]", rows[i].name);
		AUTO(auto_free) char *hint = hint_of("{'train.py':'1'}", changed);

		if ((hint == NULL) != rows[i].decides)
			fail_msg("%s", rows[i].name);
	}
}

static void the_line_lists_what_stays(void **state)
{
	static const char source[] = "{'train.py':'1','util.py':'1','conf/a.json':'1','b*.txt':'1',"
				     "'Makefile':'1','new.md':'1','data.csv':'1'}";

	(void)state;
	assert_hint(source, "[" NEW("new.md") "]",
		    "if no graph depends on new.md, keep it out of the key: source: {include: "
		    "['**/*.py','**/*.json','**/*.txt','Makefile','**/*.csv']}");
	/* of files of the same kind each is named */
	assert_hint("{'a.md':'1','b*?[.md':'1','new.md':'1','train.py':'1'}", "[" NEW("new.md") "]",
		    "include: ['a.md','b\\\\*\\\\?\\\\[.md','**/*.py']}");
	assert_hint(source, "[" NEW("new.md") "," NEW("data.csv") "]",
		    "if no graph depends on new.md and 1 more new files, keep them out of the key: "
		    "source: {include: [");
	/* what changed or is no file of the source is none of these */
	assert_hint(source, "[{'field':'source:new.md','old':'9','new':'0'}]", NULL);
	assert_hint(source, "[{'field':'source:new.md','old':null,'new':'0'}]", "keep it out");
	assert_hint(source, "[{'field':'env.A','new':'0'}]", NULL);
	assert_hint(source, "[]", NULL);
}

static void a_line_that_would_be_too_long_is_put_in_words(void **state)
{
	AUTO(sb_release) struct sb source = SB_INIT;

	(void)state;
	sb_adds(&source, "{'new.md':'1'");
	for (int i = 0; i < 16; i++)
		sb_addf(&source, ",'file%02d':'1'", i);
	{
		AUTO(auto_free) char *sixteen = mem_format("%s}", source.text);
		AUTO(auto_free) char *more = mem_format("%s,'file':'1'}", source.text);

		assert_hint(sixteen, "[" NEW("new.md") "]", "'file15']}");
		assert_hint(more, "[" NEW("new.md") "]",
			    "if no graph depends on new.md, list the needed files in "
			    "source.include");
	}
	/* nor is one made that would keep all out */
	assert_hint("{'new.md':'1'}", "[" NEW("new.md") "]", "list the needed files");
}

/* A file of variables that no key sees may set nothing that steers a compiler. */
static void what_steers_a_kind_is_known_to_the_spec(void **state)
{
	static const char *const kinds[] = { "jax", "neuron", "none" };
	size_t checked = 0;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(kinds); i++) {
		const struct compile_kind *kind = compile_kind_find(kinds[i]);

		for (const char *const *name = kind->steering; name && *name; name++) {
			size_t len = strcspn(*name, "*");
			AUTO(auto_free)
			char *one = mem_format("%.*s%s", (int)len, *name, (*name)[len] ? "X" : "");

			if (!names_steering(one))
				fail_msg("%s steers %s, which the spec does not know", one,
					 kinds[i]);
			checked++;
		}
	}
	assert_true(checked > 10);
	assert_false(names_steering("NEURON_RT_NUM_CORES"));
	assert_true(names_steering("NEURON_RT_VIRTUAL_CORE_SIZE"));
	assert_false(names_steering("HF_TOKEN"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_steers_a_kind_is_known_to_the_spec),
		TEST(specs_beside_the_spec_are_not_in_the_key),
		TEST(what_stoker_writes_is_no_source),
		TEST(programs_and_their_configuration_may_decide),
		TEST(the_line_lists_what_stays),
		TEST(a_line_that_would_be_too_long_is_put_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
