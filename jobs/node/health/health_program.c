/* Lets this node's cores compute and talk to each other: see health.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/node/health/health_internal.h"
#include "jobs/node/health/health_parse.h"
#include "jobs/node/health/health_programs.h"
#include "jobs/node/setup/network.h"

#define SIGNAL_MAX       64  /* signals of Linux */
#define CANNOT_RUN       126 /* exit statuses of a shell, env and the loader of libraries */
#define NOT_THERE        127
#define REPORT_MAX_BYTES ((size_t)1 << 20)
#define ROOT_PORT        63182 /* meeting port of nccom-test's ranks on several machines */
#define ROOT_ABOVE       40 /* offset of torchrun's meeting port: above the ports of all rounds */

/* Writes the named program to a file in our folder and returns its path; NULL with an error. */
static char *put_program(const struct checkup *c, const char *name, struct err **err)
{
	AUTO(auto_free) char *path = mem_format("%s/%s.py", c->folder, name);

	for (size_t i = 0; i < health_program_count; i++)
		if (strcmp(health_programs[i].name, name) == 0 &&
		    fs_write_atomic(path, health_programs[i].text, health_programs[i].len, 0600,
				    err) == 0)
			return TAKE(path);
	if (!*err)
		err_set(err, EXIT_DEFECT, "program '%s' not found", name);
	return NULL;
}

/* Returns a new reference to the last output line that is a JSON object, NULL if there is none. */
static json_t *last_object(const struct sb *out)
{
	AUTO(auto_free) char *copy = mem_copy_n(out->text, out->len);
	json_t *last = NULL;
	char *save = NULL;

	for (char *line = strtok_r(copy, "\r\n", &save); line;
	     line = strtok_r(NULL, "\r\n", &save)) {
		AUTO(err_freep) struct err *ignored = NULL;
		json_t *value = NULL;

		if (line[0] != '{' || js_parse(line, strlen(line), "it", &value, &ignored) < 0)
			continue;
		json_decref(last);
		last = value;
	}
	return last;
}

/* ---- a tensor --------------------------------------------------------------------- */

static void take_torch(struct checkup *c, const json_t *said)
{
	c->torch = js_bool(said, "torch", false);
	c->xla = js_bool(said, "xla", false);
	js_put(c->told, "torch", json_boolean(c->torch));
}

static char *wrong_words(const json_t *wrong, const char *unit)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(1000);
	const json_t *one;
	size_t i;

	json_array_foreach (wrong, i, one) {
		const char *text = js_str(one, "words");

		sb_addf(&words, "%s%s %lld: ", i ? "; " : "", unit,
			(long long)js_int(one, "core", 0));
		text_escape(&words, text ? text : "?", strlen(text ? text : "?"), false);
	}
	return sb_take(&words);
}

static void check_tensor_result(struct checkup *c, const json_t *said)
{
	const char *framework = js_str(said, "framework"), *why = js_str(said, "unable");
	AUTO(sb_release) struct sb unable = SB_INIT_MAX(400);
	const json_t *wrong = json_object_get(said, "wrong");
	const char *unit = c->accelerator->unit;
	AUTO(auto_free) char *words = wrong_words(wrong, unit);
	int cores = (int)js_int(said, "cores", 0);

	if (why)
		text_escape(&unable, why, strlen(why), false);
	if (!framework)
		health_checkup_say(c, "tensor", ROW_UNCHECKED, "'%s' finds neither torch nor jax",
				   c->python);
	else if (json_array_size(wrong) > 0)
		health_checkup_say(c, "tensor", ROW_SICK, "a product with a known answer (%s): %s",
				   framework, words);
	else if (why)
		health_checkup_say(c, "tensor", ROW_UNCHECKED, "%s", unable.text);
	else if (c->cores > 0 && js_bool(said, "left_out", false))
		health_checkup_say(c, "tensor", ROW_SICK,
				   "%s computes on the CPU: the plugin for the %d %ss does not "
				   "start, or does not fit %s",
				   framework, c->cores, unit, framework);
	else if (c->cores > 0 && !js_bool(said, "accelerated", false))
		health_checkup_say(c, "tensor", ROW_UNCHECKED,
				   "%s is installed, but no plugin for the %d %ss", framework,
				   c->cores, unit);
	else if (cores < c->cores)
		health_checkup_say(c, "tensor", ROW_WARNED,
				   "a product is right, but on %d of %d %ss (%s)", cores, c->cores,
				   unit, framework);
	else
		health_checkup_say(c, "tensor", ROW_OK, "a product is right on %d %ss (%s)", cores,
				   unit, framework);
}

/* Runs our program. Returns -1 if it cannot be started. `ret_said`: its answer, or NULL. */
static int run_program(struct checkup *c, const char *how, struct tool_result *result,
		       json_t **ret_said, struct err **err)
{
	AUTO(auto_free) char *program = c->python ? put_program(c, "health_tensor", err) : NULL;
	AUTO(auto_free) char *cores = mem_format("%d", c->cores);
	AUTO(auto_free) char *word = mem_copy(how);
	AUTO(auto_free) char *kind = mem_copy(c->kind->accelerator);
	char *argv[] = { c->python, program, word, cores, kind, NULL };

	if (!c->python)
		return err_set(err, EXIT_REFUSED, "Python not found");
	if (!program || health_tool_run(&c->env, c->folder, argv, c->end, result, err) < 0)
		return -1;
	*ret_said = last_object(&result->out);
	take_torch(c, *ret_said);
	return 0;
}

void health_find_torch(struct checkup *c)
{
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *said = NULL;

	(void)!run_program(c, "look", &result, &said, &ignored);
}

void health_check_tensor(struct checkup *c)
{
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *limit = health_checkup_limit(c);
	AUTO(auto_free) char *words = NULL;
	AUTO(health_tool_release) struct tool_result result = { 0 };
	struct mono from = clock_mono_now();
	json_auto_t *said = NULL;

	if (run_program(c, "compute", &result, &said, &why) < 0) {
		health_checkup_say(c, "tensor", ROW_UNCHECKED, "%s", why->message);
		return;
	}
	words = health_tool_last_words(&result);
	if (result.hung && health_checkup_had_time(c, from, c->end))
		health_checkup_say(c, "tensor", ROW_SICK,
				   "a tensor operation hangs, stopped at the end of %s", limit);
	else if (result.hung)
		health_checkup_say(c, "tensor", ROW_UNCHECKED, "too little time was left of %s",
				   limit);
	/* A kernel that is short of memory kills by SIGKILL. Above SIGNAL_MAX there are no signals:
	 * the status is a program's own. */
	else if (result.status > 128 && result.status <= 128 + SIGNAL_MAX &&
		 result.status != 128 + SIGKILL)
		health_checkup_say(c, "tensor", ROW_SICK,
				   "a tensor operation was ended by signal %d: %s",
				   result.status - 128, words);
	else if (result.status != 0 || !said)
		health_checkup_say(c, "tensor", ROW_UNCHECKED, "exit status %d: %s", result.status,
				   words);
	else
		check_tensor_result(c, said);
}

/* ---- nccom-test ------------------------------------------------------------------- */

static const struct {
	const char *name, *tool;
	bool checks; /* the tool compares its results */
} operations[] = {
	{ "all_gather", "allg", true },       { "all_reduce", "allr", true },
	{ "reduce_scatter", "redsct", true }, { "sendrecv", "sendrecv", false },
	{ "alltoall", "alltoall", false },
};

/* NULL-terminated; there may be many hosts. */
struct health_program_words {
	char **list;
	size_t count;
};

static void add_word(struct health_program_words *words, const char *word)
{
	words->list = mem_grow(words->list, words->count + 2, sizeof *words->list);
	words->list[words->count++] = mem_copy(word);
	words->list[words->count] = NULL;
}

static void release_words(struct health_program_words *words)
{
	auto_strv(&words->list);
	*words = (struct health_program_words){ 0 };
}

static void add_number(struct health_program_words *words, const char *option, int64_t value)
{
	AUTO(auto_free) char *text = mem_format("%lld", (long long)value);

	add_word(words, option);
	add_word(words, text);
}

/* The operation comes first, so that no option can take it for its value. Without `report` only
 * options that every version knows. */
static void nccom_command(const struct checkup *c, const char *program, const char *operation,
			  int ranks, const json_t *hosts, const char *report,
			  struct health_program_words *ret)
{
	int64_t size = c->order->size;
	const json_t *host;
	bool checks = false;
	size_t i;

	add_word(ret, program);
	for (i = 0; i < STK_LENGTH(operations); i++)
		if (strcmp(operations[i].name, operation) == 0) {
			add_word(ret, operations[i].tool);
			checks = operations[i].checks;
		}
	add_number(ret, "-r", ranks);
	add_number(ret, "-N", hosts ? (int64_t)json_array_size(hosts) : 1);
	add_number(ret, "-b", size);
	add_number(ret, "-e", size);
	add_number(ret, "-n", 20);
	add_number(ret, "-w", 5);
	add_word(ret, "-d");
	add_word(ret, "fp32");
	if (checks && report) {
		add_word(ret, "-c");
		add_word(ret, "random");
	}
	if (report) {
		add_word(ret, "--non-interactive");
		add_word(ret, "--report-to-json-file");
		add_word(ret, report);
	}
	if (hosts)
		add_word(ret, "--hosts");
	json_array_foreach (hosts, i, host)
		add_word(ret, json_string_value(host));
}

/* Reads the report if it is there and valid, else the table. */
static int read_nccom(const char *report, const struct tool_result *result, struct nccom_row *ret,
		      struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX_BYTES);
	AUTO(err_freep) struct err *ignored = NULL;

	if (fs_read(report, REPORT_MAX_BYTES, &text, &ignored) == 0 &&
	    health_nccom_parse_json(text.text, text.len, ret, &ignored) == 0)
		return 0;
	return health_nccom_parse_table(result->out.text, result->out.len, ret, err);
}

static char *failure_of(const struct tool_result *result)
{
	AUTO(sb_release) struct sb safe = SB_INIT_MAX(400);
	char *line = health_nccom_failure(result->out.text, result->out.len);

	if (!line)
		line = health_nccom_failure(result->err.text, result->err.len);
	if (!line && result->status == 0)
		return NULL;
	if (line) {
		text_escape(&safe, line, strlen(line), false);
		free(line);
		return mem_format("nccom-test says: %s", safe.text);
	}
	line = health_tool_last_words(result);
	sb_adds(&safe, line);
	free(line);
	return mem_format("nccom-test ended with %d: %s", result->status, safe.text);
}

void health_put_figures(json_t *figures, const char *name, double busbw, double time_us, int ranks)
{
	json_t *one = json_object();

	js_put(one, "busbw", json_real(busbw));
	if (time_us > 0)
		js_put(one, "time_us", json_real(time_us));
	js_put(one, "ranks", json_integer(ranks));
	js_put(figures, name, one);
}

char *health_hung_words(const struct checkup *c, const char *what, struct mono from,
			struct mono end)
{
	AUTO(auto_free) char *limit = health_checkup_limit(c);
	AUTO(auto_free) char *time = text_format_duration(end.ms - from.ms);

	return mem_format("%s hangs, stopped after %s, within %s", what, time, limit);
}

/* True if the tool is an older one that does not know an option (Python's argparse says so). */
static bool is_too_old(const struct tool_result *result)
{
	return result->status == 2 && (strstr(result->err.text, "unrecognized arguments") ||
				       strstr(result->err.text, "no such option"));
}

static int run_words(struct checkup *c, struct health_program_words *words, struct mono end,
		     struct tool_result *result, struct err **err)
{
	int done = health_tool_run(&c->env, c->folder, words->list, end, result, err);

	release_words(words);
	return done;
}

static char *run_tool(struct checkup *c, const char *program, const char *operation, int ranks,
		      const json_t *hosts, struct mono end, const char *name, json_t *figures)
{
	AUTO(auto_free) char *report = mem_format("%s/nccom-%s.json", c->folder, operation);
	AUTO(auto_free) char *what = mem_format("nccom-test %s", operation);
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(err_freep) struct err *why = NULL;
	struct health_program_words words = { 0 };
	struct mono from = clock_mono_now();
	struct nccom_row row;
	char *failure;
	int done;

	remove(report);
	nccom_command(c, program, operation, ranks, hosts, report, &words);
	done = run_words(c, &words, end, &result, &why);
	if (done == 0 && is_too_old(&result)) {
		health_tool_release(&result);
		nccom_command(c, program, operation, ranks, hosts, NULL, &words);
		done = run_words(c, &words, end, &result, &why);
	}
	c->unable = done < 0 || result.status == CANNOT_RUN || result.status == NOT_THERE;
	if (done < 0)
		return mem_format("%s: %s", what, why->message);
	if (result.hung)
		return health_hung_words(c, what, from, end);
	failure = failure_of(&result);
	if (failure)
		return failure;
	if (read_nccom(report, &result, &row, &why) < 0)
		return mem_format("%s ended with 0, but %s", what, why->message);
	health_put_figures(figures, name, row.busbw, row.time_us, ranks);
	return NULL;
}

/* Sets the place where the runtimes of several nodes find each other. */
static void meet_at(struct checkup *c, const char *addr, int64_t port)
{
	AUTO(auto_free) char *root = network_join(addr, port);

	if (c->accelerator->meeting != VAR_COUNT)
		command_env_put(&c->env, variable_rows[c->accelerator->meeting].name, root);
}

char *health_run_nccom(struct checkup *c, const char *operation, int ranks, const json_t *hosts,
		       struct mono end, const char *name, json_t *figures)
{
	AUTO(auto_free) char *program = health_tool_find(&c->env, "nccom-test");

	if (!program)
		return mem_copy("nccom-test not found");
	if (hosts) {
		meet_at(c, json_string_value(json_array_get(hosts, 0)), ROOT_PORT);
		command_env_put(&c->env, "OMPI_ALLOW_RUN_AS_ROOT", "1");
		command_env_put(&c->env, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
	}
	return run_tool(c, program, operation, ranks, hosts, end, name, figures);
}

char *health_nccom_collective(struct checkup *c, const char *operation)
{
	AUTO(auto_free) char *program = health_tool_find(&c->env, "nccom-test");

	return run_tool(c, program, operation, c->cores, NULL, c->end, operation, c->figures);
}

/* Does one, and adds its figure to the words. Returns false if no other is to follow. */
static bool check_collective(struct checkup *c, const char *name, struct sb *words, char **ret_why)
{
	AUTO(auto_free) char *limit = health_checkup_limit(c);
	struct mono from = clock_mono_now();
	AUTO(auto_free) char *wrong = c->kind->collective(c, name);

	if (!wrong) {
		sb_addf(words, "%s%s %.1f GB/s", words->len ? ", " : "", name,
			js_real(json_object_get(c->figures, name), "busbw", 0));
		return true;
	}
	if (c->unable) {
		if (!*ret_why)
			*ret_why = c->kind->collectives ? mem_format("cannot run %s: %s",
								     c->kind->collectives, wrong)
							: TAKE(wrong);
		return true;
	}
	if (clock_mono_now().ms >= c->end.ms && !health_checkup_had_time(c, from, c->end))
		health_checkup_say(c, "collectives", ROW_UNCHECKED,
				   "too little time was left of %s for %s", limit, name);
	else
		health_checkup_say(c, "collectives", ROW_SICK, "%s among its %d %ss: %s", name,
				   c->cores, c->accelerator->unit, wrong);
	return false;
}

void health_check_collectives(struct checkup *c)
{
	const char *tool = c->kind->collectives;
	AUTO(auto_free) char *program = tool ? health_tool_find(&c->env, tool) : NULL;
	AUTO(sb_release) struct sb words = SB_INIT;
	AUTO(auto_free) char *lack = NULL;
	AUTO(auto_free) char *why = NULL;
	const json_t *operation;
	size_t i;

	if (tool && !program)
		lack = mem_format("%s is not in this image", tool);
	else if (c->cores < 1)
		lack = mem_format("the number of %ss is not known", c->accelerator->unit);
	else if (c->cores == 1)
		lack = mem_format("only one %s", c->accelerator->unit);
	json_array_foreach (lack ? NULL : c->order->ops, i, operation)
		if (!check_collective(c, json_string_value(operation), &words, &why))
			return;
	if (words.len > 0)
		health_checkup_say(c, "collectives", ROW_OK, "%s%s%s", words.text,
				   why ? "; not tested: " : "", why ? why : "");
	else
		health_checkup_say(c, "collectives", ROW_UNCHECKED, "%s", lack ? lack : why);
}

/* ---- torchrun --------------------------------------------------------------------- */

static void torchrun_command(const struct checkup *c, const char *torchrun, int nodes, int rank,
			     int per_node, const char *addr, int64_t port, const char *program,
			     struct health_program_words *ret)
{
	if (torchrun) {
		add_word(ret, torchrun);
	} else {
		add_word(ret, c->python);
		add_word(ret, "-m");
		add_word(ret, "torch.distributed.run");
	}
	add_number(ret, "--nnodes", nodes);
	add_number(ret, "--nproc_per_node", per_node);
	add_number(ret, "--node_rank", rank);
	add_word(ret, "--master_addr");
	add_word(ret, addr);
	add_number(ret, "--master_port", port);
	add_number(ret, program, c->order->size);
}

static char *read_torch_result(const struct tool_result *result, int ranks, const char *name,
			       json_t *figures)
{
	json_auto_t *said = last_object(&result->out);
	AUTO(auto_free) char *words = NULL;

	if (js_int(said, "wrong", 0) > 0)
		return mem_format("%lld of %lld elements of an all-reduce are wrong: each should "
				  "be %.0f",
				  (long long)js_int(said, "wrong", 0),
				  (long long)js_int(said, "of", 0), js_real(said, "expected", 0));
	if (result->status != 0) {
		words = health_tool_last_words(result);
		return mem_format("an all-reduce over torchrun ended with %d: %s", result->status,
				  words);
	}
	if (js_real(said, "busbw", -1) >= 0)
		health_put_figures(figures, name, js_real(said, "busbw", 0),
				   js_real(said, "time_us", 0), ranks);
	return NULL;
}

char *health_run_torch(struct checkup *c, int nodes, int rank, const char *addr, int64_t port,
		       struct mono end, const char *name, json_t *figures)
{
	/* Without the accelerator the test runs over the network alone. */
	bool xla = c->cores > 0 && c->xla && health_checkup_meets_others(c);
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *program = c->python ? put_program(c, "health_reduce", &why) : NULL;
	AUTO(auto_free) char *torchrun = health_tool_find(&c->env, "torchrun");
	AUTO(health_tool_release) struct tool_result result = { 0 };
	AUTO(release_words) struct health_program_words words = { 0 };
	struct mono from = clock_mono_now();
	int per_node = xla ? c->cores : 1;

	if (!program)
		return mem_format("an all-reduce over torchrun: %s",
				  why ? why->message : "Python not found");
	if (xla) {
		command_env_put(&c->env, "HEALTH_BACKEND", c->kind->backend);
		meet_at(c, addr, port + ROOT_ABOVE);
	}
	torchrun_command(c, torchrun, nodes, rank, per_node, addr, port, program, &words);
	if (health_tool_run(&c->env, c->folder, words.list, end, &result, &why) < 0)
		return mem_format("an all-reduce over torchrun: %s", why->message);
	if (result.hung)
		return health_hung_words(c, "an all-reduce over torchrun", from, end);
	return read_torch_result(&result, nodes * per_node, name, figures);
}
