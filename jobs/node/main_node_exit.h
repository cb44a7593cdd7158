/*
 * Exit of node 0, where that is the end of all: AWS Batch ends every node of a multi-node job
 * when its main node exits (User Guide, "Multi-node parallel jobs"), whatever they are doing. So
 * node 0 leaves last: when each of the others has reported its end, has shown no sign of life
 * for PEERS_SILENT_MS, or, if the attempt has failed, has had time to stop. A signal ends the
 * wait. On every engine it stays while it could not tell the others that it has ended (ENDED_FILE),
 * because from then on each of them judges its own silence. A node with a live agent shows that
 * (ALIVE_FILE), and sees to it that its command comes to an end (watchdog.h).
 */
#ifndef STK_NODE_MAIN_NODE_EXIT_H
#define STK_NODE_MAIN_NODE_EXIT_H

#include <stdbool.h>

struct agent;

/* The reverse, while another node waits for the claim: true if node 0 of this start has ended by
 * itself. If the service does not number restarts, the claim alone does not say whether it holds or
 * is of an earlier start; a last report not much older than this agent does. If node 0 ended well,
 * that is as good as a claim that was seen to hold; else this node stops too. */
bool main_node_exit_missed(struct agent *agent);

/* Waits after the last report as long as needed, which may be not at all. */
void main_node_exit_wait(struct agent *agent);

#endif
