/*
 * Shared by the files with rows of the failure table: the cures that several rows name, and
 * short forms for rows. The tables are searched in the order of tables[] in failure_text.c, the
 * rows of each in their order, the more specific before the more general: the first row that
 * matches a line decides for it. Only rows for the engine's words are compared with case.
 */
#ifndef STK_FLOW_FAILURE_TABLE_H
#define STK_FLOW_FAILURE_TABLE_H

#include "jobs/flow/failure_internal.h"

#define MEMORY_HINT                                                                                \
	"the machine ran out of memory: use a smaller batch, fewer workers or a larger instance"
#define DEVICE_HINT                                                                                \
	"the accelerator ran out of memory: use a smaller batch or sequence, or more parallelism"
#define NODE_HINT "the node is not healthy: run on another one, and have it replaced"
#define TAKEN_HINT                                                                                 \
	"another process holds the device: stop it or reload the driver, or run on another node"
#define VERSIONS_HINT "the installed packages do not fit together: install matching versions"
#define NEFF_HINT     "compiler and runtime do not fit together: use matching versions and a new cache"
#define CKPT_HINT     "the checkpoint or data file is damaged: an older checkpoint is tried once"
#define KEYS_HINT                                                                                  \
	"the checkpoint has other names than the model: take off what a wrapper put before them"
#define RIGHT_HINT         "give the job's role the right that the message names"
#define NAN_HINT           "the numbers overflowed: lower the learning rate; an older checkpoint is tried"
#define EFA_HINT           "enable EFA: its devices, its library and a security group that allows itself"
#define SETTING_HINT       "the program refuses one of its settings: see the line that asks for it"
#define DEFECT_HINT        "the compiler has a defect: try another version of it"
#define DYNAMO_HINT        "turn torch.compile off, or try another version"
#define SHM_HINT           "give the job more shared memory: resources.shm"
#define COMPILER_HINT      "the compiler's own words are above this line"
#define PULL_HINT          "give the role the right to pull the image"
#define LARGE_HINT         "the graph is too large: use more parallelism, or a smaller model"
#define QUOTA_HINT         "ask for a higher quota"
#define THREADS_HINT       "raise the limit of processes, or use fewer threads: OMP_NUM_THREADS"
#define TOKEN_HINT         "the service wants a valid token: give it in `secrets`"
#define PORT_HINT          "another process holds the port"
#define INDEX_HINT         "an index lies outside its table: check the ids in the data"
#define IMAGE_HINT         "image not found: correct `image`"
#define ACCOUNT_HINT       "the account may not run that much there"
#define LAUNCHER_HINT      "a variable that a launcher sets is missing: start the script with torchrun"
#define FORM_HINT          "a data file is not of the form that the others have"
#define PICTURE_HINT       "an image cannot be read: take it out of the data"
#define ACCESS_HINT        "ask for access to the repository, and give the token in `secrets`"
#define FIT_HINT           "a setting does not fit: the message names it"
#define PACKED_HINT        "a packed file is damaged"
#define NOTIFICATIONS_HINT "set NEURON_RT_ENABLE_DGE_NOTIFICATIONS=0"
#define KERNEL_HINT        "a kernel of the program read or wrote outside of its memory"
#define BLOCKS_HINT        "the kernel asks for more than the device has: make its blocks smaller"
#define INTERFACE_HINT     "NCCL_SOCKET_IFNAME names an interface that this machine does not have"
#define OPTION_HINT        "the script does not take '{}': remove hyperparameters.{option}"
#define YAML_HINT          "a YAML file of the program is malformed"
#define DATA_PATH_HINT     "the path of the data is given without .idx and .bin, and both must be there"
#define MODEL_HINT         "model or folder not found: correct its name"
#define INSTALL_HINT       "install what the message names where the job runs"
#define CUDNN_HINT                                                                                 \
	"cuDNN cannot start: mostly for want of device memory, else for versions that do not fit"
#define NO_GPU_HINT      "the machine has no GPU, or CUDA_VISIBLE_DEVICES hides it"
#define SLOTS_HINT       "more processes than the host list has slots for"
#define STORAGE_HINT     "write to a mounted file system, or give the job more local storage"
#define LOCKS_HINT       "the file system has no locks: use another one, or mount it with them"
#define UNWRITTEN_HINT   "the checkpoint could not be written, mostly for want of space: free some"
#define MOUNT_HINT       "the mount is gone: run on another node, or mount it again"
#define FILES_HINT       "raise the limit of open files to 65536"
#define WRITE_HINT       "the job may not write there: change the rights or the path"
#define SPAWN_HINT       "start processes only under: if __name__ == '__main__'"
#define OTHER_MODEL_HINT "the checkpoint is of another model: give its parameters, or start anew"
#define MISSING_HINT     "numbers are missing in the data, or overflowed"
#define OBJECT_HINT      "an object is missing in the bucket: check the URL and what wrote it"
#define WANDB_HINT       "give WANDB_API_KEY in `secrets`, or set WANDB_MODE=offline in `env`"
#define REPOSITORY_HINT  "give the credentials of the repository in `secrets`"
#define BUCKET_HINT      "the bucket lies in another region: name that one"
#define CERTIFICATE_HINT                                                                           \
	"the certificate is not trusted: check the clock, the CA bundle and the address"
#define SLURM_HINT    "Slurm refuses what is asked for: {}"
#define CAPACITY_HINT "wait, or ask for another instance type or region"
#define SPOT_SAID     "the log speaks of preemption, but the engine reports none"
#define CAPACITY_SAID "the log speaks of missing capacity, but the engine reports none"
#define FLAG_HINT                                                                                  \
	"{booleans}: the script takes a flag without a value: write hyperparameter_style: "        \
	"{booleans: flag}"
#define ENGINE_ENV_HINT "the image was not built for the machine's processor: build it for that one"
/* The codes of Neuron's compiler: compiler/error-codes of the SDK, as of 2026-07-14. */
#define OPERATOR_HINT                                                                              \
	"the compiler has no such operator: write it with those of 'neuronx-cc list-operators'"
#define CUSTOM_CALL_HINT                                                                           \
	"the compiler does not know a custom call: leave out the library or kernel that makes it"
#define FLOAT8_HINT "the device has no such 8-bit float: cast to bfloat16 or float16"
#define WINDOW_HINT "a pooling window must not be dilated: set its dilation to 1"
#define INTEGER_HINT                                                                               \
	"cast the integers to a float type, or permit it with --implicit-integer-downcast"
/* The codes of Neuron's runtime: nrt_status.h, and the SDK's nrt-troubleshoot.rst. */
#define INPUT_HINT                                                                                 \
	"an input is not of the shape or type that the graph was compiled for: "                   \
	"give the graph what it expects"
#define LATER_HINT "the runtime had failed before: the first error is above this line"
#define QUEUE_HINT                                                                                 \
	"the runtime's queue was full or empty: if it comes again, lower "                         \
	"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS"
#define EXEC_HINT                                                                                  \
	"a core or a peer does not answer: look at the other nodes, or for "                       \
	"long graphs raise NEURON_RT_EXEC_TIMEOUT"
#define INVALID_HINT                                                                               \
	"the runtime refuses a graph or an input: use matching versions and a new cache"
#define PEER_HINT    "a peer is late or has ended: look at the other nodes"
#define RUNTIME_HINT "the runtime failed: its own words are above this line"
#define TIME_HINT    "the engine's time limit was reached: ask for more time"

/* Short forms: a cause in the log; a cause also if the process was killed from outside; a cause
 * only as the exception that ended a traceback; out of memory, which fewer workers cure in
 * precompile; a symptom of a failure elsewhere; the engine's own words. */
#define CAUSE(id, text, class, hint)                                                               \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, false, hint        \
	}
#define FATAL(id, text, class, hint)                                                               \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, true, hint         \
	}
#define RAISED(id, text, class, hint)                                                              \
	{                                                                                          \
		id, FAILURE_RAISED, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, false, hint     \
	}
#define MEMORY(id, source, text)                                                                   \
	{                                                                                          \
		id, FAILURE_##source, text, FAILURE_ROOT, CLASS_USER_CONFIG, CLASS_COMPILE, true,  \
			MEMORY_HINT                                                                \
	}
#define SYMPTOM(id, text, class, hint)                                                             \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_SYMPTOM, CLASS_##class, CLASS_NONE, true, hint      \
	}
/* The log's mention of Spot, preemption or capacity: only a hint. Any program prints such words,
 * and only the engine or a service knows. */
#define SAID(id, text, hint)                                                                       \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_SYMPTOM, CLASS_UNKNOWN, CLASS_NONE, true, hint      \
	}
#define ENGINE(id, text, class, hint)                                                              \
	{                                                                                          \
		id, FAILURE_ENGINE, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, true, hint      \
	}

#define SOURCE(id, text, class, hint)                                                              \
	{                                                                                          \
		id, FAILURE_SOURCE, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, false, hint     \
	}

#define FAILURE_TABLE(array)                                                                       \
	{                                                                                          \
		array, sizeof(array) / sizeof(array)[0]                                            \
	}

#endif
