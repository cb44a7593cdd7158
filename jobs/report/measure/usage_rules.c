/* Judges what the nodes of a training did: see usage_rules.h. */
#include "jobs/report/measure/usage_rules.h"

#include <math.h>
#include <stdlib.h>

#include "jobs/base/sb.h"
#include "jobs/base/usage.h"

#define GAP_MAX   60.0  /* seconds that a sample stands for at most */
#define FRESH_MS  20000 /* devices tell less often than the host; so long their figures hold */
#define MINUTE_MS 60000
#define NAMED     8 /* devices named in a finding */

const struct usage_rules_row usage_rules_table[USAGE_RULES] = {
#define USAGE_RULE(id, name, share, looks, means) { name, share, looks, means },
#include "jobs/report/measure/usage_rules.def"
#undef USAGE_RULE
};

/* Seconds, and sums of figures over them. */
struct usage_rules_device {
	double told, busy, idle;
};

struct usage_rules_node {
	int node;
	size_t samples;
	double seconds;
	double waits, trainer,
		loaders;            /* of the loader-bound time: as a trainer waits for loaders */
	double bound, busiest, cpu; /* all of that time */
	double swaps, swapped;
	double fullest; /* -1: not known */
	bool has_devices;
	struct usage_rules_device devices[USAGE_DEVICES_MAX];
};

/* All figures of a moment; NAN: not told. */
struct usage_sample {
	int64_t at_ms, step;
	double values[USAGE_END];
};

struct usage_rules {
	bool has_steps;
	struct usage_rules_node **nodes; /* owned */
	size_t count;
	/* the attempt's node that is told now, since this start of the command */
	int64_t attempt;
	size_t start;
	struct usage_rules_node *node; /* NULL: none yet */
	struct usage_sample now, last; /* `last` is whole; at_ms 0: none */
	int64_t before_ms, first_ms;   /* of the sample before that, and the first; 0: none */
	size_t warm;                   /* samples since the first step */
	double devices[2 * USAGE_DEVICES_MAX]; /* newest figures of devices; NAN: none */
	int64_t devices_ms;
};

struct usage_rules *usage_rules_new(bool has_steps)
{
	struct usage_rules *rules = mem_zero(1, sizeof *rules);

	rules->has_steps = has_steps;
	return rules;
}

void usage_rules_freep(struct usage_rules **rules)
{
	if (!*rules)
		return;
	for (size_t i = 0; i < (*rules)->count; i++)
		free((*rules)->nodes[i]);
	free((*rules)->nodes);
	free(*rules);
	*rules = NULL;
}

/* ---- a sample ---- */

/* Takes the newest figures of devices over. Returns false if there is none that still holds. */
static bool know_devices(struct usage_rules *rules, const struct usage_sample *sample)
{
	bool told = false;

	for (size_t i = 0; i < STK_LENGTH(rules->devices); i++)
		told |= isfinite(sample->values[USAGE_DEVICE + i]);
	if (told) {
		for (size_t i = 0; i < STK_LENGTH(rules->devices); i++)
			rules->devices[i] = sample->values[USAGE_DEVICE + i];
		rules->devices_ms = sample->at_ms;
		rules->node->has_devices = true;
	}
	return rules->devices_ms > 0 && sample->at_ms - rules->devices_ms <= FRESH_MS;
}

/* Returns how busy the busiest device is. */
static double judge_devices(struct usage_rules *rules, double seconds)
{
	struct usage_rules_node *node = rules->node;
	double most = 0;

	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++)
		most = fmax(most, rules->devices[2 * i]);
	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++) {
		double busy = rules->devices[2 * i], full = rules->devices[2 * i + 1];
		struct usage_rules_device *device = &node->devices[i];

		if (isfinite(full))
			node->fullest = fmax(node->fullest, full);
		if (!isfinite(busy))
			continue;
		device->told += seconds;
		device->busy += busy * seconds;
		if (busy < USAGE_IDLE && most >= USAGE_WORKS)
			device->idle += seconds;
	}
	return most;
}

/* `busiest` is NAN where there are no devices. */
static void judge_loaders(struct usage_rules_node *node, const double *values, double busiest,
			  double seconds)
{
	bool waits = values[USAGE_TRAINER] <= USAGE_WAITS && values[USAGE_LOADERS] >= USAGE_LOADS;
	bool full = values[USAGE_CPU] >= USAGE_SATURATED * values[USAGE_CPU_CORES];

	/* A full CPU is what a training without a device wants. */
	if (isfinite(busiest) ? busiest >= USAGE_BUSY || !(waits || full) : !waits)
		return;
	node->bound += seconds;
	node->busiest += busiest * seconds;
	node->cpu += values[USAGE_CPU] / values[USAGE_CPU_CORES] * seconds;
	if (!waits)
		return;
	node->waits += seconds;
	node->trainer += values[USAGE_TRAINER] * seconds;
	node->loaders += values[USAGE_LOADERS] * seconds;
}

static void judge(struct usage_rules *rules, const struct usage_sample *sample, double seconds)
{
	struct usage_rules_node *node = rules->node;
	const double *values = sample->values;
	double swaps = values[USAGE_SWAP_IN] + values[USAGE_SWAP_OUT];
	bool known = know_devices(rules, sample);

	node->samples++;
	node->seconds += seconds;
	if (known || !node->has_devices)
		judge_loaders(node, values, known ? judge_devices(rules, seconds) : NAN, seconds);
	if (swaps >= USAGE_SWAPS && values[USAGE_SWAPPED] >= 1) {
		node->swaps += seconds;
		node->swapped += swaps * seconds;
	}
}

/* Another sample follows this one, or the node's command is over. */
static void end_last(struct usage_rules *rules)
{
	const struct usage_sample *last = &rules->last;
	double seconds = (double)(last->at_ms - rules->before_ms) / 1000;
	bool warm;

	if (last->at_ms == 0)
		return;
	if (rules->first_ms == 0)
		rules->first_ms = last->at_ms;
	rules->warm += last->step >= 0;
	warm = rules->has_steps ? rules->warm > USAGE_WARM
				: last->at_ms - rules->first_ms >= MINUTE_MS;
	if (warm && rules->before_ms > 0 && seconds > 0)
		judge(rules, last, fmin(seconds, GAP_MAX));
	else
		know_devices(rules, last);
	rules->before_ms = last->at_ms;
}

static struct usage_rules_node *node_of(struct usage_rules *rules, int number)
{
	struct usage_rules_node *node;

	for (size_t i = 0; i < rules->count; i++)
		if (rules->nodes[i]->node == number)
			return rules->nodes[i];
	node = mem_zero(1, sizeof *node);
	node->node = number;
	node->fullest = -1;
	rules->nodes = mem_room(rules->nodes, rules->count, sizeof(struct usage_rules_node *));
	rules->nodes[rules->count++] = node;
	return node;
}

/* The newest sample, which is the last one of its node's command, is not judged. */
static void end_node(struct usage_rules *rules)
{
	end_last(rules);
	rules->now.at_ms = rules->last.at_ms = rules->before_ms = rules->first_ms = 0;
	rules->devices_ms = 0;
	rules->warm = 0;
}

void usage_rules_add(struct usage_rules *rules, const struct usage_point *point)
{
	if (!rules->node || point->node != rules->node->node || point->attempt != rules->attempt ||
	    point->start != rules->start) {
		if (rules->node)
			end_node(rules);
		rules->node = node_of(rules, point->node);
		rules->attempt = point->attempt;
		rules->start = point->start;
	}
	if (point->at_ms != rules->now.at_ms) {
		end_last(rules);
		rules->last = rules->now;
		rules->now.at_ms = point->at_ms;
		rules->now.step = point->step;
		for (size_t i = 0; i < USAGE_END; i++)
			rules->now.values[i] = NAN;
	}
	if (point->figure < USAGE_END)
		rules->now.values[point->figure] = point->value;
}

/* ---- findings ---- */

/* Adds a finding; takes the text. */
static void add(json_t *findings, enum usage_rule rule, const struct usage_rules_node *node,
		char *figure, double share)
{
	const struct usage_rules_row *row = &usage_rules_table[rule];
	AUTO(auto_free) char *threshold = NULL;
	json_t *finding = json_object();

	if (row->share > 0)
		threshold =
			mem_format("%s, in at least %.0f %% of the time", row->looks, row->share);
	js_put_str(finding, "rule", row->name);
	js_put(finding, "node", json_integer(node->node));
	js_put_str(finding, "figure", figure);
	js_put_str(finding, "threshold", threshold ? threshold : row->looks);
	js_put(finding, "share", json_real(share));
	js_put_str(finding, "means", row->means);
	json_array_append_new(findings, finding);
	free(figure);
}

static bool holds(enum usage_rule rule, double seconds, double of)
{
	return of > 0 && 100 * seconds >= usage_rules_table[rule].share * of;
}

static void find_idle(const struct usage_rules_node *node, json_t *findings)
{
	AUTO(sb_release) struct sb names = SB_INIT;
	double told = 0, busy = 0, idle = 0;
	size_t count = 0, all = 0;

	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++) {
		const struct usage_rules_device *device = &node->devices[i];

		all += device->told > 0;
		if (!holds(USAGE_RULE_IDLE_CORE, device->idle, node->seconds) ||
		    device->busy >= USAGE_IDLE * device->told)
			continue;
		if (count++ < NAMED)
			sb_addf(&names, "%s%zu", count > 1 ? ", " : "", i);
		told += device->told;
		busy += device->busy;
		idle = fmax(idle, device->idle);
	}
	if (count == 0)
		return;
	add(findings, USAGE_RULE_IDLE_CORE, node,
	    mem_format("%s %s%s of %zu: busy %.1f %% on average", count > 1 ? "devices" : "device",
		       names.text, count > NAMED ? " and others" : "", all, busy / told),
	    100 * idle / node->seconds);
}

static void find_loaders(const struct usage_rules_node *node, json_t *findings)
{
	AUTO(sb_release) struct sb figure = SB_INIT;

	if (!holds(USAGE_RULE_LOADER_BOUND, node->bound, node->seconds))
		return;
	if (node->has_devices)
		sb_addf(&figure, "busiest device: %.1f %%; ", node->busiest / node->bound);
	if (node->waits > 0)
		sb_addf(&figure, "training process: %.1f %%; its loader processes: %.1f %%; ",
			node->trainer / node->waits, node->loaders / node->waits);
	sb_addf(&figure, "CPU of the command: %.1f %% of its cores", node->cpu / node->bound);
	add(findings, USAGE_RULE_LOADER_BOUND, node, sb_take(&figure),
	    100 * node->bound / node->seconds);
}

static void find_rest(const struct usage_rules_node *node, json_t *findings)
{
	bool works = false;

	if (holds(USAGE_RULE_SWAPPING, node->swaps, node->seconds))
		add(findings, USAGE_RULE_SWAPPING, node,
		    mem_format("%.1f MiB/s to and from the swap", node->swapped / node->swaps),
		    100 * node->swaps / node->seconds);
	for (size_t i = 0; i < USAGE_DEVICES_MAX; i++)
		works |= node->devices[i].busy > USAGE_IDLE * node->devices[i].told;
	if (works && node->fullest >= 0 && node->fullest <= USAGE_ROOMY)
		add(findings, USAGE_RULE_MEMORY_UNUSED, node,
		    mem_format("memory in use of the fullest device, at its peak: %.1f %%",
			       node->fullest),
		    100);
}

json_t *usage_rules_findings(struct usage_rules *rules, double *ret_seconds)
{
	json_t *findings = json_array();
	bool any = false;

	if (rules->node)
		end_node(rules);
	*ret_seconds = 0;
	for (size_t i = 0; i < rules->count; i++) {
		const struct usage_rules_node *node = rules->nodes[i];

		if (node->samples < USAGE_LEAST)
			continue;
		any = true;
		*ret_seconds += node->seconds;
		find_idle(node, findings);
		find_loaders(node, findings);
		find_rest(node, findings);
	}
	if (any)
		return findings;
	json_decref(findings);
	return NULL;
}
