/*
 * Warnings about limits of AWS services, as their API models give them:
 * sagemaker:CreateTrainingJobRequest, batch:RegisterJobDefinition and the
 * quotas of AWS Batch. A request over them is refused after the queue, not here.
 */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/fields/names.h"
#include "jobs/spec/lint/lint.h"

#define OWN_TAGS 4 /* number of tags on each AWS Batch job: batch_definition.c, tags_of() */

static void check_count(struct binder *binder, enum spec_field field, size_t count, size_t most,
			const char *hint)
{
	if (count > most)
		problem_hint(spec_lint(binder, field, NULL,
				       "'%s' has %zu entries; SageMaker takes %zu",
				       field_table[field].path, count, most),
			     "%s", hint);
}

/* Reports texts of one object that are longer than the service takes. */
static void too_long(struct binder *binder, enum spec_field field, const json_t *texts, size_t most)
{
	json_t *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)texts, name, value) {
		AUTO(auto_free) char *member = mem_format(".%s", name);

		if (json_string_length(value) > most)
			problem_hint(spec_lint(binder, field, member,
					       "'%s%s' is %zu bytes long; SageMaker takes %zu",
					       field_table[field].path, member,
					       json_string_length(value), most),
				     "put long values into a file of the source");
	}
}

static void lint_sagemaker(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	json_auto_t *texts = spec_hyperparameter_texts(spec, false);
	const json_t *env = spec_get(spec, SPEC_ENV), *item;
	const char *image = spec_str(spec, SPEC_IMAGE);
	json_auto_t *metrics = spec_metrics(spec);
	size_t i;

	check_count(binder, SPEC_HYPERPARAMETERS, json_object_size(texts), 100,
		    "put rarely changed ones into a file of the source");
	too_long(binder, SPEC_HYPERPARAMETERS, texts, 2500);
	check_count(binder, SPEC_ENV, json_object_size(env), 100, "set some of them in the script");
	too_long(binder, SPEC_ENV, env, 512);
	check_count(binder, SPEC_TAGS, json_object_size(spec_get(spec, SPEC_TAGS)), 50,
		    "keep the tags that bills and searches use");
	too_long(binder, SPEC_TAGS, spec_get(spec, SPEC_TAGS), 256);
	check_count(binder, SPEC_METRICS, json_array_size(metrics), 40,
		    "stoker reads the others itself; SageMaker shows the first 40");
	check_count(binder, SPEC_COMMAND, json_array_size(spec_get(spec, SPEC_COMMAND)), 100,
		    "put the arguments into a file of the source");
	json_array_foreach (spec_get(spec, SPEC_COMMAND), i, item)
		if (json_string_length(item) > 256)
			problem_hint(spec_lint(binder, SPEC_COMMAND, NULL,
					       "argument %zu is longer than SageMaker's 256 bytes",
					       i),
				     "put a long script into a file of the source");
	if (image && strlen(image) > 255)
		spec_lint(binder, SPEC_IMAGE, NULL, "'image' is longer than SageMaker's 255 bytes");
}

/* Returns the bytes of JSON of the parts that go into a job definition word for word. */
static size_t definition_bytes(const struct spec *spec)
{
	static const enum spec_field parts[] = { SPEC_COMMAND, SPEC_ENV, SPEC_SECRETS, SPEC_TAGS,
						 SPEC_MOUNTS };
	size_t bytes = 0;

	for (size_t i = 0; i < STK_LENGTH(parts); i++) {
		const json_t *part = spec_get(spec, parts[i]);

		bytes += part ? json_dumpb(part, NULL, 0, JSON_COMPACT) : 0;
	}
	return bytes;
}

static void lint_batch(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	size_t bytes = definition_bytes(spec);
	size_t tags = json_object_size(spec_get(spec, SPEC_TAGS));

	if (bytes > (size_t)24 << 10)
		problem_hint(
			problem_lint(&binder->reporter, access_mark_of_field(spec, SPEC_COMMAND),
				     NULL,
				     "command, env and tags are %zu bytes; a job definition of "
				     "AWS Batch takes 24 KiB",
				     bytes),
			"put long values into a file of the source");
	if (tags > 50 - OWN_TAGS)
		problem_hint(spec_lint(binder, SPEC_TAGS, NULL,
				       "'tags' has %zu entries; AWS Batch takes 50, and %d are "
				       "stoker's own",
				       tags, OWN_TAGS),
			     "keep the tags that bills and searches use");
}

void lint_services(struct binder *binder)
{
	if (spec_says(binder->spec, SPEC_ENGINE, "sagemaker"))
		lint_sagemaker(binder);
	else if (spec_says(binder->spec, SPEC_ENGINE, "batch"))
		lint_batch(binder);
}
