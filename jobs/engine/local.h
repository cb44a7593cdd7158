/*
 * The local engine: attempts are processes on this machine, nothing to install.
 *
 * Each node of an attempt is one agent (stoker-node) in a session of its own,
 * so it outlives whoever submitted it; the agent runs the command in another
 * session. What was started stands in engine.json beneath the attempt's prefix,
 * how it went in the agents' reports. So any later process, knowing only the
 * workspace, the job's name and its prefix, finds, describes and stops it.
 *
 *   engine.json: {"v":1, "job", "token", "nodes", "state":
 *     "starting|started", "host", "boot", "pidns", "work": folder of the workspace's
 *     files there (jobs/store/work.h), "submitted": utc ms,
 *     "submitter": {"pid","start"}, "agents": [{"pid","start","status"}…] (by rank;
 *     status of waitpid, where this engine could collect it),
 *     "stop": {"at": mono ms, "why": "request|peer"}}
 *
 * It is written once before the first agent is started ("starting") and once
 * after the last ("started"), so a submitter may die between any two
 * instructions: agents that are not in it yet are found by the token in their
 * environment. The token also finds the processes of a command whose agent was
 * killed; those are killed before the attempt is called ended.
 *
 * How calls answer, beyond engine.h:
 *   describe  is called again and again; it also reaps agents that are our
 *             children, stops the other nodes when one has failed, and kills
 *             what a dead agent left. ENDED is only said when nothing is left.
 *   stop      sends SIGTERM once, and SIGKILL when called again after the grace
 *             and STOP_MARGIN_MS. It never waits; call it until describe says
 *             ENDED.
 *   A record of another machine, or of another PID namespace whose agents still
 *   hold their locks, is UNSEEN: unknown is not ended. But where all agents have
 *   reported their ends, it has ended, whoever reads that.
 *
 * Where the workspace is no directory, a request costs time and money. Agent, record,
 * reports and logs then lie in files too, and whoever can read those, from whatever
 * home, asks the store once an attempt; everybody else asks it for each object at most
 * every FAR_MS, and reads the log in the pieces that the agent brings there.
 */
#ifndef STK_ENGINE_LOCAL_H
#define STK_ENGINE_LOCAL_H

#include "jobs/engine/engine.h"

/* An agent kills its command when the grace is over and then still has to
 * report; only one that does not manage even that is killed itself. */
#define STOP_MARGIN_MS 5000

extern const struct engine_ops local_ops;

#endif
