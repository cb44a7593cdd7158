/* The names of the flow's states and effects, for what tests and simulators say of them. */
#ifndef STK_TESTS_SUPPORT_FLOW_NAMES_H
#define STK_TESTS_SUPPORT_FLOW_NAMES_H

#include "jobs/flow/flow.h"

static const char *const flow_state_names[FLOW_STATE_COUNT] = {
	"new",  "planned", "precompile", "verify", "train", "evaluate",
	"gate", "infer",   "promote",    "ending", "ended", "paused",
};
static const char *const attempt_state_names[ATTEMPT_STATE_COUNT] = {
	"none", "intended", "uncertain", "submitted", "running", "lost", "failed", "backoff",
};
static const char *const effect_kind_names[EFFECT_KIND_COUNT] = {
	[EFFECT_RECORD] = "record",
	[EFFECT_CHECK_CACHE] = "check cache",
	[EFFECT_CLAIM_KEY] = "claim the graph key",
	[EFFECT_FIND] = "find",
	[EFFECT_SUBMIT] = "submit",
	[EFFECT_WATCH] = "watch",
	[EFFECT_CHOOSE_CHECKPOINT] = "choose a checkpoint",
	[EFFECT_CHOOSE_CANDIDATE] = "choose the candidate",
	[EFFECT_JUDGE] = "judge",
	[EFFECT_PROMOTE] = "promote",
	[EFFECT_DRAIN] = "drain",
	[EFFECT_STOP] = "stop",
	[EFFECT_LEAVE] = "leave",
	[EFFECT_VERIFY] = "verify",
	[EFFECT_WAIT] = "wait",
	[EFFECT_DONE] = "done",
	[EFFECT_SETTLE] = "settle what a damaged journal has lost",
};

/* Attempt states mean something only in these. */
static inline bool state_has_attempts(int state)
{
	return state == FLOW_PRECOMPILE || state == FLOW_TRAIN || state == FLOW_EVALUATE ||
	       state == FLOW_INFER;
}

#endif
