/*
 * The end of a struct agent (agent.h). Its parts call services of agent.c, so what calls all of
 * them is a file of its own.
 */
#ifndef STK_NODE_AGENT_RELEASE_H
#define STK_NODE_AGENT_RELEASE_H

struct agent;

/* Ends the helpers and frees all that the agent holds; a descriptor of -1 is none. For AUTO(). */
void agent_release(struct agent *agent);

#endif
