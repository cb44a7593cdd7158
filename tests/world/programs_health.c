/*
 * The tools of the image that a check-up runs: see programs.h. A machine has two cores; the tools
 * of one node do not wait for those of another.
 *
 * Sources of what they print: those of health_parse.h; health_tensor.py and health_reduce.py.
 */
#include <string.h>

#include "tests/world/kernel.h"
#include "tests/world/programs.h"

void (*programs_tool)(struct tool_traits *ret);

/* Takes its time; the exit status with which it ends at once, 0: it goes on and prints. */
static int begin(struct tool_traits *ret)
{
	programs_tool(ret);
	while (ret->hangs)
		program_rest(3600 * WORLD_S);
	program_rest(ret->takes_ns);
	return ret->exit;
}

static int neuron_ls_main(int argc, char **argv)
{
	struct tool_traits traits;
	int failed = begin(&traits);

	(void)argc;
	(void)argv;
	if (failed)
		return failed;
	program_say(1, "%s\n",
		    traits.finds_fault ? "[]"
				       : "[{\"neuron_device\": 0, \"nc_count\": 2, "
					 "\"neuron_processes\": []}]");
	return 0;
}

static int nccom_main(int argc, char **argv)
{
	struct tool_traits traits;
	int failed = begin(&traits);

	(void)argc;
	(void)argv;
	if (failed)
		return failed;
	if (traits.finds_fault) {
		program_say(1, "Failure running all_reduce\n");
		return 1;
	}
	program_say(1, "size(B) count(elems) type time:avg(us) algbw(GB/s) busbw(GB/s)\n"
		       "1048576 262144 fp32 100.0 20.0 40.0\n"
		       "Avg bus bandwidth:\t40.0000GB/s\n");
	return 0;
}

static int torchrun_main(int argc, char **argv)
{
	struct tool_traits traits;
	int failed = begin(&traits);

	(void)argc;
	(void)argv;
	if (failed)
		return failed;
	program_say(1, traits.finds_fault
			       ? "{\"wrong\": 3, \"of\": 1000, \"expected\": 3.0}\n"
			       : "{\"busbw\": 10.0, \"time_us\": 100.0, \"ranks\": 2}\n");
	return traits.finds_fault;
}

int programs_tensor_main(int argc, char **argv)
{
	static const char known[] = "\"torch\": true, \"xla\": true";
	struct tool_traits traits;
	int failed = begin(&traits);

	if (failed)
		return failed;
	if (argc > 2 && strcmp(argv[2], "look") == 0)
		program_say(1, "{%s}\n", known);
	else
		program_say(1,
			    "{%s, \"framework\": \"torch\", \"accelerated\": true, \"cores\": 2, "
			    "\"wrong\": [%s]}\n",
			    known,
			    traits.finds_fault ? "{\"core\": 1, \"words\": \"3.0, not 2.0\"}" : "");
	return 0;
}

void programs_register_tools(void)
{
	program_register("neuron-ls", neuron_ls_main);
	program_register("nccom-test", nccom_main);
	program_register("torchrun", torchrun_main);
}
