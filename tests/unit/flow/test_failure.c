/*
 * Why an attempt failed: a line for each row of the table, and logs as they are
 * for the order of who is believed.
 */
#include "tests/unit/flow/story.h"

#include "jobs/flow/failure.h"

#define LINES_MAX 64

/* The log is given as one text, as it would stand in a file. */
static struct failure_verdict judge(struct failure_evidence e, const char *log)
{
	static struct failure_line lines[LINES_MAX];
	struct failure_verdict verdict;

	e.lines = lines;
	while (log && *log) {
		const char *end = strchr(log, '\n');
		size_t len = end ? (size_t)(end - log) : strlen(log);

		assert_true(e.count < LINES_MAX);
		lines[e.count++] = (struct failure_line){ log, len };
		log += len + (end ? 1 : 0);
	}
	failure_judge(&e, &verdict);
	assert_true(strlen(verdict.evidence) < sizeof verdict.evidence);
	return verdict;
}

static struct failure_verdict judge_exit(int exit, const char *log)
{
	return judge(
		(struct failure_evidence){ .phase = PHASE_TRAIN, .exit_known = true, .exit = exit },
		log);
}

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

static void a_traceback_is_user_code_with_its_last_frames(void **state)
{
	struct failure_verdict v = judge_exit(1, "step: 1 loss: 0.5\n"
						 "Traceback (most recent call last):\n"
						 "  File \"train.py\", line 90, in <module>\n"
						 "    main()\n"
						 "  File \"train.py\", line 80, in main\n"
						 "    train()\n"
						 "  File \"train.py\", line 70, in train\n"
						 "    step()\n"
						 "  File \"train.py\", line 60, in step\n"
						 "    x = batch['image']\n"
						 "KeyError: 'image'\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_string_equal(v.rule, "py-traceback");
	assert_string_equal(v.evidence, "  File \"train.py\", line 80, in main\n"
					"    train()\n"
					"  File \"train.py\", line 70, in train\n"
					"    step()\n"
					"  File \"train.py\", line 60, in step\n"
					"    x = batch['image']\n"
					"KeyError: 'image'");
}

static void a_missing_module_names_itself_and_its_cure(void **state)
{
	struct failure_verdict v = judge_exit(1, "Traceback (most recent call last):\n"
						 "  File \"train.py\", line 1, in <module>\n"
						 "    import flax\n"
						 "ModuleNotFoundError: No module named 'flax'\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_non_null(strstr(v.evidence, "import flax"));
	assert_non_null(strstr(v.hint, "install 'flax' in the Python that runs"));
}

static void a_syntax_error_shows_its_line(void **state)
{
	struct failure_verdict v = judge_exit(1, "  File \"/w/train.py\", line 3\n"
						 "    x = = 1\n"
						 "        ^\n"
						 "SyntaxError: invalid syntax\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_string_equal(v.evidence, "  File \"/w/train.py\", line 3\n"
					"    x = = 1\n"
					"        ^\n"
					"SyntaxError: invalid syntax");
}

static void the_first_of_chained_exceptions_decides_and_the_last_is_shown(void **state)
{
	struct failure_verdict v = judge_exit(
		1, "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 1, in f\n"
		   "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"
		   "\n"
		   "During handling of the above exception, another exception occurred:\n"
		   "\n"
		   "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 3, in g\n"
		   "RuntimeError: cannot load\n"
		   "\n"
		   "The above exception was the direct cause of the following exception:\n"
		   "\n"
		   "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 5, in h\n"
		   "ValueError: no data\n"
		   "bye\n");

	(void)state;
	assert_string_equal(v.rule, "py-no-file");
	assert_string_equal(v.evidence,
			    "  File \"a.py\", line 1, in f\n"
			    "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"
			    "The above exception was the direct cause of the following exception:\n"
			    "ValueError: no data");
}

static void what_follows_a_lost_peer_is_not_the_users_fault(void **state)
{
	struct failure_verdict v = judge_exit(
		1, "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 1, in f\n"
		   "ConnectionResetError: [Errno 104] Connection reset by peer\n"
		   "\n"
		   "During handling of the above exception, another exception occurred:\n"
		   "\n"
		   "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 3, in g\n"
		   "RuntimeError: all_reduce failed\n");

	(void)state;
	assert_int_equal(v.class, CLASS_COMM);
}

static void a_cause_wins_over_an_earlier_symptom_and_a_later_cause(void **state)
{
	struct failure_verdict v =
		judge_exit(1, "RX, connection closed by remote peer\n"
			      "Uncorrectable memory error is detected, metadata: 0x1\n"
			      "Traceback (most recent call last):\n"
			      "  File \"a.py\", line 3, in g\n"
			      "RuntimeError: step failed\n");

	(void)state;
	assert_string_equal(v.rule, "nrt-memory");
}

static void two_unrelated_tracebacks_are_not_a_chain(void **state)
{
	struct failure_verdict v = judge_exit(1, "Traceback (most recent call last):\n"
						 "  File \"a.py\", line 1, in f\n"
						 "BrokenPipeError: [Errno 32] Broken pipe\n"
						 "Traceback (most recent call last):\n"
						 "  File \"a.py\", line 3, in g\n"
						 "ZeroDivisionError: division by zero\n");

	(void)state;
	assert_string_equal(v.rule, "py-traceback");
	assert_non_null(strstr(v.evidence, "ZeroDivisionError"));
}

static void advice_and_warnings_are_no_evidence(void **state)
{
	static const char *const lines[] = {
		"This may be caused by RESOURCE_EXHAUSTED on the device",
		"hint: look for AccessDenied in the bucket's log",
		"UserWarning: Too many open files, slowing down",
		"Connection reset by peer, retrying in 3 s",
		"(NON-FATAL, Ignoring) NEURON_HW_ERR=X",
		"If you see No space left on device, clean up",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_string_equal(judge_exit(3, lines[i]).rule, "nothing-known");
}

static void foreign_lines_inside_a_traceback_do_not_end_it(void **state)
{
	struct failure_verdict v = judge_exit(1, "[rank1]: Traceback (most recent call last):\n"
						 "step 12 loss 0.3 (rank 0)\n"
						 "[rank1]:   File \"a.py\", line 3, in g\n"
						 "[rank1]:     return 1 / 0\n"
						 "12:00:01 still here\n"
						 "[rank1]: ZeroDivisionError: division by zero\n");

	(void)state;
	assert_string_equal(v.rule, "py-traceback");
	assert_string_equal(v.evidence, "  File \"a.py\", line 3, in g\n"
					"    return 1 / 0\n"
					"ZeroDivisionError: division by zero");
}

static void a_progress_bar_does_not_hide_the_cause(void **state)
{
	(void)state;
	assert_string_equal(judge_exit(1, " 10%|#  |\r 20%|## |\rMemoryError\r\n").rule,
			    "py-memory");
}

struct exit_case {
	int exit;
	int signal;
	const char *log;
	const char *rule;
	enum failure_class class;
};

static const struct exit_case exits[] = {
	{ 0, 0, "Traceback (most recent call last):\n  x\nKeyError: 1", "success", CLASS_NONE },
	{ 1, 0, "", "exit-1", CLASS_USER_CODE },
	{ 2, 0, "bye", "exit-1", CLASS_USER_CODE },
	{ 3, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 75, 0, "KeyError: 1", "exit-75", CLASS_TRANSIENT_INFRA },
	{ 86, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 87, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 126, 0, "sh: 1: ./t: Permission denied", "exit-126", CLASS_USER_CONFIG },
	{ 127, 0, "sh: 1: torchrun: not found", "exit-127", CLASS_USER_CONFIG },
	{ 137, 0, "step 3", "sigkill", CLASS_UNKNOWN },
	{ 0, 9, "step 3", "sigkill", CLASS_UNKNOWN },
	{ -9, 0, "step 3", "sigkill", CLASS_UNKNOWN },
	{ 143, 0, "", "killed", CLASS_UNKNOWN },
	{ 139, 0, "Fatal Python error: Segmentation fault", "crash", CLASS_USER_CODE },
	{ 134, 0, "", "crash", CLASS_USER_CODE },
	{ 135, 0, "", "crash", CLASS_USER_CODE },
	{ 136, 0, "", "crash", CLASS_USER_CODE },
	{ 134, 0, "std::bad_alloc", "cc-memory", CLASS_USER_CONFIG },
	/* killed from outside: a traceback in the log was survived */
	{ 137, 0, "Traceback (most recent call last):\n  x\nKeyError: 1", "sigkill",
	  CLASS_UNKNOWN },
	{ 137, 0, "Out of memory: Killed process 3 (python3)", "kernel-oom", CLASS_USER_CONFIG },
	{ 143, 0, "Connection reset by peer", "peer-reset", CLASS_COMM },
};

static void exits_and_signals_mean_what_the_table_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++) {
		const struct exit_case *c = &exits[i];
		struct failure_verdict v = judge((struct failure_evidence){ .phase = PHASE_TRAIN,
									    .exit_known = true,
									    .exit = c->exit,
									    .signal = c->signal },
						 c->log);

		assert_string_equal(v.rule, c->rule);
		assert_int_equal(v.class, c->class);
		assert_true((v.evidence[0] == '\0') == (c->class == CLASS_NONE));
	}
}

static void no_exit_status_is_unknown_and_not_a_failure_of_the_user(void **state)
{
	struct failure_verdict v =
		judge((struct failure_evidence){ .phase = PHASE_TRAIN }, "step 1\nstep 2");

	(void)state;
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_string_equal(v.evidence, "no exit status is known\nstep 1\nstep 2");
}

static void the_agent_is_believed_first_then_the_engine_then_the_log(void **state)
{
	struct failure_evidence e = { .phase = PHASE_TRAIN, .exit_known = true, .exit = 1 };
	struct failure_verdict v;

	(void)state;
	assert_string_equal(judge(e, "MemoryError").rule, "py-memory");
	e.engine_reason = "Host EC2 (instance i-1) terminated.";
	assert_string_equal(judge(e, "MemoryError").rule, "eng-host-gone");
	e.agent_class = CLASS_USER_CONFIG;
	e.agent_message = "cannot unpack the source: No space left on device";
	v = judge(e, "MemoryError");
	assert_string_equal(v.rule, "agent");
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_string_equal(v.evidence, e.agent_message);
	assert_non_null(strstr(v.hint, "free space"));
	e.agent_hint = "empty /tmp";
	assert_string_equal(judge(e, "MemoryError").hint, "empty /tmp");
	/* The agent's word counts even where the command ended well. */
	e.exit = 0;
	assert_int_equal(judge(e, NULL).class, CLASS_USER_CONFIG);
}

static void out_of_memory_while_compiling_is_worth_another_try(void **state)
{
	struct failure_evidence e = { .phase = PHASE_PRECOMPILE, .exit_known = true, .exit = 1 };

	(void)state;
	assert_int_equal(judge(e, "MemoryError").class, CLASS_COMPILE);
	e.engine_reason = "OUT_OF_MEMORY";
	assert_int_equal(judge(e, "").class, CLASS_COMPILE);
}

static void outside_text_is_made_harmless(void **state)
{
	static char long_line[40000];
	struct failure_verdict v = judge_exit(
		1, "RuntimeError: \x1b]0;evil\x07 \xff\xfe \xc2\x9b \xe2\x82\xac MemoryError: x");
	struct failure_line line = { long_line, sizeof long_line };
	struct failure_evidence e = { .exit_known = true, .exit = 3, .lines = &line, .count = 1 };

	(void)state;
	for (const char *c = v.evidence; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	assert_non_null(strstr(v.evidence, "?]0;evil? ?? ?? \xe2\x82\xac"));
	/* Beyond the bound nothing is looked at; a NUL is a byte like others. */
	memset(long_line, 'x', sizeof long_line);
	long_line[10] = '\0';
	memcpy(long_line + 20000, "RESOURCE_EXHAUSTED", 18);
	failure_judge(&e, &v);
	assert_string_equal(v.rule, "nothing-known");
	memcpy(long_line + 10000, "RESOURCE_EXHAUSTED", 18);
	failure_judge(&e, &v);
	assert_string_equal(v.rule, "xla-memory");
	assert_true(strlen(v.evidence) < 500);
}

static void any_bytes_are_judged_without_harm(void **state)
{
	static char bytes[4096];
	static struct failure_line lines[64];
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct failure_evidence e = { .exit_known = true, .lines = lines };
		struct failure_verdict v;
		size_t at = 0;

		for (size_t i = 0; i < sizeof bytes; i++) {
			static const char likely[] =
				"Traceback (most recent call last)\n  :'*^[]\r";

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			bytes[i] = x & 64 ? (char)x : likely[(x >> 8) % (sizeof likely - 1)];
		}
		if (round % 2)
			memcpy(bytes, "Traceback (most recent call last)", 33);
		while (e.count < 64) {
			size_t len = (size_t)(x % 64);

			lines[e.count++] = (struct failure_line){ bytes + at, len };
			at += len;
			x = x * 6364136223846793005u + 1442695040888963407u;
		}
		e.exit = round % 160;
		failure_judge(&e, &v);
		assert_true(strlen(v.hint) < sizeof v.hint);
		assert_int_equal(v.class == CLASS_NONE, e.exit == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_reached_by_its_line),
		cmocka_unit_test(ids_and_hints_are_sound),
		cmocka_unit_test(a_traceback_is_user_code_with_its_last_frames),
		cmocka_unit_test(a_missing_module_names_itself_and_its_cure),
		cmocka_unit_test(a_syntax_error_shows_its_line),
		cmocka_unit_test(the_first_of_chained_exceptions_decides_and_the_last_is_shown),
		cmocka_unit_test(what_follows_a_lost_peer_is_not_the_users_fault),
		cmocka_unit_test(a_cause_wins_over_an_earlier_symptom_and_a_later_cause),
		cmocka_unit_test(two_unrelated_tracebacks_are_not_a_chain),
		cmocka_unit_test(advice_and_warnings_are_no_evidence),
		cmocka_unit_test(foreign_lines_inside_a_traceback_do_not_end_it),
		cmocka_unit_test(a_progress_bar_does_not_hide_the_cause),
		cmocka_unit_test(exits_and_signals_mean_what_the_table_says),
		cmocka_unit_test(no_exit_status_is_unknown_and_not_a_failure_of_the_user),
		cmocka_unit_test(the_agent_is_believed_first_then_the_engine_then_the_log),
		cmocka_unit_test(out_of_memory_while_compiling_is_worth_another_try),
		cmocka_unit_test(outside_text_is_made_harmless),
		cmocka_unit_test(any_bytes_are_judged_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
