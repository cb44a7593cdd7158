/* The script and what its operations have in common: see player.h. */
#include "tests/world/conform/player.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SplitMix64: the same numbers on both sides, whatever their order of evaluation elsewhere. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t draw(struct player *player, uint64_t n)
{
	return next(&player->seed) % n;
}

/* Few names, so that they meet; two folders, links of which some lead nowhere or in rings, and what
 * is not quite a name. */
const char *draw_path(struct player *player)
{
	static const char *const plain[] = { "a",   "b",     "c",     "d", "d/a", "d/b",
					     "d/e", "d/e/a", "d/e/b", "l", "d/l" };
	static const char *const odd[] = {
		"",          ".",       "..",          "a/",  "d/",   "d/.",  "d/..",
		"d/e/..",    "a/b",     "l/",          "l/a", "d//a", "./a",  "d/../a",
		"missing/a", "missing", "d/e/../../b", "a/.", "l/..", "d/l/b"
	};
	static char long_name[260];

	if (draw(player, 4))
		return plain[draw(player, sizeof plain / sizeof *plain)];
	if (draw(player, 12) == 0) {
		memset(long_name, 'x', sizeof long_name);
		long_name[254 + draw(player, 3)] = '\0';
		return long_name;
	}
	return odd[draw(player, sizeof odd / sizeof *odd)];
}

int draw_slot(struct player *player)
{
	return (int)draw(player, SLOTS);
}

int draw_fd(struct player *player, char *result)
{
	int slot = draw_slot(player);

	tell(result, " #%d", slot);
	return player->fds[slot];
}

int draw_dirfd(struct player *player, char *result)
{
	if (draw(player, 3))
		return AT_FDCWD;
	return draw_fd(player, result);
}

void tell(char *result, const char *format, ...)
{
	size_t len = strlen(result);
	va_list args;

	va_start(args, format);
	vsnprintf(result + len, RESULT_SIZE - len, format, args);
	va_end(args);
}

void tell_result(char *result, long long value)
{
	if (value < 0)
		tell(result, " = %s", strerrorname_np(errno));
	else
		tell(result, " = %lld", value);
}

void tell_bytes(char *result, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	unsigned sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + at[i];
	tell(result, " %zu bytes %08x", len, sum);
}

void player_init(struct player *player, int number)
{
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	*player = (struct player){ .number = number };
	for (int i = 0; i < SLOTS; i++)
		player->fds[i] = -1;
}

void player_end(struct player *player)
{
	for (int i = 0; i < SLOTS; i++) {
		if (player->fds[i] >= 0)
			close(player->fds[i]);
		player->fds[i] = -1;
	}
}

static uint64_t seed_of(uint64_t seed, int number)
{
	uint64_t state = seed * 1000003 + (uint64_t)number;

	return next(&state);
}

int script_turn(uint64_t seed, int number)
{
	/* Some operations in a row, so that a player gets somewhere. */
	return (int)(seed_of(seed, number / 5) % PLAYERS);
}

static const struct operation *const lists[] = { file_operations, look_operations,
						 process_operations };

static int weight_of(const struct operation *list)
{
	int sum = 0;

	for (; list->name; list++)
		sum += list->weight;
	return sum;
}

/* Plays what stands at a place of all weights, one list after the other. */
static const struct operation *pick(int at)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (const struct operation *one = lists[i]; one->name; one++) {
			if (at < one->weight)
				return one;
			at -= one->weight;
		}
	abort();
}

void script_play(struct player *player, uint64_t seed, int number, char result[RESULT_SIZE])
{
	const struct operation *operation;
	int all = 0;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		all += weight_of(lists[i]);
	player->seed = seed_of(seed, number);
	operation = pick((int)draw(player, (uint64_t)all));
	result[0] = '\0';
	tell(result, "%d: %s", player->number, operation->name);
	operation->play(player, result);
}
