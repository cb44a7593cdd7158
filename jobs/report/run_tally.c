/* The part of a run in the statistics: see run_tally.h. */
#include "jobs/report/run_tally.h"

#include <stdlib.h>
#include <string.h>

void run_tally_release(struct run_tally *tally)
{
	json_decref(TAKE(tally->machines));
	free(TAKE(tally->instance));
}

bool run_tally_interrupts(enum failure_class class)
{
	switch (class) {
	case CLASS_TRANSIENT_INFRA:
	case CLASS_SPOT:
	case CLASS_HARDWARE_NODE:
	case CLASS_COMM:
	case CLASS_TIMEOUT_HANG:
	case CLASS_UNKNOWN:
		return true;
	case CLASS_NONE:
	case CLASS_CAPACITY:
	case CLASS_USER_CODE:
	case CLASS_USER_CONFIG:
	case CLASS_QUOTA_PERMISSION:
	case CLASS_DATA:
	case CLASS_COMPILE:
	case CLASS_STOPPED:
	case CLASS_COUNT:
		break;
	}
	return false;
}

/* Spot machines are taken back healthy. */
static bool machine_may_cause(enum failure_class class)
{
	return class != CLASS_SPOT && run_tally_interrupts(class);
}

/* Containers of SageMaker may be called algo-1, algo-2 and so on: ranks, and no machines. */
static bool names_a_rank(const char *host)
{
	return strncmp(host, "algo-", 5) == 0 && host[5 + strspn(host + 5, "0123456789")] == '\0';
}

static void grow(json_t *object, const char *key, int64_t by)
{
	js_put(object, key, json_integer(js_int(object, key, 0) + by));
}

static void count_machines(struct run_tally *tally, const struct event *ev)
{
	int64_t ended = EVENT_HAS(ev, node) ? ev->node : 0;
	int64_t cause = EVENT_HAS(ev, cause_node) ? ev->cause_node : ended;
	json_t *host;
	size_t i;

	if (!EVENT_HAS(ev, hosts) || tally->claimed.ms == 0)
		return;
	if (!tally->machines)
		tally->machines = json_object();
	json_array_foreach (ev->hosts, i, host) {
		const char *name = json_string_value(host);
		json_t *machine;

		if (!name || !*name || names_a_rank(name))
			continue;
		machine = json_object_get(tally->machines, name);
		if (!machine) {
			machine = json_object();
			json_object_set_new(tally->machines, name, machine);
		}
		grow(machine, "ms", ev->at.ms - tally->claimed.ms);
		if (!json_object_get(machine, "failed"))
			grow(machine, "exposed", ev->at.ms - tally->claimed.ms);
		grow(machine, "attempts", 1);
		if ((int64_t)i == cause && machine_may_cause(ev->class))
			grow(machine, "failed", 1);
	}
}

static void on_ended(struct run_tally *tally, const struct event *ev)
{
	bool drained = EVENT_HAS(ev, stopped) && strcmp(ev->stopped, "drain") == 0;

	tally->attempts++;
	tally->failures[ev->class]++;
	tally->drained += tally->draining || drained;
	count_machines(tally, ev);
	tally->claimed.ms = 0;
	tally->draining = false;
	tally->open = ev->class != CLASS_NONE;
	tally->newest = ev->class;
}

/* An action is about the newest failure. */
static void on_action(struct run_tally *tally, enum action action)
{
	if (tally->open)
		tally->acted[tally->newest][action]++;
	tally->open = false;
}

void run_tally_add(struct run_tally *tally, const struct event *ev)
{
	switch ((int)ev->kind) {
	case EV_RUN_CREATED:
		tally->nodes = js_int(ev->plan, "nodes", 1);
		tally->debug = json_object_get(ev->plan, "debug") != NULL;
		if (js_str(json_object_get(ev->plan, "instance"), "type"))
			tally->instance =
				mem_copy(js_str(json_object_get(ev->plan, "instance"), "type"));
		break;
	case EV_CACHE_CHECKED:
		if (!tally->looked)
			tally->verdict = ev->verdict;
		tally->looked = true;
		break;
	case EV_ATTEMPT_INTENDED:
		tally->claimed.ms = 0;
		tally->draining = false;
		break;
	case EV_ATTEMPT_CLAIMED:
		tally->claimed = ev->at;
		break;
	case EV_HEALTH_CHECKED:
		tally->refused += !ev->healthy;
		break;
	case EV_REQUEST_STOP:
	case EV_REQUEST_DRAIN:
	case EV_WORKER_LOST:
		tally->draining = tally->claimed.ms > 0;
		break;
	case EV_LIMIT_REACHED:
		if (ev->limit != LIMIT_UNREACHABLE) {
			tally->limit = ev->limit;
			tally->draining = tally->claimed.ms > 0;
		}
		break;
	case EV_ATTEMPT_ENDED:
		on_ended(tally, ev);
		break;
	case EV_RETRY_SCHEDULED:
		on_action(tally, ev->action);
		break;
	case EV_RUN_ENDED:
		on_action(tally, ACTION_STOP);
		break;
	default:
		break;
	}
}

static void put_count(json_t *object, const char *key, int64_t count)
{
	if (count != 0)
		js_put(object, key, json_integer(count));
}

void run_tally_put(const struct run_tally *tally, json_t *ret)
{
	json_t *failures = NULL;

	js_put_str(ret, "instance", tally->instance);
	if (tally->debug)
		js_put(ret, "debug", json_true());
	put_count(ret, "nodes", tally->nodes);
	put_count(ret, "attempts", tally->attempts);
	put_count(ret, "drained", tally->drained);
	put_count(ret, "refused", tally->refused);
	if (tally->looked)
		js_put_str(ret, "cache", flow_cache_state_names[tally->verdict]);
	if (tally->limit != LIMIT_NONE)
		js_put_str(ret, "limit", flow_limit_names[tally->limit]);
	js_put(ret, "machines", json_incref(tally->machines));
	for (int class = CLASS_NONE + 1; class < CLASS_COUNT; class ++) {
		json_t *row;

		if (tally->failures[class] == 0)
			continue;
		failures = failures ? failures : json_object();
		row = json_object();
		js_put(row, "attempts", json_integer(tally->failures[class]));
		for (int action = 0; action < ACTION_COUNT; action++)
			put_count(row, flow_action_names[action], tally->acted[class][action]);
		js_put(failures, flow_class_names[class], row);
	}
	js_put(ret, "failures", failures);
}
