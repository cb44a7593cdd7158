/* Time, and who runs: see kernel.h. */
#include <stdlib.h>

#include "tests/world/kernel_internal.h"

/* What happens outside of any process, the earliest first; of those at one time the first made. */
struct event {
	int64_t at_ns;
	uint64_t order;
	void (*fn)(void *arg);
	void *arg;
};

struct process *self, *running_process;
int64_t now_ns;
void (*world_observer)(void);

static struct coroutine *first, **last = &first;
static struct event *events; /* a heap */
static size_t event_count, event_room;
static uint64_t orders;
static int64_t end_ns; /* of world_play_until() */
static bool stopping;  /* world_stop() */
static bool stirred;   /* waits are to be looked at */
static bool observing;

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap_events(size_t a, size_t b)
{
	struct event event = events[a];

	events[a] = events[b];
	events[b] = event;
}

void world_at(int64_t at_ns, void (*fn)(void *arg), void *arg)
{
	size_t at = event_count++;

	if (event_count > event_room) {
		event_room = event_room ? 2 * event_room : 64;
		events = realloc(events, event_room * sizeof *events);
		if (!events)
			world_broken("there is no memory left");
	}
	events[at] = (struct event){ at_ns > now_ns ? at_ns : now_ns, ++orders, fn, arg };
	for (; at > 0 && is_before(&events[at], &events[(at - 1) / 2]); at = (at - 1) / 2)
		swap_events(at, (at - 1) / 2);
}

static struct event take_event(void)
{
	struct event event = events[0];

	events[0] = events[--event_count];
	for (size_t at = 0, least;; at = least) {
		size_t left = 2 * at + 1, right = left + 1;

		least = at;
		if (left < event_count && is_before(&events[left], &events[least]))
			least = left;
		if (right < event_count && is_before(&events[right], &events[least]))
			least = right;
		if (least == at)
			return event;
		swap_events(at, least);
	}
}

/* ---- processes ---- */

void schedule_add(struct coroutine *coroutine)
{
	coroutine->wake_ns = now_ns;
	coroutine->order = ++orders;
	coroutine->next = NULL;
	coroutine->prev = last;
	*last = coroutine;
	last = &coroutine->next;
}

void schedule_remove(struct coroutine *coroutine)
{
	*coroutine->prev = coroutine->next;
	if (coroutine->next)
		coroutine->next->prev = coroutine->prev;
	else
		last = coroutine->prev;
}

/* Who becomes ready while its machine sleeps goes on as soon as that wakes. */
static void end_wait(struct coroutine *coroutine, int result)
{
	int64_t asleep_ns = coroutine->process->machine->asleep_since_ns;

	coroutine->waits = false;
	coroutine->result = result;
	coroutine->wake_ns = asleep_ns != WORLD_NEVER ? asleep_ns : now_ns;
	coroutine->order = ++orders;
}

void schedule_interrupt(struct process *process)
{
	if (process->coroutine && process->coroutine->waits)
		end_wait(process->coroutine, -EINTR);
}

void schedule_put_off(const struct machine *machine, int64_t ns)
{
	for (struct coroutine *at = first; at; at = at->next)
		if (at->process->machine == machine && at->wake_ns != WORLD_NEVER &&
		    (at->waits || at->wake_ns > machine->asleep_since_ns))
			at->wake_ns += ns;
}

void world_stir(void)
{
	stirred = true;
}

/* ready() sees the world as the process that waits. */
static bool is_ready(const struct coroutine *coroutine)
{
	struct process *before = self;
	bool ready;

	if (!coroutine->ready)
		return false;
	self = coroutine->process;
	ready = coroutine->ready(coroutine->ready_arg);
	self = before;
	return ready;
}

static void look_at_waits(void)
{
	stirred = false;
	for (struct coroutine *at = first; at; at = at->next)
		if (at->waits && process_runs(at->process) && is_ready(at))
			end_wait(at, 0);
}

static struct coroutine *earliest(const struct coroutine *but)
{
	struct coroutine *best = NULL;

	for (struct coroutine *at = first; at; at = at->next)
		if (at != but && at->wake_ns != WORLD_NEVER && process_runs(at->process) &&
		    (!best || at->wake_ns < best->wake_ns ||
		     (at->wake_ns == best->wake_ns && at->order < best->order)))
			best = at;
	return best;
}

/* ---- within a process ---- */

static void give_way(void)
{
	fiber_give_way();
	signal_run_handlers();
}

/* True if nobody else has anything to do until then. */
static bool is_quiet_until(int64_t at_ns)
{
	const struct coroutine *other;

	if (stopping || at_ns > end_ns || timerfds_due_ns() <= at_ns ||
	    (event_count > 0 && events[0].at_ns <= at_ns) || !process_runs(self))
		return false;
	if (stirred)
		look_at_waits();
	other = earliest(self->coroutine);
	return !other || other->wake_ns > at_ns;
}

void world_spend(int64_t ns)
{
	struct coroutine *coroutine = self->coroutine;
	int64_t at = now_ns + ns;

	if (is_quiet_until(at)) {
		now_ns = at;
		return;
	}
	coroutine->wake_ns = at;
	coroutine->order = ++orders;
	give_way();
}

int world_wait(bool (*ready)(void *arg), void *arg, int64_t until_ns)
{
	struct coroutine *coroutine = self->coroutine;

	if (ready && ready(arg))
		return 0;
	if (signal_has_handler_due(self)) {
		signal_run_handlers();
		return -EINTR;
	}
	if (until_ns <= now_ns)
		return -ETIMEDOUT;
	coroutine->ready = ready;
	coroutine->ready_arg = arg;
	coroutine->waits = true;
	coroutine->wake_ns = until_ns;
	coroutine->order = ++orders;
	coroutine->result = -ETIMEDOUT;
	give_way();
	coroutine->stop_interrupts = false;
	return coroutine->result;
}

/* ---- the world ---- */

void world_stop(void)
{
	stopping = true;
}

void world_observe(void)
{
	struct process *before = self;

	if (!world_observer || observing)
		return;
	observing = true;
	if (before)
		statics_leave(before->coroutine);
	self = NULL;
	world_observer();
	observing = false;
	if (before && before->coroutine)
		statics_enter(before->coroutine);
	self = before;
	process_leave();
}

static void run(struct coroutine *coroutine)
{
	coroutine->waits = false;
	self = running_process = coroutine->process;
	statics_enter(coroutine);
	fiber_run(coroutine->fiber);
	statics_leave(running_process->coroutine);
	self = running_process = NULL;
}

/* Does what is due next; false if nothing is due until then. */
static bool play_next(int64_t until_ns)
{
	struct coroutine *next;
	int64_t timer_ns = timerfds_due_ns();
	int64_t event_ns = event_count > 0 ? events[0].at_ns : WORLD_NEVER;
	int64_t at;

	if (stirred)
		look_at_waits();
	next = earliest(NULL);
	at = next ? next->wake_ns : WORLD_NEVER;
	at = at < event_ns ? at : event_ns;
	at = at < timer_ns ? at : timer_ns;
	if (at == WORLD_NEVER || at > until_ns)
		return false;
	now_ns = at > now_ns ? at : now_ns;
	if (timer_ns <= now_ns) {
		timerfds_fire();
	} else if (event_ns <= now_ns) {
		struct event event = take_event();

		event.fn(event.arg);
		stirred = true;
		world_observe();
	} else {
		run(next);
	}
	return true;
}

void world_play_until(int64_t until_ns)
{
	stopping = false;
	end_ns = until_ns;
	while (!stopping && play_next(until_ns))
		;
	if (!stopping && until_ns != WORLD_NEVER && until_ns > now_ns)
		now_ns = until_ns;
}
