/* Plays scripts in a folder of the real kernel: see player.h.
 *
 *	conform_real FOLDER FIRST_SEED SEEDS OPERATIONS
 *
 * Each script has a new folder, some levels deep, so that "../.." is its own, too, and two children
 * with nothing open but their ways to the parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/world/conform/player.h"

#define BELOW    "/t/u/v/in"
#define ASKED_FD 200
#define TOLD_FD  201

struct child {
	pid_t pid;
	int ask, told;
};

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void make_folders(const char *top)
{
	char path[4096];

	for (size_t len = 1; len <= strlen(BELOW); len++) {
		if (BELOW[len] != '/' && BELOW[len] != '\0')
			continue;
		snprintf(path, sizeof path, "%s%.*s", top, (int)len, BELOW);
		if (mkdir(path, 0755) < 0)
			fail(path);
	}
}

static void remove_all(const char *top)
{
	char *const roots[] = { (char *)(uintptr_t)top, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const FTSENT *entry;

	while (tree && (entry = fts_read(tree))) {
		if (entry->fts_info == FTS_D)
			chmod(entry->fts_path, 0700);
		else
			remove(entry->fts_path);
	}
	if (tree)
		fts_close(tree);
}

static void play_child(int number, uint64_t seed)
{
	struct player player;
	char result[RESULT_SIZE];
	int operation;

	player_init(&player, number);
	while (read(ASKED_FD, &operation, sizeof operation) == sizeof operation) {
		script_play(&player, seed, operation, result);
		if (write(TOLD_FD, result, sizeof result) != sizeof result)
			_exit(1);
	}
	_exit(0);
}

static struct child start(int number, uint64_t seed)
{
	int to[2], from[2];
	pid_t pid;

	fflush(stdout);
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		fail("pipe2");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		if (dup2(to[0], ASKED_FD) < 0 || dup2(from[1], TOLD_FD) < 0)
			_exit(1);
		close_range(3, ASKED_FD - 1, 0);
		close_range(TOLD_FD + 1, 1000, 0);
		play_child(number, seed);
	}
	close(to[0]);
	close(from[1]);
	return (struct child){ pid, to[1], from[0] };
}

static void play_script(uint64_t seed, int operations)
{
	struct child children[PLAYERS];
	char result[RESULT_SIZE];

	for (int i = 0; i < PLAYERS; i++)
		children[i] = start(i, seed);
	for (int i = 0; i < operations; i++) {
		struct child *child = &children[script_turn(seed, i)];
		size_t had = 0;
		ssize_t got;

		if (write(child->ask, &i, sizeof i) != sizeof i)
			fail("a player is gone");
		while (had < sizeof result &&
		       (got = read(child->told, result + had, sizeof result - had)) > 0)
			had += (size_t)got;
		if (had < sizeof result)
			fail("a player ended early");
		printf("%llu/%d %s\n", (unsigned long long)seed, i, result);
	}
	for (int i = 0; i < PLAYERS; i++) {
		close(children[i].ask);
		close(children[i].told);
		waitpid(children[i].pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	uint64_t first;
	int seeds, operations;

	if (argc != 5)
		return 2;
	first = strtoull(argv[2], NULL, 10);
	seeds = atoi(argv[3]);
	operations = atoi(argv[4]);
	for (uint64_t seed = first; seed < first + (uint64_t)seeds; seed++) {
		char top[4096], in[4200];

		snprintf(top, sizeof top, "%s/conform-XXXXXX", argv[1]);
		if (!mkdtemp(top))
			fail(top);
		make_folders(top);
		snprintf(in, sizeof in, "%s" BELOW, top);
		if (chdir(in) < 0)
			fail(in);
		play_script(seed, operations);
		if (chdir("/") < 0)
			fail("/");
		remove_all(top);
	}
	return 0;
}
