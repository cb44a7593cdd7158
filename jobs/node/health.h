/*
 * The check-up of a node before the command of a training starts: is it fit, alone and
 * together with the others? Done by a helper (helper.h), so that the agent hears signals
 * meanwhile; all that it starts are programs of the image, each with an end.
 *
 *   disk, memory, clock (the only ones before a precompile)
 *   devices        as many as the order says, none of them in use   neuron-ls -j
 *   counters       errors that were not corrected; corrected ones count nothing   sysfs
 *   tensor         an operation with a known answer on each core    the command's Python
 *   collectives    on the cores of this node                        nccom-test
 * and then, over the workspace (health_peers.c), with all nodes:
 *   comparison     the nodes' figures with each other's median and a stored baseline
 *   across         an all-reduce over all nodes: nccom-test over mpirun and ssh where there
 *                  are such, else a small program over torchrun; if it fails the nodes are
 *                  halved until it is known which one it is
 *
 * A figure below 0.7 of what it is held against is slow. Slower than the median of three nodes
 * or more, or than the baseline where the other node is not, a node is sick. Where all of them
 * are slower than the baseline, or what is measured across is, no single node is to blame: that
 * is a warning. A node that is alone is sick then, as nobody can tell the difference. Slow
 * figures stay out of the baseline, but the third in a row takes its place (and is a warning
 * also of a node that is alone), so that a new driver or compiler refuses no run for ever.
 *
 * Where all of several nodes fail the same test of a tensor or of collectives, or each fails that
 * between the nodes alone, none of them is sick: that is the image, or what else they share.
 *
 * What cannot be looked at, because the image has no tool for it or one that does not begin, is
 * said ("unchecked") and is no failure. Node 0 gathers, and no node starts before its verdict.
 *
 * The kernel shows Neuron devices beneath /sys/devices/virtual/neuron_device; a variable
 * NEURON_SYSFS_ROOT of the order's env names another folder.
 */
#ifndef STK_NODE_HEALTH_H
#define STK_NODE_HEALTH_H

#include <stdbool.h>

#include "jobs/base/json.h"
#include "jobs/base/loop.h"
#include "jobs/base/sb.h"
#include "jobs/node/claim.h"
#include "jobs/node/helper.h"
#include "jobs/node/task.h"

/* Objects of the attempt; order.h tells what is in them. */
#define HEALTH_FILE "health.json"

/* Does the order ask for one? */
bool health_needed(const struct task *task);
/* The longest that it may take from its beginning, waits for other nodes included. */
int64_t health_longest_ms(const struct task *task);

/* In the helper: all of it. `fn` is told once how it went, as soon as that is known:
 *   {"outcome": HEALTH_*, "report": the report's member "health",
 *    "message", "hint": of one that is not healthy}
 * After that the other nodes are told, and the one that is sick may speak first. */
typedef void (*health_fn)(void *arg, const json_t *said);
void health_work(const struct task *task, const struct claim *claim, health_fn fn, void *arg);

#define HEALTH_HEALTHY "healthy"
#define HEALTH_SICK    "sick"    /* this node is */
#define HEALTH_OTHER   "other"   /* another node is, or has failed */
#define HEALTH_FAILING "failing" /* it is no single node's doing */

struct agent;

/* One that is under way, or none ({ 0 }). */
struct health {
	struct helper helper;
	struct watch *watch, *timer, *beat;
	struct sb text;
	void (*next)(void *agent);
};

/* Begin it; on its end, or where there is none to do, `next` runs from the loop if all is
 * well; else the agent is finished. */
void health_start(struct agent *agent, void (*next)(void *agent));
/* End it and all that it has started, at once. Nothing is fine. */
void health_stop(struct agent *agent);

#endif
