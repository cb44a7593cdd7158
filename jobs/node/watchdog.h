/*
 * Watches whether the command makes progress, and for how long it may run: gathers signs of life of
 * this node and, on node 0, of the others, and stops the command when the judge (stall.h) says so.
 *
 * Only node 0 judges: of many ranks often a single one prints, and it may be any of them. The other
 * nodes write progress.json now and then (order.h). When the command of node 0 has ended well, no
 * judge is left: each of the others then judges itself, by all that it prints and saves, so that a
 * command that hangs on its way out holds no machines.
 */
#ifndef STK_NODE_WATCHDOG_H
#define STK_NODE_WATCHDOG_H

#include "jobs/base/err.h"
#include "jobs/base/stall.h"
#include "jobs/cache/kinds/output_scan.h"

struct agent;

struct watchdog {
	struct stall stall;
	struct output_scan listen;
	struct step_rate_meter *meter;
	int64_t paced;               /* newest step in PACE_FILE */
	struct mono begun;           /* start of the command, later by all time without looks */
	struct mono checked;         /* last look */
	struct watchdog_peer *peers; /* node 0: last progress of each, by rank */
	struct mono told_at;         /* other nodes: last time they published theirs */
	uint64_t told;               /* other nodes: bytes of output then */
	bool alone;                  /* other nodes: node 0 has ended well */
	/* Looks at the compile cache, when this silence was half over and at its end. */
	struct mono cache_for; /* .last of the silence they belong to */
	int asked;             /* how many are ordered */
	struct mono asked_at;  /* when the last one was */
	bool heard[2];         /* which of them are answered */
	int64_t sums[2];
	struct mono told_for; /* .last of the silence in the report; ms 0: none */
	int64_t told_limit;   /* limit in the report */
};

/* Called before the command starts. An order that makes no sense is an error. */
int watchdog_init(struct agent *agent, struct err **err);
/* Watches from now on, until the command is over. Called from the loop. */
void watchdog_start(struct agent *agent);
/* Called on a node other than 0 when node 0 has ended well. A repeated call changes nothing. */
void watchdog_alone(struct agent *agent);
/* Node 0 hears the progress of another. */
void watchdog_hear(struct agent *agent, int node, const char *text);
/* The compile cache is added up, as was ordered with uploader_sum(). */
void watchdog_sum(struct agent *agent, int64_t what, int64_t sum);
/* Takes output of the command. */
void watchdog_pass(struct agent *agent, const char *bytes, size_t len);
/* Puts the steps seen into the report. */
void watchdog_report(struct agent *agent);
void watchdog_release(struct watchdog *watchdog);

#endif
