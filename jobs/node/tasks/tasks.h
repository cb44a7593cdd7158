/*
 * Tasks: in evaluate and infer the command of an attempt runs once for each task that is not done.
 *
 *   evaluate  {candidate, baseline} x repeat, in the order candidate-1, baseline-1, candidate-2 …,
 *             so that the two of a pair follow each other on the same machines. All nodes work on
 *             each task together
 *   infer     shard-0 … shard-<n-1> of the manifest, a run of its lines each. Each node takes the
 *             next free shard alone, or all nodes work on each together
 *
 * In place of the command the agent starts the runner, a helper (helper.h) with the command's
 * session and output. It runs the command for one task after the other, passes its output on, and
 * takes what the task has left to its place. So signals, limits, log and watchdog treat it as they
 * treat a command, and its exit status is that of the first command that failed, with which the
 * attempt ends.
 *
 * For each task the command has, beside all else (command_env.h): STOKER_OUTPUT_DIR, its own and
 * empty; STOKER_DATA_MANIFEST, of the hold-out or of its shard, with the objects of that alone in
 * STOKER_DATA_DIR if they are fetched; STOKER_MODEL and STOKER_MODEL_ROLE; in evaluate
 * STOKER_REPEAT, in infer STOKER_SHARD (from 0) and STOKER_SHARDS. To a shard that a node does
 * alone the node is the only one: its rank is 0.
 *
 * Beneath the order's tasks.results (`runs/<run>/tasks/<phase>/`):
 *   <task>/done.json     order.h: written only if absent, when the outputs are durable in their
 *                        place. A task that has it is not run again by any attempt
 *   <task>/taken-<attempt>.<restart>.json
 *                        {"v":1, "node"}: that node of that start has the shard. Written only if
 *                        absent; only of several nodes that work alone
 *   <task>/part-<attempt>.<restart>-<k>.json
 *                        from node k > 0 of a task that all nodes do: as done.json, of that node
 *                        alone. Node 0 joins them
 * and beneath the attempt's prefix:
 *   task.json            from node 0, for the nodes of a task that all do: {"v":1, "restart",
 *                        "number": of the tasks begun in this start, from 1, "task": absent: none
 *                        is left}
 *
 * Outputs of a task lie beneath a folder that no other attempt, start or node writes to:
 *   evaluate  <workspace>/<outputs>/<task>/node-<k>/   (<task>.restart-<n> in a restart)
 *   infer     <tasks.output>/<task>/<attempt>.<restart>/            a shard that a node does alone
 *             <tasks.output>/<task>/<attempt>.<restart>/node-<k>/   one that all nodes do
 * If that is a directory, it is STOKER_OUTPUT_DIR itself; else the runner uploads it. When all
 * shards are done, node 0 deletes beneath tasks.output whatever no done.json names, and then writes
 *   <tasks.output>/manifest.json   {"v":1, "run", "files": [{"file": beneath tasks.output, "size",
 *                                  "sha256", "shard"}…], sorted by shard and file}
 *
 * In a precompile for a stage (`scratch`) the runner does the first task, candidate-1 or shard-0,
 * on every node, in the attempt's scratch folder; no task is done by that.
 *
 * The values of a task are those of metrics.json in its STOKER_OUTPUT_DIR (metrics_file.h), else
 * the last reading of each of the order's metrics in its own output.
 *
 * The runner's messages (news.h): "task": {"task", "done", "of"} when one begins and when one is
 * done; "failed": {"task", "objects", "message", "hint", "class"}: why the attempt ends, where the
 * command's status does not tell (message absent: it does).
 *
 * node/tasks: the tasks of an attempt, done one after the other in place of a command. Nothing here
 * knows the agent's state but tasks.c.
 */
#ifndef STK_NODE_TASKS_TASKS_H
#define STK_NODE_TASKS_TASKS_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/node/helper.h"
#include "jobs/node/news.h"

struct agent;

struct tasks {
	struct helper helper; /* pid 0: the attempt has no tasks, or they have not begun */
	struct news news;
	struct err *why;   /* owned; why the attempt ends; NULL: by the command's status, or well */
	char *why_class;   /* owned; NULL: it follows from the error */
	struct mono shown; /* when the report last told of tasks: no oftener than each heartbeat */
};

/* True if the order has tasks. */
bool tasks_needed(const struct agent_config *config);

/* Starts the runner in place of the command: its process leads a group, and writes to `write_fd`.
 */
int tasks_start(struct agent *agent, int write_fd, pid_t *ret_pid, struct err **err);
/* To be called once the runner is reaped: hears its last words. */
void tasks_gone(struct agent *agent);
void tasks_release(struct tasks *tasks); /* { 0 } is fine */

#endif
