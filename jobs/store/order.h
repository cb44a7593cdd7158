/*
 * Files exchanged by stoker and stoker-node, beneath the prefix of an attempt
 * (`runs/<run>/<phase>-<attempt>/`). Messages are objects of the workspace, wherever that
 * is. Entries marked (file) lie in the local folder that goes with the workspace on each
 * machine (jobs/store/local_store_dir.h); for a directory workspace that is the directory
 * itself, so all of it is in one place.
 *
 *   order.json          from the driver: what the agents are to do (order.def)
 *   engine.json         from the engine: what it started (ENGINE_*; local only);
 *                       also (file)
 *   drain.json          from the driver, or an agent: save and stop (DRAIN_FILE)
 *   drained.json        from node 0: the checkpoint is saved, stop now (several nodes)
 *   resume.json         from node 0 of a restart: the checkpoint that it resumes from
 *                       (several nodes; jobs/node/checkpoints/resume.h)
 *   failed.json         from the first node with a failed command (several nodes)
 *   ended.json          from node 0: its command has ended well (several nodes)
 *   checkpoints/        (file) what the command saves: one folder an attempt, which
 *                       all of its nodes see; absent in precompile
 *   node-<k>/report.json  from the agent of node k: its state and result (node_report.def);
 *                       also (file)
 *   node-<k>/log        (file) stdout and stderr of the command and the agent's own
 *                       lines; with engine local the agent's stdout, else a copy of that
 *   node-<k>/times      (file) only if the workspace is a directory: when the bytes of the log
 *                       were written, a line "OFFSET TIME" at most once a second: from this
 *                       offset on, not before this time (UTC, ms)
 *   node-<k>/series     (file) the readings of that log (jobs/series/series_block.h)
 *   node-<k>/series/<start>-<offset>  only if the workspace is not a directory: some blocks
 *                       of that file (6 and 12 digits; number of the command's start, and
 *                       the place in the file). With sagemaker.launcher: toolkit the
 *                       drivers write these (jobs/series/series_stream.h): number of the
 *                       driver, and readings before it
 *   node-<k>/usage      (file) what the node did while the command trained (jobs/base/usage.h), in
 *                       blocks as the series has them; in a bucket such objects, too
 *   node-<k>/log/<offset>  only if the workspace is not a directory: the bytes of that
 *                       log from this offset on (12 digits), for readers that cannot
 *                       reach the file. The bytes of earlier starts of the same job on
 *                       other machines come first. The next piece begins at the end of
 *                       this one. A piece shorter than LOG_SEALED may still grow; no
 *                       piece is longer than LOG_PIECE_MAX
 *   health.json         from node 0, during a check-up of several nodes: the test that
 *                       they are to run together, and in the end its verdict
 *   node-<k>/health.json  from the agent of node k: its own results, and those of such a test
 *   node-<k>/progress.json  from the agent of node k > 0, now and then: what
 *                       node 0 needs to judge a stall of all nodes (PROGRESS_FILE)
 *   node-<k>/pace.json  (file) from the agent of node k, now and then, if its output shows
 *                       steps: the times of the steps (jobs/base/step_rate.h); also an object
 *                       if the workspace is not a directory
 *   node-<k>/alive.json  from the agent of node k > 0, now and then, if the workspace is not
 *                       a directory and node 0 has ended: a sign of life
 *   node-<k>/lock       (file) held (flock) by the agent as long as it lives
 *   node-<k>/src/       (file) the unpacked source, working directory of the command
 *   node-<k>/output/, …  (file) what the command writes
 *   node-<k>/scratch/   (file) the same in precompile; removed when the command is over
 * and beneath the run's prefix (`runs/<run>/`):
 *   claim/<phase>       the attempt that may run the command of this phase (CLAIM_*)
 *   tasks/<phase>/<task>/done.json  from the node that did it: a task of evaluate or infer is
 *                       done, its outputs are in their place (TASK_DONE_FILE)
 * and in the order's checkpoint.root, beside the checkpoints themselves:
 *   <name>.stoker.json  from node 0: the checkpoint <name> is complete (MARK_*)
 *   shards/             from each node, if several have no folder in common: what it
 *                       has uploaded of each checkpoint (jobs/checkpoint/shards.h,
 *                       jobs/node/checkpoints/checkpoint_coordinator.h)
 *
 * order.json and report.json are tables, which docs/protocol.md shows: order.def and
 * node_report.def. The other messages are small; their `v` and their unknown members are as there.
 *
 * The engine gives the agent this environment: PATH, HOME, USER, LANG, TMPDIR
 * and the secrets for the command; ORDER_TOKEN, a value of this one submission,
 * which every process of the job then carries and by which leftovers are found;
 * ORDER_RESTART, how often the engine has started this job again (absent: 0);
 * STOKER_WORK, the local folder (jobs/store/local_store_dir.h); and what it takes to reach
 * the workspace (the variables that are LENT in jobs/base/variable.def), which the
 * command does not get. In a container the environment is the container's own; see
 * jobs/node/setup/container_env.h for what the command gets of it.
 *
 * drain.json: {"v":1, "reason", "at": utc ms}, written only if absent; from an agent also
 *   "node" and "worker", as in its report. The agents
 *   look for it with each heartbeat, send checkpoint.signal to the command, wait
 *   up to checkpoint.grace_ms for a new mark and then stop the command. Only node 0
 *   sees the new mark; it then writes drained.json ({"v":1}).
 *
 * <name>.stoker.json (in a store: marks/<name>.stoker.json): {"v":1, "run",
 *   "attempt", "nonce", "step", "name", "kind", "url": absolute path or URL of the
 *   checkpoint, "files": [{"path","size"}…], "at": utc ms}. Written last, only if absent,
 *   only by the holder of the claim and never in precompile. Only a marked checkpoint
 *   counts for resuming. jobs/checkpoint reads and writes it (see checkpoint.h).
 *
 * progress.json: {"v":1, "step": largest seen or absent, "bytes": of output,
 *   "compile": lines of the compiler}. Any rank's log may show the steps.
 *
 * tasks/<phase>/<task>/done.json: {"v":1, "task", "attempt", "node", "files": [{"file": beneath
 *   "url", "size", "sha256"}…], "url": folder or URL that holds them, "metrics": {name:
 *   number}, "metrics_from": "metrics.json" | "log" (both absent: the task told no number)}.
 *   Written only if absent: whoever is second has done the same work, and its own is not used.
 *   A number that is not finite is not in "metrics", but in "invalid": {name: as it was written}.
 *   The first task also has "model": {"digest": of the candidate's pin, "files": [{"path","size",
 *   "sha256"}…]}, as the node had them on its disk. The driver journals task.done from it, once for
 * each task.
 *
 * failed.json: {"v":1, "node", "exit", "at": utc ms, "restart": number of the start
 *   (absent: 0)}, written only if absent for that start; drained.json likewise.
 *   The agents of the other nodes then stop their commands.
 *
 * ended.json: {"v":1, "restart"}: node 0 no longer judges stalls; from now on each of the
 *   other nodes judges its own command.
 *
 * node-<k>/alive.json: {"v":1, "at": utc ms}: the content is not read; the change of the
 *   object is the sign of life (jobs/node/main_node_exit.h).
 *
 * node-<k>/health.json: {"v":1, "nonce","token","restart": of its job,
 *   "state": begun|done, "node","host","addr", "port": free there, "devices","cores",
 *   "torch": true if Python can import it, "rows","figures": as in the report, "round","result":
 *   {"well","words"} of the newest test that was asked for}
 * health.json: the same first members and "do": "test", "round", "how", "limit_ms",
 *   "groups": [{"members": [rank…],"first","addr","port","hosts"}…]; or "do": "verdict"
 *   and the members of node 0's report.
 *
 * claim/<phase>: {"v":1, "attempt", "job", "restart": 0, "nonce", "token",
 *                 "holder", "host", "at": utc ms, "master_addr", "master_port"}
 *   created only if absent; superseded only by a higher attempt, or by a higher
 *   restart of the same job. "holder" names one agent process; other nodes of
 *   the job compare attempt, job, restart and token.
 */
#ifndef STK_STORE_ORDER_H
#define STK_STORE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "jobs/store/message.h"

/* Values of members of the order that are absent. */
#define ORDER_GRACE_MS            30000
#define ORDER_HEARTBEAT_MS        2000
#define ORDER_HEARTBEAT_REMOTE_MS 10000
#define ORDER_CLAIM_WAIT_MS       600000
#define ORDER_DRAIN_MS            120000

#define MESSAGE(m, title) MESSAGE_STRUCT(m)
#define FIELD(m, type, name, presence, help)                                                       \
	MESSAGE_C_##type name;                                                                     \
	unsigned has_##name;
#define END(m) MESSAGE_STRUCT_END
#include "jobs/store/order.def"
#undef MESSAGE
#undef FIELD
#undef END

extern const struct message *const order_message;

void order_release(struct order *order); /* for AUTO() */

/* Returns which of the metrics, [{"name","regex"}…], counts progress: the step, else the epoch;
 * SIZE_MAX: none. */
size_t order_progress_metric(const json_t *metrics);

#define ORDER_FILE     "order.json"
#define REPORT_FILE    "report.json"
#define ENGINE_FILE    "engine.json"
#define FAILED_FILE    "failed.json"
#define DRAIN_FILE     "drain.json"
#define STOP_FILE      "stop.json" /* in the folder of the run: jobs/run/beside.h */
#define DRAINED_FILE   "drained.json"
#define ENDED_FILE     "ended.json"
#define PROGRESS_FILE  "progress.json"
#define PACE_FILE      "pace.json"
#define ALIVE_FILE     "alive.json"
#define LOG_FILE       "log"
#define TIMES_FILE     "times"
#define SERIES_FILE    "series"
#define USAGE_FILE     "usage"
#define LOCK_FILE      "lock"
#define TASKS_DIR      "tasks/"
#define TASK_DONE_FILE "done.json"
#define CLAIM_DIR      "claim/"
#define LOG_OFFSET     "%012llu"
#define LOG_SEALED     ((size_t)64 << 10)
#define LOG_PIECE_MAX  ((size_t)1 << 20)
#define MARK_SUFFIX    ".stoker.json"
#define METRIC_STEP    "step"
#define METRIC_EPOCH   "epoch"           /* progress where there is no step */
#define METRIC_SAMPLES "samples"         /* of the training so far */
#define ORDER_MAX      ((size_t)8 << 20) /* bytes */
#define REPORT_MAX     ((size_t)1 << 20)
#define CLAIM_MAX      ((size_t)64 << 10)

/* Variables of the agent's own environment. The command and all its processes inherit the token. */
#define ORDER_TOKEN   "STOKER_TOKEN"
#define ORDER_RESTART "STOKER_RESTART"
/* Prefix of the name of a secret that is also a variable which the agent itself uses (LENT or
 * PASSED in jobs/base/variable.def). */
#define ORDER_SECRET "STOKER_SECRET_"

/* Given in place of a rank: the agent finds its rank from what the service tells a container. */
#define ORDER_RANK_BATCH     "batch"
#define ORDER_RANK_SAGEMAKER "sagemaker"

/* Lines of the agent on stdout begin with this, the nonce and ":: "; foreign lines that begin so
 * are escaped with a leading backslash. The report follows as one line of JSON. */
#define AGENT_LINE "::stoker:"

static inline bool is_agent_line(const char *line, size_t len)
{
	return len >= sizeof AGENT_LINE - 1 && memcmp(line, AGENT_LINE, sizeof AGENT_LINE - 1) == 0;
}

/* Begins each finding in the log of an agent that looks around (jobs/node/look.h), which has
 * ORDER_LOOK_MS for it. */
#define LOOK_LINE     "::look: "
#define ORDER_LOOK_MS ((int64_t)3 * 60 * 1000)

/* Values of "state" in a report. */
#define REPORT_STARTING "starting"
#define REPORT_RUNNING  "running"
#define REPORT_ENDED    "ended"
#define REPORT_NOT_MINE "not_mine"
#define REPORT_FAILED   "failed"

/* Values of "stopped" in a report. */
#define STOPPED_SIGNAL     "signal"     /* the agent got SIGTERM or SIGINT */
#define STOPPED_SUPERSEDED "superseded" /* another attempt holds the claim now */
#define STOPPED_PEER       "peer"       /* another node of the attempt failed */
#define STOPPED_LOG        "log"        /* the log could not be written (disk full) */
#define STOPPED_STALL      "stall"      /* no progress for longer than its limit */
#define STOPPED_TIMEOUT    "timeout"    /* the order's timeout_ms has passed */
#define STOPPED_DRAIN      "drain"      /* the driver asked to save and stop */
#define STOPPED_WORKER                                                                             \
	"worker" /* like drain, but asked for by this agent: a helper process is down, see         \
		  * member "worker" */

#define AGENT_EXIT_FAILED   70 /* the agent's own failure, see "error" */
#define AGENT_EXIT_NOT_MINE 86 /* another attempt holds the claim: no failure */
#define AGENT_EXIT_SICK     87 /* a check-up found this node sick */
#define AGENT_EXIT_NO_EXEC  126
#define AGENT_EXIT_NO_FILE  127

#endif
