/* The far engine: see cloud.h. */
#include "tests/world/cloud.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "jobs/base/mem.h"
#include "jobs/engine/engine.h"
#include "jobs/store/order.h"
#include "jobs/store/store.h"
#include "tests/world/bucket.h"
#include "tests/world/call.h"
#include "tests/world/clocks_seen.h"
#include "tests/world/far_wraps.h"
#include "tests/world/kernel.h"
#include "tests/world/play.h"
#include "tests/world/programs.h"
#include "tests/world/tree.h"

#define TICK_NS      (500 * WORLD_MS)
#define KILL_AFTER   (30 * WORLD_S)
#define NODE_LOG     "/var/log/job"
#define NODE_PROGRAM "/opt/stoker/stoker-node"

void (*cloud_habits)(struct cloud_habits *ret);
struct cloud_job *cloud_jobs;
static char *workspace_url;
static struct machine *programs_of;
static int machines_made;
static bool ticking;

void cloud_reset(const char *workspace, struct machine *programs)
{
	cloud_jobs = NULL;
	workspace_url = mem_copy(workspace);
	programs_of = programs;
	machines_made = 0;
	ticking = false;
}

/* ---- the service's own life ---- */

static bool is_over(const struct process *process)
{
	return process->state != PROCESS_ALIVE;
}

static void start_node(struct cloud_job *job, int node)
{
	AUTO(auto_free) char *order = mem_format("%s/%s" ORDER_FILE, workspace_url, job->prefix);
	AUTO(auto_free) char *index = mem_format("AWS_BATCH_JOB_NODE_INDEX=%d", node);
	AUTO(auto_free) char *count = mem_format("AWS_BATCH_JOB_ATTEMPT=%d", job->restart + 1);
	AUTO(auto_free) char *bytes = NULL;
	char *argv[] = { (char *)NODE_PROGRAM, order, (char *)ORDER_RANK_BATCH, NULL };
	struct process_start start = {
		.program = NODE_PROGRAM, .argv = argv, .cwd = "/", .out_path = NODE_LOG
	};
	struct machine *machine;
	size_t len, n = 0;
	char host[32];
	char **env;

	snprintf(host, sizeof host, "ip-10-0-%d-%d", machines_made / 200, machines_made % 200);
	machines_made++;
	machine = machine_new(host, (service_clock_ms() + chance_below(200) - 100) * WORLD_MS);
	job->machines[node] = start.machine = machine;
	bytes = tree_get(programs_of, NODE_PROGRAM, &len);
	tree_put(machine, NODE_PROGRAM, bytes, len, 0700);
	tree_mkdirs(machine, "/var/log");
	tree_mkdirs(machine, "/var/tmp");
	for (const char *const *path =
		     (const char *const[]){ "/opt/venv/bin/python", "/opt/venv/bin/straggler",
					    "/opt/venv/bin/neuron_parallel_compile",
					    "/opt/venv/bin/neuron-ls", "/opt/venv/bin/nccom-test",
					    "/opt/venv/bin/torchrun", "/opt/venv/pyvenv.cfg",
					    NULL };
	     *path; path++) {
		AUTO(auto_free) char *program = tree_get(programs_of, *path, &len);

		if (program)
			tree_put(machine, *path, program, len, 0700);
	}
	programs_install_compiler(machine, job->habits.other_compiler);
	while (job->env && job->env[n])
		n++;
	env = mem_zero(n + 4, sizeof *env);
	for (size_t i = 0; i < n; i++)
		env[i] = job->env[i];
	env[n] = index;
	env[n + 1] = count;
	env[n + 2] = (char *)"PATH=/opt/venv/bin:/usr/bin:/bin";
	start.envp = env;
	job->agents[node] = process_start(&start);
	free(env);
}

static void begin(struct cloud_job *job)
{
	job->began_ns = now_ns;
	job->exit = -1;
	for (int node = 0; node < job->nodes; node++) {
		job->collected[node] = 0;
		start_node(job, node);
	}
}

static int exit_of(const struct process *agent)
{
	if (!agent)
		return 1;
	if (agent->machine->off) /* taken away: nobody has seen an exit */
		return 137;
	return WIFEXITED(agent->status) ? WEXITSTATUS(agent->status)
					: 128 + WTERMSIG(agent->status);
}

/* The job ends with its main node, or when all others are gone; the rest is killed. */
static void note_ends(struct cloud_job *job)
{
	bool all = true;

	for (int node = 0; node < job->nodes; node++) {
		bool over = !job->agents[node] || is_over(job->agents[node]);

		all &= over;
		if (over && job->exit < 0 && exit_of(job->agents[node]) != 0) {
			job->exit = exit_of(job->agents[node]);
			job->exit_node = node;
		}
	}
	if (!all && !(job->agents[0] && is_over(job->agents[0])))
		return;
	for (int node = 0; node < job->nodes; node++)
		if (job->machines[node])
			machine_halt(job->machines[node], true);
	if (job->exit < 0)
		job->exit = 0;
	if (job->exit != 0 && job->restarts_left > 0 && !job->stop_asked && !job->taken_down) {
		job->restarts_left--;
		job->restart++;
		job->began_ns = 0;
		job->exit_node = 0;
		job->start_ns = now_ns + job->habits.boot_ns;
		return;
	}
	job->ended_ns = now_ns;
	job->end_shown_ns = now_ns + job->habits.end_late_ns;
}

/* The service takes over what the nodes have printed. */
static void collect_logs(struct cloud_job *job)
{
	for (int node = 0; node < job->nodes; node++) {
		AUTO(auto_free) char *text = NULL;
		size_t len = 0;

		if (!job->machines[node] || job->machines[node]->off)
			continue;
		text = tree_get(job->machines[node], NODE_LOG, &len);
		if (text && len > job->collected[node])
			sb_add(&job->logs[node], text + job->collected[node],
			       len - job->collected[node]);
		job->collected[node] = len;
	}
}

static void end_unbegun(struct cloud_job *job, int exit)
{
	job->ended_ns = now_ns;
	job->end_shown_ns = now_ns + job->habits.end_late_ns;
	job->exit = exit;
}

static void job_turn(struct cloud_job *job)
{
	if (job->ended_ns)
		return;
	if (!job->began_ns) {
		if (job->stop_asked || job->taken_down)
			end_unbegun(job, 137);
		else if (now_ns >= job->start_ns && job->habits.no_capacity)
			end_unbegun(job, -1);
		else if (now_ns >= job->start_ns && now_ns >= job->habits.no_capacity_until_ns)
			begin(job);
		return;
	}
	if (job->kill_ns && now_ns >= job->kill_ns)
		for (int node = 0; node < job->nodes; node++)
			if (job->agents[node] && !is_over(job->agents[node]))
				process_signal(job->agents[node], SIGKILL);
	if (job->habits.taken_after_ns && now_ns >= job->began_ns + job->habits.taken_after_ns) {
		trace_line("the service takes a machine of %s", job->name);
		cloud_take_machine(job, (int)(job->habits.taken_after_ns % job->nodes));
		job->habits.taken_after_ns = 0;
	}
	collect_logs(job);
	note_ends(job);
}

static void tick(void *arg)
{
	bool any = false;

	(void)arg;
	for (struct cloud_job *job = cloud_jobs; job; job = job->next) {
		job_turn(job);
		any |= !job->ended_ns;
	}
	ticking = any;
	if (any)
		world_at(now_ns + TICK_NS, tick, NULL);
}

static void keep_ticking(void)
{
	if (!ticking)
		world_at(now_ns + TICK_NS, tick, NULL);
	ticking = true;
}

static void ask_to_stop(struct cloud_job *job)
{
	if (job->stop_asked || job->ended_ns)
		return;
	job->stop_asked = true;
	job->kill_ns = now_ns + KILL_AFTER;
	for (int node = 0; job->began_ns && node < job->nodes; node++)
		if (job->agents[node] && !is_over(job->agents[node]))
			process_signal(job->agents[node], SIGTERM);
}

void cloud_take_machine(struct cloud_job *job, int node)
{
	if (!job->began_ns || job->ended_ns || node >= job->nodes)
		return;
	job->spot = true;
	machine_halt(job->machines[node], true);
}

void cloud_take_down(struct cloud_job *job)
{
	job->taken_down = true;
	ask_to_stop(job);
}

/* ---- what the driver asks ---- */

struct cloud {
	struct engine engine; /* must be first */
};

static int no_answer(enum call_answer answer, const char *about, struct err **err)
{
	if (answer == ANSWER_REFUSED)
		return err_set(err, EXIT_REFUSED, "the service refuses to say anything of '%s'",
			       about);
	return err_set(err, EXIT_UNREACHABLE, "no answer of the service about '%s'", about);
}

/* The jobs of a name that the service shows; the newest that counts. */
static struct cloud_job *find_job(const char *name)
{
	struct cloud_job *found = NULL;

	for (struct cloud_job *job = cloud_jobs; job; job = job->next)
		if (strcmp(job->name, name) == 0 && job->shown_ns <= now_ns &&
		    (!found || !job->ended_ns))
			found = job;
	return found;
}

static int cloud_open(const struct engine_where *where, struct engine **ret, struct err **err)
{
	struct cloud *cloud = mem_zero(1, sizeof *cloud);

	(void)err;
	(void)where;
	cloud->engine.ops = engine_find("batch");
	*ret = &cloud->engine;
	return 0;
}

static void cloud_close(struct engine *engine)
{
	free(engine);
}

static int cloud_check(struct engine *engine, struct err **err)
{
	(void)engine;
	(void)err;
	return 0;
}

static struct cloud_job *job_new(const struct engine_job *what, const struct cloud_habits *habits)
{
	struct cloud_job *job = mem_zero(1, sizeof *job);
	size_t n = 0;

	snprintf(job->name, sizeof job->name, "%s", what->name);
	snprintf(job->prefix, sizeof job->prefix, "%s", what->prefix);
	job->nodes = what->nodes;
	job->habits = *habits;
	job->submitted_ns = now_ns;
	job->shown_ns = now_ns + habits->shown_late_ns;
	job->start_ns = now_ns + habits->queue_ns + habits->boot_ns;
	job->restarts_left = habits->restarts ? 2 : 0;
	while (what->env && what->env[n])
		n++;
	job->env = mem_zero(n + 1, sizeof *job->env);
	for (size_t i = 0; i < n; i++)
		job->env[i] = mem_copy(what->env[i]);
	for (size_t i = 0; i < STK_LENGTH(job->logs); i++)
		job->logs[i] = SB_INIT;
	job->next = cloud_jobs;
	cloud_jobs = job;
	keep_ticking();
	return job;
}

static int cloud_submit(struct engine *engine, const struct engine_job *what, struct err **err)
{
	enum call_answer answer = service_request(CALL_cloud_submit, what->name, 0);
	struct cloud_habits habits = { 0 };
	struct cloud_job *there = find_job(what->name);

	(void)engine;
	if (answer == ANSWER_REFUSED)
		return no_answer(answer, what->name, err);
	if (answer == ANSWER_NONE) {
		no_answer(answer, what->name, err);
		return 1; /* whether it arrived is not known */
	}
	if (!there) {
		cloud_habits(&habits);
		job_new(what, &habits);
		if (habits.doubled)
			job_new(what, &habits);
	}
	if (answer == ANSWER_YES)
		return 0;
	no_answer(answer, what->name, err);
	return 1;
}

static int cloud_find(struct engine *engine, const char *name, const char *prefix, struct err **err)
{
	enum call_answer answer = service_request(CALL_cloud_find, name, 0);

	(void)engine;
	(void)prefix;
	if (answer != ANSWER_YES)
		return no_answer(answer, name, err);
	if (find_job(name))
		return 1;
	/* A listing is late: until the longest lag is over, absence proves nothing. */
	for (struct cloud_job *job = cloud_jobs; job; job = job->next)
		if (strcmp(job->name, name) == 0)
			return err_set(err, EXIT_BUSY, "the listing of '%s' is not settled", name);
	return 0;
}

/* Of two jobs of one name the machines are given back with the later one. */
static int64_t last_end(const char *name)
{
	int64_t last = 0;

	for (const struct cloud_job *at = cloud_jobs; at; at = at->next)
		if (strcmp(at->name, name) == 0 && at->ended_ns > last)
			last = at->ended_ns;
	return last;
}

static void describe_end(const struct cloud_job *job, struct engine_status *ret)
{
	ret->state = ENGINE_ENDED;
	ret->taken_down = job->taken_down;
	ret->released.ms = WORLD_EPOCH_MS + last_end(job->name) / WORLD_MS;
	if (job->exit < 0) {
		snprintf(ret->reason, sizeof ret->reason, "%s",
			 "InsufficientInstanceCapacity: no machine of this type is available");
		return;
	}
	ret->exit_known = job->began_ns != 0 && !job->spot;
	ret->exit = job->exit;
	ret->node = job->exit_node;
	if (job->spot)
		snprintf(ret->reason, sizeof ret->reason, "%s",
			 "Host EC2 (instance i-0a1b2c3d4e5f60718) terminated.");
}

static int cloud_describe(struct engine *engine, const char *name, const char *prefix,
			  struct engine_status *ret, struct err **err)
{
	enum call_answer answer = service_request(CALL_cloud_describe, name, 0);
	const struct cloud_job *job = find_job(name);
	bool all_over = true;

	(void)engine;
	(void)prefix;
	if (answer != ANSWER_YES)
		return no_answer(answer, name, err);
	*ret = (struct engine_status){ .state = ENGINE_UNKNOWN };
	if (!job)
		return 0;
	/* Of two jobs of one name both must be over. */
	for (const struct cloud_job *at = cloud_jobs; at; at = at->next)
		if (strcmp(at->name, name) == 0)
			all_over &= at->ended_ns && at->end_shown_ns <= now_ns;
	if (job->began_ns) {
		ret->started.ms = WORLD_EPOCH_MS + job->began_ns / WORLD_MS;
		ret->held = ret->started;
	}
	if (all_over)
		describe_end(job, ret);
	else if (job->stop_asked)
		ret->state = ENGINE_STOPPING;
	else
		ret->state = job->began_ns                                   ? ENGINE_RUNNING
			     : now_ns >= job->start_ns - job->habits.boot_ns ? ENGINE_STARTING
									     : ENGINE_QUEUED;
	return 0;
}

static int cloud_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		      struct err **err)
{
	enum call_answer answer = service_request(CALL_cloud_stop, name, 0);

	(void)engine;
	(void)prefix;
	(void)grace_ms;
	if (answer == ANSWER_NONE || answer == ANSWER_REFUSED)
		return no_answer(answer, name, err);
	for (struct cloud_job *job = cloud_jobs; job; job = job->next)
		if (strcmp(job->name, name) == 0)
			ask_to_stop(job);
	return answer == ANSWER_YES ? 0 : no_answer(answer, name, err);
}

static int64_t log_left_ns;

int64_t cloud_log_left_ns(void)
{
	return log_left_ns;
}

static int cloud_logs(struct engine *engine, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	enum call_answer answer = service_request(CALL_cloud_logs, name, 0);
	const struct cloud_job *job;
	const struct sb *log;
	size_t len, end;

	(void)engine;
	(void)prefix;
	job = find_job(name);
	if (job)
		world_spend(job->habits.log_ns);
	if (answer != ANSWER_YES)
		return no_answer(answer, name, err);
	log = job && node < job->nodes ? &job->logs[node] : NULL;
	if (!log || *offset >= log->len)
		return 0;
	if (log->len - *offset > max)
		log_left_ns = now_ns;
	len = log->len - *offset < max ? log->len : *offset + max;
	for (end = len; end > *offset && log->text[end - 1] != '\n'; end--)
		;
	if (end == *offset && len - *offset == max)
		end = len; /* a line longer than was asked for */
	sb_add(ret, log->text + *offset, end - *offset);
	*offset = end;
	return 0;
}

static int cloud_log_size(struct engine *engine, const char *name, const char *prefix, int node,
			  uint64_t *ret, struct err **err)
{
	enum call_answer answer = service_request(CALL_cloud_logs, name, 0);
	const struct cloud_job *job = find_job(name);

	(void)engine;
	(void)prefix;
	if (answer != ANSWER_YES)
		return no_answer(answer, name, err);
	if (!job || node >= job->nodes)
		return 0;
	*ret = job->logs[node].len;
	return 1;
}

static const struct engine_ops cloud_ops = {
	.name = "batch",
	.machines_apart = true,
	.stop_ms = 30000,
	.in_image = true,
	.open = cloud_open,
	.close = cloud_close,
	.check = cloud_check,
	.submit = cloud_submit,
	.find = cloud_find,
	.describe = cloud_describe,
	.stop = cloud_stop,
	.by_hand = "aws batch terminate-job --reason stop --job-id",
	.logs = cloud_logs,
	.log_size = cloud_log_size,
};

const struct engine_ops *__wrap_engine_find(const char *name)
{
	return seen_engine(name && strcmp(name, "batch") == 0 ? &cloud_ops
							      : __real_engine_find(name));
}
