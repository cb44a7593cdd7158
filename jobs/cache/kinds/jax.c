/*
 * The kind `jax`. Facts about JAX's persistent compilation cache, from its source
 * (jax/_src/lru_cache.py, compilation_cache.py, config.py; 0.10) and from runs:
 *
 * - An entry is one file `<module>-<64 hex>-cache` in the cache folder, written
 *   in place. An existing file is never replaced, so a cut one stays cut: it is
 *   recompiled in every run. `-atime` and `.lockfile` appear only with a size
 *   limit and are no entries.
 * - By default only graphs that took a second or more are stored.
 * - The folder's path is part of the key unless XLA's own caches are off.
 * - Its messages are Python warnings, hidden by default.
 */
#include "jobs/cache/kinds/jax.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/kinds/machine.h"
#include "jobs/cache/verdict/stream_check.h"

#define ENTRY_SUFFIX "-cache"

static const struct kind_variable jax_environment[] = {
	{ "JAX_COMPILATION_CACHE_DIR", NULL },
	{ "JAX_ENABLE_COMPILATION_CACHE", "true" },
	/* Store every graph, however quickly compiled and however small. */
	{ "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0" },
	{ "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1" },
	/* Never evict verified entries. */
	{ "JAX_COMPILATION_CACHE_MAX_SIZE", "-1" },
	/* Make keys independent of the cache's place and of line numbers. */
	{ "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "none" },
	{ "JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY", "false" },
	/* If true, these would compile everything again, or end the job over one bad entry. */
	{ "JAX_COMPILATION_CACHE_CHECK_CONTENTS", "false" },
	{ "JAX_RAISE_PERSISTENT_CACHE_ERRORS", "false" },
	/* Print messages even if the script configures logging otherwise. */
	{ "JAX_LOG_COMPILES", "true" },
	{ "JAX_EXPLAIN_CACHE_MISSES", "true" },
	{ "JAX_LOGGING_LEVEL", "WARNING" },
	{ "JAX_DEBUG_LOG_MODULES", "" },
	{ "PYTHONUNBUFFERED", "1" },
	{ NULL, NULL },
};

/* Variables of JAX, of XLA, and of the compilers of accelerators. */
static const char *const jax_steering[] = {
	"JAX_*",
	"LIBTPU_INIT_ARGS",
	"NEURON_CC_FLAGS",
	"NEURON_FUSE_SOFTMAX",
	"NEURON_LOGICAL_NC_CONFIG",
	"NEURON_PLATFORM_TARGET_OVERRIDE",
	"XLA_*",
	NULL,
};

static bool jax_object(const char *key, struct entry_object *ret)
{
	size_t len = strlen(key), suffix = strlen(ENTRY_SUFFIX);

	if (len <= suffix || strcmp(key + len - suffix, ENTRY_SUFFIX) != 0 ||
	    !jax_is_graph_key(key, len - suffix))
		return false;
	*ret = (struct entry_object){ { key, len - suffix }, ROLE_COMPILED };
	return true;
}

static enum entry_state jax_state(unsigned roles, uint64_t compiled_size)
{
	if (!(roles & ROLE_COMPILED))
		return ENTRY_MISSING;
	return compiled_size == 0 ? ENTRY_EMPTY : ENTRY_DONE;
}

static char *jax_path(const char *graph)
{
	return mem_format("%s" ENTRY_SUFFIX, graph);
}

/* Packages that affect tracing or compilation by their version, or, like zstandard, enter JAX's
 * keys by being installed. By name or by prefix (ending in *). */
static const char *const packages[] = {
	"chex",    "dm-haiku", "einops", "equinox",   "flax",      "jax",
	"jax-*",   "jaxlib",   "keras",  "libtpu*",   "ml-dtypes", "numpy",
	"numpyro", "optax",    "penzai", "zstandard", NULL,
};

static int jax_fingerprint(const struct program_place *place, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *cpu = NULL;

	if (fingerprint_python(place, packages, ret, err) < 0)
		return -1;
	if (json_object_get(*ret, "found"))
		return 0;
	cpu = machine_cpu();
	js_put_str(*ret, "cpu", cpu);
	return 0;
}

const struct compile_kind jax_kind = {
	.name = "jax",
	.caches = true,
	.package = "jaxlib",
	.lasting_hint = "remove host callbacks (jax.debug.print, io_callback) from the compiled "
			"functions: JAX never stores graphs with them",
	.environment = jax_environment,
	.steering = jax_steering,
	.scan = jax_scan,
	.object = jax_object,
	.state = jax_state,
	.path = jax_path,
	.inspect = stream_check_inspect,
	.fingerprint = jax_fingerprint,
};
