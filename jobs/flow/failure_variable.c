/*
 * The environment variables that a failure may be the want of: those that its words name, else
 * those that its service is used with. Whether one is set anywhere is not known here: see
 * failure.h.
 */
#include <string.h>

#include "jobs/flow/failure_internal.h"

#define HUB_TOKENS  "HF_TOKEN HUGGING_FACE_HUB_TOKEN"
#define HUB_PLACES  "HF_ENDPOINT HF_HUB_OFFLINE TRANSFORMERS_OFFLINE HF_DATASETS_OFFLINE HF_HOME"
#define WANDB_NAMES "WANDB_API_KEY WANDB_BASE_URL WANDB_MODE"
#define AWS_NAMES                                                                                  \
	"AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AWS_ROLE_ARN "      \
	"AWS_WEB_IDENTITY_TOKEN_FILE AWS_CONTAINER_CREDENTIALS_FULL_URI "                          \
	"AWS_CONTAINER_AUTHORIZATION_TOKEN"
#define AZURE_NAMES                                                                                \
	"AZURE_CLIENT_ID AZURE_CLIENT_SECRET AZURE_TENANT_ID AZURE_STORAGE_CONNECTION_STRING"
#define GIT_NAMES "GITHUB_TOKEN GH_TOKEN GIT_ASKPASS GIT_SSH_COMMAND"
#define PIP_NAMES "PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_INDEX_URL PIP_CONFIG_FILE"

/* Words of a line that speaks of a missing variable: CPython, os.environ, bash, and what scripts
 * say. */
static const char *const missing[] = {
	"environ",          "env var", "not set",  "unset",     "must be set", "must set",
	"unbound variable", "missing", "required", "undefined", "not defined", "please set",
};

/* The first row whose text is in the evidence decides. Names are documented by huggingface_hub,
 * wandb, MLflow, Comet, Neptune, Kaggle, botocore, google-auth, azure-identity, git, pip
 * and gRPC. */
static const struct wanted_row {
	const char *text;
	enum failure_class class; /* CLASS_NONE: any */
	const char *names;        /* separated by single spaces */
} services[] = {
	{ "gated repo", CLASS_NONE, HUB_TOKENS },
	{ "RepositoryNotFoundError", CLASS_NONE, HUB_TOKENS },
	{ "LocalTokenNotFoundError", CLASS_NONE, HUB_TOKENS },
	{ "huggingface", CLASS_QUOTA_PERMISSION, HUB_TOKENS },
	{ "huggingface", CLASS_NONE, HUB_PLACES },
	{ "wandb", CLASS_NONE, WANDB_NAMES },
	{ "W&B", CLASS_NONE, WANDB_NAMES },
	{ "api_key not configured", CLASS_NONE, WANDB_NAMES },
	{ "mlflow", CLASS_NONE,
	  "MLFLOW_TRACKING_URI MLFLOW_TRACKING_TOKEN MLFLOW_TRACKING_USERNAME "
	  "MLFLOW_TRACKING_PASSWORD" },
	{ "comet", CLASS_QUOTA_PERMISSION, "COMET_API_KEY" },
	{ "neptune", CLASS_NONE, "NEPTUNE_API_TOKEN" },
	{ "kaggle", CLASS_NONE, "KAGGLE_USERNAME KAGGLE_KEY" },
	{ "specify a region", CLASS_NONE, "AWS_REGION AWS_DEFAULT_REGION" },
	{ "Unable to locate credentials", CLASS_NONE, AWS_NAMES },
	{ "NoCredentialsError", CLASS_NONE, AWS_NAMES },
	{ "InvalidClientTokenId", CLASS_NONE, AWS_NAMES },
	{ "when calling the ", CLASS_QUOTA_PERMISSION, AWS_NAMES },
	{ "DefaultCredentialsError", CLASS_NONE,
	  "GOOGLE_APPLICATION_CREDENTIALS GOOGLE_CLOUD_PROJECT" },
	{ "azure", CLASS_QUOTA_PERMISSION, AZURE_NAMES },
	{ "Authentication failed", CLASS_QUOTA_PERMISSION, GIT_NAMES },
	{ "could not read Username", CLASS_NONE, GIT_NAMES },
	{ "pypi", CLASS_NONE, PIP_NAMES },
	{ "/simple/", CLASS_TRANSIENT_INFRA, PIP_NAMES },
	{ "401", CLASS_QUOTA_PERMISSION, HUB_TOKENS " WANDB_API_KEY" },
	{ "403", CLASS_QUOTA_PERMISSION, HUB_TOKENS " WANDB_API_KEY" },
	{ "proxy", CLASS_TRANSIENT_INFRA, "grpc_proxy GRPC_PROXY ftp_proxy FTP_PROXY PIP_PROXY" },
};

/* Failures of these classes alone may come from a variable. */
static bool may_want(enum failure_class class)
{
	return class == CLASS_USER_CODE || class == CLASS_USER_CONFIG ||
	       class == CLASS_QUOTA_PERMISSION || class == CLASS_TRANSIENT_INFRA ||
	       class == CLASS_UNKNOWN;
}

static bool is_upper(char c)
{
	return (c >= 'A' && c <= 'Z') || c == '_' || failure_is_digit(c);
}

static bool is_name(char c)
{
	return is_upper(c) || (c >= 'a' && c <= 'z');
}

/* Tells every word of capitals in a line, in which a variable is missing. */
static size_t tell_capitals(struct failure_line line, failure_variable_fn *fn, void *arg)
{
	size_t told = 0;

	for (size_t at = 0, end; at < line.len; at = end + 1) {
		bool upper = true;

		for (end = at; end < line.len && is_name(line.text[end]); end++)
			upper = upper && is_upper(line.text[end]);
		if (!upper || end - at < 3 || failure_is_digit(line.text[at]))
			continue;
		fn(arg, line.text + at, end - at);
		told++;
	}
	return told;
}

/* Tells what the line names; 0: nothing. */
static size_t tell_named(struct failure_line line, failure_variable_fn *fn, void *arg)
{
	struct failure_line key;

	if (failure_matches("KeyError: '*'", true, line, &key)) {
		fn(arg, key.text, key.len);
		return 1;
	}
	for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
		if (failure_find(line, missing[i]) < line.len)
			return tell_capitals(line, fn, arg);
	return 0;
}

static void tell_words(const char *words, failure_variable_fn *fn, void *arg)
{
	while (*words) {
		size_t len = strcspn(words, " ");

		fn(arg, words, len);
		words += len + (words[len] == ' ');
	}
}

void failure_variables(const struct failure_classification *classification, failure_variable_fn *fn,
		       void *arg)
{
	const char *text = classification->evidence;
	const struct failure_line all = { text, strlen(text) };
	size_t told = 0;

	if (!may_want(classification->class))
		return;
	while (*text) {
		struct failure_line line = { text, strcspn(text, "\n") };

		told += tell_named(line, fn, arg);
		text += line.len + (text[line.len] == '\n');
	}
	for (size_t i = 0; told == 0 && i < sizeof services / sizeof services[0]; i++) {
		const struct wanted_row *row = &services[i];

		if ((row->class != CLASS_NONE && row->class != classification->class) ||
		    failure_find(all, row->text) == all.len)
			continue;
		tell_words(row->names, fn, arg);
		return;
	}
}
