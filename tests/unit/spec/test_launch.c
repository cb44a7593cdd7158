/*
 * Launchers in the forms that people write: how many workers they start on a node, and the command
 * as the graph key has it, which holds the number of all workers and not its spelling.
 */
#include "tests/unit/spec/spec_fixture.h"

#include "jobs/spec/machines/launch.h"

#define UNKNOWN 0    /* only the job knows the number */
#define NONE    (-1) /* no launcher that can be seen */

/* The commands are from the examples of PyTorch, AWS, neuronx_distributed, NeMo and Hugging Face,
 * and from issues on GitHub. The machine has 32 NeuronCores unless another is named; g5.12xlarge
 * has 4 GPUs. */
static const struct row {
	const char *command; /* a list in YAML */
	int64_t workers;
	const char *key; /* the rest of the command in the key */
	int64_t nodes;   /* 0: one */
	const char *instance, *env;
} rows[] = {
	/* clang-format off */
	{ .command = "[torchrun, t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc_per_node, \"32\", t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc_per_node=32, t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc-per-node, \"32\", t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc-per-node=32, t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc_per=32, t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --np, \"32\", t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc_per_node, \"8\", t.py]",
	  .workers = 8, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --nproc_per_node, auto, t.py]",
	  .workers = UNKNOWN, .key = "[torchrun, --nproc_per_node, auto, t.py]" },
	{ .command = "[torchrun, --nproc_per_node=gpu, t.py]",
	  .workers = UNKNOWN, .key = "[torchrun, --nproc_per_node=gpu, t.py]" },
	{ .command = "[torchrun, --nproc_per_node=gpu, t.py]",
	  .workers = 4, .key = "[torchrun, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[torchrun, --nproc_per_node, auto, t.py]",
	  .workers = 4, .key = "[torchrun, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[torchrun, --nproc_per_node=cpu, t.py]",
	  .workers = 2, .key = "[torchrun, t.py]", .instance = "c5.large" },
	{ .command = "[torchrun, --standalone, --nproc_per_node=32, t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --standalone, --nnodes=1, --nproc_per_node=32, t.py, --lr, \"1\"]",
	  .workers = 32, .key = "[torchrun, t.py, --lr, \"1\"]" },
	{ .command = "[torchrun, --nnodes, \"2\", --nproc_per_node, \"32\", --node_rank, \"0\", --master_addr, h, --master_port, \"41000\", t.py]",
	  .workers = 32, .key = "[torchrun, t.py]", .nodes = 2 },
	{ .command = "[torchrun, --nnodes=2, --nproc-per-node=32, --rdzv-id=7, --rdzv-backend=c10d, \"--rdzv-endpoint=h:29500\", t.py]",
	  .workers = 32, .key = "[torchrun, t.py]", .nodes = 2 },
	{ .command = "[torchrun, \"--nnodes=1:4\", --nproc_per_node=8, --max_restarts=3, --rdzv_id=7, --rdzv_backend=c10d, --rdzv_endpoint=h, t.py]",
	  .workers = 8, .key = "[torchrun, --max_restarts=3, t.py]" },
	{ .command = "[torchrun, --rdzv_conf=timeout=900, --local-addr, \"10.0.0.1\", t.py]",
	  .workers = 32, .key = "[torchrun, t.py]" },
	{ .command = "[torchrun, --max-restarts, \"0\", t.py]",
	  .workers = 32, .key = "[torchrun, --max-restarts, \"0\", t.py]" },
	{ .command = "[torchrun, -m, pkg.train, --x, \"1\"]",
	  .workers = 32, .key = "[torchrun, -m, pkg.train, --x, \"1\"]" },
	{ .command = "[torchrun, --module, --nproc_per_node, \"4\", pkg.train]",
	  .workers = 4, .key = "[torchrun, --module, pkg.train]" },
	{ .command = "[torchrun, --no-python, --nproc_per_node, \"2\", ./train]",
	  .workers = 2, .key = "[torchrun, --no-python, ./train]" },
	{ .command = "[torchrun, -r, \"3\", -t, \"3\", --nproc_per_node, \"2\", t.py]",
	  .workers = 2, .key = "[torchrun, -r, \"3\", -t, \"3\", t.py]" },
	{ .command = "[torchrun, t.py, --nproc_per_node, \"4\"]",
	  .workers = 32, .key = "[torchrun, t.py, --nproc_per_node, \"4\"]" },
	{ .command = "[torchrun, t.py, --nnodes=4, --master_port, \"5\"]",
	  .workers = 32, .key = "[torchrun, t.py, --nnodes=4, --master_port, \"5\"]" },
	{ .command = "[/opt/conda/bin/torchrun, --nproc_per_node=32, t.py]",
	  .workers = 32, .key = "[/opt/conda/bin/torchrun, t.py]" },
	{ .command = "[env, torchrun, --nproc_per_node=2, t.py]",
	  .workers = 2, .key = "[env, torchrun, t.py]" },
	{ .command = "[env, PET_NPROC_PER_NODE=3, torchrun, t.py]",
	  .workers = 3, .key = "[env, torchrun, t.py]" },
	{ .command = "[env, PET_NPROC_PER_NODE=3, torchrun, --nproc_per_node, \"5\", t.py]",
	  .workers = 5, .key = "[env, torchrun, t.py]" },
	{ .command = "[env, XLA_USE_BF16=1, neuron_parallel_compile, torchrun, --nproc_per_node=32, t.py]",
	  .workers = 32, .key = "[env, XLA_USE_BF16=1, neuron_parallel_compile, torchrun, t.py]" },
	{ .command = "[neuron_parallel_compile, torchrun, --nproc_per_node=32, t.py]",
	  .workers = 32, .key = "[neuron_parallel_compile, torchrun, t.py]" },
	{ .command = "[neuron_parallel_compile, --num_parallel, \"4\", torchrun, t.py]",
	  .workers = 32, .key = "[neuron_parallel_compile, --num_parallel, \"4\", torchrun, t.py]" },
	{ .command = "[neuron_parallel_compile, python3, -m, torch.distributed.run, --nproc_per_node, \"32\", t.py]",
	  .workers = 32, .key = "[neuron_parallel_compile, python3, -m, torch.distributed.run, t.py]" },
	{ .command = "[python, -m, torch.distributed.run, --nproc_per_node=8, t.py]",
	  .workers = 8, .key = "[python, -m, torch.distributed.run, t.py]" },
	{ .command = "[python3, -m, torch.distributed.launch, --nproc_per_node=8, --use_env, t.py]",
	  .workers = 8, .key = "[python3, -m, torch.distributed.launch, --use_env, t.py]" },
	{ .command = "[python3, -u, -m, torch.distributed.run, t.py]",
	  .workers = 32, .key = "[python3, -u, -m, torch.distributed.run, t.py]" },
	{ .command = "[python, -um, torch.distributed.run, --nproc_per_node, \"2\", t.py]",
	  .workers = 2, .key = "[python, -um, torch.distributed.run, t.py]" },
	{ .command = "[python, -mtorch.distributed.run, --nproc_per_node, \"2\", t.py]",
	  .workers = 2, .key = "[python, -mtorch.distributed.run, t.py]" },
	{ .command = "[python3.11, /x/site-packages/torch/distributed/run.py, --nproc_per_node, \"2\", t.py]",
	  .workers = 2, .key = "[python3.11, /x/site-packages/torch/distributed/run.py, t.py]" },
	{ .command = "[python3, -W, ignore, /opt/bin/torchrun, --nproc_per_node, \"2\", t.py]",
	  .workers = 2, .key = "[python3, -W, ignore, /opt/bin/torchrun, t.py]" },
	{ .command = "[numactl, --interleave=all, torchrun, --nproc_per_node, \"16\", t.py]",
	  .workers = 16, .key = "[numactl, --interleave=all, torchrun, t.py]" },
	{ .command = "[timeout, -k, \"5\", 3h, torchrun, t.py]",
	  .workers = 32, .key = "[timeout, -k, \"5\", 3h, torchrun, t.py]" },
	{ .command = "[nice, -n, \"5\", torchrun, --nproc_per_node, \"4\", t.py]",
	  .workers = 4, .key = "[nice, -n, \"5\", torchrun, t.py]" },
	{ .command = "[torchrun, --nproc_per_node, \"32\", --nnodes, \"4\", --node_rank, \"1\", --master_addr, h, --master_port, \"2022\", tp_zero1_llama2_7b_hf.py, --tp_size, \"8\"]",
	  .workers = 32, .key = "[torchrun, tp_zero1_llama2_7b_hf.py, --tp_size, \"8\"]", .nodes = 4 },
	{ .command = "[torchrun, --nproc_per_node=8, --nnodes=1, --node_rank=0, --rdzv_backend=static, training.py, --config-path=conf]",
	  .workers = 8, .key = "[torchrun, training.py, --config-path=conf]" },
	{ .command = "[bash, -c, \"torchrun t.py\"]",
	  .workers = 32, .key = "[bash, -c, \"torchrun t.py\"]" },
	{ .command = "[bash, -c, \"torchrun --nproc_per_node 32 t.py\"]",
	  .workers = 32, .key = "[bash, -c, \"torchrun t.py\"]" },
	{ .command = "[bash, -c, \"exec torchrun --nproc_per_node=4 t.py && touch done\"]",
	  .workers = 4, .key = "[bash, -c, \"exec torchrun t.py && touch done\"]" },
	{ .command = "[bash, -c, \"torchrun --nproc_per_node=$N t.py\"]",
	  .workers = UNKNOWN, .key = "[bash, -c, \"torchrun --nproc_per_node=$N t.py\"]" },
	{ .command = "[bash, -c, \"torchrun --nproc_per_node $(nproc) --master_addr \\\"$HOST\\\" t.py\"]",
	  .workers = UNKNOWN, .key = "[bash, -c, \"torchrun --nproc_per_node $(nproc) t.py\"]" },
	{ .command = "[bash, -c, \"export PET_NPROC_PER_NODE=4; torchrun t.py\"]",
	  .workers = 4, .key = "[bash, -c, \"export; torchrun t.py\"]" },
	{ .command = "[bash, -c, \"torchrun \\\\\\n  --nproc_per_node 8 \\\\\\n  --nnodes 1 \\\\\\n  t.py --x 1\"]",
	  .workers = 8, .key = "[bash, -c, \"torchrun \\\\\\n \\\\\\n \\\\\\n  t.py --x 1\"]" },
	{ .command = "[bash, -c, \"torchrun --nproc_per_node \\\"$STOKER_WORKERS\\\" t.py\"]",
	  .workers = 32, .key = "[bash, -c, \"torchrun t.py\"]" },
	{ .command = "[bash, -c, \"accelerate launch --num_processes ${STOKER_WORKERS} t.py\"]",
	  .workers = 32, .key = "[bash, -c, \"accelerate launch t.py\"]" },
	{ .command = "[bash, -c, \"torchrun t.py --nproc_per_node 4\"]",
	  .workers = 32, .key = "[bash, -c, \"torchrun t.py --nproc_per_node 4\"]" },
	{ .command = "[bash, -lc, \"source /opt/env.sh && python3 -m torch.distributed.run --nproc_per_node 2 t.py\"]",
	  .workers = 2, .key = "[bash, -lc, \"source /opt/env.sh && python3 -m torch.distributed.run t.py\"]" },
	{ .command = "[bash, -c, \"if true; then torchrun --nproc_per_node '8' t.py; fi\"]",
	  .workers = 8, .key = "[bash, -c, \"if true; then torchrun t.py; fi\"]" },
	{ .command = "[bash, -c, \"accelerate launch --num_processes 32 t.py\"]",
	  .workers = 32, .key = "[bash, -c, \"accelerate launch t.py\"]" },
	{ .command = "[bash, -c, \"accelerate launch t.py\"]",
	  .workers = UNKNOWN, .key = "[bash, -c, \"accelerate launch t.py\"]" },
	{ .command = "[accelerate, launch, t.py]",
	  .workers = 4, .key = "[accelerate, launch, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --num_processes, \"4\", t.py]",
	  .workers = 4, .key = "[accelerate, launch, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --num-processes=4, t.py]",
	  .workers = 4, .key = "[accelerate, launch, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --multi_gpu, --num_machines, \"1\", --num_processes, \"4\", t.py, --lr, \"1\"]",
	  .workers = 4, .key = "[accelerate, launch, t.py, --lr, \"1\"]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --num_processes=8, --num_machines=2, --machine_rank=0, --main_process_ip, h, --main_process_port, \"29500\", t.py]",
	  .workers = 4, .key = "[accelerate, launch, t.py]", .nodes = 2, .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --mixed_precision, bf16, --num_processes, \"4\", t.py]",
	  .workers = 4, .key = "[accelerate, launch, --mixed_precision, bf16, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --mixed-precision=fp16, --dynamo_backend, no, --same_network, t.py]",
	  .workers = 4, .key = "[accelerate, launch, --mixed-precision=fp16, --dynamo_backend, no, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --use_deepspeed, --zero_stage, \"2\", --num_processes, \"4\", t.py]",
	  .workers = 4, .key = "[accelerate, launch, --use_deepspeed, --zero_stage, \"2\", t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --config_file, fsdp.yaml, t.py]",
	  .workers = UNKNOWN, .key = "[accelerate, launch, --config_file, fsdp.yaml, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, --config_file, fsdp.yaml, --num_processes, \"4\", t.py]",
	  .workers = 4, .key = "[accelerate, launch, --config_file, fsdp.yaml, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate-launch, --num_processes, \"2\", t.py]",
	  .workers = 2, .key = "[accelerate-launch, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[python, -m, accelerate.commands.launch, --num_processes, \"2\", t.py]",
	  .workers = 2, .key = "[python, -m, accelerate.commands.launch, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[python3, -m, accelerate.commands.accelerate_cli, launch, --num_processes, \"2\", t.py]",
	  .workers = 2, .key = "[python3, -m, accelerate.commands.accelerate_cli, launch, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[accelerate, launch, -m, pkg.train, --num_processes, \"9\"]",
	  .workers = 4, .key = "[accelerate, launch, -m, pkg.train, --num_processes, \"9\"]", .instance = "g5.12xlarge" },
	{ .command = "[torchrun, t.py]",
	  .workers = 4, .key = "[torchrun, t.py]", .instance = "g5.12xlarge" },
	{ .command = "[torchrun, t.py]",
	  .workers = 2, .key = "[torchrun, t.py]", .instance = "g5.12xlarge", .env = "CUDA_VISIBLE_DEVICES: \"0,3\"" },
	{ .command = "[torchrun, t.py]",
	  .workers = 8, .key = "[torchrun, t.py]", .env = "NEURON_RT_NUM_CORES: \"8\"" },
	{ .command = "[torchrun, t.py]",
	  .workers = 1, .key = "[torchrun, t.py]", .instance = "c5.large" },
	{ .command = "[torchrun, t.py]",
	  .workers = 16, .key = "[torchrun, t.py]", .env = "PET_NPROC_PER_NODE: \"16\"" },
	{ .command = "[accelerate, config]",
	  .workers = NONE, .key = "[accelerate, config]" },
	{ .command = "[python3, t.py, torchrun]",
	  .workers = NONE, .key = "[python3, t.py, torchrun]" },
	{ .command = "[bash, train.sh]",
	  .workers = NONE, .key = "[bash, train.sh]" },
	{ .command = "[mpirun, -n, \"4\", python3, t.py]",
	  .workers = NONE, .key = "[mpirun, -n, \"4\", python3, t.py]" },
	/* clang-format on */
};

static char *spec_of(const struct row *row)
{
	return mem_format("version: 1\nname: x\ncommand: %s\nresources: {instance: %s, nodes: "
			  "%lld}\nenv: {%s}\n",
			  row->command, row->instance ? row->instance : "trn1.32xlarge",
			  row->nodes > 0 ? (long long)row->nodes : 1, row->env ? row->env : "");
}

static void check_row(const struct row *row)
{
	AUTO(auto_free) char *text = spec_of(row);
	AUTO(auto_free) char *left = mem_format("version: 1\nname: x\ncommand: %s\n", row->key);
	AUTO(spec_freep) struct spec *spec = good_spec(text, NULL), *want = good_spec(left, NULL);
	json_auto_t *processes = spec_processes(spec, false);
	json_auto_t *key = spec_key_ingredients(spec);
	int64_t nodes = row->nodes > 0 ? row->nodes : 1,
		each = row->workers == NONE ? 1 : row->workers;
	AUTO(auto_free) char *world = mem_format("%lld", (long long)nodes * (long long)each);

	if (!json_equal(json_object_get(key, "command"), spec_get(want, SPEC_COMMAND)))
		fail_msg("%s is %s in the key", row->command,
			 json_dumps(json_object_get(key, "command"), 0));
	if ((processes == NULL) != (row->workers == NONE) ||
	    js_int(processes, "per_node", 0) != (row->workers == NONE ? 0 : row->workers))
		fail_msg("%s starts %lld", row->command,
			 (long long)js_int(processes, "per_node", 0));
	assert_null(json_object_get(key, "env.PET_NPROC_PER_NODE"));
	if (row->workers == UNKNOWN) {
		assert_null(json_object_get(key, KEY_WORLD));
		assert_non_null(json_object_get(key, "resources.nodes"));
	} else {
		assert_string_equal(js_str(key, KEY_WORLD), world);
		assert_null(json_object_get(key, "resources.nodes"));
	}
}

static void each_form_has_its_workers_and_its_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		check_row(&rows[i]);
}

static json_t *list_of(const char *text)
{
	return json_loads(text, 0, NULL);
}

/* Bytes that are cut out of a line are what was written, with its quotes; all else stays byte for
 * byte. */
static void a_line_keeps_its_bytes(void **state)
{
	static const struct {
		const char *line, *left;
	} lines[] = {
		{ "torchrun   --nnodes '1'  --x  t.py  # --nnodes 3",
		  "torchrun  --x  t.py  # --nnodes 3" },
		{ "A=\"b c\" torchrun --master_addr=\"$(head -1 \"$HOSTS\")\" t.py",
		  "A=\"b c\" torchrun t.py" },
		{ "torchrun --rdzv_endpoint=`hostname`:29500 t.py", "torchrun t.py" },
		{ "echo torchrun --nnodes 1", "echo torchrun" },
		{ "x \"torchrun --nnodes 1\"", "x \"torchrun --nnodes 1\"" },
		{ "torchrun --nnodes \"1", "torchrun" },
		{ "torchrun --nnodes", "torchrun" },
		{ "", "" },
		{ "\\", "\\" },
		{ "$(", "$(" },
		{ "'", "'" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(lines); i++) {
		json_auto_t *command = json_pack("[sss]", "sh", "-c", lines[i].line);
		json_auto_t *left = launch_without_places(command, true);

		assert_string_equal(json_string_value(json_array_get(left, 2)), lines[i].left);
	}
}

/* Places alone are left out where only the job knows the number. */
static void what_is_not_known_stays(void **state)
{
	json_auto_t *command =
		list_of("[\"torchrun\", \"--nnodes\", \"2\", \"--node_rank\", \"1\", "
			"\"--nproc_per_node\", \"gpu\", \"t.py\"]");
	json_auto_t *want = list_of("[\"torchrun\", \"--nnodes\", \"2\", \"--nproc_per_node\", "
				    "\"gpu\", \"t.py\"]");
	json_auto_t *left = launch_without_places(command, false);

	(void)state;
	assert_true(json_equal(left, want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_has_its_workers_and_its_key),
		cmocka_unit_test(a_line_keeps_its_bytes),
		cmocka_unit_test(what_is_not_known_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
