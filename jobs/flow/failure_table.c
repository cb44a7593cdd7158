/*
 * The failures that are known by what is said about them, one row each, the
 * more specific before the more general: the first row that matches a line
 * decides for it. Texts come from the documentation and sources of CPython,
 * argparse, JAX, PyTorch, the Linux kernel, Slurm, AWS Batch, SageMaker and the
 * AWS Neuron SDK (runtime troubleshooting, compiler error codes).
 */
#include "jobs/flow/failure.h"

#define MEMORY_HINT                                                                                \
	"the machine ran out of memory: use a smaller batch, fewer workers or a larger instance"
#define DEVICE_HINT                                                                                \
	"the accelerator ran out of memory: use a smaller batch or sequence, or more parallelism"
#define NODE_HINT "the node is not healthy: run on another one, and have it replaced"

/* A cause in the log; a cause also where the process was killed from outside; out
 * of memory, which fewer workers cure in precompile; a symptom of somebody else's
 * failure; the engine's own words. */
#define CAUSE(id, text, class, cure)                                                               \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, false, cure        \
	}
#define FATAL(id, text, class, cure)                                                               \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, true, cure         \
	}
#define MEMORY(id, source, text)                                                                   \
	{                                                                                          \
		id, FAILURE_##source, text, FAILURE_ROOT, CLASS_USER_CONFIG, CLASS_COMPILE, true,  \
			MEMORY_HINT                                                                \
	}
#define SYMPTOM(id, text, class, cure)                                                             \
	{                                                                                          \
		id, FAILURE_LOG, text, FAILURE_SYMPTOM, CLASS_##class, CLASS_NONE, true, cure      \
	}
#define ENGINE(id, text, class, cure)                                                              \
	{                                                                                          \
		id, FAILURE_ENGINE, text, FAILURE_ROOT, CLASS_##class, CLASS_NONE, true, cure      \
	}

/* clang-format off */
const struct failure_row failure_rows[] = {
	/* the command and its arguments */
	CAUSE("py-no-script", "can't open file '*'", USER_CONFIG,
		"'{}' is not in the packed source: check `command` and `source`"),
	SYMPTOM("sh-not-found", "sh: *: not found", USER_CONFIG,
		"a program of `command` is not installed where the job runs"),
	SYMPTOM("bash-not-found", ": command not found", USER_CONFIG,
		"a program of `command` is not installed where the job runs"),
	CAUSE("exec-format", "Exec format error", USER_CONFIG,
		"the program was built for another kind of machine, or its first line is not `#!`"),
	CAUSE("arg-unknown", "error: unrecognized arguments: *", USER_CONFIG,
		"the script does not take '{}': remove hyperparameters.{option}"),
	CAUSE("arg-value", "error: argument *: ", USER_CONFIG,
		"the script refuses the value for {}: correct hyperparameters.{option}"),
	CAUSE("arg-required", "error: the following arguments are required: *", USER_CONFIG,
		"the script needs '{}': add hyperparameters.{option}"),
	CAUSE("click-no-option", "Error: No such option: *", USER_CONFIG,
		"the script does not take '{}': remove hyperparameters.{option}"),

	/* Python */
	CAUSE("py-module", "^ModuleNotFoundError: No module named '*'", USER_CONFIG,
		"install '{}' in the Python that runs `command`, or name another Python there"),
	CAUSE("py-m-module", ": No module named *", USER_CONFIG,
		"install '{}' in the Python that runs `command`, or name another Python there"),
	CAUSE("py-import", "^ImportError: *", USER_CONFIG,
		"the installed packages do not fit together: install matching versions"),
	CAUSE("py-symbol", "undefined symbol: ", USER_CONFIG,
		"the installed libraries do not fit together: install matching versions"),
	CAUSE("py-library", "error while loading shared libraries: *:", USER_CONFIG,
		"install the library '{}' where the job runs"),
	CAUSE("py-syntax", "^SyntaxError: ", USER_CODE,
		"correct the script, or run it with a newer Python"),
	CAUSE("py-indent", "^IndentationError: ", USER_CODE, "correct the script"),
	FATAL("py-space", "No space left on device", USER_CONFIG,
		"free space on the file system that the message names, or write to another one"),
	FATAL("py-quota", "Disk quota exceeded", USER_CONFIG,
		"free space under the quota of the file system that the message names"),
	FATAL("io-error", "Input/output error", HARDWARE_NODE, NODE_HINT),
	FATAL("io-stale", "Stale file handle", HARDWARE_NODE,
		"the shared file system lost the file: run on another node, or mount it again"),
	FATAL("io-read-only", "Read-only file system", HARDWARE_NODE,
		"write under STOKER_CHECKPOINT_DIR and STOKER_OUTPUT_DIR, or run on another node"),
	CAUSE("io-files", "Too many open files", USER_CONFIG,
		"raise the limit of open files to 65536"),
	CAUSE("py-no-file", "^FileNotFoundError: *", USER_CONFIG,
		"a file is missing where the job runs: check `source`, `mounts` and the path"),
	CAUSE("py-forbidden", "^PermissionError: *", USER_CONFIG,
		"the job may not read or write that file: change its rights or the path"),
	MEMORY("py-memory", LOG, "^MemoryError"),
	MEMORY("np-memory", LOG, "MemoryError: Unable to allocate"),
	MEMORY("cc-memory", LOG, "std::bad_alloc"),
	MEMORY("os-memory", LOG, "Cannot allocate memory"),
	MEMORY("kernel-oom", LOG, "Out of memory: Killed process"),
	MEMORY("cgroup-oom", LOG, " oom-kill event"),
	FATAL("xla-memory", "RESOURCE_EXHAUSTED", USER_CONFIG, DEVICE_HINT),
	FATAL("cuda-memory", "CUDA out of memory", USER_CONFIG, DEVICE_HINT),

	/* data and checkpoints */
	CAUSE("ckpt-zip", "PytorchStreamReader failed", DATA,
		"the checkpoint or data file is damaged: an older checkpoint is tried once"),
	CAUSE("ckpt-badzip", "BadZipFile", DATA,
		"the checkpoint or data file is damaged: an older checkpoint is tried once"),
	CAUSE("ckpt-pickle", "^EOFError: Ran out of input", DATA,
		"the checkpoint or data file is cut short: an older checkpoint is tried once"),
	CAUSE("ckpt-safetensors", "SafetensorError: Error while deserializing", DATA,
		"the checkpoint is damaged: an older one is tried once"),
	CAUSE("nan", "^FloatingPointError: ", DATA,
		"the numbers overflowed: lower the learning rate; an older checkpoint is tried"),
	CAUSE("s3-no-key", "NoSuchKey", DATA,
		"an object is missing in the bucket: check the URL and what wrote it"),

	/* rights, services */
	CAUSE("aws-denied", "AccessDenied", QUOTA_PERMISSION,
		"give the job's role the right that the message names"),
	CAUSE("aws-expired", "ExpiredToken", TRANSIENT_INFRA,
		"credentials ran out: use a role instead of copied keys"),
	CAUSE("aws-no-credentials", "Unable to locate credentials", QUOTA_PERMISSION,
		"give the job a role, or name the credentials in `secrets`"),
	CAUSE("aws-throttled", "ThrottlingException", TRANSIENT_INFRA, ""),
	CAUSE("aws-slow-down", "(SlowDown)", TRANSIENT_INFRA, ""),
	CAUSE("http-5xx", "HTTP Error 50", TRANSIENT_INFRA, ""),
	CAUSE("name-lookup", "Temporary failure in name resolution", TRANSIENT_INFRA, ""),
	CAUSE("py-timeout", "^TimeoutError", TRANSIENT_INFRA, ""),
	CAUSE("http-connect", "Max retries exceeded with url", TRANSIENT_INFRA, ""),

	/* the compiler */
	FATAL("ncc-killed", "[F137] neuronx-cc was forcibly killed", COMPILE,
		"the compiler ran out of memory: use fewer workers or a larger instance"),
	FATAL("ncc-aborted", "[F134] neuronx-cc terminated abnormally", COMPILE,
		"the compiler crashed: try another version of it"),
	FATAL("ncc-device-memory", "NCC_EOOM0", USER_CONFIG, DEVICE_HINT),
	CAUSE("ncc-unsupported", "[NCC_E*]", USER_CODE,
		"look up NCC_E{}: the model uses what the compiler cannot compile"),
	FATAL("ncc-70", "neuronx-cc compilation failed with 70", COMPILE,
		"the compiler's own words are above this line"),
	CAUSE("ncc-cached-failure", "Got a cached failed neff", COMPILE,
		"an old failure is cached: add --retry_failed_compilation to NEURON_CC_FLAGS"),

	/* accelerators */
	FATAL("nrt-cores-taken", "NeuronCore(s) not available", HARDWARE_NODE,
		"another process holds the cores: stop it, or run on another node"),
	CAUSE("nrt-driver", "Unable to determine Neuron Driver version", USER_CONFIG,
		"the node's image has no Neuron driver"),
	CAUSE("nrt-neff-version", "NEFF version mismatch", USER_CONFIG,
		"compiler and runtime do not fit together: use matching versions and a new cache"),
	FATAL("nrt-memory", "Uncorrectable memory error", HARDWARE_NODE, NODE_HINT),
	FATAL("nrt-hw", "NEURON_HW_ERR=", HARDWARE_NODE, NODE_HINT),
	FATAL("nrt-unrecoverable", "NRT_EXEC_UNIT_UNRECOVERABLE", HARDWARE_NODE, NODE_HINT),
	FATAL("nrt-dma", " is in an abort state", HARDWARE_NODE, NODE_HINT),
	FATAL("nrt-open", "Could not open the nd", HARDWARE_NODE, NODE_HINT),
	FATAL("nrt-nan", "INFER_ERROR_SUBTYPE_NUMERICAL", DATA,
		"the numbers overflowed: lower the learning rate; an older checkpoint is tried"),
	CAUSE("efa-plugin", "OFI plugin initNet() failed", USER_CONFIG,
		"enable EFA: its devices, its library and a security group that allows itself"),

	/* symptoms: somebody else failed, or something ended the whole */
	SYMPTOM("torchrun-summary", "ChildFailedError", UNKNOWN, ""),
	SYMPTOM("py-interrupt", "^KeyboardInterrupt", UNKNOWN, ""),
	SYMPTOM("peer-reset", "Connection reset by peer", COMM, ""),
	SYMPTOM("peer-closed", "connection closed by remote peer", COMM, ""),
	SYMPTOM("peer-socket", "Socket closed", COMM, ""),
	SYMPTOM("peer-pipe", "Broken pipe", COMM, ""),
	SYMPTOM("peer-refused", "Connection refused", COMM, ""),
	SYMPTOM("coll-hang", "suspected hang in collectives", COMM, ""),
	SYMPTOM("jax-heartbeat", "heartbeat timeout", COMM, ""),
	SYMPTOM("jax-unavailable", "UNAVAILABLE: ", COMM, ""),

	/* what engines say */
	MEMORY("eng-oom", ENGINE, "OUT_OF_MEMORY"),
	MEMORY("eng-oom-batch", ENGINE, "OutOfMemoryError"),
	MEMORY("eng-oom-kill", ENGINE, "oom-kill"),
	ENGINE("eng-node-fail", "NODE_FAIL", HARDWARE_NODE, NODE_HINT),
	ENGINE("eng-boot-fail", "BOOT_FAIL", HARDWARE_NODE, NODE_HINT),
	ENGINE("eng-preempted", "PREEMPTED", SPOT, ""),
	ENGINE("eng-host-gone", "Host EC2", SPOT, ""),
	ENGINE("eng-spot", "Spot Task was interrupted", SPOT, ""),
	ENGINE("eng-capacity", "CapacityError", CAPACITY,
		"wait, or ask for another instance type or region"),
	ENGINE("eng-no-instance", "INSUFFICIENT_INSTANCE_CAPACITY", CAPACITY,
		"wait, or ask for another instance type or region"),
	ENGINE("eng-timeout", "TIMEOUT", TIMEOUT_HANG,
		"the engine's time limit was reached: ask for more time"),
	ENGINE("eng-duration", "duration exceeded timeout", TIMEOUT_HANG,
		"the engine's time limit was reached: ask for more time"),
	ENGINE("eng-cancelled", "CANCELLED", STOPPED, ""),
	ENGINE("eng-internal", "InternalServerError", TRANSIENT_INFRA, ""),
	ENGINE("eng-denied", "AccessDenied", QUOTA_PERMISSION,
		"give the role the right that the message names"),
	ENGINE("eng-quota", "ResourceLimitExceeded", QUOTA_PERMISSION,
		"ask for a higher quota of that instance type"),
};
/* clang-format on */

const size_t failure_row_count = sizeof failure_rows / sizeof failure_rows[0];
