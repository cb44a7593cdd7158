/*
 * Watches whether the command gets on, and for how long it may: gathers signs of life of this node
 * and, on node 0, of the others, and stops the command when the judge (stall.h) says so.
 *
 * Only node 0 judges: of many ranks often a single one prints, and it may be any
 * of them. The others write progress.json now and then (order.h). When the command of node 0
 * has ended well there is nobody left to wait for: each of the others judges itself then, by
 * all that it prints and saves, so that one that hangs on its way out holds no machines.
 */
#ifndef STK_NODE_WATCHDOG_H
#define STK_NODE_WATCHDOG_H

#include "jobs/base/err.h"
#include "jobs/base/stall.h"
#include "jobs/cache/listen.h"

struct agent;

struct watchdog {
	struct stall stall;
	struct listen listen;
	struct mono begun;    /* the command */
	struct peer *peers;   /* node 0: what was heard of each; by rank */
	struct mono peers_at; /* last exchange */
	uint64_t told;        /* other nodes: bytes of output when we last told */
	bool alone;           /* the same: node 0 has ended well */
	/* A look at the compile cache, taken when this silence was half over. */
	struct mono cache_for; /* .last of the silence it belongs to */
	uint64_t cache_sum;
};

/* Before the command starts. An order that makes no sense is an error. */
int watchdog_init(struct agent *agent, struct err **err);
/* From now on, until the command is over. Called from the loop. */
void watchdog_start(struct agent *agent);
/* Another node than 0: that one has ended well. Said again it changes nothing. */
void watchdog_alone(struct agent *agent);
/* Output of the command. */
void watchdog_pass(struct agent *agent, const char *bytes, size_t len);
/* The steps seen, into the report. */
void watchdog_report(struct agent *agent);
void watchdog_release(struct watchdog *watchdog);

#endif
