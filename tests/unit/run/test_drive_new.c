/* A run that begins: what has to be there first, and what it leaves where something is not; and a
 * driver that takes a run up though something fails for now. See jobs/run/ready.c. */
#include "drive_fixture.h"

#include <errno.h>

#include "jobs/run/journal/lease.h"
#include "jobs/run/plan/own_places.h"

static int64_t pauses[16];
static size_t pause_count;

bool __wrap_cancel_pause(int64_t ms);

bool __wrap_cancel_pause(int64_t ms)
{
	if (pause_count < STK_LENGTH(pauses))
		pauses[pause_count++] = ms;
	return true;
}

static const char *moved_to; /* digest that the tag leads to now */
static int trials, refusals; /* of the conditions of writes; so many fail */
static enum exit_code refusal;
static int refusal_errno;

char *__wrap_image_plan_moved(const json_t *plan);
int __wrap_preflight_conditions(struct preflight *probe, const json_t *plan, struct err **err);

char *__wrap_image_plan_moved(const json_t *plan)
{
	(void)plan;
	return moved_to ? mem_copy(moved_to) : NULL;
}

int __wrap_preflight_conditions(struct preflight *probe, const json_t *plan, struct err **err)
{
	(void)probe, (void)plan;
	trials++;
	if (refusals == 0)
		return 0;
	refusals--;
	(void)!err_set(err, refusal, "the server keeps no conditions");
	(*err)->os_errno = refusal_errno;
	return -1;
}

static int kept; /* whether data of that id is kept; -1: not known */

int __wrap_run_find_kept(const struct journal *of, const char *run, struct err **err);

int __wrap_run_find_kept(const struct journal *of, const char *run, struct err **err)
{
	assert_ptr_equal(of, journal);
	assert_string_equal(run, "r1");
	return kept < 0 ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : kept;
}

static struct plan *the_plan;

static void put(const char *name, const char *text)
{
	AUTO(auto_free) char *path = in_dir(name);
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(folder, &err), 0);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

static void plan_of(const char *lines)
{
	AUTO(auto_free) char *file = in_dir("job/job.yaml");
	AUTO(auto_free)
	char *text = mem_format("version: 1\nname: n\nsource: {path: ., include: [train.py]}\n"
				"command: [python3, train.py]\nworkspace: \"dir:%s/ws\"\n%s",
				dir, lines);
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	put("job/job.yaml", text);
	put("job/train.py", "train()\n");
	if (spec_load(file, NULL, NULL, &spec, &problems, &err) < 0 ||
	    plan_make(spec, journal, &the_plan, &err) < 0)
		fail_msg("%s", err ? err->message : "the spec is wrong");
	options.plan = the_plan;
}

static int begin(void **state)
{
	pause_count = 0;
	moved_to = NULL;
	kept = 0;
	trials = refusals = refusal_errno = 0;
	refusal = EXIT_REFUSED;
	return set_up(state);
}

static int end(void **state)
{
	plan_freep(&the_plan);
	return tear_down(state);
}

static void begin_fails(enum exit_code code, const char *words, const char *hint)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(driver_begin(journal, &options, &err), -1);
	if (!strstr(err->message, words))
		fail_msg("%s", err->message);
	assert_int_equal(err->code, code);
	if (hint)
		assert_string_equal(err->hint, hint);
	assert_told("");
}

static void a_run_that_begins_is_journalled_with_its_plan(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *places = in_dir("state/" OWN_PLACES_FILE);
	AUTO(auto_free) char *spec = in_dir("job/job.yaml");
	AUTO(auto_free) char *bundle = NULL;
	const json_t *created;

	(void)state;
	plan_of("");
	if (driver_begin(journal, &options, &err) < 0)
		fail_msg("%s", err->message);
	assert_told("run.created");
	created = newest_row("run.created");
	assert_string_equal(js_str(created, "name"), "n");
	assert_string_equal(js_str(created, "engine"), "local");
	assert_string_equal(js_str(created, "spec"), spec);
	assert_string_equal(js_str(created, "plan_digest"), the_plan->digest);
	assert_true(json_equal(json_object_get(created, "plan"), the_plan->json));
	assert_true(js_int(created, "seed", -1) >= 0);
	assert_int_equal(play.checks, 1);
	assert_int_equal(play.submits, 0);
	assert_int_equal(pause_count, 0);
	/* what a run needs lies there by then */
	bundle = mem_format("%s/ws/%s", dir,
			    js_str(json_object_get(the_plan->json, "source"), "bundle"));
	assert_true(fs_exists(bundle));
	assert_true(fs_exists(places));
	/* once; the same plan goes on */
	assert_int_equal(driver_begin(journal, &options, &err), 0);
	assert_told("run.created");
	assert_int_equal(play.checks, 2);
	drive_ends(EXIT_DONE);
	assert_told("run.created driver.took_over cache.checked attempt.intended attempt.submitted "
		    "attempt.ended run.ended");
	/* and one that has ended asks nobody */
	play.checks = 0;
	assert_int_equal(driver_begin(journal, &options, &err), 0);
	assert_int_equal(play.checks, 0);
}

static void a_run_of_another_plan_is_refused(void **state)
{
	AUTO(auto_free) char *lines = mem_format("env: {A: '%0200d'}\n", 0);
	AUTO(auto_free)
	char *cut = mem_format("run r1 belongs to another plan; what has changed since: "
			       "env.A: null -> \"%078d…",
			       0);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	plan_of("");
	assert_int_equal(driver_begin(journal, &options, &err), 0);
	plan_freep(&the_plan);
	plan_of("env: {A: b}\n");
	json_array_clear(recorded);
	begin_fails(
		EXIT_SPEC,
		"run r1 belongs to another plan; what has changed since: env.A: null -> \"b\"",
		"choose another --id, or undo the change; 'stoker diff r1 SPEC' shows all of it");
	plan_freep(&the_plan);
	plan_of(lines);
	begin_fails(
		EXIT_SPEC, cut,
		"choose another --id, or undo the change; 'stoker diff r1 SPEC' shows all of it");
}

/* A new run is not waited for: whoever began it is there, and sees the error. */
static void a_run_does_not_begin_without_its_engine(void **state)
{
	(void)state;
	plan_of("");
	play.silent_checks = 1;
	begin_fails(EXIT_UNREACHABLE, "the engine does not answer", NULL);
	assert_int_equal(pause_count, 0);
	assert_int_equal(play.checks, 1);
}

static void a_run_does_not_begin_without_its_secrets(void **state)
{
	(void)state;
	unsetenv("NO_SUCH_SECRET");
	plan_of("secrets: {TOKEN: \"env:NO_SUCH_SECRET\"}\n");
	begin_fails(EXIT_REFUSED, "NO_SUCH_SECRET", NULL);
}

static void a_run_does_not_begin_without_its_source(void **state)
{
	(void)state;
	plan_of("");
	put("ws", "");
	begin_fails(EXIT_REFUSED, "", NULL);
}

static void the_folder_of_the_cache_is_made_first(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *folder = in_dir("job/cache/deep");

	(void)state;
	plan_of("compile: {kind: jax, cache_url: cache/deep}\n");
	put("job/cache", "");
	begin_fails(EXIT_REFUSED, "cannot make the folder of the compile cache",
		    "correct compile.cache_url, or make that folder");
	{
		AUTO(auto_free) char *file = in_dir("job/cache");

		assert_int_equal(unlink(file), 0);
	}
	if (driver_begin(journal, &options, &err) < 0)
		fail_msg("%s", err->message);
	assert_true(fs_is_dir(folder));
}

/* The new run would take it for its own. */
static void the_id_of_data_that_is_kept_begins_no_other_run(void **state)
{
	(void)state;
	plan_of("");
	kept = 1;
	begin_fails(EXIT_SPEC,
		    "an earlier run 'r1' was removed, and the only copies of its checkpoints or "
		    "outputs are kept under that id",
		    "choose another --id, or remove the copies with 'stoker rm r1 "
		    "--with-checkpoints'");
	kept = -1;
	begin_fails(EXIT_UNREACHABLE, "the network is gone", NULL);
}

static int create_meanwhile(struct engine *engine, struct err **err)
{
	struct event ev = { .kind = EV_RUN_CREATED };

	(void)engine, (void)err;
	appended = 0;
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, the_plan->json);
	EVENT_SET_STR(&ev, plan_digest, the_plan->digest);
	EVENT_SET(&ev, seed, 1);
	append(&ev);
	return 0;
}

static void a_run_begins_once(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	plan_of("");
	play_ops.check = create_meanwhile;
	assert_int_equal(driver_begin(journal, &options, &err), -1);
	assert_string_equal(err->message, "run r1 has just been created by another driver");
	assert_int_equal(err->code, EXIT_BUSY);
}

static int obstruct_first_event(struct engine *engine, struct err **err)
{
	AUTO(auto_free) char *place = mem_format("%s/objects/runs/r1/events/%012d.json", dir, 1);

	(void)engine;
	return fs_mkdirs(place, err);
}

static void a_run_that_cannot_be_journalled_has_not_begun(void **state)
{
	AUTO(auto_free) char *url = mem_format("dir:%s/objects", dir);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	plan_of("");
	journal_freep(&journal);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &journal, &err), 0);
	play_ops.check = obstruct_first_event;
	begin_fails(EXIT_REFUSED, "event 1 of run r1", NULL);
}

/* ---- a run that exists ---- */

/* The take-up is tried a few times, after ever longer pauses. */
static void a_driver_is_patient_with_a_run_that_exists(void **state)
{
	(void)state;
	create(NULL);
	play.silent_checks = 4;
	drive_ends(EXIT_DONE);
	assert_int_equal(pause_count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pauses[i], 300 << i);
	assert_int_equal(play.checks, 5);
}

static void a_driver_is_not_patient_for_ever(void **state)
{
	(void)state;
	create(NULL);
	play.silent_checks = 5;
	drive_fails(EXIT_UNREACHABLE, "the engine does not answer", NULL);
	assert_int_equal(pause_count, 4);
	assert_told("");
}

static int refuse_check(struct engine *engine, struct err **err)
{
	(void)engine;
	play.checks++;
	return err_set(err, EXIT_REFUSED, "no such queue");
}

static void what_does_not_pass_by_itself_is_not_waited_for(void **state)
{
	(void)state;
	create(NULL);
	play_ops.check = refuse_check;
	drive_fails(EXIT_REFUSED, "no such queue", NULL);
	assert_int_equal(pause_count, 0);
	assert_int_equal(play.checks, 1);
}

static void a_plan_that_is_given_again_is_waited_with_too(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	plan_of("");
	assert_int_equal(driver_begin(journal, &options, &err), 0);
	play.silent_checks = 1;
	drive_ends(EXIT_DONE);
	assert_int_equal(pause_count, 1);
}

static int refuse_open(const struct engine_where *where, struct engine **ret, struct err **err)
{
	(void)where, (void)ret;
	return err_set(err, EXIT_REFUSED, "no such account");
}

static void an_engine_that_cannot_be_opened_ends_the_driver(void **state)
{
	(void)state;
	create(NULL);
	play_ops.open = refuse_open;
	drive_fails(EXIT_REFUSED, "no such account", NULL);
	assert_told("");
}

static void what_another_version_has_begun_is_named(void **state)
{
	(void)state;
	create("'engine':'newer'");
	drive_fails(EXIT_REFUSED, "engine 'newer' is not part of this version", NULL);
}

static void a_compiler_of_another_version_is_named(void **state)
{
	(void)state;
	create("'compile':{'kind':'newer','cache':'/c'}");
	drive_fails(EXIT_REFUSED, "compiler kind 'newer' is not part of this version", NULL);
}

static void a_workspace_that_cannot_be_opened_is_named(void **state)
{
	(void)state;
	create("'workspace':'s3://b'");
	drive_fails(EXIT_REFUSED, "'s3://b' names no bucket", NULL);
}

/* ---- changes since the run began ---- */

static void a_tag_that_has_moved_is_told_and_not_followed(void **state)
{
	const json_t *row;

	(void)state;
	moved_to = "sha256:2";
	create("'image':{'reference':'i:1','digest':'sha256:1'}");
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over image.moved cache.checked attempt.intended attempt.submitted "
		    "attempt.ended run.ended");
	assert_string_equal(newest("image.moved", "reason"),
			    "the tag of 'i:1' has moved: sha256:1 → sha256:2; this run stays with "
			    "the first");
	row = json_array_get(json_object_get(newest_row("image.moved"), "changed"), 0);
	assert_string_equal(js_str(row, "field"), "image");
	assert_string_equal(js_str(row, "old"), "sha256:1");
	assert_string_equal(js_str(row, "new"), "sha256:2");
}

static void a_run_that_has_just_begun_has_its_image(void **state)
{
	(void)state;
	moved_to = "sha256:2";
	plan_of("");
	drive_ends(EXIT_DONE);
	assert_told("run.created driver.took_over cache.checked attempt.intended attempt.submitted "
		    "attempt.ended run.ended");
	assert_int_equal(trials, 0); /* all places were tried before it began */
}

static void who_cannot_trust_a_bucket_leaves_the_run_to_another(void **state)
{
	(void)state;
	create(NULL);
	refusals = 1;
	drive_fails(EXIT_REFUSED, "the server keeps no conditions",
		    "run r1 is safe; 'stoker resume r1' continues it");
	assert_told("driver.took_over");
	assert_int_equal(play.submits, 0);
	assert_int_equal(trials, 1);
}

static void a_bucket_that_does_not_answer_is_tried_again_and_trusted_once(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		create(NULL);
		refusals = 1;
		refusal = i ? EXIT_REFUSED : EXIT_UNREACHABLE;
		refusal_errno = i ? EAGAIN : 0;
		trials = 0;
		drive_ends(EXIT_DONE);
		assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
			    "attempt.ended run.ended");
		assert_int_equal(trials, 2);
		assert_int_equal(aways, 1);
		(void)end(NULL);
		(void)begin(NULL);
	}
}

/* The service may answer another driver. */
static void who_cannot_ask_a_bucket_leaves_and_says_so(void **state)
{
	(void)state;
	create(NULL);
	refusals = 1;
	refusal = EXIT_UNREACHABLE;
	refusal_errno = EINVAL;
	drive_fails(EXIT_UNREACHABLE, "the server keeps no conditions", NULL);
	assert_told("driver.took_over driver.left");
	assert_string_equal(newest("driver.left", "reason"), "the server keeps no conditions");
}

/* The time is over, whatever the workspace answers. */
static void a_job_is_stopped_by_a_driver_that_cannot_trust_a_bucket(void **state)
{
	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	append_stop_ago(1000);
	play.ends_at_stop = 1;
	refusals = 2;
	refusal = EXIT_UNREACHABLE;
	drive_ends(EXIT_STOPPED);
	assert_true(play.stops >= 2);
	(void)end(NULL);
	(void)begin(NULL);
	/* but not one whose time is not over, nor by one that stands down */
	create_under_way(HOUR_MS, true, NULL);
	refusals = 2;
	refusal = EXIT_UNREACHABLE;
	drive_ends(EXIT_DONE);
	assert_int_equal(play.stops, 0);
	(void)end(NULL);
	(void)begin(NULL);
	create_under_way(HOUR_MS, true, NULL);
	append_stop_ago(1000);
	refusals = 1;
	drive_fails(EXIT_REFUSED, "the server keeps no conditions", NULL);
	assert_int_equal(play.stops, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_that_begins_is_journalled_with_its_plan),
		TEST(a_run_of_another_plan_is_refused),
		TEST(a_run_does_not_begin_without_its_engine),
		TEST(a_run_does_not_begin_without_its_secrets),
		TEST(a_run_does_not_begin_without_its_source),
		TEST(the_folder_of_the_cache_is_made_first),
		TEST(the_id_of_data_that_is_kept_begins_no_other_run),
		TEST(a_run_begins_once),
		TEST(a_run_that_cannot_be_journalled_has_not_begun),
		TEST(a_driver_is_patient_with_a_run_that_exists),
		TEST(a_driver_is_not_patient_for_ever),
		TEST(what_does_not_pass_by_itself_is_not_waited_for),
		TEST(a_plan_that_is_given_again_is_waited_with_too),
		TEST(an_engine_that_cannot_be_opened_ends_the_driver),
		TEST(what_another_version_has_begun_is_named),
		TEST(a_compiler_of_another_version_is_named),
		TEST(a_workspace_that_cannot_be_opened_is_named),
		TEST(a_tag_that_has_moved_is_told_and_not_followed),
		TEST(a_run_that_has_just_begun_has_its_image),
		TEST(who_cannot_trust_a_bucket_leaves_the_run_to_another),
		TEST(a_bucket_that_does_not_answer_is_tried_again_and_trusted_once),
		TEST(who_cannot_ask_a_bucket_leaves_and_says_so),
		TEST(a_job_is_stopped_by_a_driver_that_cannot_trust_a_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
