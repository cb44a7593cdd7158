/*
 * The kind `neuron`. Facts about the Neuron persistent cache, from the Neuron documentation
 * (neuron-caching, the page on neuron_parallel_compile), the front-end's source, and published
 * caches and logs:
 *
 * - A graph is one folder `neuronxcc-<version>+<build>/MODULE_<graph>+<flags>/`
 *   with model.hlo_module.pb (the input; older: model.hlo.pb), compile_flags.json
 *   (older: .txt), model.neff (compiled), model.done (empty: it is good), and
 *   after a failure model.log. During compilation there is an empty *.lock beside them. Below an
 *   s3:// prefix the names are the same.
 * - Layouts with compile_flags.txt or model.hlo.pb were never seen with a
 *   model.done; compilers from 2.15.128 on write it.
 * - A failure is stored and replayed, not tried again, until model.log and the files written with
 *   it are gone or NEURON_CC_FLAGS holds --retry_failed_compilation. A failed compilation may leave
 *   a model.neff of a few bytes, so its existence proves nothing.
 * - <graph> is up to 20 decimal or hex digits; its computation is not documented.
 *   <flags> are the first 8 hex digits of the MD5 over the content of the flags
 *   file: flags joined by blanks up to about 2.14.182, then the JSON list of them
 *   as Python writes it, from 2.16 on beginning with --target. So order and spelling of flags
 *   matter. The digits are not computed here, only compared by name.
 * - `--cache_dir` in NEURON_CC_FLAGS beats NEURON_COMPILE_CACHE_URL.
 */
#include "jobs/cache/kinds/neuron.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/kinds/neuron_path.h"

/* A compiled graph is larger than this; the file that a failure leaves is smaller (5 bytes were
 * seen). */
#define NEFF_MIN 1024

static const struct kind_variable neuron_environment[] = {
	{ "NEURON_COMPILE_CACHE_URL", NULL },
	{ "PYTHONUNBUFFERED", "1" }, /* so that ranks print whole lines in time */
	{ NULL, NULL },
};

/* Variables of the runtime, and of the front-end's mode of work. */
static const char *const neuron_neutral[] = {
	"NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE",
	"NEURON_NUM_RECENT_MODELS_TO_KEEP",
	"NEURON_PARALLEL_COMPILE_DUMP_RESULTS",
	"NEURON_PARALLEL_COMPILE_MAX_RETRIES",
	"NEURON_RT_*",
	NULL,
};

/* Variables of the compiler, of the framework that traces for it, and of the libraries that split
 * gradients into buckets. Sources: Neuron SDK, torch-neuronx environment variables; torch-xla. */
static const char *const neuron_steering[] = {
	"ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB",
	"BUCKET_CAP_MB",
	"NEURON_*",
	"PT_XLA_*",
	"TORCH_NEURONX_*",
	"XLA_*",
	NULL,
};

/* Roles of a graph's files; other files in its folder are left alone. */
static const struct neuron_part {
	const char *name;
	unsigned role;
} parts[] = {
	{ "compile_flags.json", ROLE_FLAGS },  { "compile_flags.txt", ROLE_FLAGS | ROLE_OLD },
	{ "model.done", ROLE_MARKER },         { "model.hlo.pb", ROLE_INPUT | ROLE_OLD },
	{ "model.hlo_module.pb", ROLE_INPUT }, { "model.log", ROLE_LOG },
	{ "model.neff", ROLE_COMPILED },
};

static unsigned role_of(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < STK_LENGTH(parts); i++)
		if (strcmp(parts[i].name, name) == 0)
			return parts[i].role;
	/* Locking below an s3:// prefix is not documented, so a lock is known by its suffix. */
	return len > 5 && strcmp(name + len - 5, ".lock") == 0 && !strchr(name, '/') ? ROLE_LOCK
										     : 0;
}

/* The length of `PLACE/MODULE` at the beginning of a key; 0 if not found. */
static size_t graph_length(const char *key)
{
	size_t place = strcspn(key, "/"), module;

	if (key[place] != '/' || !neuron_is_place(key, place))
		return 0;
	module = neuron_module_len(key + place + 1, strlen(key + place + 1));
	return module ? place + 1 + module : 0;
}

static bool neuron_object(const char *key, struct entry_object *ret)
{
	size_t graph = graph_length(key);
	unsigned role = graph && key[graph] == '/' ? role_of(key + graph + 1) : 0;

	if (role == 0)
		return false;
	*ret = (struct entry_object){ { key, graph }, role };
	return true;
}

static char *neuron_prefix(const char *graph)
{
	size_t len = graph_length(graph);

	return len && graph[len] == '\0' ? mem_format("%s/", graph) : NULL;
}

static enum entry_state neuron_state(unsigned roles, uint64_t compiled_size)
{
	bool big = (roles & ROLE_COMPILED) && compiled_size > NEFF_MIN;

	/* The marker is written last, so all files before it are whole; a lock beside it is about
	 * to be dropped, or stale. */
	if (big && (roles & ROLE_MARKER))
		return ENTRY_DONE;
	/* The files may be half written, so their state is not known yet. */
	if (roles & ROLE_LOCK)
		return ENTRY_LOCKED;
	/* Old layouts had no marker: judge by the size. A failure leaves only a small file, so a
	 * log beside a large one is from an earlier attempt. */
	if (big && (roles & ROLE_OLD))
		return ENTRY_DONE;
	/* The compiler would replay this failure, whatever other files there are. */
	if (roles & ROLE_LOG)
		return ENTRY_FAILED;
	/* Large but not marked: its writer, or its upload, was interrupted. Small: the rest of a
	 * failure without its log. */
	if (roles & ROLE_COMPILED)
		return compiled_size == 0 ? ENTRY_EMPTY : ENTRY_PARTIAL;
	/* A marker without a graph would make the front-end skip the graph. */
	if (roles & ROLE_MARKER)
		return ENTRY_PARTIAL;
	return roles & ROLE_INPUT ? ENTRY_TODO : ENTRY_MISSING;
}

/* Packages that affect tracing or compilation by their version. */
static const char *const packages[] = {
	"accelerate",   "libneuronxla",         "neuronx-cc", "neuronx-distributed*",
	"numpy",        "optimum-neuron",       "peft",       "torch",
	"torch-neuron", "torch-neuronx",        "torch-xla",  "torchvision",
	"transformers", "transformers-neuronx", "trl",        NULL,
};

static int neuron_fingerprint(const struct program_place *place, json_t **ret, struct err **err)
{
	return fingerprint_python(place, packages, ret, err);
}

static struct compile_kind_words neuron_writer(const char *path, const char **ret_package)
{
	const char *end = strchr(path, '/');
	size_t len = end ? (size_t)(end - path) : 0, word = strlen(NEURON_PLACE_WORD);

	*ret_package = "neuronx-cc";
	/* A version 0.… is that of a compiler which could not tell its own. */
	if (!neuron_is_place(path, len) || path[word] == '0')
		return (struct compile_kind_words){ 0 };
	return (struct compile_kind_words){ path + word, len - word };
}

const struct compile_kind neuron_kind = {
	.name = "neuron",
	.caches = true,
	.package = "neuronx-cc",
	.placed = true,
	/* A URL that begins with s3:// selects the compiler's own S3 backend. Only with it do the
	 * nodes of a job, and other jobs, see each other's locks. */
	.opens_urls = true,
	.front_end = "neuron_parallel_compile",
	.front_variable = "RUN_NEURON_PARALLEL_COMPILE",
	.workers_option = "--num_parallel",
	.retry_variable = "NEURON_CC_FLAGS",
	.retry_words = "--retry_failed_compilation",
	.unlock_command = "neuron_parallel_compile --command clear-locks",
	.other_cache_hint = "remove --cache_dir from NEURON_CC_FLAGS, because it overrides "
			    "NEURON_COMPILE_CACHE_URL",
	.environment = neuron_environment,
	.neutral = neuron_neutral,
	/* This variable belongs to the runtime by its name, but graphs depend on it: the number of
	 * physical cores per logical core. */
	.not_neutral = "NEURON_RT_VIRTUAL_CORE_SIZE",
	.steering = neuron_steering,
	.scan = neuron_scan,
	.lines = &neuron_summary,
	.object = neuron_object,
	.state = neuron_state,
	.prefix = neuron_prefix,
	.writer = neuron_writer,
	.first_error = neuron_first_error,
	.fingerprint = neuron_fingerprint,
};
