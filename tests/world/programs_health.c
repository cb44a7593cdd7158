/*
 * The tools of the image that a check-up runs: see programs.h. A machine has two cores; the tools
 * of one node do not wait for those of another.
 *
 * Sources of what they print: those of health_parse.h; health_tensor.py and health_reduce.py.
 */
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"
#include "tests/world/kernel.h"
#include "tests/world/programs.h"

void (*programs_tool)(struct tool_traits *ret);

/* A tool takes its time. Returns the status with which it ends then; 0: it goes on and prints. */
static int begin(struct tool_traits *ret)
{
	programs_tool(ret);
	while (ret->hangs)
		program_rest(3600 * WORLD_S);
	program_rest(ret->takes_ns);
	return ret->exit;
}

static const struct tool {
	const char *name, *well, *fault; /* what it prints of a machine */
	int status;                      /* with which it ends where it finds a fault */
} tools[] = {
	{ "neuron-ls", "[{\"neuron_device\": 0, \"nc_count\": 2, \"neuron_processes\": []}]\n",
	  "[]\n", 0 },
	{ "nccom-test",
	  "size(B) count(elems) type time:avg(us) algbw(GB/s) busbw(GB/s)\n"
	  "1048576 262144 fp32 100.0 20.0 40.0\n"
	  "Avg bus bandwidth:\t40.0000GB/s\n",
	  "Failure running all_reduce\n", 1 },
	{ "torchrun", "{\"busbw\": 10.0, \"time_us\": 100.0, \"ranks\": 2}\n",
	  "{\"wrong\": 3, \"of\": 1000, \"expected\": 3.0}\n", 1 },
};

static int tool_main(int argc, char **argv)
{
	const struct tool *tool = tools;
	struct tool_traits traits;
	int failed = begin(&traits);

	(void)argc;
	if (failed)
		return failed;
	while (strcmp(tool->name, fs_basename(argv[0])) != 0)
		tool++;
	program_say(1, "%s", traits.finds_fault ? tool->fault : tool->well);
	return traits.finds_fault ? tool->status : 0;
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
	for (size_t i = 0; i < STK_LENGTH(tools); i++)
		program_register(tools[i].name, tool_main);
}
