/* The world's only chance: xoshiro256**, seeded by splitmix64 (both by Blackman and Vigna, in the
 * public domain). See kernel.h. */
#include "tests/world/kernel.h"

static uint64_t state[CHANCE_STATE] = { 1, 2, 3, 4 };

static uint64_t rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

static uint64_t mix(uint64_t *at)
{
	uint64_t z = *at += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void chance_seed(uint64_t seed, uint64_t schedule)
{
	uint64_t at = seed;

	at = mix(&at) ^ schedule;
	for (int i = 0; i < CHANCE_STATE; i++)
		state[i] = mix(&at);
}

void chance_keep(uint64_t ret[CHANCE_STATE])
{
	for (int i = 0; i < CHANCE_STATE; i++)
		ret[i] = state[i];
}

void chance_go_on(const uint64_t kept[CHANCE_STATE])
{
	for (int i = 0; i < CHANCE_STATE; i++)
		state[i] = kept[i];
}

uint64_t chance_next(void)
{
	uint64_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = rotate(state[3], 45);
	return result;
}

int64_t chance_below(int64_t n)
{
	/* The high half; the bias is below n / 2⁶³, which does not matter here. */
	__extension__ unsigned __int128 product = (unsigned __int128)chance_next() * (uint64_t)n;

	return (int64_t)(product >> 64);
}

bool chance_one_in(int64_t n)
{
	return n > 0 && chance_below(n) == 0;
}
