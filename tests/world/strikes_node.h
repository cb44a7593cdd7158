/*
 * Shared by the strikes on a node (strikes_node_test.c, strikes_node_end.c): the order of the run
 * before, its workspace, and a helper of the agent that is given orders and says news. Functions
 * return -1 with an error, and may be struck.
 */
#ifndef STK_TESTS_WORLD_STRIKES_NODE_H
#define STK_TESTS_WORLD_STRIKES_NODE_H

#include <stddef.h>

#include "jobs/base/text/js.h"
#include "jobs/node/claim.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"
#include "tests/world/play.h"

#define STRIKES_NODE_BUCKET   "s3://bucket/work"
#define STRIKES_NODE_TEXT_MAX ((size_t)1 << 20) /* the most that lies there */

/* The order of the run's training, read as the next start of node 0. */
int strikes_node_load(const char *run, struct agent_config *config, struct err **err);
/* As the next start of the job, which takes the claim from the one before. */
int strikes_node_claim(struct agent_config *config, struct claim *ret, struct store *store,
		       struct err **err);
int strikes_node_refuse(struct err **err, const char *words);
/* Checks that the object is in the workspace, with this text; NULL: with any. A defect if not. */
int strikes_node_expect(const char *key, const char *wanted, struct err **err);

/* Has a helper of the agent carry out these orders; its exit status, or -1. `ret_news`: the reading
 * end of its news, to be closed; -1: none. */
int strikes_node_obey(int (*work)(const struct agent_config *config, const struct claim *claim,
				  int news_fd, int orders_fd),
		      const struct agent_config *config, const struct claim *claim,
		      const char *given, int *ret_news, struct err **err);
/* The last line of this kind that a helper has said, NULL: there is none. Closes the pipe. */
json_t *strikes_node_said(int news_fd, const char *kind);

/* Actions of strikes_node_end.c: each is prepared, struck, and looked at afterwards. */
void strikes_node_put_made(struct schedule *places);
int strikes_node_bring_made(const char *run, struct err **err);
int strikes_node_check_brought(const char *run, struct err **err);
void strikes_node_put_report(struct schedule *places);
int strikes_node_upload(const char *run, struct err **err);
int strikes_node_check_uploaded(const char *run, struct err **err);

#endif
