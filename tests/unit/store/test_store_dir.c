/* What only a directory store can be asked: links, leftovers, rights, other
 * people's files, many objects. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/store/store.h"

struct fixture {
	char scratch[64];
	char *root, *outside;
	struct store *store;
};

static void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static int setup(void **state)
{
	struct fixture *f = mem_zero(1, sizeof *f);
	struct err *err = NULL;

	strcpy(f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	f->root = fs_join(f->scratch, "store");
	f->outside = fs_join(f->scratch, "outside");
	must(fs_mkdirs(f->root, &err), err);
	must(fs_mkdirs(f->outside, &err), err);
	must(store_open(f->root, &f->store, &err), err);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	store_freep(&f->store);
	must(fs_remove_tree(f->scratch, &err), err);
	free(f->root);
	free(f->outside);
	free(f);
	return 0;
}

static void file(const char *folder, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(folder, name);
	AUTO(auto_free) char *dir = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(dir, &err), err);
	must(fs_write_atomic(path, text, strlen(text), 0600, &err), err);
}

static void link_to(const char *folder, const char *name, const char *target)
{
	AUTO(auto_free) char *path = fs_join(folder, name);

	assert_int_equal(symlink(target, path), 0);
}

static int add_key(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	sb_addf(arg, "%s ", object->key);
	return 0;
}

static void assert_lists(struct fixture *f, const char *prefix, const char *want)
{
	AUTO(sb_release) struct sb keys = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	must(store_list(f->store, prefix, add_key, &keys, &err), err);
	assert_string_equal(keys.text, want);
}

static void the_folder_is_made_by_the_first_write_and_private(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *root = fs_join(f->scratch, "deep/er/store");
	AUTO(auto_free) char *object = fs_join(root, "x/y");
	AUTO(auto_free) char *folder = fs_join(root, "x");
	struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	must(store_open(root, &store, &err), err);
	assert_int_equal(store_list(store, "", add_key, NULL, &err), 0);
	assert_false(fs_exists(root));
	must(store_put(store, "x/y", "z", 1, &err), err);
	assert_int_equal(stat(object, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(root, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	store_freep(&store);
}

/* The folder's maker was killed before its name was durable: a trace of it is the mode. */
static void a_folder_that_may_not_last_is_made_to_by_the_next_writer(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *folder = fs_join(f->root, "runs");
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	must(mkdir(folder, 01700), err);
	must(store_put(f->store, "runs/one", "1", 1, &err), err);
	must(stat(folder, &st), err);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void no_link_leads_out_for_writing_or_reading(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(auto_free) char *victim = fs_join(f->outside, "victim");
	struct store_object object;
	struct err *err = NULL;

	file(f->outside, "victim", "safe");
	link_to(f->root, "out", f->outside);
	link_to(f->root, "file", victim);
	file(f->root, "real", "here");

	assert_int_equal(store_put(f->store, "out/new", "x", 1, &err), -1);
	assert_non_null(strstr(err->message, "'out'"));
	err_freep(&err);
	assert_int_equal(store_put_if_absent(f->store, "out/new", "x", 1, &err), -1);
	err_freep(&err);
	assert_int_equal(store_upload(f->store, victim, "out/new", &err), -1);
	err_freep(&err);
	assert_int_equal(store_delete(f->store, "out/victim", &err), 0);
	assert_int_equal(store_get(f->store, "out/victim", 10, &got, NULL, &err), 0);
	assert_int_equal(store_stat(f->store, "out/victim", &object, &err), 0);
	assert_int_equal(store_get(f->store, "file", 10, &got, NULL, &err), 0);
	assert_int_equal(store_put_if_absent(f->store, "file", "x", 1, &err), 0);
	assert_lists(f, "", "real ");
	assert_lists(f, "out/", "");

	/* A link in the object's place is replaced as a name. */
	must(store_put(f->store, "file", "mine", 4, &err), err);
	must(fs_read(victim, 10, &got, &err), err);
	assert_string_equal(got.text, "safe");
	assert_lists(f, "", "file real ");
}

static void the_root_itself_may_be_a_link(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *root = fs_join(f->scratch, "link");
	struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb keys = SB_INIT;

	link_to(f->scratch, "link", f->root);
	must(store_open(root, &store, &err), err);
	must(store_put(store, "k", "v", 1, &err), err);
	must(store_list(store, "", add_key, &keys, &err), err);
	assert_string_equal(keys.text, "k ");
	assert_lists(f, "", "k ");
	store_freep(&store);
}

static void leftovers_of_killed_writers_are_invisible(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	char *big = mem_zero(1, 64 << 20);

	/* Killed writers: some die before, some while, some after the content. */
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			alarm(0);
			for (;;)
				store_put(f->store, "a/object", big, (size_t)64 << 20, &err);
		}
		usleep((useconds_t)(2000 + i * 3000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	free(big);
	file(f->root, "a/.stk-tmp-0123456789abcdef", "half");
	file(f->root, "a/other", "x");
	AUTO(sb_release) struct sb keys = SB_INIT;

	must(store_list(f->store, "a/o", add_key, &keys, &err), err);
	assert_null(strstr(keys.text, "tmp"));
	assert_non_null(strstr(keys.text, "a/other"));
	if (strstr(keys.text, "a/object")) {
		struct store_object object;

		assert_int_equal(store_stat(f->store, "a/object", &object, &err), 1);
		assert_int_equal(object.size, 64 << 20); /* whole or not at all */
	}
	/* Leftovers do not stand in the way of later writers. */
	must(store_put(f->store, "a/object", "new", 3, &err), err);
}

static void a_lock_left_behind_locks_nobody_out(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	struct store_object object;

	file(f->root, "d/.stk-tmp-lock", "");
	must(store_put(f->store, "d/k", "1", 1, &err), err);
	must(store_stat(f->store, "d/k", &object, &err), err);
	assert_int_equal(store_replace_if_same(f->store, "d/k", object.tag, "2", 1, &err), 1);
	assert_lists(f, "", "d/k ");
}

static void no_temporary_file_stays_after_success_or_refusal(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free)
	char *command =
		mem_format("test -z \"$(find '%s' -name '.stk-tmp-*' ! -name '*lock')\"", f->root);
	struct store_object object;

	must(store_put(f->store, "k", "1", 1, &err), err);
	must(store_stat(f->store, "k", &object, &err), err);
	assert_int_equal(store_put_if_absent(f->store, "k", "2", 1, &err), 0);
	assert_int_equal(store_put_if_absent(f->store, "j", "2", 1, &err), 1);
	assert_int_equal(store_replace_if_same(f->store, "k", object.tag, "2", 1, &err), 1);
	assert_int_equal(store_replace_if_same(f->store, "k", object.tag, "3", 1, &err), 0);
	must(fs_mkdirs(f->root, &err), err);
	must(store_put(f->store, "folder/x", "1", 1, &err), err);
	assert_int_equal(store_put(f->store, "folder", "1", 1, &err), -1); /* a folder has it */
	assert_int_equal(system(command), 0);
}

static void a_file_in_the_way_of_a_folder_is_named(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb got = SB_INIT;

	must(store_put(f->store, "a", "1", 1, &err), err);
	assert_int_equal(store_get(f->store, "a/b", 10, &got, NULL, &err), 0);
	assert_int_equal(store_put(f->store, "a/b", "1", 1, &err), -1);
	assert_non_null(strstr(err->message, "'a'"));
	assert_int_equal(err->code, EXIT_REFUSED);
}

static void special_files_are_no_objects(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(auto_free) char *fifo = fs_join(f->root, "fifo");

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(store_get(f->store, "fifo", 10, &got, NULL, &err), 0);
	assert_lists(f, "", "");
	assert_int_equal(store_upload(f->store, fifo, "x", &err), -1);
}

static int as_nobody(struct fixture *f)
{
	struct err *err = NULL;
	int failed = 0;

	if (geteuid() == 0 && setuid(65534) < 0)
		return 2;
	failed |= store_put(f->store, "k", "2", 1, &err) != -1;
	failed |= !err || !err->hint || err->code != EXIT_REFUSED || !strstr(err->message, "'k'");
	err_freep(&err);
	failed |= store_put_if_absent(f->store, "new", "2", 1, &err) != -1;
	err_freep(&err);
	failed |= store_delete(f->store, "k", &err) != -1;
	err_freep(&err);
	return failed;
}

static void a_folder_without_rights_is_refused_with_a_hint(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;
	int status;

	must(store_put(f->store, "k", "1", 1, &err), err);
	assert_int_equal(chmod(f->scratch, 0755), 0);
	assert_int_equal(chmod(f->root, 0555), 0);
	pid = fork();
	if (pid == 0)
		_exit(as_nobody(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	chmod(f->root, 0755);
	assert_lists(f, "", "k ");
}

static int count_one(void *arg, const struct store_object *object, struct err **err)
{
	char *last = arg;

	(void)err;
	assert_true(strcmp(last, object->key) < 0);
	strcpy(last, object->key);
	return 0;
}

static void thousands_of_objects_come_sorted(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_close) int dir = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[64], last[64] = "";

	for (int i = 0; i < 20000; i++) {
		AUTO(auto_close) int fd = -1;

		snprintf(name, sizeof name, "%d", i * 7919 % 20000);
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
	}
	must(store_list(f->store, "", count_one, last, &err), err);
	assert_string_equal(last, "9999");
}

/* The progress of a walk over a large folder: every name in order, once. */
struct walk {
	char last[512];
	int seen, stop_at;
};

static int next_name(struct walk *walk, const char *name)
{
	assert_true(strcmp(walk->last, name) < 0);
	snprintf(walk->last, sizeof walk->last, "%s", name);
	return ++walk->seen == walk->stop_at;
}

static int next_object(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	return next_name(arg, object->key);
}

static int next_folder(void *arg, const char *name, struct err **err)
{
	(void)err;
	return next_name(arg, name);
}

#define MANY 24000

/* More names than are held at once, several times over: long ones, that differ in
 * their last characters; some are folders, with a file in each. All files are one,
 * which takes less time to make than as many. */
static void make_many(const struct fixture *f)
{
	AUTO(auto_close) int dir = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int out = open(f->outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int fd = openat(out, "one", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char name[256], below[264];

	assert_true(fd >= 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "%0200d", i * 7919 % MANY);
		snprintf(below, sizeof below, "%s%s", name, i % 100 ? "" : "/x");
		assert_true(i % 100 || mkdirat(dir, name, 0700) == 0);
		assert_int_equal(linkat(out, "one", dir, below, 0), 0);
	}
}

static void a_folder_of_any_size_is_listed_whole_and_in_order(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	struct walk all = { 0 }, some = { 0 }, folders = { 0 }, cut = { .stop_at = MANY * 3 / 4 };
	char prefix[200];

	make_many(f);
	must(store_list(f->store, "", next_object, &all, &err), err);
	assert_int_equal(all.seen, MANY);
	snprintf(prefix, sizeof prefix, "%0196d", 1); /* 10000 to 19999 */
	must(store_list(f->store, prefix, next_object, &some, &err), err);
	assert_int_equal(some.seen, 10000);
	must(store_folders(f->store, "", next_folder, &folders, &err), err);
	assert_int_equal(folders.seen, MANY / 100);
	must(store_list(f->store, "", next_object, &cut, &err), err);
	assert_int_equal(cut.seen, MANY * 3 / 4);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_folder_is_made_by_the_first_write_and_private),
		T(a_folder_that_may_not_last_is_made_to_by_the_next_writer),
		T(no_link_leads_out_for_writing_or_reading),
		T(the_root_itself_may_be_a_link),
		T(leftovers_of_killed_writers_are_invisible),
		T(a_lock_left_behind_locks_nobody_out),
		T(no_temporary_file_stays_after_success_or_refusal),
		T(a_file_in_the_way_of_a_folder_is_named),
		T(special_files_are_no_objects),
		T(a_folder_without_rights_is_refused_with_a_hint),
		T(thousands_of_objects_come_sorted),
		T(a_folder_of_any_size_is_listed_whole_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
