/* Names of the bins, and the evidence for time in each: see ledger.h. */
#include "jobs/flow/ledger.h"

#include "jobs/flow/internal.h"

const struct ledger_row ledger_rows[BIN_COUNT] = {
	[BIN_QUEUE] = { "queue", "attempt.intended to attempt.claimed; cache.waiting to "
				 "cache.claimed or cache.checked" },
	[BIN_PROVISION] = { "provision", "the engine's word before attempt.claimed" },
	[BIN_PULL] = { "pull", "the engine's word of its machines to attempt.claimed" },
	[BIN_SETUP] = { "setup", "attempt.claimed to the first step of a fresh training, "
				 "or to attempt.started" },
	[BIN_HEALTH] = { "health", "since and finished of health.checked" },
	[BIN_PRECOMPILE] = { "precompile", "attempt.started to attempt.ended of precompile" },
	[BIN_VERIFY] = { "verify", "before cache.checked; attempt.ended to cache.verified" },
	[BIN_RESTORE] = { "restore", "before checkpoint.chosen; attempt.started to the first "
				     "step of a resumed training" },
	[BIN_STEPS] = { "steps",
			"train.progress with a larger step, train.stretch; a training that "
			"ended well" },
	[BIN_JIT] = { "jit", "the seconds of jit.compiled" },
	[BIN_CHECKPOINT] = { "checkpoint", "the seconds of checkpoint.complete, as far as they "
					   "slowed the steps; a request or limit.reached "
					   "to attempt.ended of a training" },
	[BIN_REPLAYED] = { "replayed",
			   "train.progress of steps that an attempt before had reached" },
	[BIN_HANG] = { "hang", "the hang of attempt.ended" },
	[BIN_BACKOFF] = { "backoff", "attempt.ended to attempt.intended" },
	[BIN_EVALUATE] = { "evaluate", "attempt.started to attempt.ended of evaluate" },
	[BIN_INFER] = { "infer", "attempt.started to attempt.ended of infer" },
	[BIN_IDLE] = { "idle", "driver.left, or the newest event, to driver.took_over, while no "
			       "attempt was under way" },
	[BIN_UNKNOWN] = { "unknown",
			  "nothing tells: no driver looked, or the engine did not show it" },
};

bool ledger_is_stale(const struct ledger *l, const struct event *ev)
{
	switch (ev->kind) {
	case EV_ATTEMPT_MISSING:
	case EV_ATTEMPT_CLAIMED:
	case EV_HEALTH_CHECKED:
	case EV_ATTEMPT_STARTED:
	case EV_ATTEMPT_LOST:
	case EV_ATTEMPT_FOUND:
	case EV_ATTEMPT_ENDED:
		return ev->phase != l->phase || ev->attempt != l->attempt;
	case EV_TRAIN_STRETCH:
	case EV_TRAIN_PROGRESS:
	case EV_JIT_COMPILED:
	case EV_JIT_EXCEEDED:
	case EV_CHECKPOINT_COMPLETE:
		return l->phase != PHASE_TRAIN || ev->attempt != l->attempt;
	case EV_RETRY_SCHEDULED:
		return ev->phase != l->phase;
	default:
		return false;
	}
}
