/*
 * How an attempt goes by what its agents have brought to the workspace, for engines whose
 * machines cannot be looked into. An engine's own word comes first: whether it has ended is the
 * engine's to say, and these say how.
 */
#ifndef STK_ENGINE_REPORTS_H
#define STK_ENGINE_REPORTS_H

#include "jobs/engine/engine.h"
#include "jobs/engine/far.h"

/* The report of a node as the store had it a moment ago: 1 and a new reference, 0 there is
 * none, -1. */
int reports_get(struct far *far, const char *prefix, int node, json_t **ret, struct err **err);

/* What all of them say together. */
struct reports {
	int there, final;   /* how many nodes have one, and how many that is the last */
	bool running;       /* a command is at work */
	struct utc started; /* of the first command; ms 0: none yet */
	/* Whose end is the attempt's, if it is over: the first command to fail by itself, else
	 * whichever failed, else node 0 of those that all ended well; -1: no report tells. */
	int node;
	int exit;         /* of that one, as a shell gives it */
	char reason[256]; /* its agent's own words, may be empty */
	/* Node 0's command ended well and by itself, and so did all others whose agents told their
	 * ends. */
	bool well;
};
/* Asks for each node's report, which costs a request each now and then (far.h). */
int reports_look(struct far *far, const char *prefix, int nodes, struct reports *ret,
		 struct err **err);

#endif
