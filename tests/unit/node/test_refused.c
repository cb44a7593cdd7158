/* A machine whose kernel refuses a call to the real agent for good, as an old one does or the rules
 * of a container: what it needs is named, and what it can do without it does without. */
#include "tests/unit/node/agent_run.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "jobs/node/news.h"

/* Makes this call fail with that error from now on, in this process and what it starts; with `arg`
 * >= 0 only where its first argument is this one. */
static void refuse_call(int number, int arg, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)arg, 0, arg < 0 ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = STK_LENGTH(filter), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(99);
}

/* The exit status of an agent of this order, to which that call is refused. Steals the order. */
static int run_refused(const struct place *place, json_t *order, int number, int arg, int error)
{
	pid_t pid;

	order_write(place, order);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		refuse_call(number, arg, error);
		_exit(end_of(start(place, PREFIX, 0, plain_env, NULL)));
	}
	return end_of(pid);
}

static void an_agent_that_cannot_inherit_orphans_says_so_and_runs_nothing(void **state)
{
	AUTO(auto_free) char *ran = place_path(*state, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	AUTO(auto_free) char *said = NULL;

	assert_int_equal(run_refused(*state, order_for(*state, script), SYS_prctl,
				     PR_SET_CHILD_SUBREAPER, EPERM),
			 AGENT_EXIT_FAILED);
	said = output(*state);
	assert_has(said, "cannot become a subreaper");
	assert_false(fs_exists(ran));
}

/* Kernels before 5.9 lack it. */
static void without_close_range_helpers_work_all_the_same(void **state)
{
	AUTO(auto_free) char *mark = place_path(*state, "saved/step-10" MARK_SUFFIX);
	AUTO(auto_free) char *saved = place_path(*state, "saved");
	json_t *order =
		order_for(*state, "d=$STOKER_CHECKPOINT_DIR/step-10; mkdir -p $d; printf hello > "
				  "$d/state.bin; printf '{\"state_bytes\":5}' > $d/meta.json");

	js_put_str(order, "checkpoint_dir", saved);
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "files", "root", saved, "sync",
			 "agent", "keep", "all", "signal", "USR1"));
	assert_int_equal(run_refused(*state, order, SYS_close_range, -1, ENOSYS), 0);
	assert_true(fs_exists(mark));
}

static void a_loop_that_cannot_be_made_is_named(void **state)
{
	AUTO(auto_free) char *said = NULL;

	assert_int_equal(
		run_refused(*state, order_for(*state, "true"), SYS_epoll_create1, -1, ENOSYS),
		AGENT_EXIT_FAILED);
	said = output(*state);
	assert_has(said, "event");
}

static void an_agent_without_a_pipe_to_its_uploader_says_so_and_runs_nothing(void **state)
{
	AUTO(auto_free) char *ran = place_path(*state, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	AUTO(auto_free) char *said = NULL;

	assert_int_equal(run_refused(*state, order_for(*state, script), SYS_pipe2, -1, EPERM),
			 AGENT_EXIT_FAILED);
	said = output(*state);
	assert_has(said, "cannot make a pipe");
	assert_false(fs_exists(ran));
}

/* A refused search for the program tells nothing of whether it is there. */
static void a_program_that_cannot_be_looked_for_is_told_with_its_cause(void **state)
{
	json_t *order = order_for(*state, "true");
	json_auto_t *body = NULL;
	const char *words;

	js_put(order, "command", json_pack("[s]", "/bin/true"));
	assert_int_equal(run_refused(*state, order, SYS_faccessat2, -1, EIO), AGENT_EXIT_FAILED);
	body = report(*state);
	words = js_str(json_object_get(body, "error"), "message");
	assert_has(words, "cannot look for '/bin/true'");
	assert_has(words, strerror(EIO));
}

/* The refusal costs the evidence of how a machine is doing, and nothing else. */
static void without_the_kernels_log_a_failed_command_is_reported(void **state)
{
	json_auto_t *body = NULL;

	assert_int_equal(run_refused(*state, order_for(*state, "exit 3"), SYS_statx, -1, EIO), 3);
	body = report(*state);
	assert_state(body, "ended", 3);
}

/* ---- news of a helper ---- */

static void count(void *arg, const char *kind, const json_t *line)
{
	(void)line;
	assert_string_equal(kind, "good");
	++*(int *)arg;
}

static void lines_that_are_no_news_are_passed_over(void **state)
{
	static const char lines[] =
		"torn {\n[1]\n{\"other\":1}\n{\"news\":1}\n{\"news\":\"good\"}\n{\"news\":";
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct helper helper = { .news_fd = -1, .orders_fd = -1 };
	struct news news;
	int ends[2], heard = 0;

	(void)state;
	must(loop_new(&loop, &err), &err);
	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	helper.news_fd = ends[0];
	news_listen(&news, &helper, loop, count, &heard);
	assert_int_equal(write(ends[1], lines, sizeof lines - 1), sizeof lines - 1);
	close(ends[1]);
	news_drain(&news);
	assert_int_equal(heard, 1);
	news_release(&news);
	helper_close(&helper);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_agent_that_cannot_inherit_orphans_says_so_and_runs_nothing),
		TEST(without_close_range_helpers_work_all_the_same),
		TEST(a_loop_that_cannot_be_made_is_named),
		TEST(an_agent_without_a_pipe_to_its_uploader_says_so_and_runs_nothing),
		TEST(a_program_that_cannot_be_looked_for_is_told_with_its_cause),
		TEST(without_the_kernels_log_a_failed_command_is_reported),
		TEST(lines_that_are_no_news_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
