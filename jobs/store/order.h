/*
 * Files exchanged by stoker and stoker-node, beneath the prefix of an attempt
 * (`runs/<run>/<phase>-<attempt>/`). Messages are objects of the workspace, wherever that
 * is. Entries marked (file) lie in the local folder that goes with the workspace on each
 * machine (jobs/store/local_store_dir.h); for a directory workspace that is the directory
 * itself, so all of it is in one place.
 *
 *   order.json          from the driver: what the agents are to do (ORDER_*)
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
 *   node-<k>/report.json  from the agent of node k: its state and result (REPORT_*);
 *                       also (file)
 *   node-<k>/log        (file) stdout and stderr of the command and the agent's own
 *                       lines; with engine local the agent's stdout, else a copy of that
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
 *                       steps: the times of the steps (jobs/base/pace.h); also an object
 *                       if the workspace is not a directory
 *   node-<k>/alive.json  from the agent of node k > 0, now and then, if the workspace is not
 *                       a directory and node 0 has ended: a sign of life
 *   node-<k>/lock       (file) held (flock) by the agent as long as it lives
 *   node-<k>/src/       (file) the unpacked source, working directory of the command
 *   node-<k>/output/, …  (file) what the command writes
 *   node-<k>/scratch/   (file) the same in precompile; removed when the command is over
 * and beneath the run's prefix (`runs/<run>/`):
 *   claim/<phase>       the attempt that may run the command of this phase (CLAIM_*)
 * and in the order's checkpoint.root, beside the checkpoints themselves:
 *   <name>.stoker.json  from node 0: the checkpoint <name> is complete (MARK_*)
 *   shards/             from each node, if several have no folder in common: what it
 *                       has uploaded of each checkpoint (jobs/checkpoint/shards.h,
 *                       jobs/node/checkpoints/checkpoint_coordinator.h)
 *
 * Both sides are written by this project, but an agent may be older than the
 * driver that reads its report: members are only ever added; unknown members are
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
 *             once, after memory ran out (absent: no limit),
 *             "program": the first word of the spec's command, by which the compiler
 *                     that it will run with is found,
 *             "compiler": in training, the compiler that the compile manifest was made
 *                     with; a different one ends the attempt before its command begins
 *                     (absent: any),
 *             "tolerated": the "pair" of a compiler difference that is only reported,
 *             "lock": in training, the graph key of a compile manifest in the cache: a
 *                     node that must fetch entries needs only the entries of this
 *                     manifest (absent: all),
 *             "graph_key", "claim": in precompile, the run's own nonce in the claim
 *                     on that key (jobs/cache/manifest/key_claim.h), which node 0 renews},
 *    "scratch": true in precompile (checkpoints and outputs are thrown away),
 *    "checkpoint_dir", "output_dir": absolute; absent: node-<k>/checkpoints and
 *             node-<k>/output (meaningless with "scratch"). "shared_checkpoints":
 *             true if "checkpoint_dir" is absent and the nodes of one machine share
 *             the attempt's checkpoints/. If neither is set, several nodes have no
 *             folder in common: each node saves a part of the checkpoint (shards/),
 *    "outputs": key prefix beneath which each node has a folder, node-<k> (node-<k>.restart-<n>
 *             for a restart), with what its command left in output_dir. If the workspace is a
 *             directory and the order does not say otherwise, that folder is output_dir itself;
 *             else the agent uploads it when the command is over (absent: nothing is uploaded),
 *    "resume_from": absolute path or URL of one complete checkpoint, "resume_step",
 *    "image_env": {name: value} of the variables that steer the kind's compiler
 *             (compile_kind_steers()) and are set by the ENV of the container's image
 *             (absent: not known, or no container),
 *    "init_from", "data_manifest" (absent: none),
 *    "checkpoint": {"kind": files|hf|nxd|dcp|orbax|megatron|deepspeed|auto,
 *             "root": absolute folder of this attempt's complete checkpoints:
 *                     checkpoint_dir itself, or another folder or a URL, to which
 *                     the agent copies them ("" with "scratch": none),
 *             "sync": "agent" | "none" (nothing is copied; what the script or
 *                     the engine copies to the root is still marked),
 *             "keep": "all" | number of this attempt's newest complete checkpoints
 *                     that stay (from 1 on); the one resumed from always stays,
 *             "signal": "USR1" … | "none", "grace_ms": of a drain}
 *             (absent: nothing is marked),
 *    "stall": {"mode": "auto" | "off" | "fixed", "limit_ms": if fixed}
 *             (absent: off),
 *    "timeout_ms": from the start of the command, after which it is stopped (absent
 *             or 0: none),
 *    "metrics": [{"name", "regex"}…]: the one named METRIC_STEP shows the steps;
 *             without it, and with "scratch", any output counts as progress
 *             (absent: none),
 *    "health": {"full": false before a precompile: only disk, memory and clock,
 *             "device": true if devices, counters and a tensor operation are checked,
 *             "ops": collectives that are tested (empty: none), "size": bytes of each,
 *             "timeout_ms": of this node's part, and of what the nodes test together}
 *             (absent: no check-up),
 *    "instance": type of the machine, "devices": number of its accelerators (absent:
 *             not known),
 *    "secret_from": {name: source that the agent asks with the role of its job: ssm:…,
 *             secretsmanager:…} for some of "secrets" (absent: the environment holds all),
 *    "agent": SHA-256 of the driver's own stoker-node, if the container may have another
 *             (absent: the agent is the driver's own),
 *    "efa": true if several nodes are connected by EFA,
 *    "stop_ms": time from a SIGTERM from outside to the SIGKILL of the whole job (absent: no
 *             such limit); the agent shortens "grace_ms" to fit into it,
 *    "core_dumps": true: the command may write core dumps, as far as the machine allows,
 *    "cores": accelerator cores of each node; absent: the CPUs of the agent,
 *    "master_addr": address of node 0; absent: 127.0.0.1,
 *    "grace_ms": between SIGTERM and SIGKILL (default 30000),
 *    "heartbeat_ms": between two looks at the claim (default 2000),
 *    "look_ms": the same if the workspace is not a directory (default 10000),
 *    "claim_wait_ms": how long other nodes wait for the claim (default 600000)}
 *   Strings of "command" and values of "env" may hold ${STOKER_NAME} and
 *   ${STOKER_NAME:-text}, which the agent expands. Of the dollar signs right
 *   before "{STOKER_" each two stand for one; an odd one left over begins a
 *   reference. All other dollar signs are literal.
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
 * report.json (replaced as a whole at each change):
 *   {"v":1, "run", "phase", "attempt", "node", "job", "nonce", "token",
 *    "state": "starting|running|ended|not_mine|failed",
 *    "agent": {"pid","start","boot"}, "command": {"pid","start","boot"},
 *    "build": {"version", "same": true if this agent is the order's "agent"} (absent: the
 *             order names none, or the agent is too old to tell),
 *    "host", "claimed": utc ms, "started": utc ms, "ended": utc ms,
 *    "master": "addr:port", "src", "checkpoint_dir", "output_dir": absolute,
 *    "exit": as a shell gives it, "signal": n or absent,
 *    "stopped": why the agent stopped the command, one of STOPPED_*; absent:
 *             the command ended by itself,
 *    "stall": {"doing": start|compile|first_step|step|save, "silent_ms",
 *             "limit_ms", "since": utc ms of the last progress}, if stopped for it,
 *    "drain": {"at": utc ms when the agent saw drain.json, "signalled": true if the
 *             command got checkpoint.signal, "marked": true if a new mark followed},
 *    "first_step", "last_step": the first and the largest that the log showed,
 *    "pace": the times of the steps (jobs/base/pace.h),
 *    "restart": number of this start, "resumed": {"step","url"} of the checkpoint that it
 *             resumed from (absent: none); both absent for the first start,
 *    "checkpoint": {"step", "url": the newest that this agent marked,
 *             "partial": [{"name","why"}…] that were not whole at the end,
 *             "passed": [{"name","path","why","hint","step","at": utc ms}…] that will not be
 *             used, as seen while the command ran,
 *             "trouble": the last error of the checkpoint watch},
 *    "cache": if it is not a directory and the agent uploads graphs to it:
 *             {"brought": number uploaded, "cut": number that were not whole and were not
 *             uploaded, "why": set if not all of them could be uploaded},
 *    "worker": {"name": checkpointer|uploader,"why","hint","at": utc ms}: a helper process of
 *             the agent died too often and is not started again; the attempt is drained,
 *    "outputs": once the command is over, if it left any: {"url": of this node's outputs; if
 *             they had to be uploaded: "files", "bytes" uploaded, "renamed": number of
 *             files with a name that is spelt differently there, "left": number not uploaded,
 *             "names": [{"name","why"}…] of the first of those, "why": the workspace's
 *             error}; before that {"state": "moving", "bytes"} during the upload,
 *    "health": {"verdict": healthy|sick|failing (no single node explains it)|unknown,
 *             "began","ended": utc ms, "checks": [{"check","verdict": ok|warned|sick|
 *             unchecked,"words"}…] of this node alone; from node 0 instead "words", "sick":
 *             [{"node","host","words"}…], "warned": [text…] about slowness that no single
 *             node causes, "nodes": [{"node","host","checks","figures": {operation:
 *             {"busbw": GiB/s,"time_us","ranks"}}}…] and "across": {"how": mpi|torch,
 *             "figures","rounds": [{"groups","failed","limit_ms"}…],"failing","unchecked"}},
 *    "silence": {"doing": as in "stall", "since", "until": utc ms at which the command is
 *             stopped if no progress comes}: while it runs, once half of that time is over,
 *    "oom": true if the kernel killed a process of this node for want of memory,
 *    "mount": mount point of the file system of checkpoint_dir, checkpoint.root,
 *             output_dir or the node's folder that has no space or no inodes
 *             left at the end of a command that failed,
 *    "compiler": {"found": versions of compiler and framework here,
 *             "changed": [{"field","old","new"}…] against those of the compile manifest,
 *             "pair": identifies this difference; "unknown": what could not be
 *             compared, and why},
 *    "environment": of the container's variables that steer the compiler: {"withheld": names
 *             that, as far as is known, neither the spec nor the image sets, and that the
 *             command did not get, "set_back": names given the image's value again,
 *             "image_known": true if the order had "image_env"} (absent: none),
 *    "leftovers": processes of the command that outlived it and were killed,
 *    "log_lost": true if output could not be passed on any more,
 *    "output_dropped_bytes": bytes of the agent's own stdout that were not read in time;
 *             node-<k>/log has them (absent: none),
 *    "error": {"message","hint","class"}: the agent's own failure, e.g. the
 *             command does not exist (state "ended", exit 127)}
 *   The last three states are final. "ended": the command was started and is
 *   over, with all of its processes, or could not be executed (126, 127).
 *   "failed": the agent could not do its part, or the command succeeded but its graphs or
 *   checkpoints could not be uploaded; "exit" is then AGENT_EXIT_FAILED, or
 *   AGENT_EXIT_SICK if a check-up found this node sick.
 *   "not_mine": AGENT_EXIT_NOT_MINE; the command did not run, or was stopped because
 *   another attempt took the claim.
 *
 *   If another node's end took this node down, "stopped" is STOPPED_PEER: its exit
 *   is not a cause. With STOPPED_DRAIN the exit may be anything, also 0: a
 *   command that saves and leaves when it gets the signal has not finished.
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

#include "jobs/base/text/js.h"

#define ORDER_FILE    "order.json"
#define REPORT_FILE   "report.json"
#define ENGINE_FILE   "engine.json"
#define FAILED_FILE   "failed.json"
#define DRAIN_FILE    "drain.json"
#define STOP_FILE     "stop.json" /* in the folder of the run: jobs/run/beside.h */
#define DRAINED_FILE  "drained.json"
#define ENDED_FILE    "ended.json"
#define PROGRESS_FILE "progress.json"
#define PACE_FILE     "pace.json"
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

/* Variables of the agent's own environment. The command and all its processes inherit the token. */
#define ORDER_TOKEN   "STOKER_TOKEN"
#define ORDER_RESTART "STOKER_RESTART"
/* Prefix of the name of a secret that is also a variable which the agent itself uses (LENT in
 * jobs/base/variable.def). */
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

/* Defaults if "grace_ms" and the like are absent from the order. */
#define ORDER_GRACE_MS      30000
#define ORDER_HEARTBEAT_MS  2000
#define ORDER_LOOK_MS       10000
#define ORDER_CLAIM_WAIT_MS 600000
#define ORDER_DRAIN_MS      120000

#endif
