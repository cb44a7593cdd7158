/*
 * The log of a job that compiles with Neuron: messages of one line, and the summary
 * of single graphs, which comes over several lines between those of other processes.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/cache/kinds/neuron.h"
#include "jobs/cache/kinds/neuron_path.h"
#include "tests/fuzz/log.h"

/* True if the text is taken for the name of a folder before that of a file. */
static bool is_module(const char *text, size_t len)
{
	AUTO(auto_free) char *path = mem_format("%.*s/model.neff", (int)len, text);
	struct compile_kind_words module, place;

	return neuron_find_graph(path, strlen(path), &module, &place) && module.text == path &&
	       module.len == len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	log_check(&neuron_kind, is_module, (const char *)data, size);
	return 0;
}
