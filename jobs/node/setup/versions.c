/* Versions of what is installed here: see versions.h. */
#include "jobs/node/setup/versions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/node/setup/compiler.h"
#include "jobs/node/setup/versions_machine.h"

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

static bool add_python(json_t *versions, const struct program_place *place)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *found = NULL;
	const char *name;
	json_t *version;

	if (fingerprint_packages(place, packages, &found, &ignored) < 0 || !found)
		return false;
	json_object_foreach (found, name, version)
		versions_machine_put(versions, name, json_string_value(version),
				     json_string_length(version));
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
		versions_machine_put(versions, "kernel", system.release, strlen(system.release));
	versions_machine_add(versions, "");
	if (compiler_place(config, env, &program, &place, &ignored) == 0)
		found = add_python(versions, &place);
	for (size_t i = 0; !found && i < STK_LENGTH(else_tried); i++) {
		place.program = else_tried[i];
		found = add_python(versions, &place);
	}
	MESSAGE_SET_JSON(said, versions, versions);
}
