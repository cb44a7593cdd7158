/*
 * The floor of simulated schedules: what a simulator must do at least for each, 60
 * events out of a heap ordered by time, each with a chance drawn, and no workflow.
 */
#include <inttypes.h>

#include "tests/bench/bench.h"

#define EVENTS  60
#define PENDING 16

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void sink(uint64_t *heap, size_t at, size_t count)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		uint64_t moved = heap[at];

		if (child + 1 < count && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= moved)
			return;
		heap[at] = heap[child];
		heap[child] = moved;
	}
}

int main(int argc, char **argv)
{
	long schedules = argc == 2 ? number_of(argv[1]) : 0;
	uint64_t state = 88172645463325252u, sum = 0;
	double cpu = cpu_seconds();

	for (long k = 0; k < schedules; k++) {
		uint64_t heap[PENDING];

		for (size_t i = 0; i < PENDING; i++)
			heap[i] = next(&state) >> 32;
		for (size_t i = PENDING / 2; i-- > 0;)
			sink(heap, i, PENDING);
		for (int e = 0; e < EVENTS; e++) {
			sum += heap[0];
			heap[0] += next(&state) >> 40;
			sink(heap, 0, PENDING);
		}
	}
	printf("{\"cpu\": %.6f, \"schedules\": %ld, \"sum\": %" PRIu64 "}\n", cpu_seconds() - cpu,
	       schedules, sum);
	return 0;
}
