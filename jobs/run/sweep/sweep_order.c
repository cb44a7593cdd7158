/* Shuffling by an id: see sweep_order.h. */
#include "jobs/run/sweep/sweep_order.h"

#include <stdint.h>
#include <string.h>

#include "jobs/base/hash.h"

/* The next number of the sequence that the seed begins (splitmix64, Steele and others 2014). */
static uint64_t next(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void sweep_order(const char *id, size_t count, size_t *ret)
{
	struct sha256 *sha = hash_sha256_new();
	uint8_t digest[SHA256_BYTES];
	uint64_t seed = 0;

	hash_sha256_add(sha, id, strlen(id));
	hash_sha256_next(sha, digest);
	hash_sha256_freep(&sha);
	for (size_t i = 0; i < sizeof seed; i++)
		seed = seed << 8 | digest[i];
	for (size_t i = 0; i < count; i++)
		ret[i] = i;
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)(next(&seed) % i), kept = ret[i - 1];

		ret[i - 1] = ret[other];
		ret[other] = kept;
	}
}
