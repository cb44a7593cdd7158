/* Every place of a scenario: see points.h. */
#include "tests/world/points.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/world/clocks_seen.h"
#include "tests/world/cloud.h"
#include "tests/world/faults.h"
#include "tests/world/host.h"
#include "tests/world/kernel.h"
#include "tests/world/play.h"

#define CASES_MAX 200000
/* Calls that change something, at most, between the two kills of a double one. */
#define DOUBLE_WITHIN 400

pid_t __real_waitpid(pid_t pid, int *status, int options);
void __real__exit(int status) __attribute__((noreturn));

const char *const points_mode_names[POINTS_MODES] = { "errors", "kills", "cuts", "doubles" };

static struct points points;
static uint64_t places, cases;
static struct report *reports_of; /* shared with the children */
static int running;
static uint64_t own; /* this process is the child of case own - 1; 0: the parent */
static char own_words[160];
static uint64_t second_in;     /* calls until the second kill; 0: none is to come */
static uint64_t *second_kills; /* number of them in all cases; shared with the children */

void points_begin(const struct points *given)
{
	points = *given;
	places = cases = own = second_in = 0;
	running = 0;
	reports_of =
		mmap(NULL, CASES_MAX * sizeof *reports_of + sizeof *second_kills,
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reports_of == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	second_kills = (uint64_t *)(void *)(reports_of + CASES_MAX);
}

static void wait_for_one(void)
{
	int status;

	while (__real_waitpid(-1, &status, 0) < 0)
		if (errno != EINTR)
			return;
	running--;
}

/* Forks for the next case: true in the child. */
static bool next_case(void)
{
	pid_t pid;

	if (cases == CASES_MAX)
		return false;
	while (running >= points.jobs)
		wait_for_one();
	pid = host_fork();
	cases++;
	if (pid == 0) {
		own = cases;
		reports_of[own - 1].died = true;
		reports_of[own - 1].number = own;
		return true;
	}
	running++;
	return false;
}

static bool is_ours(const struct process *process)
{
	return fault_target_of(process) != TARGET_COMMAND;
}

static void note(const struct process *process, const struct call *call, const char *how,
		 const char *path)
{
	size_t len = path ? strlen(path) : 0;

	/* The end of a path says more than its beginning. */
	snprintf(own_words, sizeof own_words, "%s of %s (%.60s) %s", call_rows[call->id].name,
		 process->name,
		 len > 60 ? path + len - 60
		 : len    ? path
			  : "",
		 how);
	snprintf(reports_of[own - 1].why, sizeof reports_of[own - 1].why, "%s", own_words);
	trace_line("%s", own_words);
	playing->struck = process;
}

static void fail_each_way(struct process *process, struct call *call, const char *path)
{
	for (const int *error = call_rows[call->id].errors; *error; error++) {
		if (call_is_answer(call->id, *error) || !next_case())
			continue;
		call->error = *error;
		playing->mishap = MISHAP_ERROR;
		note(process, call, strerrorname_np(*error), path);
		return;
	}
}

static enum mishap killed(const struct process *process)
{
	switch (fault_target_of(process)) {
	case TARGET_DRIVER:
		return MISHAP_DRIVER_KILLED;
	case TARGET_HELPER:
		return MISHAP_HELPER_KILLED;
	default:
		return MISHAP_AGENT_KILLED;
	}
}

struct taken {
	struct cloud_job *job;
	int node;
};

static void take(void *arg)
{
	const struct taken *taken = arg;

	cloud_take_machine(taken->job, taken->node);
}

/* The service knows when it loses a machine of a job. */
static void cut(struct machine *machine)
{
	static struct taken taken;

	for (struct cloud_job *job = cloud_jobs; job; job = job->next)
		for (int node = 0; node < job->nodes && !job->ended_ns; node++)
			if (job->machines[node] == machine)
				taken = (struct taken){ job, node };
	if (taken.job)
		world_at(now_ns, take, &taken);
	else
		machine_halt(machine, true);
}

/* The second kill of a double one. */
static void kill_again(struct process *process, const struct call *call, const char *path)
{
	if (second_in == 0 || --second_in > 0)
		return;
	note(process, call, "killed after another kill", path);
	playing->mishap = MISHAP_KILLED_TWICE;
	__atomic_add_fetch(second_kills, 1, __ATOMIC_RELAXED);
	process_signal(process, SIGKILL);
}

static void at_place(struct process *process, struct call *call, const char *path)
{
	seen_call(process, call->id, path);
	if (own && is_ours(process) && call_rows[call->id].kind == CALL_CHANGES)
		kill_again(process, call, path);
	if (own || !is_ours(process) || call_rows[call->id].kind == CALL_OWN)
		return;
	if (points.mode != POINTS_ERRORS && call_rows[call->id].kind == CALL_LOOKS)
		return;
	if (places++ % points.every != points.first)
		return;
	if (points.mode == POINTS_ERRORS) {
		fail_each_way(process, call, path);
	} else if (next_case()) {
		note(process, call, points.mode == POINTS_CUTS ? "power lost" : "killed", path);
		if (points.mode != POINTS_CUTS) {
			playing->mishap = killed(process);
			/* Spread over the cases, and the same for each case always. */
			if (points.mode == POINTS_DOUBLES)
				second_in = 1 + own * 2654435761U % DOUBLE_WITHIN;
			process_signal(process, SIGKILL); /* does not return */
		} else {
			playing->mishap = MISHAP_POWER;
			playing->hosts_to_boot = true;
			cut(process->machine);
		}
	}
}

void points_hook(void)
{
	call_fault = at_place;
}

bool points_is_case(void)
{
	return own > 0;
}

const char *points_case(void)
{
	return own_words;
}

void points_end_case(const struct report *report)
{
	uint64_t number = own;

	reports_of[own - 1] = *report;
	reports_of[own - 1].number = number;
	reports_of[own - 1].died = false;
	fflush(stdout);
	__real__exit(0);
}

void points_finish(struct reports *reports)
{
	while (running > 0)
		wait_for_one();
	for (uint64_t i = 0; i < cases; i++) {
		if (reports_of[i].broken[0] || reports_of[i].died)
			printf("case %llu: %s %.300s\n", (unsigned long long)i + 1,
			       reports_of[i].died ? "died" : reports_of[i].broken,
			       reports_of[i].why);
		reports_add(reports, &reports_of[i]);
	}
	printf("places %llu, cases %llu\n", (unsigned long long)places, (unsigned long long)cases);
	if (points.mode == POINTS_DOUBLES)
		printf("second kills %llu\n", (unsigned long long)*second_kills);
}
