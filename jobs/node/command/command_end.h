/*
 * End of the command: has the workspace looked at a last time when the process has ended, tells the
 * other nodes, says whether the checkpointer has work left, and decides the agent's result when no
 * process of the command is left. command_watch.c calls it as these things happen.
 */
#ifndef STK_NODE_COMMAND_COMMAND_END_H
#define STK_NODE_COMMAND_COMMAND_END_H

#include <stdbool.h>

struct agent;

/* The command is reaped, with this status of waitpid(); processes of it may still live. */
void command_end_begin(struct agent *agent, int status);
/* Tells the other nodes that node 0 has ended well (ENDED_FILE), if that is still due. */
void command_end_tell(struct agent *agent);
/* The last look at the workspace, which command_end_begin() orders, is over. */
void command_end_looked(struct agent *agent);
/* True if graphs or checkpoints that the result rests on are not in place yet. */
bool command_end_lacks_pass(const struct agent *agent);
/* True if the command failed, or was killed, in the middle of its work. A command that leaves when
 * told to has had its chance to save, whatever the exit status: launchers have one of their own for
 * that. And processes that outlive a command that ended well are no part of its work. */
bool command_end_was_cut_off(const struct agent *agent);
/* Sets the result and leaves the loop. */
void command_end_conclude(struct agent *agent);

#endif
