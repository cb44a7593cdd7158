/*
 * What passes between stoker and stoker-node, beneath the prefix of an attempt
 * (`runs/<run>/<phase>-<attempt>/`). What one side tells the other is objects of
 * the workspace, wherever that is; what is marked (file) lies in the folder that
 * goes with the workspace on each machine (jobs/store/work.h): a directory is its
 * own, so there all of it is in one place.
 *
 *   order.json          from the driver: what the agents are to do (ORDER_*)
 *   engine.json         from the engine: what it started (ENGINE_*; local only);
 *                       also (file)
 *   drain.json          from the driver: save and stop (DRAIN_FILE)
 *   drained.json        from node 0: it is saved, stop now (several nodes)
 *   resume.json         from node 0 of a start that is not the first: what it goes on from
 *                       (several nodes; jobs/node/resume.h)
 *   failed.json         from the first node whose command failed (several nodes)
 *   ended.json          from node 0: its command has ended well (several nodes)
 *   checkpoints/        (file) what the command saves: one folder an attempt, which
 *                       all of its nodes see; absent in precompile
 *   node-<k>/report.json  from the agent of node k: how it went (REPORT_*); also
 *                       (file)
 *   node-<k>/log        (file) stdout and stderr of the command and the agent's own
 *                       lines (local engine)
 *   node-<k>/log/<offset>  where the workspace is no directory: the bytes of that log
 *                       from this offset on (12 digits), for who cannot read the
 *                       file, and before them those of earlier starts of the same job
 *                       on other machines. The next piece begins where this one ends. One shorter
 *                       than LOG_SEALED may still grow; none is longer than
 *                       LOG_PIECE_MAX
 *   health.json         from node 0, during a check-up of several nodes: what they are to
 *                       test together, and in the end its verdict
 *   node-<k>/health.json  from the agent of node k: how it is, and how such a test went
 *   node-<k>/progress.json  from the agent of node k > 0, now and then: what
 *                       node 0 needs to judge a stall of them all (PROGRESS_FILE)
 *   node-<k>/alive.json  from the agent of node k > 0, where the workspace is no directory and
 *                       node 0 is over: now and then, that it lives
 *   node-<k>/lock       (file) held (flock) by the agent as long as it lives
 *   node-<k>/src/       (file) the unpacked source, working directory of the command
 *   node-<k>/output/, …  (file) what the command writes
 *   node-<k>/scratch/   (file) the same in precompile; removed when the command is over
 * and beneath the run's prefix (`runs/<run>/`):
 *   claim/<phase>       who may run the command of this phase (CLAIM_*)
 * and in the order's checkpoint.root, beside the checkpoints themselves:
 *   <name>.stoker.json  from node 0: the checkpoint <name> is complete (MARK_*)
 *   shards/             from each node, where several have no folder in common: what it
 *                       has brought of each checkpoint (jobs/checkpoint/shards.h,
 *                       jobs/node/shards.h)
 *
 * Both sides are written by this project, but an agent may be older than the
 * driver that reads its report: members are only ever added; unknown ones are
 * ignored; `v` changes only if old readers must refuse.
 *
 * order.json:
 *   {"v":1, "run", "phase", "attempt", "job", "nonce", "nodes":1,
 *    "workspace": URL, "prefix": "runs/…/", "run_prefix": "runs/<id>/",
 *    "source": key of the bundle, or absent,
 *    "links": [[name, absolute target]…],
 *    "command": [argv…], "env": {name: value…}   (no secret values),
 *    "secrets": [names of variables that the agent's own environment holds],
 *    "compile": {"kind", "cache": directory or URL, "workers": compile processes at
 *             once, after memory ran out (absent: as many as ever),
 *             "program": the first word of the spec's command, by which the compiler
 *                     is found that it will run with,
 *             "compiler": in training, the one that the lock was made with; another
 *                     one ends the attempt before its command begins (absent: any),
 *             "tolerated": the "pair" of a difference that is only told of,
 *             "lock": in training, the graph key of the lock in the cache whose
 *                     entries a node needs, where it must fetch them (absent: all),
 *             "graph_key", "claim": in precompile, the run's own nonce in the claim
 *                     on that key (jobs/cache/key_claim.h), which node 0 renews},
 *    "scratch": true in precompile (checkpoints and outputs are thrown away),
 *    "checkpoint_dir", "output_dir": absolute; absent: node-<k>/checkpoints and
 *             node-<k>/output (meaningless with "scratch"). "shared_checkpoints":
 *             true where "checkpoint_dir" is absent and the nodes of one machine
 *             are to have the attempt's checkpoints/ in common. Several nodes without
 *             either have no folder in common: what each saves is a part of the
 *             checkpoint (shards/),
 *    "resume_from": absolute path or URL of one complete checkpoint, "resume_step",
 *    "init_from", "data_manifest" (absent: none),
 *    "checkpoint": {"kind": files|hf|nxd|dcp|orbax|megatron|deepspeed|auto,
 *             "root": absolute folder where this attempt's complete checkpoints
 *                     are to be found; checkpoint_dir itself, or another one, or
 *                     a URL, to which the agent copies them ("" with "scratch":
 *                     none),
 *             "sync": "agent" | "none" (nothing is copied; what the script or
 *                     the engine brings to the root is still marked),
 *             "keep": "all" | how many of this attempt's newest complete ones
 *                     stay (from 1 on); the one resumed from always stays,
 *             "signal": "USR1" … | "none", "grace_ms": of a drain}
 *             (absent: nothing is marked),
 *    "stall": {"mode": "auto" | "off" | "fixed", "limit_ms": if fixed}
 *             (absent: off),
 *    "timeout_ms": from the start of the command, after which it is stopped (absent
 *             or 0: none),
 *    "metrics": [{"name", "regex"}…]: the one named METRIC_STEP tells the steps;
 *             without it, and with "scratch", any output is progress all along
 *             (absent: none),
 *    "health": {"full": false before a precompile: only disk, memory and clock,
 *             "device": are devices, counters and a tensor operation looked at,
 *             "ops": collectives that are tested (empty: none), "size": bytes of each,
 *             "timeout_ms": of this node's part, and of what the nodes test together}
 *             (absent: no check-up),
 *    "instance": type of the machine, "devices": accelerators that it has (absent:
 *             not known),
 *    "secret_from": {name: where the agent asks for it with the role of its job: ssm:…,
 *             secretsmanager:…} of those in "secrets" (absent: its environment holds all),
 *    "agent": SHA-256 of the driver's own stoker-node, where another may have come to
 *             the container (absent: it has brought its own),
 *    "efa": true where several nodes have it between them,
 *    "stop_ms": after a SIGTERM from outside all of this is gone so soon (absent: never);
 *             what must be done by then is asked for earlier than "grace_ms" says,
 *    "cores": of an accelerator on each node; absent: the CPUs of the agent,
 *    "master_addr": where node 0 is reached; absent: 127.0.0.1,
 *    "grace_ms": between SIGTERM and SIGKILL (default 30000),
 *    "heartbeat_ms": between two looks at the claim (default 2000),
 *    "look_ms": the same where the workspace is no directory (default 10000),
 *    "claim_wait_ms": how long other nodes wait for it (default 600000)}
 *   Strings of "command" and values of "env" may hold ${STOKER_NAME} and
 *   ${STOKER_NAME:-text}, which the agent expands. Of the dollar signs right
 *   before "{STOKER_" each two stand for one; an odd one left over begins a
 *   reference. All other dollar signs are themselves.
 *
 * The agent's own environment, from the engine: PATH, HOME, USER, LANG, TMPDIR
 * and the secrets for the command; ORDER_TOKEN, a value of this one submission,
 * which every process of the job then carries and by which leftovers are found;
 * ORDER_RESTART, how often the engine has started this job again (absent: 0);
 * STOKER_WORK, where the files lie (jobs/store/work.h); and what it takes to reach
 * the workspace (the variables that are LENT in jobs/base/variable.def), which the
 * command is not given.
 *
 * report.json (replaced as a whole at each change):
 *   {"v":1, "run", "phase", "attempt", "node", "job", "nonce", "token",
 *    "state": "starting|running|ended|not_mine|failed",
 *    "agent": {"pid","start","boot"}, "command": {"pid","start","boot"},
 *    "build": {"version", "same": is this agent the order's "agent"} (absent: the order
 *             names none, or it is so old that it does not know),
 *    "host", "claimed": utc ms, "started": utc ms, "ended": utc ms,
 *    "master": "addr:port", "src", "checkpoint_dir", "output_dir": absolute,
 *    "exit": as a shell gives it, "signal": n or absent,
 *    "stopped": why the agent stopped the command, one of STOPPED_*; absent:
 *             it ended by itself,
 *    "stall": {"doing": start|compile|first_step|step|save, "silent_ms",
 *             "limit_ms", "since": utc ms of the last progress}, if stopped for it,
 *    "drain": {"at": utc ms when the agent saw the wish, "signalled": did the
 *             command get checkpoint.signal, "marked": did a new mark follow},
 *    "first_step", "last_step": the first and the largest that the log showed,
 *    "checkpoint": {"step", "url": the newest that this agent marked,
 *             "partial": [{"name","why"}…] that were not whole at the end,
 *             "trouble": why looking after them last went wrong},
 *    "cache": where it is no directory and the agent brings graphs there:
 *             {"brought": how many, "cut": how many were not whole and stayed
 *             behind, "why": not all of them could be brought},
 *    "health": {"verdict": healthy|sick|failing (no single node explains it)|unknown,
 *             "began","ended": utc ms, "checks": [{"check","verdict": ok|warned|sick|
 *             unchecked,"words"}…] of this node alone; of node 0 instead "words", "sick":
 *             [{"node","host","words"}…], "warned": [text…] of what is slow and no single
 *             node's doing, "nodes": [{"node","host","checks","figures": {operation:
 *             {"busbw": GiB/s,"time_us","ranks"}}}…] and "across": {"how": mpi|torch,
 *             "figures","rounds": [{"groups","failed","limit_ms"}…],"failing","unchecked"}},
 *    "oom": true if the kernel killed a process of this node for want of memory,
 *    "mount": mount point of the file system of checkpoint_dir, checkpoint.root,
 *             output_dir or the node's folder that has no space or no inodes
 *             left at the end of a command that failed,
 *    "compiler": {"found": versions of compiler and framework here,
 *             "changed": [{"field","old","new"}…] against those of the lock, and
 *             "pair": what tells this difference from others; "unknown": what could
 *             not be compared, and why},
 *    "leftovers": processes of the command that outlived it and were killed,
 *    "log_lost": true when output could not be passed on any more,
 *    "error": {"message","hint","class"}: the agent's own failure, e.g. the
 *             command does not exist (state "ended", exit 127)}
 *   The last three states are final. "ended": the command was started and is
 *   over, with all of its processes, or could not be executed (126, 127).
 *   "failed": the agent could not do its part, or what a command that went well
 *   has compiled or saved could not be brought where it is looked for; "exit" is then
 *   AGENT_EXIT_FAILED, or AGENT_EXIT_SICK where a check-up found this node sick.
 *   "not_mine": AGENT_EXIT_NOT_MINE; the command did not run
 *   or was stopped because the claim passed on.
 *
 *   Of a node that another node's end took down, "stopped" is STOPPED_PEER: its
 *   exit is no cause. With STOPPED_DRAIN the exit may be anything, also 0: a
 *   command that saves and leaves when it gets the signal has not finished.
 *
 * drain.json: {"v":1, "reason", "at": utc ms}, written only if absent. The agents
 *   look for it with each heartbeat, send checkpoint.signal to the command, wait
 *   up to checkpoint.grace_ms for a new mark and then stop the command. The new
 *   mark is only seen by node 0, which then writes drained.json ({"v":1}).
 *
 * <name>.stoker.json (in a store: marks/<name>.stoker.json): {"v":1, "run",
 *   "attempt", "nonce", "step", "name", "kind", "url": absolute path or URL of the
 *   checkpoint, "files": [{"path","size"}…], "at": utc ms}, written last, only if absent, only by
 * the holder of the claim and never in precompile. Only a marked checkpoint counts for resuming.
 * Its reader and writer is jobs/checkpoint.
 *
 *   Of a start that is not the first: "restart": which, "resumed": {"step","url"} of what
 *   it went on from (absent: from nothing).
 *
 * progress.json: {"v":1, "step": largest seen or absent, "bytes": of output,
 *   "compile": lines of the compiler}. Steps may be told by any rank's log.
 *
 * failed.json: {"v":1, "node", "exit", "at": utc ms, "restart": of the start that it is
 *   of (absent: 0)}, written only if there is none of that start; the same of drained.json.
 *   The agents of the other nodes then stop their commands.
 *
 * ended.json: {"v":1, "restart"}: node 0 judges no stalls any more; from now on each of the
 *   others judges its own command.
 *
 * node-<k>/alive.json: {"v":1, "at": utc ms}: nobody reads it; that the object changes is the
 *   sign (jobs/node/farewell.h).
 *
 * node-<k>/health.json: {"v":1, "nonce","token","restart": of the job that it is of,
 *   "state": begun|done, "node","host","addr", "port": free there, "devices","cores",
 *   "torch": can Python import it, "rows","figures": as in the report, "round","result":
 *   {"well","words"} of the newest test that was asked for}
 * health.json: the same first members and "do": "test", "round", "how", "limit_ms",
 *   "groups": [{"members": [rank…],"first","addr","port","hosts"}…]; or "do": "verdict"
 *   and what node 0's report says.
 *
 * claim/<phase>: {"v":1, "attempt", "job", "restart": 0, "nonce", "token",
 *                 "holder", "host", "at": utc ms, "master_addr", "master_port"}
 *   created only if absent; superseded only by a higher attempt, or by a higher
 *   restart of the same job. "holder" names one agent process; other nodes of
 *   the job go by attempt, job, restart and token.
 */
#ifndef STK_STORE_ORDER_H
#define STK_STORE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "jobs/base/json.h"

#define ORDER_FILE    "order.json"
#define REPORT_FILE   "report.json"
#define ENGINE_FILE   "engine.json"
#define FAILED_FILE   "failed.json"
#define DRAIN_FILE    "drain.json"
#define DRAINED_FILE  "drained.json"
#define ENDED_FILE    "ended.json"
#define PROGRESS_FILE "progress.json"
#define ALIVE_FILE    "alive.json"
#define LOG_FILE      "log"
#define LOCK_FILE     "lock"
#define CLAIM_DIR     "claim/"
#define LOG_OFFSET    "%012llu"
#define LOG_SEALED    ((size_t)64 << 10)
#define LOG_PIECE_MAX ((size_t)1 << 20)
#define MARK_SUFFIX   ".stoker.json"
#define METRIC_STEP   "step"
#define ORDER_MAX     ((size_t)8 << 20) /* bytes */
#define REPORT_MAX    ((size_t)1 << 20)
#define CLAIM_MAX     ((size_t)64 << 10)

/* Variables of the agent's own environment. The token passes on to the command
 * and all its processes. */
#define ORDER_TOKEN   "STOKER_TOKEN"
#define ORDER_RESTART "STOKER_RESTART"
/* In front of the name of a secret that is also a variable which the agent itself goes
 * by (LENT in jobs/base/variable.def). */
#define ORDER_SECRET "STOKER_SECRET_"

/* In place of a rank: the agent finds its own by what the service tells a container. */
#define ORDER_RANK_BATCH     "batch"
#define ORDER_RANK_SAGEMAKER "sagemaker"

/* Lines of the agent on stdout begin with this, the nonce and ":: "; foreign
 * lines that begin so are escaped with a leading backslash. What follows is the
 * report as one line of JSON. */
#define AGENT_LINE "::stoker:"

static inline bool is_agent_line(const char *line, size_t len)
{
	return len >= sizeof AGENT_LINE - 1 && memcmp(line, AGENT_LINE, sizeof AGENT_LINE - 1) == 0;
}

/* Values of "state" in a report. */
#define REPORT_STARTING "starting"
#define REPORT_RUNNING  "running"
#define REPORT_ENDED    "ended"
#define REPORT_NOT_MINE "not_mine"
#define REPORT_FAILED   "failed"

/* In one of the states after which nothing more comes of it; NULL is not. */
bool report_is_final(const json_t *report);

/* Values of "stopped" in a report. */
#define STOPPED_SIGNAL     "signal"     /* the agent was told to (SIGTERM, SIGINT) */
#define STOPPED_SUPERSEDED "superseded" /* another attempt holds the claim now */
#define STOPPED_PEER       "peer"       /* another node of the attempt failed */
#define STOPPED_LOG        "log"        /* its output could not be kept (disk full) */
#define STOPPED_STALL      "stall"      /* no progress for longer than its limit */
#define STOPPED_TIMEOUT    "timeout"    /* the order's timeout_ms has passed */
#define STOPPED_DRAIN      "drain"      /* the driver asked to save and stop */

#define AGENT_EXIT_FAILED   70 /* the agent's own failure, see "error" */
#define AGENT_EXIT_NOT_MINE 86 /* another attempt holds the claim: no failure */
#define AGENT_EXIT_SICK     87 /* this node is sick */
#define AGENT_EXIT_NO_EXEC  126
#define AGENT_EXIT_NO_FILE  127

/* Where "grace_ms" and the like are absent. */
#define ORDER_GRACE_MS      30000
#define ORDER_HEARTBEAT_MS  2000
#define ORDER_LOOK_MS       10000
#define ORDER_CLAIM_WAIT_MS 600000
#define ORDER_DRAIN_MS      120000

#endif
