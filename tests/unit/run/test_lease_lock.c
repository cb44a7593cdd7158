/* The lock of a run on a local disk: what its file says and to whom, who is sent a signal, how it
 * is removed, and what whoever waits for a lease is told. See jobs/run/journal/lease.h. */
#include "lease_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *lock_path(void)
{
	return mem_format("%s/runs/r/" LEASE_LOCK, dir);
}

static void put_lock(const char *text)
{
	AUTO(auto_free) char *path = lock_path();
	struct err *err = NULL;

	make_folder();
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

static void assert_lock_says(const char *want)
{
	AUTO(auto_free) char *path = lock_path();
	AUTO(sb_release) struct sb text = SB_INIT;
	struct err *err = NULL;

	assert_int_equal(fs_read(path, 4096, &text, &err), 0);
	assert_string_equal(text.text, want);
}

static struct lease *look(int want)
{
	struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(lease_check(journal, "r", &slow, &lease, &err), want);
	return lease;
}

static void its_file_names_the_holder(void **state)
{
	AUTO(auto_free) char *long_text = mem_format("%400s\nanother", "x");
	AUTO(auto_free) char *path = lock_path();
	AUTO(auto_free) char *words = NULL;
	char host[256] = "?";
	struct lease *lease;
	mode_t mask = umask(0);
	struct stat st;

	(void)state;
	gethostname(host, sizeof host - 1);
	words = mem_format("pid %ld on %s\n", (long)getpid(), host);
	lease = take(&slow);
	umask(mask);
	assert_lock_says(words);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(lease_due(lease), -1);
	assert_true(lease_is_held(lease));
	lease_freep(&lease);
	assert_lock_says(words);
	/* whatever an earlier one has left there */
	put_lock(long_text);
	lease = take(&slow);
	assert_lock_says(words);
	lease_freep(&lease);
	lease_freep(&lease); /* which is none any more */
}

static void a_look_tells_the_last_holder(void **state)
{
	AUTO(lease_freep) struct lease *none = look(1);
	AUTO(auto_free) char *path = lock_path();

	(void)state;
	assert_string_equal(lease_holder(none), "");
	assert_false(fs_exists(path));
	put_lock("pid 3 on there\nand more");
	{
		AUTO(lease_freep) struct lease *lease = look(1);

		assert_string_equal(lease_holder(lease), "pid 3 on there");
		assert_false(lease_is_held(lease));
		assert_false(lease_is_mine(lease));
	}
	put_lock("");
	{
		AUTO(lease_freep) struct lease *lease = look(1);

		assert_string_equal(lease_holder(lease), "");
	}
}

static void what_cannot_be_opened_is_an_error(void **state)
{
	AUTO(auto_free) char *path = lock_path();
	AUTO(lease_freep) struct lease *lease = NULL, *looked = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	make_folder();
	assert_int_equal(symlink("/nowhere", path), 0);
	assert_int_equal(lease_check(journal, "r", &slow, &looked, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, LEASE_LOCK));
	err_freep(&err);
	assert_int_equal(lease_try(journal, "r", &slow, &lease, &wait_ms, &err), -1);
	assert_int_equal(wait_ms, 0);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_false(lease_is_held(lease));
	err_freep(&err);
	assert_int_equal(lease_keep(lease, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_non_null(strstr(err->message, "run r is driven by someone else"));
	assert_non_null(strstr(err->hint, "'stoker events r -f' follows it"));
}

/* ---- signals ---- */

/* A process that has the lock's file open, if `holds`, until it is sent a signal. */
static pid_t begin_process(bool holds)
{
	AUTO(auto_free) char *path = lock_path();
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (holds && open(path, O_RDONLY | O_CLOEXEC) < 0)
			_exit(1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static bool signal_holder(void)
{
	AUTO(lease_freep) struct lease *lease = look(1);

	return lease_signal(lease, SIGTERM);
}

/* A process id may be another process's by now, or one of another machine. */
static void only_a_holder_of_this_machine_is_sent_a_signal(void **state)
{
	char host[256] = "?";
	struct stat st;

	(void)state;
	gethostname(host, sizeof host - 1);
	for (int row = 0; row < 4; row++) {
		AUTO(auto_free) char *text = NULL;
		AUTO(auto_free) char *path = lock_path();
		pid_t child;
		int status;

		put_lock("");
		assert_int_equal(stat(path, &st), 0);
		child = begin_process(row != 1);
		text = mem_format(row == 3 ? "pid %ld at %s" : "pid %ld on %s", (long)child,
				  row == 2 ? "far-away" : host);
		{
			int fd = open(path, O_WRONLY | O_CLOEXEC);

			assert_int_equal(write(fd, text, strlen(text)), strlen(text));
			close(fd);
		}
		assert_int_equal(signal_holder(), row == 0);
		if (row != 0)
			kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), row == 0 ? SIGTERM : SIGKILL);
	}
	put_lock("pid 1 on x");
	assert_false(signal_holder());
	put_lock("pid -1 on x");
	assert_false(signal_holder());
	{
		struct lease *lease = take(&slow); /* nor the process itself, by a lease of its own
						    * that it has not looked at */

		free(TAKE(lease->path));
		assert_false(lease_signal(lease, SIGTERM));
		lease->path = lock_path();
		lease_freep(&lease);
	}
}

/* ---- removal ---- */

static void what_was_removed_is_nobodys(void **state)
{
	AUTO(lease_freep) struct lease *lease = take(&slow);
	AUTO(auto_free) char *path = lock_path();
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(lease_remove(lease, &err), 0);
	assert_false(fs_exists(path));
	assert_false(lease_is_held(lease));
	assert_int_equal(lease_remove(lease, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	err_freep(&err);
	{
		struct lease *next = take(&slow);

		assert_int_equal(unlink(path), 0); /* somebody was first */
		assert_int_equal(lease_remove(next, &err), 0);
		lease_freep(&next);
		next = take(&slow);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(lease_remove(next, &err), -1);
		assert_non_null(strstr(err->message, "cannot remove '"));
		lease_freep(&next);
	}
}

/* ---- locks of all runs ---- */

static void a_lock_that_is_held_is_found_among_all(void **state)
{
	AUTO(auto_free) char *none = lease_find_lock(dir);
	AUTO(lease_freep) struct lease *other = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	assert_null(none);
	put_lock("pid 3 on there");
	none = lease_find_lock(dir);
	assert_null(none);
	assert_int_equal(lease_try(journal, "other", &slow, &other, &wait_ms, &err), 1);
	{
		AUTO(auto_free) char *held = lease_find_lock(dir);

		assert_string_equal(held, "other");
	}
	{
		struct lease *ours = take(&slow);
		AUTO(auto_free) char *held = lease_find_lock(dir);

		assert_non_null(held); /* one of them, once */
		lease_freep(&ours);
	}
	lease_freep(&other);
	none = lease_find_lock(dir);
	assert_null(none);
}

/* ---- waiting ---- */

struct told {
	int holders, troubles;
	int64_t at_most_ms;
	char holder[64];
};

static void note_wait(void *arg, const char *holder, const struct err *trouble, int64_t at_most_ms)
{
	struct told *told = arg;

	if (trouble)
		told->troubles++;
	else
		told->holders++;
	told->at_most_ms = at_most_ms;
	snprintf(told->holder, sizeof told->holder, "%s", holder);
}

static void put_object(const char *text)
{
	AUTO(auto_free) char *path = object_path();
	struct err *err = NULL;

	make_folder();
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

static void who_waits_for_a_holder_is_told_once(void **state)
{
	static const struct lease_rules brief = { .valid_ms = 60, .renew_ms = 20000 };
	struct told told = { 0 };
	struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	put_object("{\"held\":true,\"host\":\"far\",\"pid\":7,\"nonce\":\"x\",\"place\":\"y\"}");
	assert_int_equal(lease_take(journal, "r", &brief, note_wait, &told, &lease, &err), 0);
	assert_int_equal(told.holders, 1);
	assert_int_equal(told.troubles, 0);
	assert_int_equal(told.at_most_ms, 60);
	assert_string_equal(told.holder, "pid 7 on far");
	lease_freep(&lease);
	/* who does not want to be told waits all the same */
	put_object("{\"held\":true,\"host\":\"far\",\"pid\":7,\"nonce\":\"x\",\"place\":\"y\"}");
	assert_int_equal(lease_take(journal, "r", &brief, NULL, NULL, &lease, &err), 0);
	lease_freep(&lease);
}

static int refusals;

/* Twice as if it did not hold. */
static const struct store_backend *real;

static int refuse_twice(struct store *store, const char *key, const char *tag, const void *bytes,
			size_t len, struct err **err)
{
	return ++refusals <= 2 ? 0 : real->replace_if_same(store, key, tag, bytes, len, err);
}

static void append_created(const char *limits)
{
	struct event ev = { .kind = EV_RUN_CREATED, .seq = 1, .at = { 1 } };
	json_auto_t *plan = json_object();
	json_t *value = NULL;
	struct err *err = NULL;

	if (limits && js_parse(limits, strlen(limits), "limits", &value, &err) == 0)
		js_put(plan, "limits", value);
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	assert_int_equal(journal_append(journal, "r", &ev, &err), 1);
}

/* The wait lasts as long as the run allows; a day if it says nothing, without end if it says 0. */
static void who_waits_for_a_server_is_told_for_how_long(void **state)
{
	static const struct {
		const char *limits;
		bool begun;
		int64_t at_most_ms;
	} rows[] = {
		{ NULL, false, 86400000 },
		{ NULL, true, 86400000 },
		{ "{}", true, 86400000 },
		{ "{\"unreachable_ms\":0}", true, 0 },
		{ "{\"unreachable_ms\":60000}", true, 60000 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct store *store = journal_store(journal);
		struct store_backend refusing = *store->backend;
		struct lease *lease = NULL;
		struct told told = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		if (rows[i].begun)
			append_created(rows[i].limits);
		put_object("{\"held\":false,\"nonce\":\"x\"}");
		refusals = 0;
		real = store->backend;
		refusing.replace_if_same = refuse_twice;
		store->backend = &refusing;
		assert_int_equal(lease_take(journal, "r", &slow, note_wait, &told, &lease, &err),
				 0);
		store->backend = real;
		assert_int_equal(told.troubles, 1);
		assert_int_equal(told.holders, 0);
		assert_int_equal(told.at_most_ms, rows[i].at_most_ms);
		lease_freep(&lease);
		assert_int_equal(journal_forget(journal, "r", &err), 0);
	}
}

int main(void)
{
	const struct CMUnitTest lock[] = {
		TEST(its_file_names_the_holder),
		TEST(a_look_tells_the_last_holder),
		TEST(what_cannot_be_opened_is_an_error),
		TEST(only_a_holder_of_this_machine_is_sent_a_signal),
		TEST(what_was_removed_is_nobodys),
		TEST(a_lock_that_is_held_is_found_among_all),
	};
	const struct CMUnitTest object[] = {
		TEST(who_waits_for_a_holder_is_told_once),
		TEST(who_waits_for_a_server_is_told_for_how_long),
	};
	int failed;

	scheme = "sqlite";
	failed = cmocka_run_group_tests_name("lock", lock, NULL, NULL);
	scheme = "dir";
	return failed + cmocka_run_group_tests_name("object", object, NULL, NULL);
}
