/*
 * Check-up of a node before the command of a training starts: is it fit, alone and together with
 * the others? A helper (helper.h) does it, so that the agent hears signals meanwhile; it starts
 * only programs of the image, each with a time limit.
 *
 *   disk, memory, clock (the only ones before a precompile)
 *   devices        as many as the order says, none of them in use   neuron-ls -j; nvidia-smi
 *   counters       errors that were not corrected; corrected ones count nothing   sysfs; nvidia-smi
 *   repairs        of GPUs: pages or rows of memory that wait to be taken out of use   nvidia-smi
 *   xid            of GPUs: what the kernel says of broken ones     dmesg
 *   tensor         an operation with a known answer on each core or GPU   the command's Python
 *   collectives    on the cores or GPUs of this node   nccom-test; nccl-tests, else our program
 * and then, over the workspace (health_peers.c), with all nodes:
 *   comparison     the nodes' figures with each other's median and a stored baseline
 *   across         an all-reduce over all nodes: nccom-test over mpirun and ssh where there
 *                  are such, else a small program over torchrun; if it fails the nodes are
 *                  halved until it is known which one it is
 *
 * A figure below 0.7 of its reference is slow. A node is sick if it is slower than the median of
 * three nodes or more, or slower than the baseline while the other node is not. If all nodes are
 * slower than the baseline, or the figure across them is, no single node is to blame: that is a
 * warning. A node that is alone is sick then, as nobody can tell the difference. Slow figures stay
 * out of the baseline, but the third in a row takes its place (and is a warning also for a node
 * that is alone), so that a new driver or compiler does not make every run refused for ever.
 *
 * If all of several nodes fail the same test of a tensor or of collectives, or each fails the test
 * between the nodes alone, none of them is sick: the image is to blame, or something else they
 * share.
 *
 * A check that is not possible, because the image has no tool for it or the tool does not begin, is
 * reported ("unchecked") and is not a failure. Node 0 gathers, and no node starts before its
 * verdict.
 *
 * The kernel shows Neuron devices beneath /sys/devices/virtual/neuron_device; a variable
 * NEURON_SYSFS_ROOT of the order's env names another folder.
 *
 * node/health: the check-up before the command: devices, collectives over NCCOM, a tensor program,
 * compared with other nodes and with earlier figures. Its result is a report; the driver decides
 * what follows.
 */
#ifndef STK_NODE_HEALTH_HEALTH_H
#define STK_NODE_HEALTH_HEALTH_H

#include <stdbool.h>

#include "jobs/base/process/loop.h"
#include "jobs/base/text/js.h"
#include "jobs/node/claim.h"
#include "jobs/node/helper.h"
#include "jobs/node/news.h"
#include "jobs/node/setup/agent_config.h"

/* Object of the attempt; order.h describes its content. */
#define HEALTH_FILE "health.json"

/* True if the order asks for a check-up. */
bool health_needed(const struct agent_config *config);
/* Returns the longest time of a check-up from its beginning, waits for other nodes included. */
int64_t health_longest_ms(const struct agent_config *config);

/* Does the whole check-up, in the helper. `fn` is called once with the result, as soon as it is
 * known: {"outcome": HEALTH_*, "report": the report's member "health", "message", "hint": of a node
 * that is not healthy} After that the other nodes are told, and a sick node may speak first. */
typedef void (*health_fn)(void *arg, const json_t *said);
void health_work(const struct agent_config *config, const struct claim *claim, health_fn fn,
		 void *arg);

#define HEALTH_HEALTHY "healthy"
#define HEALTH_SICK    "sick"    /* the check-up found this node sick */
#define HEALTH_OTHER   "other"   /* another node is sick, or has failed */
#define HEALTH_FAILING "failing" /* no single node is to blame */

struct agent;

/* Check-up that is under way; { 0 }: none. */
struct health {
	struct helper helper;
	struct news news;
	json_t *said; /* owned: the helper's result; NULL: none yet */
	struct watch *timer;
	void (*next)(void *agent);
};

/* Starts the check-up. If it ends well, or none is needed, `next` runs from the loop; else the
 * agent is finished. */
void health_start(struct agent *agent, void (*next)(void *agent));
/* Ends the check-up and everything that it has started, at once. Fine if none is under way. */
void health_stop(struct agent *agent);

#endif
