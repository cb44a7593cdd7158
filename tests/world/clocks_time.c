/* Time that counts: see clocks_time.h. */
#include "tests/world/clocks_time.h"

#include <string.h>

#include "jobs/base/mem.h"
#include "tests/world/kernel_internal.h"

/* Of a process, by its number. */
struct spent {
	int64_t lost_ns;  /* did not count, up to the last look */
	int64_t slept_ns; /* of it, or of a call that hung: suspended */
	int64_t since_ns; /* a call hangs since then; 0: none */
	bool idle;        /* at the last look it could not act */
};
static struct spent *spent;
static size_t spent_room;
static int64_t looked_ns;

int64_t figure_ns(enum figure figure)
{
#define FIGURE(name, seconds, meaning) [name] = (seconds),
	static const int64_t figures[FIGURE_COUNT] = {
#include "tests/world/clocks.def"
	};
#undef FIGURE
	return figures[figure] * WORLD_S;
}

void time_reset(void)
{
	if (spent)
		memset(spent, 0, spent_room * sizeof *spent);
	looked_ns = 0;
}

static struct spent *spent_by(const struct process *process)
{
	size_t before = spent_room;

	if (process->number < spent_room)
		return &spent[process->number];
	spent_room = (size_t)process->number + 256;
	spent = mem_grow(spent, spent_room, sizeof *spent);
	memset(spent + before, 0, (spent_room - before) * sizeof *spent);
	return &spent[process->number];
}

bool time_counts(const struct process *process)
{
	return process->state == PROCESS_ALIVE && process_runs(process) &&
	       spent_by(process)->since_ns == 0;
}

void time_look(void)
{
	int64_t passed = now_ns - looked_ns;

	looked_ns = now_ns;
	for (const struct process *p = processes; p; p = p->next) {
		struct spent *s;

		if (p->state != PROCESS_ALIVE)
			continue;
		s = spent_by(p);
		if (s->idle)
			s->slept_ns += passed;
		if (s->idle && s->since_ns == 0)
			s->lost_ns += passed;
		s->idle = !process_runs(p);
	}
}

int64_t time_counted_ns(const struct process *process)
{
	struct spent *s = spent_by(process);
	int64_t hangs = s->since_ns ? now_ns - s->since_ns : s->idle ? now_ns - looked_ns : 0;

	return now_ns - s->lost_ns - hangs;
}

int64_t time_awake_ns(const struct process *process)
{
	struct spent *s = spent_by(process);

	return now_ns - s->slept_ns - (s->idle ? now_ns - looked_ns : 0);
}

void time_call_hangs(const struct process *process)
{
	struct spent *s = spent_by(process);

	if (s->since_ns == 0)
		s->since_ns = now_ns;
}

void time_call_returns(const struct process *process)
{
	struct spent *s = spent_by(process);

	if (s->since_ns == 0)
		return;
	s->lost_ns += now_ns - s->since_ns;
	s->since_ns = 0;
}

void stretch_begin(struct stretch *stretch, const struct process *who)
{
	stretch->who = who;
	stretch->from_ns = who ? time_counted_ns(who) : 0;
}

int64_t stretch_ns(const struct stretch *stretch)
{
	return stretch->who ? time_counted_ns(stretch->who) - stretch->from_ns : 0;
}
