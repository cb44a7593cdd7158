/* Figures of the nodes of a run: see run_usage.h. */
#include "jobs/run/attempt/run_usage.h"

#include "jobs/base/usage.h"
#include "jobs/series/series_read.h"
#include "jobs/store/order.h"

struct run_usage_reading {
	struct run_reading reading;
	run_series_fn fn;
	void *arg;
	int answer;
};

static int on_usage(void *arg, struct series_block *block, struct err **err)
{
	struct run_usage_reading *usage = arg;
	struct series_point point = { 0 };
	char name[USAGE_NAME];

	while (usage->answer == 0 && series_block_next(block, &point)) {
		if (!usage_name(point.metric, name))
			continue;
		usage->reading.name = name;
		usage->reading.metric = point.metric;
		usage->reading.step = point.step;
		usage->reading.at = point.at;
		usage->reading.value = point.value;
		usage->reading.start = block->start;
		usage->answer = usage->fn(usage->arg, &usage->reading, err);
	}
	return usage->answer;
}

int run_usage_each(struct run_series *series, run_series_fn fn, void *arg, struct err **err)
{
	int nodes = (int)js_int(run_series_plan(series), "nodes", 1);
	const char *prefix;
	int64_t number;

	for (size_t i = 0; (prefix = run_series_attempt(series, i, &number)); i++)
		for (int node = 0; node < nodes; node++) {
			struct run_usage_reading usage = {
				.reading = { .attempt = number, .node = node, .counts = true },
				.fn = fn,
				.arg = arg
			};
			struct series_place place = { .store = run_series_workspace(series),
						      .prefix = prefix,
						      .node = node,
						      .file = USAGE_FILE,
						      .log_size = UINT64_MAX };

			if (series_read(&place, on_usage, &usage, err) < 0 || usage.answer < 0)
				return -1;
			if (usage.answer > 0)
				return 0;
		}
	return 0;
}
