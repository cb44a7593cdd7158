/*
 * Checkpoints that no attempt will resume from: the checkpointer reports each when it is passed
 * over, not when the training has to begin again. Each is reported once, and once more if it is
 * saved again and is still unusable.
 */
#ifndef STK_NODE_CHECKPOINTS_PASSED_H
#define STK_NODE_CHECKPOINTS_PASSED_H

#include "jobs/base/text/js.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/checkpoints/checkpoint_coordinator.h"
#include "jobs/node/setup/agent_config.h"

/* News (news.h): kind "passed", also a member of the report: {"name", "path", "why", "hint", "step"
 * (absent: none is known), "at": utc ms}; kind "partial": {"name", "why"}. */
struct passed {
	const struct agent_config *config;
	const char *source; /* folder that checkpoints are saved to */
	const struct ckpt_kind *kind;
	int64_t unchanged_ms; /* how long a checkpoint may stand still unfinished */
	int news_fd;
	json_t *told; /* owned: name → {"tag", "times"} */
	int count;    /* number of reports */
	int64_t at;   /* utc ms of the newest report; each has its own */
};

void passed_release(struct passed *passed); /* for AUTO() */

/* To be called after a look of the watch: reports incomplete checkpoints, and names that are not
 * those of a checkpoint. */
void passed_report(struct passed *passed, struct ckpt_watch *watch);
/* Does the same on node 0 of several that have no folder in common. */
void passed_report_coordinated(struct passed *passed,
			       const struct checkpoint_coordinator *coordinator);
/* Called for a marked checkpoint: reports it if the next attempt would not choose its step. */
void passed_marked(struct passed *passed, int64_t step, const char *url);
/* Reports a complete checkpoint that cannot be copied or marked: `why`. */
void passed_stuck(struct passed *passed, const struct ckpt *ckpt, const char *why);

/* Returns a new object {name: why} of settled checkpoints that are not whole, so that no other node
 * believes this one to have no part. */
json_t *passed_bad(struct ckpt_watch *watch);
/* Reports, after the last pass, what is not whole, or (`shards` may be NULL) not marked. If the
 * command was not `cut` off, no process writes any more, and all of it is passed over. */
void passed_at_end(struct passed *passed, struct ckpt_watch *watch,
		   const struct checkpoint_coordinator *coordinator, bool cut);

#endif
