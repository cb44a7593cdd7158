/* stoker-node ORDER RANK: the small program that runs first on every node of an
 * attempt. An engine starts it, never a person; see agent_main.h for what it does. */
#include <stdio.h>

#include "jobs/base/process/program.h"
#include "jobs/node/agent_main.h"
#include "jobs/store/order.h"

int main(int argc, char **argv)
{
	program_begin();
	if (argc != 3) {
		fputs("usage: stoker-node ORDER RANK (started by an engine of stoker)\n", stderr);
		return AGENT_EXIT_FAILED;
	}
	return agent_main(argv[0], argv[1], argv[2]);
}
