/* A line for each row of the failure table: a row without one fails here. */
#include "tests/unit/flow/judge.h"

struct row_case {
	const char *id;
	const char *line; /* of the log, or the engine's words for rows that begin with "eng-" */
	enum failure_class class;
	const char *hint; /* part of it, or NULL */
};

/* clang-format off */
static const struct row_case cases[] = {
	{ "py-no-script", "python3: can't open file '/w/train.py': [Errno 2] No such file or directory", CLASS_USER_CONFIG, "'/w/train.py' is not in the packed source" },
	{ "sh-not-found", "/bin/sh: 1: torchrun: not found", CLASS_USER_CONFIG, "not installed" },
	{ "bash-not-found", "bash: line 1: torchrun: command not found", CLASS_USER_CONFIG, "not installed" },
	{ "exec-format", "OSError: [Errno 8] Exec format error: './train'", CLASS_USER_CONFIG, "another kind of machine" },
	{ "arg-unknown", "train.py: error: unrecognized arguments: --warmup 10 --x 1", CLASS_USER_CONFIG, "remove hyperparameters.warmup" },
	{ "arg-value", "train.py: error: argument --lr: invalid float value: 'abc'", CLASS_USER_CONFIG, "correct hyperparameters.lr" },
	{ "arg-required", "train.py: error: the following arguments are required: --data, --model", CLASS_USER_CONFIG, "add hyperparameters.data" },
	{ "click-no-option", "Error: No such option: --lr=3", CLASS_USER_CONFIG, "remove hyperparameters.lr" },
	{ "py-module", "ModuleNotFoundError: No module named 'sklearn.datasets'", CLASS_USER_CONFIG, "install 'sklearn.datasets'" },
	{ "py-m-module", "/usr/bin/python3: No module named torch.distributed", CLASS_USER_CONFIG, "install 'torch.distributed'" },
	{ "py-import", "ImportError: cannot import name 'grad' from 'jax' (/x/__init__.py)", CLASS_USER_CONFIG, "matching versions" },
	{ "py-symbol", "OSError: /x/_XLAC.so: undefined symbol: _ZN5torch", CLASS_USER_CONFIG, "matching versions" },
	{ "py-library", "./a.out: error while loading shared libraries: libnccom.so.2: cannot open shared object file", CLASS_USER_CONFIG, "'libnccom.so.2'" },
	{ "py-syntax", "SyntaxError: invalid syntax", CLASS_USER_CODE, "correct the script" },
	{ "py-indent", "IndentationError: unexpected indent", CLASS_USER_CODE, NULL },
	{ "py-space", "OSError: [Errno 28] No space left on device: '/ckpt/x'", CLASS_USER_CONFIG, "free space" },
	{ "py-quota", "OSError: [Errno 122] Disk quota exceeded", CLASS_USER_CONFIG, "quota" },
	{ "io-error", "OSError: [Errno 5] Input/output error", CLASS_HARDWARE_NODE, NULL },
	{ "io-stale", "OSError: [Errno 116] Stale file handle", CLASS_HARDWARE_NODE, NULL },
	{ "io-read-only", "OSError: [Errno 30] Read-only file system: '/x'", CLASS_HARDWARE_NODE, NULL },
	{ "io-files", "OSError: [Errno 24] Too many open files", CLASS_USER_CONFIG, "65536" },
	{ "py-no-file", "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'", CLASS_USER_CONFIG, "a file is missing" },
	{ "py-forbidden", "PermissionError: [Errno 13] Permission denied: '/data'", CLASS_USER_CONFIG, "rights" },
	{ "py-memory", "MemoryError", CLASS_USER_CONFIG, "smaller batch" },
	{ "np-memory", "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB", CLASS_USER_CONFIG, "smaller batch" },
	{ "cc-memory", "terminate called after throwing an instance of 'std::bad_alloc'", CLASS_USER_CONFIG, "smaller batch" },
	{ "os-memory", "OSError: [Errno 12] Cannot allocate memory", CLASS_USER_CONFIG, "smaller batch" },
	{ "kernel-oom", "[12.3] Out of memory: Killed process 4711 (python3)", CLASS_USER_CONFIG, "smaller batch" },
	{ "cgroup-oom", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=22.batch.", CLASS_USER_CONFIG, "smaller batch" },
	{ "xla-memory", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes", CLASS_USER_CONFIG, "accelerator" },
	{ "cuda-memory", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", CLASS_USER_CONFIG, "accelerator" },
	{ "ckpt-zip", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory", CLASS_DATA, "older checkpoint" },
	{ "ckpt-badzip", "zipfile.BadZipFile: File is not a zip file", CLASS_DATA, "older checkpoint" },
	{ "ckpt-pickle", "EOFError: Ran out of input", CLASS_DATA, "older checkpoint" },
	{ "ckpt-safetensors", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", CLASS_DATA, "older" },
	{ "nan", "FloatingPointError: invalid value (nan) encountered in jit(step)", CLASS_DATA, "learning rate" },
	{ "s3-no-key", "botocore.errorfactory.NoSuchKey: An error occurred (NoSuchKey)", CLASS_DATA, "bucket" },
	{ "aws-denied", "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling PutObject", CLASS_QUOTA_PERMISSION, "role" },
	{ "aws-expired", "botocore.exceptions.ClientError: An error occurred (ExpiredToken)", CLASS_TRANSIENT_INFRA, "role" },
	{ "aws-no-credentials", "botocore.exceptions.NoCredentialsError: Unable to locate credentials", CLASS_QUOTA_PERMISSION, "role" },
	{ "aws-throttled", "botocore.exceptions.ClientError: An error occurred (ThrottlingException)", CLASS_TRANSIENT_INFRA, NULL },
	{ "aws-slow-down", "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling GetObject", CLASS_TRANSIENT_INFRA, NULL },
	{ "http-5xx", "urllib.error.HTTPError: HTTP Error 503: Service Unavailable", CLASS_TRANSIENT_INFRA, NULL },
	{ "name-lookup", "socket.gaierror: [Errno -3] Temporary failure in name resolution", CLASS_TRANSIENT_INFRA, NULL },
	{ "py-timeout", "TimeoutError: [Errno 110] Connection timed out", CLASS_TRANSIENT_INFRA, NULL },
	{ "http-connect", "requests.exceptions.ConnectionError: Max retries exceeded with url: /x", CLASS_TRANSIENT_INFRA, NULL },
	{ "ncc-killed", "[F137] neuronx-cc was forcibly killed - This most commonly occurs due to insufficient system memory", CLASS_COMPILE, "fewer workers" },
	{ "ncc-aborted", "[F134] neuronx-cc terminated abnormally - Please open a support ticket", CLASS_COMPILE, "crashed" },
	{ "ncc-device-memory", "ERROR: [NCC_EOOM001] out of device memory", CLASS_USER_CONFIG, "accelerator" },
	{ "ncc-unsupported", "ERROR: [NCC_EMOD025] dynamic shape", CLASS_USER_CODE, "NCC_EMOD025" },
	{ "ncc-70", "RuntimeError: neuronx-cc compilation failed with 70", CLASS_COMPILE, "compiler" },
	{ "ncc-cached-failure", "Got a cached failed neff at /c/x. Will skip compilation, please set --retry_failed_compilation", CLASS_COMPILE, "retry_failed_compilation" },
	{ "nrt-cores-taken", "NeuronCore(s) not available - Requested:2 Available:0", CLASS_HARDWARE_NODE, "another process" },
	{ "nrt-driver", "Unable to determine Neuron Driver version. Check aws-neuronx-dkms", CLASS_USER_CONFIG, "driver" },
	{ "nrt-neff-version", "NEFF version mismatch supported: 1.2 received: 2.0", CLASS_USER_CONFIG, "matching versions" },
	{ "nrt-memory", "Uncorrectable memory error is detected, metadata: 0x16", CLASS_HARDWARE_NODE, "another one" },
	{ "nrt-hw", "neuron: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i-0 action=TERMINATE_INSTANCE", CLASS_HARDWARE_NODE, "another one" },
	{ "nrt-unrecoverable", "nrt_execute failed: NRT_EXEC_UNIT_UNRECOVERABLE", CLASS_HARDWARE_NODE, "another one" },
	{ "nrt-dma", "DMA TX engine 0 is in an abort state", CLASS_HARDWARE_NODE, "another one" },
	{ "nrt-open", "Could not open the nd0", CLASS_HARDWARE_NODE, "another one" },
	{ "nrt-nan", "Error: INFER_ERROR_SUBTYPE_NUMERICAL", CLASS_DATA, "learning rate" },
	{ "efa-plugin", "OFI plugin initNet() failed is EFA enabled?", CLASS_USER_CONFIG, "EFA" },
	{ "torchrun-summary", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", CLASS_UNKNOWN, NULL },
	{ "py-interrupt", "KeyboardInterrupt", CLASS_UNKNOWN, NULL },
	{ "peer-reset", "ConnectionResetError: [Errno 104] Connection reset by peer", CLASS_COMM, NULL },
	{ "peer-closed", "RX, connection closed by remote peer", CLASS_COMM, NULL },
	{ "peer-socket", "RPC failed with status = \"UNAVAILABLE: Socket closed\"", CLASS_COMM, NULL },
	{ "peer-pipe", "BrokenPipeError: [Errno 32] Broken pipe", CLASS_COMM, NULL },
	{ "peer-refused", "ConnectionRefusedError: [Errno 111] Connection refused", CLASS_COMM, NULL },
	{ "coll-hang", "missing collectives status on Neuron Device 0, suspected hang in collectives operation", CLASS_COMM, NULL },
	{ "jax-heartbeat", "The following tasks are unhealthy (stopped sending heartbeats): heartbeat timeout", CLASS_COMM, NULL },
	{ "jax-unavailable", "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: task 1 left", CLASS_COMM, NULL },
	{ "eng-oom", "job state OUT_OF_MEMORY", CLASS_USER_CONFIG, "smaller batch" },
	{ "eng-oom-batch", "OutOfMemoryError: Container killed due to memory usage", CLASS_USER_CONFIG, "smaller batch" },
	{ "eng-oom-kill", "the kernel's oom-kill ended it", CLASS_USER_CONFIG, "smaller batch" },
	{ "eng-node-fail", "NODE_FAIL", CLASS_HARDWARE_NODE, NULL },
	{ "eng-boot-fail", "BOOT_FAIL", CLASS_HARDWARE_NODE, NULL },
	{ "eng-preempted", "PREEMPTED", CLASS_SPOT, NULL },
	{ "eng-host-gone", "Host EC2 (instance i-0123) terminated.", CLASS_SPOT, NULL },
	{ "eng-spot", "Your Spot Task was interrupted.", CLASS_SPOT, NULL },
	{ "eng-capacity", "CapacityError: Unable to provision requested ML compute capacity.", CLASS_CAPACITY, "wait" },
	{ "eng-no-instance", "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - no", CLASS_CAPACITY, "wait" },
	{ "eng-timeout", "TIMEOUT", CLASS_TIMEOUT_HANG, "more time" },
	{ "eng-duration", "Job attempt duration exceeded timeout", CLASS_TIMEOUT_HANG, "more time" },
	{ "eng-cancelled", "CANCELLED by 1000", CLASS_STOPPED, NULL },
	{ "eng-internal", "InternalServerError: We encountered an internal error. Please try again.", CLASS_TRANSIENT_INFRA, NULL },
	{ "eng-denied", "AccessDeniedException: not authorized to perform batch:SubmitJob", CLASS_QUOTA_PERMISSION, "right" },
	{ "eng-quota", "ResourceLimitExceeded: account-level service limit", CLASS_QUOTA_PERMISSION, "quota" },
};
/* clang-format on */

static void each_row_is_reached_by_its_line(void **state)
{
	(void)state;
	assert_int_equal(sizeof cases / sizeof cases[0], failure_row_count);
	for (size_t i = 0; i < failure_row_count; i++) {
		const struct row_case *c = &cases[i];
		bool engine = strncmp(c->id, "eng-", 4) == 0;
		struct failure_evidence e = { .phase = PHASE_TRAIN, .exit_known = true, .exit = 3 };
		struct failure_verdict v;

		assert_string_equal(c->id, failure_rows[i].id);
		if (engine)
			e.engine_reason = c->line;
		v = judge(e, engine ? "step 1" : c->line);
		assert_string_equal(v.rule, c->id);
		assert_int_equal(v.class, c->class);
		assert_non_null(strstr(v.evidence, c->line));
		if (c->hint)
			assert_non_null(strstr(v.hint, c->hint));
	}
}

static void ids_and_hints_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < failure_row_count; i++) {
		const struct failure_row *row = &failure_rows[i];
		const char *brace = row->hint;

		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(row->id, failure_rows[j].id);
		assert_true(row->pattern[0] != '*' && row->pattern[0] != '\0');
		while ((brace = strchr(brace, '{')) != NULL) {
			assert_true(strncmp(brace, "{}", 2) == 0 ||
				    strncmp(brace, "{option}", 8) == 0);
			assert_non_null(strchr(row->pattern, '*'));
			brace++;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_reached_by_its_line),
		cmocka_unit_test(ids_and_hints_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
