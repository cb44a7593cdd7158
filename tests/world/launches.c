/* What was really started: see launches.h. */
#include "tests/world/launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "tests/world/cloud.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/truth.h"

struct launch *launches;
static uint64_t processes_seen;          /* numbers up to this one */
static const struct cloud_job *job_seen; /* the newest */

void launches_reset(void)
{
	launches = NULL;
	processes_seen = 0;
	job_seen = NULL;
}

void launches_next_run(void)
{
	launches_look();
	launches = NULL;
}

/* Reads run, phase and attempt from a key or path with "runs/RUN/PHASE-ATTEMPT/". */
static bool parse_place(const char *text, struct launch *ret)
{
	const char *at = strstr(text, "runs/"), *end, *dash;
	size_t len;

	if (!at)
		return false;
	at += strlen("runs/");
	end = strchr(at, '/');
	if (!end || (size_t)(end - at) >= sizeof ret->run)
		return false;
	memcpy(ret->run, at, (size_t)(end - at));
	ret->run[end - at] = '\0';
	at = end + 1;
	dash = strchr(at, '-');
	if (!dash)
		return false;
	len = (size_t)(dash - at);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		if (strlen(flow_phase_names[phase]) == len &&
		    strncmp(flow_phase_names[phase], at, len) == 0) {
			ret->phase = (enum phase)phase;
			ret->attempt = strtoll(dash + 1, NULL, 10);
			return ret->attempt > 0;
		}
	return false;
}

static void add(struct launch found)
{
	struct launch *launch;

	if (schedule_is_neighbour(found.run))
		return;
	launch = mem_zero(1, sizeof *launch);
	*launch = found;
	launch->at_ns = now_ns;
	launch->next = launches;
	launches = launch;
}

static bool has_agents_name(const struct process *process)
{
	return process && process->argv && process->argv[0] && process->argv[1] &&
	       process->argv[2] && strcmp(process->name, "stoker-node") == 0;
}

/* Its helpers have names of their own, but for the moment in which they are born. */
static bool is_agent(const struct process *process)
{
	return has_agents_name(process) && !has_agents_name(process_parent(process));
}

/* Starts of the engine local: an agent of node 0 whose order lies in a folder. */
static void look_at_processes(void)
{
	uint64_t newest = processes_seen;

	for (const struct process *p = processes; p && p->number > processes_seen; p = p->next) {
		struct launch found = { .agent = p };

		newest = p->number > newest ? p->number : newest;
		if (is_agent(p) && strcmp(p->argv[2], "0") == 0 && parse_place(p->argv[1], &found))
			add(found);
	}
	processes_seen = newest;
}

static void look_at_jobs(void)
{
	for (const struct cloud_job *job = cloud_jobs; job && job != job_seen; job = job->next) {
		struct launch found = { .job = job };

		if (parse_place(job->prefix, &found))
			add(found);
	}
	job_seen = cloud_jobs;
}

void launches_look(void)
{
	look_at_processes();
	look_at_jobs();
}

static bool is_of(const char *place, const char *run, enum phase phase, int64_t attempt)
{
	struct launch found;

	return parse_place(place, &found) && strcmp(found.run, run) == 0 && found.phase == phase &&
	       found.attempt == attempt;
}

static const char *variable(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return "";
}

const struct process *launch_process(const char *run, enum phase phase, int64_t attempt)
{
	for (const struct process *p = processes; p; p = p->next) {
		if (p->state != PROCESS_ALIVE)
			continue;
		if (is_agent(p) && is_of(p->argv[1], run, phase, attempt))
			return p;
		if (strcmp(variable(p->envp, "STOKER_RUN"), run) == 0 &&
		    strcmp(variable(p->envp, "STOKER_PHASE"), flow_phase_names[phase]) == 0 &&
		    strtoll(variable(p->envp, "STOKER_ATTEMPT"), NULL, 10) == attempt)
			return p;
	}
	return NULL;
}

bool launch_had_effect(const struct launch *launch, int64_t by_ns)
{
	const enum truth_phase phase = truth_phase_of(flow_phase_names[launch->phase]);

	if (launch->job || launch->agent->state == PROCESS_ALIVE)
		return true;
	for (const struct truth_command *at = truth_commands; at; at = at->next)
		if (strcmp(at->run, launch->run) == 0 && at->phase == phase &&
		    at->attempt == launch->attempt && at->began_ns >= launch->at_ns &&
		    at->began_ns < by_ns)
			return true;
	return false;
}

bool launch_is_over(const char *run, enum phase phase, int64_t attempt)
{
	for (const struct cloud_job *job = cloud_jobs; job; job = job->next)
		if (is_of(job->prefix, run, phase, attempt) && !job->ended_ns)
			return false;
	return !launch_process(run, phase, attempt);
}
