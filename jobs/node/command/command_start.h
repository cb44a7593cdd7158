/*
 * Starts the command in its own session, with its secrets and its environment.
 *
 * node/command: the command of an attempt, started (command_start.h), watched (command_watch.h) and
 * ended (command_end.h, command_stop.h). Each file calls only those named after it, and services of
 * the agent (agent.h); the steps before and after the command are agent_main.c.
 */
#ifndef STK_NODE_COMMAND_COMMAND_START_H
#define STK_NODE_COMMAND_COMMAND_START_H

struct agent;

/* Starts the command and watches it until no process of it is left; then the loop quits with state
 * and exit set. Called from the loop. */
void command_start(struct agent *agent);

#endif
