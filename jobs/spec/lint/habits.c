/*
 * The table of habits: see habits.h. The names are those of sagemaker.estimator.Estimator and
 * CreateTrainingJob, sbatch(1), SkyPilot's task YAML, Kubernetes' Job, docker compose and GitHub
 * Actions; nearest_leaf() finds those that a field of another section has already.
 */
#include "jobs/spec/lint/habits.h"

#include "jobs/base/auto.h"

/* clang-format off */
const struct habit habits[] = {
	/* hyperparameters */
	{ "lr", "hyperparameters.lr", NULL },
	{ "learning_rate", "hyperparameters.learning_rate", NULL },
	{ "batch_size", "hyperparameters.batch_size", NULL },
	{ "epochs", "hyperparameters.epochs", NULL },
	{ "num_epochs", "hyperparameters.num_epochs", NULL },
	{ "seed", "hyperparameters.seed", NULL },
	{ "seq_len", "hyperparameters.seq_len", NULL },
	{ "max_steps steps", "hyperparameters.max_steps", NULL },
	{ "params parameters hparams hyperparams hyper_parameters config", "hyperparameters", NULL },
	/* the command: SageMaker's estimators, SkyPilot, Kubernetes, GitHub Actions */
	{ "args arguments entry_point entrypoint script cmd source_file training_script program",
	  "command", "a list of all words, such as [python3, train.py]" },
	{ "run", "command", "a list of words; for lines of a shell: [sh, -c, \"…\"]" },
	{ "setup install",
	  NULL, "install packages in the image; slurm.setup is a shell line for each node; else begin the command with it: [sh, -c, \"pip install -r requirements.txt && exec python3 train.py\"]" },
	{ "distribution launcher nproc_per_node processes_per_node", "command", "with its launcher: [torchrun, train.py]" },
	/* its environment */
	{ "environment variables envs env_vars environment_variables vars", "env", NULL },
	{ "export inherit_env passenv", "pass_env", "a list of names, such as [HF_TOKEN]" },
	{ "dotenv env_files envfile", "env_file", NULL },
	{ "secret env_from secret_key_ref", "secrets", NULL },
	/* the engine */
	{ "backend platform cloud cluster runs_on", "engine", NULL },
	/* the machines */
	{ "instances instance_count num_nodes nnodes num_instances replicas num_machines nodes_count nodes",
	  "resources.nodes", NULL },
	{ "instance_type machine machine_type node_type", "resources.instance", NULL },
	{ "gpus gpu num_gpus accelerators accelerator gpus_per_node cpus cpu cpus_per_task mem memory "
	  "mem_per_cpu gres", "resources.instance", "a type, whose devices are all used, such as trn1.32xlarge" },
	{ "ntasks ntasks_per_node tasks_per_node",
	  "command", "with its launcher, which starts the processes of a node: [torchrun, train.py]" },
	{ "shm_size shared_memory", "resources.shm", "a size such as 8GiB" },
	{ "exclusive", NULL, "remove the line: a node is a whole machine" },
	/* image and files */
	{ "container image_uri image_id docker docker_image container_image", "image", NULL },
	{ "framework_version py_version python_version transformers_version pytorch_version",
	  "image", "which holds framework and Python" },
	{ "volumes volume_mounts", "mounts", "a list such as [{source: /data, target: /data}]" },
	{ "file_mounts",
	  NULL, "the source is packed by itself; source.link brings local folders, mounts file systems, sagemaker.channels data from S3" },
	{ "inputs input_data_config", "sagemaker.channels", "a list such as [{name: train, url: s3://bucket/data}]" },
	{ "dir directory workdir working_dir working_directory chdir source_dir code_location", "source.path", NULL },
	{ "dependencies", "source.include", "a list of patterns; without it all files are packed" },
	{ "branch commit git_ref", "source.rev", NULL },
	{ "labels", "tags", NULL },
	{ "comment", "tags", "a mapping such as {note: text}" },
	{ "job_name base_job_name run_name", "name", NULL },
	{ "output error log_file stdout stderr",
	  NULL, "remove the line: 'stoker logs' shows the output, which is always kept" },
	{ "output_path output_dir output_data_config",
	  "workspace", "where all of a run is kept; the script finds STOKER_OUTPUT_DIR" },
	/* limits and retries */
	{ "time time_limit walltime timeout timeout_minutes active_deadline_seconds max_duration",
	  "limits.deadline", "a duration such as 12h" },
	{ "budget max_cost", "limits.cost", NULL },
	{ "retries max_retries max_retry_attempts max_restarts num_retries backoff_limit", "retry.attempts", NULL },
	{ "restart_policy job_recovery requeue", "retry.attempts", "a number of attempts" },
	{ "retry_strategy", "retry", NULL },
	/* the cache */
	{ "cache_dir", "compile.cache_url", NULL },
	{ "precompile", "compile", NULL },
	/* checkpoints */
	{ "checkpoint_s3_uri checkpoint_dir checkpoint_path checkpoints save_dir", "checkpoint.url", NULL },
	{ "checkpoint_local_path", NULL, "remove the line: the script finds the folder in STOKER_CHECKPOINT_DIR" },
	/* metrics and messages */
	{ "global_batch_size", "samples_per_step", NULL },
	{ "mail_user mail_type notifications webhook", "notify", "a list such as [{when: [failed], command: [./page-me]}]" },
	{ "when", "schedule.cron", NULL },
	/* AWS */
	{ "queue", "batch.job_queue", NULL },
	{ "job_definition", NULL, "remove the line: stoker registers a definition from image, command and resources" },
	{ "role_arn", "sagemaker.role", NULL },
	{ "use_spot_instances use_spot spot", "sagemaker.spot", NULL },
	{ "max_run max_runtime_in_seconds", "sagemaker.max_runtime", "a duration such as 12h" },
	{ "max_runtime", "limits.deadline", NULL },
	{ "max_wait_time_in_seconds", "sagemaker.max_wait", "a duration such as 12h" },
	{ "volume_size volume_size_in_gb disk_size disk_size_gb", "sagemaker.volume", "a size such as 500GiB" },
	{ "keep_alive_period_in_seconds keep_alive_period", "sagemaker.warm_pool", "a duration such as 30m" },
	{ "security_group_ids", "sagemaker.vpc.security_groups", NULL },
	{ "volume_kms_key", "sagemaker.kms.volume", NULL },
	{ "output_kms_key", "sagemaker.kms.output", NULL },
	{ "disable_profiler", "sagemaker.profiler", "false to disable it" },
	{ "subnets", "sagemaker.vpc.subnets", NULL },
	{ "compiler_config training_compiler_config",
	  NULL, "remove the line: SageMaker Training Compiler, for GPUs, compiles while the training runs, and AWS develops it no further; what the section 'compile' says is compiled before, and proved complete" },
	{ "debugger_hook_config debug_hook_config",
	  NULL, "remove the line: the debugger's hook is always off, because it costs time and nothing reads what it writes" },
	{ "debugger_rules rules", NULL, "remove the line: the debugger is always off; limits, jit_budget and 'stoker report' watch the training" },
	/* Slurm */
	{ "account", "slurm.account", "or aws.account for an AWS account" },
	{ "qos constraint nodelist exclude reservation array", NULL, "no field says so to Slurm: see 'stoker help slurm'" },
};
/* clang-format on */
const size_t habit_count = STK_LENGTH(habits);
