/* A stop that cannot be journalled, on the side of the one who requests it: see jobs/run/beside.h.
 * Time passes in pauses alone. */
#include "drive_fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "jobs/run/beside.h"
#include "jobs/run/journal/lease_internal.h"
#include "jobs/store/order.h"

static struct mono paused; /* in all */
static int pauses, pauses_max;

struct mono __wrap_clock_mono_now(void);
bool __wrap_cancel_pause(int64_t ms);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ 1000000 + paused.ms };
}

bool __wrap_cancel_pause(int64_t ms)
{
	assert_int_equal(ms, 200);
	paused.ms += ms;
	return ++pauses < pauses_max;
}

static char steps[512];
static struct stop_beside stop;

static void note_step(void *arg, const char *what)
{
	size_t len = strlen(steps);

	assert_ptr_equal(arg, &stop);
	snprintf(steps + len, sizeof steps - len, "%s%s", len ? "; " : "", what);
}

static void stop_run(void)
{
	AUTO(err_freep) struct err *err = NULL;

	steps[0] = '\0';
	paused.ms = pauses = 0;
	pauses_max = 100000;
	memset(&stop, 'x', sizeof stop);
	if (beside_stop(journal, "r1", "no room", note_step, &stop, &stop, &err) < 0)
		fail_msg("%s", err->message);
}

static json_t *left_stop(void)
{
	AUTO(auto_free) char *path = in_dir("ws/runs/r1/" STOP_FILE);
	AUTO(err_freep) struct err *err = NULL;
	json_t *body = NULL;

	if (fs_exists(path) && js_load(path, 4096, &body, &err) < 0)
		fail_msg("%s", err->message);
	return body;
}

/* ---- stops without a driver ---- */

static void the_engine_is_asked_where_no_driver_lives(void **state)
{
	json_auto_t *left = NULL;

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	play.ends_at_stop = 1;
	stop_run();
	assert_string_equal(steps, "the engine was asked to stop the job");
	assert_true(stop.left && stop.ended);
	assert_false(stop.over || stop.damaged || stop.idle || stop.driven);
	assert_string_equal(stop.job, "stk-r1-train-1");
	assert_string_equal(stop.by_hand, "");
	assert_string_equal(stop.holder, "");
	assert_string_equal(stop.trouble, "");
	assert_int_equal(play.stops, 1);
	assert_int_equal(play.stop_grace_ms, 1234);
	assert_string_equal(play.prefix, "runs/r1/train-1/");
	assert_int_equal(pauses, 0);
	left = left_stop();
	assert_int_equal(js_int(left, "v", 0), 1);
	assert_string_equal(js_str(left, "reason"), "no room");
	assert_true(js_int(left, "at", 0) > clock_utc_now().ms - HOUR_MS);
}

/* Nobody has to be told of the steps. */
static void the_steps_need_not_be_told(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	play.ends_at_stop = 1;
	assert_int_equal(beside_stop(journal, "r1", "x", NULL, NULL, &stop, &err), 0);
	assert_true(stop.ended);
}

static void a_job_that_goes_on_is_waited_for_its_grace_and_a_while(void **state)
{
	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	play.until_end = 1000000;
	stop_run();
	assert_false(stop.ended);
	assert_true(stop.left);
	assert_in_range(paused.ms, 1234 + 20000, 1234 + 20000 + 199);
	assert_int_equal(play.stops, 1);
	/* an interrupt ends the wait, and one that gets no answer is one that goes on */
	play.silent_describes = 1;
	play.until_end = 2;
	stop_run();
	assert_true(stop.ended);
	assert_int_equal(pauses, 3);
}

static void an_interrupt_ends_the_wait(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	play.until_end = 1000000;
	pauses = 0;
	pauses_max = 3;
	assert_int_equal(beside_stop(journal, "r1", "x", NULL, NULL, &stop, &err), 0);
	assert_false(stop.ended);
	assert_int_equal(pauses, 3);
}

static int two_processes(struct engine *engine, const char *name, const char *prefix, pid_t *ret,
			 int max)
{
	(void)engine;
	assert_string_equal(name, "stk-r1-train-1");
	assert_string_equal(prefix, "runs/r1/train-1/");
	assert_int_equal(max, 16);
	ret[0] = 11;
	ret[1] = 222;
	return 2;
}

static void what_a_person_could_do_is_named(void **state)
{
	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	play.ends_at_stop = 1;
	play_ops.wake = two_processes;
	stop_run();
	assert_string_equal(stop.by_hand, "kill 11 222");
	play_ops.by_hand = "aws stop --name";
	stop_run();
	assert_string_equal(stop.by_hand, "aws stop --name stk-r1-train-1");
}

static void end_once_drained(int number)
{
	AUTO(auto_free) char *path = in_dir("ws/runs/r1/train-1/" DRAIN_FILE);

	(void)number;
	play.until_end = fs_exists(path) ? 0 : 1;
}

static void the_agents_are_told_where_the_engine_refuses(void **state)
{
	AUTO(auto_free) char *file = in_dir("ws/runs/r1/train-1");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	play.silent_stops = 2;
	play.at_describe = end_once_drained;
	stop_run();
	assert_string_equal(steps, "the agents were asked to save and stop");
	assert_string_equal(stop.trouble, "the engine does not answer");
	assert_true(stop.ended);
	/* nor can they be told */
	assert_int_equal(fs_remove_tree(file, &err), 0);
	assert_int_equal(fs_write_atomic(file, "", 0, 0600, &err), 0);
	stop_run();
	assert_string_equal(steps, "");
	assert_string_equal(stop.trouble, "the engine does not answer");
	assert_false(stop.ended);
	assert_true(stop.left);
	assert_int_equal(pauses, 0);
}

static void a_run_without_a_job_is_left_to_its_next_driver(void **state)
{
	json_auto_t *left = NULL;

	(void)state;
	create(NULL);
	stop_run();
	assert_true(stop.idle && stop.left);
	assert_false(stop.ended || stop.over || stop.driven);
	assert_string_equal(stop.job, "");
	assert_string_equal(steps, "");
	assert_int_equal(play.stops + play.describes, 0);
	left = left_stop();
	assert_non_null(left);
}

/* The submission may have arrived. */
static void a_job_that_was_intended_is_stopped_too(void **state)
{
	struct event ev = { .kind = EV_CACHE_CHECKED };

	(void)state;
	create(NULL);
	EVENT_SET(&ev, verdict, CACHE_NONE);
	append(&ev);
	ev = (struct event){ .kind = EV_ATTEMPT_INTENDED };
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET_STR(&ev, job, "stk-r1-train-1");
	EVENT_SET_STR(&ev, nonce, "x");
	append(&ev);
	play.ends_at_stop = 1;
	stop_run();
	assert_false(stop.idle);
	assert_true(stop.ended);
	assert_string_equal(stop.job, "stk-r1-train-1");
}

static void a_run_that_is_over_needs_no_stop(void **state)
{
	json_auto_t *left = NULL;

	(void)state;
	create(NULL);
	wait_max = 0;
	paused.ms = 0;
	drive_ends(EXIT_DONE);
	play.describes = 0;
	stop_run();
	assert_true(stop.over);
	assert_false(stop.left || stop.ended || stop.idle);
	assert_int_equal(play.describes, 0);
	left = left_stop();
	assert_null(left);
}

/* ---- stops with a driver ---- */

static volatile sig_atomic_t signals;

static void obey(int signo)
{
	(void)signo;
	signals++;
	if (play.ends_at_stop == 0)
		play.until_end = 2;
}

static void a_driver_is_signalled_and_given_time(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *holder = mem_format("pid %ld on ", (long)getpid());

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	assert_int_equal(lease_take(journal, "r1", NULL, NULL, NULL, &lease, &err), 0);
	signal(SIGUSR1, obey);
	signals = 0;
	play.until_end = 1000000;
	stop_run();
	assert_int_equal(signals, 1);
	assert_string_equal(steps, "the driver was asked to stop the run");
	assert_true(stop.driven && stop.ended && stop.left);
	assert_memory_equal(stop.holder, holder, strlen(holder));
	assert_int_equal(play.stops, 0);
	assert_int_equal(pauses, 2);
	signal(SIGUSR1, SIG_DFL);
}

/* A drain lasts as long as the training may save, and the engine's time; then the engine is asked.
 */
static void a_driver_that_does_not_obey_is_passed_over(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t obeys_ms = 15000 + 1234 + 60000 + 4000;

	(void)state;
	create_under_way(HOUR_MS, true,
			 "'checkpoint':{'kind':'auto','sync':'none','grace_ms':60000,"
			 "'on_mismatch':'stop'}");
	assert_int_equal(lease_take(journal, "r1", NULL, NULL, NULL, &lease, &err), 0);
	signal(SIGUSR1, obey);
	play.ends_at_stop = 1;
	stop_run();
	assert_string_equal(steps, "the driver was asked to stop the run; the engine was asked to "
				   "stop the job");
	assert_true(stop.driven && stop.ended);
	assert_int_equal(play.stops, 1);
	assert_in_range(paused.ms, obeys_ms, obeys_ms + 199);
	signal(SIGUSR1, SIG_DFL);
}

/* A driver on another machine finds the request in the workspace, and is not signalled. */
static void a_driver_elsewhere_is_given_time_if_the_request_lies_there(void **state)
{
	(void)state;
	for (int left = 0; left < 2; left++) {
		AUTO(lease_freep) struct lease *lease = NULL;
		AUTO(auto_free) char *url = mem_format("dir:%s/objects", dir);
		AUTO(auto_free) char *path = in_dir("objects/runs/r1/" LEASE_OBJECT);
		AUTO(auto_free) char *text = NULL;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *body = NULL;

		journal_freep(&journal);
		assert_int_equal(journal_open(url, JOURNAL_WRITE, &journal, &err), 0);
		create_under_way(HOUR_MS, true, NULL);
		assert_int_equal(lease_take(journal, "r1", NULL, NULL, NULL, &lease, &err), 0);
		assert_int_equal(js_load(path, 4096, &body, &err), 0);
		js_put_str(body, "place", "elsewhere");
		text = js_line(body);
		assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
		if (!left) {
			AUTO(auto_free) char *ws = in_dir("ws");
			AUTO(auto_free) char *runs = in_dir("ws/runs");

			assert_int_equal(fs_mkdirs(ws, &err), 0);
			assert_int_equal(fs_write_atomic(runs, "", 0, 0600, &err), 0);
		}
		play.ends_at_stop = 1;
		stop_run();
		assert_true(stop.driven && stop.ended);
		assert_int_equal(stop.left, left);
		assert_string_equal(steps,
				    left ? "the driver was asked to stop the run; the engine "
					   "was asked to stop the job"
					 : "the engine was asked to stop the job");
		assert_int_equal(pauses > 0, left);
		lease_freep(&lease);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

/* ---- stops on a full disk ---- */

static void a_disk_without_room_has_room_for_a_name(void **state)
{
	AUTO(auto_free) char *path = in_dir("ws/runs/r1/" STOP_FILE);
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;
	struct rlimit before, none;
	struct stat meta;

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	assert_int_equal(fs_mkdirs(folder, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	none = before;
	none.rlim_cur = 0;
	play.ends_at_stop = 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	stop_run();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_true(stop.left && stop.ended);
	assert_int_equal(stat(path, &meta), 0);
	assert_int_equal(meta.st_size, 0);
	assert_int_equal(meta.st_mode & 0777, 0600);
}

static void a_request_that_cannot_be_left_is_not_said_to_lie_there(void **state)
{
	AUTO(auto_free) char *ws = in_dir("ws");
	AUTO(auto_free) char *path = in_dir("ws/runs");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	create_under_way(HOUR_MS, true, NULL);
	assert_int_equal(fs_mkdirs(ws, &err), 0);
	assert_int_equal(fs_write_atomic(path, "", 0, 0600, &err), 0);
	play.ends_at_stop = 1;
	stop_run();
	assert_false(stop.left);
	assert_true(stop.ended);
}

/* ---- damage ---- */

static void damage_from(int seq)
{
	AUTO(auto_free) char *url = mem_format("dir:%s/objects", dir);
	AUTO(auto_free) char *event = mem_format("%s/objects/runs/r1/events/%012d.json", dir, seq);
	AUTO(err_freep) struct err *err = NULL;

	journal_freep(&journal);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &journal, &err), 0);
	create_under_way(HOUR_MS, true, NULL);
	journal_freep(&journal);
	assert_int_equal(fs_write_atomic(event, "{", 1, 0600, &err), 0);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &journal, &err), 0);
}

static void make_folder(const char *name)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(path, &err), 0);
}

static void of_a_damaged_run_the_newest_attempt_is_stopped(void **state)
{
	static const struct {
		const char *folders[5], *job;
	} rows[] = {
		{ { NULL }, "stk-r1-train-1" },
		{ { "train-1", "train-7", "precompile-9", "train-2", "trainx-99" },
		  "stk-r1-train-7" },
		{ { "precompile-12", "train", "train_12", "outputs", "claim" }, "stk-r1-train-1" },
		{ { "train-10", "train-9" }, "stk-r1-train-10" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		damage_from(6);
		for (size_t j = 0; j < 5 && rows[i].folders[j]; j++) {
			AUTO(auto_free) char *name = fs_join("ws/runs/r1", rows[i].folders[j]);

			make_folder(name);
		}
		play.ends_at_stop = 1;
		stop_run();
		assert_true(stop.damaged && stop.ended && stop.left);
		assert_false(stop.idle || stop.over);
		assert_string_equal(stop.job, rows[i].job);
		assert_string_equal(play.job, rows[i].job);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

/* The run's other phase may have had a job: that is not known. */
static void a_damaged_run_of_another_phase_is_found_by_its_folders(void **state)
{
	(void)state;
	damage_from(3);
	make_folder("ws/runs/r1/precompile-2");
	play.ends_at_stop = 1;
	stop_run();
	assert_true(stop.damaged);
	assert_false(stop.idle);
	assert_string_equal(play.job, stop.job);
}

static void a_run_without_a_plan_cannot_be_stopped(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	damage_from(1);
	assert_int_equal(beside_stop(journal, "r1", "x", NULL, NULL, &stop, &err), -1);
	assert_true(err->damage);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(play.stops, 0);
}

static void an_engine_of_another_version_cannot_be_asked(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	create_under_way(HOUR_MS, true, "'engine':'newer'");
	assert_int_equal(beside_stop(journal, "r1", "x", NULL, NULL, &stop, &err), -1);
	assert_string_equal(err->message, "engine 'newer' is not part of this version");
	assert_int_equal(err->code, EXIT_REFUSED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_engine_is_asked_where_no_driver_lives),
		TEST(the_steps_need_not_be_told),
		TEST(a_job_that_goes_on_is_waited_for_its_grace_and_a_while),
		TEST(an_interrupt_ends_the_wait),
		TEST(what_a_person_could_do_is_named),
		TEST(the_agents_are_told_where_the_engine_refuses),
		TEST(a_run_without_a_job_is_left_to_its_next_driver),
		TEST(a_job_that_was_intended_is_stopped_too),
		TEST(a_run_that_is_over_needs_no_stop),
		TEST(a_driver_is_signalled_and_given_time),
		TEST(a_driver_that_does_not_obey_is_passed_over),
		TEST(a_driver_elsewhere_is_given_time_if_the_request_lies_there),
		TEST(a_disk_without_room_has_room_for_a_name),
		TEST(a_request_that_cannot_be_left_is_not_said_to_lie_there),
		TEST(of_a_damaged_run_the_newest_attempt_is_stopped),
		TEST(a_damaged_run_of_another_phase_is_found_by_its_folders),
		TEST(a_run_without_a_plan_cannot_be_stopped),
		TEST(an_engine_of_another_version_cannot_be_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
