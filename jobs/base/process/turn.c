/* A bounded turn of a loop: see turn.h. */
#include "jobs/base/process/turn.h"

struct turn turn_begin(size_t bytes, int64_t cpu_ms, int64_t wall_ms)
{
	return (struct turn){ .bytes = bytes,
			      .cpu_end = { clock_cpu_now().us + cpu_ms * 1000 },
			      .end = { clock_mono_now().ms + wall_ms } };
}

bool turn_spend(struct turn *turn, size_t bytes)
{
	turn->bytes -= bytes < turn->bytes ? bytes : turn->bytes;
	if (turn->bytes == 0 || clock_cpu_now().us >= turn->cpu_end.us ||
	    clock_mono_now().ms >= turn->end.ms)
		turn->over = true;
	return turn->over;
}
