/* What a check-up does for each kind of accelerator: see health_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/node/health/health_internal.h"

static const struct health_kind kinds[] = {
	{ .accelerator = ACCELERATOR_NEURON,
	  .tool = "neuron-ls",
	  .devices = health_neuron_devices,
	  .counters = health_neuron_counters,
	  .collective = health_nccom_collective,
	  .backend = "xla",
	  .collectives = "nccom-test" },
	{ .accelerator = ACCELERATOR_NVIDIA,
	  .tool = "nvidia-smi",
	  .devices = health_nvidia_devices,
	  .counters = health_nvidia_counters,
	  .collective = health_nccl_collective,
	  .backend = "nccl" },
};

static bool is_here(const struct checkup *c, const struct health_kind *kind)
{
	AUTO(auto_free) char *program = health_tool_find(&c->env, kind->tool);

	return program != NULL;
}

void health_find_kind(struct checkup *c)
{
	const struct accelerator *told = agent_config_accelerator(c->config);

	c->kind = NULL;
	for (size_t i = 0; i < STK_LENGTH(kinds) && !c->kind; i++)
		if (told ? strcmp(kinds[i].accelerator, told->name) == 0 : is_here(c, &kinds[i]))
			c->kind = &kinds[i];
	if (!c->kind)
		c->kind = &kinds[0];
	c->accelerator = accelerator_find(c->kind->accelerator);
}
