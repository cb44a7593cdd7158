/*
 * Where the end of node 0 is the end of all: AWS Batch ends every node of a multi-node job
 * when its main node exits (User Guide, "Multi-node parallel jobs"), whatever they are doing.
 * So node 0 leaves last: when each of the others has told how it went, has shown no sign of
 * life for PEERS_SILENT_MS, or, where the attempt has failed, has had time to stop. A signal
 * ends the wait. A node whose agent lives shows that (ALIVE_FILE), and sees to it that its
 * command comes to an end (watchdog.h).
 */
#ifndef STK_NODE_FAREWELL_H
#define STK_NODE_FAREWELL_H

#include <stdbool.h>

struct agent;

/* The other way round, while another node waits for the claim: has node 0 of this start ended
 * by itself? Where the service tells no restarts its claim alone does not say whether it holds
 * or is of an earlier start; a last report not much older than this agent does. What went well
 * is as good as a claim that was seen to hold; else this node stops too. True: it has. */
bool farewell_missed(struct agent *agent);

/* After the last report: wait as long as is needed, which may be not at all. */
void farewell(struct agent *agent);

#endif
