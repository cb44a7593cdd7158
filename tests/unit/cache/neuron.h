/*
 * What the tests of the kind `neuron` share: lines as the real programs print them,
 * in three generations of prefixes, and cache folders in their layouts.
 */
#ifndef STK_TESTS_UNIT_CACHE_NEURON_H
#define STK_TESTS_UNIT_CACHE_NEURON_H

#include "tests/unit/cache/support.h"

#define PLACE "neuronxcc-2.15.128.0+56dc5a86"
#define MOD_A "MODULE_10290217891379219021+3cc9a3cb"
#define MOD_B "MODULE_4377261990921332961+3cc9a3cb"
#define MOD_C "MODULE_02e0833b58066ea94f2c+2c2d707e"
#define MOD_D "MODULE_77+e30acd3a"

#define PATH_OF(cache, module) cache "/" PLACE "/" module

/* Three generations; the time is that of the first one's format. */
#define OLD(time) "2023-04-01 12:" time ".000123: INFO ||NCC_WRAPPER||: "
#define MID(time) "2024-05-02 12:" time ".000123:  4711  INFO ||NEURON_CC_WRAPPER||: "
#define NEW(time) "2026-06-03 12:" time ".000123:  4711  [INFO]: "

#define N_CACHE(url)  "Compile cache path: " url "\n"
#define N_HIT(module) "Using a cached neff at " PATH_OF("/cache", module) "/model.neff\n"
#define N_MISS(module)                                                                             \
	"Call compiler with cmd: neuronx-cc compile --target=trn1 --framework=XLA "                \
	"/tmp/no-user/neuroncc_compile_workdir/5a/model." module ".hlo_module.pb --output "        \
	"/tmp/no-user/neuroncc_compile_workdir/5a/model." module ".neff --verbose=35\n"
#define N_MISS_2023(module)                                                                        \
	"Call compiler with cmd: ['neuronx-cc', '--target=trn1', 'compile', '--framework', "       \
	"'XLA', '/tmp/workdir/model." module ".hlo.pb', '--output', '/tmp/workdir/model." module   \
	".neff']\n"
#define N_DONE(module) "Compilation Successfully Completed for model." module ".hlo_module.pb\n"
#define N_EXTRACTED(module)                                                                        \
	"Extracting graphs (" PATH_OF("/cache", module) "/model.hlo_module.pb) for ahead-of-time " \
							"parallel compilation. No compilation "    \
							"was done.\n"
#define N_CACHED_FAILURE(module)                                                                   \
	"Got a cached failed neff at " PATH_OF(                                                    \
		"/cache", module) "/model.neff. Will skip compilation, please set "                \
				  "--retry_failed_compilation for recompilation\n"
#define N_FAILED(module, why)                                                                      \
	"Failed compilation with ['neuronx-cc', 'compile', '--target=trn1', "                      \
	"'/tmp/workdir/model." module ".hlo_module.pb', '--output', '/tmp/workdir/model." module   \
	".neff']: " why "\n"
#define N_WAITING(module, minutes)                                                                 \
	"Another process must be compiling " PATH_OF(                                              \
		"/cache", module) "/model.hlo_module.pb, been waiting for: " minutes " minutes\n"
#define N_NOTHING                                                                                  \
	"No todo hlos found in cache or hlo_tasklist, parallel_compile return before spawning "    \
	"workers....\n"

/* A row of the summary with a launcher's prefix before every line. */
#define N_ROW(launcher, module, status, time)                                                      \
	launcher "        \"" PATH_OF("/cache", module) "/model.hlo_module.pb\": {\n" launcher     \
							"            \"status\": " status          \
							",\n" launcher                             \
							"            \"retry\": 0" time            \
							"\n" launcher "        },\n"
#define N_TIME(seconds) ",\n            \"compile_time\": " seconds
#define N_TOTALS(graphs, good, bad)                                                                \
	MID("00:00")                                                                               \
	"Total graphs: " graphs                                                                    \
	"\n" MID("00:00") "Total successful compilations: " good                                   \
			  "\n" MID("00:00") "Total failed compilations: " bad "\n"

static inline const struct compile_kind *neuron(void)
{
	return compile_kind_find("neuron");
}

static inline void neuron_scan_text(struct graph_tally *tally, int node, const char *text)
{
	graph_tally_scan(tally, neuron(), node, text, strlen(text));
}

static inline struct graph_tally *neuron_book_of(const char *text)
{
	struct graph_tally *tally = graph_tally_new();

	neuron_scan_text(tally, 0, text);
	return tally;
}

static inline void put_part(const char *dir, const char *module, const char *file, size_t size)
{
	AUTO(auto_free) char *name = mem_format(PLACE "/%s/%s", module, file);
	AUTO(auto_free) char *bytes = mem_zero(size + 1, 1);

	memset(bytes, 'n', size);
	write_file(dir, name, bytes, size);
}

static inline void put_part_text(const char *dir, const char *module, const char *file,
				 const char *text)
{
	AUTO(auto_free) char *name = mem_format(PLACE "/%s/%s", module, file);

	write_text(dir, name, text);
}

static inline bool has_part(const char *dir, const char *module, const char *file)
{
	AUTO(auto_free) char *path = mem_format("%s/" PLACE "/%s/%s", dir, module, file);

	return fs_exists(path);
}

/* Extracted, not compiled. */
static inline void put_todo(const char *dir, const char *module)
{
	put_part(dir, module, "model.hlo_module.pb", 300);
	put_part_text(dir, module, "compile_flags.json", "[\"--target=trn1\"]");
}

static inline void put_done(const char *dir, const char *module)
{
	put_todo(dir, module);
	put_part(dir, module, "model.neff", 5000);
	put_part(dir, module, "model.done", 0);
}

/* Makes an entry like a real failed one of compiler 2.12.54. */
static inline void put_failed(const char *dir, const char *module, const char *log)
{
	put_todo(dir, module);
	put_part_text(dir, module, "model.log", log);
	put_part(dir, module, "model.neff", 5);
}

static inline struct graph_tally_counts neuron_counts(const struct graph_tally *tally)
{
	struct graph_tally_counts counts;

	graph_tally_counts(tally, &counts);
	return counts;
}

#endif
