/*
 * The table of accelerators: see accelerator.h.
 *
 * Sources. Neuron on AWS Batch: AWS's sample (aws-neuron-samples, aws-batch/llama2), which maps the
 * device files, as Batch has no such resource; GPUs: RegisterJobDefinition, resourceRequirements.
 * Variables of Neuron: setup-trn1-multi-node-execution of its SDK, which wants RDMA in any case;
 * that it needs EFA between nodes: aws-neuron-sdk issue 742 (inf2, trn1.2xlarge).
 * With FI_EFA_USE_DEVICE_RDMA=1 libfabric aborts where an interface has none (g4dn, p3dn), and
 * without it uses what is there (fi_efa.7), so on GPUs it is left to it. NCCL_SOCKET_IFNAME and
 * CUDA_VISIBLE_DEVICES: the guides of NCCL and CUDA. The words of torchrun:
 * torch/distributed/run.py of PyTorch 2.1 to 2.9.
 */
#include "jobs/base/accelerator.h"

#include <string.h>

#include "jobs/base/mem.h"

static const struct accelerator rows[] = {
	{ .name = ACCELERATOR_NEURON,
	  .noun = "Neuron device",
	  .count = "devices",
	  .units = "cores",
	  .unit = "core",
	  .files = "/dev/neuron",
	  .compilers = "neuron jax none",
	  .visible = "NEURON_RT_VISIBLE_CORES",
	  .limit = "NEURON_RT_NUM_CORES",
	  .ranges = true,
	  .interface = VAR_CCOM_IFNAME,
	  .meeting = VAR_NEURON_ROOT_COMM,
	  .timeout = VAR_NEURON_EXEC_TIMEOUT,
	  .rdma = true,
	  .needs_efa = true },
	{ .name = ACCELERATOR_NVIDIA,
	  .noun = "GPU",
	  .count = "gpus",
	  .units = "gpus",
	  .unit = "GPU",
	  .resource = "GPU",
	  .compilers = "jax none",
	  .visible = "CUDA_VISIBLE_DEVICES",
	  .word = "gpu",
	  .interface = VAR_NCCL_IFNAME,
	  .meeting = VAR_COUNT,
	  .timeout = VAR_COUNT },
};

const struct accelerator *accelerator_next(const struct accelerator *row)
{
	row = row ? row + 1 : rows;
	return row < rows + STK_LENGTH(rows) ? row : NULL;
}

const struct accelerator *accelerator_find(const char *name)
{
	const struct accelerator *row = NULL;

	while (name && (row = accelerator_next(row)))
		if (strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

/* True if the word is one of those with blanks between them. */
static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

bool accelerator_compiles(const struct accelerator *row, const char *compiler)
{
	return row && has_word(row->compilers, compiler);
}

const struct accelerator *accelerator_compiled(const char *compiler)
{
	const struct accelerator *row = NULL, *found = NULL;

	while (compiler && (row = accelerator_next(row))) {
		if (!accelerator_compiles(row, compiler))
			continue;
		if (found)
			return NULL;
		found = row;
	}
	return found;
}

const struct accelerator *accelerator_of(const json_t *instance)
{
	const char *name = js_str(instance, "accelerator");
	const struct accelerator *first = accelerator_next(NULL);

	if (name)
		return accelerator_find(name);
	return js_int(instance, first->count, 0) > 0 || js_int(instance, first->units, 0) > 0
		       ? first
		       : NULL;
}

int64_t accelerator_count(const json_t *instance)
{
	const struct accelerator *row = accelerator_of(instance);

	return row ? js_int(instance, row->count, 0) : 0;
}

int64_t accelerator_units(const json_t *instance)
{
	const struct accelerator *row = accelerator_of(instance);

	return row ? js_int(instance, row->units, 0) : 0;
}
