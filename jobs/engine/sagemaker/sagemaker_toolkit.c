/* Script mode of SageMaker's own containers: see sagemaker_toolkit.h. */
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/text/text.h"

#define LOG_LEVEL 20 /* Python's logging.INFO */

/* The ways in which the toolkit starts a program, and the value that asks for each (PyTorch's
 * estimator in the SDK: _pytorch_distribution_configuration). */
enum distribution { TORCH_DISTRIBUTED, PYTORCH_DDP, NO_DISTRIBUTION, DISTRIBUTIONS };
static const struct {
	const char *name, *value;
} distributions[DISTRIBUTIONS] = {
	[TORCH_DISTRIBUTED] = { "torch_distributed", "sagemaker_torch_distributed_enabled" },
	[PYTORCH_DDP] = { "pytorchddp", "sagemaker_pytorch_ddp_enabled" },
	[NO_DISTRIBUTION] = { "none", NULL },
};

/* Runs of earlier versions have the first. */
static enum distribution distribution_of(const json_t *plan)
{
	const json_t *section = js_path(plan, "spec.sagemaker");

	for (int i = 0; i < DISTRIBUTIONS; i++)
		if (js_is(section, "distribution", distributions[i].name))
			return (enum distribution)i;
	return TORCH_DISTRIBUTED;
}

/* ---- Python's json.dumps() ---------------------------------------------------------- */

/* Writes the shortest digits for this number, as Python's repr() does: with an exponent below 1e-4
 * and from 1e16 on. */
static void dump_real(struct sb *out, double value)
{
	char text[40], digits[24];
	int precision = 0, exponent, count = 0;
	const char *from;

	do
		snprintf(text, sizeof text, "%.*e", precision, value);
	while (strtod(text, NULL) != value && ++precision < 17);
	exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	if (exponent < -4 || exponent >= 16) {
		sb_adds(out, text); /* C and Python agree on 1e-05, 2.5e+16 */
		return;
	}
	for (from = text; *from != 'e'; from++)
		if (*from >= '0' && *from <= '9' && count < (int)sizeof digits)
			digits[count++] = *from;
	if (signbit(value))
		sb_addc(out, '-');
	if (exponent < 0)
		sb_adds(out, "0.");
	for (int i = exponent + 1; i < 0; i++)
		sb_addc(out, '0');
	for (int i = 0; i < count || i <= exponent; i++) {
		sb_addc(out, i < count ? digits[i] : '0');
		if (i == exponent)
			sb_adds(out, i + 1 < count ? "." : ".0");
	}
}

/* Writes a value as Python's json.dumps() does: the form of a hyperparameter in a request, which
 * the toolkit parses. Only the digits of an escape (\u00FC) are capitals here. */
static void dump_value(struct sb *out, const json_t *value)
{
	AUTO(auto_free) char *text = NULL;
	const json_t *item;
	size_t i;

	if (json_is_real(value)) {
		dump_real(out, json_real_value(value));
	} else if (json_is_array(value)) {
		sb_addc(out, '[');
		json_array_foreach (value, i, item) {
			sb_adds(out, i > 0 ? ", " : "");
			dump_value(out, item);
		}
		sb_addc(out, ']');
	} else {
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
		sb_adds(out, text ? text : "null");
	}
}

/* ---- hyperparameters ------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Returns the Python program of a command ([python3, train.py], [torchrun, train.py]), borrowed;
 * NULL: the toolkit cannot run the command. */
static const char *program_of(const json_t *command)
{
	const char *launcher = json_string_value(json_array_get(command, 0));
	const char *program = json_string_value(json_array_get(command, 1));

	if (json_array_size(command) != 2 || !launcher || !program)
		return NULL;
	if (!text_starts(launcher, "python") && strcmp(launcher, "torchrun") != 0)
		return NULL;
	return program[0] != '/' && program[0] != '-' && ends_with(program, ".py") ? program : NULL;
}

/* Returns the source as `sagemaker_submit_directory` names it: a gzip tar with the program at the
 * path in the command. The caller frees it. */
static char *submit_directory(const json_t *plan)
{
	return mem_format("%s/%s", js_str(plan, "workspace"),
			  js_str(json_object_get(plan, "source"), "bundle"));
}

static void put_dumped(json_t *values, const char *name, const json_t *value)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	dump_value(&text, value);
	js_put_str(values, name, text.text);
}

static void put_all(json_t *values, const json_t *from)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)from, name, value)
		if (json_is_null(value))
			json_object_del(values, name); /* the toolkit would pass `--name ''` */
		else
			put_dumped(values, name, value);
}

static void put_own(json_t *values, const char *name, const char *text)
{
	json_auto_t *value = json_string(text);

	if (value)
		put_dumped(values, name, value);
}

/* Returns the hyperparameters of the spec, in phase 1 with its overrides. */
static json_t *spec_values(const json_t *plan, bool ahead)
{
	const json_t *length = json_object_get(plan, "length");
	bool ours = js_is(length, "by", "compile.max_steps") || js_is(length, "by", "default");
	const char *name = ours ? js_str(length, "hyperparameter") : NULL;
	const json_t *steps = json_object_get(length, "steps");
	json_t *values = json_object();

	/* Run of an earlier version. */
	if (!length && js_path(plan, "spec.compile.max_steps")) {
		name = "max_steps";
		steps = js_path(plan, "spec.compile.max_steps");
	}

	put_all(values, js_path(plan, "spec.hyperparameters"));
	if (ahead)
		put_all(values, js_path(plan, "spec.compile.overrides.hyperparameters"));
	if (ahead && name)
		put_dumped(values, name, steps);
	return values;
}

static int check_value(const char *kind, const char *name, const char *text, size_t most,
		       struct err **err)
{
	if (strlen(text) <= most)
		return 0;
	err_set(err, EXIT_SPEC, "%s '%s' is %zu bytes long; SageMaker takes %zu", kind, name,
		strlen(text), most);
	return err_hint(err, "put long texts into a file of the source");
}

static int put_hyperparameters(json_t *request, const struct toolkit_input *input,
			       const char *program, bool ahead, struct err **err)
{
	AUTO(auto_free) char *source = submit_directory(input->plan);
	json_t *values = spec_values(input->plan, ahead), *value;
	json_auto_t *level = json_integer(LOG_LEVEL);
	const char *enabled = distributions[distribution_of(input->plan)].value, *name;

	js_put(request, "HyperParameters", values);
	put_own(values, "sagemaker_submit_directory", source);
	put_own(values, "sagemaker_program", program);
	put_dumped(values, "sagemaker_container_log_level", level);
	put_own(values, "sagemaker_job_name", input->job);
	put_own(values, "sagemaker_region", input->region);
	/* Unless torch_distributed's variable is set, the toolkit starts no torchrun and ignores
	 * that of phase 1. */
	if (enabled) {
		js_put_str(values, enabled, "true");
		put_own(values, "sagemaker_instance_type",
			js_str(json_object_get(request, "ResourceConfig"), "InstanceType"));
	}
	if (json_object_size(values) > TOOLKIT_VALUES_MAX) {
		err_set(err, EXIT_SPEC,
			"%zu hyperparameters with those of script mode; SageMaker takes %d",
			json_object_size(values), TOOLKIT_VALUES_MAX);
		return err_hint(err, "put rarely changed ones into a file of the source");
	}
	json_object_foreach (values, name, value)
		if (check_value("hyperparameter", name, json_string_value(value), TOOLKIT_VALUE_MAX,
				err) < 0)
			return -1;
	return 0;
}

/* ---- variables -------------------------------------------------------------------------- */

/* Returns the text for a text in the order's spelling (see order.h); NULL: only an agent could fill
 * in a variable in it. */
static char *plain_text(const char *text)
{
	struct sb out = SB_INIT;
	size_t dollars = 0;

	for (const char *c = text; *c; c++) {
		if (*c == '$') {
			dollars++;
			continue;
		}
		if (text_starts(c, "{STOKER_")) {
			if (dollars % 2 == 1) {
				sb_release(&out);
				return NULL;
			}
			dollars /= 2;
		}
		for (; dollars > 0; dollars--)
			sb_addc(&out, '$');
		sb_addc(&out, *c);
	}
	for (; dollars > 0; dollars--)
		sb_addc(&out, '$');
	return sb_take(&out);
}

/* True for variables added for an agent's command: script mode has its SM_HP_*, and the containers
 * set the other. */
static bool is_agents(const json_t *plan, const char *name)
{
	if (text_starts(name, "STOKER_"))
		return true;
	return strcmp(name, "PYTHONUNBUFFERED") == 0 &&
	       !json_object_get(js_path(plan, "spec.env"), name) &&
	       !json_object_get(js_path(plan, "spec.compile.overrides.env"), name);
}

/* Returns the plan's environment of a phase. */
static json_t *planned_env(const struct toolkit_input *input)
{
	const json_t *phase;
	size_t i;

	json_array_foreach (json_object_get(input->plan, "phases"), i, phase)
		if (js_is(phase, "phase", input->phase))
			return json_object_get(phase, "env");
	return NULL;
}

static int put_environment(json_t *request, const struct toolkit_input *input, struct err **err)
{
	json_t *env = input->order ? json_object_get(input->order, "env") : planned_env(input);
	json_t *value, *out = json_object();
	const char *name;

	js_put(request, "Environment", out);
	json_object_foreach (env, name, value) {
		AUTO(auto_free) char *text = plain_text(json_string_value(value));

		if (is_agents(input->plan, name))
			continue;
		if (!text) {
			err_set(err, EXIT_SPEC,
				"env '%s' refers to a variable that a node agent fills in; "
				"launcher: toolkit has none",
				name);
			return err_hint(err, "write the value out, or set launcher: node");
		}
		if (check_value("env", name, text, TOOLKIT_ENV_MAX, err) < 0)
			return -1;
		js_put_str(out, name, text);
	}
	return 0;
}

int sagemaker_toolkit_put(json_t *request, const struct toolkit_input *input, struct err **err)
{
	const char *program = program_of(js_path(input->plan, "spec.command"));

	if (!program) {
		err_set(err, EXIT_SPEC,
			"launcher: toolkit runs one Python program, but 'command' is not one");
		return err_hint(err, "write [torchrun, train.py], or set launcher: node");
	}
	if (json_object_size(json_object_get(input->plan, "secrets")) > 0) {
		err_set(err, EXIT_SPEC,
			"launcher: toolkit has no way for secrets that keeps them out of the "
			"training job's description");
		return err_hint(err, "let the script fetch them, or set launcher: node");
	}
	if (put_hyperparameters(request, input, program, strcmp(input->phase, "precompile") == 0,
				err) < 0)
		return -1;
	return put_environment(request, input, err);
}

/* ---- the command line ------------------------------------------------------------------- */

#define MASTER_PORT "7777"

static void add_word(json_t *words, const char *word)
{
	json_array_append_new(words, json_string(word));
}

static void add_words(json_t *words, const char *const *add)
{
	for (; *add; add++)
		add_word(words, *add);
}

static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Adds a value as Python's str() prints it after parsing. */
static void add_value(json_t *words, const char *dumped)
{
	AUTO(err_freep) struct err *bad = NULL;
	json_auto_t *array = NULL;
	AUTO(auto_free) char *text = mem_format("[%s]", dumped);
	const json_t *value;

	if (js_parse(text, strlen(text), "a value", &array, &bad) < 0)
		return;
	value = json_array_get(array, 0);
	if (json_is_string(value))
		add_word(words, json_string_value(value));
	else if (json_is_boolean(value))
		add_word(words, json_is_true(value) ? "True" : "False");
	else
		add_word(words, dumped);
}

/* Adds the arguments, sorted by name; names that begin with sagemaker_ are the toolkit's own. */
static void add_arguments(json_t *words, json_t *values)
{
	size_t count = 0;
	AUTO(auto_free) const char **names = mem_zero(json_object_size(values) + 1, sizeof *names);
	const char *name;
	json_t *value;

	json_object_foreach (values, name, value)
		if (!text_starts(name, "sagemaker_"))
			names[count++] = name;
	qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++) {
		AUTO(auto_free)
		char *flag = mem_format("%s%s", strlen(names[i]) > 1 ? "--" : "-", names[i]);

		add_word(words, flag);
		add_value(words, js_str(values, names[i]));
	}
}

/* Returns the number of workers on a host: its GPUs, or its Neuron cores, as neuron-ls counts them,
 * or one. */
static char *workers_of(const json_t *plan, const json_t *env)
{
	const json_t *row = json_object_get(plan, "instance");
	int64_t cores = accelerator_units(row);

	if (json_array_size(js_path(plan, "spec.sagemaker.instance_groups")) > 0 ||
	    json_object_get(env, "NEURON_LOGICAL_NC_CONFIG"))
		return mem_copy("<cores>");
	if (!js_str(row, "accelerator"))
		return mem_copy("1");
	return cores > 0 ? mem_format("%lld", (long long)cores) : mem_copy("<cores>");
}

static void add_torchrun(json_t *words, const json_t *plan, const json_t *env, const char *workers)
{
	AUTO(auto_free) char *nodes = mem_format("%lld", (long long)js_int(plan, "nodes", 1));

	if (js_is(env, "RUN_NEURON_PARALLEL_COMPILE", "1"))
		add_word(words, "neuron_parallel_compile");
	add_words(words, (const char *[]){ "torchrun", "--nnodes", nodes, "--nproc_per_node",
					   workers, NULL });
	if (js_int(plan, "nodes", 1) > 1)
		add_words(words, (const char *[]){ "--master_addr", "algo-1", "--master_port",
						   MASTER_PORT, "--node_rank", "<rank>", NULL });
}

/* Types on which the toolkit itself sets variables of EFA (SM_EFA_NCCL_INSTANCES and
 * SM_EFA_RDMA_INSTANCES of its __init__.py). */
static const struct {
	const char *type;
	bool rdma;
} efa_types[] = {
	{ "ml.g4dn.8xlarge", false },      { "ml.g4dn.12xlarge", false },
	{ "ml.g5.48xlarge", false },       { "ml.p3dn.24xlarge", false },
	{ "ml.p4d.24xlarge", true },       { "ml.p4de.24xlarge", true },
	{ "ml.p5.48xlarge", false },       { "ml.trn1.32xlarge", true },
	{ "ml.p6e-gb200.36xlarge", true },
};

static void add_efa(json_t *words, const char *type)
{
	for (size_t i = 0; type && i < STK_LENGTH(efa_types); i++) {
		if (strcmp(efa_types[i].type, type) != 0)
			continue;
		add_words(words, (const char *[]){ "-x", "NCCL_PROTO=simple", NULL });
		if (efa_types[i].rdma)
			add_words(words,
				  (const char *[]){ "-x", "FI_EFA_USE_DEVICE_RDMA=1", NULL });
	}
}

/* Returns "algo-1:8,algo-2:8", of one host "algo-1". The caller frees it. */
static char *hosts_of(int64_t nodes, const char *workers)
{
	struct sb hosts = SB_INIT;

	for (int64_t i = 1; i <= nodes; i++)
		sb_addf(&hosts, "%salgo-%lld%s%s", i > 1 ? "," : "", (long long)i,
			nodes > 1 ? ":" : "", nodes > 1 ? workers : "");
	return sb_take(&hosts);
}

/* The command of the first host, which starts the others' (smdataparallel.py). */
static void add_mpirun(json_t *words, const json_t *plan, const char *workers)
{
	const char *type = js_str(json_object_get(plan, "instance"), "type");
	int64_t nodes = js_int(plan, "nodes", 1), all = nodes * strtol(workers, NULL, 10);
	AUTO(auto_free) char *count = mem_format("%lld", (long long)nodes);
	AUTO(auto_free) char *hosts = hosts_of(nodes, workers);
	AUTO(auto_free)
	char *world = all > 0 ? mem_format("%lld", (long long)all) : mem_copy(workers);

	add_words(words,
		  (const char *[]){ "mpirun", "--host", hosts, "-np", world, "--allow-run-as-root",
				    "--tag-output", "--oversubscribe", NULL });
	add_words(words, (const char *[]){ "-mca",
					   "btl_tcp_if_include",
					   "<interface>",
					   "-mca",
					   "oob_tcp_if_include",
					   "<interface>",
					   "-mca",
					   "plm_rsh_no_tree_spawn",
					   "1",
					   "-mca",
					   "pml",
					   "ob1",
					   "-mca",
					   "btl",
					   "^openib",
					   "-mca",
					   "orte_abort_on_non_zero_status",
					   "1",
					   "-mca",
					   "btl_vader_single_copy_mechanism",
					   "none",
					   "-mca",
					   "plm_rsh_num_concurrent",
					   count,
					   NULL });
	add_words(words,
		  (const char *[]){ "-x", "NCCL_SOCKET_IFNAME=<interface>", "-x", "NCCL_DEBUG=INFO",
				    "-x", "LD_LIBRARY_PATH", "-x", "PATH", "-x",
				    nodes > 1 ? "SMDATAPARALLEL_USE_HOMOGENEOUS=1"
					      : "SMDATAPARALLEL_USE_SINGLENODE=1",
				    "-x", "FI_PROVIDER=efa", "-x", "RDMAV_FORK_SAFE=1", "-x",
				    "LD_PRELOAD=<gethostname>", NULL });
	add_efa(words, type);
	if (nodes > 1) {
		AUTO(auto_free)
		char *machine = mem_format("SAGEMAKER_INSTANCE_TYPE=%s", type ? type : "<type>");

		add_words(words, (const char *[]){ "-x", "SMDATAPARALLEL_SERVER_ADDR=algo-1", "-x",
						   "SMDATAPARALLEL_SERVER_PORT=7592", "-x", machine,
						   NULL });
	}
	add_words(words, (const char *[]){ "smddprun", "python3", "-m", "mpi4py", NULL });
}

json_t *sagemaker_toolkit_command(const json_t *plan, const char *phase)
{
	const struct toolkit_input input = { .plan = plan, .phase = phase };
	bool ahead = strcmp(phase, "precompile") == 0;
	const char *program = program_of(js_path(plan, "spec.command"));
	const json_t *env = planned_env(&input);
	json_auto_t *values = NULL;
	AUTO(auto_free) char *workers = workers_of(plan, env);
	json_t *words;

	if (!program)
		return NULL;
	words = json_array();
	values = spec_values(plan, ahead);
	switch (distribution_of(plan)) {
	case PYTORCH_DDP:
		add_mpirun(words, plan, workers);
		break;
	case NO_DISTRIBUTION:
		add_word(words, "python3");
		break;
	case TORCH_DISTRIBUTED:
	case DISTRIBUTIONS:
		add_torchrun(words, plan, env, workers);
		break;
	}
	add_word(words, program);
	add_arguments(words, values);
	return words;
}
