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
#include "tests/world/kernel.h"
#include "tests/world/losses.h"
#include "tests/world/play.h"
#include "tests/world/tree.h"
#include "tests/world/tree_internal.h"

#define HOUR_NS (3600 * WORLD_S)

struct fault faults[FAULTS_MAX];
int fault_count;

const char *const fault_names[FAULT_KINDS] = {
	[FAULT_CALL] = "call",           [FAULT_SLOW] = "slow",
	[FAULT_SHORT] = "short",         [FAULT_KILL] = "kill",
	[FAULT_PAUSE] = "pause",         [FAULT_SUSPEND] = "suspend",
	[FAULT_REBOOT] = "reboot",       [FAULT_POWER] = "power",
	[FAULT_CLOCK] = "clock",         [FAULT_OUTAGE] = "outage",
	[FAULT_DISK_FULL] = "disk-full", [FAULT_TAKE_MACHINE] = "take-machine",
	[FAULT_TAKE_DOWN] = "take-down", [FAULT_STOP] = "stop",
	[FAULT_SIGNAL] = "signal",       [FAULT_RIVAL] = "rival",
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
	if (fault->target != TARGET_ANY && fault->target != fault_target_of(process))
		return false;
	/* Files and pipes alone: the kernel gives the rest, and each file of /proc, whole. */
	if (fault->kind == FAULT_SHORT &&
	    (!path || (path[0] != '/' && strncmp(path, "pipe:", 5) != 0) ||
	     strncmp(path, "/proc/", 6) == 0))
		return false;
	if (fault->kind == FAULT_SHORT)
		return id == CALL_read || id == CALL_write || id == CALL_pread || id == CALL_pwrite;
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
		call->error = fault->error;
		call->done = fault->done;
		process->refused++;
		seen_refusal(process, call->id, path);
		break;
	case FAULT_SLOW:
		time_call_hangs(process);
		world_spend(fault->span_ns);
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

static void on_call(struct process *process, struct call *call, const char *path)
{
	if (playing->trace_calls && call_rows[call->id].kind != CALL_OWN)
		trace_line("%s %s", call_rows[call->id].name, path ? path : "");
	seen_call(process, call->id, path);
	for (int i = 0; i < fault_count; i++) {
		struct fault *fault = &faults[i];

		if (fault->kind > FAULT_SHORT || !is_on(fault) ||
		    !is_aimed(fault, process, call->id, path))
			continue;
		trace_line("%s %s%s%s%s", fault_names[fault->kind], call_rows[call->id].name,
			   fault->kind == FAULT_CALL ? ": " : "",
			   fault->kind == FAULT_CALL ? strerrorname_np(fault->error) : "",
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

static void happen_to_process(struct fault *fault)
{
	struct process *process = pick_process(fault);

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
		trace_line("the service does not answer");
		bucket_outage(fault->until_ns, NULL);
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
	case FAULT_RIVAL:
		trace_line("a second driver is started");
		(void)operator_start(playing, playing->hosts[1] ? 1 : 0, "resume", playing->run);
		break;
	case FAULT_LOSS:
		losses_remove(fault->chance);
		break;
	default:
		break;
	}
}

/* ---- drawing them ---- */

/* True for a call that asks a service, by the errors that only a service gives. */
static bool asks_service(enum call_id id)
{
	return call_rows[id].errors[0] == EHOSTUNREACH;
}

/* Of the service that runs the jobs. */
static bool asks_engine(enum call_id id)
{
	return strncmp(call_rows[id].name, "cloud_", strlen("cloud_")) == 0;
}

/* Calls that ask a service are few, and matter most: half of those that fail, if state or jobs are
 * far. */
static enum call_id draw_call(void)
{
	bool far = (playing->setting.far_workspace || playing->setting.cloud) && chance_one_in(2);
	bool of_engine = far && playing->setting.cloud && chance_one_in(2);
	enum call_id id;

	do
		id = (enum call_id)chance_below(CALL_COUNT);
	while (call_rows[id].kind == CALL_OWN || call_rows[id].errors[0] == 0 ||
	       asks_service(id) != far || (of_engine && !asks_engine(id)));
	return id;
}

static int draw_error(enum call_id id)
{
	int64_t count = 0;

	while (call_rows[id].errors[count])
		count++;
	return call_rows[id].errors[chance_below(count)];
}

/* A span: mostly seconds, sometimes minutes, rarely longer than an hour. */
static int64_t draw_span(void)
{
	switch (chance_below(30)) {
	case 0:
		return 1 + chance_below(2 * HOUR_NS);
	case 1:
	case 2:
	case 3:
	case 4:
		return 1 + chance_below(300 * WORLD_S);
	default:
		return 1 + chance_below(20 * WORLD_S);
	}
}

static void draw_call_fault(struct fault *fault)
{
	fault->target = (enum target)chance_below(TARGET_COMMAND); /* ours, or any */
	fault->mode = (enum fault_mode)chance_below(MODE_COUNT);
	if (fault->kind == FAULT_SHORT) {
		fault->mode = MODE_MINUTE;
		return;
	}
	fault->call = draw_call();
	if (fault->kind == FAULT_CALL) {
		fault->error = draw_error(fault->call);
		fault->done = call_rows[fault->call].kind == CALL_CHANGES && chance_one_in(4);
	} else {
		fault->mode = chance_one_in(2) ? MODE_ONCE : MODE_THRICE;
	}
}

static void draw_clock(struct fault *fault)
{
	static const int64_t steps[] = { 1, 60, 3600, INT64_C(10) * 365 * 86400 };
	int64_t step = steps[chance_below(4)] * WORLD_S;

	fault->span_ns = chance_one_in(2) ? step : -step;
}

/* Half of the faults come by the clock. The others follow an event, for much of a run's time
 * nothing happens that a fault could meet. */
static void draw_time(struct fault *fault)
{
	if (chance_one_in(2)) {
		fault->at_ns = 1 + chance_below(playing->calm_from_ns);
		return;
	}
	fault->at_event = 1 + chance_below(EVENTS_WANTED);
	fault->at_ns = chance_below(chance_one_in(2) ? WORLD_S / 10 : 3 * WORLD_S);
}

static void draw_one(struct fault *fault, enum fault_kind kind)
{
	*fault = (struct fault){ .kind = kind };
	draw_time(fault);
	fault->span_ns = draw_span();
	fault->chance = chance_next();
	if (kind <= FAULT_SHORT)
		draw_call_fault(fault);
	else if (kind == FAULT_CLOCK)
		draw_clock(fault);
	else if (kind == FAULT_SIGNAL)
		fault->target = TARGET_DRIVER;
	else if (kind == FAULT_KILL || kind == FAULT_PAUSE)
		fault->target = (enum target)chance_below(TARGET_COUNT);
	/* Longer than a lease is valid: who sleeps may find another one in its place. */
	if ((kind == FAULT_PAUSE || kind == FAULT_SUSPEND) && chance_one_in(3))
		fault->span_ns = (60 + chance_below(120)) * WORLD_S;
}

static bool has_place(enum fault_kind kind)
{
	bool cloudy = kind == FAULT_TAKE_MACHINE || kind == FAULT_TAKE_DOWN;

	return cloudy                 ? playing->setting.cloud
	       : kind == FAULT_OUTAGE ? playing->setting.far_workspace
				      : true;
}

/* How often a family is drawn, in relation to the others. */
static const int weights[FAULT_KINDS] = {
	[FAULT_CALL] = 6,      [FAULT_SLOW] = 1,    [FAULT_SHORT] = 1,     [FAULT_KILL] = 3,
	[FAULT_PAUSE] = 2,     [FAULT_SUSPEND] = 1, [FAULT_REBOOT] = 1,    [FAULT_POWER] = 2,
	[FAULT_CLOCK] = 1,     [FAULT_OUTAGE] = 1,  [FAULT_DISK_FULL] = 1, [FAULT_TAKE_MACHINE] = 2,
	[FAULT_TAKE_DOWN] = 1, [FAULT_STOP] = 2,    [FAULT_SIGNAL] = 2,    [FAULT_RIVAL] = 2,
	[FAULT_LOSS] = 2,
};

static enum fault_kind draw_kind(void)
{
	int64_t sum = 0, at;
	int kind = 0;

	for (int i = 0; i < FAULT_KINDS; i++)
		sum += weights[i];
	for (at = chance_below(sum); at >= weights[kind]; kind++)
		at -= weights[kind];
	return (enum fault_kind)kind;
}

void faults_draw(void)
{
	int families = 1 + (int)chance_below(4);

	fault_count = 0;
	for (int family = 0; family < families && !playing->setting.calm; family++) {
		enum fault_kind kind = draw_kind();
		int times = 1 + (int)chance_below(8);

		if (!has_place(kind))
			continue;
		if (kind == FAULT_STOP || kind == FAULT_TAKE_DOWN)
			times = 1 + (int)chance_below(2);
		while (times-- > 0 && fault_count < FAULTS_MAX)
			draw_one(&faults[fault_count++], kind);
	}
}

/* Turns a fault on, from now or its time on. None outlasts the calm. */
static void begin(struct fault *fault)
{
	int64_t calm_ns = playing->calm_from_ns;
	int64_t lasts = fault->kind > FAULT_SHORT    ? fault->span_ns
			: fault->mode == MODE_MINUTE ? 60 * WORLD_S
						     : calm_ns;

	fault->from_ns = fault->at_event > 0 ? now_ns + fault->at_ns : fault->at_ns;
	if (fault->from_ns >= calm_ns)
		return;
	fault->until_ns = fault->from_ns + lasts;
	if (fault->until_ns > calm_ns)
		fault->until_ns = calm_ns;
	fault->left = fault->mode == MODE_ONCE ? 1 : fault->mode == MODE_THRICE ? 3 : -1;
	if (fault->kind > FAULT_SHORT)
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

void faults_on_events(int64_t events)
{
	static int64_t before;

	for (int i = 0; i < fault_count; i++)
		if (faults[i].at_event > before && faults[i].at_event <= events && !is_left_out(i))
			begin(&faults[i]);
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
	snprintf(ret, size, "%s %" PRId64 "+%" PRId64 " %s %s %s %s %s %" PRId64 " %" PRIu64,
		 fault_names[fault->kind], fault->at_event, fault->at_ns,
		 target_names[fault->target], call_rows[fault->call].name,
		 fault->error ? strerrorname_np(fault->error) : "-",
		 fault->done ? "done" : "undone", fault_mode_names[fault->mode], fault->span_ns,
		 fault->chance);
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

bool fault_parse(const char *line, struct fault *ret)
{
	char kind[32], target[16], call[64], error[32], done[8], mode[8];
	int id, found[3];

	*ret = (struct fault){ 0 };
	if (sscanf(line, "%31s %" SCNd64 "+%" SCNd64 " %15s %63s %31s %7s %7s %" SCNd64 " %" SCNu64,
		   kind, &ret->at_event, &ret->at_ns, target, call, error, done, mode,
		   &ret->span_ns, &ret->chance) != 10)
		return false;
	for (id = 0; id < CALL_COUNT && strcmp(call_rows[id].name, call) != 0; id++)
		;
	found[0] = find_name(fault_names, FAULT_KINDS, kind);
	found[1] = find_name(target_names, TARGET_COUNT, target);
	found[2] = find_name(fault_mode_names, MODE_COUNT, mode);
	if (id == CALL_COUNT || found[0] < 0 || found[1] < 0 || found[2] < 0)
		return false;
	ret->kind = (enum fault_kind)found[0];
	ret->target = (enum target)found[1];
	ret->mode = (enum fault_mode)found[2];
	ret->call = (enum call_id)id;
	ret->error = find_error(ret->call, error);
	ret->done = strcmp(done, "done") == 0;
	return true;
}
