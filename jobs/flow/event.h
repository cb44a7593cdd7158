/*
 * Events: what happened in a run, in the order in which the journal holds it.
 * The journal is the truth; all other state is derived from it.
 *
 * An event is plain data. Its strings and JSON values are borrowed from
 * their source (a decoded journal row, a driver's buffers) and live as long
 * as it does. Fields that are set are marked in `present`; use EVENT_HAS.
 */
#ifndef STK_FLOW_EVENT_H
#define STK_FLOW_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"

struct json_t; /* opaque here: the flow carries values and never looks inside */

/* Enums that events hold by name. Each has a table of names; the rows are in
 * enum order, and the journal uses these words. */
enum phase {
	PHASE_PRECOMPILE,
	PHASE_VERIFY,
	PHASE_TRAIN,
	PHASE_EVALUATE,
	PHASE_GATE,
	PHASE_INFER,
	PHASE_PROMOTE,
	PHASE_COUNT
};

/* Kind of failure that ended an attempt; CLASS_NONE: it succeeded. */
enum failure_class {
	CLASS_NONE,
	CLASS_TRANSIENT_INFRA,
	CLASS_CAPACITY,
	CLASS_SPOT,
	CLASS_HARDWARE_NODE,
	CLASS_COMM,
	CLASS_USER_CODE,
	CLASS_USER_CONFIG,
	CLASS_QUOTA_PERMISSION,
	CLASS_DATA,
	CLASS_COMPILE,
	CLASS_TIMEOUT_HANG,
	CLASS_STOPPED, /* by request */
	CLASS_UNKNOWN,
	CLASS_COUNT
};

enum action {
	ACTION_RETRY,
	ACTION_WAIT,
	ACTION_EXCLUDE,
	ACTION_FALL_BACK,
	ACTION_STOP,
	ACTION_COUNT
};

/* UNKNOWN: the cache could not be read. Occurs only in a plan; no run goes on with it. */
enum cache_state { CACHE_WARM, CACHE_COLD, CACHE_NONE, CACHE_UNKNOWN, CACHE_STATE_COUNT };

enum outcome {
	OUTCOME_SUCCEEDED,
	OUTCOME_FAILED,
	OUTCOME_REFUSED, /* by the environment or a gate */
	OUTCOME_STOPPED,
	OUTCOME_COUNT
};

/* Limits of the spec (`limits`); limits.c says when one is reached. */
enum run_limit {
	LIMIT_NONE,
	LIMIT_DEADLINE,
	LIMIT_COST,
	LIMIT_QUEUE,
	LIMIT_START,
	LIMIT_UNREACHABLE,
	LIMIT_COUNT
};

/* Result of the check whether the first steps after a resume went on from its checkpoint. */
enum continuity {
	CONTINUITY_VERIFIED,
	CONTINUITY_UNVERIFIED, /* no step to judge by */
	CONTINUITY_FAILED,
	CONTINUITY_COUNT
};

/* Response to an exceeded compile.jit_budget. */
enum jit_action { JIT_WARN, JIT_STOP, JIT_RECOMPILE, JIT_ACTION_COUNT };

extern const char *const flow_phase_names[PHASE_COUNT];
extern const char *const flow_class_names[CLASS_COUNT];
extern const char *const flow_action_names[ACTION_COUNT];
extern const char *const flow_cache_state_names[CACHE_STATE_COUNT];
extern const char *const flow_outcome_names[OUTCOME_COUNT];
extern const char *const flow_limit_names[LIMIT_COUNT];
extern const char *const flow_jit_action_names[JIT_ACTION_COUNT];

enum event_kind {
#define EVENT(kind, ...) EV_##kind,
#include "jobs/flow/events.def"
#undef EVENT
	EV_COUNT
};

enum event_field_id {
#define FIELD(type, name, unit, meaning) EVF_##name,
#include "jobs/flow/events.def"
#undef FIELD
	EVF_COUNT
};

/* A set of fields: 64 bits are too few. */
__extension__ typedef unsigned __int128 field_set;
#define FIELD_SET_OF(id) ((field_set)1 << (id))

enum event_type {
	EVT_INT,
	EVT_REAL,
	EVT_BOOL,
	EVT_STR,
	EVT_JSON,
	EVT_INSTANT,  /* UTC in milliseconds; in JSON RFC 3339 */
	EVT_DURATION, /* milliseconds; in JSON seconds */
	EVT_ENUM
};

struct event {
	enum event_kind kind;
	int64_t seq;   /* from 1, without gaps; set by the journal */
	struct utc at; /* never runs backwards within a run */
	field_set present;
#define EVENT_C_INT                      int64_t
#define EVENT_C_REAL                     double
#define EVENT_C_BOOL                     bool
#define EVENT_C_STR                      const char *
#define EVENT_C_JSON                     struct json_t *
#define EVENT_C_INSTANT                  int64_t
#define EVENT_C_DURATION                 int64_t
#define EVENT_C_PHASE                    enum phase
#define EVENT_C_CLASS                    enum failure_class
#define EVENT_C_ACTION                   enum action
#define EVENT_C_CACHE_STATE              enum cache_state
#define EVENT_C_OUTCOME                  enum outcome
#define EVENT_C_LIMIT                    enum run_limit
#define EVENT_C_CONTINUITY               enum continuity
#define EVENT_C_JIT_ACTION               enum jit_action
#define FIELD(type, name, unit, meaning) EVENT_C_##type name;
#include "jobs/flow/events.def"
#undef FIELD
};

/* Read: EVENT_HAS(&ev, step). Write: EVENT_SET(&ev, step, 42). A string or JSON
 * value that is NULL stays absent. */
#define EVENT_HAS(ev, field) (((ev)->present & FIELD_SET_OF(EVF_##field)) != 0)
#define EVENT_SET(ev, field, value)                                                                \
	((ev)->field = (value), (ev)->present |= FIELD_SET_OF(EVF_##field))
#define EVENT_SET_STR(ev, field, text)                                                             \
	((ev)->field = (text), (ev)->present |= (field_set)((ev)->field != NULL) << EVF_##field)

struct event_field_row {
	const char *name;
	enum event_type type;
	size_t offset;            /* in struct event */
	const char *const *names; /* value names of an enum */
	int name_count;
	const char *unit;    /* of JSON: its form; "": none */
	const char *meaning; /* for people who write programs */
};

struct event_row {
	const char *name;            /* dotted */
	field_set required, allowed; /* allowed includes required */
	const char *sentence, *meaning;
};

extern const struct event_field_row event_fields[EVF_COUNT];
extern const struct event_row event_rows[EV_COUNT];

/* Returns EV_COUNT if no kind has that name. */
enum event_kind event_kind_find(const char *name);

/* Returns the index of `name` in a table of names, -1 if absent. */
int flow_name_find(const char *const *names, int count, const char *name);

/* True if every field that the kind requires is set, and no field that it does not allow. */
bool event_well_formed(const struct event *ev);

#endif
