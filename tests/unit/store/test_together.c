/* What store.h promises to many who write at once, and after one was killed: holds for
 * every kind of store. */
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/unit/store/contract.h"

/* --- killed writers --- */

/* A store is not to be used on both sides of a fork. */
static struct store *own_store(const struct fixture *f)
{
	struct store *store = NULL;
	struct err *err = NULL;

	if (store_open(f->url, &store, &err) < 0)
		_exit(3);
	return store;
}

static void what_a_killed_writer_wrote_is_whole_or_not_there(void **state)
{
	struct fixture *f = *state;
	enum { BYTES = 24 << 20 };
	AUTO(auto_free) char *path = fs_join(f->scratch, "big");
	AUTO(auto_free) char *big = mem_zero(1, BYTES);
	AUTO(err_freep) struct err *err = NULL;
	struct store_object object;
	int found;

	must(fs_write_atomic(path, big, BYTES, 0600, &err), err);
	for (int i = 0; i < 12; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			struct store *store = own_store(f);

			for (;;) {
				if (store_upload(store, path, "a/object", &err) < 0 ||
				    store_put(store, "a/other", big, BYTES / 8, &err) < 0 ||
				    store_delete(store, "a/object", &err) < 0)
					_exit(1);
			}
		}
		usleep((useconds_t)(5000 + i * 25000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		found = store_stat(f->store, "a/object", &object, &err);
		must(found, err);
		assert_true(found == 0 || object.size == BYTES);
		found = store_stat(f->store, "a/other", &object, &err);
		must(found, err);
		assert_true(found == 0 || object.size == BYTES / 8);
	}
	/* Leftovers do not stand in the way of later writers. */
	must(store_delete(f->store, "a/object", &err), err);
	assert_int_equal(store_upload(f->store, path, "a/object", &err), 1);
	assert_int_equal(store_stat(f->store, "a/object", &object, &err), 1);
	assert_int_equal(object.size, BYTES);
}

/* Returns how many names there are in a folder; each must be `want` or temporary. */
static int count_names(const char *folder, const char *want)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' && strncmp(entry->d_name, FS_TEMP_PREFIX, 9) != 0)
			continue;
		assert_true(strcmp(entry->d_name, want) == 0 || entry->d_name[0] == '.');
		count++;
	}
	closedir(dir);
	return count;
}

static void what_a_killed_reader_brought_down_is_whole_or_not_there(void **state)
{
	struct fixture *f = *state;
	enum { BYTES = 40 << 20 };
	AUTO(auto_free) char *from = fs_join(f->scratch, "from");
	AUTO(auto_free) char *folder = fs_join(f->scratch, "down");
	AUTO(auto_free) char *to = fs_join(folder, "big");
	AUTO(auto_free) char *big = mem_zero(1, BYTES);
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	must(fs_write_atomic(from, big, BYTES, 0600, &err), err);
	must(fs_mkdirs(folder, &err), err);
	assert_int_equal(store_upload(f->store, from, "big", &err), 1);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			struct store *store = own_store(f);

			for (;;)
				if (store_download(store, "big", to, &err) != 1)
					_exit(1);
		}
		usleep((useconds_t)(10000 + i * 40000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		if (stat(to, &st) == 0) {
			assert_int_equal(st.st_size, BYTES);
			assert_int_equal(unlink(to), 0);
		}
		/* Between the two names there is a moment, in which few are killed. */
		if (f->kind->comes_down_nameless)
			assert_true(count_names(folder, "big") <= 1);
	}
	assert_int_equal(store_download(f->store, "big", to, &err), 1);
	assert_int_equal(stat(to, &st), 0);
	assert_int_equal(st.st_size, BYTES);
}

/* --- races: 8 processes that start each round together --- */

enum { RACERS = 8, ROUNDS = 60 };

struct arena {
	int arrived, round, wins[ROUNDS];
};

/* Everybody waits until all have come. */
static void meet(struct arena *arena, int round)
{
	if (__atomic_add_fetch(&arena->arrived, 1, __ATOMIC_SEQ_CST) == RACERS * (round + 1))
		__atomic_store_n(&arena->round, round + 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&arena->round, __ATOMIC_SEQ_CST) <= round)
		usleep(50);
}

typedef int (*race_fn)(struct store *store, int round, int racer, struct arena *arena);

static int race_to_create(struct store *store, int round, int racer, struct arena *arena)
{
	AUTO(auto_free) char *key = mem_format("claim/%d", round);
	AUTO(auto_free) char *text = mem_format("racer %d", racer);
	struct err *err = NULL;

	meet(arena, round);
	return store_put_if_absent(store, key, text, strlen(text), &err);
}

static int race_to_replace(struct store *store, int round, int racer, struct arena *arena)
{
	AUTO(auto_free) char *text = mem_format("%d %d", round, racer);
	struct err *err = NULL;
	struct store_object object;

	if (store_stat(store, "lease", &object, &err) != 1)
		return -1;
	meet(arena, 2 * round); /* all hold the tag of the same content */
	int won = store_replace_if_same(store, "lease", object.tag, text, strlen(text), &err);

	meet(arena, 2 * round + 1);
	return won;
}

static void run_race(struct fixture *f, race_fn race)
{
	struct arena *arena = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[RACERS];

	assert_true(arena != MAP_FAILED);
	for (int racer = 0; racer < RACERS; racer++) {
		pids[racer] = fork();
		if (pids[racer] == 0) {
			struct store *store = own_store(f);

			for (int round = 0; round < ROUNDS; round++) {
				int won = race(store, round, racer, arena);

				if (won < 0)
					_exit(1);
				__atomic_add_fetch(&arena->wins[round], won, __ATOMIC_SEQ_CST);
			}
			_exit(0);
		}
	}
	for (int racer = 0; racer < RACERS; racer++) {
		int status;

		assert_int_equal(waitpid(pids[racer], &status, 0), pids[racer]);
		assert_int_equal(status, 0);
	}
	for (int round = 0; round < ROUNDS; round++)
		assert_int_equal(arena->wins[round], 1);
	munmap(arena, sizeof *arena);
}

static void of_eight_that_create_at_once_one_wins(void **state)
{
	run_race(*state, race_to_create);
}

static void of_eight_that_replace_at_once_one_wins(void **state)
{
	struct fixture *f = *state;

	put(f, "lease", "start");
	run_race(f, race_to_replace);
}

/* Reads, adds one and replaces until it was let, 50 times. */
static int count_up(struct store *store)
{
	for (int done = 0; done < 50;) {
		AUTO(sb_release) struct sb text = SB_INIT;
		struct err *err = NULL;
		char tag[STORE_TAG], next[16];
		int won;

		if (store_get(store, "n", 16, &text, tag, &err) != 1)
			return 1;
		snprintf(next, sizeof next, "%05d", atoi(text.text) + 1);
		won = store_replace_if_same(store, "n", tag, next, 5, &err);
		if (won < 0)
			return 1;
		done += won;
	}
	return 0;
}

static void no_update_is_lost_among_those_who_count_together(void **state)
{
	struct fixture *f = *state;
	pid_t pids[4];

	put(f, "n", "00000");
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(count_up(own_store(f)));
	}
	for (int i = 0; i < 4; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_holds(f, "n", "00200");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_a_killed_writer_wrote_is_whole_or_not_there),
		T(what_a_killed_reader_brought_down_is_whole_or_not_there),
		T(of_eight_that_create_at_once_one_wins),
		T(of_eight_that_replace_at_once_one_wins),
		T(no_update_is_lost_among_those_who_count_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
