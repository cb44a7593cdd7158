/* Samples what the node does: see sampler.h. */
#include "jobs/node/usage/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/node/agent.h"

#define FIRST_MS  1000
#define LAST_MS   15000
#define AGING     40  /* a pause is this part of the command's age */
#define COST      200 /* a pause is at least so many times the CPU time of a sample */
#define QUEUE_MAX ((size_t)256 << 10) /* a workspace that hangs takes no samples */

static void add_devices(struct usage_tool *tool, struct usage_readings *readings)
{
	struct usage_devices *devices = &tool->devices;

	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++) {
		const struct usage_mean *busy = &devices->busy[i], *full = &devices->full[i];

		if (busy->count > 0)
			usage_readings_add(readings, usage_busy(i),
					   busy->sum / (double)busy->count);
		if (full->count > 0)
			usage_readings_add(readings, usage_full(i),
					   full->sum / (double)full->count);
	}
	memset(devices->busy, 0, sizeof devices->busy);
	memset(devices->full, 0, sizeof devices->full);
}

/* Has the sample kept, unless so much waits for the workspace already. */
static void give(struct agent *agent, const struct usage_readings *readings)
{
	json_t *values = json_array();

	if (agent->uploader.orders.queue.len >= QUEUE_MAX) {
		json_decref(values);
		return;
	}
	for (size_t i = 0; i < readings->count; i++) {
		json_array_append_new(values, json_integer((json_int_t)readings->list[i].figure));
		json_array_append_new(values, json_real(readings->list[i].value));
	}
	uploader_usage(&agent->uploader,
		       agent->watchdog.listen.stepped ? agent->watchdog.listen.last_step : -1,
		       values);
}

static void on_time(void *arg);

static void sample_later(struct agent *agent, struct cpu began)
{
	struct sampler *sampler = &agent->sampler;
	int64_t pause = (clock_mono_now().ms - sampler->begun.ms) / AGING;
	int64_t least = COST * (clock_cpu_now().us - began.us) / 1000;

	pause = pause < FIRST_MS ? FIRST_MS : pause > LAST_MS ? LAST_MS : pause;
	sampler->timer = loop_after(agent->loop, pause < least ? least : pause, on_time, agent);
}

static void on_time(void *arg)
{
	struct agent *agent = arg;
	struct sampler *sampler = &agent->sampler;
	pid_t spared[USAGE_TOOLS + 3] = { agent->checkpointer.helper.pid,
					  agent->uploader.helper.pid, agent->outputs.helper.pid };
	struct cpu began = clock_cpu_now();
	struct usage_readings readings = { 0 };

	sampler->timer = NULL;
	sampler_children(agent, spared + 3);
	usage_host_read(&sampler->host, getpid(), spared, STK_LENGTH(spared), &readings);
	usage_tools_tick(sampler->tools, &agent->env);
	for (size_t i = 0; i < USAGE_TOOLS; i++)
		add_devices(&sampler->tools[i], &readings);
	give(agent, &readings);
	sample_later(agent, began);
}

void sampler_start(struct agent *agent)
{
	struct sampler *sampler = &agent->sampler;

	if (strcmp(agent->config.phase, "train") != 0 || sampler->runs)
		return;
	sampler->runs = true;
	sampler->begun = clock_mono_now();
	usage_host_init(&sampler->host, "/proc");
	usage_tools_start(sampler->tools, &agent->env, agent->loop);
	sample_later(agent, clock_cpu_now());
}

void sampler_stop(struct agent *agent)
{
	struct sampler *sampler = &agent->sampler;

	if (!sampler->runs)
		return;
	sampler->runs = false;
	loop_remove(agent->loop, sampler->timer);
	sampler->timer = NULL;
	usage_tools_stop(sampler->tools);
}

bool sampler_reaped(struct agent *agent, pid_t pid)
{
	return usage_tools_reaped(agent->sampler.tools, pid);
}

void sampler_children(const struct agent *agent, pid_t ret[USAGE_TOOLS])
{
	for (size_t i = 0; i < USAGE_TOOLS; i++)
		ret[i] = agent->sampler.tools[i].pid;
}

void sampler_release(struct sampler *sampler)
{
	usage_tools_release(sampler->tools);
	usage_host_release(&sampler->host);
}
