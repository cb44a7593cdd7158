/* The log of a job that compiles with JAX: its messages, merged and cut by launchers. */
#include "tests/fuzz/fuzz.h"

#include "jobs/cache/kinds/jax.h"
#include "tests/fuzz/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	log_check(&jax_kind, jax_is_graph_key, (const char *)data, size);
	return 0;
}
