/*
 * Knowledge about names of variables: see names.h. Neutral names of Neuron
 * follow the Neuron SDK's archive/nxd-training/bert.rst, torch-neuron-envvars
 * and the runtime's configuration guide; those of JAX its config documentation.
 */
#include "jobs/spec/fields/names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/text/text.h"

static const struct reserved_name reserved[] = {
	{ "STOKER_*", "is one of stoker's own",
	  "choose another name; stoker sets its own variables" },
	{ "LD_PRELOAD", "would be loaded into stoker's agent too",
	  "set the variable inside the command: [env, LD_PRELOAD=…, python3, …]" },
	{ "LD_AUDIT", "would be loaded into stoker's agent too",
	  "set the variable inside the command: [env, LD_AUDIT=…, python3, …]" },
	{ "AWS_BATCH*", "is AWS Batch's own", "choose another name" },
	{ "RUN_NEURON_PARALLEL_COMPILE", "decides the phase, and is set by stoker",
	  "remove the variable: 'compile.kind: neuron' runs phase 1" },
	{ "NEURON_COMPILE_CACHE_URL", "is set by 'compile.cache_url'",
	  "move the value to compile.cache_url" },
	{ "JAX_COMPILATION_CACHE_DIR", "is set by 'compile.cache_url'",
	  "move the value to compile.cache_url" },
};

/* Only names that are certain: a name too many here would make a false warm. */
static const char *const neutral[] = {
	"NEURON_RT_*",
	"NEURON_NUM_RECENT_MODELS_TO_KEEP",
	"MALLOC_ARENA_MAX",
	"TF_NUM_INTEROP_THREADS",
	"FI_*",
	"CCOM_*",
	"MASTER_ADDR",
	"MASTER_PORT",
	"WANDB_*",
	"MLFLOW_*",
	"COMET_*",
	"NEPTUNE_*",
	"LOG_LEVEL",
	"LOGLEVEL",
	"PYTHONUNBUFFERED",
	"PYTHONFAULTHANDLER",
	"TOKENIZERS_PARALLELISM",
	"HF_TOKEN",
	"TF_CPP_MIN_LOG_LEVEL",
	"JAX_LOG_COMPILES",
	"JAX_EXPLAIN_CACHE_MISSES",
	"JAX_LOGGING_LEVEL",
	"JAX_DEBUG_LOG_MODULES",
	"JAX_TRACEBACK_FILTERING",
	"JAX_PERSISTENT_CACHE_*",
	"NO_COLOR",
	"TERM",
	"TZ",
};

/* Names of all compile kinds together (jobs/cache/kinds), so that a file which no key sees may set
 * none of them. */
static const char *const steering[] = {
	"ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB",
	"BUCKET_CAP_MB",
	"JAX_*",
	"LIBTPU_INIT_ARGS",
	"NEURON_*",
	"PT_XLA_*",
	"TORCH_NEURONX_*",
	"XLA_*",
};

/* Words, or pairs of them, between underscores (or the ends) of a name. */
static const char *const secret_words[] = {
	"SECRET",      "SECRETS",  "PASSWORD",    "PASSWD",     "PASSPHRASE",
	"TOKEN",       "APIKEY",   "CREDENTIALS", "API_KEY",    "ACCESS_KEY",
	"PRIVATE_KEY", "AUTH_KEY", "WEBHOOK",     "PGPASSWORD", "MYSQL_PWD",
};

bool names_match(const char *pattern, const char *name)
{
	return fnmatch(pattern, name, 0) == 0;
}

const struct reserved_name *names_reserved(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(reserved); i++)
		if (names_match(reserved[i].pattern, name))
			return &reserved[i];
	return NULL;
}

bool names_neutral(const char *name)
{
	/* A variable of the runtime, but it says how many cores make one: graphs are compiled
	 * for that. */
	if (strcmp(name, "NEURON_RT_VIRTUAL_CORE_SIZE") == 0)
		return false;
	for (size_t i = 0; i < STK_LENGTH(neutral); i++)
		if (names_match(neutral[i], name))
			return true;
	return false;
}

bool names_steering(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(steering); i++)
		if (names_match(steering[i], name))
			return !names_neutral(name);
	return false;
}

/* True if `word` is in `name` as a whole: only '_', '-' or '.' around it. */
static bool has_word(const char *name, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strcasestr(name, word); at; at = strcasestr(at + 1, word))
		if ((at == name || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[len]))
			return true;
	return false;
}

bool names_secret(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(secret_words); i++)
		if (has_word(name, secret_words[i]))
			return true;
	return false;
}
