/* Plans of specs: places in the one form that stoker uses, files that graphs depend on, processes
 * of a launcher, the policy of a run; the user's own rows of the failure table; the agent's
 * program; the view of the cache. */
#include "plan_fixture.h"

#include "jobs/run/plan/agent.h"
#include "jobs/run/plan/own_rows.h"

static void places_are_absolute_or_urls_in_one_form(void **state)
{
	AUTO(auto_free) char *beside = fs_join(dir, "job/work");
	AUTO(plan_freep)
	struct plan *plan = good_plan("command: [python3, train.py]\nworkspace: \"dir:work\"\n"
				      "checkpoint: {url: \"s3://bucket/saved/\"}\n");

	(void)state;
	assert_string_equal(js_str(plan->json, "workspace"), beside);
	assert_string_equal(js_str(json_object_get(plan->json, "checkpoint"), "url"),
			    "s3://bucket/saved");
	/* Nothing is compiled ahead, and no other phase is there. */
	assert_null(json_object_get(plan->json, "compile"));
	assert_null(plan_phase(plan->json, "precompile"));
	assert_non_null(plan_phase(plan->json, "train"));
	assert_int_equal(json_object_size(json_object_get(plan->json, "secrets")), 0);
}

static const char depending[] =
	"command: [python3, train.py]\n"
	"compile: {kind: jax, cache_url: cache, depends_on: [tokens.json]}\n";

static void graphs_depend_on_the_files_that_the_spec_names(void **state)
{
	AUTO(plan_freep) struct plan *first = NULL;
	AUTO(plan_freep) struct plan *second = NULL;
	const json_t *digests;

	(void)state;
	put_text("job/tokens.json", "[1]");
	first = good_plan(depending);
	digests = js_path(first->json, "compile.ingredients.depends_on");
	assert_non_null(js_str(digests, "tokens.json"));
	put_text("job/tokens.json", "[2]");
	second = good_plan(depending);
	assert_string_not_equal(plan_graph_key(first->json), plan_graph_key(second->json));
}

static void a_file_that_is_missing_is_named_where_it_was_written(void **state)
{
	char *const sets[] = { (char[]){ "compile.depends_on=[other.json]" }, NULL };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *words = NULL;

	(void)state;
	assert_null(plan_of(depending, NULL, &err));
	assert_non_null(strstr(err->message, "tokens.json"));
	assert_string_equal(err->field, "compile.depends_on[0]");
	assert_string_equal(err->hint, "name an existing file, or remove the entry");
	words = err_format(err);
	assert_non_null(strstr(words, "job.yaml:5:"));
	err_freep(&err);
	put_text("job/tokens.json", "[1]");
	assert_null(plan_of(depending, sets, &err));
	assert_non_null(strstr(err->message, "compile.depends_on=[other.json]: "));
	free(TAKE(words));
	words = err_format(err);
	assert_non_null(strstr(words, "--set"));
}

static void a_launcher_is_told_how_many_processes_there_are(void **state)
{
	AUTO(plan_freep)
	struct plan *plan = good_plan("command: [torchrun, train.py]\n"
				      "resources: {instance: trn1.32xlarge, price: 20}\n");
	const json_t *train = plan_phase(plan->json, "train");
	const json_t *processes = json_object_get(train, "processes");
	const char *variable = js_str(processes, "variable");

	(void)state;
	assert_non_null(variable);
	assert_int_equal(js_int(processes, "per_node", 0), 32);
	assert_string_equal(js_str(json_object_get(train, "env"), variable), "32");
	assert_int_equal((int)json_number_value(js_path(plan->json, "limits.price")), 20);
}

static void the_policy_is_that_of_the_plan(void **state)
{
	json_auto_t *agents =
		quoted_json("{'engine':'batch','nodes':2,'limits':{'price':36,'cost':5},"
			    "'checkpoint':{'grace_ms':60000,'on_mismatch':'stop'},"
			    "'compile':{'mode':'aot','on_exceed':'another'}}");
	json_auto_t *toolkit =
		quoted_json("{'engine':'sagemaker','spec':{'sagemaker':{'launcher':'toolkit'}},"
			    "'checkpoint':{'grace_ms':60000},'compile':{'mode':'jit'}}");
	struct flow_policy policy;

	(void)state;
	plan_policy(agents, NULL, "r", &policy);
	assert_true(policy.compiles);
	assert_true(policy.stop_on_mismatch);
	assert_true(policy.drain_ms > 60000); /* until the next heartbeat too */
	assert_true(policy.lead_ms > policy.drain_ms);
	assert_int_equal(policy.jit_action, JIT_WARN); /* of a later version */
	assert_true(policy.price_per_ms * 3600 * 1000 > 71.9 &&
		    policy.price_per_ms * 3600 * 1000 < 72.1);
	assert_string_equal(policy.run, "r");
	plan_policy(toolkit, NULL, "r", &policy);
	assert_false(policy.compiles);
	assert_int_equal(policy.drain_ms, 0); /* nobody would notice it */
	assert_int_equal(policy.jit_graphs, -1);
}

/* ---- the user's own rows of the failure table ---- */

static void own_rows_find_what_they_name(void **state)
{
	json_auto_t *rows =
		quoted_json("[{'regex':'FeatureStoreError: (.*)','class':'data','hint':'mend it'},"
			    "{'regex':'gave up'},{'regex':'('},{'class':'data'}]");
	static const struct {
		size_t row;
		const char *line, *found;
	} cases[] = {
		{ 0, "x FeatureStoreError: no such column", "no such column" },
		{ 0, "FeatureStore", NULL },
		{ 1, "the frobnicator gave up at last", "gave up" },
		{ 2, "(", NULL }, /* refused by this machine's PCRE2 */
		{ 3, "anything", NULL },
	};
	AUTO(own_rows_freep) struct own_rows *own = own_rows_new(rows);
	const struct failure_own *view = own_rows_get(own);
	struct own_rows *none = NULL;

	(void)state;
	assert_int_equal(view->count, 4);
	assert_int_equal(view->rows[0].class, CLASS_DATA);
	assert_string_equal(view->rows[0].hint, "mend it");
	assert_string_equal(view->rows[1].id, "own-2");
	assert_int_equal(view->rows[1].class, CLASS_UNKNOWN);
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		struct failure_line line = { cases[i].line, strlen(cases[i].line) }, found;
		bool there = view->find(view->arg, cases[i].row, line, &found);

		assert_int_equal(there, cases[i].found != NULL);
		if (there) {
			assert_int_equal(found.len, strlen(cases[i].found));
			assert_memory_equal(found.text, cases[i].found, found.len);
		}
	}
	own_rows_freep(&none);
}

/* ---- the agent ---- */

static void the_agent_is_known_by_the_digest_of_its_program(void **state)
{
	static const char program[] = "\177ELF";
	AUTO(err_freep) struct err *err = NULL;
	char digest[SHA256_HEX], hex[SHA256_HEX];

	(void)state;
	setenv("STOKER_AGENT", dir, 1);
	assert_int_equal(agent_digest(digest, &err), -1);
	assert_non_null(strstr(err->message, "stoker-node"));
	err_freep(&err);
	put_text("stoker-node", program);
	assert_int_equal(agent_digest(digest, &err), 0);
	hash_sha256_hex(program, strlen(program), hex);
	assert_string_equal(digest, hex);
	unsetenv("STOKER_AGENT");
}

static void names_the_agent(int result, struct err **err)
{
	assert_int_equal(result, -1);
	assert_int_equal((*err)->code, EXIT_REFUSED);
	assert_non_null(strstr((*err)->message, "cannot find the node agent near '"));
	assert_non_null(strstr((*err)->hint, "name the agent's folder in STOKER_AGENT"));
	err_freep(err);
}

/* Beside this test there is none. */
static void without_an_agent_nothing_is_published(void **state)
{
	AUTO(store_freep) struct store *workspace = NULL;
	AUTO(err_freep) struct err *err = NULL;
	char digest[SHA256_HEX], *prefix = NULL, *archive = NULL;

	(void)state;
	unsetenv("STOKER_AGENT");
	assert_int_equal(store_open(dir, &workspace, &err), 0);
	names_the_agent(agent_digest(digest, &err), &err);
	names_the_agent(agent_publish(workspace, &prefix, &err), &err);
	names_the_agent(agent_publish_archive(workspace, "agents/0/", &archive, &err), &err);
	assert_null(prefix);
	assert_null(archive);
}

/* ---- the view of the cache ---- */

static void a_cache_is_not_viewed_where_there_is_none(void **state)
{
	json_auto_t *trains = quoted_json("{'engine':'local'}");
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_COLD };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(cache_view_make(trains, &view, &err), 0);
	assert_int_equal(view.verdict, CACHE_NONE);
	assert_string_equal(view.reason, "nothing is compiled ahead");
}

/* A plan is shown all the same, if only a service keeps the cache from it. */
static void a_cache_that_cannot_be_opened_is_not_called_cold(void **state)
{
	json_auto_t *plan = quoted_json("{'compile':{'graph_key':'0','cache':'s3://b'}}");
	AUTO(cache_view_clear) struct cache_view view = { .verdict = CACHE_NONE };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(cache_view_make(plan, &view, &err), -1);
	assert_string_equal(err->message, "'s3://b' names no bucket");
	assert_int_equal(view.verdict, CACHE_NONE);
	err_freep(&err);
	assert_int_equal(cache_view_try(plan, &view, &err), 0);
	assert_int_equal(view.verdict, CACHE_UNKNOWN);
	assert_string_equal(view.reason, "not known: 's3://b' names no bucket");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(places_are_absolute_or_urls_in_one_form),
		TEST(graphs_depend_on_the_files_that_the_spec_names),
		TEST(a_file_that_is_missing_is_named_where_it_was_written),
		TEST(a_launcher_is_told_how_many_processes_there_are),
		TEST(the_policy_is_that_of_the_plan),
		TEST(own_rows_find_what_they_name),
		TEST(the_agent_is_known_by_the_digest_of_its_program),
		TEST(without_an_agent_nothing_is_published),
		TEST(a_cache_is_not_viewed_where_there_is_none),
		TEST(a_cache_that_cannot_be_opened_is_not_called_cold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
