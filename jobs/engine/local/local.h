/*
 * The local engine: attempts are processes on this machine; nothing to install.
 *
 * Each node of an attempt is one agent (stoker-node) in a session of its own, so it outlives the
 * submitter; the agent runs the command in another session. engine.json beneath the attempt's
 * prefix records what was started, and the agents' reports record how it went. So any later process
 * that knows only the workspace, the job's name and its prefix can find, describe and stop it.
 *
 *   engine.json: {"v":1, "job", "token", "nodes", "state":
 *     "starting|started", "host", "boot", "pidns", "work": folder of the workspace's
 *     files there (jobs/store/local_store_dir.h), "submitted": utc ms,
 *     "submitter": {"pid","start"}, "agents": [{"pid","start","status"}…] (by rank;
 *     status of waitpid, if this engine could collect it),
 *     "stop": {"at": mono ms, "why": "request|peer"}}
 *
 * The record is written once before the first agent is started ("starting") and once after the last
 * ("started"), so a submitter may die between any two instructions: agents that are not in the
 * record yet are found by the token in their environment. The token also finds the processes of a
 * command whose agent was killed; those are killed before the attempt is called ended.
 *
 * Behaviour of the calls, beyond engine.h:
 *   describe  is called again and again; it also reaps agents that are children of this
 *             process, stops the other nodes when one has failed, and kills what a dead
 *             agent left. ENDED is only returned when nothing is left.
 *   stop      sends SIGTERM once, and SIGKILL when called again after the grace
 *             and STOP_MARGIN_MS. It never waits; call it until describe says
 *             ENDED.
 *   An attempt on another machine, or in another PID namespace whose agents still
 *   hold their locks, is UNKNOWN: unknown is not ended. But if all agents have
 *   reported their ends, it has ended, whichever process reads that.
 *
 * If the workspace is not a directory, a request costs time and money. Agent, record, reports and
 * logs are then also kept in local files. A process that can read those files, from any home, asks
 * the store once per attempt; any other process asks it for each object at most every REMOTE_MS,
 * and reads the log in the pieces that the agent uploads.
 *
 * engine/local: the local engine: agents as processes of this machine, found again by their files
 * on disk. Code that all engines share is in jobs/engine.
 */
#ifndef STK_ENGINE_LOCAL_LOCAL_H
#define STK_ENGINE_LOCAL_LOCAL_H

#include "jobs/engine/engine.h"

/* An agent kills its command when the grace is over and then still has to report; only an agent
 * that does not even manage that is killed itself. */
#define STOP_MARGIN_MS 5000

extern const struct engine_ops local_ops;

#endif
