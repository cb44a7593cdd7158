/*
 * Following a log: all that the driver does with each line, from the file on. A driver
 * without a journal watches an attempt whose log is there already, `last` bytes of
 * which it reads; printed are the numbers that it knows then.
 */
#include <unistd.h>

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/run/driver_internal.h"
#include "tests/bench/bench.h"

#define RUN "bench"

int main(int argc, char **argv)
{
	struct driver driver = { .run = RUN };
	struct engine_where where = { 0 };
	AUTO(auto_free) char *text = NULL;
	struct err *err = NULL;
	json_auto_t *found = NULL;
	double wall, cpu;
	bool more = true;
	int64_t step;

	if (argc != 4)
		give_up("usage: bench_log WORKSPACE METRICS.json KIND", NULL);
	where.workspace = argv[1];
	driver.plan =
		json_pack("{s:i, s:o}", "nodes", 1, "metrics", json_load_file(argv[2], 0, NULL));
	driver.kind = compile_kind_find(argv[3]);
	if (!driver.plan || !driver.kind || loop_new(&driver.loop, &err) < 0 ||
	    engine_find("local")->open(&where, &driver.engine, &err) < 0 ||
	    watch_open(&driver, PHASE_TRAIN, 1, "stk-bench-train-1", &err) < 0)
		give_up("cannot begin", err);
	wall = wall_seconds();
	cpu = cpu_seconds();
	while (more)
		if (watch_read_log(&driver, &more, &err) < 0)
			give_up("watch_read_log", err);
	wall = wall_seconds() - wall;
	cpu = cpu_seconds() - cpu;
	found = metrics_row(driver.watch->metrics, &step);
	text = found ? js_line(found) : mem_copy("null");
	printf("{\"seconds\": %.6f, \"cpu\": %.6f, \"lines\": %zu, \"last\": %s}\n", wall, cpu,
	       driver.watch->logs[0].lines, text);
	watch_close(&driver);
	driver.engine->ops->close(driver.engine);
	loop_freep(&driver.loop);
	json_decref(driver.plan);
	return 0;
}
