/*
 * The log of a job that compiles with Neuron: messages of one line, and the summary
 * of single graphs, which comes over several lines between those of other processes.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/cache/neuron.h"
#include "tests/fuzz/log.h"

static bool is_module(const char *text, size_t len)
{
	return neuron_module(text, len) == len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	log_check(&neuron_kind, is_module, (const char *)data, size);
	return 0;
}
