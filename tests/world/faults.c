/* What goes wrong: see faults.h. */
#include "tests/world/faults.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/bucket.h"
#include "tests/world/clocks_seen.h"
#include "tests/world/clocks_time.h"
#include "tests/world/cloud.h"
#include "tests/world/hangs.h"
#include "tests/world/kernel.h"
#include "tests/world/losses.h"
#include "tests/world/play.h"
#include "tests/world/sqlite.h"
#include "tests/world/story.h"
#include "tests/world/tree.h"
#include "tests/world/tree_internal.h"

struct fault faults[FAULTS_MAX];
int fault_count;

const char *const fault_names[FAULT_KINDS] = {
	[FAULT_CALL] = "call",
	[FAULT_SLOW] = "slow",
	[FAULT_SHORT] = "short",
	[FAULT_HANG] = "hang",
	[FAULT_SERVICE] = "service",
	[FAULT_PLACE] = "place",
	[FAULT_KILL] = "kill",
	[FAULT_PAUSE] = "pause",
	[FAULT_SUSPEND] = "suspend",
	[FAULT_REBOOT] = "reboot",
	[FAULT_POWER] = "power",
	[FAULT_CLOCK] = "clock",
	[FAULT_OUTAGE] = "outage",
	[FAULT_DISK_FULL] = "disk-full",
	[FAULT_TAKE_MACHINE] = "take-machine",
	[FAULT_TAKE_DOWN] = "take-down",
	[FAULT_STOP] = "stop",
	[FAULT_SIGNAL] = "signal",
	[FAULT_SUPERSEDE] = "supersede",
	[FAULT_RIVAL] = "rival",
	[FAULT_BUSY] = "busy",
	[FAULT_LOSS] = "loss",
};

static const char *const target_names[TARGET_COUNT] = { "any", "driver", "agent", "helper",
							"command" };
const char *const fault_mode_names[MODE_COUNT] = { "once", "thrice", "minute", "calm" };

enum target fault_target_of(const struct process *process)
{
	const char *program = process->argv && process->argv[0] ? process->argv[0] : "";

	if (strcmp(program, "stoker") == 0)
		return TARGET_DRIVER;
	if (strncmp(process->name, "stoker-", 7) == 0 && strcmp(process->name, "stoker-node") != 0)
		return TARGET_HELPER;
	if (strstr(program, "stoker-node"))
		return TARGET_AGENT;
	return TARGET_COMMAND;
}

/* ---- in calls ---- */

static bool is_aimed(const struct fault *fault, const struct process *process, enum call_id id,
		     const char *path)
{
	if (fault->kind == FAULT_HANG)
		return hangs_for(process, id, path);
	if (fault->target != TARGET_ANY && fault->target != fault_target_of(process))
		return false;
	if (fault->kind == FAULT_PLACE)
		return place_is_refused(fault, id, path);
	/* Pipes, signal descriptors and files of /proc have no device and no share behind them that
	 * could fail. */
	if (fault->kind == FAULT_CALL && id == CALL_read && fault->error != EINTR && path &&
	    (strncmp(path, "anon_inode:", 11) == 0 || strncmp(path, "pipe:", 5) == 0 ||
	     strncmp(path, "/proc/", 6) == 0))
		return false;
	/* Files and pipes alone: the kernel gives the rest, and each file of /proc, whole. */
	if (fault->kind == FAULT_SHORT &&
	    (!path || (path[0] != '/' && strncmp(path, "pipe:", 5) != 0) ||
	     strncmp(path, "/proc/", 6) == 0))
		return false;
	if (fault->kind == FAULT_SHORT)
		return id == CALL_read || id == CALL_write || id == CALL_pread || id == CALL_pwrite;
	/* An agent asks for its children without waiting: WNOHANG. The kernel writes /proc. */
	if (fault->kind == FAULT_SLOW &&
	    (id == CALL_waitpid || (path && strncmp(path, "/proc/", 6) == 0)))
		return false;
	if (fault->kind == FAULT_SERVICE && fault->chance % 2 == 0)
		return fault_asks_engine(id);
	return fault->call == id;
}

static bool is_on(const struct fault *fault)
{
	return now_ns >= fault->from_ns && now_ns < fault->until_ns && fault->left != 0;
}

static void strike(struct fault *fault, struct process *process, struct call *call,
		   const char *path)
{
	switch (fault->kind) {
	case FAULT_CALL:
	case FAULT_SERVICE:
	case FAULT_PLACE:
		call->error =
			fault->kind == FAULT_CALL ? fault->error : place_error(fault, call->id);
		/* A caller that may not do it has not done it. */
		call->done = fault->done && call_rows[call->id].kind == CALL_CHANGES &&
			     !call_is_answer(call->id, call->error);
		process->refused++;
		seen_refusal(process, call->id, path, call->done);
		break;
	case FAULT_SLOW:
		time_call_hangs(process);
		world_spend(fault->span_ns);
		time_call_returns(process);
		break;
	case FAULT_HANG:
		time_call_hangs(process);
		world_spend(fault->until_ns - now_ns);
		time_call_returns(process);
		break;
	case FAULT_SHORT:
		call->share = 1 + (size_t)chance_below(chance_one_in(8) ? 64 : 2000);
		break;
	default:
		return;
	}
	fault->struck++;
	if (fault->left > 0)
		fault->left--;
}

static bool call_has_error(const struct fault *fault)
{
	return fault->kind == FAULT_CALL || fault->kind == FAULT_PLACE ||
	       fault->kind == FAULT_SERVICE;
}

static void on_call(struct process *process, struct call *call, const char *path)
{
	if (playing->trace_calls && call_rows[call->id].kind != CALL_OWN)
		trace_line("%s %s", call_rows[call->id].name, path ? path : "");
	seen_call(process, call->id, path);
	for (int i = 0; i < fault_count; i++) {
		struct fault *fault = &faults[i];

		if (fault->kind > FAULT_IN_CALLS || !is_on(fault) ||
		    !is_aimed(fault, process, call->id, path))
			continue;
		trace_line("%s %s%s%s%s", fault_names[fault->kind], call_rows[call->id].name,
			   call_has_error(fault) ? ": " : "",
			   call_has_error(fault) ? strerrorname_np(fault->error) : "",
			   fault->done ? ", though done" : "");
		strike(fault, process, call, path);
		if (path)
			trace_line("  about %s", path);
		return;
	}
}

/* ---- from outside ---- */

/* One of the living processes of that kind; NULL: none. */
static struct process *pick_process(const struct fault *fault)
{
	uint64_t count = 0, at;

	for (const struct process *p = processes; p; p = p->next)
		count += p->state == PROCESS_ALIVE &&
			 (fault->target == TARGET_ANY || fault_target_of(p) == fault->target);
	if (count == 0)
		return NULL;
	at = fault->chance % count;
	for (struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE &&
		    (fault->target == TARGET_ANY || fault_target_of(p) == fault->target) &&
		    at-- == 0)
			return p;
	return NULL;
}

/* A head machine, or one of a running job. */
static struct machine *pick_machine(const struct fault *fault)
{
	struct machine *all[24];
	size_t count = 0;

	for (int host = 0; host < 2 && playing->hosts[host]; host++)
		all[count++] = playing->hosts[host];
	for (struct cloud_job *job = cloud_jobs; job && count < 16; job = job->next)
		for (int node = 0; node < job->nodes && !job->ended_ns && job->began_ns; node++)
			all[count++] = job->machines[node];
	return all[fault->chance % count];
}

static void happen(void *arg);

static void go_on(void *arg)
{
	process_signal(arg, SIGCONT);
}

static void wake(void *arg)
{
	machine_wake(arg);
}

static void boot(void *arg)
{
	machine_boot(arg);
}

static void disk_is_free_again(void *arg)
{
	disk_limit(arg, INT64_MAX / 4, INT64_MAX / 4, false);
}

static struct cloud_job *pick_job(const struct fault *fault)
{
	uint64_t count = 0, at;

	for (const struct cloud_job *job = cloud_jobs; job; job = job->next)
		count += !job->ended_ns;
	if (count == 0)
		return NULL;
	at = fault->chance % count;
	for (struct cloud_job *job = cloud_jobs; job; job = job->next)
		if (!job->ended_ns && at-- == 0)
			return job;
	return NULL;
}

/* Heads lose what was not synced; a cloud machine is gone with all it has, which the cloud knows.
 */
static void halt(struct fault *fault)
{
	struct machine *machine = pick_machine(fault);

	if (machine != playing->hosts[0] && machine != playing->hosts[1])
		return;
	machine_halt(machine, fault->kind == FAULT_POWER);
	if (fault->kind == FAULT_POWER)
		losses_after_power(machine);
	world_at(fault->until_ns + 60 * WORLD_S, boot, machine);
}

/* What kills once may kill again and again, as a kernel does that has too little memory. */
static void happen_again(struct fault *fault)
{
	if (fault->mode == MODE_CALM && now_ns + fault->span_ns < fault->until_ns)
		world_at(now_ns + fault->span_ns, happen, fault);
}

static void happen_to_process(struct fault *fault)
{
	struct process *process = pick_process(fault);

	if (fault->kind == FAULT_KILL)
		happen_again(fault);
	if (!process)
		return;
	trace_line("%s %s:%d %s", fault_names[fault->kind], process->machine->host,
		   (int)process->pid, process->name);
	switch (fault->kind) {
	case FAULT_KILL:
		process_signal(process, SIGKILL);
		break;
	case FAULT_SIGNAL:
		process_signal(process, fault->chance % 2 ? SIGTERM : SIGINT);
		break;
	default:
		process_signal(process, SIGSTOP);
		world_at(fault->until_ns, go_on, process);
		break;
	}
}

static void happen_to_machine(struct fault *fault)
{
	struct machine *machine = pick_machine(fault);

	trace_line("%s %s", fault_names[fault->kind], machine->host);
	switch (fault->kind) {
	case FAULT_SUSPEND:
		if (machine->asleep_since_ns != WORLD_NEVER || machine->off)
			return;
		machine_suspend(machine);
		world_at(fault->until_ns, wake, machine);
		break;
	case FAULT_CLOCK:
		machine->wall_ns += fault->span_ns;
		playing->clock_stepped = true;
		break;
	case FAULT_DISK_FULL:
		if (machine->off)
			return;
		disk_limit(machine->root->mounts[0].disk, 0, 0, fault->chance % 2);
		world_at(fault->until_ns, disk_is_free_again, machine->root->mounts[0].disk);
		break;
	default:
		halt(fault);
		break;
	}
}

/* From all, or from one machine alone. */
static void cut_off(const struct fault *fault)
{
	const struct machine *only = fault->mode == MODE_ONCE ? pick_machine(fault) : NULL;

	trace_line("the service does not answer%s%s", only ? " " : "", only ? only->host : "");
	bucket_outage(fault->until_ns, only);
}

static void happen(void *arg)
{
	struct fault *fault = arg;
	struct cloud_job *job;

	fault->struck++;
	switch (fault->kind) {
	case FAULT_KILL:
	case FAULT_PAUSE:
	case FAULT_SIGNAL:
		happen_to_process(fault);
		break;
	case FAULT_SUSPEND:
	case FAULT_REBOOT:
	case FAULT_POWER:
	case FAULT_CLOCK:
	case FAULT_DISK_FULL:
		happen_to_machine(fault);
		break;
	case FAULT_OUTAGE:
		cut_off(fault);
		break;
	case FAULT_TAKE_MACHINE:
	case FAULT_TAKE_DOWN:
		job = pick_job(fault);
		if (!job)
			return;
		trace_line("%s %s", fault_names[fault->kind], job->name);
		if (fault->kind == FAULT_TAKE_DOWN)
			cloud_take_down(job);
		else
			cloud_take_machine(job, (int)(fault->chance % (uint64_t)job->nodes));
		break;
	case FAULT_STOP:
		trace_line("a user stops the run");
		(void)operator_start(playing, 0, "stop", playing->run);
		break;
	case FAULT_SUPERSEDE:
		claim_taken_by_another(fault->chance);
		break;
	case FAULT_RIVAL:
		trace_line("a second driver is started");
		(void)operator_start(playing, playing->hosts[1] ? 1 : 0, "resume", playing->run);
		break;
	case FAULT_BUSY:
		trace_line("another program writes to the database");
		sqlite_hold(fault->until_ns);
		break;
	case FAULT_LOSS:
		losses_remove(fault->chance);
		break;
	default:
		break;
	}
}

/* ---- when they begin ---- */

/* Turns a fault on, from now or its time on. None outlasts the calm. */
static void begin(struct fault *fault)
{
	int64_t calm_ns = playing->calm_from_ns;
	bool spans = fault->kind == FAULT_HANG || fault->kind == FAULT_SERVICE ||
		     (fault->kind > FAULT_IN_CALLS && fault->mode != MODE_CALM);
	int64_t minute_ns = fault->kind == FAULT_PLACE && fault->span_ns > 60 * WORLD_S
				    ? fault->span_ns
				    : 60 * WORLD_S;
	int64_t lasts = spans ? fault->span_ns : fault->mode == MODE_MINUTE ? minute_ns : calm_ns;

	fault->from_ns = fault->at_event > 0 ? now_ns + fault->at_ns : fault->at_ns;
	if (fault->from_ns >= calm_ns)
		return;
	fault->until_ns = fault->from_ns + lasts;
	if (fault->until_ns > calm_ns)
		fault->until_ns = calm_ns;
	fault->left = fault->mode == MODE_ONCE ? 1 : fault->mode == MODE_THRICE ? 3 : -1;
	if (fault->kind > FAULT_IN_CALLS)
		world_at(fault->from_ns, happen, fault);
}

static bool is_left_out(int index)
{
	return playing->left_out && playing->left_out[index];
}

void faults_begin(void)
{
	for (int i = 0; i < fault_count; i++) {
		faults[i].struck = 0;
		faults[i].left = 0;
		if (faults[i].at_event == 0 && !is_left_out(i))
			begin(&faults[i]);
	}
	call_fault = on_call;
}

static void on_event_of(const char *name)
{
	static int64_t seen[EV_COUNT];
	int64_t *times = NULL;

	for (int kind = 0; kind < EV_COUNT && !times; kind++)
		if (strcmp(event_rows[kind].name, name) == 0)
			times = &seen[kind];
	if (!times)
		return;
	(*times)++;
	for (int i = 0; i < fault_count; i++)
		if (faults[i].after && faults[i].at_event == *times && !is_left_out(i) &&
		    strcmp(faults[i].after, name) == 0)
			begin(&faults[i]);
}

void faults_on_events(int64_t events, const struct story *newest)
{
	static int64_t before;

	for (int i = 0; i < fault_count; i++)
		if (!faults[i].after && faults[i].at_event > before &&
		    faults[i].at_event <= events && !is_left_out(i))
			begin(&faults[i]);
	for (int64_t fresh = events - before; newest && fresh > 0; fresh--)
		if (fresh <= newest->count)
			on_event_of(
				event_rows[newest->events[newest->count - fresh].event.kind].name);
	before = events;
}

bool faults_fill_disk(void)
{
	for (int i = 0; i < fault_count; i++)
		if (faults[i].kind == FAULT_DISK_FULL && faults[i].struck > 0 &&
		    now_ns < faults[i].until_ns)
			return true;
	return false;
}

bool faults_are_over(void)
{
	return now_ns >= playing->calm_from_ns;
}

/* ---- as text ---- */

void fault_print(const struct fault *fault, char *ret, size_t size)
{
	snprintf(ret, size,
		 "%s %s%s%" PRId64 "+%" PRId64 " %s %s %s %s %s %" PRId64 " %" PRIu64 "%s%s",
		 fault_names[fault->kind], fault->after ? fault->after : "",
		 fault->after ? ":" : "", fault->at_event, fault->at_ns,
		 target_names[fault->target], call_rows[fault->call].name,
		 fault->error ? strerrorname_np(fault->error) : "-",
		 fault->done ? "done" : "undone", fault_mode_names[fault->mode], fault->span_ns,
		 fault->chance, fault->kind == FAULT_PLACE ? " " : "",
		 fault->kind == FAULT_PLACE ? place_names[fault->place] : "");
}

static int find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* The number of an error by its name, among those that a call may return; 0: none. */
static int find_error(enum call_id id, const char *name)
{
	for (const int *error = call_rows[id].errors; *error; error++)
		if (strcmp(strerrorname_np(*error), name) == 0)
			return *error;
	return 0;
}

/* "7", or "attempt.ended:2". */
static bool parse_event(char *text, struct fault *ret)
{
	char *number = strchr(text, ':'), *end;

	if (number)
		*number++ = '\0';
	else
		number = text;
	for (int kind = 0; number != text && kind < EV_COUNT; kind++)
		if (strcmp(event_rows[kind].name, text) == 0)
			ret->after = event_rows[kind].name;
	ret->at_event = strtoll(number, &end, 10);
	return end != number && *end == '\0' && (number == text || ret->after);
}

bool fault_parse(const char *line, struct fault *ret)
{
	char kind[32], event[48], target[16], call[64], error[32], done[8], mode[8];
	char place[16] = "";
	int id, found[4];

	*ret = (struct fault){ 0 };
	if (sscanf(line,
		   "%31s %47[^+]+%" SCNd64 " %15s %63s %31s %7s %7s %" SCNd64 " %" SCNu64 " %15s",
		   kind, event, &ret->at_ns, target, call, error, done, mode, &ret->span_ns,
		   &ret->chance, place) < 10 ||
	    !parse_event(event, ret))
		return false;
	for (id = 0; id < CALL_COUNT && strcmp(call_rows[id].name, call) != 0; id++)
		;
	found[0] = find_name(fault_names, FAULT_KINDS, kind);
	found[1] = find_name(target_names, TARGET_COUNT, target);
	found[2] = find_name(fault_mode_names, MODE_COUNT, mode);
	found[3] = place[0] ? find_name(place_names, PLACES, place) : 0;
	if (id == CALL_COUNT || found[0] < 0 || found[1] < 0 || found[2] < 0 || found[3] < 0)
		return false;
	ret->kind = (enum fault_kind)found[0];
	ret->target = (enum target)found[1];
	ret->mode = (enum fault_mode)found[2];
	ret->place = found[3];
	ret->call = (enum call_id)id;
	ret->error = find_error(ret->call, error);
	ret->done = strcmp(done, "done") == 0;
	return true;
}
