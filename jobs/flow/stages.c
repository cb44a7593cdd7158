/*
 * The order of the phases, and the states in which they are worked on. The table in step.c says how
 * a run gets from one to the next.
 */
#include "jobs/flow/flow.h"
#include "jobs/flow/internal.h"

/* The stages in the order of the run, which is that of the states. */
static const struct {
	enum flow_state state;
	enum phase phase;
} in_order[] = {
	{ FLOW_PRECOMPILE, PHASE_PRECOMPILE },
	{ FLOW_VERIFY, PHASE_VERIFY },
	{ FLOW_TRAIN, PHASE_TRAIN },
	{ FLOW_EVALUATE, PHASE_EVALUATE },
	{ FLOW_GATE, PHASE_GATE },
	{ FLOW_INFER, PHASE_INFER },
	{ FLOW_PROMOTE, PHASE_PROMOTE },
};

#define ORDER_COUNT ((int)(sizeof in_order / sizeof in_order[0]))

enum phase flow_phase_of_state(enum flow_state state)
{
	for (int i = 0; i < ORDER_COUNT; i++)
		if (in_order[i].state == state)
			return in_order[i].phase;
	return PHASE_COUNT;
}

enum flow_state flow_state_of_phase(enum phase phase)
{
	for (int i = 0; i < ORDER_COUNT; i++)
		if (in_order[i].phase == phase)
			return in_order[i].state;
	return FLOW_STATE_COUNT;
}

bool flow_has_attempts(const struct flow *flow)
{
	enum phase phase = flow_phase_of_state(flow->state);

	return phase != PHASE_COUNT && flow_phases[phase].has_jobs;
}

enum phase flow_phase_now(const struct flow *flow)
{
	enum phase phase = flow_phase_of_state(flow->state);

	return phase == PHASE_COUNT ? flow->phase : phase;
}

enum flow_state flow_next_state(const struct flow *flow)
{
	for (int i = 0; i < ORDER_COUNT; i++)
		if (in_order[i].state > flow->state &&
		    flow->policy.stages[in_order[i].phase].is_asked)
			return in_order[i].state;
	return FLOW_ENDING;
}

bool flow_is_past(const struct flow *flow, enum phase phase)
{
	enum flow_state state = flow->state == FLOW_PAUSED ? flow->paused : flow->state;

	/* The cache of a later stage comes just before that stage. */
	if (state < FLOW_TRAIN && flow->stage != PHASE_TRAIN)
		state = flow_state_of_phase(flow->stage);
	return flow->attempt_state == ATTEMPT_NONE && state > flow_state_of_phase(phase) &&
	       state < FLOW_ENDING;
}
