/*
 * Samples what the node does while the command trains, and has the uploader keep it beside the
 * series of the log (jobs/store/order.h, USAGE_FILE). A trial run of phase 1 is not sampled: what
 * it does says nothing about the training.
 *
 * The first sample is a second after the start of the command, and the pauses grow with its age, to
 * 15 s: a run of a minute has enough of them to be judged, and one of a week no more than a report
 * can draw. A pause is at least 200 times as long as the sample before it took of a core, so that
 * all of them take half a percent of one at most.
 *
 * node/usage: what a node does while it trains, read from /proc (usage_host.h) and from tools that
 * watch devices (usage_tool.h). Nothing here may hurt the command: what cannot be read is left out.
 */
#ifndef STK_NODE_USAGE_SAMPLER_H
#define STK_NODE_USAGE_SAMPLER_H

#include <stdbool.h>
#include <sys/types.h>

#include "jobs/node/usage/usage_host.h"
#include "jobs/node/usage/usage_tool.h"

struct agent;

struct sampler {
	bool runs;
	struct watch *timer;
	struct mono begun;
	struct usage_host host;
	struct usage_tool tools[USAGE_TOOLS];
};

/* The command has started. */
void sampler_start(struct agent *agent);
/* The command has ended: nothing more is sampled, and the tools are killed. */
void sampler_stop(struct agent *agent);
/* To be called for each child that is reaped: true if it was a tool. */
bool sampler_reaped(struct agent *agent, pid_t pid);
/* Tells the tools that still run: they are children of the agent, and not of the command. */
void sampler_children(const struct agent *agent, pid_t ret[USAGE_TOOLS]);
void sampler_release(struct sampler *sampler); /* { 0 } is fine */

#endif
