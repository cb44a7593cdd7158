/*
 * What passes between stoker and stoker-node, as files beneath the prefix of an
 * attempt in the workspace (`runs/<run>/<phase>-<attempt>/`):
 *
 *   order.json          from the driver: what the agents are to do (ORDER_*)
 *   engine.json         from the engine: what it started (ENGINE_*; local only)
 *   failed.json         from the first node whose command failed (several nodes)
 *   node-<k>/report.json  from the agent of node k: how it went (REPORT_*)
 *   node-<k>/log        stdout and stderr of the command and the agent's own
 *                       lines (local engine)
 *   node-<k>/lock       held (flock) by the agent as long as it lives
 *   node-<k>/src/       the unpacked source, working directory of the command
 *   node-<k>/output/, checkpoints/ …  what the command writes
 *   node-<k>/scratch/   the same in precompile; removed when the command is over
 * and beneath the run's prefix (`runs/<run>/`):
 *   claim/<phase>       who may run the command of this phase (CLAIM_*)
 *
 * Both sides are written by this project, but an agent may be older than the
 * driver that reads its report: members are only ever added; unknown ones are
 * ignored; `v` changes only if old readers must refuse.
 *
 * order.json (0600), in the folder beside which the agent makes node-<k>:
 *   {"v":1, "run", "phase", "attempt", "job", "nonce", "nodes":1,
 *    "workspace": URL, "prefix": "runs/…/", "run_prefix": "runs/<id>/",
 *    "source": key of the bundle, or absent,
 *    "links": [[name, absolute target]…],
 *    "command": [argv…], "env": {name: value…}   (no secret values),
 *    "secrets": [names of variables that the agent's own environment holds],
 *    "compile": {"kind", "cache": directory},
 *    "scratch": true in precompile (checkpoints and outputs are thrown away),
 *    "checkpoint_dir", "output_dir": absolute; absent: node-<k>/checkpoints and
 *             node-<k>/output (meaningless with "scratch"),
 *    "resume_from", "resume_step", "init_from", "data_manifest" (absent: none),
 *    "cores": of an accelerator on each node; absent: the CPUs of the agent,
 *    "master_addr": where node 0 is reached; absent: 127.0.0.1,
 *    "grace_ms": between SIGTERM and SIGKILL (default 30000),
 *    "heartbeat_ms": between two looks at the claim (default 2000),
 *    "claim_wait_ms": how long other nodes wait for it (default 600000)}
 *   Strings of "command" and values of "env" may hold ${STOKER_NAME} and
 *   ${STOKER_NAME:-text}, which the agent expands.
 *
 * The agent's own environment, from the engine: PATH, HOME, USER, LANG, TMPDIR
 * and the secrets for the command; ORDER_TOKEN, a value of this one submission,
 * which every process of the job then carries and by which leftovers are found;
 * ORDER_RESTART, how often the engine has started this job again (absent: 0).
 *
 * report.json (0600, replaced as a whole at each change):
 *   {"v":1, "run", "phase", "attempt", "node", "job", "nonce", "token",
 *    "state": "starting|running|ended|not_mine|failed",
 *    "agent": {"pid","start","boot"}, "command": {"pid","start","boot"},
 *    "host", "claimed": utc ms, "started": utc ms, "ended": utc ms,
 *    "master": "addr:port", "src", "checkpoint_dir", "output_dir": absolute,
 *    "exit": as a shell gives it, "signal": n or absent,
 *    "stopped": why the agent stopped the command, one of STOPPED_*; absent:
 *             it ended by itself,
 *    "leftovers": processes of the command that outlived it and were killed,
 *    "log_lost": true when output could not be passed on any more,
 *    "error": {"message","hint","class"}: the agent's own failure, e.g. the
 *             command does not exist (state "ended", exit 127)}
 *   The last three states are final. "ended": the command was started and is
 *   over, with all of its processes, or could not be executed (126, 127).
 *   "failed": the agent could not do its part; "exit" is then
 *   AGENT_EXIT_FAILED. "not_mine": AGENT_EXIT_NOT_MINE; the command did not run
 *   or was stopped because the claim passed on.
 *
 * failed.json: {"v":1, "node", "exit", "at": utc ms}, written only if absent.
 *   The agents of the other nodes then stop their commands.
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

#define ORDER_FILE  "order.json"
#define REPORT_FILE "report.json"
#define ENGINE_FILE "engine.json"
#define FAILED_FILE "failed.json"
#define LOG_FILE    "log"
#define LOCK_FILE   "lock"
#define CLAIM_DIR   "claim/"
#define ORDER_MAX   ((size_t)8 << 20) /* bytes */
#define REPORT_MAX  ((size_t)1 << 20)
#define CLAIM_MAX   ((size_t)64 << 10)

/* Variables of the agent's own environment. The token passes on to the command
 * and all its processes. */
#define ORDER_TOKEN   "STOKER_TOKEN"
#define ORDER_RESTART "STOKER_RESTART"

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

/* Values of "stopped" in a report. */
#define STOPPED_SIGNAL     "signal"     /* the agent was told to (SIGTERM, SIGINT) */
#define STOPPED_SUPERSEDED "superseded" /* another attempt holds the claim now */
#define STOPPED_PEER       "peer"       /* another node of the attempt failed */
#define STOPPED_LOG        "log"        /* its output could not be kept (disk full) */

#define AGENT_EXIT_FAILED   70 /* the agent's own failure, see "error" */
#define AGENT_EXIT_NOT_MINE 86 /* another attempt holds the claim: no failure */
#define AGENT_EXIT_SICK     87 /* this node is sick */
#define AGENT_EXIT_NO_EXEC  126
#define AGENT_EXIT_NO_FILE  127

/* Where "grace_ms" and the like are absent. */
#define ORDER_GRACE_MS      30000
#define ORDER_HEARTBEAT_MS  2000
#define ORDER_CLAIM_WAIT_MS 600000

#endif
