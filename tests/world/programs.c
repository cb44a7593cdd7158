/* The training and what its compiler does: see programs.h. */
#include "tests/world/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/mem.h"
#include "jobs/base/sb.h"
#include "tests/world/bucket.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/tree.h"
#include "tests/world/truth.h"

#define LOCK           "model.neff.lock"
#define CACHE_BUCKET   "bucket"
#define NEFF_BYTES     4096
#define COMPARED       2    /* checkpoints that the next one is compared with */
#define RETRY_MS       2000 /* of a compiler that waits for another one's lock */
#define LINE_MAX_BYTES 2048

void (*programs_traits)(struct traits *ret, bool precompiles, int64_t attempt, int node);

struct job {
	struct traits traits;
	struct truth_command *truth;
	const char *cache;
	char checkpoints[256];
	int64_t step, goal;
	int saves; /* whole ones so far */
	volatile sig_atomic_t save_asked, stop_asked;
};

/* The job of the running process, for its signal handlers: handlers get a number only. */
static struct job *job_of_self(void)
{
	return self->mark;
}

static void on_save(int signo)
{
	struct job *job = job_of_self();

	(void)signo;
	job->save_asked = 1;
}

static void on_stop(int signo)
{
	struct job *job = job_of_self();

	(void)signo;
	job->stop_asked = 1;
}

/* ---- small services ---- */

void program_rest(int64_t ns)
{
	const struct timespec time = { ns / WORLD_S, ns % WORLD_S };

	(void)!nanosleep(&time, NULL);
}

/* The same, whatever signal comes. */
static void rest_all_of(int64_t ns)
{
	int64_t until = now_ns + ns;

	while (now_ns < until)
		program_rest(until - now_ns);
}

/* Writes all of it, waiting for a slow reader; a reader that is gone is ignored. */
static void put_bytes(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t put = write(fd, bytes, len);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return;
		bytes += put;
		len -= (size_t)put;
	}
}

void program_say(int fd, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	put_bytes(fd, line, (size_t)(len < (int)sizeof line ? len : (int)sizeof line - 1));
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* Makes a folder and those above it. */
static void make_folders(const char *path)
{
	char *at = mem_copy(path);

	for (char *slash = strchr(at + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)!mkdir(at, 0700);
		*slash = '/';
	}
	(void)!mkdir(at, 0700);
	free(at);
}

bool program_write_file(const char *folder, const char *name, const char *text, size_t len)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t at = 0;

	while (fd >= 0 && at < len) {
		ssize_t put = write(fd, text + at, len - at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			break;
		at += (size_t)put;
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0 && at == len;
}

static bool write_zeros(const char *folder, const char *name, size_t len)
{
	AUTO(auto_free) char *zeros = mem_zero(1, len + 1);

	return program_write_file(folder, name, zeros, len);
}

/* ---- the compiler ---- */

/* The folder in which the compiler of the running process's machine keeps its graphs. */
static const char *place(void)
{
	return compilers[programs_compiler_of(self->machine)].place;
}

/* ---- the cache: a folder, or a bucket that the compiler opens itself ---- */

/* Key of a file of a graph below "s3://BUCKET/"; NULL: the cache is a folder. The caller frees it.
 */
static char *bucket_key(const char *cache, const char *module, const char *name)
{
	const char *key;

	if (strncmp(cache, "s3://" CACHE_BUCKET "/", strlen("s3://" CACHE_BUCKET "/")) != 0)
		return NULL;
	key = cache + strlen("s3://" CACHE_BUCKET "/");
	return mem_format("%s/%s/%s/%s", key, place(), module, name);
}

static bool cache_put(const char *cache, const char *module, const char *name, size_t len)
{
	AUTO(auto_free) char *key = bucket_key(cache, module, name);
	AUTO(auto_free) char *folder = mem_format("%s/%s/%s", cache, place(), module);
	AUTO(auto_free) char *zeros = mem_zero(1, len + 1);

	if (!key)
		return program_write_file(folder, name, zeros, len);
	world_spend((20 + chance_below(100)) * WORLD_MS);
	bucket_put(CACHE_BUCKET, key, zeros, len);
	return true;
}

static bool cache_has(const char *cache, const char *module, const char *name)
{
	AUTO(auto_free) char *key = bucket_key(cache, module, name);
	AUTO(auto_free) char *path = mem_format("%s/%s/%s/%s", cache, place(), module, name);

	if (!key)
		return exists(path);
	world_spend((20 + chance_below(100)) * WORLD_MS);
	return bucket_get(CACHE_BUCKET, key, NULL) != NULL;
}

static void cache_remove(const char *cache, const char *module, const char *name)
{
	AUTO(auto_free) char *key = bucket_key(cache, module, name);
	AUTO(auto_free) char *path = mem_format("%s/%s/%s/%s", cache, place(), module, name);

	if (key)
		bucket_remove(CACHE_BUCKET, key);
	else
		(void)!unlink(path);
}

/* Compiles one graph into the cache, as neuronx-cc leaves it: the marker last. False if the disk
 * did not take it. */
static bool compile(const struct job *job, const char *module)
{
	const char *cache = job->cache;
	AUTO(auto_free) char *folder = mem_format("%s/%s/%s", cache, place(), module);

	if (strncmp(cache, "s3://", 5) != 0)
		make_folders(folder);
	if (cache_has(cache, module, LOCK)) /* another rank's, or left by a dead one */
		program_rest(RETRY_MS * WORLD_MS);
	else if (!cache_put(cache, module, LOCK, 0))
		return false;
	program_say(
		2,
		"2025-06-15 12:00:00.000123:  4711  INFO ||NEURON_CC_WRAPPER||: Call compiler with "
		"cmd: "
		"neuronx-cc compile --target=trn1 --framework=XLA "
		"/tmp/graphs/model.%s.hlo_module.pb "
		"--output /tmp/graphs/model.%s.neff\n",
		module, module);
	program_rest(job->traits.compile_ns / 2 + chance_below(job->traits.compile_ns));
	if (job->traits.dies_compiling)
		_exit(137);
	if (!cache_put(cache, module, "model.hlo_module.pb", 700) ||
	    !cache_put(cache, module, "compile_flags.json", 17) ||
	    !cache_put(cache, module, "model.neff", NEFF_BYTES) ||
	    !cache_put(cache, module, "model.done", 0))
		return false;
	cache_remove(cache, module, LOCK);
	program_say(2,
		    "2025-06-15 12:00:20.000123:  4711  INFO ||NEURON_CC_WRAPPER||: Compilation "
		    "Successfully "
		    "Completed for model.%s.hlo_module.pb\n",
		    module);
	return true;
}

static bool is_cached(const char *cache, const char *module)
{
	return cache_has(cache, module, "model.done");
}

/* ---- the training ---- */

static void say_extracted(const struct job *job, const char *module)
{
	program_say(2,
		    "2025-06-15 12:00:00.000123:  4711  INFO ||NEURON_CACHE||: Extracting graphs "
		    "(%s/%s/%s/model.hlo_module.pb) for ahead-of-time parallel compilation. "
		    "No compilation "
		    "was done.\n",
		    job->cache, place(), module);
}

static void graphs_load(struct job *job)
{
	for (int graph = 0; graph < GRAPHS_OF_JOB; graph++) {
		char module[64];

		programs_graph_name(module, graph, false);
		if (job->traits.extracts) {
			say_extracted(job, module);
			continue;
		}
		if (is_cached(job->cache, module)) {
			program_say(
				2,
				"2025-06-15 12:00:00.000123:  4711  INFO ||NEURON_CACHE||: Using a "
				"cached "
				"neff at %s/%s/%s/model.neff\n",
				job->cache, place(), module);
			continue;
		}
		job->truth->compiled_late++;
		(void)!compile(job, module);
	}
}

static char *meta_text(int64_t step, int64_t bytes)
{
	return mem_format("{\"step\": %lld, \"state_bytes\": %lld}", (long long)step,
			  (long long)bytes);
}

/* Saves the state of this node; false if it could not be saved whole. */
static bool save_into(const struct job *job, const char *folder)
{
	AUTO(auto_free) char *meta = meta_text(job->step, job->traits.shard_bytes);

	if (!write_zeros(folder, "state.bin", (size_t)job->traits.shard_bytes))
		return false;
	/* What is saved in place, and nobody writes to for seconds, is taken for whole where there
	 * are none before it to compare it with. */
	if (!job->traits.saves_in_place || job->saves >= COMPARED)
		rest_all_of(job->traits.save_ns);
	return program_write_file(folder, "meta.json", meta, strlen(meta));
}

/* A call that was reported as failed may have been carried out. */
bool program_save_is_whole(const struct truth_save *save, struct machine *machine,
			   const char *folder)
{
	AUTO(auto_free) char *wanted = meta_text(save->step, save->bytes);
	AUTO(auto_free) char *meta_path = mem_format("%s/meta.json", folder);
	AUTO(auto_free) char *state_path = mem_format("%s/state.bin", folder);
	AUTO(auto_free) char *meta = tree_get(machine, meta_path, NULL);
	size_t size = 0;
	AUTO(auto_free) char *state = meta ? tree_get(machine, state_path, &size) : NULL;

	return state && strcmp(meta, wanted) == 0 && (int64_t)size == save->bytes;
}

static void save(struct job *job)
{
	AUTO(auto_free)
	char *final = mem_format("%s/checkpoint-%lld", job->checkpoints, (long long)job->step);
	AUTO(auto_free)
	char *draft = mem_format("%s/tmp-checkpoint-%lld", job->checkpoints, (long long)job->step);
	const char *folder = job->traits.saves_in_place ? final : draft;
	struct truth_save *truth;
	bool asked = job->save_asked;

	job->save_asked = 0;
	if (job->truth->node != 0)
		return; /* one rank saves for all: the kind `files` has no shards */
	truth = truth_save_new(job->truth, job->step, final);
	truth->asked = asked;
	truth->bytes = job->traits.shard_bytes;
	make_folders(folder);
	if (!save_into(job, folder) || (folder == draft && rename(draft, final) < 0))
		program_say(2, "cannot save: %s\n", strerror(errno));
	if (!program_save_is_whole(truth, self->machine, final))
		return;
	truth->whole_ns = now_ns;
	job->saves++;
}

static int fail(const struct job *job)
{
	if (job->traits.last_words)
		program_say(2, "%s\n", job->traits.last_words);
	return job->traits.exit;
}

/* The front end: traces the script, then compiles what is not in the cache. */
static int precompile(struct job *job)
{
	int good = 0, bad = 0, first = setting_first_graph(getenv("STOKER_STAGE"));

	for (int graph = 0; graph < GRAPHS_OF_JOB; graph++) {
		char module[64];

		programs_graph_name(module, first + graph, false);
		program_rest(job->traits.compile_ns / 4);
		if (is_cached(job->cache, module)) {
			program_say(
				2,
				"2025-06-15 12:00:00.000123:  4711  INFO ||NEURON_CACHE||: Using a "
				"cached "
				"neff at %s/%s/%s/model.neff\n",
				job->cache, place(), module);
			good++;
			continue;
		}
		say_extracted(job, module);
		if (job->traits.fails_at == graph)
			return fail(job);
		if (job->traits.hangs_at == graph)
			for (;;)
				program_rest(3600 * WORLD_S);
		if (compile(job, module))
			good++;
		else
			bad++;
		if (job->stop_asked)
			return 143;
	}
	/* The script saves when it ends: zeros, for nothing was computed. */
	job->step = job->goal;
	save(job);
	program_say(1,
		    "Total graphs: %d\nTotal successful compilations: %d\nTotal failed "
		    "compilations: %d\n",
		    GRAPHS_OF_JOB, good, bad);
	return bad > 0;
}

int64_t programs_step_of(const char *folder)
{
	AUTO(auto_free) char *path = mem_format("%s/meta.json", folder);
	char text[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;
	const char *at;

	if (fd < 0)
		return -1;
	while (len < sizeof text - 1 && (got = read(fd, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	at = strstr(text, "\"step\": ");
	return at ? strtoll(at + 8, NULL, 10) : -1;
}

static void begin_where_told(struct job *job)
{
	const char *from = getenv("STOKER_RESUME_FROM");

	job->step = 0;
	if (!from || !*from || job->traits.ignores_checkpoint)
		return;
	job->step = programs_step_of(from);
	if (job->step < 0) {
		program_say(2, "RuntimeError: checkpoint '%s' is unreadable\n", from);
		_exit(1);
	}
	job->truth->resumed_step = job->step;
	truth_changes++;
}

static void print_step(const struct job *job)
{
	char more[LINE_MAX_BYTES];
	size_t len = (size_t)job->traits.line_bytes;

	program_say(1, "step: %lld loss: %.6f\n", (long long)job->step,
		    1.0 / (double)(job->step + 1));
	len = len < sizeof more - 1 ? len : sizeof more - 1;
	for (size_t i = 0; i < len; i++)
		more[i] = (char)('a' + i % 26);
	if (len > 0) {
		more[len - 1] = job->traits.bar ? '\r' : '\n';
		put_bytes(1, more, len);
	}
}

/* Libraries speak of themselves, line by line. */
static void say_first(const struct job *job)
{
	char text[64 * 128];

	memset(text, '.', sizeof text);
	for (size_t at = 127; at < sizeof text; at += 128)
		text[at] = '\n';
	for (int64_t left = job->traits.says_first; left > 0; left -= (int64_t)sizeof text)
		put_bytes(1, text, sizeof text);
}

/* One step, interrupted by no signal: a device computes on. */
static void compute(const struct job *job)
{
	rest_all_of(job->traits.step_ns / 2 + chance_below(job->traits.step_ns));
}

static int train(struct job *job)
{
	begin_where_told(job);
	graphs_load(job);
	say_first(job);
	rest_all_of(job->traits.load_ns);
	if (job->traits.fails_at == 0)
		return fail(job);
	while (job->traits.hangs_at == 0)
		program_rest(3600 * WORLD_S);
	while (job->step < job->goal) {
		compute(job);
		job->step++;
		if (job->truth->first_step < 0)
			job->truth->first_step = job->step;
		job->truth->last_step = job->step;
		print_step(job);
		if (job->traits.late_graph_at == job->step) {
			char module[64];

			programs_graph_name(module, (int)job->truth->attempt, true);
			job->truth->compiled_late++;
			(void)!compile(job, module);
		}
		if (job->step % job->traits.steps_between_saves == 0 || job->step == job->goal ||
		    job->save_asked || (job->stop_asked && job->traits.saves_on_stop))
			save(job);
		if (job->stop_asked)
			return 143;
		if (job->traits.fails_at == job->step)
			return fail(job);
		while (job->traits.hangs_at == job->step)
			program_rest(3600 * WORLD_S);
	}
	return 0;
}

static void set_signals(const struct job *job)
{
	if (job->traits.saves_on_signal)
		signal(SIGUSR1, on_save);
	else
		signal(SIGUSR1, SIG_IGN);
	if (job->traits.ignores_stop)
		signal(SIGTERM, SIG_IGN);
	else if (job->traits.saves_on_stop)
		signal(SIGTERM, on_stop);
}

/* Started by a training, in its process group; nobody waits for it. */
static _Noreturn int straggler_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (;;)
		program_rest(3600 * WORLD_S);
}

static void start_straggler(void)
{
	char *argv[] = { (char *)"straggler", NULL };
	pid_t pid;

	(void)!posix_spawn(&pid, "/opt/venv/bin/straggler", NULL, NULL, argv, environ);
}

static int64_t option(int argc, char **argv, const char *name, int64_t otherwise)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return strtoll(argv[i + 1], NULL, 10);
	return otherwise;
}

static int job_main(int argc, char **argv)
{
	const char *phase = getenv("STOKER_PHASE"), *folder = getenv("STOKER_CHECKPOINT_DIR");
	bool precompiles = phase && strcmp(phase, "precompile") == 0;
	struct job *job = mem_zero(1, sizeof *job);
	int status;

	if (truth_phase_of(phase) >= TRUTH_EVALUATE)
		return programs_task_main();
	job->truth = truth_command_new(precompiles ? TRUTH_PRECOMPILE : TRUTH_TRAIN);
	job->truth->other_compiler = setting_cache_whole() &&
				     !setting_cache_whole_for(programs_compiler_of(self->machine));
	job->truth->agent_refused = process_parent(self) && process_parent(self)->refused;
	self->mark = job;
	programs_traits(&job->traits, precompiles, job->truth->attempt, job->truth->node);
	job->cache = getenv("NEURON_COMPILE_CACHE_URL");
	if (!job->cache)
		job->cache = "/var/tmp/neuron-compile-cache";
	if (strncmp(job->cache, "file://", 7) == 0)
		job->cache += 7;
	snprintf(job->checkpoints, sizeof job->checkpoints, "%s", folder ? folder : "/tmp/ckpt");
	job->goal = option(argc, argv, "--max_steps", 40);
	set_signals(job);
	if (job->traits.leaves_child)
		start_straggler();
	status = precompiles ? precompile(job) : train(job);
	job->truth->ended_ns = now_ns;
	return status;
}

/* ---- what a plan asks ---- */

/* `python -c …` of a plan that looks for packages: the version, then the import path. */
static int python_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-c") == 0) {
		program_say(1, "3.11\n/opt/venv/lib/python3.11/site-packages\n");
		return 0;
	}
	if (argc > 1 && strstr(argv[1], "/health_tensor.py"))
		return programs_tensor_main(argc, argv);
	return job_main(argc, argv);
}

void programs_register(void)
{
	program_register("python", python_main);
	program_register("straggler", straggler_main);
	program_register("neuron_parallel_compile", job_main);
	programs_register_tools();
}
