/*
 * State of an attempt by the reports that its agents uploaded to the workspace, for engines that
 * cannot inspect their machines. The engine's word comes first: the engine says if the attempt has
 * ended, the reports say how.
 */
#ifndef STK_ENGINE_REPORTS_H
#define STK_ENGINE_REPORTS_H

#include "jobs/engine/engine.h"
#include "jobs/engine/workspace_cache.h"

/* Reads the report of a node as the store had it a moment ago: 1, 0 absent, -1. `ret` is all zeros
 * at first; the caller releases it. */
int reports_get(struct workspace_cache *cache, const char *prefix, int node,
		struct node_report *ret, struct err **err);
/* Returns another object beside the report: 1 and a new reference, 0 absent, -1. */
int reports_beside(struct workspace_cache *cache, const char *prefix, int node, const char *file,
		   json_t **ret, struct err **err);

/* True if the node ended and failed. A command that ends while it is drained did as asked. */
bool reports_failed(const struct node_report *report);
/* True if the node failed by itself, and not because it was told to stop. */
bool reports_is_root(const struct node_report *report);

/* Combined state of all reports. */
struct reports {
	int there, final;   /* number of nodes with a report, and with a final one */
	bool running;       /* a command is running on some node */
	struct utc started; /* start of the first command; ms 0: none yet */
	/* Node that decides the attempt's end, if it is over: the first command to fail by itself,
	 * else any that failed, else node 0 if all ended well; -1: not known from the reports. */
	int node;
	int exit;         /* exit status of that node, as a shell gives it */
	char reason[256]; /* message of that node's agent, may be empty */
	/* Node 0's command ended well and by itself, and so did every other command with a reported
	 * end. */
	bool well;
};
/* Reads each node's report, which costs a request each now and then (workspace_cache.h). */
int reports_read(struct workspace_cache *cache, const char *prefix, int nodes, struct reports *ret,
		 struct err **err);

#endif
