/*
 * Which compiler the command will run with here, asked before it begins: the graphs in
 * the cache are those of the compiler that the lock names, and with another one a
 * training would compile them all again, with every machine waiting.
 */
#ifndef STK_NODE_COMPILER_H
#define STK_NODE_COMPILER_H

#include "jobs/base/json.h"
#include "jobs/node/envlist.h"
#include "jobs/node/task.h"

/* Puts "compiler" into the report `body`: what was found, and how that compares with the
 * order's. -1: it is another one, and the command must not begin; the words name both.
 * Where the environment cannot tell, that is said in the report, and 0. */
int compiler_look(const struct task *task, const struct envlist *env, json_t *body,
		  struct err **err);

#endif
