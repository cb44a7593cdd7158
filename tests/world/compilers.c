/* Which compilers there are, and which of them a machine has: see programs.h. */
#include "tests/world/programs.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "tests/world/tree.h"

#define PACKAGES "/opt/venv/lib/python3.11/site-packages/"

const struct compiler compilers[COMPILERS] = {
	{ "2.14.0", "neuronxcc-2.14.0+a1b2c3d4" },
	{ "2.15.0", "neuronxcc-2.15.0+b2c3d4e5" },
};

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
