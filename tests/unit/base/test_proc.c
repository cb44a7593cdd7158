/* The promises of proc.h, with real processes. */
#include "jobs/base/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "jobs/base/clock.h"
#include "tests/unit/base/unit.h"

/* Start a shell script whose output goes to `out` (a path, or NULL). */
static pid_t start_script(const char *script, const char *cwd, const char *out)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, mem_copy(script), NULL };
	char *envp[] = { (char[]){ "GREETING=hello" }, NULL };
	AUTO(auto_close)
	int fd = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	struct proc_start start = { .program = "/bin/sh",
				    .argv = argv,
				    .envp = envp,
				    .cwd = cwd,
				    .in = -1,
				    .out = fd,
				    .err = fd };
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid = -1;

	proc_spawn(&start, &pid, &err);
	free(argv[2]);
	assert_no_error(err);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The output of a script that ends by itself. */
static char *output_of(void **state, const char *script, const char *cwd)
{
	AUTO(auto_free) char *path = fs_join(*state, "output");
	AUTO(err_freep) struct err *err = NULL;
	struct sb text = SB_INIT;

	assert_int_equal(wait_for(start_script(script, cwd, path)), 0);
	fs_read(path, 1 << 20, &text, &err);
	assert_no_error(err);
	return sb_take(&text);
}

/* Wait until a file appears: the script's sign that it has got so far. */
static void await_file(const char *path)
{
	struct mono end = { clock_mono_now().ms + 60000 };

	while (!fs_exists(path)) {
		assert_true(clock_mono_now().ms < end.ms);
		usleep(1000);
	}
}

static void await_zombie(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void a_child_has_its_arguments_environment_and_folder(void **state)
{
	AUTO(auto_free) char *text = output_of(state, "echo \"$GREETING $HOME.\"; pwd -P", *state);
	AUTO(auto_free) char *real = realpath(*state, NULL);
	AUTO(auto_free) char *want = mem_format("hello .\n%s\n", real);

	assert_string_equal(text, want);
}

/* Lists the descriptors that the shell has; listing the folder would open one more. */
#define OPEN_FILES                                                                                 \
	"i=0; while [ $i -lt 256 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done; "       \
	"readlink /proc/$$/fd/0"

static void a_child_inherits_only_the_standard_streams(void **state)
{
	int leaked = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
	int high = fcntl(leaked, F_DUPFD, 200);
	AUTO(auto_free) char *text = output_of(state, OPEN_FILES, NULL);

	close(leaked);
	close(high);
	assert_string_equal(text, "0\n1\n2\n/dev/null\n");
}

/* Start a shell that writes to its streams 1 and 2, while our own 0 and 2 are the
 * files `zero` (NULL: closed) and `two`. Returns its exit code. */
static int start_with_streams(const char *zero, const char *two, int out, int error)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "echo to out; echo to err >&2; cat" }, NULL };
	char *envp[] = { NULL };
	struct proc_start start = { "/bin/sh", argv, envp, NULL, -1, out, error };
	AUTO(err_freep) struct err *err = NULL;
	int saved[] = { fcntl(0, F_DUPFD_CLOEXEC, 10), fcntl(2, F_DUPFD_CLOEXEC, 10) };
	int second = open(two, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t pid = -1;

	dup2(second, 2);
	close(second);
	close(0);
	if (zero)
		(void)!open(zero, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	proc_spawn(&start, &pid, &err);
	dup2(saved[0], 0);
	dup2(saved[1], 2);
	close(saved[0]);
	close(saved[1]);
	assert_no_error(err);
	return wait_for(pid);
}

/* Setting one stream up must not spoil the source of the next. */
static void streams_may_be_given_in_any_order(void **state)
{
	AUTO(auto_free) char *a = fs_join(*state, "a");
	AUTO(auto_free) char *b = fs_join(*state, "b");
	AUTO(auto_close) int other = open(b, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	AUTO(sb_release) struct sb in_a = SB_INIT, in_b = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(start_with_streams(b, a, 2, 0), 0);
	fs_read(a, 100, &in_a, &err);
	fs_read(b, 100, &in_b, &err);
	assert_string_equal(in_a.text, "to out\n");
	assert_string_equal(in_b.text, "to err\n");
	sb_clear(&in_a);
	sb_clear(&in_b);
	assert_int_equal(ftruncate(other, 0), 0);
	assert_int_equal(start_with_streams(NULL, a, 2, other), 0);
	fs_read(a, 100, &in_a, &err);
	fs_read(b, 100, &in_b, &err);
	assert_string_equal(in_a.text, "to out\n");
	assert_string_equal(in_b.text, "to err\n");
}

static void a_child_leads_its_own_session(void **state)
{
	pid_t pid = start_script("exec sleep 60", NULL, NULL);

	(void)state;
	assert_int_equal(getsid(pid), pid);
	assert_int_equal(getpgid(pid), pid);
	kill(pid, SIGKILL);
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
}

/* The bits of a line like "SigIgn:\t0000000000001000". */
static unsigned long long signal_bits(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	assert_non_null(line);
	return strtoull(line + strlen(name), NULL, 16);
}

static void a_child_has_default_signals_and_none_blocked(void **state)
{
	/* 32 and 33 belong to glibc, which ignores them in what it spawns. */
	const unsigned long long ours = ~(3ULL << 31);
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	AUTO(auto_free) char *text = NULL;
	sigset_t all, mask;

	sigfillset(&all);
	sigaction(SIGPIPE, &ignore, &old);
	sigprocmask(SIG_BLOCK, &all, &mask);
	text = output_of(state, "exec cat /proc/self/status", NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGPIPE, &old, NULL);
	assert_int_equal(signal_bits(text, "SigBlk:"), 0);
	assert_int_equal(signal_bits(text, "SigIgn:") & ours, 0);
}

static void failures_to_start_say_what_is_missing(void **state)
{
	AUTO(auto_free) char *plain = fs_join(*state, "plain");
	AUTO(auto_free) char *script = fs_join(*state, "script");
	AUTO(auto_free) char *empty = fs_join(*state, "garbage");
	AUTO(auto_free) char *absent = fs_join(*state, "absent");
	const struct {
		const char *program, *cwd;
		int os_errno;
		const char *hint;
	} rows[] = {
		{ absent, NULL, ENOENT, "install the program" },
		{ "./absent", *state, ENOENT, "install the program" },
		{ script, NULL, ENOENT, "interpreter" },
		{ "script", *state, ENOENT, "interpreter" },
		{ plain, NULL, EACCES, "chmod" },
		{ *state, NULL, EACCES, "make the file executable" },
		{ empty, NULL, ENOEXEC, "#!" },
		{ "/bin/true", absent, ENOENT, "folder" },
		{ "/bin/true", plain, ENOTDIR, "folder" },
	};
	char *none[] = { NULL };
	AUTO(err_freep) struct err *ignored = NULL;

	fs_write_atomic(plain, "x", 1, 0600, &ignored);
	fs_write_atomic(script, "#!/no/such/shell\n", 17, 0700, &ignored);
	fs_write_atomic(empty, "\x01\x02garbage", 9, 0700, &ignored);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct proc_start start = { rows[i].program, none, none, rows[i].cwd, -1, -1, -1 };
		AUTO(err_freep) struct err *err = NULL;
		pid_t pid = 42;

		assert_int_equal(proc_spawn(&start, &pid, &err), -1);
		assert_int_equal(err->os_errno, rows[i].os_errno);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_contains(err->message, rows[i].program);
		assert_contains(err->hint, rows[i].hint);
	}
	/* No child was left behind. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void a_bad_descriptor_is_an_error(void **state)
{
	char *none[] = { NULL };
	struct proc_start start = { "/bin/true", none, none, NULL, -1, 9999, -1 };
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;

	(void)state;
	assert_int_equal(proc_spawn(&start, &pid, &err), -1);
	assert_int_equal(err->os_errno, EBADF);
}

static void a_process_is_known_until_it_ends(void **state)
{
	pid_t pid = start_script("exec sleep 60", NULL, NULL);
	struct proc_id id, zombie;

	(void)state;
	assert_int_equal(proc_identify(pid, &id), 0);
	assert_int_equal(id.pid, pid);
	assert_true(id.start_ticks > 0);
	assert_int_equal(strlen(id.boot_id), 36);
	assert_true(proc_alive(&id));
	kill(pid, SIGKILL);
	await_zombie(pid);
	/* A zombie is still the same process, but not alive. */
	assert_int_equal(proc_identify(pid, &zombie), 0);
	assert_int_equal(zombie.start_ticks, id.start_ticks);
	assert_false(proc_alive(&id));
	wait_for(pid);
	assert_false(proc_alive(&id));
	assert_int_equal(proc_identify(pid, &zombie), -1);
	assert_int_equal(proc_identify(-1, &zombie), -1);
	assert_int_equal(proc_identify(0, &zombie), -1);
}

static void without_descriptors_a_process_is_not_taken_for_dead(void **state)
{
	pid_t pid = start_script("exec sleep 60", NULL, NULL);
	struct rlimit before, none;
	struct proc_id id;

	(void)state;
	assert_int_equal(proc_identify(pid, &id), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), -1);
	assert_true(proc_alive(&id));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	kill(pid, SIGKILL);
	wait_for(pid);
	assert_false(proc_alive(&id));
}

static void a_reused_pid_is_a_stranger(void **state)
{
	pid_t pid = start_script("exec sleep 60", NULL, NULL);
	struct proc_id id, earlier, other_boot;

	(void)state;
	assert_int_equal(proc_identify(pid, &id), 0);
	earlier = id;
	earlier.start_ticks--;
	other_boot = id;
	other_boot.boot_id[0] = other_boot.boot_id[0] == 'a' ? 'b' : 'a';
	assert_false(proc_alive(&earlier));
	assert_false(proc_alive(&other_boot));
	assert_false(proc_signal_group(&earlier, SIGKILL));
	assert_false(proc_signal_group(&other_boot, SIGKILL));
	assert_true(proc_alive(&id));
	assert_true(proc_signal_group(&id, SIGKILL));
	assert_int_equal(wait_for(pid), 128 + SIGKILL);
	assert_false(proc_signal_group(&id, SIGKILL));
}

static int with_odd_name(const char *unused)
{
	struct proc_id id;

	(void)unused;
	child_check(prctl(PR_SET_NAME, ") Z 1 (x) ) S 7") == 0);
	child_check(proc_identify(getpid(), &id) == 0);
	child_check(proc_alive(&id));
	child_check(prctl(PR_SET_NAME, "plain") == 0);
	child_check(proc_alive(&id));
	return 0;
}

static void a_name_with_brackets_misleads_nobody(void **state)
{
	(void)state;
	assert_int_equal(in_child(with_odd_name, NULL), 0);
}

static void *outlive_the_first_thread(void *path)
{
	await_file(path);
	_exit(7);
}

static void a_process_whose_first_thread_ended_is_alive(void **state)
{
	AUTO(auto_free) char *go = fs_join(*state, "go");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *stat_path = NULL;
	AUTO(sb_release) struct sb text = SB_INIT;
	struct proc_id id;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, outlive_the_first_thread, go);
		pthread_exit(NULL);
	}
	stat_path = mem_format("/proc/%ld/stat", (long)pid);
	while (!strstr(text.text, ") Z ")) {
		sb_clear(&text);
		fs_read(stat_path, 10000, &text, &err);
		assert_no_error(err);
	}
	assert_int_equal(proc_identify(pid, &id), 0);
	assert_true(proc_alive(&id));
	fs_write_atomic(go, "", 0, 0600, &err);
	await_zombie(pid);
	assert_false(proc_alive(&id));
	assert_int_equal(wait_for(pid), 7);
}

static void a_signal_reaches_the_whole_group(void **state)
{
	AUTO(auto_free) char *ready = fs_join(*state, "ready");
	AUTO(auto_free)
	char *script = mem_format("trap 'wait; exit 3' TERM; "
				  "(trap 'echo child > %s/child; exit' TERM; : > %s/ready; while "
				  ":; do sleep 0.01; done) & "
				  "wait; exit 4",
				  (char *)*state, (char *)*state);
	AUTO(auto_free) char *child = fs_join(*state, "child");
	pid_t pid = start_script(script, NULL, NULL);
	struct proc_id id;

	assert_int_equal(proc_identify(pid, &id), 0);
	await_file(ready);
	assert_true(proc_signal_group(&id, 0));
	assert_true(proc_signal_group(&id, SIGTERM));
	await_file(child);
	assert_int_equal(wait_for(pid), 3);
}

static void what_is_left_of_a_group_is_reached_before_its_leader_is_waited_for(void **state)
{
	AUTO(auto_free) char *pid_file = fs_join(*state, "pid");
	AUTO(auto_free)
	char *script = mem_format("sleep 60 & echo $! > %s.new; mv %s.new %s; exit 0", pid_file,
				  pid_file, pid_file);
	pid_t pid = start_script(script, NULL, NULL);
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	struct proc_id id, orphan;
	struct mono end = { clock_mono_now().ms + 60000 };

	assert_int_equal(proc_identify(pid, &id), 0);
	await_zombie(pid);
	fs_read(pid_file, 100, &text, &err);
	assert_no_error(err);
	assert_int_equal(proc_identify((pid_t)atol(text.text), &orphan), 0);
	assert_true(proc_alive(&orphan));
	assert_true(proc_signal_group(&id, SIGKILL));
	while (proc_alive(&orphan))
		assert_true(clock_mono_now().ms < end.ms);
	wait_for(pid);
}

static int signal_everyone(const char *unused)
{
	struct proc_id id;

	(void)unused;
	child_check(proc_identify(1, &id) == 0);
	child_check(!proc_signal_group(&id, 0));
	id.pid = 0;
	child_check(!proc_signal_group(&id, 0));
	id.pid = -1;
	child_check(!proc_signal_group(&id, 0));
	return 0;
}

static void nobody_signals_everyone(void **state)
{
	(void)state;
	assert_int_equal(in_child(signal_everyone, NULL), 0);
}

static void programs_are_found_along_the_path(void **state)
{
	AUTO(auto_free) char *bin = fs_join(*state, "bin");
	AUTO(auto_free) char *tool = fs_join(bin, "tool");
	AUTO(auto_free) char *data = fs_join(*state, "tool");
	AUTO(auto_free) char *folder = fs_join(*state, "folder");
	AUTO(auto_free) char *path = mem_format("/no/such:%s::%s:/bin", (char *)*state, bin);
	const struct {
		const char *program, *cwd, *path, *want;
	} rows[] = {
		{ "tool", NULL, path, tool }, /* not the data file that comes first */
		{ "tool", *state, ":bin", tool },
		{ "tool", bin, "", NULL }, /* an empty element is not the folder we are in */
		{ "tool", bin, "::", NULL },
		{ "tool", bin, NULL, NULL },
		{ "./tool", bin, NULL, tool },
		{ "bin/tool", *state, NULL, tool },
		{ tool, "/", NULL, tool },
		{ "./tool", *state, path, NULL },
		{ "folder", *state, path, NULL },
		{ "./folder", *state, path, NULL },
		{ "", *state, path, NULL },
		{ "absent", *state, path, NULL },
	};
	AUTO(err_freep) struct err *err = NULL;

	fs_mkdirs(bin, &err);
	fs_mkdirs(folder, &err);
	fs_write_atomic(tool, "#!/bin/sh\n", 10, 0700, &err);
	fs_write_atomic(data, "x", 1, 0600, &err);
	assert_no_error(err);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *found = proc_find_program(rows[i].program, rows[i].cwd, rows[i].path);

		if (!rows[i].want) {
			assert_null(found);
			assert_int_equal(errno, ENOENT);
		} else {
			AUTO(auto_free) char *normal = NULL;

			assert_non_null(found);
			normal = fs_absolute(found);
			assert_string_equal(normal, rows[i].want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_child_has_its_arguments_environment_and_folder),
		test_in_scratch(a_child_inherits_only_the_standard_streams),
		test_in_scratch(streams_may_be_given_in_any_order),
		cmocka_unit_test(a_child_leads_its_own_session),
		test_in_scratch(a_child_has_default_signals_and_none_blocked),
		test_in_scratch(failures_to_start_say_what_is_missing),
		cmocka_unit_test(a_bad_descriptor_is_an_error),
		cmocka_unit_test(a_process_is_known_until_it_ends),
		cmocka_unit_test(without_descriptors_a_process_is_not_taken_for_dead),
		cmocka_unit_test(a_reused_pid_is_a_stranger),
		cmocka_unit_test(a_name_with_brackets_misleads_nobody),
		test_in_scratch(a_process_whose_first_thread_ended_is_alive),
		test_in_scratch(a_signal_reaches_the_whole_group),
		test_in_scratch(what_is_left_of_a_group_is_reached_before_its_leader_is_waited_for),
		cmocka_unit_test(nobody_signals_everyone),
		test_in_scratch(programs_are_found_along_the_path),
	};

	return cmocka_run_group_tests_name("base/proc", tests, NULL, NULL);
}
