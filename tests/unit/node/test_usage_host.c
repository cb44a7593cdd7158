/* What the host does, from a folder in the place of /proc: jobs/node/usage/usage_host.h. */
#include "jobs/node/usage/usage_host.h"

#include <math.h>

#include "tests/unit/node/place.h"

#define AGENT 100

static struct usage_host host;
static struct usage_readings readings;

static UNUSED void put(const struct place *place, const char *name, const char *text)
{
	AUTO(auto_free) char *path = place_path(place, name);

	write_file(path, text, 0600);
}

/* A process: its parent, CPU time in ticks, and what its main thread had and waited for, in ms. */
static void process(const struct place *place, int pid, int parent, int ticks, int run, int wait)
{
	AUTO(auto_free)
	char *stat = mem_format("%d/stat", pid), *times = mem_format("%d/schedstat", pid);
	AUTO(auto_free)
	char *text = mem_format("%d (a) b) (c) S %d 1 1 0 -1 4194304 9 9 9 9 %d 0 7 7 20 0 1 0 %d "
				"1000000 256 18446744073709551615 1 1\n",
				pid, parent, ticks, 5000 + pid);
	AUTO(auto_free) char *schedule = mem_format("%d000000 %d000000 12\n", run, wait);

	put(place, stat, text);
	put(place, times, schedule);
}

static double figure(size_t number)
{
	for (size_t i = 0; i < readings.count; i++)
		if (readings.list[i].figure == number)
			return readings.list[i].value;
	return -1;
}

/* Reads; `ms` have passed since the last time. */
static void look(int64_t ms)
{
	const pid_t spared[] = { 0, 150 };

	if (host.at.ms > 0)
		host.at.ms = clock_mono_now().ms - ms;
	readings.count = 0;
	usage_host_read(&host, AGENT, spared, STK_LENGTH(spared), &readings);
}

static void is_near(double value, double want)
{
	if (!(value > want * 0.8 && value < want * 1.2))
		fail_msg("%g is not near %g", value, want);
}

static int begin(void **state)
{
	int made = place_make(state);

	usage_host_init(&host, ((struct place *)*state)->root);
	return made;
}

static int end(void **state)
{
	usage_host_release(&host);
	return place_remove(state);
}

static void the_node_is_told_by_what_has_changed(void **state)
{
	const struct place *place = *state;

	put(place, "stat",
	    "cpu  9 9 9 9\ncpu0 100 0 100 800 0 0 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\nintr 7\n");
	put(place, "meminfo", "MemTotal:       4000 kB\nMemFree: 1 kB\nMemAvailable:   1000 kB\n");
	put(place, "vmstat", "nr_free_pages 5\npswpin 100\npswpout 1000\npswpoutx 7\n");
	look(0);
	assert_true(fabs(figure(USAGE_MEMORY_AVAILABLE) - 25) < 1e-9);
	assert_true(figure(USAGE_CPU_BUSIEST) < 0 && figure(USAGE_SWAP_IN) < 0);
	put(place, "stat",
	    "cpu  9 9 9 9\ncpu0 190 0 100 810 0 0 0 0 0 0\ncpu1 0 5 5 1070 20 0 0 0 0 0\n");
	put(place, "vmstat", "nr_free_pages 5\npswpin 612\npswpout 1256\n");
	look(100000);
	assert_true(fabs(figure(USAGE_CPU_BUSIEST) - 90) < 1e-9);
	assert_true(fabs(figure(USAGE_CPU_IDLEST) - 10) < 1e-9);
	assert_true(fabs(figure(USAGE_IO_WAIT) - 10) < 1e-9);
	is_near(figure(USAGE_SWAP_IN), 512 * (double)getpagesize() / 1048576 / 100);
	is_near(figure(USAGE_SWAP_OUT), 256 * (double)getpagesize() / 1048576 / 100);
	assert_int_equal(figure(USAGE_SWAPPED), 0);
}

/* Long times, so that the time that the reading itself takes is none of them. */
static void the_commands_processes_are_those_below_the_agent(void **state)
{
	const struct place *place = *state;

	process(place, 1, 0, 0, 0, 0);
	process(place, AGENT, 1, 0, 0, 0);
	process(place, 150, AGENT, 0, 0, 0); /* a helper, and its child */
	process(place, 151, 150, 0, 0, 0);
	process(place, 200, AGENT, 1000, 0, 0); /* the trainer, and its loaders */
	process(place, 201, 200, 0, 0, 0);
	process(place, 202, 200, 0, 0, 0);
	process(place, 300, 1, 0, 0, 0); /* somebody else's */
	look(0);
	assert_true(fabs(figure(USAGE_MEMORY) - (3 * 256.0 * getpagesize() / 1048576)) < 1e-9);
	assert_true(figure(USAGE_CPU) < 0);
	process(place, 151, 150, 9000, 90000, 0);
	process(place, 300, 1, 9000, 90000, 0);
	process(place, 200, AGENT, 2000, 10000, 5000);
	process(place, 201, 200, 5000, 50000,
		50000); /* on a machine that gives it half of a core */
	process(place, 202, 200, 4000, 40000, 40000);
	process(place, 203, 200, 0, 0, 0);
	look(100000);
	is_near(figure(USAGE_CPU), 100);
	assert_true(figure(USAGE_CPU_CORES) > 0);
	is_near(figure(USAGE_TRAINER),
		20); /* 10 % of a core, of which it would get twice as much */
	is_near(figure(USAGE_LOADERS), 90);
}

/* The counters are those of some kernels that stand in for Linux. */
static void cpu_time_that_falls_is_none(void **state)
{
	const struct place *place = *state;

	process(place, 200, AGENT, 5000, 50000, 5000);
	look(0);
	process(place, 200, AGENT, 4999, 49990, 4990);
	look(100000);
	assert_true(fabs(figure(USAGE_CPU)) < 1e-9);
}

static void a_launcher_is_no_trainer(void **state)
{
	const struct place *place = *state;

	process(place, AGENT, 1, 0, 0, 0);
	process(place, 200, AGENT, 0, 0, 0);
	process(place, 201, 200, 0, 0, 0);
	look(0);
	process(place, 200, AGENT, 100, 1000, 0);
	process(place, 201, 200, 10000, 100000, 0);
	look(100000);
	is_near(figure(USAGE_CPU), 101);
	assert_true(figure(USAGE_TRAINER) < 0 && figure(USAGE_LOADERS) < 0);
}

static void memory_in_the_swap_is_asked_for_when_pages_move(void **state)
{
	const struct place *place = *state;

	process(place, 200, AGENT, 0, 0, 0);
	put(place, "200/status", "Name:\ta\nVmRSS:\t 7 kB\nVmSwap:\t   3072 kB\nThreads:\t1\n");
	put(place, "vmstat", "pswpin 0\npswpout 0\n");
	look(0);
	look(1000);
	assert_true(figure(USAGE_SWAPPED) < 0);
	put(place, "vmstat", "pswpin 1\npswpout 0\n");
	look(1000);
	assert_true(fabs(figure(USAGE_SWAPPED) - 3) < 1e-9);
}

static void what_cannot_be_read_is_left_out(void **state)
{
	const struct place *place = *state;

	put(place, "stat", "cpu");
	put(place, "meminfo", "MemTotal: x\n");
	put(place, "vmstat", "");
	put(place, "200/stat", "200 (cut off");
	put(place, "201/stat", "201 (zombie) Z 100 0 0\n");
	put(place, "202/stat", "202 (short) S 100");
	look(0);
	look(1000);
	assert_true(figure(USAGE_CPU_BUSIEST) < 0 && figure(USAGE_MEMORY_AVAILABLE) < 0);
	assert_true(fabs(figure(USAGE_MEMORY) - 0) < 1e-9);
	assert_true(fabs(figure(USAGE_CPU) - 0) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_node_is_told_by_what_has_changed, begin, end),
		cmocka_unit_test_setup_teardown(the_commands_processes_are_those_below_the_agent,
						begin, end),
		cmocka_unit_test_setup_teardown(cpu_time_that_falls_is_none, begin, end),
		cmocka_unit_test_setup_teardown(a_launcher_is_no_trainer, begin, end),
		cmocka_unit_test_setup_teardown(memory_in_the_swap_is_asked_for_when_pages_move,
						begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_left_out, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
