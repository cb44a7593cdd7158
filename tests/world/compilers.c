/* Which compilers there are, which of them a machine has, and the names of graphs: see programs.h.
 */
#include "tests/world/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "tests/world/tree.h"

#define FLAGS    "0a1b2c3d"
#define PACKAGES "/opt/venv/lib/python3.11/site-packages/"

const struct compiler compilers[COMPILERS] = {
	{ "2.14.0", "neuronxcc-2.14.0+a1b2c3d4" },
	{ "2.15.0", "neuronxcc-2.15.0+b2c3d4e5" },
};

void programs_graph_name(char ret[64], int graph, bool late)
{
	snprintf(ret, 64, "MODULE_%020d+" FLAGS, (late ? 900000 : 100000) + graph);
}

static char *metadata_path(const char *package, const char *version)
{
	return mem_format(PACKAGES "%s-%s.dist-info/METADATA", package, version);
}

static void put_package(struct machine *machine, const char *folder, const char *name,
			const char *version)
{
	AUTO(auto_free) char *path = metadata_path(folder, version);
	AUTO(auto_free)
	char *text = mem_format("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version);

	tree_put(machine, path, text, strlen(text), 0644);
}

void programs_install_compiler(struct machine *machine, int compiler)
{
	put_package(machine, "torch_neuronx", "torch-neuronx", "2.1.0");
	put_package(machine, "neuronx_cc", "neuronx-cc", compilers[compiler].version);
}

int programs_compiler_of(struct machine *machine)
{
	for (int compiler = 1; compiler < COMPILERS; compiler++) {
		AUTO(auto_free)
		char *path = metadata_path("neuronx_cc", compilers[compiler].version);

		if (tree_exists(machine, path))
			return compiler;
	}
	return 0;
}
