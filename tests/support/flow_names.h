/* The names of the flow's states, for what tests and the simulator say of them. */
#ifndef STK_TESTS_SUPPORT_FLOW_NAMES_H
#define STK_TESTS_SUPPORT_FLOW_NAMES_H

#include "jobs/flow/flow.h"

static const char *const flow_state_names[FLOW_STATE_COUNT] = {
	"new", "planned", "precompile", "verify", "train", "ending", "ended",
};
static const char *const attempt_state_names[ATTEMPT_STATE_COUNT] = {
	"none", "intended", "uncertain", "submitted", "running", "lost", "failed", "backoff",
};

#endif
