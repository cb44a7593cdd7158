/*
 * Limit of the checkpointer's last pass (checkpointer.h), in which the agent waits for it: the
 * checkpointer is killed when it has been silent for too long, or when the time after a signal is
 * over. The agent remembers that it was stuck and does not start it again.
 */
#ifndef STK_NODE_CHECKPOINTS_LAST_PASS_H
#define STK_NODE_CHECKPOINTS_LAST_PASS_H

struct agent;

/* Called when the checkpointer showed that it is at work, or a signal came: it may go on for a
 * while. Does nothing before the last pass. */
void last_pass_extend(struct agent *agent);

#endif
