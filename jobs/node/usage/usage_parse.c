/* Reads lines of neuron-monitor and nvidia-smi: see usage_parse.h. */
#include "jobs/node/usage/usage_parse.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/js.h"

static void add(struct usage_mean *mean, double percent)
{
	if (!isfinite(percent) || percent < 0)
		return;
	mean->sum += percent > 100 ? 100 : percent;
	mean->count++;
}

/* ---- neuron-monitor ---- */

/* Cores of this machine, as several runtimes use them. */
struct cores {
	double busy[USAGE_DEVICES_MAX], bytes[USAGE_DEVICES_MAX];
	bool is_used[USAGE_DEVICES_MAX], has_bytes[USAGE_DEVICES_MAX];
	size_t used;
};

/* Returns the index that the key is; SIZE_MAX: none. */
static size_t index_of(const char *key)
{
	char *end;
	unsigned long index = strtoul(key, &end, 10);

	return *key >= '0' && *key <= '9' && !*end && index < USAGE_DEVICES_MAX ? (size_t)index
										: SIZE_MAX;
}

static double number_of(const json_t *value)
{
	return json_is_number(value) ? json_number_value(value) : 0;
}

static void add_cores(struct cores *cores, const json_t *runtime)
{
	json_t *in_use = js_path(runtime, "report.neuroncore_counters.neuroncores_in_use"), *core;
	const char *key;

	json_object_foreach (in_use, key, core) {
		size_t at = index_of(key);

		if (at == SIZE_MAX)
			continue;
		cores->used += !cores->is_used[at];
		cores->is_used[at] = true;
		cores->busy[at] += js_real(core, "neuroncore_utilization", 0);
	}
}

static void add_memory(struct cores *cores, const json_t *runtime)
{
	json_t *usage = js_path(runtime, "report.memory_used.neuron_runtime_used_bytes."
					 "usage_breakdown.neuroncore_memory_usage"),
	       *core, *part;
	const char *key, *name;

	json_object_foreach (usage, key, core) {
		size_t at = index_of(key);

		if (at == SIZE_MAX)
			continue;
		cores->has_bytes[at] = true;
		json_object_foreach (core, name, part)
			cores->bytes[at] += number_of(part);
	}
}

int usage_parse_neuron(const char *line, size_t len, struct usage_devices *ret)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *report = NULL;
	const json_t *runtimes, *runtime, *machine;
	struct cores cores = { 0 };
	double each, memory;
	int64_t count, joined; /* physical cores that are a logical one */
	size_t i;

	if (js_parse(line, len, "neuron-monitor's report", &report, &ignored) < 0 ||
	    !json_is_object(report))
		return -1;
	runtimes = json_object_get(report, "neuron_runtime_data");
	machine = json_object_get(report, "neuron_hardware_info");
	if (!json_is_array(runtimes) && !json_is_object(machine))
		return -1;
	json_array_foreach (runtimes, i, runtime) {
		add_cores(&cores, runtime);
		add_memory(&cores, runtime);
	}
	each = js_real(machine, "neuroncore_per_device_count", 0);
	memory = js_real(machine, "neuron_device_memory_size", 0);
	count = js_int(machine, "neuron_device_count", 0);
	joined = js_int(machine, "logical_neuroncore_config", 1);
	count = count > 0 && count <= USAGE_DEVICES_MAX && each >= 1 && each <= USAGE_DEVICES_MAX
			? count * (int64_t)each
			: 0;
	/* The guide does not say whether it counts logical or physical cores: so many there are. */
	if (joined > 1)
		count /= joined;
	for (i = 0; i < USAGE_DEVICES_MAX; i++) {
		bool is_idle = cores.used > 0 && (int64_t)i < count && !ret->in_use_only;

		if (cores.is_used[i] || is_idle)
			add(&ret->busy[i], cores.busy[i]);
		if (cores.is_used[i] && cores.has_bytes[i] && memory > 0 && each >= 1)
			add(&ret->full[i], cores.bytes[i] / (memory / each) * 100);
	}
	return 0;
}

/* ---- nvidia-smi ---- */

/* Reads the next field of a row; NAN if it is no number in plain digits: "[N/A]". */
static double field(const char **at)
{
	const char *from = *at + strspn(*at, " ");
	size_t digits = strspn(from, "0123456789.");
	const char *after = from + digits + strspn(from + digits, " ");
	char *end;
	double value = strtod(from, &end);
	bool is_number = digits > 0 && end == from + digits && (*after == ',' || !*after);

	*at = strchrnul(*at, ',');
	if (**at)
		(*at)++;
	return is_number ? value : NAN;
}

int usage_parse_nvidia(const char *line, size_t len, struct usage_devices *ret)
{
	char row[256];
	const char *at = row;
	double index, busy, used, total;
	size_t commas = 0;

	if (len == 0 || len >= sizeof row || memchr(line, '\0', len))
		return -1;
	memcpy(row, line, len);
	row[len] = '\0';
	for (size_t i = 0; i < len; i++)
		commas += row[i] == ',';
	index = field(&at);
	if (commas != 3 || !(index >= 0) || index >= USAGE_DEVICES_MAX || index != floor(index))
		return -1;
	busy = field(&at);
	used = field(&at);
	total = field(&at);
	add(&ret->busy[(size_t)index], busy);
	if (total > 0)
		add(&ret->full[(size_t)index], used / total * 100);
	return 0;
}
