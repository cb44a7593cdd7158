/*
 * Where the end of node 0 is the end of all: AWS Batch ends every node of a multi-node job
 * when its main node exits (User Guide, "Multi-node parallel jobs"), whatever they are doing.
 * So node 0 leaves last: when each of the others has told how it went, has shown no sign of
 * life for PEERS_SILENT_MS, or, where the attempt has failed, has had time to stop. A signal
 * ends the wait.
 */
#ifndef STK_NODE_FAREWELL_H
#define STK_NODE_FAREWELL_H

struct agent;

/* After the last report: wait as long as is needed, which may be not at all. */
void farewell(struct agent *agent);

#endif
