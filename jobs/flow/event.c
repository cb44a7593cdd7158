/* The tables behind events: see event.h and events.def. */
#include "jobs/flow/event.h"

#include <string.h>

const char *const flow_phase_names[PHASE_COUNT] = { "precompile", "verify", "train",  "evaluate",
						    "gate",       "infer",  "promote" };
const char *const flow_class_names[CLASS_COUNT] = {
	"none",      "transient-infra", "capacity",         "spot", "hardware-node", "comm",
	"user-code", "user-config",     "quota-permission", "data", "compile",       "timeout-hang",
	"stopped",   "unknown",
};
const char *const flow_action_names[ACTION_COUNT] = { "retry", "wait", "exclude", "fall_back",
						      "stop" };
const char *const flow_cache_state_names[CACHE_STATE_COUNT] = { "warm", "cold", "none", "unknown" };
const char *const flow_outcome_names[OUTCOME_COUNT] = { "succeeded", "failed", "refused",
							"stopped" };
const char *const flow_limit_names[LIMIT_COUNT] = { "none",  "deadline", "cost",
						    "queue", "start",    "unreachable" };
static const char *const continuity_names[CONTINUITY_COUNT] = { "verified", "unverified",
								"failed" };
const char *const flow_jit_action_names[JIT_ACTION_COUNT] = { "warn", "stop", "recompile" };

#define NAMES_INT         EVT_INT, NULL, 0
#define NAMES_REAL        EVT_REAL, NULL, 0
#define NAMES_BOOL        EVT_BOOL, NULL, 0
#define NAMES_STR         EVT_STR, NULL, 0
#define NAMES_JSON        EVT_JSON, NULL, 0
#define NAMES_INSTANT     EVT_INSTANT, NULL, 0
#define NAMES_DURATION    EVT_DURATION, NULL, 0
#define NAMES_PHASE       EVT_ENUM, flow_phase_names, PHASE_COUNT
#define NAMES_CLASS       EVT_ENUM, flow_class_names, CLASS_COUNT
#define NAMES_ACTION      EVT_ENUM, flow_action_names, ACTION_COUNT
#define NAMES_CACHE_STATE EVT_ENUM, flow_cache_state_names, CACHE_STATE_COUNT
#define NAMES_OUTCOME     EVT_ENUM, flow_outcome_names, OUTCOME_COUNT
#define NAMES_LIMIT       EVT_ENUM, flow_limit_names, LIMIT_COUNT
#define NAMES_CONTINUITY  EVT_ENUM, continuity_names, CONTINUITY_COUNT
#define NAMES_JIT_ACTION  EVT_ENUM, flow_jit_action_names, JIT_ACTION_COUNT

#define EXPAND(macro, ...) macro(__VA_ARGS__)

const struct event_field_row event_fields[EVF_COUNT] = {
#define ROW(id, u, m, t, n, c)                                                                     \
	[EVF_##id] = { .name = #id,                                                                \
		       .type = (t),                                                                \
		       .offset = offsetof(struct event, id),                                       \
		       .names = (n),                                                               \
		       .name_count = (c),                                                          \
		       .unit = (u),                                                                \
		       .meaning = (m) },
#define FIELD(type, id, unit, meaning) EXPAND(ROW, id, unit, meaning, NAMES_##type)
#include "jobs/flow/events.def"
#undef FIELD
};

#define F(field) | FIELD_SET_OF(EVF_##field)
const struct event_row event_rows[EV_COUNT] = {
#define EVENT(id, dotted, needed, optional, text, means)                                           \
	[EV_##id] = { .name = (dotted),                                                            \
		      .required = 0 needed,                                                        \
		      .allowed = 0 needed optional,                                                \
		      .sentence = (text),                                                          \
		      .meaning = (means) },
#include "jobs/flow/events.def"
#undef EVENT
};

_Static_assert(EVF_COUNT <= 128, "a set of fields has 128 bits");

enum event_kind event_kind_find(const char *name)
{
	int kind = 0;

	while (kind < EV_COUNT && strcmp(event_rows[kind].name, name) != 0)
		kind++;
	return (enum event_kind)kind;
}

int flow_name_find(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

bool event_well_formed(const struct event *ev)
{
	const struct event_row *row = &event_rows[ev->kind];

	return (ev->present & row->required) == row->required && (ev->present & ~row->allowed) == 0;
}
