/* The cache before and after phase 1, where it cannot be read or written: there is no verdict then,
 * and once it can be the verdict is the right one. See jobs/run/cache_gate.c. */
#undef TEST_DATA
#define TEST_DATA SOURCE_ROOT "/tests/unit/cache"
#include "tests/unit/cache/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "faulty_store.h"

#include "attempt_fixture.h"

#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/run/journal/lease.h"

#define LOG_FG                                                                                     \
	MISS("jit_f", KEY_F)                                                                       \
	WRITING("jit_f", KEY_F) MISS("jit_g", KEY_G) WRITING("jit_g", KEY_G)
#define BATCH          32
#define COMPILER(last) "{'python':'3.10','jax':'0.10." last "'}"

static struct faulty_store *below; /* the driver's own way to the cache */
static char cache[80];

/* A phase 1 of two graphs, which lie in the cache. */
static void begin_phase_1(void)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *compile;

	(void)begin(PHASE_PRECOMPILE,
		    "{'name':'n','nodes':1,'metrics':[],'compile':{'kind':'jax','quiet_ms':0,"
		    "'ingredients':{'compiler':" COMPILER("2") "}}}");
	driver.kind = jax();
	snprintf(cache, sizeof cache, "%s/cache", dir);
	compile = json_object_get(driver.plan, "compile");
	js_put_str(compile, "cache", cache);
	js_put(json_object_get(compile, "ingredients"), "batch_size", json_integer(BATCH));
	below = faulty_new(cache);
	below->base.directory = cache;
	driver.cache = &below->base;
	write_entry(cache, KEY_F, "f");
	write_entry(cache, KEY_G, "g");
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
}

static void end_phase_1(void)
{
	lease_freep(&driver.lease);
	end();
}

/* Writes the manifest that a job of this log proves; the plan has its key if the ingredients are
 * the same. `ret` may be NULL. */
static void prove(int batch_size, const char *log, struct compile_manifest **ret)
{
	AUTO(store_freep) struct store *store = open_cache(cache);
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(log);
	json_auto_t *compiler = quoted_json(COMPILER("2"));
	json_auto_t *ingredients =
		json_pack("{s:O, s:i}", "compiler", compiler, "batch_size", batch_size);
	struct lock_facts facts = { .kind = jax(),
				    .store = store,
				    .name = "n",
				    .run = "r1",
				    .now = { 5000 },
				    .compiler = compiler,
				    .ingredients = ingredients };
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	struct err *err = NULL;

	compile_manifest_write(&facts, tally, &lock, NULL, &err);
	assert_no_error(err);
	if (batch_size == BATCH)
		js_put_str(json_object_get(driver.plan, "compile"), "graph_key", lock->graph_key);
	if (ret)
		*ret = TAKE(lock);
}

static void is_gone(struct err **err)
{
	assert_non_null(*err);
	assert_contains((*err)->message, "the network is gone");
	err_freep(err);
}

/* Tries it with each of its calls lost, in a phase 1 of its own; returns how many there are. */
static int at_each_call(void (*prepare)(void), int (*act)(struct err **err), void (*check)(void))
{
	int calls = -1, lost = 1;

	while (lost > 0) {
		AUTO(err_freep) struct err *err = NULL;

		begin_phase_1();
		prepare();
		faulty_lose(below, ++calls, 1);
		if (act(&err) < 0) {
			is_gone(&err);
			assert_int_equal(count_of("cache.checked") + count_of("cache.verified"), 0);
			act(&err);
			assert_no_error(err);
		}
		lost = below->calls_lost;
		assert_int_equal(count_of("cache.checked") + count_of("cache.verified"), 1);
		check();
		end_phase_1();
	}
	return calls;
}

/* ---- checks before phase 1 ---- */

static int check_cache(struct err **err)
{
	return cache_gate_check(&driver, err);
}

/* Another run has compiled one of its graphs anew, and its manifest was not refreshed yet. */
static void fall_behind(void)
{
	AUTO(compile_manifest_freep) struct compile_manifest *ours = NULL;
	AUTO(store_freep) struct store *store = open_cache(cache);
	char tag[STORE_TAG];
	struct err *err = NULL;

	prove(BATCH, LOG_FG, &ours);
	write_entry(cache, KEY_F, "compiled once more");
	prove(BATCH + 1, HIT("jit_f", KEY_F), NULL);
	assert_int_equal(compile_manifest_tag(store, ours->graph_key, tag, &err), 1);
	assert_int_equal(compile_manifest_file_replace(store, ours, tag, &err), 1);
}

static void is_warm(void)
{
	assert_string_equal(newest("cache.checked", "verdict"), "warm");
	assert_contains(newest("cache.checked", "reason"),
			"taken over from other compile manifests: 1");
	assert_true(has_entry(cache, KEY_F));
}

static void what_another_run_has_proved_is_taken_over_before_the_verdict(void **state)
{
	(void)state;
	assert_in_range(at_each_call(fall_behind, check_cache, is_warm), 3, 100);
}

static void damage_entry(void)
{
	prove(BATCH, LOG_FG, NULL);
	cut_entry(cache, KEY_F, 100);
}

static void is_repaired(void)
{
	assert_string_equal(newest("cache.checked", "verdict"), "cold");
	assert_false(has_entry(cache, KEY_F));
	assert_true(has_entry(cache, KEY_G));
	assert_string_equal(newest("cache.repaired", "reason"),
			    "entries of the compile manifest were damaged");
}

static void a_damaged_entry_is_removed_before_the_verdict(void **state)
{
	(void)state;
	assert_in_range(at_each_call(damage_entry, check_cache, is_repaired), 2, 100);
}

/* ---- verdict after phase 1 ---- */

static int verify(struct err **err)
{
	int64_t wait_ms = 0;
	int result;

	while ((result = cache_gate_verify(&driver, &wait_ms, err)) == 0 && wait_ms > 0)
		driver.seen_at.ms -= wait_ms; /* as if the time had passed */
	return result;
}

/* The plan names another compiler, of which an earlier manifest of this run tells. */
static void end_with_another_compiler(void)
{
	AUTO(auto_free)
	char *report = quoted("{'v':1,'exit':0,'compiler':{'found':" COMPILER("3") "}}");
	AUTO(err_freep) struct err *err = NULL;

	prove(BATCH, LOG_FG, NULL);
	sb_adds(&said.logs[0], LOG_FG);
	assert_int_equal(store_put(driver.workspace, "runs/r1/precompile-1/node-0/report.json",
				   report, strlen(report), &err),
			 0);
}

static bool has_manifest(const char *key)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(store_freep) struct store *store = open_cache(cache);
	AUTO(auto_free) char *damage = NULL;
	struct err *err = NULL;
	int found = compile_manifest_load(store, key, &lock, &damage, &err);

	assert_no_error(err);
	assert_null(damage);
	return found > 0;
}

static void is_complete(void)
{
	AUTO(auto_free) char *key = mem_copy(newest("cache.verified", "graph_key"));

	assert_true(json_is_true(newest_value("cache.verified", "complete")));
	assert_int_equal(strlen(key), SHA256_HEX - 1);
	assert_string_not_equal(key, plan_graph_key(driver.plan));
	assert_true(has_manifest(key));
	/* A manifest of the plan's key could name graphs of either compiler. */
	assert_false(has_manifest(plan_graph_key(driver.plan)));
}

static void a_phase_1_is_verified_once_its_manifest_is_written(void **state)
{
	(void)state;
	assert_in_range(at_each_call(end_with_another_compiler, verify, is_complete), 5, 200);
}

static void without_its_log_there_is_no_verdict(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *broken = quoted_json("[{'name':'step','regex':'step ('}]");
	json_auto_t *none = json_array();

	(void)state;
	begin_phase_1();
	end_with_another_compiler();
	json_object_set(driver.plan, "metrics", broken);
	watch_close(&driver);
	assert_int_equal(verify(&err), -1);
	assert_contains(err->message, "metric 'step'");
	err_freep(&err);
	json_object_set(driver.plan, "metrics", none);
	said.away = true;
	assert_away(verify(&err), &err);
	assert_recorded(0);
	assert_int_equal(verify(&err), 0);
	is_complete();
	end_phase_1();
}

/* ---- folders of the cache ---- */

static void the_folder_of_the_cache_is_made_for_others_too(void **state)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	mode_t before = umask(022);
	struct stat meta;

	(void)state;
	begin_phase_1();
	path = mem_format("%s/a/b", dir);
	json_object_del(json_object_get(driver.plan, "compile"), "cache");
	assert_int_equal(cache_gate_make(&driver, &err), 0); /* no place is named */
	js_put_str(json_object_get(driver.plan, "compile"), "cache", "s3://b/x");
	assert_int_equal(cache_gate_make(&driver, &err), 0);
	js_put_str(json_object_get(driver.plan, "compile"), "cache", path);
	assert_int_equal(cache_gate_make(&driver, &err), 0);
	assert_int_equal(stat(path, &meta), 0);
	assert_int_equal(meta.st_mode & 0777, 0755);
	assert_int_equal(cache_gate_make(&driver, &err), 0);
	umask(before);
	end_phase_1();
}

static void folders_that_cannot_be_written_are_named_before_phase_1(void **state)
{
	static const char *const names[] = { "cache", "cache/stoker" };
	AUTO(err_freep) struct err *err = NULL;
	bool is_root = geteuid() == 0;

	(void)state;
	begin_phase_1();
	assert_int_equal(chmod(dir, 0755), 0);
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(auto_free) char *path = fs_join(dir, names[i]);
		AUTO(auto_free)
		char *words =
			mem_format("cannot write to the folder '%s' of the compile cache", path);

		assert_int_equal(cache_gate_probe(&driver, &err), 0); /* also if it is not there */
		assert_int_equal(fs_mkdirs(path, &err), 0);
		assert_int_equal(cache_gate_probe(&driver, &err), 0);
		assert_int_equal(chmod(path, 0555), 0);
		if (is_root)
			assert_int_equal(seteuid(65534), 0);
		assert_int_equal(cache_gate_probe(&driver, &err), -1);
		if (is_root)
			assert_int_equal(seteuid(0), 0);
		assert_int_equal(err->code, EXIT_REFUSED);
		if (!strstr(err->message, words))
			fail_msg("%s", err->message);
		assert_string_equal(err->hint, "make the folder writable for the user of the job, "
					       "or name another compile.cache_url");
		err_freep(&err);
		assert_int_equal(chmod(path, 0777), 0);
	}
	end_phase_1();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_another_run_has_proved_is_taken_over_before_the_verdict),
		cmocka_unit_test(a_damaged_entry_is_removed_before_the_verdict),
		cmocka_unit_test(a_phase_1_is_verified_once_its_manifest_is_written),
		cmocka_unit_test(without_its_log_there_is_no_verdict),
		cmocka_unit_test(the_folder_of_the_cache_is_made_for_others_too),
		cmocka_unit_test(folders_that_cannot_be_written_are_named_before_phase_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
