/* Initialisation of a flow, and the small tools that its files share: see flow.h and internal.h. */
#include "jobs/flow/flow.h"

#include <stdio.h>
#include <string.h>

#include "jobs/flow/internal.h"

void flow_init(struct flow *flow, const struct flow_policy *policy)
{
	/* Padding is cleared too: two flows with the same history are the same bytes. */
	memset(flow, 0, sizeof *flow);
	flow->policy = *policy;
	flow->policy.run[FLOW_ID_MAX - 1] = '\0';
	flow->cache = CACHE_NONE;
	flow->checkpoint_step = -1;
	flow->below = INT64_MAX;
	flow->candidate_step = flow->pause_after = -1;
	flow->stage = flow->tasks_of = PHASE_TRAIN;
}

bool flow_needs_cache(const struct flow_policy *policy, enum phase phase)
{
	return phase == PHASE_TRAIN ? policy->compiles : policy->stages[phase].compiles;
}

enum phase flow_served(const struct flow *flow, enum phase phase)
{
	return flow_phases[phase].is_trial ? flow->stage : phase;
}

int flow_nodes(const struct flow_policy *policy, enum phase phase)
{
	return policy->stages[phase].is_asked ? policy->stages[phase].nodes : policy->nodes;
}

double flow_price_per_ms(const struct flow_policy *policy, enum phase phase)
{
	return policy->stages[phase].is_asked ? policy->stages[phase].price_per_ms
					      : policy->price_per_ms;
}

bool flow_task_is_done(const struct flow *flow, int64_t index)
{
	return index >= 0 && index < FLOW_TASKS_MAX &&
	       (flow->tasks[index / 64] >> (index % 64) & 1) != 0;
}

void flow_copy(char *to, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size) {
		len = size - 1;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	memmove(to, text, len);
	to[len] = '\0';
}

bool flow_copy_whole(char *to, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		return false;
	memmove(to, text, len + 1);
	return true;
}

void flow_key_nonce(const struct flow *flow, char ret_nonce[FLOW_ID_MAX])
{
	/* No attempt has the number 0. */
	flow_nonce(flow, PHASE_PRECOMPILE, 0, ret_nonce);
}

bool flow_keeps_key(const struct flow *flow)
{
	return flow->state == FLOW_PRECOMPILE || flow->state == FLOW_VERIFY;
}

/* splitmix64 (Steele, Lea, Flood 2014): every input bit moves every output bit. */
static uint64_t mix64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t flow_mix(int64_t seed, uint64_t a, uint64_t b)
{
	return mix64(mix64(mix64((uint64_t)seed) ^ a) ^ b);
}

void flow_job_name(const struct flow *flow, enum phase phase, int64_t attempt,
		   char ret_name[FLOW_ID_MAX])
{
	int len = snprintf(ret_name, FLOW_ID_MAX, "stk-%s-%s-%lld", flow->policy.run,
			   flow_phase_names[phase], (long long)attempt);

	/* Run ids are at most 40 characters, so this always fits. */
	if (len >= FLOW_ID_MAX)
		ret_name[0] = '\0';
}

void flow_nonce(const struct flow *flow, enum phase phase, int64_t attempt,
		char ret_nonce[FLOW_ID_MAX])
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	uint64_t bits[2];

	for (unsigned half = 0; half < 2; half++)
		bits[half] = flow_mix(flow->seed, (uint64_t)phase * 2 + half, (uint64_t)attempt);
	/* 128 bits are 25 digits of 5 bits and one of 3. */
	for (int i = 0; i < 26; i++) {
		ret_nonce[i] = digits[bits[1] & 31];
		bits[1] = bits[1] >> 5 | bits[0] << 59;
		bits[0] >>= 5;
	}
	ret_nonce[26] = '\0';
}
