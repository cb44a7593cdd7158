/*
 * stoker-node: the steps of one node of one attempt, in order.
 *
 *   read the order → report "starting" → claim the phase (node 0) or wait for
 *   the claim of our job (the others) → fresh source, folders, what must be
 *   fetched (fetch.h), environment → check-up of the node, alone and with the others
 *   (health.h) →
 *   start the command in its own process group (command/) → report "running" → pass its
 *   output on, forward signals, watch for stalls (watchdog.h),
 *   look after checkpoints (checkpointer.h), drain when asked (drain.h) → see that
 *   no process of the command is left → a last look at its checkpoints → upload its
 *   outputs (outputs.h) → report how it ended, exit with its status.
 *
 * Node 0 leaves last where its exit would end all nodes (main_node_exit.h).
 *
 * While the command runs the agent itself does not touch the workspace, which may hang: the
 * uploader (uploader.h) looks at it, and writes reports and the log there.
 *
 * An early end takes the same way out: SIGTERM to the command's group, after the grace
 * SIGKILL to everything that descends from it, then the report.
 */
#ifndef STK_NODE_AGENT_MAIN_H
#define STK_NODE_AGENT_MAIN_H

/* Runs the agent and returns its exit status. Prints only report lines to stdout; if no report is
 * possible, the reason goes to stderr. */
int agent_main(const char *program, const char *order, const char *rank);

#endif
