/*
 * Conformance: one script of operations, drawn from a seed, is played against the real kernel and
 * against the world, by the same code, linked without and with -Wl,--wrap. Each operation gives a
 * line of text: what it was, and its result or error. The texts must be equal.
 *
 * Two processes take turns, as the script says, so that locks are seen from both sides. Nothing
 * waits: locks are tried, pipes do not block.
 *
 *   player.c         what is common: the script, slots of descriptors, paths
 *   files.c          operations that change files and folders, or take locks
 *   looks.c          operations that only look
 *   processes.c      operations on processes and signals
 *   main_real.c      plays in a folder of the real kernel, in two children
 *   main_world.c     plays in the world
 */
#ifndef STK_TESTS_WORLD_CONFORM_PLAYER_H
#define STK_TESTS_WORLD_CONFORM_PLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAYERS     2 /* processes */
#define SLOTS       6 /* descriptors that a player may have open */
#define RESULT_SIZE 2048

/* What a player remembers between its operations. */
struct player {
	int number;
	int fds[SLOTS]; /* -1: closed */
	uint64_t seed;  /* of the operation that is played */
};

/* What was drawn for one operation: all of it follows from its seed. */
uint64_t draw(struct player *player, uint64_t n); /* 0 ≤ result < n */
const char *draw_path(struct player *player);
int draw_slot(struct player *player);

/* Adds to the text of the operation: what was called, and with what result. */
void tell(char *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A result of a call that returns -1 and errno. */
void tell_result(char *result, long long value);
/* Bytes, as their number and a sum. */
void tell_bytes(char *result, const void *bytes, size_t len);

/* A kind of operations: how often it is drawn among all, and what it does. */
struct operation {
	const char *name;
	int weight;
	void (*play)(struct player *player, char *result);
};

/* Each ends with a NULL name. */
extern const struct operation file_operations[], look_operations[], process_operations[];

/* Draws the slot of a descriptor, tells it, and returns the descriptor; -1: closed. */
int draw_fd(struct player *player, char *result);
/* A folder to begin from: the present one, or a descriptor that may be none. */
int draw_dirfd(struct player *player, char *result);

/* Which player plays operation `number` of a script, and the operation itself. */
int script_turn(uint64_t seed, int number);
void script_play(struct player *player, uint64_t seed, int number, char result[RESULT_SIZE]);
void player_init(struct player *player, int number);
/* Closes what is left open. */
void player_end(struct player *player);

#endif
