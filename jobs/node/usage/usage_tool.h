/*
 * A tool that watches the devices of a node and prints a line now and then (neuron-monitor,
 * nvidia-smi): run as a child, its lines read from the loop.
 *
 * It must hurt neither the agent nor the command, whatever it does: its output is bounded, nothing
 * waits for it, one that dies or falls silent is started USAGE_TOOL_STARTS times in all, and
 * one that floods or prints something else is given up, with a word on stderr.
 */
#ifndef STK_NODE_USAGE_USAGE_TOOL_H
#define STK_NODE_USAGE_USAGE_TOOL_H

#include <sys/types.h>

#include "jobs/base/clock.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/sb.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/node/usage/usage_parse.h"

#define USAGE_TOOL_STARTS 3

struct usage_tool_kind;

struct usage_tool {
	const struct usage_tool_kind *kind;
	char *program; /* owned; NULL: the tool is not there, or given up */
	struct loop *loop;
	pid_t pid; /* 0: not running, or reaped */
	int fd;    /* the tool's stdout; -1: closed */
	struct watch *watch;
	struct sb line;      /* the beginning of a line */
	size_t bytes, wrong; /* since the last tick; lines that say nothing, in a row */
	int starts;
	struct mono heard, ended;     /* last line that said something, or its start; its end */
	struct usage_devices devices; /* devices that were told since the last were taken */
};

/* Starts the tools that are there. `tools` has room for USAGE_TOOLS. */
#define USAGE_TOOLS 2
void usage_tools_start(struct usage_tool *tools, const struct command_env *env, struct loop *loop);
/* Kills them at once; they are not started again. */
void usage_tools_stop(struct usage_tool *tools);
/* To be called for each child that is reaped: true if it was one of them. */
bool usage_tools_reaped(struct usage_tool *tools, pid_t pid);
/* Looks after them: to be called now and then. */
void usage_tools_tick(struct usage_tool *tools, const struct command_env *env);
void usage_tools_release(struct usage_tool *tools); /* zeros are fine */

#endif
