/* Machines and processes: see kernel.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

/* Few, so that a pid is soon another process's. */
#define PID_FIRST 300
#define PID_COUNT 300

struct process *processes;
static struct machine *machines;
static uint64_t processes_made;

_Noreturn void __real_abort(void);

_Noreturn void world_broken(const char *what)
{
	dprintf(2, "world: %s\n", what);
	__real_abort();
}

void *world_zero(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		world_broken("there is no memory left");
	return memory;
}

char *world_copy(const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		world_broken("there is no memory left");
	return copy;
}

char **world_list(char *const *list)
{
	size_t count = 0;
	char **copy;

	while (list && list[count])
		count++;
	copy = world_zero((count + 1) * sizeof *copy);
	for (size_t i = 0; i < count; i++)
		copy[i] = world_copy(list[i]);
	return copy;
}

/* ---- machines ---- */

static void draw_boot_id(struct machine *machine)
{
	uint64_t high = chance_next(), low = chance_next();

	snprintf(machine->boot_id, sizeof machine->boot_id, "%08x-%04x-4%03x-a%03x-%012llx",
		 (unsigned)(high >> 32), (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xfff,
		 (unsigned)(low >> 52), (unsigned long long)(low & 0xffffffffffff));
}

struct machine *machine_new(const char *host, int64_t wall_ns)
{
	struct machine *machine = world_zero(sizeof *machine), **last = &machines;

	snprintf(machine->host, sizeof machine->host, "%s", host);
	for (; *last; last = &(*last)->next)
		machine->number++;
	*last = machine;
	machine->wall_ns = wall_ns - now_ns;
	machine->booted_ns = now_ns - 3600 * WORLD_S; /* long ago */
	machine->asleep_since_ns = WORLD_NEVER;
	machine->next_pid = PID_FIRST;
	draw_boot_id(machine);
	machine->root = tree_new(machine);
	return machine;
}

void machine_suspend(struct machine *machine)
{
	if (!machine->off && machine->asleep_since_ns == WORLD_NEVER)
		machine->asleep_since_ns = now_ns;
}

static void act_on_signals(const struct machine *machine)
{
	for (struct process *at = processes; at; at = at->next)
		if (at->machine == machine && at->state == PROCESS_ALIVE)
			signal_act(at);
}

void machine_wake(struct machine *machine)
{
	int64_t slept = now_ns - machine->asleep_since_ns;

	if (machine->asleep_since_ns == WORLD_NEVER)
		return;
	schedule_put_off(machine, slept);
	machine->slept_ns += slept;
	machine->asleep_since_ns = WORLD_NEVER;
	act_on_signals(machine);
	world_stir();
}

void machine_halt(struct machine *machine, bool power_lost)
{
	if (machine->off)
		return;
	machine->off = true;
	machine->asleep_since_ns = WORLD_NEVER;
	for (struct process *at = processes; at; at = at->next)
		if (at->machine == machine && at->state != PROCESS_GONE) {
			if (at->state == PROCESS_ALIVE)
				at->status = SIGKILL; /* not ended by itself */
			process_vanish(at);
		}
	tree_halt(machine, power_lost);
	world_stir();
	process_leave();
}

void machine_boot(struct machine *machine)
{
	if (!machine->off)
		return;
	machine->off = false;
	machine->booted_ns = now_ns;
	machine->slept_ns = 0;
	machine->next_pid = PID_FIRST;
	draw_boot_id(machine);
}

int64_t machine_clock_ns(const struct machine *machine, clockid_t clock)
{
	int64_t slept = machine->slept_ns;

	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		return machine->wall_ns + now_ns;
	case CLOCK_BOOTTIME:
		return now_ns - machine->booted_ns;
	default:
		if (machine->asleep_since_ns != WORLD_NEVER)
			slept += now_ns - machine->asleep_since_ns;
		return now_ns - machine->booted_ns - slept;
	}
}

/* ---- processes ---- */

struct process *process_find(const struct machine *machine, pid_t pid)
{
	for (struct process *at = processes; at; at = at->next)
		if (at->pid == pid && at->machine == machine && at->state != PROCESS_GONE)
			return at;
	return NULL;
}

struct process *process_parent(const struct process *process)
{
	return process->parent == INIT_PID ? NULL : process_find(process->machine, process->parent);
}

bool process_runs(const struct process *process)
{
	return !process->stopped && process->machine->asleep_since_ns == WORLD_NEVER;
}

/* A pid that names nobody: no process, group or session; 0 if there is none. */
static pid_t free_pid(struct machine *machine)
{
	for (int tries = 0; tries < PID_COUNT; tries++) {
		pid_t pid = machine->next_pid;
		const struct process *at = processes;

		machine->next_pid = PID_FIRST + (pid - PID_FIRST + 1) % PID_COUNT;
		while (at && (at->machine != machine || at->state == PROCESS_GONE ||
			      (at->pid != pid && at->group != pid && at->session != pid)))
			at = at->next;
		if (!at)
			return pid;
	}
	return 0;
}

void process_becomes(struct process *process, const char *program, char *const *argv,
		     char *const *envp)
{
	const char *name = strrchr(program, '/');

	snprintf(process->name, sizeof process->name, "%s", name ? name + 1 : program);
	process->program = world_copy(program);
	process->argv = world_list(argv);
	process->envp = world_list(envp);
}

static void inherit(struct process *process, const struct process *parent)
{
	process->parent = parent->pid;
	process->group = parent->group;
	process->session = parent->session;
	process->umask = parent->umask;
	process->blocked = parent->blocked;
	process->ignored = parent->ignored;
	process->program = world_copy(parent->program);
	process->argv = world_list(parent->argv);
	process->envp = world_list(parent->envp);
	process->cwd = world_copy(parent->cwd);
	memcpy(process->name, parent->name, sizeof process->name);
	memcpy(process->limits, parent->limits, sizeof process->limits);
}

static void be_child_of_init(struct process *process)
{
	process->parent = INIT_PID;
	process->group = process->session = process->pid;
	process->umask = 022;
	process->cwd = world_copy("/");
	for (int i = 0; i < RLIM_NLIMITS; i++)
		process->limits[i] = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	process->limits[RLIMIT_NOFILE] = (struct rlimit){ PROCESS_FDS, PROCESS_FDS };
}

struct process *process_new(struct machine *machine, struct process *parent)
{
	pid_t pid = free_pid(machine);
	struct process *process;

	if (pid == 0)
		return NULL;
	process = world_zero(sizeof *process);
	process->machine = machine;
	process->pid = pid;
	process->number = ++processes_made;
	process->started_ns = machine_clock_ns(machine, CLOCK_BOOTTIME);
	process->coroutine = world_zero(sizeof *process->coroutine);
	process->coroutine->process = process;
	if (parent)
		inherit(process, parent);
	else
		be_child_of_init(process);
	process->next = processes;
	processes = process;
	return process;
}

static void begin(void *arg)
{
	struct process *process = arg;

	process->coroutine->body(process);
	process_exit(0);
}

void process_schedule(struct process *process, void (*body)(struct process *process), void *arg)
{
	process->coroutine->body = body;
	process->coroutine->arg = arg;
	process->coroutine->fiber = fiber_new(begin, process);
	schedule_add(process->coroutine);
}

/* ---- the end of a process ---- */

static void bury(struct process *process)
{
	struct coroutine *coroutine = process->coroutine;

	process->coroutine = NULL;
	statics_forget(coroutine);
	statics_free(&coroutine->statics);
	if (coroutine->fiber) {
		schedule_remove(coroutine);
		if (process != running_process)
			fiber_drop(coroutine->fiber);
	}
	free(coroutine);
}

void process_leave(void)
{
	/* With self NULL the world's own code is at work on its stack: it leaves when that is done.
	 */
	if (self && running_process && !running_process->coroutine)
		fiber_leave();
}

/* To whom the children of a process fall: its nearest ancestor that is a subreaper. */
static pid_t heir(const struct process *process)
{
	const struct process *at = process_parent(process);

	while (at && !(at->subreaper && at->state == PROCESS_ALIVE))
		at = process_parent(at);
	return at ? at->pid : INIT_PID;
}

void process_reap(struct process *process)
{
	process->state = PROCESS_GONE;
	world_stir();
}

/* A zombie that nobody waits for is gone, its parent told otherwise. */
static void tell_parent(struct process *process)
{
	struct process *parent = process_parent(process);

	if (!parent || (parent->ignored & SIGNAL_BIT(SIGCHLD)))
		process_reap(process);
	if (parent && !(parent->ignored & SIGNAL_BIT(SIGCHLD)))
		signal_send(parent, SIGCHLD);
}

static void orphan_children(struct process *process)
{
	pid_t to = heir(process);
	struct process *next;

	for (struct process *at = processes; at; at = next) {
		next = at->next;
		if (at->machine != process->machine || at->parent != process->pid ||
		    at->state == PROCESS_GONE)
			continue;
		at->parent = to;
		if (at->state == PROCESS_ZOMBIE)
			tell_parent(at);
		else if (at->death_signal)
			signal_send(at, at->death_signal);
	}
}

void process_end(struct process *process, int status)
{
	process->status = status;
	process->stopped = false;
	fds_close(process);
	tree_process_ends(process);
	process->state = PROCESS_ZOMBIE;
	bury(process);
	orphan_children(process);
	tell_parent(process);
	world_stir();
}

void process_vanish(struct process *process)
{
	if (process->state == PROCESS_ALIVE) {
		fds_close(process);
		tree_process_ends(process);
		bury(process);
	}
	process->state = PROCESS_GONE;
	world_stir();
}

_Noreturn void process_exit(int status)
{
	process_end(self, (status & 0xff) << 8);
	process_leave();
	__builtin_unreachable();
}

void process_signal(struct process *process, int signo)
{
	if (process->state == PROCESS_ALIVE)
		signal_send(process, signo);
	process_leave();
}
