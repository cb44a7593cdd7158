/* What of a spec is in its plan and under which name, what of a plan is in a run's policy, and what
 * stoker remembers of the folders of a plan. See jobs/run/plan/plan.h. */
#include "plan_fixture.h"

#include <sys/stat.h>

#include "jobs/run/plan/health.h"
#include "jobs/run/plan/own_places.h"
#include "jobs/store/order.h"

/* A member by its path, as one line of JSON. */
static void assert_member(const json_t *plan, const char *path, const char *want)
{
	AUTO(auto_free) char *text = NULL;
	AUTO(auto_free) char *quotes = quoted(want);
	const json_t *value = js_path(plan, path);

	if (!value)
		fail_msg("%s is not there", path);
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	if (strcmp(text, quotes) != 0)
		fail_msg("%s is %s, not %s", path, text, quotes);
}

static const char full[] =
	"command: [python3, train.py, --steps, 9]\n"
	"workspace: work\n"
	"env: {A: \"1\"}\n"
	"hyperparameters: {max_steps: 100, learning-rate: 0.5}\n"
	"secrets: {TOKEN: \"env:TOKEN\"}\n"
	"resources: {nodes: 3, price: 20}\n"
	"metrics: [{name: step, regex: 'step ([0-9]+)'}]\n"
	"failures: [{regex: 'gave up', class: data, hint: 'mend it'}]\n"
	"notify: [{when: [failed], command: [mail]}]\n"
	"compile: {kind: jax, cache_url: cache, quiet_period: 7s, timeout: 3m, on_incomplete: "
	"train,\n"
	"  jit_budget: {graphs: 4, on_exceed: stop}}\n"
	"retry: {attempts: 11, without_progress: 3, backoff: {first: 2s, max: 90s}}\n"
	"limits: {deadline: 5h, attempts: 33, queue: 6h, start: 7m, unreachable: 8m, cost: 123,\n"
	"  stall: 9m, grace: 10s}\n"
	"checkpoint: {url: saved, kind: hf, sync: script, keep: 4, signal: USR2, grace: 11s,\n"
	"  on_mismatch: warn}\n";

static void a_plan_has_what_the_spec_says(void **state)
{
	static const char *const rows[][2] = {
		{ "v", "1" },
		{ "name", "'n'" },
		{ "engine", "'local'" },
		{ "nodes", "3" },
		{ "grace_ms", "10000" },
		{ "secrets.TOKEN", "'env:TOKEN'" },
		{ "metrics", "[{'name':'step','regex':'step ([0-9]+)'}]" },
		{ "notify", "[{'when':['failed'],'command':['mail']}]" },
		{ "compile.kind", "'jax'" },
		{ "compile.quiet_ms", "7000" },
		{ "compile.timeout_ms", "180000" },
		{ "compile.on_incomplete", "'train'" },
		{ "compile.mode", "'aot'" },
		{ "compile.jit_graphs", "4" },
		{ "compile.on_exceed", "'stop'" },
		{ "retry.attempts", "11" },
		{ "retry.without_progress", "3" },
		{ "retry.backoff_first_ms", "2000" },
		{ "retry.backoff_max_ms", "90000" },
		{ "limits.deadline_ms", "18000000" },
		{ "limits.attempts", "33" },
		{ "limits.queue_ms", "21600000" },
		{ "limits.start_ms", "420000" },
		{ "limits.unreachable_ms", "480000" },
		{ "limits.cost", "123.0" },
		{ "limits.price", "20.0" },
		{ "stall", "{'mode':'fixed','limit_ms':540000}" },
		{ "checkpoint.kind", "'hf'" },
		{ "checkpoint.sync", "'script'" },
		{ "checkpoint.keep", "4" },
		{ "checkpoint.signal", "'USR2'" },
		{ "checkpoint.grace_ms", "11000" },
		{ "checkpoint.on_mismatch", "'warn'" },
		{ "source.kind", "'dir'" },
		{ "source.dirty", "false" },
		{ "source.files", "1" },
		{ "source.links", "[]" },
	};
	AUTO(plan_freep) struct plan *plan = good_plan(full);
	AUTO(auto_free) char *file = fs_join(dir, "job/job.yaml");
	AUTO(auto_free) char *root = fs_join(dir, "job");
	AUTO(auto_free) char *work = fs_join(dir, "job/work");
	AUTO(auto_free) char *cache = fs_join(dir, "job/cache");
	AUTO(auto_free) char *saved = fs_join(dir, "job/saved");
	const json_t *phase;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_member(plan->json, rows[i][0], rows[i][1]);
	assert_string_equal(js_str(plan->json, "spec_file"), file);
	assert_string_equal(js_str(plan->json, "workspace"), work);
	assert_string_equal(js_str(json_object_get(plan->json, "compile"), "cache"), cache);
	assert_string_equal(js_str(json_object_get(plan->json, "checkpoint"), "url"), saved);
	assert_string_equal(js_str(json_object_get(plan->json, "source"), "root"), root);
	assert_int_equal(json_array_size(json_object_get(plan->json, "failures")), 1);
	assert_non_null(json_object_get(plan->json, "spec"));
	assert_non_null(json_object_get(plan->json, "length"));
	assert_null(json_object_get(plan->json, "instance"));
	assert_null(json_object_get(plan->json, "health"));
	assert_null(json_object_get(json_object_get(plan->json, "source"), "commit"));
	assert_int_equal(json_array_size(json_object_get(plan->json, "phases")), 3);
	assert_non_null(plan_phase(plan->json, "verify"));
	assert_null(plan_phase(plan->json, "other"));
	phase = plan_phase(plan->json, "train");
	assert_member(phase, "command",
		      "['python3','train.py','--steps','9','--max_steps','100',"
		      "'--learning-rate','0.5']");
	assert_member(phase, "env.A", "'1'");
	assert_member(phase, "env.STOKER_HP_MAX_STEPS", "'100'");
	assert_member(phase, "env.STOKER_HP_LEARNING_RATE", "'0.5'");
	assert_null(json_object_get(phase, "front"));
	assert_member(plan->json, "steps.train", "100");
	assert_non_null(plan_phase(plan->json, "precompile"));
	assert_non_null(plan_graph_key(plan->json));
	assert_int_equal(strlen(plan->digest), 64);
}

/* A field that the spec leaves out has a value all the same, or is not there. */
static void a_plan_has_what_the_spec_leaves_open(void **state)
{
	static const char *const rows[][2] = {
		{ "nodes", "1" },
		{ "grace_ms", "60000" },
		{ "secrets", "{}" },
		{ "failures", "[]" },
		{ "metrics", "[]" },
		{ "steps", "{}" },
		{ "compile.quiet_ms", "0" }, /* of a folder */
		{ "limits.deadline_ms", "0" },
		{ "limits.queue_ms", "0" },
		{ "stall", "{'mode':'auto'}" },
		{ "checkpoint.keep", "'all'" },
		{ "checkpoint.kind", "'auto'" },
		{ "compile.on_incomplete", "'stop'" },
	};
	static const char *const absent[] = { "limits.cost", "limits.price", "checkpoint.url",
					      "notify",      "image",        "aws" };
	AUTO(plan_freep)
	struct plan *plan = good_plan("command: [python3, train.py]\n"
				      "compile: {kind: jax, cache_url: cache}\n");
	AUTO(plan_freep)
	struct plan *far = good_plan("command: [python3, train.py]\nlimits: {stall: none}\n"
				     "compile: {kind: jax, cache_url: \"s3://bucket/c/\"}\n");
	AUTO(plan_freep)
	struct plan *jit = good_plan("command: [python3, train.py]\n"
				     "compile: {kind: jax, cache_url: cache, mode: jit}\n");
	AUTO(auto_free) char *work = fs_join(dir, "state/workspace");

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_member(plan->json, rows[i][0], rows[i][1]);
	for (size_t i = 0; i < STK_LENGTH(absent); i++)
		if (js_path(plan->json, absent[i]))
			fail_msg("%s is there", absent[i]);
	assert_string_equal(js_str(plan->json, "workspace"), work);
	assert_member(far->json, "compile.quiet_ms", "30000");
	assert_member(far->json, "compile.cache", "'s3://bucket/c'");
	assert_member(far->json, "stall", "{'mode':'off'}");
	assert_int_equal(json_array_size(json_object_get(jit->json, "phases")), 1);
	assert_null(json_object_get(jit->json, "length"));
	assert_member(jit->json, "compile.mode", "'jit'");
}

/* Only what the spec says, not what a catalogue or a region says at the time. */
static void the_digest_of_a_plan_is_that_of_its_spec(void **state)
{
	static const struct {
		const char *path, *value;
		bool same;
	} rows[] = {
		{ "instance", "{'type':'x'}", true },
		{ "failures", "[1]", true },
		{ "aws", "{'region':'r'}", true },
		{ "limits", "{'cost':5,'price':7}", true },
		{ "limits", "{'cost':6}", false },
		{ "name", "'other'", false },
		{ "nodes", "2", false },
	};
	json_auto_t *plan = quoted_json("{'name':'n','nodes':1,'limits':{'cost':5}}");
	char digest[SHA256_HEX], other[SHA256_HEX];

	(void)state;
	plan_digest(plan, digest);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *changed = json_deep_copy(plan);

		js_put(changed, rows[i].path, quoted_json(rows[i].value));
		plan_digest(changed, other);
		if ((strcmp(digest, other) == 0) != rows[i].same)
			fail_msg("%s", rows[i].path);
		assert_true(json_object_get(changed, rows[i].path) != NULL); /* it stays */
	}
}

/* ---- health ---- */

static void the_check_of_nodes_is_in_the_plan_where_it_is_wanted(void **state)
{
	static const struct {
		const char *lines, *want; /* NULL: not there */
	} rows[] = {
		{ "health: {device: false}\n", NULL },
		{ "health: {device: true, timeout: 2m}\n", "true" },
		{ "health: {collectives: {ops: [all_gather], size: 1MiB}}\n", "false" },
		{ "resources: {instance: trn1.32xlarge}\n", "true" },
		{ "resources: {instance: trn1.32xlarge}\nhealth: {device: false}\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *lines = mem_format("command: [python3, train.py]\n%s", rows[i].lines);
		AUTO(plan_freep) struct plan *plan = good_plan(lines);
		const json_t *health = json_object_get(plan->json, "health");

		assert_int_equal(json_object_get(plan->json, "instance") != NULL, i >= 3);
		if ((health != NULL) != (rows[i].want != NULL))
			fail_msg("%s", rows[i].lines);
		if (health)
			assert_member(health, "device", rows[i].want);
		if (i == 1) {
			assert_member(health, "timeout_ms", "120000");
			assert_member(health, "size", "268435456");
		}
		if (i == 2) {
			assert_member(health, "ops", "['all_gather']");
			assert_member(health, "size", "1048576");
			assert_member(health, "timeout_ms", "600000");
		}
	}
}

static void devices_are_counted_where_there_are_any(void **state)
{
	static const int64_t devices[] = { 0, 1, 16 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(devices); i++) {
		json_auto_t *plan =
			json_pack("{s:{s:s, s:I}, s:{s:b, s:[s], s:i, s:i}}", "instance", "type",
				  "trn1.2xlarge", "devices", (json_int_t)devices[i], "health",
				  "device", 1, "ops", "all_reduce", "size", 5, "timeout_ms", 6);
		AUTO(auto_free) char *words = health_plan_words(plan);
		AUTO(auto_free) char *count = mem_format("devices (%d)", (int)devices[i]);
		AUTO(auto_free) char *both = NULL;

		assert_int_equal(strstr(words, count) != NULL, devices[i] > 0);
		assert_int_equal(strstr(words, "devices (") != NULL, devices[i] > 0);
		assert_null(strstr(words, "between them"));
		js_put(plan, "nodes", json_integer(2));
		both = health_plan_words(plan);
		assert_non_null(strstr(both, ", an all_reduce between them"));
	}
}

/* ---- phases ---- */

static const char *command_of(const struct plan *plan, const char *phase)
{
	return json_string_value(
		json_array_get(json_object_get(plan_phase(plan->json, phase), "command"), 0));
}

/* The kind tells its compiler where the cache is; a program in front of the command compiles. */
static void a_phase_has_the_environment_of_its_compiler(void **state)
{
	AUTO(plan_freep)
	struct plan *plan = good_plan("command: [python3, train.py]\n"
				      "compile: {kind: jax, cache_url: cache, max_steps: 3}\n"
				      "hyperparameters: {max_steps: 50}\n");
	AUTO(plan_freep)
	struct plan *far = good_plan("command: [python3, train.py]\n"
				     "compile: {kind: jax, cache_url: \"s3://bucket/c\"}\n");
	AUTO(auto_free) char *cache = fs_join(dir, "job/cache");
	const json_t *train = json_object_get(plan_phase(plan->json, "train"), "env");
	const json_t *there = json_object_get(plan_phase(far->json, "train"), "env");
	const json_t *key = js_path(plan->json, "compile.ingredients");

	(void)state;
	assert_string_equal(command_of(plan, "precompile"), "python3");
	assert_string_equal(js_str(train, "JAX_COMPILATION_CACHE_DIR"), cache);
	assert_string_equal(js_str(there, "JAX_COMPILATION_CACHE_DIR"), "${STOKER_CACHE_DIR}");
	assert_member(plan->json, "steps.train", "50");
	assert_member(plan->json, "steps.precompile", "3");
	assert_non_null(json_object_get(key, KEY_RULES));
	assert_non_null(json_object_get(key, "compiler"));
	assert_true(json_equal(json_object_get(key, "compiler"),
			       js_path(plan->json, "compile.compiler")));
	assert_null(json_object_get(key, "depends_on"));
	assert_int_equal(strlen(js_str(json_object_get(plan->json, "source"), "digest")), 64);
}

/* A program in front of the command compiles for Neuron, unless the command has it already. */
static void phase_1_has_a_program_in_front(void **state)
{
	static const char *const commands[] = { "[python3, train.py]",
						"[neuron_parallel_compile, python3, train.py]" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(commands); i++) {
		AUTO(auto_free)
		char *lines = mem_format("engine: batch\nbatch: {job_queue: q}\ncommand: %s\n"
					 "image: \"r/i@sha256:%064d\"\n"
					 "workspace: \"s3://bucket/w\"\n"
					 "resources: {instance: trn1.32xlarge}\n"
					 "compile: {kind: neuron, cache_url: \"s3://bucket/c\"}\n",
					 commands[i], 0);
		AUTO(plan_freep) struct plan *plan = good_plan(lines);
		const json_t *first = plan_phase(plan->json, "precompile");
		const json_t *train = plan_phase(plan->json, "train");

		if (i == 0)
			assert_member(first, "front", "'neuron_parallel_compile'");
		else
			assert_null(json_object_get(first, "front"));
		assert_null(json_object_get(train, "front"));
		assert_member(first, "env.RUN_NEURON_PARALLEL_COMPILE", "'1'");
		assert_null(js_path(train, "env.RUN_NEURON_PARALLEL_COMPILE"));
		assert_member(train, "env.NEURON_COMPILE_CACHE_URL", "'s3://bucket/c'");
		assert_null(js_path(plan->json, "compile.compiler")); /* this machine's is not it */
	}
}

/* ---- the policy ---- */

static void a_policy_has_what_the_plan_says(void **state)
{
	json_auto_t *plan = quoted_json(
		"{'engine':'local','nodes':4,'width':{'workers':6},"
		"'compile':{'mode':'aot','on_incomplete':'train','jit_graphs':7,'on_exceed':'stop'}"
		","
		"'retry':{'attempts':8,'without_progress':9,'backoff_first_ms':10,'backoff_max_ms':"
		"11},"
		"'limits':{'attempts':12,'deadline_ms':13,'queue_ms':14,'start_ms':15,"
		"'unreachable_ms':16,'cost':17.5,'price':36},'checkpoint':{'grace_ms':18}}");
	struct flow_policy policy;

	(void)state;
	plan_policy(plan, NULL, "run-1", &policy);
	assert_true(policy.compiles);
	assert_true(policy.train_on_incomplete);
	assert_int_equal(policy.nodes, 4);
	assert_int_equal(policy.compile_workers, 6);
	assert_int_equal(policy.retry_attempts, 8);
	assert_int_equal(policy.retry_without_progress, 9);
	assert_int_equal(policy.backoff_first_ms, 10);
	assert_int_equal(policy.backoff_max_ms, 11);
	assert_false(policy.stop_on_mismatch);
	assert_int_equal(policy.drain_ms, 18 + 2 * 2000);
	assert_int_equal(policy.jit_graphs, 7);
	assert_int_equal(policy.jit_action, JIT_STOP);
	assert_int_equal(policy.attempts, 12);
	assert_int_equal(policy.deadline_ms, 13);
	assert_int_equal(policy.queue_ms, 14);
	assert_int_equal(policy.start_ms, 15);
	assert_int_equal(policy.unreachable_ms, 16);
	assert_true(policy.cost_usd == 17.5);
	assert_true(policy.price_per_ms == 36.0 * 4 / 3600000.0);
	assert_int_equal(policy.lead_ms, 0); /* its machines are ours */
	assert_int_equal(policy.health_ms, 0);
}

static void only_the_words_of_the_spec_are_meant(void **state)
{
	static const struct {
		const char *plan;
		bool trains, stops;
		enum jit_action action;
	} rows[] = {
		{ "{'compile':{'on_incomplete':'train','on_exceed':'recompile'},"
		  "'checkpoint':{'on_mismatch':'stop'}}",
		  true, true, JIT_RECOMPILE },
		{ "{'compile':{'on_incomplete':'stop','on_exceed':'warn'},"
		  "'checkpoint':{'on_mismatch':'warn'}}",
		  false, false, JIT_WARN },
		{ "{'compile':{'on_incomplete':'later','on_exceed':'later'},"
		  "'checkpoint':{'on_mismatch':'later'}}",
		  false, false, JIT_WARN },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = quoted_json(rows[i].plan);
		struct flow_policy policy;

		js_put_str(plan, "engine", "local");
		plan_policy(plan, NULL, "r", &policy);
		assert_int_equal(policy.train_on_incomplete, rows[i].trains);
		assert_int_equal(policy.stop_on_mismatch, rows[i].stops);
		assert_int_equal(policy.jit_action, rows[i].action);
	}
}

/* If there are several nodes, all are tested together once the last has come. */
static void a_check_of_nodes_takes_its_time(void **state)
{
	static const struct {
		const char *plan;
		int64_t want;
	} rows[] = {
		{ "{}", 0 },
		{ "{'nodes':2}", 0 },
		{ "{'health':{'timeout_ms':0},'nodes':2}", 0 },
		{ "{'health':{'timeout_ms':1}}", 1 },
		{ "{'health':{'timeout_ms':7},'nodes':1}", 7 },
		{ "{'health':{'timeout_ms':1},'nodes':2}", ORDER_CLAIM_WAIT_MS + 2 },
		{ "{'health':{'timeout_ms':7},'nodes':3}", ORDER_CLAIM_WAIT_MS + 14 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = quoted_json(rows[i].plan);

		assert_int_equal(health_plan_ms(plan), rows[i].want);
	}
}

static void a_policy_has_what_the_plan_leaves_open(void **state)
{
	json_auto_t *plan = quoted_json("{'engine':'batch'}");
	json_auto_t *compiles = quoted_json("{'engine':'batch','compile':{},"
					    "'checkpoint':{'grace_ms':0}}");
	json_auto_t *apart = quoted_json("{'engine':'batch','checkpoint':{'grace_ms':1}}");
	struct flow_policy policy;

	(void)state;
	plan_policy(plan, NULL, "r", &policy);
	assert_false(policy.compiles);
	assert_false(policy.train_on_incomplete);
	assert_false(policy.stop_on_mismatch);
	assert_int_equal(policy.nodes, 1);
	assert_int_equal(policy.compile_workers, 0);
	assert_int_equal(policy.retry_attempts, 1);
	assert_int_equal(policy.retry_without_progress, 1);
	assert_int_equal(policy.backoff_first_ms, 0);
	assert_int_equal(policy.backoff_max_ms, 0);
	assert_int_equal(policy.drain_ms, 0);
	assert_int_equal(policy.lead_ms, 0);
	assert_int_equal(policy.jit_graphs, -1);
	assert_int_equal(policy.jit_action, JIT_WARN);
	assert_int_equal(policy.attempts, 0);
	assert_int_equal(policy.deadline_ms, 0);
	assert_int_equal(policy.queue_ms, 0);
	assert_int_equal(policy.start_ms, 0);
	assert_int_equal(policy.unreachable_ms, 0);
	assert_true(policy.cost_usd == 0);
	assert_true(policy.price_per_ms == 0);
	plan_policy(compiles, NULL, "r", &policy);
	assert_true(policy.compiles);
	assert_int_equal(policy.jit_graphs, -1);
	assert_int_equal(policy.drain_ms, 0);
	plan_policy(apart, NULL, "r", &policy);
	assert_int_equal(policy.drain_ms, 4001);
	assert_int_equal(policy.lead_ms, 4001 + 30000);
}

/* ---- publishing the source ---- */

static void a_source_that_cannot_be_published_is_an_error(void **state)
{
	AUTO(plan_freep)
	struct plan *plan = good_plan("command: [python3, train.py]\nworkspace: ../file/work\n");
	AUTO(plan_freep)
	struct plan *good = good_plan("command: [python3, train.py]\nworkspace: ../ws\n");
	AUTO(auto_free) char *bundle = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct plan *none = NULL;

	(void)state;
	put_text("file", "in the way");
	assert_int_equal(plan_publish(plan, &err), -1);
	assert_non_null(strstr(err->message, "cannot publish the source: "));
	assert_non_null(err->hint);
	err_freep(&err);
	assert_int_equal(plan_publish(good, &err), 0);
	bundle = mem_format("%s/ws/%s", dir,
			    js_str(json_object_get(good->json, "source"), "bundle"));
	assert_true(fs_exists(bundle));
	plan_freep(&none);
}

/* ---- folders that stoker writes ---- */

static void assert_places(const char *want)
{
	AUTO(auto_free) char *path = fs_join(dir, OWN_PLACES_FILE);
	AUTO(sb_release) struct sb text = SB_INIT;
	struct err *err = NULL;

	assert_int_equal(fs_read(path, 4096, &text, &err), 0);
	assert_string_equal(text.text, want);
}

static void folders_of_plans_are_remembered_once(void **state)
{
	json_auto_t *plan = quoted_json("{'workspace':'/w','compile':{'cache':'/c'},"
					"'checkpoint':{'url':'/k'}}");
	/* a place elsewhere, and one whose name would be two */
	json_auto_t *remote = quoted_json("{'workspace':'s3://b/w','compile':{'cache':'/c\\n/d'}}");
	json_auto_t *more = quoted_json("{'workspace':'/w2','compile':{'cache':'/c'}}");
	AUTO(auto_strv) char **none = own_places_former(dir);
	AUTO(auto_free) char *path = fs_join(dir, OWN_PLACES_FILE);
	mode_t mask = umask(0);
	struct stat st;

	(void)state;
	assert_null(none[0]);
	own_places_remember(dir, remote);
	assert_false(fs_exists(path)); /* there is nothing to remember */
	own_places_remember(dir, plan);
	umask(mask);
	assert_places("/w\n/c\n/k\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	own_places_remember(dir, plan);
	assert_places("/w\n/c\n/k\n");
	own_places_remember(dir, more);
	assert_places("/w\n/c\n/k\n/w2\n");
	own_places_remember("/proc/none", plan); /* where it cannot be it goes without */
	put_text(OWN_PLACES_FILE, "/a\nrelative\n\n/b c\n/cut");
	{
		AUTO(auto_strv) char **places = own_places_former(dir);

		assert_string_equal(places[0], "/a");
		assert_string_equal(places[1], "/b c");
		assert_null(places[2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plan_has_what_the_spec_says),
		TEST(a_plan_has_what_the_spec_leaves_open),
		TEST(the_digest_of_a_plan_is_that_of_its_spec),
		TEST(the_check_of_nodes_is_in_the_plan_where_it_is_wanted),
		TEST(a_phase_has_the_environment_of_its_compiler),
		TEST(phase_1_has_a_program_in_front),
		TEST(devices_are_counted_where_there_are_any),
		TEST(a_policy_has_what_the_plan_says),
		TEST(only_the_words_of_the_spec_are_meant),
		TEST(a_check_of_nodes_takes_its_time),
		TEST(a_policy_has_what_the_plan_leaves_open),
		TEST(a_source_that_cannot_be_published_is_an_error),
		TEST(folders_of_plans_are_remembered_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
