/* Plays scripts in the world: see player.h.
 *
 *	conform_world local|memory FIRST_SEED SEEDS OPERATIONS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/world/conform/player.h"
#include "tests/world/kernel.h"
#include "tests/world/tree.h"

#define BELOW "/play/t/u/v/in"

static uint64_t seed;
static int operations, played;

struct turn {
	int operation;
};

static bool is_due(void *arg)
{
	const struct turn *turn = arg;

	return played == turn->operation;
}

static void wait_for(struct turn *turn)
{
	while (world_wait(is_due, turn, WORLD_NEVER) != 0)
		;
}

static int player_main(int argc, char **argv)
{
	struct player player;
	char result[RESULT_SIZE];

	if (argc != 2)
		return 1;
	player_init(&player, atoi(argv[1]));
	for (int i = 0; i < operations; i++) {
		struct turn turn = { i };

		if (script_turn(seed, i) != player.number)
			continue;
		wait_for(&turn);
		script_play(&player, seed, i, result);
		printf("%llu/%d %s\n", (unsigned long long)seed, i, result);
		played++;
		world_stir();
	}
	wait_for(&(struct turn){ operations }); /* what it has open is there until the end */
	return 0;
}

static void play_script(enum disk_kind kind)
{
	static const char program[] = "\177ELF world player\n";
	char host[32];
	struct machine *machine;

	snprintf(host, sizeof host, "host-%llu", (unsigned long long)seed);
	chance_seed(1, seed);
	machine = machine_new(host, 1800000000 * WORLD_S);
	tree_mount(machine->root, "/play", disk_new(kind, kind == DISK_LOCAL ? "disk" : "tmpfs"));
	tree_mkdirs(machine, BELOW);
	tree_put(machine, "/bin/player", program, strlen(program), 0755);
	played = 0;
	for (int i = 0; i < PLAYERS; i++) {
		char number[2] = { (char)('0' + i), '\0' };
		char *argv[] = { (char[]){ "player" }, number, NULL }, *envp[] = { NULL };
		struct process_start start = { .machine = machine,
					       .program = "/bin/player",
					       .argv = argv,
					       .envp = envp,
					       .cwd = BELOW };

		if (!process_start(&start))
			exit(2);
	}
	world_play_until(WORLD_NEVER);
}

int main(int argc, char **argv)
{
	uint64_t end;

	if (argc != 5)
		return 2;
	program_register("player", player_main);
	seed = strtoull(argv[2], NULL, 10);
	end = seed + strtoull(argv[3], NULL, 10);
	operations = atoi(argv[4]);
	for (; seed < end; seed++)
		play_script(strcmp(argv[1], "memory") == 0 ? DISK_MEMORY : DISK_LOCAL);
	return 0;
}
