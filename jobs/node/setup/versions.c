/*
 * What is installed here: see versions.h. Sources of outside facts: os-release(5); the kernel's
 * documentation of /sys/module/<name>/version (MODULE_VERSION, which the drivers of Neuron, NVIDIA,
 * AMD and EFA set); /proc/driver/nvidia/version, in which the number follows the word "Module", or
 * in the open driver "Module for <architecture>".
 */
#include "jobs/node/setup/versions.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/node/setup/compiler.h"

#define FILE_BYTES   4096
#define VERSION_MAX  100
#define NVIDIA_PROC  "/proc/driver/nvidia/version"
#define VERSIONS_MAX 200 /* members of the object: a node's report stays small */

/* Frameworks, compilers, and the libraries in which a step spends its time; by name or by prefix
 * (ending in *). */
static const char *const packages[] = {
	"accelerate",
	"aws-neuronx-*",
	"bitsandbytes",
	"datasets",
	"deepspeed",
	"diffusers",
	"flash-attn",
	"flax",
	"jax",
	"jax-*",
	"jaxlib",
	"keras",
	"libneuronxla",
	"libtpu*",
	"lightning",
	"megatron-core",
	"mlflow",
	"neuronx-*",
	"numpy",
	"nvidia-cublas*",
	"nvidia-cuda-runtime*",
	"nvidia-cudnn*",
	"nvidia-nccl*",
	"optax",
	"optimum-neuron",
	"peft",
	"pytorch-lightning",
	"sagemaker-training",
	"tensorflow",
	"tensorflow-neuronx",
	"tokenizers",
	"torch",
	"torch-*",
	"torchaudio",
	"torchvision",
	"transformers",
	"triton",
	"xformers",
	NULL,
};

/* Adds a version that a person can read: foreign files hold anything. */
static void add(json_t *versions, const char *name, const char *text, size_t len)
{
	AUTO(sb_release) struct sb plain = SB_INIT;

	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	if (len == 0 || json_object_size(versions) >= VERSIONS_MAX)
		return;
	text_escape(&plain, text, len < VERSION_MAX ? len : VERSION_MAX, false);
	js_put_str(versions, name, plain.text);
}

/* Reads the begin of a small file; false if it is not there. */
static bool read_begin(const char *root, const char *path, struct sb *ret)
{
	AUTO(auto_free) char *file = mem_format("%s%s", root, path);
	AUTO(err_freep) struct err *ignored = NULL;

	return fs_exists(file) && fs_read(file, FILE_BYTES, ret, &ignored) == 0 && ret->len > 0;
}

/* ---- the machine ---- */

static void add_os(json_t *versions, const char *root)
{
	static const char name[] = "PRETTY_NAME=";
	AUTO(sb_release) struct sb text = SB_INIT;
	const char *at;

	if (!read_begin(root, "/etc/os-release", &text))
		return;
	at = text_starts(text.text, name) ? text.text : strstr(text.text, "\nPRETTY_NAME=");
	if (!at)
		return;
	at = strchr(at, '=') + 1;
	at += strspn(at, "\"'");
	add(versions, "os", at, strcspn(at, "\"'\r\n"));
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 …": the first word behind
 * "Module" that begins with a digit and holds a dot. */
static bool add_nvidia(json_t *versions, const char *root)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	const char *at = read_begin(root, NVIDIA_PROC, &text) ? strstr(text.text, " Module") : NULL;

	while (at && *at && *at != '\n') {
		size_t len;

		at += strspn(at, " \t");
		len = strcspn(at, " \t\r\n");
		if (isdigit((unsigned char)*at) && memchr(at, '.', len)) {
			add(versions, "nvidia-driver", at, len);
			return true;
		}
		at += len;
	}
	return false;
}

void versions_add_machine(json_t *versions, const char *root)
{
	static const struct {
		const char *name, *path;
	} drivers[] = {
		{ "neuron-driver", "/sys/module/neuron/version" },
		{ "nvidia-driver", "/sys/module/nvidia/version" },
		{ "amdgpu-driver", "/sys/module/amdgpu/version" },
		{ "efa-driver", "/sys/module/efa/version" },
	};

	add_os(versions, root);
	add_nvidia(versions, root);
	for (size_t i = 0; i < STK_LENGTH(drivers); i++) {
		AUTO(sb_release) struct sb text = SB_INIT;

		if (!json_object_get(versions, drivers[i].name) &&
		    read_begin(root, drivers[i].path, &text))
			add(versions, drivers[i].name, text.text, strcspn(text.text, "\r\n"));
	}
}

/* ---- Python ---- */

static bool add_python(json_t *versions, const struct program_place *place)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *found = NULL;
	const char *name;
	json_t *version;

	if (fingerprint_packages(place, packages, &found, &ignored) < 0 || !found)
		return false;
	json_object_foreach (found, name, version)
		add(versions, name, json_string_value(version), json_string_length(version));
	return true;
}

void versions_inspect(const struct agent_config *config, const struct command_env *env,
		      struct node_report *said)
{
	static const char *const else_tried[] = { "python3", "python" };
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *program = NULL;
	json_t *versions = json_object();
	struct program_place place;
	struct utsname system;
	bool found = false;

	if (uname(&system) == 0)
		add(versions, "kernel", system.release, strlen(system.release));
	versions_add_machine(versions, "");
	if (compiler_place(config, env, &program, &place, &ignored) == 0)
		found = add_python(versions, &place);
	for (size_t i = 0; !found && i < STK_LENGTH(else_tried); i++) {
		place.program = else_tried[i];
		found = add_python(versions, &place);
	}
	MESSAGE_SET_JSON(said, versions, versions);
}
